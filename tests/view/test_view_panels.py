"""Still pictures of tables and masks in panels: exact contents and input checks."""

import numpy
import pytest
import torch
from figure_checks import NASTY, SHAPES, draws, maps, sound
from figure_checks import panels as drawn

from tfviz import view
from tfviz.look import AttentionMaps
from tfviz.view.figures import masks as figure_masks
from tfviz.view.figures import tables as figure_tables
from tfviz.view.spec import Axis, Heatmap


def gates(names=("input", "forget"), rows=6, cols=5):
    draw = torch.Generator().manual_seed(3)
    return {name: torch.rand(rows, cols, generator=draw) for name in names}


def rules(size=6):
    causal = torch.ones(size, size, dtype=torch.bool).tril()
    tables = {"causal": causal, "window": causal.triu(-1), "not itself": ~torch.eye(size).bool()}
    return {name: ("window = 2" if name == "window" else name, table) for name, table in tables.items()}


def tables(named, cols=()):
    rows, columns = Axis("unit"), Axis("$x_$", cols)
    return figure_tables.stacked_tables(
        [Heatmap(t, rows, columns, figure_tables.table_scale(t), title=name) for name, t in named.items()], "t"
    )


VIEWS = {
    "tables": lambda: tables({**gates(), "cell": gates()["input"] - 0.5}, "abcde"),
    "mask_panels": lambda: figure_masks.mask_panels(rules()),
}


@pytest.mark.parametrize("name", VIEWS)
def test_figure_picture_is_deterministic_and_logs_no_warnings(name, caplog, tmp_path):
    sound(VIEWS[name], caplog, tmp_path)


def test_unusual_text_is_drawn_anywhere(caplog):
    draws(tables({word: torch.rand(2, len(NASTY)) for word in NASTY}, NASTY), caplog, "svg")
    masks = {word: (f"{word} = \ud800", torch.eye(3).bool()) for word in ("$x_$ $", "\ud800", "\n")}
    draws(figure_masks.mask_panels(masks, title="שלום"), caplog, "svg")


@pytest.mark.parametrize("shape", SHAPES)
def test_tables_of_any_shape_are_drawn(shape, caplog):
    table = maps(*shape)[0, 0]
    draws(tables({"t": table}), caplog)
    draws(figure_masks.mask_panels({"t": ("t", table > 0.5)}), caplog)


def test_stacked_tables_have_their_own_scales():
    named = {
        "gate": torch.tensor([[0.0, 0.5]]),
        "cell": torch.tensor([[-4.0, 2.0]]),
        "tanh": torch.tensor([[-0.1, 0.2]]),
    }
    shown = drawn(tables(named, ["a", "b"]).figure())
    norms = [axes.images[0].norm for axes in shown]
    assert [(norm.vmin, norm.vmax) for norm in norms] == [(0, 1), (-4, 4), (-1, 1)]
    assert [float(norm(0)) for norm in norms] == [0, 0.5, 0.5]
    assert float(norms[0](0.5)) == 0.5
    assert [[tick.get_text() for tick in axes.get_xticklabels()] for axes in shown] == [["a", "b"], [], []]
    assert [axes.get_ylabel() for axes in shown] == list(named)


def test_mask_lab_combines_masks_by_intersection():
    picture = figure_masks.mask_panels(rules())
    shown = drawn(picture.figure())
    assert [axes.get_xlabel() for axes in shown] == ["causal", "window = 2", "not itself", "all together"]
    masked = [numpy.ma.getmaskarray(axes.images[0].get_array()) for axes in shown]
    assert all(axes.patch.get_hatch() for axes in shown)
    numpy.testing.assert_array_equal(masked[3], masked[0] | masked[1] | masked[2])
    assert (masked[1] == ~rules()["window"][1].numpy()).all()
    assert "1 of 6 rows has no key left" in picture.summary


def test_mask_lab_combines_masks_by_use():
    causal, window, other = (table for _, table in rules().values())
    for use, formula, expected in (
        ({"causal": "all", "window": "not"}, "causal & ~window(2)", causal & ~window),
        ({"causal": "any", "not itself": "any"}, "causal | not itself", causal | other),
        ({"causal": "any", "window": "any", "not itself": "all"}, "not itself & (causal | window(2))",
         other & (causal | window)),
        ({}, "everything", torch.ones_like(causal)),
    ):  # fmt: skip
        picture = figure_masks.mask_panels(rules(), roles=use)
        last = drawn(picture.figure())[3]
        assert last.get_xlabel() in (formula, formula[:17] + "…")
        numpy.testing.assert_array_equal(numpy.ma.getmaskarray(last.images[0].get_array()), ~expected.numpy())
        assert f"allowed by {formula};" in picture.summary


def test_lines_apart_label_log_axis_with_plain_numbers():
    """Panels once said 10 to the 0 in markup, one over the other."""
    series = {name: ([1, 2, 4, 8], [4, 3, 2, 1]) for name in "ab"}
    axes = view.lines(series, x="x", y="y", title="t", in_panels=True, xscale="log").figure().axes
    for one in axes:
        one.figure.canvas.draw()
    assert [[label.get_text() for label in one.get_xticklabels()] for one in axes] == [["1", "2", "4", "8"]] * 2


def test_lines_name_themselves_at_their_ends_without_overlap():
    series = {"low": ([0, 1], [0.0, 0.98]), "high": ([0, 1], [1.0, 1.0]), "far": ([0, 1], [1.0, 0.0])}
    axes = view.lines(series, x="x", y="y", title="t", at_ends=True).figure().axes[0]
    assert axes.get_legend() is None
    texts = {text.get_text(): text for text in axes.texts}
    assert [*sorted(texts, key=lambda name: texts[name].xy[1])] == ["far", "low", "high"]
    axes.figure.draw_without_rendering()
    boxes = [texts[name].get_window_extent() for name in ("low", "high")]
    assert boxes[0].y1 <= boxes[1].y0 + 1
    colours = [line.get_color() for line in axes.lines]
    assert [texts[name].get_color() for name in series] == colours


