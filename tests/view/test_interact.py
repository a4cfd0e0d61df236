"""`view.interact` without a browser: controls, programs, drawings, static pictures and kernel answers."""

import io
import math
from inspect import Parameter

import numpy
import pytest
import torch
from example_views import WORDS, attention, lesson
from matplotlib.figure import Figure
from PIL import Image
from torch import nn
from widgets import ask_widget

from tfviz import text, view
from tfviz.portable.program import serialize_programs
from tfviz.view.figures import results
from tfviz.view.figures.formatting import format_number
from tfviz.view.figures.palette import muted, sequential_colormap, theme
from tfviz.view.instrument.bind import bind
from tfviz.view.instrument.bound_function import BoundFunction
from tfviz.view.result_spec import Drawing, ResultPanel, result_scale
from tfviz.view.spec import Scale, round_up

pytest_plugins = ["node"]
NONE = Parameter.empty


def scaled(x, times=2.0, plus=1):
    return x * times + plus


def controls(made):
    return made.document["controls"]


def test_document_contains_controls_and_panels():
    made = lesson(title="Attention")
    words, sharpness = controls(made)["words"], controls(made)["sharpness"]
    assert (words["kind"], words["names"], words["start"]) == (
        "points",
        ["cat", "sat", "mat"],
        [[1, 2], [2, 0.5], [0.5, 1.5]],
    )
    assert words["limit"] == 3
    assert [sharpness[key] for key in ("kind", "low", "high", "step", "start")] == ["slider", 0.1, 5.0, 0.05, 2.55]
    assert [panel["kind"] for panel in made.document["panels"]] == ["grid", "grid", "arrows"]
    assert made.document["panels"][2]["min_limit"] == 3  # the plane of the words themselves
    assert list(made.document["programs"]) == [""]
    assert made.document["state"] == {"values": {"words": words["start"], "sharpness": 2.55}}


def test_summary_describes_arguments_and_results():
    shares = attention(torch.tensor(list(WORDS.values())), 2.55)["shares"]
    said = lesson().summary
    assert said.startswith("attention\nwords = cat (1, 2), sat (2, 0.5), mat (0.5, 1.5); sharpness = 2.55\n")
    low, high = (format_number(float(end)) for end in (shares.min(), shares.max()))
    assert f"shares: 3 x 3, from {low} to {high} ('cat' → 'cat')" in said


SLIDERS = [  # given, the default of the signature, then low, high, step, start, integer
    ((0.1, 5.0), NONE, (0.1, 5.0, 0.05, 2.55, False)),
    ((0.0, 1.0), NONE, (0.0, 1.0, 0.01, 0.5, False)),
    ((-2.0, 4.0, 1.5), NONE, (-2.0, 4.0, 1.5, 1.0, False)),
    ((0.0, 1.0), 0.3, (0.0, 1.0, 0.01, 0.3, False)),
    ((0.0, 1.0), 7.0, (0.0, 1.0, 0.01, 0.5, False)),
    ((0.0, 1.0), torch.tensor(0.25), (0.0, 1.0, 0.01, 0.25, False)),
    ((1, 4), NONE, (1, 4, 1, 2, True)),
    ((0, 9, 3), NONE, (0, 9, 3, 3, True)),
    ((0, 9, 3), 6, (0, 9, 3, 6, True)),
    (2.0, NONE, (-2.0, 6.0, 0.1, 2.0, False)),
    (-1, NONE, (-3, 1, 1, -1, True)),
    (0, NONE, (0, 1, 1, 0, True)),
    (0.0, NONE, (0.0, 1.0, 0.01, 0.0, False)),
]


@pytest.mark.parametrize(("given", "default", "expected"), SLIDERS)
def test_sliders_follow_ipywidgets_conventions(given, default, expected):
    slider = bind("x", given, default)
    assert tuple(slider.spec[key] for key in ("low", "high", "step", "start", "integer")) == expected
    assert slider.values == (range(expected[0], expected[1] + 1, expected[2]) if expected[4] else None)


def test_menus_and_checkboxes_return_python_values():
    menu = bind("x", {"one": 1, "many": [1, 2]}, None)
    assert (menu.spec["names"], menu.values, menu.start, menu.argument(1)) == (["one", "many"], [1, [1, 2]], 0, [1, 2])
    assert bind("x", ["a", "b"], "b").start == 1
    assert [bind("x", True, None).argument(value) for value in (False, True)] == [False, True]
    assert bind("x", [True, 1], 1).start == 1  # 1 is not True


