"""Cases of programs that cannot be exported, and of inputs that do not fit them."""

SETUP = """
import numpy, torch
from torch import nn
from tfviz import files, look, models, portable
from tfviz.portable.program import serialize_programs
from tfviz.look import edits
gpt = models.GPT(11, context=7, layers=1, heads=2, dim=4)
ids = torch.tensor([[1, 2, 3]])
weights = torch.full((1, 2, 3, 3), 1 / 3)
square = portable.export(lambda x: x * x, torch.ones(2, 3), lengths={"x": {0: "rows"}})
program = portable.export(gpt, ids)
def stored(text):
    files.save_tensors("p", {}, {"program": text})
    return portable.Program.load("p")
"""
CASES = [
    ("portable.export(ids, ids)", "module is a tensor"),
    ("portable.export(gpt)", "give one tensor for each input"),
    ("portable.export(gpt, ids, dtype='bfloat16')", "dtype is 'bfloat16'; it can be 'float32', 'float16', 'int8'"),
    ("portable.export(gpt, ids, lengths={'words': {1: 'n'}})", "lengths names 'words'; the tensors given are ids"),
    ("portable.export(gpt, ids, lengths={'ids': {7: 'n'}})", "lengths names axis 7 of ids, which has 2 axes"),
    ("portable.export(gpt, ids, lengths={'ids': {0: 'n'}})", "ids has 1 'n' in the example; give one with 2 or more"),
    ("portable.export(lambda x: x if x.sum() > 0 else -x, torch.ones(3))", "depends on the values of its input"),
    ("portable.export(lambda x: torch.linalg.inv(x), torch.eye(3))", "lacks .* of the operations"),
    ("portable.export(lambda x: 3, torch.ones(3))", "returns no tensor"),
    ("portable.Program.load('nowhere.safetensors')", "nowhere.safetensors"),
    ("square(torch.ones(2, 4))", r"x has the shape \[2, 4\]; this program was made for \[rows 3\]"),
    ("square()", "takes x; 0 were given"),
    ("square(torch.ones(2, 3), edit={'pattern': torch.zeros_like})", "no site 'pattern' to edit"),
    ("square(torch.ones(5, 3))['output'].shape", r"= torch.Size\(\[5, 3\]\)"),
    ("square('x')", "x is 'x'; give a tensor"),
    ("square([['a', 1, 2]])", "x is a list; give a tensor"),
    ("square([[1, 2, 3], [4, 5, 6]])['output'].tolist()", r"= \[\[1.0, 4.0, 9.0\], \[16.0, 25.0, 36.0\]\]"),
    ("square(numpy.ones((2, 3)))['output'].sum().item()", "= 6.0"),
    ("square(torch.ones(2, 3), edit=torch.zeros_like)", "edit is the function zeros_like; give {site: function}"),
    ("program(ids, edit={program.sites[0]: 3})", r"edit\['blocks.0.attention.pattern'\] is 3; give a function"),
    (
        "program(ids, edit={program.sites[0]: lambda w: None})",
        "the edit of blocks.0.attention.pattern returned NoneType",
    ),
    ("program([[1, 2, 11]])", "id 11 is not one of the table's 11 rows"),
    ("program([[1, 2, 0.5]])", "ids is torch.float32; this program takes int64"),
    ("portable.Program(None)", "program is None; it must be a dictionary"),
    ("portable.Program({})", "program has no 'format'; it must have format, name"),
    ("portable.Program(square.spec, None)", "tensors is None; it must be a dictionary of tensors"),
    ("portable.Program(square.spec, {'x': 3})", "there is a tensor 'x' that weights does not name"),
    ("serialize_programs({'p': square.spec})", "p is a dictionary; give a portable.Program"),
    ("stored('null')", "p: program is None; it must be a dictionary"),
    ("stored('[' * 100_000)", "p: program is nested too deep"),
    ("stored('x')", "p: program is not JSON: "),
    (
        "files.save_tensors('p', {}, {}); portable.Program.load('p')",
        "p holds no program; it is a file of something else",
    ),
    ("edits.zero(2)(weights)", "there is no head 2; there are 2, counted from 0"),
    ("edits.pin([(0, 0)], 2.0)", "weight is 2.0; a weight lies between 0 and 1"),
    ("edits.hide([(9, 0)])(weights)", "there is no query 9; there are 3"),
    ("portable.export(nn.Linear, torch.ones(2, 3))", "module is the class Linear; give"),
    ("portable.export(nn.Linear(3, 2, device='meta'), torch.ones(2, 3))", "weight is a tensor on the meta device"),
    ("program(ids, edit={program.sites[0]: lambda weights: weights.to('meta')})", "returned a tensor on meta"),
    ("program(ids + 99)", "id 102 is not one of the table's 11 rows, 0 to 10"),
    ("program(ids - 2)", "id -1 is not one of the table's 11 rows"),
    (
        "program(ids, edit={program.sites[0]: lambda one, two, three: one})",
        "takes 3 arguments; it must take a tensor, or",
    ),
    (
        "program(ids, edit={program.sites[0]: lambda weights, site: weights * len(site)})['output'].shape",
        "= torch.Size\\(\\[1, 3, 11\\]\\)",
    ),
    ("portable.export(gpt, ids, 3)", "GPT cannot be called with the example inputs"),
]