def test_names_that_are_pushed_far_from_their_lines_have_samples_of_them():
    """Where many lines ended at 0, a stack of names did not tell which line each names."""
    names = ["one", "two", "three", "four"]
    together = {name: ([0, 1], [index, 0.0]) for index, name in enumerate(names)}
    dashed = {"dashed": ["two"], "at_ends": True}
    axes = view.lines(together, x="x", y="y", title="t", **dashed).figure().axes[0]
    lines, samples = axes.lines[:4], axes.lines[4:]
    assert [line.get_linestyle() for line in lines] == ["-", "--", "-", "-"]
    heights = {text.get_text(): text.xy[1] for text in axes.texts}
    for line, name in zip(lines, names):
        (sample,) = [one for one in samples if one.get_ydata()[0] == pytest.approx(heights[name])]
        for look in ("color", "marker", "linestyle"):
            assert getattr(sample, f"get_{look}")() == getattr(line, f"get_{look}")()
    apart = {name: ([0, 1], [0.0, index]) for index, name in enumerate(names)}
    assert len(view.lines(apart, x="x", y="y", title="t", **dashed).figure().axes[0].lines) == 4


@pytest.mark.parametrize(
    ("names", "labelled"),
    [
        ([str(n) for n in range(1, 25)], ["5", "10", "15", "20"]),
        ([str(n) for n in range(7)], ["0", "2", "4", "6"]),
        ([str(n) for n in range(98, 101)], ["98", "99", "100"]),
        (list("1010110"), ["1010110"]),  # digits of a text
        (["the", "cat", "sat"], []),
    ],
)
def test_heads_without_words_label_round_positions(names, labelled):
    weights = torch.rand(1, 6, len(names), len(names)).softmax(-1)
    axes = view.heads(AttentionMaps(weights, query_tokens=names)).figure().axes
    for of in ("x", "y"):
        first = [label.get_text() for label in getattr(axes[0], f"get_{of}ticklabels")()]
        assert [text for text in first if text] in (labelled, names)
    assert not [label.get_text() for label in axes[1].get_yticklabels() if label.get_text()]


def test_point_alone_and_narrow_stretch_name_themselves_beside():
    series = {"line": ([1, 10], [1.0, 10.0]), "point": ([2], [5.0])}
    figure = view.lines(series, x="x", y="y", title="t", at_ends=True, xscale="log", yscale="log").figure()
    said = {text.get_text(): text for text in figure.axes[0].texts}
    assert said["point"].xy == (2, 5)
    shaded = {"a long name": (0, 1), "wide": (4, 10)}
    figure = view.lines({"line": ([0, 10], [0, 10])}, x="x", y="y", title="t", shaded=shaded, xlim=(0, 10)).figure()
    figure.draw_without_rendering()
    narrow, wide = figure.axes[0].texts
    assert narrow.get_window_extent().x0 >= figure.axes[0].get_window_extent().x0
    assert wide.xy[0] == 7


def test_heads_of_other_numbers_say_what_they_are():
    some = maps(1, 2)
    figure = view.heads(some, axes=("output", "word"), unit="influence").figure()
    assert (figure.get_supylabel(), figure.get_supxlabel()) == ("output", "word")
    assert figure.axes[-1].get_ylabel() == "influence, square-root scale"
    assert len(view.heads(some, unit="").figure().axes) == 2


def test_lines_name_references_among_the_ends_of_lines():
    """A reference's name once covered that of a line that ended at the same height."""
    series = {"low": ([0, 1], [0.0, 0.2]), "high": ([0, 1], [0.0, 1.0])}
    picture = view.lines(series, x="x", y="y", title="t", at_ends=True, references={"limit": 1.0})
    axes = picture.figure().axes[0]
    axes.figure.draw_without_rendering()
    texts = {text.get_text(): text for text in axes.texts if text.get_text()}
    assert texts.keys() == {"low", "high", "limit"}
    lower, upper = sorted((texts[name].get_window_extent() for name in ("high", "limit")), key=lambda box: box.y0)
    assert lower.y1 <= upper.y0 + 1
    assert texts["low"].get_window_extent().y1 < lower.y0


def test_mask_lab_frames_the_combination_and_fades_unused_rules():
    one = torch.ones(3, 3, dtype=torch.bool)
    figure = view.masks(
        {"causal": one.tril(), "window": {2: one}, "other": one}, title="t", roles={"causal": "all"}
    ).figure()
    titles = [axes.get_xlabel() for axes in figure.axes]
    assert titles == ["causal", "window (off)", "other (off)", "causal"]
    assert [float(axes.images[0].get_array().max()) for axes in figure.axes] == pytest.approx([0.25, 0.03, 0.03, 0.25])
    assert [axes.xaxis.label.get_weight() for axes in figure.axes][2:] == ["normal", "bold"]


def test_many_heads_of_one_layer_stand_in_two_rows():
    maps = AttentionMaps(torch.eye(40).expand(1, 7, 40, 40).clone())
    heads = [axes for axes in view.heads(maps, names=[*"abcdefg"]).figure().axes if axes.get_title()]
    indices = [axes.get_subplotspec().rowspan.start for axes in heads]
    assert [axes.get_title() for axes in heads] == [*"abcdefg"]
    assert indices == [0, 0, 0, 0, 1, 1, 1]