def test_each_choice_is_a_program_and_weights_are_stored_once():
    layer = nn.Linear(300, 7)

    def called(x, twice, kind, times):
        made = layer(x.expand(300)) * times
        made = made.tanh() if kind == "tanh" else made.relu()
        return made * 2 if twice else made

    given = {"x": (0.0, 1.0), "twice": False, "kind": ["tanh", "relu"], "times": (2, 3)}
    asked = BoundFunction(called, given)
    programs = asked.programs()
    assert set(programs) == {f"{a}.{b}.{c}" for a in range(2) for b in range(2) for c in range(2)}
    described, data = serialize_programs(programs)
    assert len(data) == 4 * (300 * 7 + 7)  # weight and bias, whatever is chosen
    assert set(described) == set(programs)
    for values in ({"x": 0.3, "twice": True, "kind": 1, "times": 3}, {"x": 0.7, "twice": False, "kind": 0, "times": 2}):
        (found,) = programs[asked.key(values)](*asked.inputs(values)).values()
        expected = called(torch.tensor(values["x"]), values["twice"], given["kind"][values["kind"]], values["times"])
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_too_many_choices_raise_with_hint():
    with pytest.raises(ValueError, match=r"42 programs \(21 of plus, 2 of times\).*room for 24.*kernel=True"):
        view.interact(scaled, x=(0.0, 1.0), plus=(0, 20), times=[1, 2])


def menu_of_weights(layer, tables):
    """A view of a layer behind a menu, each of whose choices has a table of its own."""
    return view.interact(
        lambda x, times: (layer(x.expand(1500)).mean() * times, (tables[times - 1] + x).sum()),
        x=(0.0, 1.0),
        times=[1, 2, 3, 4, 5],
    )


def test_size_limit_counts_weights_as_they_are_written():
    torch.manual_seed(2)
    layer = nn.Linear(1500, 1000)  # 6 MB, in each of five programs
    whole = 400_000 + torch.arange(2_000_000)  # 16 MB as int64 here, 8 MB as int32 in the page
    made = menu_of_weights(layer, [whole] * 5)
    assert made.document["data"][1] == 4 * (1500 * 1000 + 1000 + 2_000_000)


def test_weights_larger_than_limit_raise():
    torch.manual_seed(2)
    layer, tables = nn.Linear(1500, 1000), [torch.randn(1_000_000) for _ in range(5)]
    with pytest.raises(ValueError, match=r"26,004,0\d\d bytes of weights, .*room for 24,000,000: with kernel=True"):
        menu_of_weights(layer, tables)


def test_model_runs_in_eval_mode_and_keeps_its_mode():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(2, 5), nn.Dropout(0.5)).train()
    made = view.interact(
        lambda point: model(point), point=view.controls.points({"a": (1, 2), "b": (3, 4), "c": (5, 6)})
    )
    expected = model.eval()(torch.tensor([[1.0, 2], [3, 4], [5, 6]])).detach()
    assert f"from {format_number(float(expected.min()))} to {format_number(float(expected.max()))}" in made.summary
    again = view.interact(model.train(), input=view.controls.points({"a": (1, 2), "b": (3, 4), "c": (5, 6)}))
    assert model.training
    assert f"from {format_number(float(expected.min()))}" in again.summary


def test_arguments_without_control_keep_defaults():
    made = view.interact(scaled, x=view.controls.cells([[1.0, 2.0, 3.0]]))
    assert "from 3 to 7" in made.summary
    assert list(made.document["controls"]) == ["x"]


