"""`view.flow`: the traced data flow of a function and the layout of its boxes."""

import sys
from itertools import combinations, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_rgba
from matplotlib.patches import FancyBboxPatch
from torch import nn

from tfviz import layers, view
from tfviz.view.dataflow import trace
from tfviz.view.figures.graph_layout import Box, layered_layout
from tfviz.view.figures.palette import theme
from tfviz.view.flow import _without, _wrapped

WEIGHT = nn.Parameter(torch.ones(4, 3))
SCALE = 2.0
h, y = torch.ones(7, 7), torch.ones(9)  # as a notebook has them: names that functions use for themselves


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


def test_trace_lists_each_assigned_value():
    values = trace(attend, [torch.ones(5, 4)], {})
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
    assert values[5].parents == (4,)  # a later line takes the later value


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.scale = nn.Linear(4, 6), nn.Parameter(torch.ones(6))

    def forward(self, x):
        hidden = self.first(x).relu()
        return hidden * self.scale


def test_trace_of_module_follows_forward():
    for function in (Part(), Part().forward):
        values = trace(function, [torch.ones(5, 4)], {})
        assert named(values) == [
            ("x", (5, 4), []),
            ("hidden", (5, 6), ["x"]),
            ("scale", (6,), []),
            ("output", (5, 6), ["hidden", "scale"]),
        ]
        assert [value.code for value in values] == ["", "first(x).relu()", "", "hidden * scale"]
        assert [(value.learned, value.output) for value in values[2:]] == [(True, False), (False, True)]


def test_flow_summary_and_figure_show_values():
    picture = view.flow(attend, torch.ones(5, 4), title="Flow", axes={5: "word", 3: "d"})
    assert repr(picture).split("\n")[:4] == [
        "Flow",
        "x [word 5 × 4], given",
        "WEIGHT [4 × d 3], learned",
        "q [word 5 × d 3] = x @ WEIGHT",
    ]
    assert repr(view.flow(attend, x=torch.ones(5, 4))).startswith("attend\n")
    for style in ("light", "dark"):
        texts = [text.get_text() for text in picture.figure(style).axes[0].texts]
        assert texts.count("scores") == 2
        assert {"q @ q.T / size", "for i in range(len(y)):", "\u00a0\u00a0y[i] = SCALE * heads[0][i]"} <= {*texts}


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


def one_line(x):
    if len(x) > 2: x = x + 1  # fmt: skip  # noqa: E701
    if len(x) > 9: x = x + 2  # fmt: skip  # noqa: E701
    return x


def gathered(x):
    outs = [h * 2 for h in x]
    return torch.stack(outs)


def looped(x):
    for i in range(2):
        y = x * (i + 1)
    return y


def two_loops(x, y):
    for step in (1.0, 2.0):
        x = x * step
    for step in (3.0, 4.0):
        y = y + step
    return x @ y


def inner(x, w):
    def twice(a):
        return 2 * a @ w

    return twice(x)


def in_place(x, mask):
    scores = x @ x.T
    scores.masked_fill_(mask > 0, -torch.inf)
    return scores.softmax(-1)


def same_object(x):
    x = torch.dropout(x, 0.5, False)  # hands back what it was given
    return x  # noqa: RET504


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


class Namesake(nn.Linear):
    """Its own weight is called as the variable."""

    def forward(self, weight):
        y = weight + 1
        for _ in range(2):
            y = y * 2
        return y @ self.weight


@torch.no_grad()
def moved(w):
    w += 1
    return w


def column_zero(x):
    text = """
at the left"""
    return x + len(text)


