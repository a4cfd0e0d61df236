"""Models and layers of nothing, of too much, of what does not fit; folders of checkpoints that lie."""

SETUP = """
import json, os, shutil
from pathlib import Path
import torch
from safetensors.torch import save_file
from tfviz import layers, models
from tfviz.layers import masks, positions
NAN, INF = float("nan"), float("inf")
SIZES = {"vocab_size": 11, "n_positions": 7, "n_embd": 6, "n_layer": 1, "n_head": 3}
gpt = lambda **how: models.GPT(**{"vocab": 11, "context": 7, "layers": 2, "heads": 3, "dim": 6, **how})
classifier = lambda **how: models.Classifier(**{"vocab": 11, "context": 7, "layers": 2, "heads": 3, "dim": 6, **how})
table = lambda mask, **how: mask.dense(3, 3, **how)[0, 0].int().tolist()
turned = ("attn.c_attn", (6, 18)), ("attn.c_proj", (6, 6)), ("mlp.c_fc", (6, 24)), ("mlp.c_proj", (24, 6))

def folder(**settings):
    whole = {"wte.weight": torch.rand(11, 6), "wpe.weight": torch.rand(7, 6)}
    for name in ("ln_f", "h.0.ln_1", "h.0.ln_2"):
        whole |= {f"{name}.weight": torch.rand(6), f"{name}.bias": torch.rand(6)}
    for name, shape in turned:
        whole |= {f"h.0.{name}.weight": torch.rand(shape), f"h.0.{name}.bias": torch.rand(shape[1])}
    save_file(whole, "model.safetensors")
    Path("config.json").write_text(json.dumps({**SIZES, **settings}))
    return "."

def pipe(name):
    folder()
    Path(name).unlink(missing_ok=True)
    os.mkfifo(name)
    return "."

def shards(*names, content=None):
    folder()
    os.rename("model.safetensors", "part.safetensors")
    index = json.dumps({"weight_map": dict(enumerate(names))}) if content is None else content
    Path("model.safetensors.index.json").write_text(index)
    return "."

def link(name):
    folder()
    os.makedirs("inside")
    shutil.copy("config.json", "inside")
    shutil.copy("model.safetensors", "inside")
    os.remove(f"inside/{name}")
    os.symlink(os.path.abspath(name), f"inside/{name}")
    return "inside"

read = models.pretrained.gpt2
ids = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 1]])
xl = lambda: models.TransformerXL(11, layers=2, heads=3, dim=6).eval()
recurrent = lambda: models.RecurrentLM(11, dim=6, hidden=4).eval()
convolution = lambda: models.Convolution(11, dim=6, layers=2).eval()
pair = lambda: models.Transformer(11, layers=1, heads=3, dim=6).eval()

def decoded(model, *sources):
    cache = model.new_cache(9)
    return [list(model.decode(ids[:, :1], model.encode(source % 11), cache).shape) for source in sources][-1]

def used(model):
    cache = model.new_cache()
    model(ids, cache)
    return cache
"""