def test_special_controls_return_expected_tensors():
    tokenizer = text.CharacterTokenizer.from_text("the cat")
    given = {
        "points": view.controls.points({"a": (1, 2), "b": (3, -4)}),
        "cells": view.controls.cells([[1, 2, 3], [4, 5, 6]], ["r", "s"]),
        "row": view.controls.cells([1.5, 2.5]),
        "text": view.controls.text("the cat", tokenizer),
        "order": view.controls.order(["x", "y", "z"]),
        "angle": view.controls.angle(math.pi / 2),
        "turned": view.controls.angle(2 * math.pi + 1),
    }
    tensors = {name: one.tensor(one.start) for name, one in given.items()}
    assert torch.equal(tensors["points"], torch.tensor([[1.0, 2], [3, -4]]))
    assert torch.equal(tensors["cells"], torch.tensor([[1.0, 2, 3], [4, 5, 6]]))
    assert torch.equal(tensors["row"], torch.tensor([1.5, 2.5]))
    assert torch.equal(tensors["text"], tokenizer.encode("the cat").long()[None])
    assert torch.equal(tensors["order"], torch.tensor([0, 1, 2]))
    assert tensors["angle"].shape == ()
    torch.testing.assert_close(tensors["angle"], torch.tensor(math.pi / 2))
    torch.testing.assert_close(tensors["turned"], torch.tensor(1.0))
    assert given["order"].labels([2, 0, 1]) == (["z", "x", "y"],) * 2
    assert given["text"].labels("the cat")[0] == tokenizer.tokens(tokenizer.encode("the cat"))
    assert given["cells"].labels(None) == (["r", "s"], ["0", "1", "2"])


def test_axes_are_labelled_by_the_only_control_of_matching_size():
    """A square table by its rows' words, but not the two coordinates of two points; what an author says stays."""

    def named(function, draw=None, **controls):
        made = view.interact(function, draw=draw, **controls)
        return {panel["result"]: (panel["rows"], panel["columns"]) for panel in made.document["panels"]}

    def products(x):
        return {
            "scores": x @ x.mT,
            "mixed": x @ torch.ones(2, 2),
            "sums": x.sum(1),
            "other": torch.ones(4, 4) * x.sum(),
        }

    three = view.controls.points({"cat": (1, 0), "dog": (0, 1), "cow": (1, 1)})
    found = named(products, x=three)
    assert found == {"scores": ("x", "x"), "mixed": ("x", []), "sums": ("x", []), "other": ([], [])}
    two = view.controls.points({"cat": (1, 0), "dog": (0, 1)})
    assert named(products, x=two)["scores"] == ("x", [])
    draw = {"scores": view.draw.grid(["a", "b", "c"])}
    assert named(products, draw, x=three)["scores"] == (["a", "b", "c"], [])
    both = named(lambda x, y: x @ y.mT, x=three, y=view.controls.points({"a": (1, 0), "b": (0, 1), "c": (1, 1)}))
    assert both == {"output": ([], [])}  # either could be meant


def test_tries_set_existing_controls_only():
    made = view.interact(lambda a: a * 2, a=(0.0, 1.0), examples={"One": {"a": 1.0}})
    assert made.document["examples"] == [["One", {"a": 1.0}]]
    with pytest.raises(ValueError, match=r"examples\['One'\] sets b; it can set a"):
        view.interact(lambda a: a * 2, a=(0.0, 1.0), examples={"One": {"b": 1.0}})


def test_boolean_cells_are_switches():
    table, row = torch.tensor([[True, False], [True, True]]), torch.tensor([False, True, True])
    controls = {"table": view.controls.cells(table, ["r", "s"], ["x", "y"]), "row": view.controls.cells(row)}
    assert [one.spec["kind"] for one in controls.values()] == ["switches", "switches"]
    assert torch.equal(controls["table"].tensor(controls["table"].start), table)
    assert torch.equal(controls["row"].tensor([[True, True, False]]), torch.tensor([True, True, False]))
    assert controls["table"].text(controls["table"].start) == "3 of 4 on"
    assert [controls["row"].text([given]) for given in ([False] * 3, [True, False, True])] == ["none", "0, 2"]
    made = view.interact(lambda table: (~table).sum(0), table=view.controls.cells(table, ["r", "s"], ["x", "y"]))
    assert "table = 3 of 4 on" in made.summary
    assert "'0' 0, '1' 1" in made.summary


def test_filled_graph_colours_nodes_and_omits_loops():
    def tied(x):
        return torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]) + torch.diag(x)

    def boxes(filled):
        drawing = view.draw.graph(["a", "b", "c"], filled=filled, limit=1.0)
        made = view.interact(tied, x=view.controls.cells([1.0, -1.0, 0.0]), draw={"output": drawing})
        assert made.document["panels"][0]["filled"] is filled
        axes = made.figure().subfigs[1].axes[0]
        colours = {one.get_text(): one.get_bbox_patch().get_facecolor() for one in axes.texts if one.get_text()}
        return colours, len(axes.patches)  # loops are circles

    colours, loops = boxes(filled=True)
    assert len(set(colours.values())) == 3
    assert loops == 0
    colours, loops = boxes(filled=False)
    assert len(set(colours.values())) == 1
    assert loops == 2


