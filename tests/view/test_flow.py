"""The data flow of a function: what its run was, and where the boxes stand."""

from itertools import combinations, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tfviz import layers, view
from tfviz.view.followed import follow
from tfviz.view.still.layered import Box, laid

WEIGHT = nn.Parameter(torch.ones(4, 3))
SCALE = 2.0


def attend(x, width=3):
    """Lines of every kind."""
    q = x @ WEIGHT
    size = width**0.5
    scores: torch.Tensor = q @ q.T / size
    scores += 1
    weights, logs = scores.softmax(-1), scores.log_softmax(-1)
    heads = [weights @ q, weights @ q]
    y = torch.zeros_like(q)
    for i in range(len(y)):
        y[i] = SCALE * heads[0][i]
    return {"y": y, "logs": logs}


def named(values):
    return [(value.name, value.shape, [values[parent].name for parent in value.parents]) for value in values]


def test_every_line_is_a_value_of_the_run():
    values = follow(attend, [torch.ones(5, 4)], {})
    assert named(values) == [
        ("x", (5, 4), []),
        ("WEIGHT", (4, 3), []),
        ("q", (5, 3), ["x", "WEIGHT"]),
        ("scores", (5, 5), ["q"]),
        ("scores", (5, 5), ["scores"]),
        ("weights", (5, 5), ["scores"]),
        ("logs", (5, 5), ["scores"]),
        ("heads", (2, 5, 3), ["weights", "q"]),
        ("y", (5, 3), ["q"]),
        ("y", (5, 3), ["y", "heads"]),
    ]
    codes = [value.code for value in values]
    assert codes[3:6] == ["q @ q.T / size", "scores + 1", "(scores.softmax(-1), scores.log_softmax(-1))"]
    assert codes[-1].startswith("for i in range(len(y)):")
    assert [value.name for value in values if value.learned] == ["WEIGHT"]
    assert [number for number, value in enumerate(values) if value.output] == [6, 9]


def test_a_later_line_takes_the_later_value():
    values = follow(attend, [torch.ones(5, 4)], {})
    assert [value.parents for value in values if value.name == "weights"] == [(4,)]


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.scale = nn.Linear(4, 6), nn.Parameter(torch.ones(6))

    def forward(self, x):
        hidden = self.first(x).relu()
        return hidden * self.scale


def test_of_a_module_it_is_the_forward():
    values = follow(Part(), [torch.ones(5, 4)], {})
    assert named(values) == [
        ("x", (5, 4), []),
        ("hidden", (5, 6), ["x"]),
        ("scale", (6,), []),
        ("output", (5, 6), ["hidden", "scale"]),
    ]
    assert [value.code for value in values] == ["", "first(x).relu()", "", "hidden * scale"]
    assert values[2].learned
    assert values[3].output


def test_the_run_is_that_of_python():
    x, found = torch.randn(5, 4), {}

    def outer(x):
        doubled = 2 * x
        found["y"] = doubled.sum(0)
        return doubled

    values = follow(outer, [x], {})
    assert torch.equal(found["y"], 2 * x.sum(0))
    assert [value.name for value in values] == ["x", "doubled"]
    assert follow(Part().forward, [x], {})[1].name == "hidden"
    assert [value.name for value in follow(layers.pre_norm, [x, nn.LayerNorm(4), torch.relu], {})] == ["x", "output"]


def test_the_picture_says_what_it_shows():
    picture = view.flow(attend, torch.ones(5, 4), title="Flow", axes={5: "word", 3: "d"})
    lines = repr(picture).split("\n")
    assert lines[:4] == [
        "Flow",
        "x [word 5 × 4], given",
        "WEIGHT [4 × d 3], learned",
        "q [word 5 × d 3] = x @ WEIGHT",
    ]
    assert repr(view.flow(attend, x=torch.ones(5, 4))).startswith("attend\n")
    for style in ("light", "dark"):
        figure = picture.figure(style)
        said = [text.get_text() for text in figure.axes[0].texts]
        assert said.count("scores") == 2
        assert "q @ q.T / size" in said


def early(x):
    for _ in range(2):
        return x
    return 2 * x


def branches(x):
    if len(x) > 2:
        y = x + 1
    else:
        return x - 1
    return y


def test_the_branch_is_followed_that_is_taken():
    assert [value.name for value in follow(branches, [torch.ones(3)], {})] == ["x", "y"]
    assert [value.code for value in follow(branches, [torch.ones(2)], {})] == ["", "x - 1"]


def nothing(x):
    return 2


@pytest.mark.parametrize(
    ("function", "kind", "says"),
    [
        (lambda x: x + 1, ValueError, "no plain def"),
        (torch.relu, ValueError, "source"),
        (nothing, ValueError, None),
        (early, ValueError, "returns from inside a loop"),
    ],
)
def test_what_cannot_be_drawn_is_told(function, kind, says):
    if says is None:
        assert repr(view.flow(function, torch.ones(2))) == "nothing\nx [2], given"
        with pytest.raises(kind, match="nothing to draw"):
            view.flow(function, 3)
    else:
        with pytest.raises(kind, match=says):
            view.flow(function, torch.ones(2))


def links(draw_parents):
    return [sorted(set(parents)) for parents in draw_parents]


