"""Cases of invalid prompts, metrics, sites, data sets and models in `tfviz.study`."""

SETUP = """
import torch
from torch import nn
from tfviz import models, study
from tfviz.study import HeadScores, Inputs, MapStore, Statistics, Table, attribute, compare, film, find_heads, lens
from tfviz.study import mean_activations, over, patch
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
dynamic = torch.ao.quantization.quantize_dynamic(models.GPT(11, context=7, layers=2, heads=2, dim=4), {nn.Linear})
def change(**more): return patch(gpt, ids, other, **{"metric": last, "progress": False, **more})
def measured(texts=(ids,), measure=lambda seen, inputs: torch.ones(2), **more):
    return over(gpt, texts, measure, progress=False, **more)
class Never:
    def __call__(self, logits): raise AssertionError("the model was run")
"""
CASES = [
    ("change(metric=lambda logits: logits)", r"metric gives a tensor \[2, 3, 11\]; it must give one number"),
    ("change(metric=lambda logits: None)", "metric gives None; it must give one number"),
    ("change(metric=lambda logits: logits.sum() * float('nan'))", "metric gives nan; runs cannot be compared"),
    ("change(metric=lambda logits: logits.sum() / 0)", "metric gives -?inf; runs cannot be compared"),
    ("change(metric=5)", r"metric is 5; give .*: a metric, such as study\.logit\(id\)$"),
    ("attribute(gpt, ids, target=' Mary')", r"target is ' Mary'; give .*: a metric, such as study\.logit\(id\)$"),
    *(
        (f"study.{metric}", rf"{says}.*: the id of a token, such as tokenizer\.encode\(' Mary'\)\[0\]")
        for metric, says in (
            ("logit_difference(' Mary', ' John')", "right is ' Mary'; give"),
            ("logit_difference(5, ' John')", "other is ' John'; give"),
            ("logit(' Mary')", "token is ' Mary'; give"),
            ("log_probability([' Mary'])", "token is a list"),
            ("logit({'input_ids': [5]})", "token is a dict"),
        )
    ),
    ("study.logit(5, position='last')", r"position is 'last'; give Union\[int, Sequence\[int\], Tensor\]$"),
    ("change(metric=lambda: 1)", "metric"),
    ("change(metric=study.logit(11))", "token is 11; there are 11, counted from 0"),
    ("study.logit(torch.tensor([2.0]))", r"token is torch\.float32; give whole numbers"),
    ("study.logit(2, position=torch.tensor([2.0]))", r"position is torch\.float32; give whole numbers"),
    ("change(metric=study.logit(2, position=[0, 1, 2]))", "there are 3 positions for 2 texts; give one"),
    (
        "change(metric=study.logit([1, 2, 3]))",
        "there are 3 tokens for 2 texts; .*; of a word of several tokens, give the first$",
    ),
    ("change(metric=study.logit_difference(1, 2, position=3))", "position is 3; there are 3"),
    ("change(by='sideways')", "by is 'sideways'; it must be one of: clean, corrupt"),
    ("change(each='layer')", "each is 'layer'; give"),
    ("change(sites='blcoks.*')", "no site matches 'blcoks"),
    ("change(sites=[])", "sites is empty; name some"),
    ("change(sites='*.scores')", r"scores is \[2, 2, 3, 3\].*name sites of activations"),
    ("change(sites='input')", r"input is \[2, 3\], torch\.int64; name sites of activations"),
    ("change(sites=['blocks.0', '*.output_heads'])", "the sites differ in size"),
    ("change(sites='blocks.0', each='head')", "each is 'head', and blocks.0 has no heads"),
    ("change(each='position', words=['a', 'b'])", "there are 2 words and 3 positions; give one word for each"),
    ("change(metric=lambda logits: logits.detach().sum(), by='gradient')", "the metric does not depend on the logits"),
    ("change(batch_size=0)", "batch_size is 0; it must be at least 1"),
    ("patch(gpt, ids, metric=Never())", "by='clean' compares two prompts: give corrupt, too"),
    ("patch(gpt, ids, other[:, :2], metric=Never())", "give prompts of the same shapes"),
    ("patch(gpt, ids, other[:1], metric=Never())", "give prompts of the same shapes"),
    ("patch(gpt, ids[:1], metric=Never(), by='mean')", "by='mean' takes activations of other texts"),
    ("patch(gpt, ids[:1], metric=Never(), by='resample')", "by='resample' takes activations of other texts"),
    ("patch(gpt, ids[0], other[0], metric=Never())", r"clean: \[3\]; give ids \[batch, position\]"),
    ("patch(gpt, {}, {}, metric=Never())", r"clean: no tensor, but a dictionary; give ids"),
    ("patch(gpt, ids[:0], other[:0], metric=Never())", r"clean: \[0, 3\]; give ids"),
    ("patch(gpt, 'a text', 'another', metric=Never())", "clean holds the string 'a text': tokenize first"),
    ("patch(gpt, ['a text'], ['another'], metric=Never())", "clean holds the string 'a text': tokenize first"),
    ("patch(gpt, {'ids': ['a text']}, ids, metric=Never())", "clean holds the string 'a text': tokenize first"),
    ("find_heads(gpt, [{'input_ids': 'a text'}])", "texts holds the string 'a text': tokenize first"),
    (
        "patch(gpt, {'ids': ids, 'mask': torch.cat([ids, ids])}, None, metric=Never(), by='zero')",
        "tensors that share their first axis",
    ),
    ("patch(gpt, ids, metric=last, by={})", "sites is empty"),
    ("patch(gpt, ids, metric=last, by={'blocks.0': torch.ones(5)})", r"gives \[5\] for blocks\.0, which is \[2, 3, 4"),
    ("patch(gpt, ids, metric=last, by={'blocks.0': torch.ones(4)}, sites='blocks.?')", "by has nothing for blocks.1; "),
    ("patch(gpt, ids, metric=last, by={'nowhere': torch.ones(6)})", "no site matches 'nowhere'"),
    ("mean_activations(gpt, [ids], sites='*.pattern')", "name sites of activations"),
    ("mean_activations(gpt, [])", "there is no text to measure"),
    ("patch(sketch, ids, other, metric=Never())", "the model's weights are on the meta device"),
    ("patch(Bare(), ids, other, metric=Never())", "the model gives None without logits; give the model with its head"),
    ("patch(nn.Identity, ids, other, metric=Never())", "model is the class Identity"),
    ("patch(dynamic, ids, other, metric=last, progress=False).values.shape", r"= torch\.Size\(\[2, 2\]\)"),
    (
        "patch(blind, ids, other, metric=last, by='gradient', progress=False)",
        r"no gradient of the metric reaches gpt\.blocks\.0\.attention\.output_heads",
    ),
    ("attribute(blind, ids, target=last)", r"no gradient of the target reaches gpt\.norm"),
    ("patch(Flat(), ids, other, metric=last, progress=False)", "no site matches '\\*\\.output_heads'"),
    ("change(resume='.')", "there is no file|is a folder|Is a directory"),
    ("lens(gpt, ids[:1]).text(0)", "the table is of one text already"),
    ("lens(gpt, ids).text(2)", "number is 2; there are 2 texts, counted from 0"),
    ("lens(gpt, ids[0])", r"ids: \[3\]; give ids \[batch, position\]"),
    ("lens(gpt, ids[:1], top=0)", "top is 0; it must be at least 1"),
    ("lens(gpt, ids[:1], token=11)", "token is 11; there are 11, counted from 0"),
    ("lens(gpt, ids[:1], token=-1)", "token is -1; there are 11"),
    ("lens(gpt, ids[:1], names='abc')", "names is 'abc'"),
    ("lens(gpt, ids[:1], top=100).ids.shape", r"= torch\.Size\(\[3, 3, 11\]\)"),
    ("lens(Flat(), ids[:1])", "Flat has no stack of blocks"),
    ("lens(Bare(), ids[:1])", "the model gives None without logits"),
    ("lens(sketch, ids[:1])", "the model's weights are on the meta device"),
    ("attribute(gpt, ids, target=lambda logits: logits[:, -1].square().sum())", "the target is not linear"),
    ("attribute(gpt, ids, target=lambda logits: logits)", "it must give one number"),
    ("attribute(gpt, ids, target=lambda logits: 3.0)", "the target does not depend on the logits"),
    ("attribute(gpt, ids, target=lambda logits: logits.detach().sum())", "the target does not depend on the logits"),
    ("attribute(gpt, ids, target=last, by='layer')", "by is 'layer'; give Literal"),
    ("attribute(Flat(), ids, target=last)", "Flat has no norm that takes the residual stream"),
    ("attribute(Bare(), ids, target=last)", "the model gives None without logits"),
    ("attribute(sketch, ids, target=last)", "the model's weights are on the meta device"),
    ("measured(texts=[])", "there is no text to measure"),
    ("measured(texts=iter([]))", "there is no text to measure"),
    ("measured(texts=['a', 'b'])", "texts are strings: give tokenize"),
    ("measured(texts='a text')", "texts is 'a text'; give a list of texts or batches"),
    ("measured(texts=ids)", "give a list of texts or batches"),
    ("measured(texts=[ids[0]])", r"a batch of texts: \[3\]; give ids \[batch, position\]"),
    ("measured(texts=[{'text': 'a'}])", "rows have text; give rows with input_ids"),
    ("measured(batch_size=0)", "batch_size is 0; it must be at least 1"),
    ("measured(top=0)", "top is 0; it must be at least 1"),
    ("measured(measure=lambda seen: 1)", "measure"),
    ("measured(measure=HeadScores)", "give a function, or an instance, HeadScores"),
    ("measured(sites='nothing')", "no site matches 'nothing'"),
    ("measured(client='tcp://here:8786')", r"client is 'tcp://here:8786'; give a distributed\.Client"),
    ("over(sketch, [ids], HeadScores())", "the model's weights are on the meta device"),
    ("find_heads(gpt, [ids], 'previous')", "kinds is 'previous'; give a list"),
    ("find_heads(gpt, [ids], ['next'])", "no kind of position is called 'next'; there are: current"),
    ("find_heads(gpt, [ids], sites='blocks.0', progress=False)", r"blocks\.0 is \[2, 3, 4\]; heads are scored on maps"),
    ("compare(gpt, sketch, [ids], progress=False)", "the model's weights are on the meta device"),
    ("compare(gpt, gpt, [ids], sites='blocks.0', progress=False)", r"blocks\.0 holds no weights"),
    ("film([], gpt, ids[:1], every=0)", "every is 0; it must be at least 1"),
    ("film([], gpt, ids[0], every=1)", r"probe: \[3\]; give ids"),
    ("film([], sketch, ids[:1], every=1)", "the model's weights are on the meta device"),
    ("Table(torch.ones(2), {'a': ['x']})", r"values are \[2\], and the labels of a are \[1\]"),
    ("Table(torch.ones(2, device='meta'), {'a': ['x', 'y']})", "values is a tensor on the meta device"),
    ("Table(torch.ones(2), {'a': ['x', 'y']})['z']", "a has no 'z'; it has x, y"),
    ("Table(torch.ones(2), {'a': ['x', 'y']})['x', 'y']", "there are 2 labels; give one for each of: a"),
    ("Table(torch.ones(2), {'a': ['x', 'y']}).top(0)", "count is 0; it must be at least 1"),
    ("Table(torch.ones(2), {'a': ['x', 'y']}).relative_to(0)", "the whole is 0.*; there are no shares of it"),
    ("Table.load('none')", "there is no file none"),
    ("MapStore('store')['none']", "there are no maps 'none'; there are 0"),
    ("open('x', 'w').close(); it = MapStore('x')", "x is a file; give a folder"),
    ("open('x', 'w').close(); it = MapStore('.')", "holds other files and no index.json"),
]