def test_text_inputs_have_dynamic_lengths():
    tokenizer = text.CharacterTokenizer.from_text("the cat sat")
    torch.manual_seed(2)
    table = nn.Embedding(len(tokenizer), 3)

    def read(sentence, other):
        return (table(sentence) @ table(other).mT)[0]

    made = view.interact(read, sentence=view.controls.text("the", tokenizer), other=view.controls.text("a", tokenizer),
                         draw={"output": view.draw.grid("sentence", "other")})  # fmt: skip
    assert made.document["kind"] == "interact"
    program = made.document["programs"][""]
    assert [one["shape"] for one in program["inputs"]] == [[1, "tokens of sentence"], [1, "tokens of other"]]
    assert "3 x 1, from" in made.summary


def test_results_are_drawn_by_number_of_axes_unless_specified():
    def many(x):
        return {"none": x, "one": x * torch.ones(3), "two": x * torch.ones(2, 4), "three": x * torch.ones(5, 2, 4),
                "batch": x * torch.ones(1, 2, 4)}  # fmt: skip

    made = view.interact(many, x=(0.0, 1.0))
    assert [panel["kind"] for panel in made.document["panels"]] == ["number", "bars", "grid", "grid", "grid"]
    assert "three 4: 2 x 4" in made.summary
    assert "batch: 2 x 4" in made.summary
    told = view.interact(many, x=(0.0, 1.0), draw={"one": view.draw.words(["a", "b", "c"], title="said")})
    assert told.document["panels"][1] | {"limit": None} == {
        "result": "one", "kind": "words", "title": "said", "rows": ["a", "b", "c"], "columns": [], "scale": None,
        "limit": None, "min_limit": 0, "positions": [], "filled": False,
    }  # fmt: skip


COLOURS = [  # numbers, drawn as, the scale and where it ends
    ([[0.3, 0.7], [1.0, 0.0]], None, ("linear", 1.0)),
    ([[0.3, 0.2]], None, ("linear", 0.3)),
    ([[3.0, -7.1]], None, ("diverging", 8.0)),
    ([[3.0, 7.1]], "linear", ("linear", 1.0)),
    ([[3.0, -7.1]], "sqrt", ("sqrt", 1.0)),
    ([[0.0, 0.0]], None, ("linear", 1.0)),
    ([[2.0, -math.inf]], None, ("linear", 2.0)),
    ([[math.nan, math.nan]], None, ("linear", 1.0)),
]


@pytest.mark.parametrize(("numbers", "scale", "expected"), COLOURS)
def test_result_scale_follows_values_unless_specified(numbers, scale, expected):
    assert result_scale("grid", torch.tensor(numbers), scale) == Scale(*expected)
    assert result_scale("grid", torch.tensor(numbers), scale, 9.0) == Scale(expected[0], 9.0)


PLANES = [  # in a plane there is room for names, and points do not leave it when they are moved
    ("arrows", [[0.25, 0.5]], 0.0, ("linear", 0.6)),
    ("dots", [[0.25, 0.5]], 3.0, ("linear", 3.0)),
    ("dots", [[0.25, -0.5]], 3.0, ("diverging", 3.0)),
    ("arrows", [[4.0, -1.0]], 3.0, ("diverging", 5.0)),
    ("grid", [[4.0, -1.0]], 0.0, ("diverging", 4.0)),
    ("arrows", [[0.25, 0.75]], 3.0, ("linear", 1.0)),
]


@pytest.mark.parametrize(("kind", "numbers", "least", "expected"), PLANES)
def test_plane_scale_leaves_room_for_points_and_names(kind, numbers, least, expected):
    assert result_scale(kind, torch.tensor(numbers), min_limit=least) == Scale(*expected)


def test_page_scales_match_python(node):
    node.load("interact/scales")
    cases = [("grid", numbers, scale, 0.0, expected) for numbers, scale, expected in COLOURS]
    cases += [(kind, numbers, None, least, expected) for kind, numbers, least, expected in PLANES]
    for kind, numbers, scale, least, expected in cases:
        cells = [str(number) for row in numbers for number in row]
        given = {"kind": kind, "scale": scale, "limit": None, "min_limit": least}
        script = """([cells, shape, given]) => {
            const named = { inf: Infinity, "-inf": -Infinity, nan: NaN };
            const data = Float32Array.from(cells, (cell) => named[cell] ?? Number(cell));
            const tensor = { shape, dtype: "float32", data };
            return [scaleOf(tensor, given), scaleOf(tensor, { ...given, limit: 9 })]; }"""
        found = node.evaluate(script, [cells, [len(numbers), len(numbers[0])], given])
        assert [tuple(one.values()) for one in found] == [expected, (expected[0], 9)]