graphs = st.integers(1, 9).flatmap(
    lambda count: st.tuples(*(st.lists(st.integers(0, max(0, n - 1)), max_size=3 if n else 0) for n in range(count)))
)


@settings(max_examples=40, deadline=None)
@given(graphs.map(links))
def test_boxes_do_not_overlap_and_stand_below_their_parents(parents):
    boxes = [Box(30.0 + 17 * (number % 4), 20.0 + 9 * (number % 3)) for number in range(len(parents))]
    layout = laid(boxes, parents)
    assert layout.sizes == boxes
    spans = [(x - w / 2, x + w / 2, y, y + h) for (x, y), (w, h) in zip(layout.places, boxes)]
    for one, other in combinations(spans, 2):
        assert one[1] < other[0] or other[1] < one[0] or one[3] < other[2] or other[3] < one[2]
    assert all(left > 0 and right < layout.width and bottom < layout.height for left, right, _, bottom in spans)
    assert all(spans[parent][3] < spans[child][2] for child, its in enumerate(parents) for parent in its)
    assert len(layout.ways) == sum(map(len, parents))
    for way in layout.ways:
        assert all(upper[1] <= lower[1] for upper, lower in pairwise(way))


class Namesake(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.ones(5, 7))

    def forward(self, table):
        y = table + 1
        for _ in range(2):
            y = y * 2
        return y @ self.table


def test_a_modules_own_weight_is_not_the_variable_of_the_same_name():
    values = follow(Namesake(), [torch.ones(3, 5)], {})
    assert [(one.name, one.shape, one.learned, one.parents) for one in values] == [
        ("table", (3, 5), False, ()),
        ("y", (3, 5), False, (0,)),
        ("y", (3, 5), False, (1,)),
        ("table", (5, 7), True, ()),
        ("output", (3, 7), False, (2, 3)),
    ]


def test_a_loop_keeps_its_lines():
    shown = [text.get_text() for text in view.flow(Namesake(), torch.ones(3, 5)).figure().axes[0].texts]
    assert {"for _ in range(2):", "\u00a0\u00a0y = y * 2"} <= {*shown}


h, y = torch.ones(7, 7), torch.ones(9)  # as a notebook has them: names that functions use for themselves


def gathered(x):
    outs = [h * 2 for h in x]
    return torch.stack(outs)


def looped(x):
    for i in range(2):
        y = x * (i + 1)
    return y


def inner(x, w):
    def twice(a):
        return 2 * a @ w

    return twice(x)


def in_place(x, mask):
    scores = x @ x.T
    scores.masked_fill_(mask, -torch.inf)
    return scores.softmax(-1)


def through_a_dict(x):
    parts = {"q": x + 1}
    parts["k"] = x - 1
    steps = []
    for row in parts["q"]:
        steps.append(row * parts["k"].sum())
    return torch.stack(steps)


def several(x):
    y = 2 * x
    return y, None, y.sum()


def named_parts(x):
    y = 2 * x
    return {"y": y, "loss": y.sum()}


class Below(nn.Linear):
    def forward(self, x):
        self.kept = super().forward(x)
        return self.kept.relu()


@torch.no_grad()
def moved(w):
    w += 1
    return w


def column_zero(x):
    text = """
at the left"""
    return x + len(text)


@pytest.mark.parametrize(
    ("function", "given", "flow"),
    [
        (gathered, 1, ["x", "outs < x", "output < outs"]),
        (looped, 1, ["x", "y < x"]),
        (inner, 2, ["x", "w", "output < w x"]),
        (in_place, 2, ["x", "mask", "scores < x", "scores < scores mask", "output < scores"]),
        (through_a_dict, 1, ["x", "steps < x", "output < steps"]),
        (several, 1, ["x", "y < x", "output 3 < y"]),
        (named_parts, 1, ["x", "y < x", "loss < y"]),
        (Below(4, 4), 1, ["x", "kept < x", "output < kept"]),
        (moved, 1, ["w", "w < w"]),
        (column_zero, 1, ["x", "output < x"]),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_what_flows_through_python_of_all_kinds(function, given, flow):
    arguments = [torch.randn(4, 4), torch.ones(4, 4, dtype=torch.bool)][:given]
    if function is inner:
        arguments[1] = torch.randn(4, 4)
    if function is moved:
        arguments = [nn.Parameter(torch.randn(4, 4))]
    values = follow(function, arguments, {})
    said = [f"{name} < {' '.join(parents)}" if parents else name for name, _, parents in named(values)]
    assert said == flow
    assert values[-1].output


def test_values_that_take_all_before_them_are_laid_out():
    parents = [list(range(n)) for n in range(16)]
    assert len(laid([Box(60.0, 20.0)] * 16, parents).ways) == 120


def two_loops(x, y):
    for step in (1.0, 2.0):
        x = x * step
    for step in (3.0, 4.0):
        y = y + step
    return x @ y


def test_a_second_loop_reads_its_own_variable():
    """Not what an earlier loop left behind under the same name."""
    values = follow(two_loops, [torch.ones(2, 3), torch.ones(3, 4)], {})
    assert named(values)[2:] == [
        ("x", (2, 3), ["x"]),
        ("y", (3, 4), ["y"]),
        ("output", (2, 4), ["x", "y"]),
    ]
