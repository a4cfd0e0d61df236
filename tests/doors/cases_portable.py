"""Programs: what cannot travel, what does not fit."""

SETUP = """
import numpy, torch
from torch import nn
from tfviz import look, models, portable
from tfviz.look import edits
gpt = models.GPT(11, context=7, layers=1, heads=2, dim=4)
ids = torch.tensor([[1, 2, 3]])
weights = torch.full((1, 2, 3, 3), 1 / 3)
square = portable.export(lambda x: x * x, torch.ones(2, 3), lengths={"x": {0: "rows"}})
"""
CASES = [
    ("portable.export(None, ids)", "module is None; give a model"),
    ("portable.export(ids, ids)", "module is a tensor"),
    ("portable.export('gpt2', ids)", "module is a string|module is 'gpt2'"),
    ("portable.export(gpt)", "give one tensor for each input"),
    ("portable.export(gpt, [1, 2])", "give one tensor for each input"),
    ("portable.export(gpt, ids, weights='bfloat16')", "weights is 'bfloat16'; it can be 'float32', 'float16', 'int8'"),
    ("portable.export(gpt, ids, lengths={'words': {1: 'n'}})", "lengths names 'words'; the tensors given are ids"),
    ("portable.export(gpt, ids, lengths={'ids': {7: 'n'}})", "lengths names axis 7 of ids, which has 2 axes"),
    ("portable.export(gpt, ids, lengths={'ids': {0: 'n'}})", "ids has 1 'n' in the example; give one with 2 or more"),
    ("portable.export(lambda x: x if x.sum() > 0 else -x, torch.ones(3))", "depends on the values of its input"),
    ("portable.export(lambda x: torch.linalg.inv(x), torch.eye(3))", "lacks .* of the operations it needs"),
    ("portable.export(lambda x: 3, torch.ones(3))", "returns no tensor"),
    ("portable.Program.load('nowhere.safetensors')", "nowhere.safetensors"),
    ("portable.Program.load('.')", r"\."),
    ("square(torch.ones(2, 4))", r"x has the shape \[2, 4\]; this program was made for \[rows 3\]"),
    ("square()", "takes x; 0 were given"),
    ("square(torch.ones(2, 3), edit={'pattern': torch.zeros_like})", "no site 'pattern' to edit"),
    ("square(torch.ones(5, 3))['output'].shape", r"= torch.Size\(\[5, 3\]\)"),
    ("edits.zero(2)(weights)", "head is 2; there are 2, counted from 0"),
    ("edits.zero('first')", "head is 'first'|head is a string"),
    ("edits.pin([(0, 0)], 2.0)", "to is 2.0; a weight lies between 0 and 1"),
    ("edits.hide([(9, 0)])(weights)", "there is no query 9; there are 3"),
]