def test_boolean_results_have_linear_scale():
    assert result_scale("grid", torch.tensor([[True, True], [False, True]])) == Scale("linear")


def test_round_up_returns_round_numbers():
    assert [round_up(value) for value in (0, 0.011, 1, 1.2, 2.5, 9, 14)] == [1, 0.015, 1, 1.5, 3, 10, 15]
    assert [round_up(value, (1, 2, 5)) for value in (0.03, 5.1)] == [0.05, 10]


def size(made, style="light"):
    return Image.open(io.BytesIO(made._png(style))).size


def test_figure_picture_shows_initial_state_in_both_themes():
    made = lesson(title="Attention by hand")
    texts = [one.get_text() for one in made.figure().findobj(lambda one: hasattr(one, "get_text")) if one.get_text()]
    assert {"Attention by hand", "scores", "shares", "mixture", "cat", "13", "0.97", "·"} <= set(texts)
    assert "words = cat (1, 2), sat (2, 0.5), mat (0.5, 1.5)   sharpness = 2.55" in texts
    light, dark = (numpy.asarray(Image.open(io.BytesIO(made._png(style))).convert("L")) for style in ("light", "dark"))
    assert numpy.median(light) > 200
    assert numpy.median(dark) < 60
    assert size(made) == size(made, "dark")
    assert 800 <= size(made)[0] <= 1500
    assert made._png("light") == lesson(title="Attention by hand")._png("light")


def test_figure_picture_of_every_drawing_kind_fits_width():
    words = ["the", "cat", "sat", "on", "the", "mat"]

    def all_kinds(angle):
        x = torch.arange(6) * angle
        plane = torch.stack([x.sin(), x.cos()], -1)
        weights = torch.outer(x, x).softmax(-1)
        mask = torch.ones(6, 6, dtype=torch.bool).tril()
        return {"bars": x.sin(), "lines": plane.T, "dots": plane, "arrows": plane, "words": x.cos(), "graph": weights,
                "number": x.sum(), "large": torch.outer(torch.arange(40.0), torch.arange(30.0)) * angle,
                "mask": mask, "scores": weights.masked_fill(~mask, -torch.inf)}  # fmt: skip

    made = view.interact(all_kinds, angle=view.controls.angle(1.0), draw={
        "bars": view.draw.bars(words), "lines": view.draw.lines(["sin", "cos"], words), "dots": view.draw.dots(words),
        "arrows": view.draw.arrows(words), "words": view.draw.words(words), "graph": view.draw.graph(words),
        "number": view.draw.number(title="the sum"),
    })  # fmt: skip
    assert size(made)[0] < 1700
    texts = {one.get_text() for one in made.figure().findobj(lambda one: hasattr(one, "get_text"))}
    assert {"the sum", "angle = 57°", "sin", "mat"} <= texts


def test_bars_with_top_are_sorted():
    drawing = {"output": view.draw.bars(list("abcd"), top_k=3)}
    made = view.interact(lambda x: x * torch.tensor([1.0, 3.0, torch.nan, 2.0]), x=(0.0, 1.0), draw=drawing)
    assert made.document["panels"][0]["top"] == 3
    assert "'b' 1.5, 'd' 1, 'a' 0.5" in made.summary
    with pytest.raises(ValueError, match="top_k is 0"):
        view.draw.bars(top_k=0)


def test_hostile_words_are_drawn_and_escaped():
    bad = ["</script>", "שלום", "\0", "x" * 1000]
    made = view.interact(
        lambda x: x * torch.eye(4), x=(0.0, 1.0), draw={"output": view.draw.grid(bad, bad)}, title="<b>\0"
    )
    assert size(made)[0] < 1500
    assert "</script>" not in made.html(static=False).partition("tfviz-document")[2].partition("</script>")[0]


def unexportable(x):
    return x if x.sum() > 0 else -x


def test_error_of_the_function_propagates():
    with pytest.raises(RuntimeError, match="must match the size"):
        view.interact(lambda x: x * torch.ones(2) + torch.ones(3), x=(0.0, 1.0))