CASES = [
    ("layers.Recurrent(torch.nn.LSTM, 3, 4)", r"cell is the class LSTM; give a class \(RNN\) or a class \(LSTM\)"),
    ("models.Seq2Seq(11, cell=torch.nn.LSTM)", "cell is the class LSTM"),
    ("models.GPT(11, positions=torch.nn.Embedding)", "positions is the class Embedding"),
    ("type(read(folder())).__name__", "= GPT"),
    ("type(read(shards('part.safetensors'))).__name__", "= GPT"),
    ("read(folder(n_layer=10**9))", "n_layer is 1000000000 in .*config.json, and its weights have 16 tensors"),
    ("read(folder(vocab_size=10**12))", "vocab_size is 1000000000000 in"),
    ("read(folder(vocab_size=10**30))", "vocab_size is 1000000000000000000000000000000 in"),
    ("read(folder(n_embd=10**9, n_head=1))", "n_embd is 1000000000 in"),
    ("read(folder(n_positions=10**9))", "n_positions is 1000000000 in"),
    ("read(folder(n_head=10**9))", "n_head is 1000000000 in"),
    ("read(folder(n_layer=-1))", "n_layer is -1 in .*; it must be a whole number, at least 1"),
    ("read(folder(n_layer=1.0))", "n_layer is 1.0 in"),
    ("read(folder(n_layer='1'))", "n_layer is '1' in"),
    ("read(folder(n_layer=[1]))", r"n_layer is \[1\] in"),
    ("read(folder(n_layer=True))", "n_layer is True in"),
    ("read(folder(n_layer=None))", "n_layer is None in"),
    ("read(folder(n_head=0))", "n_head is 0 in"),
    ("read(folder(resid_pdrop=NAN))", "resid_pdrop is nan in .*; it must be a number, at least 0 and below 1"),
    ("read(folder(resid_pdrop='much'))", "resid_pdrop is 'much'"),
    ("read(folder(activation_function=['relu']))", r"activation_function is \['relu'\]; it can be"),
    ("read(folder(n_inner='24'))", "n_inner is 24; the networks"),
    ("read(folder(model_type=['gpt2']))", r"model_type is \['gpt2'\]"),
    ("read(shards('../part.safetensors'))", r"names '\.\./part.safetensors'; shards are files beside it"),
    ("read(shards(os.path.abspath('part.safetensors')))", "; shards are files beside it"),
    ("read(shards('sub/../part.safetensors'))", "shards are files beside it"),
    ("read(shards('..'))", r"names '\.\.'"),
    ("read(shards(''))", "names ''"),
    ("read(shards('part.bin'))", "names 'part.bin'"),
    ("read(shards('a' * 5000 + '.safetensors'))", "shards are files beside it"),
    ("read(shards('absent.safetensors'))", "there is no absent.safetensors in"),
    ("read(shards(content='[' * 100_000))", "index.json is not what transformers writes: .*nested too deep"),
    ('read(shards(content=\'{"weight_map": {"a": [1]}}\'))', r"names '\[1\]'"),
    ("read(shards(content='{}'))", "index.json is not what transformers writes"),
    ("read(link('model.safetensors'))", "model.safetensors is a link out of its folder"),
    ("read(link('config.json'))", "config.json is a link out of its folder"),
    ("read(pipe('model.safetensors'))", "there is no model.safetensors in"),
    ("read(pipe('config.json'))", "there is no config.json in"),
    ("read(pipe('model.safetensors.index.json')) and 7", "= 7"),
    ("folder(); Path('config.json').write_text('[' * 100_000); read('.')", "nested too deep"),
    ("folder(); Path('config.json').write_bytes(bytes(30)); read('.')", "config.json is not what transformers writes"),
    ("folder(); Path('model.safetensors').write_bytes(b'x'); read('.')", "model.safetensors is damaged"),
    ("folder(); os.remove('config.json'); os.mkdir('config.json'); read('.')", "there is no config.json in"),
    ("read('absent')", "there is no config.json in absent, which holds nothing; get one with: hf download"),
    ("read(None)", "folder is None; give a string or a path"),
    ("models.pretrained.bert(folder())", "vocab_size|max_position_embeddings is None in|num_hidden_layers"),
    *(
        (f"gpt({name}={size})", f"{name} is {size}; it must be at least 1")
        for name in ("vocab", "context", "layers", "heads", "dim")
        for size in (0, -1)
    ),
    *(
        (f"gpt({name}=10**12)", "more than this machine's memory; take less")
        for name in ("vocab", "context", "layers", "dim")
    ),
    *(
        (f"{make}(dropout={share})", "dropout is .*; it must be from 0 to 1")
        for make in ("gpt", "classifier")
        for share in ("NAN", "2", "-0.1", "INF")
    ),
    ("gpt(heads=2.5)", "heads is 2.5; give a whole number"),
    ("gpt(dim=7)", "width 7 is not divisible by 3 heads; take dim=6"),
    (
        "gpt()(torch.tensor([1, 2, 3]))",
        r"ids are \[3\]; give a batch of texts, batch position: of one text ids\[None\]",
    ),
    ("gpt()(torch.tensor([[1, 11]]))", "id 11 is none of the model's 11 tokens"),
    ("gpt()(torch.zeros(1, 8).long())", "8 positions asked for, 7 were learned"),
    (
        "gpt(mask=masks.documents(torch.zeros(2, 3).long()))(torch.ones(4, 5).long())",
        "was made of fewer texts or positions",
    ),
    ("classifier(classes=0)", "classes is 0; it must be at least 1"),
    (
        "classifier(mask=masks.documents(torch.tensor([[0, 0, 1], [0, 0, 0]])))(torch.ones(2, 3).long()).shape",
        r"= \[2, 2\]",
    ),
    ("classifier(mask=5)", "mask is 5"),
    ("models.BERT(0)", "vocab is 0"),
    ("models.BERT(11, epsilon=NAN)", "epsilon is nan"),
    ("models.BERTClassifier(models.BERT(11, layers=1), classes=-1)", "classes is -1"),
    ("models.Convolution(11, kernel=0)", "kernel is 0; it must be at least 1"),
    ("models.Convolution(11, dilation=100, layers=12)", "reach .* more than this machine's memory"),
    ("models.GraphAttention(0, 3)", "features is 0"),
    (
        "models.GraphAttention(3, 2, dim=4)(torch.rand(5, 3), torch.ones(5, 5).bool())",
        r"features are a tensor of shape \[5, 3\]; give floats, batch node features",
    ),
    ("models.LSTMN(11, hidden=0)", "hidden is 0"),
    ("models.Recommender(0, 3)", "users is 0"),
    ("models.Recommender(3, 3, mean=NAN)", "mean is nan"),
    ("models.RecurrentLM(11, layers=0)", "layers is 0"),
    ("models.RecurrentLM(11, layers=10**9)", "more than this machine's memory"),
    ("models.Seq2Seq(11, hidden=3)", "hidden is 3; it must be even"),
    ("models.Seq2Seq(11, attention=torch.nn.Identity())", "attention is an Identity; give what makes a module"),
    ("models.Seq2Seq(11, hidden=-2)", "hidden is -2; it must be at least 1"),
    ("models.SparseTransformer(11, stride=0)", "stride is 0; it must be at least 1"),
    ("models.SparseTransformer(11, stride=3, pattern=[])", "per_head needs at least one mask"),
    ("models.Transformer(11, layers=0)", "layers is 0"),
    ("models.TransformerXL(11, memory=-1)", "memory is -1; it must be at least 0"),
    ("layers.MultiHead(0, 2)", "dim is 0; it must be at least 1"),
    ("layers.MultiHead(6, 3, dropout=2)", "dropout is 2"),
    ("layers.FeedForward(6, inner=0)", "inner is 0; it must be at least 1"),
    ("layers.Block(6, 3, inner=-4)", "inner is -4"),
    ("layers.Tokens(0, 3)", "vocab is 0"),
    ("layers.Tokens(10**12, 3)", "vocab 1000000000000 x dim 3 are 12,000 GB"),
    ("layers.Bigrams(11, 3, rows=0)", "rows is 0"),
    ("layers.RNN(0, 3)", "dim is 0"),
    ("layers.LSTM(3, -1)", "hidden is -1"),
    ("layers.Recurrent(layers.LSTM, 3, 5, layers=-1)", "layers is -1"),
    ("layers.Additive(0, 3, 5)", "query is 0"),
    ("layers.Dot(3, 0, 5)", "key is 0"),
    ("layers.KeyValues(-1)", "capacity is -1; it must be at least 0"),
    ("masks.causal & 5", "& joins two masks, and one is 5; give a mask"),
    ("5 & masks.causal", "& joins two masks, and one is 5"),
    ("masks.causal | None", r"\| joins two masks, and one is None"),
    ("masks.window(0)", "size is 0; it must be at least 1"),
    ("masks.window(2.5)", "size is 2.5; give a whole number"),
    ("masks.dilated(-2)", "stride is -2"),
    ("masks.strided(0)", "stride is 0"),
    ("masks.fixed(4, summary=9)", "summary is 9; it must be from 1 to 4"),
    ("masks.padding(torch.tensor([2, -1]))", "lengths is -1; it must be at least 0"),
    ("masks.prefix(torch.tensor(3))", r"lengths is \[\]; it must have 1 axes: batch"),
    ("masks.documents(torch.tensor([0, 0, 1]))", r"ids is \[3\]; it must have 2 axes: batch position"),
    ("masks.graph(torch.ones(3, 3))", r"edges is \[3, 3\]; it must have 3 axes"),
    ("masks.causal.dense(-1, 3)", "queries is -1; it must be at least 0"),
    ("masks.causal.dense(3, -1)", "keys is -1"),
    ("masks.causal.dense(3, 3, batch=0)", "batch is 0; it must be at least 1"),
    ("masks.causal.dense(3, 3, start=-1)", "start is -1"),
    ("masks.causal.dense(10**9, 10**9)", "more than this machine's memory"),
    ("masks.causal.dense(torch.zeros(2, 3), 3)", r"queries is a tensor of shape \[2, 3\]; give a whole number"),
    ("masks.causal.dense(3, NAN)", "keys is nan; give a whole number"),
    ("masks.causal.dense(3, 3, heads=1.5)", r"heads is 1\.5; give a whole number"),
    ("table(masks.causal, start=torch.tensor(1))", r"= \[\[1, 1, 0\], \[1, 1, 1\], \[1, 1, 1\]\]"),
    ("masks.causal.count(2.5)", r"length is 2\.5; give a whole number"),
    ("masks.causal.block_mask('8', 8)", "queries is '8'; give a whole number"),
    ("masks.causal.count(-1)", "length is -1"),
    ("masks.causal.count(10**12)", "more than this machine's memory"),
    ("masks.causal.why(torch.zeros(2, 3), 0)", r"query is a tensor of shape \[2, 3\]; give a whole number"),
    ("(masks.causal & masks.window(2)).why(0, torch.zeros(0))", r"key is a tensor of shape \[0\]; give a whole number"),
    ("masks.graph('edges')", "edges is 'edges'; give a tensor"),
    ("masks.causal.why(-1, 0)", "query is -1"),
    ("masks.documents(torch.zeros(1, 2).long()).dense(5, 5)", "mask documents was made of fewer texts or positions"),
    ("table(masks.causal & masks.window(2))", r"= \[\[1, 0, 0\], \[1, 1, 0\], \[0, 1, 1\]\]"),
    ("positions.Learned(0, 6)", "context is 0; it must be at least 1"),
    ("positions.Sinusoidal(-1, 6)", "context is -1; it must be at least 0"),
    ("positions.Sinusoidal(10**9, 10**6)", "more than this machine's memory"),
    ("positions.Rotary(7, 6, heads=0)", "heads is 0; it must be at least 1"),
    ("positions.Rotary(7, 6, base=-1)", r"base is -1\.0; it must be above 0"),
    ("positions.ALiBi(7, 6, heads=-3)", "heads is -3"),
    ("positions.ALiBi(10**6, 6, heads=3)", "more than this machine's memory"),
    ("positions.Relative(7, 6, heads=4)", "width 6 is not divisible by 4 heads"),
    ("positions.sinusoids(torch.arange(3), 0)", "dim is 0; it must be at least 1"),
    ("positions.sinusoids(None, 4)", "positions is None; give a tensor"),
    ("positions.sinusoids(torch.zeros(2, 3), 4)", r"positions are \[2, 3\]; give a list of numbers"),
    ("positions.sinusoids([0, 1], 4).shape", r"= \[2, 4\]"),
    (
        "positions.sinusoids(torch.arange(3), torch.zeros(2, 3))",
        r"dim is a tensor of shape \[2, 3\]; give a whole number",
    ),
    ("positions.sinusoids(torch.arange(3), 10**30)", r"dim is 10+; give a whole number below 2\*\*63"),
    ("positions.sinusoids(torch.arange(3), 10**12)", "more than this machine's memory"),
    ("positions.alibi(torch.zeros(2, 3), 2)", r"length is a tensor of shape \[2, 3\]; give a whole number"),
    ("positions.alibi(3, torch.zeros(0))", r"heads is a tensor of shape \[0\]; give a whole number"),
    ("positions.relative('9', 4)", "length is '9'; give a whole number"),
    ("positions.Rotary(7, 6).agreement(torch.zeros(2, 3))", r"length is a tensor of shape \[2, 3\]; give a whole"),
    ("positions.Learned(7, 6).table(8)", "8 positions asked for, 7 were learned"),
    ("positions.Learned(7, 6).table(-1)", "length is -1; it must be at least 0"),
    ("positions.Sinusoidal(7, 6).table(INF)", "length is inf; give a whole number"),
    ("positions.Sinusoidal(7, 6).table(10**12)", "more than this machine's memory"),
    ("positions.Rotary(7, 6).table(torch.zeros(2, 3))", r"length is a tensor of shape \[2, 3\]; give a whole number"),
    ("positions.Rotary(7, 6).table(-1)", "length is -1; it must be at least 0"),
    ("positions.Rotary(7, '6')", "dim is '6'; give a whole number"),
    ("positions.alibi(3, 0)", "heads is 0"),
    ("positions.relative(0, 4)", "queries is 0; it must be at least 1"),
    ("masks.padding(torch.tensor([1, 2])).dense(2, 3).shape[0]", "= 2"),
    (
        "masks.Mask(lambda b, h, q, k: True, 'x').dense(2, 2)",
        "the mask x gave True; its rule must make a tensor of bools",
    ),
    (
        "masks.Mask(lambda b, h, q, k: q - k, 'x').dense(2, 2)",
        "the mask x gave a tensor torch\\.int64; its rule must make a tensor of bools",
    ),
    ("masks.Mask(3, 'x')", "layers\\.Mask: rule is 3; give a function|rule is 3"),
    ("masks.Mask(lambda q, k: q > k, 'x')", "it must take \\(batch, head, query, key\\)"),
    (
        "masks.padding(torch.tensor([2, 3])).why(query=0, key=1, batch=5)",
        "was made of fewer texts or positions than batch 5",
    ),
    (
        "masks.graph(torch.ones(1, 3, 3)).why(query=7, key=1)",
        "was made of fewer texts or positions than batch 0, query 7",
    ),
    (
        "masks.padding(torch.tensor([1, 2])) & masks.prefix(torch.tensor([1, 2, 3]))",
        "padding of 2 texts and .* of 3 texts are joined",
    ),
    ("layers.attend(None, None, None)", "query, key and value are None, None, None; each must be a tensor"),
    ("layers.attend(*[torch.zeros(1, 1, 2, 4)] * 3, dropout=-1)", "dropout is -1; it must be from 0 to 1"),
    (
        "layers.MultiHead(8, 2)(torch.zeros(1, 3, 8), cache=None)",
        "cache is None; give an instance, such as KeyValues\\(\\)",
    ),
    (
        "layers.MultiHead(8, 2)(torch.zeros(1, 3, 8), positions=positions.Rotary)",
        "positions is the class Rotary; give an instance",
    ),
    ("layers.MultiHead(8, 2)(torch.zeros(1, 3, 8), positions='rotary')", "positions is 'rotary'; give an instance"),
    (
        "layers.MultiHead(8, 2)(torch.zeros(1, 3, 8), positions=positions.Rotary(4, 12, 2))",
        "rotary positions were built for width 6",
    ),
    (
        "layers.MultiHead(8, 2)(torch.zeros(1, 3, 8), positions=positions.ALiBi(4, 12, 3))",
        "ALiBi positions were built for 3 heads",
    ),
    (
        "layers.MultiHead(8, 2)(torch.zeros(1, 3, 8), positions=positions.Relative(4, 12, 2))",
        "relative positions were built for 2 heads, width 6",
    ),
    ("layers.MultiHead(8, 2, norm=torch.nn.LayerNorm(4))", "norm is a LayerNorm; give what makes a module"),
    ("layers.MultiHead(8, 2, norm=lambda width: None)", "norm is the function <lambda>; give what makes a module"),
    ("positions.shift(torch.zeros(1, 1, 2, 4), keys=9)", "there are 4 distances for 2 queries and 9 keys"),
    ("positions.shift(torch.zeros(1, 1, 2, 4), keys=-1)", "there are 4 distances for 2 queries and -1 keys"),
    ("models.Seq2Seq(11, dim=4, hidden=6)(torch.ones(1, 3).long(), torch.ones(1, 0).long())", "target has no words"),
    ("gpt()(torch.ones(1, 3, device='meta').long())", "ids are on the meta device"),
    ("gpt()(torch.ones(1, 3).long(), [])", "cache holds .*; it must be this model's own, of 2 parts"),
    (
        "gpt()(torch.ones(1, 3).long(), [layers.KeyValues(8)])",
        "it must be this model's own, of 2 parts for 1 text: model.new_cache",
    ),
    ("gpt()(torch.ones(1, 3).long(), models.RecurrentLM(11, dim=3, hidden=4).new_cache())", "must be this model's own"),
    (
        "it = torch.ones(1, 3).long(); models.Seq2Seq(11, dim=4, hidden=6).decode(it, it)",
        "memory is a tensor .*; give this model's own",
    ),
    (
        "it = torch.ones(2, 3).long(); models.Seq2Seq(11, dim=4, hidden=6)(it, it[:1])",
        "1 texts cannot be shared out to 2",
    ),
    ("positions.Learned(8, 8)(torch.rand(1, 3, 8), start=-1)", "start is -1; it must be at least 0"),
    (
        "positions.Sinusoidal(8, 8)(torch.rand(1, 3, 1))",
        "x is \\[1, 3, 1\\]; it must be batch position dim, with dim 8",
    ),
    ("positions.Rotary(8, 8, 2).rotate(torch.ones(1, 2, 3, 4).long())", "heads are torch\\.int64 .*; give floats"),
    (
        "positions.Rotary(8, 8, 2).rotate(torch.rand(3, 4))",
        "heads are torch\\.float32 \\[3, 4\\]; give floats, batch head",
    ),
    (
        "positions.ALiBi(8, 8, 2).bias(torch.rand(1, 2, 5, 4), torch.rand(1, 2, 4, 4))",
        "the first of these stands at -1",
    ),
    (
        "positions.Relative(8, 8, 2).bias(torch.rand(1, 2, 5, 4), torch.rand(1, 2, 4, 4))",
        "the first of these stands at -1",
    ),
    ("layers.attend(*[torch.ones(1, 1, 2, 4).long()] * 3)", "query, key and value are int64, int64, int64"),
    (
        "it = torch.rand(1, 1, 2, 4); layers.attend(it, it, it, bias=torch.rand(3, 3))",
        "bias is \\[3, 3\\], the scores are",
    ),
    ("layers.MultiHead(8, 2)(torch.ones(1, 3, 8).long())", "x is torch\\.int64; give floats"),
    ("masks.graph(torch.ones(1, 3, 4))", "as many nodes to look as to be looked at"),
    ("masks.graph(torch.full((1, 3, 3), NAN))", "edges hold numbers beside 0 and 1"),
    ("masks.Mask(lambda b, h, q, k: q >= k, 5)", "name is 5; give a string"),
    ("masks.causal.count(200_000)", "cells would be asked one by one; take less"),
    (
        "it, x = layers.KeyValues(9), torch.rand(1, 2, 3, 4); it.extend(x, x); it.extend(x.double(), x)",
        "the cache is of torch.float32",
    ),
    ("models.SelfAttention()(torch.tensor([1.0, 2.0]))", "it must be batch position dim"),
    ("models.Recommender(5, 7, 2)(torch.tensor([9]), torch.tensor([1]))", "users hold 9; there are 5, counted from 0"),
    ("models.Recommender(5, 7, 2)(torch.tensor([1]), torch.tensor([7]))", "movies hold 7; there are 7"),
    ("models.Recommender(5, 7, 2)(1, 2)", "users are 1, movies 2; give tensors"),
    ("xl()(ids, used(gpt()))", "cache holds 2 x a KeyValues; it must be this model's own, of 2 parts for 2 texts"),
    ("xl()(ids, used(recurrent()))", "cache holds 1 x a tuple"),
    ("xl()(ids, used(convolution()))", "cache holds 1 x a tensor"),
    ("xl()(ids[:1], used(xl()))", "cache holds 2 x a tensor of shape \\[2, 5, 6\\]; .*for 1 text:"),
    ("xl()(ids, None)", "cache holds None"),
    ("xl()(ids, {})", "cache holds a dictionary"),
    ("convolution()(ids, used(gpt()))", "cache holds 2 x a KeyValues"),
    ("convolution()(ids, used(xl()))", "cache holds 2 x a tensor"),
    ("convolution()(ids[:1], used(convolution()))", "for 1 text: model.new_cache"),
    ("convolution()(ids, None)", "cache holds None"),
    ("recurrent()(ids, used(gpt()))", "cache holds 2 x a KeyValues"),
    (
        "recurrent()(ids, used(models.LSTMN(11, dim=6, hidden=4)))",
        "a state is a tuple; it must be a tuple of \\[2, 4\\], \\[2, 4\\]",
    ),
    ("recurrent()(ids[:1], used(recurrent()))", "it must be a tuple of \\[1, 4\\], \\[1, 4\\]"),
    ("recurrent()(ids, None)", "cache holds None"),
    (
        "models.LSTMN(11, dim=6, hidden=4)(ids, used(recurrent()))",
        "a state is a tuple; it must be a tuple of \\[2, 4\\], \\[2, 4\\], \\[2, 0, 4\\]",
    ),
    ("it = models.LSTMN(11, dim=6, hidden=4); it(ids[:1], used(it))", "a state is a tuple"),
    ("pair()(ids, None)", "target is None; give a tensor of whole numbers"),
    ("pair()(None, ids)", "ids are None"),
    (
        "decoded(pair(), ids, ids + 1)",
        "the cache was begun with another memory",
    ),
    (
        "decoded(pair(), ids, ids[:, :3])",
        "the cache was begun with another memory",
    ),
    (
        "decoded(pair(), ids, ids.clone())",
        "= \\[2, 1, 11\\]",
    ),
    (
        "decoded(models.Seq2Seq(11, dim=6, hidden=4).eval(), ids, ids + 1)",
        "the cache was begun with another memory",
    ),
    (
        "models.Seq2Seq(11, dim=6, hidden=4).decode(ids, models.Seq2Seq(11, dim=6, hidden=8).encode(ids))",
        "memory.states is \\[2, 5, 8\\]; it must be batch position dim, with dim 4",
    ),
    ("models.Seq2Seq(11, attention=layers.MultiHead)", "dropout is 256.0|attention is the class MultiHead"),
    ("models.Seq2Seq(11, attention=torch.nn.MultiheadAttention)", "it must make its keys by of_key"),
    ("models.Seq2Seq(11, attention=lambda *sizes: 3)", "give what makes a module, such as layers.Additive"),
    (
        "models.GraphAttention(3, 2)(torch.rand(2, 4, 5), torch.rand(2, 4, 4) > 0.5)",
        "features are a tensor of shape \\[2, 4, 5\\]; give floats, batch node features, with 3 features",
    ),
    (
        "models.GraphAttention(3, 2)(torch.ones(2, 4, 3).long(), torch.rand(2, 4, 4) > 0.5)",
        "features are torch.int64; give floats",
    ),
    ("models.GraphAttention(3, 2)(torch.rand(2, 4, 3), None)", "edges are None; these features need \\[2, 4, 4\\]"),
    ("layers.FeedForward(6)(torch.rand(2, 4, 5))", "x is \\[2, 4, 5\\]; it must be batch position dim, with dim 6"),
    ("layers.FeedForward(6)(torch.ones(2, 4, 6).long())", "x is torch.int64; give floats"),
    ("models.BERT(11, layers=1, heads=3, dim=6)(ids, torch.rand(2, 5))", "segments are float32; give whole numbers"),
    ("models.BERT(11, layers=1, heads=3, dim=6)(ids, [0, 1])", "segments are a list"),
    (
        "models.BERT(11, layers=1, heads=3, dim=6)(ids, None, torch.rand(2, 4) > 0.5)",
        "where is \\[2, 4\\]; ids are \\[2, 5\\]",
    ),
    (
        "models.BERT(11, layers=1, heads=3, dim=6).pool(torch.rand(2, 6))",
        "x is \\[2, 6\\]; it must be batch position dim",
    ),
    (
        "layers.DecoderBlock(6, 3)(torch.rand(4, 5, 6), torch.rand(3, 5, 6))",
        "4 texts cannot be shared out to 3 sources",
    ),
    ("layers.DecoderBlock(6, 3)(torch.rand(4, 5, 6), None)", "memory is None"),
    (
        "layers.DecoderBlock(6, 3)(torch.rand(4, 5, 6), torch.rand(0, 5, 6))",
        "4 texts cannot be shared out to 0 sources",
    ),
    ("layers.KeyValues(9).extend(torch.rand(2, 3, 4, 5), torch.rand(2, 3, 3, 5))", "there must be as many of either"),
    ("layers.KeyValues(9).extend(torch.rand(2, 3, 4, 5), torch.rand(1, 3, 4, 5))", "there must be as many of either"),
    ("layers.KeyValues(9).extend(torch.rand(3, 4, 5), torch.rand(3, 4, 5))", "each must be batch head position dim"),
    ("layers.KeyValues(9).extend(None, None)", "key is None, value is None"),
    ("layers.KeyValues(9).reorder('ab')", "rows are 'ab'; give a tensor of whole numbers"),
    (
        "layers.Recurrent(layers.RNN, 3, 4)(torch.rand(2, 5, 4))",
        "x is \\[2, 5, 4\\]; it must be batch position dim, with dim 3",
    ),
    ("layers.Recurrent(layers.RNN, 3, 4)(None)", "x is None"),
    (
        "layers.Recurrent(layers.RNN, 3, 4)(torch.rand(2, 5, 3), mask=torch.rand(2, 5))",
        "the mask is torch.float32 \\[2, 5\\]; it must be bool",
    ),
    ("layers.Recurrent(layers.RNN, 3, 4)(torch.rand(2, 5, 3), 3)", "states are 3; give one for each of 1 cells"),
    (
        "layers.Recurrent(layers.RNN, 3, 4)(torch.rand(2, 5, 3), [(torch.rand(3, 4),)])",
        "it must be a tuple of \\[2, 4\\] here",
    ),
    ("layers.Block(6, 3, norm=torch.nn.LayerNorm(6))", "norm is a LayerNorm; give what makes a module"),
    ("layers.Block(6, 3, attention=layers.MultiHead(6, 3))", "attention is a MultiHead; give what makes a module"),
    (
        "layers.Block(6, 3, attention=torch.nn.Linear)(torch.rand(2, 4, 6))",
        "a branch made a tensor of shape \\[2, 4, 3\\] of \\[2, 4, 6\\]; it must keep the shape",
    ),
    (
        "layers.Block(6, 3, attention=lambda dim, heads: None)",
        "attention is the function <lambda>; give what makes a module",
    ),
    (
        "layers.Block(6, 3, residual=lambda x, norm, branch: None)(torch.rand(2, 4, 6))",
        "residual made None of \\[2, 4, 6\\]; it must keep the shape",
    ),
    (
        "layers.Block(6, 3, residual=lambda x, norm, branch: x[:1])(torch.rand(2, 4, 6))",
        "residual made a tensor of shape \\[1, 4, 6\\]",
    ),
    (
        "classifier(embedding=torch.nn.Embedding(11, 6))",
        "embedding is an Embedding; give what makes a module, such as layers.Bigrams",
    ),
    ("classifier(pooling=torch.nn.Linear)", "pooling is the class Linear"),
    ("classifier(pooling=lambda states: states)", "it must take \\(states, words\\)"),
    (
        "classifier(pooling=lambda states, words: states)(ids)",
        "pooling made a tensor of shape \\[2, 5, 6\\]; it must make \\[2, 6\\]",
    ),
    ("models.SparseTransformer(11, stride=3, mask=masks.causal)", "mask is made of stride and pattern here"),
    (
        "models.SparseTransformer(11, stride=3, pattern=masks.strided(3))",
        "pattern is the mask .*; give what makes one of a stride",
    ),
    ("models.SparseTransformer(11, stride=3, pattern=[masks.window, masks.causal])", "pattern is the mask causal"),
    (
        "masks.Mask(lambda b, h, q, k: torch.ones(1, 1, 3, 3, dtype=torch.bool), 'own').dense(2, 2)",
        "the mask own gave \\[1, 1, 3, 3\\] where \\[1, 1, 2, 2\\] was asked for",
    ),
    ("masks.causal.dense(2, 2, device='gpu9')", "device is 'gpu9', no device that can keep numbers here"),
    ("masks.causal.block_mask(128, 128, device='gpu9')", "device is 'gpu9', no device"),
    ("positions.Rotary(8, 8, 2).table(4, device='nope')", "device is 'nope', no device"),
    (
        "models.classifier.mean(torch.rand(2, 5, 6), ids)",
        "words a tensor of shape \\[2, 5\\] \\(torch.int64\\); give .* bool, batch position",
    ),
    ("models.classifier.maximum(torch.rand(2, 5, 6), [True])", "words a list"),
    ("models.classifier.first(torch.rand(5, 6), torch.ones(5) > 0)", "states are a tensor of shape \\[5, 6\\]"),
    (
        "layers.Block(8, 2)(torch.rand(2, 5, 8).half())",
        "x is torch.float16, the weights are torch.float32; give x.float",
    ),
    (
        "layers.RNN(8, 2)(torch.rand(2, 8).half(), (torch.zeros(2, 2),))",
        "x is torch.float16, the weights are torch.float32",
    ),
    (
        "layers.RNN(8, 2)(torch.ones(2, 8).long(), (torch.zeros(2, 2),))",
        "x is torch.int64 \\[2, 8\\]; it must be one word of each text, floats",
    ),
    ("layers.Block(8, 2)(torch.rand(2, 5, 8), cache=[])", "cache is a list; give an instance, such as KeyValues"),
    ("layers.DecoderBlock(8, 2)(torch.rand(2, 5, 8), torch.rand(2, 5, 8), memory_cache=[])", "memory_cache is a list"),
    ("convolution()(ids[:, :0])", "the text is empty"),
    ("xl()(ids[:, :0])", "the text is empty"),
    ("models.BERTClassifier(models.BERT(11, layers=1, heads=3, dim=6))(ids[:, :0])", "the text is empty"),
    ("gpt(attention=torch.nn.MultiheadAttention)", "its forward must take one tensor, as MultiHead"),
    ("gpt(residual=torch.nn.LayerNorm)", "residual is the class LayerNorm"),
    ("gpt(residual=lambda x: x)", "it must take \\(x, norm, branch\\)"),
    ("classifier(pooling=torch.mean)(ids)", "pooling is the function mean, which cannot take"),
    ("classifier(pooling=torch.max)(ids)", "pooling is the function max, which cannot take"),
    ("classifier(embedding=torch.nn.Linear)(ids)", "embedding is a Linear, which cannot take torch.int64 \\[2, 5\\]"),
    (
        "layers.KeyValues(10**15).extend(torch.rand(1, 1, 2, 3), torch.rand(1, 1, 2, 3))",
        "more than this machine's memory",
    ),
    ("positions.Learned(8, 8)(torch.rand(1, 3, 8), 1.5)", "start is 1.5; give a whole number"),
    ("positions.Sinusoidal(8, 8)(torch.rand(1, 3, 8), 'a')", "start is 'a'; give a whole number"),
    ("layers.Bigrams(9, 4).row('x')", "ids are 'x'; give a tensor of whole numbers"),
    ("masks.graph(torch.full((1, 3, 3), 0.5))", "edges hold numbers beside 0 and 1"),
    ("it = torch.rand(1, 2, 5, 4); layers.attend(it, it, it, dropout=True)", "dropout is True; give a number"),
    (
        "it = torch.rand(1, 2, 5, 4); layers.attend(it, it, it, bias=torch.rand(5))",
        "bias is \\[5\\]; it must be batch head query key",
    ),
    (
        "it = torch.rand(1, 2, 5, 4); layers.attend(it, it, it, mask=torch.ones(5) > 0)",
        "mask is \\[5\\]; it must be batch head query key",
    ),
    (
        "layers.Block(8, 2, attention=torch.nn.MultiheadAttention)",
        "attention is the class MultiheadAttention; its forward must take one tensor",
    ),
    (
        "layers.Block(8, 2, norm=lambda width: torch.nn.Bilinear(width, width, width))",
        "its forward must take one tensor",
    ),
    ("positions.Sinusoidal(8, 8)(torch.rand(1, 3, 8), True)", "start is True; give a whole number"),
    ("masks.causal.dense(True, 3)", "queries is True; give a whole number"),
    ("masks.causal.why(True, 0)", "query is True"),
    ("Path('x').touch(); read('x')", "x is a file; give the folder that it lies in"),
]
