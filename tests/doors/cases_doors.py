"""Kinds of things that are not meant, at public functions."""

SETUP = """
import numpy, torch
from torch import nn
from tfviz import generate, layers, learn, look, models, text, view
maps = look.AttentionMaps(torch.eye(3).expand(2, 4, 3, 3), rows=["a", "b", "c"])
gpt = models.GPT(11, context=7, layers=1, heads=2, dim=4)
class Pipeline: model = gpt
"""
MAPS = r"AttentionMaps\.of\(seen, rows=words\)"
CASES = [
    *((f"view.{name}(None)", f"view.{name}: maps is None; give {MAPS}") for name in ("heads", "links", "live")),
    ("view.head([], 0, 0)", rf"view\.head: maps is a list; give {MAPS}"),
    ("view.head(maps, 'first', 0)", r"view\.head: layer is 'first'; give a whole number"),
    ("view.words(numpy.ones((3, 3)), 0, 0)", r"maps is a numpy array of shape \[3, 3\]"),
    ("view.steps([maps])", r"view\.steps: parts is a list; give {'a name': AttentionMaps\.of"),
    ("view.alignment(maps, [('cat', 'Katze')])", r"gold\[0\]\[0\] is 'cat'; give a whole number"),
    ("view.masks(torch.ones(3, 3))", r"rules is a tensor of shape \[3, 3\]; give {'a name': a tensor or a dict"),
    ("view.gates(torch.nn.LSTM(3, 4))", r"tables is an LSTM; give {'a name': a tensor"),
    ("view.compare(maps, gpt)", r"view\.compare: second is a GPT; give AttentionMaps\.of"),
    ("view.heads(look.AttentionMaps)", "maps is the class AttentionMaps; give .*: an instance"),
    ("view.bars(None, {}, 'x')", r"words is None; give a list of strings"),
    ("view.bars(['a', 3], {'x': [1, 2]}, 'x')", r"words\[1\] is 3; give a string"),
    ("view.bars(['a'], {'x': len}, 'x')", r"heights\['x'\] is the function len; give a tensor"),
    ("view.bars(['a', 'b'], {'x': numpy.array([1, 2])}, 'x')", "= x\nhighest"),
    ("view.bars(numpy.array(['a', 'b']), {'x': (1, 2)}, 'x')", "= highest"),
    ("view.mask([[True, False], [True, True]])", "= 3 of 4 cells"),
    ("view.bars(['a'])", r"view\.bars: missing a required argument: 'heights'; it takes words, heights, title, y"),
    ("view.heads(maps, titel='x')", "unexpected keyword argument 'titel'; it takes maps, title"),
    ("look.AttentionMaps(numpy.ones((1, 2, 3, 3)) / 3)", "= 1 layers x 2 heads x 3 queries x 3 keys"),
    ("look.AttentionMaps([numpy.ones((2, 3, 3)) / 3] * 2)", "= 2 layers x 2 heads"),
    ("look.AttentionMaps(None)", r"look\.AttentionMaps: weights is None; give a tensor"),
    ("look.AttentionMaps(len)", "weights is the function len"),
    ("look.AttentionMaps.load(None)", r"AttentionMaps\.load: path is None; give a string or a path"),
    ("maps.save(3)", r"AttentionMaps\.save: path is 3; give"),
    ("look.capture(Pipeline()).__enter__()", r"model is a Pipeline; give a model .*, such as its \.model"),
    ("look.capture(models.GPT).__enter__()", r"model is the class GPT; give a model .*: an instance, GPT\(\.\.\.\)"),
    ("look.capture(gpt, None).__enter__()", "sites is None; give a string or a list of strings"),
    ("look.capture(gpt, dtype='uint8').__enter__()", "dtype is 'uint8'; give a dtype"),
    ("look.capture(gpt, edit={'*': 3}).__enter__()", r"edit\['\*'\] is 3; give a function"),
    ("models.GPT('many')", r"models\.GPT: vocab is 'many'; give a whole number"),
    ("models.GPT(11, heads=2.5)", r"models\.GPT: heads is 2\.5; give a whole number"),
    ("models.GPT(11, heads=True)", "heads is True; give a whole number"),
    ("models.GPT(11, dropout='0.1')", r"dropout is '0\.1'; give a number"),
    ("models.GPT(numpy.int64(11), heads=torch.tensor(2), dim=4)", "= GPT"),
    ("models.Transformer([11])", r"models\.Transformer: source_vocab is a list; give a whole number"),
    ("models.GPT(11, positions='rotary')", "positions is 'rotary'; give a class"),
    ("layers.MultiHead(6, None)", r"layers\.MultiHead: heads is None; give a whole number"),
    ("learn.fit(models.GPT, [], 3)", "model is the class GPT"),
    ("learn.fit(gpt, 5, 3)", "batches is 5; give batches by number"),
    ("learn.fit(gpt, text.Windows(torch.arange(50) % 11, 7, 2), 1.5)", r"steps is 1\.5; give a whole number"),
    ("learn.fit(gpt, text.Windows(torch.arange(50) % 11, 7, 2), 3, rate='high')", "rate is 'high'; give a number"),
    ("text.Windows([1, 2, 3, 4] * 10, 2, 3)[0][0].shape", r"= \[3, 2\]"),
    ("text.Windows('the text', 2, 3)", r"text\.Windows: ids is 'the text'; give a tensor \(position\)"),
    ("text.bpe(None)", r"text\.bpe: texts is None; give a list of strings"),
    ("text.bpe(['a', b'b'])", r"texts\[1\] is b'b'; give a string"),
    ("generate.text(None, text.Bytes(), 'a', 3)", "model is None; give a language model"),
    ("generate.text(gpt, None, 'a', 3)", "vocab is None; give a vocabulary"),
    ("generate.text(gpt, text.Bytes(), b'a', 3)", "prompt is b'a'; give a string"),
    ("generate.text(gpt, text.Bytes(), 'a', '3')", "count is '3'; give a whole number"),
    ("generate.Sampler(temperature=None)", r"generate\.Sampler: temperature is None; give a number"),
    ("generate.Sampler(top_k=2.5)", r"top_k is 2\.5; give a whole number or None"),
]  # fmt: skip