@pytest.mark.parametrize(
    ("function", "count", "flow"),
    [
        (early, 1, ["x"]),
        (branches, 1, ["x", "y < x"]),
        (one_line, 1, ["x", "x < x"]),
        (gathered, 1, ["x", "outs < x", "output < outs"]),
        (looped, 1, ["x", "y < x"]),
        (two_loops, 2, ["x", "y", "x < x", "y < y", "output < x y"]),
        (inner, 2, ["x", "w", "output < w x"]),
        (in_place, 2, ["x", "mask", "scores < x", "scores < scores mask", "output < scores"]),
        (same_object, 1, ["x", "x < x"]),
        (through_a_dict, 1, ["x", "steps < x", "output < steps"]),
        (several, 1, ["x", "y < x", "output 3 < y"]),
        (named_parts, 1, ["x", "y < x", "loss < y"]),
        (Below(4, 4), 1, ["x", "kept < x", "output < kept"]),
        (Namesake(4, 4), 1, ["weight", "y < weight", "y < y", "weight", "output < y weight"]),
        (moved, 1, ["w", "w < w"]),
        (column_zero, 1, ["x", "output < x"]),
        (layers.pre_norm, 3, ["x", "output < x"]),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_trace_handles_python_constructs(function, count, flow):
    arguments = [torch.randn(4, 4, requires_grad=function is moved), torch.randn(4, 4)][:count]
    arguments = [arguments[0], nn.LayerNorm(4), torch.relu] if function is layers.pre_norm else arguments
    values = trace(function, arguments, {})
    assert [f"{name} < {' '.join(parents)}" if parents else name for name, _, parents in named(values)] == flow
    assert values[-1].output


def test_trace_follows_branch_taken():
    assert [value.code for value in trace(branches, [torch.ones(2)], {})] == ["", "x - 1"]


def test_trace_restores_debugger_tracer():
    tracer = sys.gettrace()
    sys.settrace(other := lambda *_: None)
    trace(branches, [torch.ones(3)], {})
    found = sys.gettrace()
    sys.settrace(tracer)
    assert found is other


def nothing(x):
    return 2


def crowded(x):
    x = x + 1; return x  # fmt: skip  # noqa: E702, RET504


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: x + 1, "not a plain def"),
        (torch.relu, "source"),
        (nothing, "nothing to draw"),
        (crowded, "two statements"),
    ],
)
def test_flow_rejects_untraceable_functions(function, says):
    with pytest.raises(ValueError, match=says):
        view.flow(function, 3)


graphs = st.integers(1, 9).flatmap(
    lambda count: st.tuples(*(st.sets(st.integers(0, max(0, n - 1)), max_size=3 if n else 0) for n in range(count)))
)


@settings(max_examples=40, deadline=None)
@given(graphs.map(lambda parents: [sorted(its) for its in parents]))
def test_layout_places_boxes_below_parents_without_overlap(parents):
    boxes = [Box(30.0 + 17 * (number % 4), 20.0 + 9 * (number % 3)) for number in range(len(parents))]
    layout = layered_layout(boxes, parents)
    spans = [(x - w / 2, x + w / 2, y, y + h) for (x, y), (w, h) in zip(layout.tops, boxes)]
    for one, other in combinations(spans, 2):
        assert one[1] < other[0] or other[1] < one[0] or one[3] < other[2] or other[3] < one[2]
    assert all(left > 0 and right < layout.width and bottom < layout.height for left, right, _, bottom in spans)
    assert all(spans[parent][3] < spans[child][2] for child, its in enumerate(parents) for parent in its)
    assert len(layout.edges) == sum(map(len, parents))
    for edge in layout.edges:
        assert all(upper[1] <= lower[1] for upper, lower in pairwise(edge))


def test_layout_aligns_chain_and_puts_input_just_above_its_use():
    layout = layered_layout([Box(40.0, 20.0)] * 5, [[], [0], [1], [], [2, 3]])
    columns, rows = zip(*layout.tops)
    assert columns[0] == pytest.approx(columns[1], abs=8)
    assert columns[1] == pytest.approx(columns[2], abs=8)
    assert rows[3] == rows[2] > rows[1]


