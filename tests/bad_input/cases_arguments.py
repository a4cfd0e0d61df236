"""Cases of arguments of the wrong type, at public functions."""

SETUP = """
import numpy, torch
from torch import nn
from tfviz import generate, layers, learn, look, models, text, view
maps = look.AttentionMaps(torch.eye(3).expand(2, 4, 3, 3), query_tokens=["a", "b", "c"])
gpt = models.GPT(11, context=7, layers=1, heads=2, dim=4)
class Pipeline: model = gpt
"""
MAPS = r"AttentionMaps\.from_capture\(captured, query_tokens=words\)"
CASES = [
    ("view.alignment(maps, [('cat', 'Katze')])", r"gold holds pairs of numbers"),
    ("view.bars(['a', None], {'x': [1, 2]}, 'x')", "label 1 is None; give a string or a number"),
    ("view.bars(range(2), {'x': [1, 2]}, 'x')", "= '1' 2"),
    ("view.bars(['a', 'b'], {'x': numpy.array([1, 2])}, 'x')", "= x\nhighest"),
    ("view.bars(numpy.array(['a', 'b']), {'x': (1, 2)}, 'x')", "= highest"),
    ("view.mask([[True, False], [True, True]])", "= 3 of 4 cells"),
    ("view.bars(['a'])", r"view\.bars: missing a required argument: 'heights'; it takes labels, heights"),
    ("view.heads(maps, titel='x')", "unexpected keyword argument 'titel'; it takes maps, title"),
    ("look.AttentionMaps(numpy.ones((1, 2, 3, 3)) / 3)", "= 1 layers x 2 heads x 3 queries x 3 keys"),
    ("look.AttentionMaps([numpy.ones((2, 3, 3)) / 3] * 2)", "= 2 layers x 2 heads"),
    ("models.GPT(numpy.int64(11), heads=torch.tensor(2), dim=4)", "= GPT"),
    ("text.Windows([1, 2, 3, 4] * 10, 2, 3)[0][0].shape", r"= \[3, 2\]"),
    ("text.train_bpe(['a', b'b'])", r"text 1 is a bytes"),
    ("look.AttentionMaps(torch.tensor(5.0))", "weights is a scalar"),
    ("learn.evaluate.argmax_alignment(torch.eye(3), torch.tensor(3))", r"gold is a tensor of shape \[\]"),
    ("learn.evaluate.loss(gpt, 'x')", "batches is 'x'; give|a batch is 'x'; it must be a tuple of tensors"),
    ("text.Streams([], 5, 2)", "the text has 0 tokens"),
    ("text.pad([torch.tensor(1)])", r"row 0 is \[\]"),
    ("text.Buckets(torch.tensor(3))", "a column is one number"),
    ("text.train_bpe(torch.tensor(3))", r"texts is a tensor of shape \[\]"),
]  # fmt: skip
