"""Cases of invalid sizes, values and shapes of models and layers (checkpoints: tests/models/test_checkpoints.py)."""

SETUP = """
import torch
from tfviz import layers, models
from tfviz.layers import masks, positions
NAN, INF = float("nan"), float("inf")
SIZES = {"vocab_size": 11, "context": 7, "layers": 2, "heads": 3, "dim": 6}
gpt = lambda **how: models.GPT(**{**SIZES, **how})
classifier = lambda **how: models.Classifier(**{**SIZES, **how})
table = lambda mask, **how: mask.dense(3, 3, **how)[0, 0].int().tolist()
ids = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 1]])
xl = lambda: models.TransformerXL(11, layers=2, heads=3, dim=6).eval()
recurrent = lambda: models.RecurrentLM(11, dim=6, hidden=4).eval()
convolution = lambda: models.ConvLM(11, dim=6, layers=2).eval()
pair = lambda: models.Transformer(11, layers=1, heads=3, dim=6).eval()

heads = lambda *shape: torch.rand(*(shape or (1, 2, 5, 4)))
bert = lambda: models.BERT(11, layers=1, heads=3, dim=6)

def decoded(model, *sources):
    cache = model.new_cache(9)
    return [list(model.decode(ids[:, :1], model.encode(source % 11), cache).shape) for source in sources][-1]

def used(model):
    cache = model.new_cache()
    model(ids, cache)
    return cache
"""

