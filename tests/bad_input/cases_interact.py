"""Values that do not fit, at the doors of `view.interact`, its controls and `view.draw`."""

SETUP = """
import numpy, torch
from torch import nn
from tfviz import text, view
nan, inf = float("nan"), float("inf")
def double(x, times=2.0): return x * times
def shown(drawing=None, **more):
    return view.interact(double, x=view.cells([1.0, 2.0]), draw=drawing and {"output": drawing}, **more)
def returns(value): return view.interact(lambda x: value(x), x=(0.0, 1.0))
"""
CASES = [
    # the function
    ("view.interact(double)", "double needs x: give a control"),
    ("view.interact(double, y=(0.0, 1.0))", "double takes no y; it takes x, times"),
    ("view.interact(lambda x=1: x)", "function has no control"),
    ("view.interact(lambda **more: more['x'], x=(0.0, 1.0))", "= number: 0.5"),
    ("view.interact(lambda x, /, y: x + y, x=(0.0, 1.0), y=2.0)", "= number: 2.5"),
    ("view.interact(nn.Linear(2, 3), input=view.points({'a': (1, 2)}))", "= output.*1 x 3|1 x 3"),
    ("view.interact(nn.Linear(2, 3), x=view.points({'a': (1, 2)}))", "Linear takes no x; it takes input"),
    # what it returns
    ("returns(lambda x: None)", "returns no tensor"),
    ("returns(lambda x: 'text')", "returns no tensor"),
    ("returns(lambda x: torch.zeros(0, 3))", r"has the shape \[0, 3\]; a picture needs real numbers"),
    ("returns(lambda x: x if x > 0 else -x)", "cannot be exported: what it does depends on the values.*kernel=True"),
    ("returns(lambda x: torch.complex(x, x))", "complex"),
    ("returns(lambda x: x * torch.ones(600, 600))", "360,000 numbers, and a picture has room for 250,000"),
    ("returns(lambda x: x * torch.ones(25, 2, 2))", "25 grids, and a picture has room for 24"),
    ("returns(lambda x: x * torch.ones(2, 2, 2, 2))", r"\[2, 2, 2, 2\]: return a part"),
    ("returns(lambda x: x * nan)", "= number: NaN"),
    ("returns(lambda x: x * torch.full((2, 2), -inf))", "= 2 x 2 without a finite number"),
    ("returns(lambda x: [x, {'a': x > 0}])", r"= 1\.a: 1"),
    # controls
    ("view.interact(double, x='abc')", r"x is 'abc'; give \(low, high"),
    ("view.interact(double, x=None)", "x is None; give"),
    ("view.interact(double, x=(0.0, 'b'))", r"x is \(0.0, 'b'\); give"),
    ("view.interact(double, x=torch.ones(2))", r"x is a tensor of shape \[2\]; give"),
    ("view.interact(double, x=(1.0, 0.0))", "from a smaller number to a larger"),
    ("view.interact(double, x=(0.0, nan))", "from a smaller number to a larger"),
    ("view.interact(double, x=(-inf, inf))", "from a smaller number to a larger"),
    ("view.interact(double, x=(0.0, 1.0, -1.0))", "the step must be above 0"),
    ("view.interact(double, x=(0.0, 1.0, 9.0))", "not larger than the slider"),
    ("view.interact(double, x=(numpy.float32(0), numpy.float64(1)))", "= x = 0.5"),
    ("view.interact(double, x=(0.0, 1.0), times=(numpy.int64(1), 3))", "= times = 2"),
    ("view.interact(double, x=[])", "x is an empty menu"),
    ("view.interact(double, x=(0.0, 1.0), times=(0, 10**12))", "1,000,000,000,001 programs .*kernel=True"),
    ("view.interact(double, x=(0.0, 1.0), times=list(range(25)))", "25 programs .* room for 24"),
    (
        "view.interact(double, x=(0.0, 1.0), times=(0, 10**12), kernel=True)",
        "= double, answered by the kernel: x, times",
    ),
    ("view.points({})", "pairs by name"),
    ("view.points({'a': (1, 2, 3)})", "pairs by name"),
    ("view.points({'a': (1, inf)})", "holds inf"),
    ("view.points({str(i): (i, 1) for i in range(61)})", "61 points, and a picture has room for 60"),
    ("view.points({'a': (1, 2)}, limit=-1)", "limit is -1"),
    ("view.points({'a': (1, 2)}, limit=1)", "a point is 2 away from 0"),
    ("view.points({1: (1, 2), 'b': (0, 0)})", r"= 1 \(1, 2\), b \(0, 0\)"),
    ("view.points({'a': (0, 0)})", r"= a \(0, 0\)"),
    ("view.cells(torch.ones(0, 2))", r"matrix has the shape \[0, 2\]"),
    ("view.cells(torch.tensor([[1.0, nan]]))", "holds nan"),
    ("view.cells(torch.ones(21, 20))", "420 cells, and a picture has room for 400"),
    ("view.cells(torch.ones(2, 3), rows=['a'])", "rows has 1 words, the cells have 2 rows"),
    ("view.cells(torch.ones(2, 3), cols=['a', None, 'b'])", "word 1 is None"),
    ("view.cells(torch.ones(2, 3), step=0)", "step is 0"),
    ("view.cells(torch.ones(2, 3, dtype=torch.cfloat))", "holds complex numbers"),
    ("view.cells(torch.ones(2, requires_grad=True))", "= 1, 1"),
    ("view.text('abc', None)", "vocab is a NoneType; give one of tfviz.text"),
    ("view.text('abc', text.Bytes(), max_tokens=1)", "max_tokens is 1; a text needs room for 2"),
    ("view.text('abc', text.Bytes(), max_tokens=2)", "text has 3 tokens, and max_tokens is 2"),
    ("view.text('abc', text.Bytes(), min_tokens=4)", "text has 3 tokens, and min_tokens is 4"),
    ("view.text('abc', text.Bytes(), min_tokens=0)", "min_tokens is 0"),
    ("view.text('abc', text.Bytes(), min_tokens=9, max_tokens=8)", "min_tokens is 9"),
    ("view.text('abz', text.Characters.of('abc'))", "'z'"),
    ("view.order([])", "2 words at least"),
    ("view.order([1, 2])", "= 1 2"),
    ("view.order(['a', None])", "word 1 is None"),
    ("view.order(['a'] * 61)", "61 words, and a picture has room for 60"),
    ("view.angle(nan)", "start is nan"),
    # draw
    (
        "view.interact(double, x=(0.0, 1.0), draw={'y': view.draw.number()})",
        "draw names y; the function returns output",
    ),
    ("shown(view.draw.grid())", r"output has the shape \[2\]; grid draws \[row, col\]"),
    ("shown(view.draw.arrows())", r"arrows draws \[word, 2\]"),
    ("shown(view.draw.graph())", r"graph draws \[node, node\]"),
    ("shown(view.draw.number())", r"number draws \[\]"),
    ("shown(view.draw.bars('y'))", "rows of output is 'y'; the controls that have words: x"),
    ("shown(view.draw.bars(['a']))", "rows of output has 1 words, for 2 rows"),
    ("shown(view.draw.words(['a', 'b']))", "= 'a' 2, 'b' 4"),
    ("shown(view.draw.lines(cols=['a', 'b', 'c']))", "cols of output has 3 words, for 2 cols"),
    ("view.draw.grid(scale='log')", "scale is 'log'; give "),
    ("view.draw.grid(limit=nan)", "limit is nan"),
    ("view.draw.bars(['a', None])", "word 1 is None"),
    ("view.draw.graph(positions=torch.ones(2, 3))", r"positions has the shape \[2, 3\]"),
    ("view.draw.graph(positions=torch.full((2, 2), inf))", "holds inf"),
    ("view.interact(double, x=(0.0, 1e30))", "= .*x = 5e29"),
]