def test_kernel_reports_integers_beyond_32_bits():
    live = view.interact(lambda x: torch.tensor(2**40), x=(0.0, 1.0), kernel=True)
    content, _ = ask_widget(live, values={"x": 0.5})
    assert content["error"].startswith("ValueError: output holds integers past 32 bits")


def test_kernel_runs_function_that_cannot_be_exported():
    live = view.interact(unexportable, x=(-1.0, 1.0), kernel=True, examples={"The end": {"x": 1.0}})
    assert live.document["examples"] == [["The end", {"x": 1.0}]]
    assert live.values == {"x": 0.0}
    content, (data,) = ask_widget(live, values={"x": -0.5})
    told = content["results"]["output"]
    assert (told["shape"], told["dtype"]) == ([], "float32")
    assert numpy.frombuffer(data[told["byte_range"][0] :][: told["byte_range"][1]], "<f4").tolist() == [0.5]
    live.values = {"x": -0.25}
    left = live.view()
    assert left.document["kind"] == "interact-snapshot"
    assert left.document["state"] == {"values": {"x": -0.25}}
    assert "Static: Python computed this" in left.document["note"]
    assert "output" not in left.summary.splitlines()[0]
    assert "number: 0.25" in left.summary
    data, _ = live._repr_mimebundle_()
    assert "Static: Python computed this" in data["text/plain"]
    assert "image/png" in data


def test_kernel_reports_exceptions_and_rejects_invalid_values():
    def breaks(x, y):
        if x > 0.9:
            raise LookupError("no such x")
        return x + y

    live = view.interact(breaks, x=(0.0, 1.0), y=[1, 2], kernel=True)
    assert ask_widget(live, values={"x": 0.95, "y": 0})[0]["error"] == "LookupError: no such x"
    assert "error" in ask_widget(live, values="nonsense")[0]
    page = ask_widget(live, page=True)[1][0].decode()
    assert page.startswith("<!doctype html>")
    for wrong in ({"x": 0.5}, {"x": "a", "y": 0}, {"x": 0.5, "y": 9}):
        with pytest.raises(Exception, match=r"values has|cannot be"):
            live.values = wrong
    assert live.values == {"x": 0.5, "y": 0}


def test_html_is_deterministic():
    assert lesson().html() == lesson().html()


@pytest.mark.parametrize(("words", "lines"), [("few", 1), ("many " * 16, 2)])
def test_figure_writes_controls_whole_and_with_spaces(words, lines):
    """A long text was cut. The title's instruction is for the page alone: nobody can type into a picture."""

    def drawn(in_8_bits=0.5, *, text):
        return {"n": in_8_bits + text.sum()}

    tokenizer = text.CharacterTokenizer.from_text("fewmany ")
    controls = {"text": view.controls.text(words, tokenizer), "in_8_bits": (0.0, 1.0)}
    figure = view.interact(drawn, title="What is it? Type a text of any length", **controls).figure()
    said = [one.get_text() for one in figure.texts]
    (line,) = [one for one in said if "in 8 bits = 0.50" in one]
    assert f"text = {words!r}" in line.replace("\n", " ")
    assert "Type a text" not in " ".join(said)
    assert len(line.split("\n")) == lines


def test_figure_numbers_are_stacked_beside_taller_panel():
    def written(day=16.0, month=7.0):
        return {"looks": torch.eye(6, 3) * day / 31, "day": day, "month": month, "sum": day + month}

    numbers = {name: view.draw.number() for name in ("day", "month", "sum")}
    made = view.interact(written, draw={"looks": view.draw.grid()} | numbers, day=(1.0, 31.0), month=(1.0, 12.0))
    figure = made.figure()
    figure.draw_without_rendering()
    boxes = [axes.get_position() for axes in figure.axes if axes.get_label() != "<colorbar>"]
    grid, *below = sorted(boxes, key=lambda box: box.x0)
    assert len({round(box.x0, 2) for box in below}) == 1
    assert below[0].x0 > grid.x1
    assert len({round(box.y0, 2) for box in below}) == 3