CASES = [
    # kinds of parts, of which the annotations tell
    ("layers.Recurrent(torch.nn.LSTM, 3, 4)", "cell"),
    ("models.GPT(11, positions=torch.nn.Embedding)", "positions"),
    ("gpt(heads=2.5)", "heads is 2.5"),
    ("classifier(mask=5)", "mask is 5"),
    # sizes; tests/models/test_sizes_of_models.py has those of all models
    ("gpt(dim=7)", "width 7 is not divisible by 3 heads; take dim=6"),
    ("layers.MultiHeadAttention(2, 5)", "take dim=5"),
    ("layers.MultiHeadAttention(6, 0)", "heads is 0"),
    ("positions.Relative(7, 6, heads=4)", "6 is not divisible by 4"),
    ("positions.Rotary(7, 6, heads=2)", "6 / 2, must be even"),
    ("models.BERT(11, epsilon=NAN)", "epsilon is nan"),
    ("models.BERT(11, epsilon=0.1, norm=torch.nn.RMSNorm)", "epsilon is 0.1, and norm is given"),
    ("models.BERTClassifier(bert(), classes=-1)", "classes is -1"),
    ("models.ConvLM(11, dilation=100, layers=12)", "reach .* more than this machine's memory"),
    ("models.Recommender(3, 3, mean=NAN)", "mean is nan"),
    ("models.Seq2Seq(11, hidden=3)", "hidden is 3; it must be even"),
    ("models.SparseTransformer(11, stride=0)", "stride is 0"),
    ("models.SparseTransformer(11, stride=3, make_mask=[])", "at least one mask"),
    ("models.SparseTransformer(11, stride=3, make_mask=masks.strided(3))", "make_mask is"),
    ("models.TransformerXL(11, memory=-1)", "memory is -1"),
    ("layers.MultiHeadAttention(0, 2)", "dim is 0"),
    ("layers.MultiHeadAttention(6, 3, dropout=2)", "dropout is 2"),
    ("layers.FeedForward(6, inner=0)", "inner is 0"),
    ("layers.TokenEmbedding(10**12, 3)", "12,000 GB"),
    ("layers.BigramEmbedding(11, 3, rows=0)", "rows is 0"),
    ("layers.LSTM(3, -1)", "hidden is -1"),
    ("layers.Recurrent(layers.LSTM, 3, 5, layers=-1)", "layers is -1"),
    ("layers.AdditiveAttention(0, 3, 5)", "query is 0"),
    ("layers.DotAttention(3, 0, 5)", "key is 0"),
    ("layers.KVCache(-1)", "capacity is -1"),
    ("positions.Learned(0, 6)", "context is 0"),
    ("positions.Sinusoidal(-1, 6)", "context is -1"),
    ("positions.Sinusoidal(10**9, 10**6)", "more than this machine's memory"),
    ("positions.Rotary(7, 6, heads=0)", "heads is 0"),
    ("positions.Rotary(7, 6, base=-1)", "base is -1"),
    ("positions.ALiBi(7, 6, heads=-3)", "heads is -3"),
    ("positions.ALiBi(10**6, 6, heads=3)", "more than this machine's memory"),
    # masks
    ("masks.causal and masks.window(2)", "has no truth value"),
    ("masks.window(0)", "size is 0"),
    ("masks.window(2.5)", "size is 2.5"),
    ("masks.dilated(-2)", "stride is -2"),
    ("masks.strided(0)", "stride is 0"),
    ("masks.fixed(4, summary=9)", "summary is 9"),
    ("masks.padding(torch.tensor([2, -1]))", "lengths is -1"),
    ("masks.padding(torch.tensor([1.5]))", "lengths are torch.float32"),
    ("masks.prefix(torch.tensor(3))", "lengths"),
    ("masks.documents(torch.tensor([0, 0, 1]))", r"ids has the shape \[3\]"),
    ("masks.graph(torch.ones(3, 3))", r"edges has the shape \[3, 3\]"),
    ("masks.graph(torch.ones(1, 3, 4))", r"edges are \[1, 3, 4\]"),
    ("masks.graph(torch.full((1, 3, 3), 0.5))", "values other than 0 and 1"),
    ("masks.padding(torch.tensor([1, 2])) & masks.prefix(torch.tensor([1, 2, 3]))", "of 2 texts and .* of 3 texts"),
    ("masks.causal.dense(-1, 3)", "queries is -1"),
    ("masks.causal.dense(3, NAN)", "keys is nan"),
    ("masks.causal.dense(True, 3)", "queries is True"),
    ("masks.causal.dense(3, 3, batch=0)", "batch is 0"),
    ("masks.causal.dense(3, 3, heads=1.5)", "heads is 1.5"),
    ("masks.causal.dense(3, 3, start=-1)", "start is -1"),
    ("masks.causal.dense(10**9, 10**9)", "more than this machine's memory"),
    ("table(masks.causal, start=torch.tensor(1))", r"= \[\[1, 1, 0\], \[1, 1, 1\], \[1, 1, 1\]\]"),
    ("masks.causal.count(-1)", "length is -1"),
    ("masks.causal.count(200_000)", "cells"),
    ("masks.causal.block_mask('8', 8)", "queries is '8'"),
    ("masks.causal.explain(-1, 0)", "query is -1"),
    ("masks.Mask(lambda b, h, q, k: True, 'x').dense(2, 2)", "the rule of the mask x"),
    ("masks.Mask(lambda b, h, q, k: q - k, 'x').dense(2, 2)", "the rule of the mask x"),
    ("masks.documents(torch.zeros(1, 2).long()).dense(5, 5)", "out of bounds"),
    ("gpt(mask=masks.documents(torch.zeros(2, 3).long()))(torch.ones(4, 5).long())", "out of bounds"),
    # tables of positions
    ("positions.sinusoids(torch.zeros(2, 3), 4)", r"positions are \[2, 3\]"),
    ("positions.sinusoids([0, 1], 4).shape", r"= \[2, 4\]"),
    ("positions.sinusoids(torch.arange(3), 0)", "dim is 0"),
    ("positions.sinusoids(torch.arange(3), 10**12)", "more than this machine's memory"),
    ("positions.alibi(3, 0)", "heads is 0"),
    ("positions.relative(0, 4)", "queries is 0"),
    ("positions.Learned(7, 6).table(8)", "8 positions are needed, but only 7 were learned"),
    ("positions.Learned(7, 6).table(-1)", "length is -1"),
    ("positions.Rotary(7, 6).table(-1)", "length is -1"),
    ("positions.Learned(8, 8)(torch.rand(1, 3, 8), start=-1)", "from -1 on"),
    ("positions.Sinusoidal(8, 8)(torch.rand(1, 3, 1))", "positions are 8 wide"),
    ("positions.Rotary(8, 8, 2).rotate(heads().long())", "torch.int64"),
    ("positions.Rotary(8, 8, 2).rotate(heads(), start=-1)", "from -1 on"),
    ("positions.ALiBi(8, 8, 2).bias(heads(), heads(1, 2, 4, 4))", "5 queries and 4 keys"),
    ("positions.Relative(8, 8, 2).bias(heads(), heads(1, 2, 4, 4))", "5 queries and 4 keys"),
    ("positions.shift(torch.zeros(1, 1, 2, 4), keys=9)", "4 distances for 2 queries and 9 keys"),
    # attention
    ("layers.attend(heads(), heads(1, 2, 5, 3), heads())", "key is"),
    ("layers.attend(heads(), heads(), heads(1, 2, 4, 4))", "value is"),
    ("layers.attend(heads(), heads(2, 5, 4), heads(2, 5, 4))", "key is"),
    ("layers.attend(heads(), heads(), heads(), mask='causal')", "mask is 'causal'"),
    ("layers.attend(heads(), heads(), heads(), mask=masks.window(3))", "mask is window"),
    ("layers.attend(heads(), heads(), heads(), mask=torch.ones(5, 5))", "mask is torch.float32"),
    ("layers.attend(heads(), heads(), heads(), mask=torch.ones(5) > 0)", r"mask is \[5\]"),
    ("layers.attend(heads(), heads(), heads(), mask=torch.ones(2, 5, 5) > 0)", r"mask is \[2, 5, 5\]"),
    ("layers.attend(heads(), heads(), heads(), mask=torch.ones(2, 1, 5, 5) > 0)", r"mask is \[2, 1, 5, 5\]"),
    ("layers.attend(heads(), heads(), heads(), bias=torch.rand(5))", r"bias is \[5\]"),
    ("layers.attend(heads(), heads(), heads(), bias=torch.ones(5, 5) > 0)", "bias is bool"),
    ("layers.MultiHeadAttention(8, 2)(torch.zeros(3, 8))", r"x is \[3, 8\]"),
    (
        "layers.MultiHeadAttention(8, 2)(torch.zeros(1, 3, 8), positions=positions.ALiBi(4, 12, 3))",
        r"bias is \[1, 3, 3, 3\]",
    ),
    (
        "layers.DotAttention(3, 4, 5)(heads(2, 2, 3), heads(2, 6, 5), heads(2, 6, 4), torch.ones(2, 6) > 0)",
        r"mask is \[2, 6\]",
    ),
    ("layers.Block(6, 1, attention=torch.nn.Linear)(torch.rand(2, 4, 6))", r"\[2, 4, 1\]; it must keep the shape"),
    ("layers.Block(6, 3, residual=lambda x, norm, branch: x[:1])(torch.rand(2, 4, 6))", r"residual .*\[1, 4, 6\]"),
    ("layers.DecoderBlock(6, 3)(torch.rand(3, 4, 6), torch.rand(2, 5, 6))", "3 texts cannot be divided among 2"),
    ("layers.DecoderBlock(6, 3)(torch.rand(4, 5, 6), torch.rand(0, 5, 6))", "4 texts cannot be divided among 0"),
    # ids
    ("gpt()(torch.tensor([1, 2, 3]))", r"ids are \[3\]"),
    ("gpt()(torch.tensor([[1.0, 2.0]]))", "tokens are torch.float32"),
    ("gpt()(torch.ones(1, 3, device='meta').long())", "meta device"),
    ("gpt()(torch.tensor([[1, 11]]))", "id 11 is not one of the model's 11 tokens"),
    ("gpt()(torch.tensor([[1, -1]]))", "id -1 is not one of the model's 11 tokens"),
    (
        "models.Transformer(11, 13, dim=8)(torch.tensor([[12]]), torch.tensor([[12]]))",
        "id 12 is not one of .* 11 tokens",
    ),
    ("models.Seq2Seq(11, 13, dim=8)(torch.tensor([[12]]), torch.tensor([[12]]))", "id 12 is not one of .* 11 tokens"),
    ("gpt()(torch.zeros(1, 8).long())", "8 positions are needed, but only 7 were learned"),
    ("bert()(ids, ids)", "id 9 is not one of the model's 2 segments"),
    ("bert()(ids, ids[:, :1])", r"segments are \[2, 1\]"),
    ("bert()(ids, torch.rand(2, 5))", "segments are torch.float32"),
    ("bert()(ids, None, ids)", "prediction_mask is torch.int64"),
    ("bert()(ids, None, torch.rand(2, 4) > 0.5)", r"prediction_mask is .*\[2, 4\]"),
    ("models.SelfAttention()(torch.rand(3, 2))", r"x is \[3, 2\]"),
    ("models.Recommender(5, 7, 2)(torch.tensor([9]), torch.tensor([1]))", "id 9 is not one of the model's 5 users"),
    ("models.Recommender(5, 7, 2)(torch.tensor([1]), torch.tensor([7]))", "id 7 is not one of the model's 7 movies"),
    ("models.Recommender(5, 7, 2)(torch.tensor([1]), torch.tensor([1, 2]))", r"users are \[1\], movies \[2\]"),
    ("models.GraphAttention(3, 2)(torch.rand(5, 3), torch.ones(5, 5) > 0)", r"features are \[5, 3\]"),
    ("models.GraphAttention(3, 2)(torch.rand(2, 4, 3), torch.ones(3, 5, 5) > 0)", r"edges \[3, 5, 5\]"),
    (
        "classifier(mask=masks.documents(torch.tensor([[0, 0, 1], [0, 0, 0]])))(torch.ones(2, 3).long()).shape",
        r"= \[2, 2\]",
    ),
    ("classifier(pooling=lambda states, words: states)(ids)", r"pooling returned \[2, 5, 6\]"),
    ("models.classifier.mean(torch.rand(2, 5, 6), ids)", "the mask torch.int64"),
    ("models.classifier.first(torch.rand(5, 6), torch.ones(5) > 0)", r"states are \[5, 6\]"),
    # caches and states
    ("gpt()(ids[:1, :3], [])", "cache has 0 entries, this model needs 2"),
    ("gpt()(ids[:1, :3], [layers.KVCache(8)])", "cache has 1 entries"),
    ("it = gpt().new_cache(); gpt()(ids[:, :2], it); gpt()(ids[:1, :2], it)", "begin a new one"),
    ("xl()(ids, used(recurrent()))", "cache has 1 entries"),
    ("recurrent()(ids, used(gpt()))", "cache has 2 entries"),
    ("recurrent()(ids[:1], used(recurrent()))", "x has 1 texts, the state has 2"),
    ("recurrent()(ids, used(models.LSTMN(11, dim=6, hidden=4)))", "unpack"),
    (
        "it = layers.KVCache(19); it.extend(heads(), heads()); it.extend(heads().double(), heads())",
        "key is torch.float64",
    ),
    (
        "it = layers.KVCache(9); it.extend(heads(3, 2, 1, 4), heads(3, 2, 1, 4)); it.extend(heads(), heads())",
        "key is",
    ),
    ("layers.KVCache(9).extend(heads(2, 3, 4, 5), heads(2, 3, 1, 5))", "value is"),
    ("layers.KVCache(9).extend(heads(2, 3, 4, 5), heads(1, 3, 4, 5))", "value is"),
    (
        "it = layers.KVCache(9); it.extend(heads(3, 2, 1, 4), heads(3, 2, 1, 4)); it.reorder(ids[0, :1])",
        "each of 3 texts",
    ),
    ("layers.Recurrent(layers.RNN, 3, 4)(torch.rand(2, 5, 3), mask=torch.rand(2, 4) > 0)", r"mask is \[2, 4\]"),
    ("layers.Recurrent(layers.RNN, 3, 4)(torch.rand(2, 5, 3), [(torch.rand(1, 4),)])", "the state has 1"),
    ("models.Seq2Seq(11, dim=4, hidden=6)(ids, ids[:1])", "1 texts cannot be divided among 2"),
    ("decoded(pair(), ids, ids + 1)", "another source"),
    ("decoded(pair(), ids, ids[:, :3])", "another source"),
    ("decoded(pair(), ids, ids.clone())", r"= \[2, 1, 11\]"),
    ("decoded(models.Seq2Seq(11, dim=6, hidden=4).eval(), ids, ids + 1)", "another source"),
]
