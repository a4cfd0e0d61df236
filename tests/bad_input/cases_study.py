"""Cases of invalid prompts, metrics, sites, data sets and models in `tfviz.study`."""

SETUP = """
import torch
from torch import nn
from tfviz import look, models, study, view
from tfviz.study import HeadScores, Inputs, MapStore, Statistics, Table, aggregate, compare, mean_head_scores
from tfviz.study import logit_attribution, logit_lens, maps_during_training, mean_activations, patch
gpt = models.GPT(11, context=7, layers=2, heads=2, dim=4)
ids, other = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([[1, 7, 3], [4, 8, 6]])
last = study.logit(5)
with torch.device("meta"):
    sketch = models.GPT(11, context=7, layers=2, heads=2, dim=4)
class Bare(nn.Module):  # no output, as GPT2Model
    def __init__(self):
        super().__init__()
        self.gpt = models.GPT(11, context=7, layers=2, heads=2, dim=4)
    def forward(self, ids):
        return (None, self.gpt(ids))
class Flat(nn.Module):  # no blocks
    def __init__(self):
        super().__init__()
        self.tokens, self.head = nn.Embedding(11, 4), nn.Linear(4, 11)
    def forward(self, ids):
        return self.head(self.tokens(ids))
class Blind(nn.Module):  # without gradients, as quantized layers
    def __init__(self):
        super().__init__()
        self.gpt, self.head = models.GPT(11, context=7, layers=2, heads=2, dim=4), nn.Linear(11, 11)
    def forward(self, ids):
        return self.head(self.gpt(ids).detach())
blind = Blind()
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.gpt = models.GPT(11, context=7, layers=2, heads=2, dim=4)
    def forward(self, input_ids, attention_mask=None):
        raise AssertionError("the model was run")
dynamic = torch.ao.quantization.quantize_dynamic(models.GPT(11, context=7, layers=2, heads=2, dim=4), {nn.Linear})
def change(**more): return patch(gpt, ids, other, **{"metric": last, "progress": False, **more})
def measured(texts=(ids,), measure=lambda seen, inputs: torch.ones(2), **more):
    return aggregate(gpt, texts, measure, progress=False, **more)
def path(**more): return study.patch_path(gpt, ids, other, **{"metric": last, "progress": False, **more})
def heads(batch, model=gpt): return mean_head_scores(model, [batch], ["previous"], progress=False)
class Never:
    def __call__(self, logits): raise AssertionError("the model was run")
"""
CASES = [
    ("change(metric=lambda logits: logits)", r"metric returns a tensor \[2, 3, 11\]; it must return one number"),
    ("change(metric=lambda logits: None)", "metric returns None; it must return one number"),
    ("change(metric=lambda logits: logits.sum() * float('nan'))", "metric returns nan, by which runs"),
    ("change(metric=lambda logits: logits.sum() / 0)", "metric returns -?inf, by which runs"),
    *(
        (
            f"{call}={metric})",
            r"^metric is called with the logits, a tensor \[2, (3|1), 11\], not with the model's output: give a",
        )
        for call in ("change(metric", "path(metric")
        for metric in (
            "lambda out: out.logits[:, -1, 5].mean()",
            "lambda logits: 1 / 0",
        )
    ),
    (
        "logit_attribution(gpt, ids, target=lambda out: out.logits[:, -1, 5].sum())",
        r"^target is called with the logits, a tensor \[2, 3, 11\], not with the model's output",
    ),
    ("change(metric=5)", r"metric is 5; give .*: a metric, such as study\.logit\(id\)$"),
    (
        "logit_attribution(gpt, ids, target=' Mary')",
        r"target is ' Mary'; give .*: a metric, such as study\.logit\(id\)$",
    ),
    *(
        (f"study.{metric}", rf"{says}.*: the id of a token, such as tokenizer\.encode\(' Mary'\)\[0\]")
        for metric, says in (
            ("logit_difference(' Mary', ' John')", "correct is ' Mary'; give"),
            ("logit_difference(5, ' John')", "incorrect is ' John'; give"),
            ("logit(' Mary')", "token is ' Mary'; give"),
            ("log_probability([' Mary'])", "token is a list"),
            ("logit({'input_ids': [5]})", "token is a dict"),
        )
    ),
    ("study.logit(5, position='last')", r"position is 'last'; give int, Sequence\[int\] or Tensor$"),
    ("change(metric=lambda: 1)", "metric"),
    ("change(metric=study.logit(11))", "token is 11; there are 11, counted from 0"),
    ("study.logit(torch.tensor([2.0]))", r"token is torch\.float32; give whole numbers"),
    ("study.logit(2, position=torch.tensor([2.0]))", r"position is torch\.float32; give whole numbers"),
    ("change(metric=study.logit(2, position=[0, 1, 2]))", "there are 3 positions for 2 texts; give one"),
    (
        "change(metric=study.logit([1, 2, 3]))",
        "there are 3 tokens for 2 texts; .*; for a word of several tokens, give the first$",
    ),
    ("change(metric=study.logit_difference(1, 2, position=3))", "position is 3; there are 3"),
    ("change(source='sideways')", "source is 'sideways'; it must be one of: clean, corrupt"),
    ("change(each='layer')", "each is 'layer'; give 'head', 'position', 'head and position' or None$"),
    (
        "patch(ids, ids, other, metric=Never())",
        r"model is a tensor of shape \[2, 3\]; give a model \(torch\.nn\.Module\)$",
    ),
    ("view.table(measured())", r"table is a Statistics; give Table, such as its \.mean$"),
    (
        "view.table({'a b': measured()})",
        r"table is a dictionary; give Table, such as that of 'a b', such as its \.mean$",
    ),
    ("view.table(torch.ones(2, 2))", r"table is a tensor .*; give Table, such as study\.Table\(values, \{'layer': "),
    ("change(sites='blcoks.*')", "no site matches 'blcoks"),
    ("change(sites=[])", "sites is empty; name sites, such as"),
    ("change(sites='*.scores')", r"scores is \[2, 2, 3, 3\].*name sites of activations"),
    ("change(sites='input')", r"input is \[2, 3\], torch\.int64; name sites of activations"),
    ("change(sites=['blocks.0', '*.output_heads'])", "the sites differ in size"),
    ("change(sites='blocks.0', each='head')", "each is 'head', and blocks.0 has no heads"),
    ("change(each='position', tokens=['a', 'b'])", "there are 2 tokens and 3 positions; give one token for each"),
    (
        "change(metric=lambda logits: logits.detach().sum(), source='gradient')",
        "the metric does not depend on the logits",
    ),
    ("change(batch_size=0)", "batch_size is 0; it must be at least 1"),
    ("patch(gpt, ids, metric=Never())", "source='clean' compares two prompts: give corrupt, too"),
    ("patch(gpt, ids, other[:, :2], metric=Never())", "give prompts of the same shapes"),
    ("patch(gpt, ids, other[:1], metric=Never())", "give prompts of the same shapes"),
    ("patch(gpt, ids[:1], metric=Never(), source='mean')", "source='mean' takes activations of other texts"),
    ("patch(gpt, ids[:1], metric=Never(), source='resample')", "source='resample' takes activations of other texts"),
    (
        "patch(gpt, ids[0], other[0], metric=Never())",
        r"clean: \[3\]; give ids \[batch, position\], such as ids\[None\] for one text$",
    ),
    *(
        (f"logit_lens(gpt, {prompt})", says)
        for prompt, says in (
            ("[ids[0]]", r"ids: \[3\]; give ids \[batch, position\], such as ids\[None\] for one text$"),
            ("{'ids': ids[0]}", r"ids: \[3\]; give ids \[batch, position\], such as ids\[None\] for one text$"),
            (
                "(ids, ids[:, 0])",
                r"ids: \[2, 3\], \[2\]; a tuple holds .*; of \(ids, targets\), give ids alone, batch\[0\]$",
            ),
            ("[ids, ids[:, 0]]", r"a list holds the model's positional arguments; .* give ids alone, batch\[0\]$"),
            ("{'ids': ids, 'label': ids[:, 0]}", r"ids: \[2, 3\], \[2\]; leave label out, or give ids"),
            ("(ids, other)", r"a tuple holds .* give ids alone, batch\[0\]; here the second is cache$"),
            ("[ids, other]", r"a list holds .* give ids alone, batch\[0\]; here the second is cache$"),
        )
    ),
    *(
        (f"heads({batch}, Reader())", says)
        for batch, says in (
            ("(ids, other)", r"a tuple holds .* give ids alone, batch\[0\]; here the second is attention_mask$"),
            ("(ids, ids * 0 - 100)", "give ids alone, .* the second is attention_mask"),
            (
                "{'input_ids': ids, 'attention_mask': ids * 0 - 100}",
                "attention_mask holds -100; give 1 for a token, 0 for",
            ),
            (
                "{'input_ids': ids, 'attention_mask': torch.full((2, 3), 0.5)}",
                r"attention_mask holds 0\.5; give 1 for a",
            ),
            ("{'input_ids': ids, 'attention_mask': torch.full((2, 3), torch.nan)}", "attention_mask holds nan; give 1"),
            (
                "{'input_ids': ids, 'attention_mask': torch.full((2, 1, 3, 3), 0.5)}",
                r"attention_mask holds 0\.5; give 0, or the lowest",
            ),
            (
                "{'input_ids': ids, 'attention_mask': ids[:, :2] > 0}",
                r"attention_mask is \[2, 2\], and input_ids \[2, 3\]",
            ),
            (
                "{'input_ids': ids, 'attention_mask': torch.ones(2, 5)}",
                r"attention_mask is \[2, 5\], and input_ids \[2, 3\]",
            ),
            (
                "{'input_ids': ids, 'attention_mask': torch.ones(2, 1, 3, 5).bool()}",
                r"attention_mask is \[2, 1, 3, 5\], and",
            ),
            ("{'input_ids': ids, 'attention_mask': torch.ones(3)}", r"\[2, 3\], \[3\]; leave attention_mask out, or"),
        )
    ),
    *(
        (
            f"logit_lens(gpt, ids.to(torch.{kind}))",
            rf"ids are torch\.{kind}; give whole numbers, int64, as a tokenizer returns them",
        )
        for kind in ("bool", "uint8", "int8", "int16", "float64")
    ),
    ("patch(gpt, {}, {}, metric=Never())", r"clean: no tensor, but a dictionary; give ids"),
    ("patch(gpt, ids[:0], other[:0], metric=Never())", r"clean: \[0, 3\]; give ids"),
    ("patch(gpt, 'a text', 'another', metric=Never())", "clean holds the string 'a text': tokenize first"),
    ("patch(gpt, ['a text'], ['another'], metric=Never())", "clean holds the string 'a text': tokenize first"),
    ("patch(gpt, {'ids': ['a text']}, ids, metric=Never())", "clean holds the string 'a text': tokenize first"),
    ("mean_head_scores(gpt, [{'input_ids': 'a text'}])", "texts holds the string 'a text': tokenize first"),
    (
        "patch(gpt, {'ids': ids, 'mask': torch.cat([ids, ids])}, None, metric=Never(), source='zero')",
        "tensors that share their first axis",
    ),
    (
        "patch(gpt, ids, metric=Never(), source={})",
        r"source is empty; give site -> activation, as study\.mean_activations does",
    ),
    (
        "patch(gpt, ids, metric=last, source={'blocks.0': torch.ones(5)})",
        r"source gives \[5\] for blocks\.0, which is \[2, 3, 4",
    ),
    (
        "patch(gpt, ids[:, :2], metric=last, source={'blocks.0': torch.ones(2, 4)})",
        r"source: \[2, 4\] is ambiguous, one for each text or one for each position: .* \[2, 1, 4\] or \[1, 2, 4\]$",
    ),
    (
        "patch(gpt, ids, metric=last, source={'blocks.0': torch.ones(4)}, sites='blocks.?')",
        "source has no activation for blocks.1; ",
    ),
    ("patch(gpt, ids, metric=last, source={'nowhere': torch.ones(6)})", "no site matches 'nowhere'"),
    *(
        (f"path({side}={none}, metric=Never())", rf"{side} {says}")
        for side in ("receivers", "senders")
        for none, says in (
            ("{}", "is empty; name sites"),
            ("[]", "is empty; name sites"),
            ("()", "is empty; name sites"),
            ("''", "is empty; name sites"),
            ("{'*.query': []}", r"names no head of \*\.query; give one or several, or None for all"),
            ("{'*.query': ()}", r"names no head of \*\.query"),
        )
    ),
    *(
        (f"path({side}=[(1, 1)])", rf"{side} is a list: item 0 .* glob -> heads, such as .*: \[0, 2\]\}}$")
        for side in ("receivers", "senders")
    ),
    *(
        (
            f"path({side}={{'*.query': {heads}}}, metric=Never())",
            rf"^'{wrong}' is not the index of a head; count from 0",
        )
        for side in ("receivers", "senders")
        for heads, wrong in (("['0', 'x']", "x"), ("'-1'", "-1"), ("'1.0'", r"1\.0"), ("('1', '')", ""))
    ),
    ("path(receivers='nothing')", "LookupError: .*no site matches 'nothing'"),
    (
        "path(receivers={'*.query': 2})",
        r"ValueError: .*blocks\.0\.attention\.query has no head 2; it has 2, counted from 0",
    ),
    ("path(senders={'blocks.1.*output_heads': [0, 2]})", r"ValueError: .*output_heads has no head 2; it has 2"),
    ("path(senders={'blocks.1.feed_forward': 0})", r"ValueError: .*blocks\.1\.feed_forward is .*, without heads"),
    (
        "path(senders={'*.output_heads': 0}, each='position')",
        "ValueError: .*each is 'position', and heads are named",
    ),
    ("path(source='zero')", "ValueError: .*source is 'zero'"),
    ("path(each='position', tokens=['a'])", "ValueError: .*1 tokens and 3 positions"),
    ("path(receivers={'*.query': '2'})", r"blocks\.0\.attention\.query has no head 2; it has 2, counted from 0"),
    ("path(receivers={'blocks.?': 0})", r"ValueError: .*blocks\.0 is \[2, 3, 4\], without heads"),
    *(
        (f"{call}(tokens={words}, metric=Never(), each='position')", says)
        for call in ("change", "path")
        for words, says in (
            ("'abc'", r"tokens is 'abc', one text; give a list, one token for each position"),
            ("ids[0].tolist()", r"tokens is a list: item 0 is not an instance of str; give"),
        )
    ),
    *(
        (f"look.edits.{edit}", "'x' is not the index of a head; count from 0")
        for edit in (
            "zero('x')",
            "zero(['0', 'x'])",
            "zero('x', positions=0)",
            "uniform('x')",
            "hide([(0, 0)], 'x')",
            "mean('x')",
            "pin([(0, 0)], 0.5, 'x')",
            "add(torch.ones(2), 'x')",
            "paste(torch.ones(2), ['x'])",
            "noise(0.1, head='x')",
        )
    ),
    (
        "study.logit_difference(5, 5)",
        r"correct and incorrect are both 5, whose difference is always 0; give two tokens",
    ),
    ("study.logit_difference([5, 2], torch.tensor([4, 2]))", "correct and incorrect are both 2"),
    ("study.logit_difference(2, [4, 2])", "correct and incorrect are both 2"),
    ("mean_activations(gpt, [ids], sites='*.pattern')", "name sites of activations"),
    ("mean_activations(gpt, [])", "there is no text to measure"),
    ("study.head_weights(gpt).composition('Q')", "kind is 'Q'; it must be one of: query, key, value"),
    ("study.head_weights(gpt).qk(0, 2)", "head has no '2'; it has 0, 1"),
    ("study.head_weights(gpt).ov('2', 0)", "layer has no '2'; it has 0, 1"),
    ("study.head_weights(gpt, sites='nothing')", "no site matches nothing; this model has blocks"),
    ("study.head_weights(gpt, 'text')", "ids holds the string 'text': tokenize first"),
    ("study.head_weights(Flat())", "the model ran, but no attention was seen in it"),
    ("study.head_weights(sketch)", "the model's weights are on the meta device"),
    (
        "study.HeadWeights(*[torch.ones(2, 3, 6, 2)] * 4, labels=['0', '1'])",
        r"output is \[2, 3, 6, 2\]; give query, key and value \[layer, head, dim, head_dim\]",
    ),
    (
        "study.HeadWeights(*[torch.ones(2, 3, 6, 2)] * 3, torch.ones(2, 3, 2, 6), ['0'])",
        "labels has 1 labels, the weights have 2 layers",
    ),
    ("patch(sketch, ids, other, metric=Never())", "the model's weights are on the meta device"),
    (
        "patch(Bare(), ids, other, metric=Never())",
        "the model returns None without logits; give the model with its head",
    ),
    ("patch(nn.Identity, ids, other, metric=Never())", "model is the class Identity"),
    ("patch(dynamic, ids, other, metric=last, progress=False).values.shape", r"= torch\.Size\(\[2, 2\]\)"),
    (
        "patch(blind, ids, other, metric=last, source='gradient', progress=False)",
        r"no gradient of the metric reaches gpt\.blocks\.0\.attention\.output_heads",
    ),
    ("logit_attribution(blind, ids, target=last)", r"no gradient of the target reaches gpt\.norm"),
    ("patch(Flat(), ids, other, metric=last, progress=False)", "no site matches '\\*\\.output_heads'"),
    ("change(resume='.')", "there is no file|is a folder|Is a directory"),
    ("logit_lens(gpt, ids[:1]).text(0)", "the table is of one text already"),
    ("logit_lens(gpt, ids).text(2)", "index is 2; there are 2 texts, counted from 0"),
    ("logit_lens(gpt, ids[0])", r"ids: \[3\]; give ids \[batch, position\]"),
    ("logit_lens(gpt, ids[:1], top_k=0)", "top_k is 0; it must be at least 1"),
    ("logit_lens(gpt, ids[:1], token=11)", "token is 11; there are 11, counted from 0"),
    ("logit_lens(gpt, ids[:1], token=-1)", "token is -1; there are 11"),
    ("logit_lens(gpt, ids[:1], to_tokens='abc')", "to_tokens is 'abc'"),
    ("logit_lens(gpt, ids[:1], top_k=100).ids.shape", r"= torch\.Size\(\[3, 3, 11\]\)"),
    ("logit_lens(Flat(), ids[:1])", "Flat has no stack of blocks"),
    ("logit_lens(Bare(), ids[:1])", "the model returns None without logits"),
    ("logit_lens(sketch, ids[:1])", "the model's weights are on the meta device"),
    ("logit_attribution(gpt, ids, target=lambda logits: logits[:, -1].square().sum())", "the target is not linear"),
    ("logit_attribution(gpt, ids, target=lambda logits: logits)", "it must return one number"),
    ("logit_attribution(gpt, ids, target=lambda logits: 3.0)", "the target does not depend on the logits"),
    (
        "logit_attribution(gpt, ids, target=lambda logits: logits.detach().sum())",
        "the target does not depend on the logits",
    ),
    ("logit_attribution(gpt, ids, target=last, each='layer')", "each is 'layer'; give 'part' or 'head'$"),
    ("logit_attribution(Flat(), ids, target=last)", "Flat has no norm that takes the residual stream"),
    ("logit_attribution(Bare(), ids, target=last)", "the model returns None without logits"),
    ("logit_attribution(sketch, ids, target=last)", "the model's weights are on the meta device"),
    ("measured(texts=[])", "there is no text to measure"),
    ("measured(texts=iter([]))", "there is no text to measure"),
    ("measured(texts=[None])", r"a batch of texts is None; give a tensor of ids, \[batch, position\]"),
    ("measured(texts=[5])", "a batch of texts is 5; give a tensor of ids"),
    ("measured(texts=iter([None, ids]))", r"a batch of texts is None; give a tensor of ids, \[batch, position\]"),
    ("measured(texts=['a', 'b'])", "texts are strings: give tokenize"),
    ("measured(texts='a text')", "texts is 'a text'; give a list of texts or batches"),
    ("measured(texts=ids)", "give a list of texts or batches"),
    ("measured(texts=[ids[0]])", r"a batch of texts: \[3\]; give ids \[batch, position\]"),
    ("measured(texts=[{'text': 'a'}])", "rows have text; give rows with input_ids"),
    ("measured(batch_size=0)", "batch_size is 0; it must be at least 1"),
    ("measured(top_k=0)", "top_k is 0; it must be at least 1"),
    (
        "measured(measure=lambda seen: 1)",
        r"measure is the function <lambda>; give a function of \(Capture, Inputs\)|must take \(capture, inputs\)",
    ),
    ("measured(measure=HeadScores)", "give a function, or an instance, HeadScores"),
    ("measured(sites='nothing')", "no site matches 'nothing'"),
    ("measured(client='tcp://here:8786')", r"client is 'tcp://here:8786'; give a distributed\.Client"),
    ("aggregate(sketch, [ids], HeadScores())", "the model's weights are on the meta device"),
    ("mean_head_scores(gpt, [ids], 'previous')", "kinds is 'previous'; give a list"),
    ("mean_head_scores(gpt, [ids], ['next'])", "no kind of position is called 'next'; there are: current"),
    (
        "mean_head_scores(gpt, [ids], sites='blocks.0', progress=False)",
        r"blocks\.0 is \[2, 3, 4\]; heads are scored on self-attention",
    ),
    ("compare(gpt, sketch, [ids], progress=False)", "the model's weights are on the meta device"),
    ("compare(gpt, gpt, [ids], sites='blocks.0', progress=False)", r"blocks\.0 holds no weights"),
    *(
        (f"compare(gpt, {other}, [ids], progress=False)", rf"^GPT and {says}: compare checkpoints of one model$")
        for other, says in (
            (
                "models.GPT(11, context=7, layers=3, heads=2, dim=4)",
                r"GPT differ in blocks\.2\.attention\.pattern, none in the first and \[2, 2, 3, 3\] in the second",
            ),
            (
                "models.GPT(11, context=7, layers=1, heads=2, dim=4)",
                r"GPT differ in blocks\.1\.attention\.pattern, \[2, 2, 3, 3\] in the first and none in the second",
            ),
            (
                "models.GPT(11, context=7, layers=2, heads=1, dim=4)",
                r"GPT differ in blocks\.0\.attention\.pattern, \[2, 2, 3, 3\] .* and \[2, 1, 3, 3\] in the second",
            ),
            (
                "models.GPT(12, context=7, layers=2, heads=2, dim=4)",
                r"GPT differ in logits, \[2, 3, 11\] in the first and \[2, 3, 12\] in the second",
            ),
        )
    ),
    ("maps_during_training([], gpt, ids[:1], every=0)", "every is 0; it must be at least 1"),
    ("maps_during_training([], gpt, ids[0], every=1)", r"probe: \[3\]; give ids"),
    ("maps_during_training([], sketch, ids[:1], every=1)", "the model's weights are on the meta device"),
    ("Table(torch.ones(2), {'a': ['x']})", r"values are \[2\], and the labels of a are \[1\]"),
    ("Table(torch.ones(2, device='meta'), {'a': ['x', 'y']})", "values is a tensor on the meta device"),
    ("Table(torch.ones(2), {'a': ['x', 'y']})['z']", "a has no 'z'; it has x, y"),
    ("Table(torch.ones(2), {'a': ['x', 'y']})['x', 'y']", "there are 2 labels; give one for each of: a"),
    ("Table(torch.ones(2), {'a': ['x', 'y']}).top(0)", "count is 0; it must be at least 1"),
    ("Table(torch.ones(2), {'a': ['x', 'y']}).relative_to(0)", "the whole is 0.*; there are no shares of it"),
    ("Table(torch.ones(2), {'text': ['0', '1']}).relative_to([1.0, 0.0])", "the whole is .*; there are no shares"),
    ("Table(torch.ones(2), {'a': ['0', '1']}).relative_to([1.0, 2.0])", r"whole is \[2\], and the axes are a; "),
    ("Table(torch.ones(2), {'text': ['0', '1']}).relative_to([1.0])", r"whole is \[1\], and the axes are text; "),
    ("Table(torch.ones(2), {'a': ['0', '1']}) - Table(torch.ones(2), {'a': ['0', '2']})", "have different axes"),
    ("Table(torch.ones(1), {'a': ['0']}) - Table(torch.ones(1), {'a': ['0']}, 'nats')", "have different units"),
    ("change(sites={'*.output_heads': 2})", r"output_heads has no head 2; it has 2, counted from 0"),
    ("change(sites={'*.output_heads': []})", "sites names no head of"),
    ("change(sites={})", "sites is empty; name sites, such as"),
    ("change(sites={'blocks.?': 0})", r"blocks\.0 is \[2, 3, 4\], without heads; name its site alone"),
    ("change(sites={'*.output_heads': 0}, each='position')", "each is 'position', and heads are named"),
    (
        "patch(gpt, ids, other, last)",
        "too many positional arguments; it takes model, clean, corrupt; by name metric=, sites=",
    ),
    ("change(positions=[])", "positions is empty; name some"),
    ("change(positions=[3])", "there is no position 3; .* has 3, counted from 0"),
    ("change(positions=[-4])", "there is no position -4; .* has 3, counted from 0"),
    ("change(positions=-1)", "positions is -1; give"),
    ("path(positions=[5])", "there is no position 5"),
    *(
        (f"logit_attribution(gpt, ids, target={target})", "the target is not linear in the output of the last norm")
        for target in (
            "lambda logits: logits.softmax(-1)[:, -1, 5].mean()",
            "lambda logits: (logits / 10).softmax(-1)[:, -1, 5].mean()",
            "lambda logits: logits.log_softmax(-1)[:, -1, 5].mean()",
            "lambda logits: logits[:, -1].amax(-1).mean()",
            "lambda logits: logits[:, -1].abs().mean()",
            "lambda logits: logits[:, -1].pow(2).mean()",
        )
    ),
    *(
        (
            f"Table(torch.ones(2), {{'a': ['x', 'y']}}).save('{name}')",
            rf"{name}: a table is written as safetensors; give .* or take table\.to_pandas\(\)\.to_csv\('x\.csv'\)$",
        )
        for name in ("x.csv", "x.json", "x.parquet", "x.pt", "folder/x.html")
    ),
    ("Table.load('none')", "there is no file none"),
    ("MapStore('store')['none']", "there are no maps 'none'; there are 0"),
    ("open('x', 'w').close(); it = MapStore('x')", "x is a file; give a folder"),
    ("open('x', 'w').close(); it = MapStore('.')", "holds other files and no index.json"),
]