@pytest.mark.parametrize(("shades", "bars"), [(1, 0), (2, 0), (3, 1)])
def test_grid_of_one_or_two_values_has_no_colorbar(shades, bars):
    def shaded(x=1.0):
        grid = x * (torch.arange(20 * 20).view(20, 20) % shades + 1)
        return {"grid": grid.masked_fill(torch.ones(20, 20).triu(1).bool(), -torch.inf)}

    figure = view.interact(shaded, draw={"grid": view.draw.grid(scale="linear")}, x=(1.0, 2.0)).figure()
    assert [axes.get_label() for axes in figure.axes].count("<colorbar>") == bars


def test_four_wide_panels_are_laid_out_two_by_two():
    def squares(x=1.0):
        return {name: x * torch.eye(5) for name in "abcd"}

    draw = dict.fromkeys("abcd", view.draw.grid([*"12345"], [*"12345"], scale="linear"))
    figure = view.interact(squares, draw=draw, x=(0.0, 1.0)).figure()
    figure.draw_without_rendering()
    tops = [round(axes.get_position().y1, 2) for axes in figure.axes]
    assert [tops.count(top) for top in sorted(set(tops))] == [2, 2]


@pytest.mark.parametrize("kind", ["arrows", "dots"])
def test_plane_labels_overlap_neither_each_other_nor_points(kind):
    close = torch.tensor([[0.6, 0.4], [0.8, 0.5], [0.5, 0.7], [0.9, 0.4], [0.05, 0.0], [-0.9, -0.9]])
    words = ["the", "cat", "walks", "street", "middle", "corner"]
    drawing = getattr(view.draw, kind)(words, limit=1.5)
    figure = view.interact(lambda x=1.0: {"plane": x * close}, draw={"plane": drawing}, x=(0.5, 1.0)).figure()
    figure.draw_without_rendering()
    (axes,) = figure.axes
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text() in words]
    assert len(boxes) == len(words)
    assert all(box.count_overlaps([other for other in boxes if other is not box]) == 0 for box in boxes)
    at = axes.transData.transform((0.75 * close).numpy())
    assert not any(box.contains(*point) for box in boxes for point in at)


def plane_panel(kind="dots", points=((0.25, 0.5), (1.0, 0.75)), rows=("a", "b"), limit=2.0, **settings):
    panel = ResultPanel(Drawing(kind, "t", rows, **settings), torch.tensor(points), Scale("linear", limit))
    with theme("light"):
        axes = Figure().subplots()
        results.draw_result(axes, panel, 2.7)
    return axes


def test_plane_names_its_coordinates_and_greys_unmarked_words():
    axes = plane_panel(axes=("thing", "moves"), mark=("b",))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("thing", "moves")
    grey, coloured = (line.get_color() for line in axes.lines if line.get_marker() == "o")
    with theme("light"):
        assert grey == muted()
    assert coloured != grey
    first, second = (line.get_color() for line in plane_panel().lines if line.get_marker() == "o")
    assert len({first, second, grey}) == 3


@pytest.mark.parametrize(
    ("kind", "points", "low"),
    [("dots", [[0.25, 0.0]], 0.0), ("dots", [[0.25, -0.1]], -2.0), ("arrows", [[0.25, 0.5]], -2.0)],
)
def test_points_without_negative_coordinates_are_drawn_in_the_upper_right_quarter(kind, points, low):
    assert plane_panel(kind, points, rows=("a",)).get_xlim() == plane_panel(kind, points, rows=("a",)).get_ylim()
    assert plane_panel(kind, points, rows=("a",)).get_xlim() == (low, 2.0)


def test_name_is_nearest_to_its_own_point():
    points = {"the": (0.59, 0.42), "cat": (0.73, 0.48), "walks": (0.57, 0.58), "street": (0.74, 0.42)}
    axes = plane_panel(points=list(points.values()), rows=tuple(points))
    figure = axes.figure
    figure.draw_without_rendering()
    spots = axes.transData.transform(list(points.values()))
    for name in axes.texts:
        box = name.get_window_extent()
        corners = numpy.array([[box.x0, box.y0], [box.x1, box.y1]])
        apart = numpy.linalg.norm(numpy.clip(spots, *corners) - spots, axis=1)
        assert list(points)[int(apart.argmin())] == name.get_text()


def test_filled_node_has_the_colour_of_a_grid():
    weights = torch.tensor([[1.0, 1.0], [0.0, 0.0]])
    axes = plane_panel("graph", weights.tolist(), filled=True, limit=1.0)
    full, empty = (name.get_bbox_patch().get_facecolor() for name in axes.texts[-2:])
    with theme("light"):
        assert full == sequential_colormap()(1.0)
    assert empty != full