def test_layout_handles_fully_connected_graph():
    assert len(layered_layout([Box(60.0, 20.0)] * 16, [list(range(n)) for n in range(16)]).edges) == 120


def test_flow_colours_only_marked_values():
    def coloured(**settings):
        picture = view.flow(attend, torch.ones(5, 4), **settings)
        patches = picture.figure().axes[0].patches
        with theme("light"):
            return sum(isinstance(box, FancyBboxPatch) and box.get_edgecolor() == to_rgba("C5") for box in patches)

    assert coloured(mark=["scores"]) >= 1
    assert coloured(mark=["scores"]) < coloured()


def test_flow_omits_named_values_and_their_lines():
    whole, less = (view.flow(attend, torch.ones(5, 4), omit=omit).summary.split("\n")[1:] for omit in ((), ["scores"]))
    assert less == [line for line in whole if not line.startswith("scores [")] != whole
    parents = {value.name: value.parents for value in _without(trace(attend, (torch.ones(5, 4),), {}), ["scores"])}
    assert all(parent < len(parents) for before in parents.values() for parent in before)


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        (
            "to_qkv(x).unflatten(-1, (3, heads, -1)).transpose(1, 3)",
            ["to_qkv(x)", ".unflatten(-1, (3, heads, -1))", ".transpose(1, 3)"],
        ),
        ("x + y", ["x + y"]),
        ("one_name * another_name + a_third_one_of_them", ["one_name * another_name +", "a_third_one_of_them"]),
    ],
)
def test_long_code_breaks_outside_brackets(line, pieces):
    assert list(_wrapped(line)) == pieces


def test_layout_draws_main_line_straight_and_branch_beside_it():
    # a stream: a norm reads it, and the sum adds to it what a branch makes of the norm; then the same once more
    parents = [[], [0], [1], [0, 2], [3], [3, 4]]
    layout = layered_layout([Box(60.0, 20.0)] * 6, parents)
    columns = [x for x, _ in layout.tops]
    assert columns[0] == pytest.approx(columns[3], abs=1e-9) == pytest.approx(columns[5], abs=1e-9)
    assert abs(columns[1] - columns[0]) > 20
    assert abs(columns[4] - columns[0]) > 20


def test_box_of_two_parents_alike_stands_between_them():
    # query and key of x, their pattern, and the values that it weighs
    parents = [[], [0], [0], [1, 2], [3]]
    layout = layered_layout([Box(60.0, 20.0)] * 5, parents)
    columns = [x for x, _ in layout.tops]
    assert columns[3] == pytest.approx((columns[1] + columns[2]) / 2, abs=2)
    assert columns[4] == pytest.approx(columns[3], abs=2)


def test_box_below_two_streams_stands_straight_below_its_own():
    # an encoder's three steps, and a decoder that reads what it says beside its own stream
    parents = [[], [], [0], [2], [3], [1], [5, 4], [6, 4]]
    layout = layered_layout([Box(60.0, 20.0)] * 8, parents)
    columns = [x for x, _ in layout.tops]
    assert columns[6] == pytest.approx(columns[5], abs=3)
    assert columns[7] == pytest.approx(columns[6], abs=3)
    assert abs(columns[4] - columns[6]) > 20


def test_parts_without_a_link_stand_side_by_side():
    tops = layered_layout([Box(60.0, 20.0)] * 6, [[], [0], [1, 0], [], [3], [3, 4]]).tops
    first, second = ([x for x, _ in tops[part]] for part in (slice(3), slice(3, 6)))
    assert 40 < min(second) - 30 - (max(first) + 30) < 60


def test_layout_runs_from_left_to_right_in_order_of_code():
    # of two steps of a loop, each with an input, the first stands at the left
    parents = [[], [], [0, 1], [2], [], [0, 4, 2], [5]]
    for width in (40.0, 90.0):
        layout = layered_layout([Box(width, 20.0)] * 7, parents)
        columns = [x for x, _ in layout.tops]
        assert columns[3] < columns[5]
