"""Still pictures and saved files: output formats, determinism, unusual text, themes and axes."""

import base64
import itertools
import logging
import re

import matplotlib
import numpy
import pytest
import torch

from tfviz import view
from tfviz.layers import masks, positions
from tfviz.learn import Step
from tfviz.look import AttentionMaps, quantize
from tfviz.view.figures import palette

NASTY = [
    "漢字",
    "👩‍👧",
    "שלום",
    "$x_$ $",
    "a\nb\tc",
    "",
    " ",
    "\ud800",
    "</script>",
    "x" * 99,
    "नमस्ते",
    "\\frac{",
    "%s{0}",
    "\x7f",
    "\u200b",
]


def maps(layers=2, heads=3, queries=5, keys=7, **given):
    draw = torch.Generator().manual_seed(1)
    weights = torch.rand(layers, heads, queries, keys, generator=draw)
    return AttentionMaps(weights / weights.sum(-1, keepdim=True).clamp(min=1e-9), **given)


def hostile_maps():
    return maps(1, 2, len(NASTY), len(NASTY), query_tokens=NASTY)


HISTORY = [Step(step, 3 / (step + 1), 0.1, 9.0) for step in range(7)]
VIEWS = {
    "heads": lambda: view.heads(maps()),
    "head": lambda: view.head(maps(), 1, 2),
    "mask": lambda: view.mask(masks.strided(3).dense(5, 7)),
    "positions": lambda: view.positions(positions.Sinusoidal(7, 6).table(7)),
    "shares": lambda: view.head_table({"one": torch.rand(2, 3), "two": torch.zeros(2, 3)}),
    "curves": lambda: view.curves(HISTORY, validation=[(3, 1.2), (6, 1.1)]),
    "lines": lambda: view.lines(
        {"a": ([1.0, 2.0], [3.0, 1.0]), "b": ([1.0, 3.0], [2.0, 2.0])}, x="x", y="y", title="t"
    ),
    "bars": lambda: view.bars(["a", "b", "c"], {"one": torch.rand(3), "two": [0.0, 1.0, 0.5]}, "t"),
    "rows": lambda: view.bar_table(["a", "b", "c"], {"one": torch.rand(3), "two": [0, 12345.678, 0.00012]}, "t"),
}
every = pytest.mark.parametrize("name", VIEWS)


def png(picture):
    data, metadata = picture._repr_mimebundle_()
    assert data["text/plain"] == repr(picture) == picture.summary
    raw = base64.b64decode(data["image/png"])
    assert raw.startswith(b"\x89PNG\r\n")
    assert metadata["image/png"]["width"] == int.from_bytes(raw[16:20]) * 2 // 3
    return raw


def draws(picture, caplog, most=10_000):
    """Draws without a word in the log; no side is absurd."""
    caplog.clear()
    raw = png(picture)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert 50 < int.from_bytes(raw[16:20]) < most
    assert 50 < int.from_bytes(raw[20:24]) < most
    return raw


@every
def test_mimebundle_contains_png_and_text(name, caplog):
    torch.manual_seed(0)
    picture = VIEWS[name]()
    assert len(repr(picture).splitlines()) == 2
    draws(picture, caplog)


@every
def test_saved_files_are_deterministic(name, tmp_path):
    both = []
    for turn in ("one", "two"):
        torch.manual_seed(0)
        picture = VIEWS[name]()
        files = [picture.save(tmp_path / f"{turn}.{ending}") for ending in ("svg", "html", "png")]
        both.append([png(picture), *(file.read_bytes() for file in files)])
    assert both[0] == both[1]
    assert both[0][0] == both[0][3]
    assert both[0][1].startswith(b"<?xml")


def test_dark_theme_changes_picture_but_not_size(tmp_path):
    picture = view.heads(maps())
    light, dark = (picture.save(tmp_path / f"{style}.png", style).read_bytes() for style in palette.THEMES)
    assert light != dark
    assert light[16:24] == dark[16:24]


@pytest.mark.parametrize("name", ["x.gif", "x", "x.PNG.bak"])
def test_save_rejects_unknown_suffix(tmp_path, name):
    with pytest.raises(ValueError, match=r"as \.png, \.svg or \.html"):
        view.heads(maps()).save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


NASTY_TITLE = '</title> "&" {x}'
LINKS = r"https?://(?!www\.w3\.org/2000/svg)|<link|@import|url\((?!\\?[\"']data:)"


def test_figure_html_is_self_contained_and_escaped(tmp_path):
    picture = view.bars(["</script><b>", "b"], {"one": [0.25, 0.5]}, NASTY_TITLE)
    page = picture.save(tmp_path / "x.html").read_text(encoding="utf-8")
    assert not re.search(LINKS, page)
    sources = re.findall(r'(?:src|srcset|href)="([^"]*)"', page)
    assert len(sources) == 2
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert len(set(sources)) == 2
    assert "<script" not in page
    assert "</script" not in page
    assert "<title>&lt;/title&gt; &quot;&amp;&quot; {x}</title>" in page
    assert '<meta charset="utf-8">' in page


def test_interactive_html_is_self_contained_and_escaped(tmp_path):
    picture = view.head(maps(query_tokens=["</script><b>", *"abcd"], key_tokens="abcdefg"), 0, 0, title=NASTY_TITLE)
    page = picture.save(tmp_path / "x.html").read_text(encoding="utf-8")
    assert not re.search(LINKS, page)
    assert page.count("</script>") == len(re.findall(r"<script\b", page)) == 4
    assert "<b>" not in page
    assert "<title>&lt;/title&gt; &quot;&amp;&quot; {x}</title>" in page
    assert '<meta charset="utf-8">' in page
    assert "<!-- with scripts of tfviz, copyright 2026 the tfviz authors, MIT licence" in page


@pytest.mark.parametrize(
    "words", [hostile_maps(), *(maps(1, 1, 3, 3, query_tokens=[word, "b", "c"]) for word in NASTY)], ids=ascii
)
def test_head_draws_any_word(words, caplog, tmp_path):
    draws(view.head(words, 0, 0), caplog)
    view.head(words, 0, 0).save(tmp_path / "x.html")


@pytest.mark.parametrize(
    "make",
    [
        lambda: view.bars(NASTY, {"漢 $x$": torch.rand(len(NASTY))}, "bars"),
        lambda: view.bar_table(NASTY, {"漢 $x$": torch.rand(len(NASTY)), "b": [0.0] * len(NASTY)}, "rows"),
        lambda: view.mask(masks.causal.dense(len(NASTY), len(NASTY)), query_tokens=NASTY),
        lambda: view.head(hostile_maps(), 0, 0, title="漢字"),
        lambda: view.heads(hostile_maps(), title="שלום 👩"),
        lambda: view.head_table({"$x_$ 漢": torch.rand(2, 3)}),
        lambda: view.lines({"漢 $_$": ([1.0, 2.0], [1.0, 2.0]), "b": ([1.0], [1.0])}, x="漢", y="漢", title="t"),
        lambda: view.curves(HISTORY, title="漢", **{"$x_$": [(1, 2.0)]}),
    ],
)
def test_unusual_text_is_drawn_anywhere(make, caplog, tmp_path):
    draws(make(), caplog)
    make().save(tmp_path / "x.svg")


def test_axis_labels_show_invisible_characters_and_mark_truncation():
    shown = dict(zip(NASTY, palette.tick_labels(NASTY)))
    assert shown["a\nb\tc"] == "a⏎b⇥c"
    assert shown[" "] == "␣"
    assert shown[""] == "∅"
    assert shown["\ud800"] == "⟨D800⟩"
    assert shown["$x_$ $"] == "$x_$ $"  # a space within a name
    assert palette.tick_labels([" a b", "a b "]) == ["␣a␣b", "a␣b␣"]
    assert shown["x" * 99] == "x" * 17 + "…"
    assert palette.tick_labels(["x" * 18]) == ["x" * 18]
    ticks = view.head(hostile_maps(), 0, 0).figure().axes[0].get_yticklabels()
    assert [tick.get_text() for tick in ticks] == list(shown.values())


SHAPES = [(1, 1, 1, 1), (1, 1, 1, 7), (3, 2, 40, 2), (12, 12, 8, 8), (1, 1, 2000, 2000)]


@pytest.mark.parametrize("shape", SHAPES)
def test_maps_of_any_shape_are_drawn(shape, caplog):
    some = maps(*shape)
    raw = draws(view.heads(some), caplog)
    assert len(raw) < 2_000_000
    draws(view.head(some, 0, 0), caplog)


def test_heads_of_empty_maps_raise(caplog):
    with pytest.raises(ValueError, match=r"\b0\b"):
        draws(view.heads(maps(1, 1, 0, 0)), caplog)


def test_single_weight_survives_downsampling():
    weights = torch.zeros(1, 1, 2000, 2000)
    weights[0, 0, 1999, 3] = 1
    image = view.head(AttentionMaps(weights), 0, 0).figure().axes[0].images[0].get_array()
    assert max(image.shape) <= 1600
    assert image.max() == 1
    assert image[-1].max() == 1


def test_forbidden_cells_are_masked_and_hatched(caplog):
    mask = masks.causal.dense(5, 7)[0, 0].index_fill(0, torch.tensor([3]), False)
    some = AttentionMaps(quantize(torch.rand(1, 2, 5, 7) * mask), mask=mask)
    for picture in (view.heads(some), view.head(some, 0, 1)):
        draws(picture, caplog)
        axes = picture.figure().axes[0]
        assert axes.patch.get_hatch()
        assert (numpy.ma.getmaskarray(axes.images[0].get_array()) == ~mask.numpy()).all()
    draws(view.mask(torch.zeros(2, 3, dtype=torch.bool)), caplog)


def test_heads_share_one_scale():
    figure = view.heads(maps()).figure()
    norms = [axes.images[0].norm for axes in figure.axes[:6]]
    assert {(norm.vmin, norm.vmax) for norm in norms} == {(0, 1)}
    shown = [axes.images[0].get_array().data for axes in figure.axes[:6]]
    numpy.testing.assert_array_equal(
        numpy.stack(shown), maps().weights.transpose(0, 1).flatten(0, 1).numpy()
    )  # a column for each layer


@pytest.mark.parametrize("style", palette.THEMES)
def test_colormap_is_perceptually_even_and_starts_at_background(style):
    with view.theme(style):
        page = numpy.array(matplotlib.colors.to_rgb(matplotlib.rcParams["figure.facecolor"]))
        ramp, both = numpy.array(palette.sequential_colormap().colors), numpy.array(palette.diverging_colormap().colors)
    linear = numpy.where(ramp <= 0.04045, ramp / 12.92, ((ramp + 0.055) / 1.055) ** 2.4)
    light = 116 * numpy.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16
    steps = numpy.diff(light[::15]) * (-1 if style == "light" else 1)  # a shade apart, 8 bits are too few to tell
    numpy.testing.assert_allclose(ramp[0], page, atol=1e-3)
    numpy.testing.assert_allclose(both[len(both) // 2], page, atol=1e-3)
    assert steps.min() > 0
    assert abs(light[-1] - light[0]) > 60
    assert steps.max() < 2.5 * steps.min()


def test_drawing_restores_rcparams():
    before = dict(matplotlib.rcParams)
    png(view.heads(maps()))
    view.heads(maps()).figure("dark")
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(
    ("xs", "given", "shown"),
    [
        ((32, 64, 128, 256, 512), {}, ["32", "64", "128", "256", "512"]),  # few points: all of them
        ((300, 1000, 30_000), {}, ["300", "1,000", "30,000"]),
        ((10, 11, 12, 80), {}, ["10", "20", "50"]),  # too near each other
        (range(1, 60), {}, ["1", "2", "5", "10", "20", "50"]),  # too many
        ((1, 10, 1000, 1001), {}, ["1", "10", "100", "1,000"]),  # enough decades
        ((32, 64, 128), {"xticks": [50, 100]}, ["50", "100"]),  # as asked for
    ],
)
def test_lines_log_axis_ticks_are_readable(xs, given, shown):
    series = {"a": (xs, [0.0013 * x for x in xs])}
    drawn = view.lines(series, x="x", y="y", title="t", xscale="log", yscale="log", **given).figure()
    drawn.draw_without_rendering()
    (axes,) = drawn.axes
    low, high = axes.get_xlim()
    inside = [label for label in axes.get_xticklabels() if low <= label.get_position()[0] <= high]
    assert [label.get_text() for label in inside] == shown
    upwards = [label.get_text() for label in axes.get_yticklabels()]
    assert {"0.01", "0.1"} & set(upwards)
    assert not any("$" in label for label in upwards)


@pytest.mark.parametrize(("names", "beside"), [(("a", "b", "c", "d"), 0), (("a", "b", "c", "d", "a long name"), 1)])
def test_lines_legend_moves_beside_axes_when_crowded(names, beside):
    series = {name: (range(7), [float(start + x) for x in range(7)]) for start, name in enumerate(names)}
    figure = view.lines(series, x="step", y="loss", title="lines that leave no corner free").figure()
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert len(figure.legends) == beside
    assert (axes.get_legend() is None) == bool(beside)
    for legend in figure.legends:
        assert legend.get_window_extent().x0 >= axes.get_window_extent().x1


@pytest.mark.parametrize(("top", "longest"), [(None, [1.0, 1.0]), (1.0, [0.5, 0.25])])
def test_rows_scale_per_column_or_shared(top, longest):
    drawn = view.bar_table(["a", "b"], {"one": [0.5, 0.1], "other": [0.25, 0.2]}, "t", top).figure()
    ends = [axes.get_xlim()[1] for axes in drawn.axes]
    widths = [max(bar.get_width() for bar in axes.patches) for axes in drawn.axes]
    assert [width / end for width, end in zip(widths, ends)] == pytest.approx([share / 1.22 for share in longest])


def test_repeated_runs_are_drawn_as_mean_and_range_with_reference():
    trained = torch.tensor([[0.1, 0.5], [0.2, 0.8], [0.6, 0.8]])
    series = {"one": ([1, 2], trained), "other": ([1, 2], [0.3, 0.3])}
    axes = view.lines(series, x="x", y="y", title="t", references={"by chance": 0.25}).figure().axes[0]
    assert axes.lines[0].get_ydata() == pytest.approx([0.3, 0.7])
    (band,) = axes.collections
    assert sorted({*band.get_paths()[0].vertices[:, 1].round(6)}) == pytest.approx([0.1, 0.5, 0.6, 0.8])
    assert list(axes.lines[-1].get_ydata()) == [0.25, 0.25]
    assert [text.get_text() for text in axes.texts] == ["by chance"]
    bars = view.bars(["a", "b"], {"one": trained}, "t", references={"by chance": 0.25}).figure().axes[0]
    assert [bar.get_height() for bar in bars.patches] == pytest.approx([0.3, 0.7])
    assert [[*ends[:, 1]] for ends in bars.collections[0].get_segments()] == [
        pytest.approx([0.1, 0.6]),
        pytest.approx([0.5, 0.8]),
    ]
    rows = view.bar_table(["a", "b"], {"one": trained}, "t", 1).figure().axes[0]
    assert [text.get_text() for text in rows.texts] == ["0.3 (0.1 to 0.6)", "0.7 (0.5 to 0.8)"]
    same = torch.tensor([[0.3, 1.0], [0.5, 1.0]])  # where all trainings agree there is no range
    rows = view.bar_table(["a", "b"], {"one": same}, "t", 1).figure().axes[0]
    assert [text.get_text() for text in rows.texts] == ["0.4 (0.3 to 0.5)", "1.0"]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ([99.3, 91.0, 3.0], ["99.3", "91.0", "3.0"]),
        ([3.0, 12.0, 0.0], ["3", "12", "0"]),
        ([0.97, 0.02, 1.0], ["0.97", "0.02", "1.00"]),
        ([0.97, 0.02, 0.9996], ["0.97", "0.02", "> 0.99"]),  # of a share
        ([0.97, 1.23, 0.9996], ["0.97", "1.23", "1.00"]),
        ([0.095, 0.0123, 0.0], ["0.095", "0.012", "0.000"]),
        ([0.5, 0.25, 0.00001], ["0.50", "0.25", "< 0.01"]),
        ([0.0, 0.0, 0.0], ["0", "0", "0"]),
        ([0.25, -1.5, -0.0001], ["0.25", "−1.50", "> −0.01"]),
    ],
)
def test_rows_numbers_of_column_share_decimal_places(column, said):
    rows = view.bar_table(["a", "b", "c"], {"one": column}, "t").figure().axes[0]
    assert [text.get_text() for text in rows.texts] == said


def test_range_that_reads_as_zero_on_both_sides_is_one_bound():
    trained = torch.tensor([[0.51, -0.001, 0.001], [0.73, 0.002, 0.002]])
    rows = view.bar_table(["a", "b", "c"], {"one": trained}, "t").figure().axes[0]
    assert [text.get_text() for text in rows.texts] == ["0.62 (0.51 to 0.73)", "within ±0.01", "< 0.01"]


@pytest.mark.parametrize("top", [None, 1.0])
@pytest.mark.parametrize("lines", [{}, {"half": 0.5, "all": 1.0}])
def test_rows_numbers_stand_clear_of_bars_lines_and_edges(top, lines):
    columns = {"one": torch.tensor([[0.2, 0.9], [0.4, 1.0]]), "other": torch.tensor([[-0.05, 0.5], [0.1, 0.7]])}
    figure = view.bar_table(["a", "b"], columns, "t", top, references=lines).figure()
    figure.draw_without_rendering()
    for axes, values in zip(figure.axes, columns.values()):
        for text, ends in zip(axes.texts, values.T):
            box = text.get_window_extent().transformed(axes.transData.inverted())
            assert box.x0 > ends.max()
            assert all(box.x0 > level for level in lines.values())
            assert box.x1 <= axes.get_xlim()[1]


def test_dashed_line_has_colour_of_line_before():
    names = [f"line {n}" for n in range(11)]
    lines = {name: ([1.0, 2.0], [float(n), 1.0]) for n, name in enumerate(names)}
    (axes,) = view.lines(lines, x="x", y="y", title="t", dashed=names[1:4:2], at_ends=True).figure().axes
    drawn = axes.lines[: len(names)]  # samples beside the names follow
    assert [line.get_linestyle() for line in drawn] == ["-", "--", "-", "--", *7 * ["-"]]
    colours = [line.get_color() for line in axes.lines]
    assert colours[0] == colours[1] != colours[2] == colours[3] != colours[4]
    assert len({*colours}) == 8  # of nine, the last has the first one's again
    assert {text.get_color() for text in axes.texts} == {*colours}


def test_scatter_axis_begins_where_asked_unless_point_lies_below():
    points = torch.tensor([[3.0, -5.0], [9.0, 2.0]])
    shown = view.scatter(points, ["a", "b"], "t", axis_starts=(0.0, -1.0))
    assert shown.document["range"] == [[0.0, 9.0], [-5.0, 2.0]]
    axes = shown.figure().axes[0]
    assert axes.get_xlim()[0] == pytest.approx(-0.06 * 9.0)
    assert axes.get_ylim()[0] == pytest.approx(-5.0 - 0.06 * 7.0)


def test_scatter_axis_may_be_logarithmic():
    points = torch.tensor([[3.0, 0.01], [9.0, 2.0]])
    shown = view.scatter(points, ["a", "b"], "t", scales=("linear", "log"))
    assert shown.document["scales"] == ["linear", "log"]
    assert shown.document["range"][1] == pytest.approx([0.01, 2.0])  # as given, not as logarithms
    axes = shown.figure().axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    labels = [tick.label1.get_text() for tick in axes.yaxis.get_major_ticks()]
    assert {"0.01", "0.1", "1"} <= set(labels)


@pytest.mark.parametrize(("low", "begin"), [(0.0, None), (-1.0, None), (0.5, 0.0)])
def test_logarithmic_axis_needs_numbers_above_zero(low, begin):
    points = torch.tensor([[low, 1.0], [9.0, 2.0]])
    with pytest.raises(ValueError, match="the axis 'cost' is logarithmic and has numbers that are not above 0"):
        view.scatter(points, ["a", "b"], "t", ("cost", "y"), scales=("log", "linear"), axis_starts=(begin, None))


def test_scatter_legend_keeps_group_order():
    points, groups = torch.eye(3, 2), ["cold", "mild", "hot"]
    figure = view.scatter(points, ["a", "b", "c"], "t", groups=groups).figure()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == groups


def test_scatter_labels_do_not_overlap_or_leave_axes():
    points = torch.rand(80, 2, generator=torch.Generator().manual_seed(1))
    figure = view.scatter(points, [f"point {i}" for i in range(80)], "t", mark=["point 7"]).figure()
    (axes,) = figure.axes
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    assert 10 < len(boxes) < 80
    assert "point 7" in [text.get_text() for text in axes.texts]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    frame = axes.get_window_extent()
    assert all(frame.contains(box.x0, box.y0) and frame.contains(box.x1, box.y1) for box in boxes)


def test_curves_running_mean_is_centred():
    history = [Step(step, float(step), 0.1, 9.0) for step in range(400)]
    axes = view.curves(history, held_out=[(0, 3.0), (399, 2.0)]).figure().axes[0]
    strong = axes.lines[1]
    assert abs(strong.get_xdata() - strong.get_ydata()).max() < 0.51
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "training, each step",
        "training, mean of 10 steps",
        "held out",
    ]


def test_curves_have_named_reference_lines():
    axes = view.curves(HISTORY, references={"an even guess": 2.5}).figure().axes[0]
    assert list(axes.lines[-1].get_ydata()) == [2.5, 2.5]
    assert axes.lines[-1].get_linestyle() == "--"
    assert [text.get_text() for text in axes.texts] == ["an even guess"]


def test_single_points_of_a_chart_have_different_markers():
    points = {str(n): ([n], [1.0]) for n in range(8)}
    axes = view.lines(points, x="x", y="y", title="t").figure().axes[0]
    assert len({line.get_marker() for line in axes.lines}) == 8


def test_lines_apart_share_scale_and_show_shaded_range():
    series = {name: ([1, 2, 3, 4], [rise * x for x in (1, 2, 3, 4)]) for rise, name in enumerate("abcdefg", 1)}
    figure = view.lines(
        series, x="place", y="loss", title="t", in_panels=True, shaded={"trained": (1, 2)}, references={"base": 3.0}
    ).figure()
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(series)
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    for axes, (_, ys) in zip(figure.axes, series.values()):
        (own,) = [line for line in axes.lines if line.get_linewidth() == 1.8]
        assert list(own.get_ydata()) == ys
        assert axes.patches[0].get_extents().transformed(axes.transData.inverted()).x1 == pytest.approx(2)
    said = [[text.get_text() for text in axes.texts if text.get_text()] for axes in figure.axes]
    assert said == [["trained"], [], [], ["base"], [], [], []]
    (axes,) = view.lines(series, x="x", y="y", title="t", shaded={"trained": (1, 2)}).figure().axes
    assert [text.get_text() for text in axes.texts] == ["trained"]


@pytest.mark.parametrize("ylim", [(-3, None), (None, 50), (None, None)])
def test_open_limit_of_panels_is_computed_from_all_lines_and_bands(ylim):
    series = {"low": ([1, 2], torch.zeros(3, 2)), "high": ([1, 2], torch.tensor([[10.0, -20.0], [30.0, 40.0]]))}
    figure = view.lines(series, x="x", y="y", title="t", in_panels=True, ylim=ylim).figure()
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert low == ylim[0] if ylim[0] is not None else low <= -20
        assert high == ylim[1] if ylim[1] is not None else high >= 40


def test_lines_summary_of_series_ending_in_nan_has_no_value():
    line = view.lines({"a": ([1, 2], [1.0, float("nan")]), "b": ([1, 2], [3.0, 4.0])}, x="x", y="y", title="t")
    assert "a none, b 4" in line.summary


def test_lone_surrogates_in_text_are_written_as_codes(tmp_path):
    for name, make in {
        "bars": lambda t: view.bars(["\ud800", "b"], {"one": [0.7, 0.3]}, t),
        "lines": lambda t: view.lines({"\udfff": ([1], [2.0])}, x="x", y="y", title=t),
    }.items():
        for ending in ("html", "svg", "png"):
            path = make("a\ud800b\0").save(tmp_path / f"{name}.{ending}")
        assert "a⟨D800⟩b⟨0⟩" in (tmp_path / f"{name}.html").read_text("utf-8"), path


def test_links_min_weight_counts_match_drawn_lines():
    weights = torch.tensor([[[[0.7, 0.2, 0.1], [0.34, 0.33, 0.33], [1.0, 0.0, 0.0]]]])
    for least, count in (
        (0.02, "7 weights"),
        (0.2, "6 weights"),
        (0.34, "3 weights"),
        (0.99, "1 weight"),
        (0.0, "7 weights"),
    ):
        picture = view.links(AttentionMaps(weights), min_weight=least)
        assert f"; {count} of at least" in picture.summary
        assert len(picture.figure().axes[0].collections[0].get_segments()) == int(count.split()[0])


def test_bars_of_many_words_stand_in_two_columns_with_as_many_rows_as_they_need():
    letters = list("abcdefghijklmnopqrstuvwxyz")
    two, five = (
        view.bars(letters, {str(n): torch.rand(26) for n in range(count)}, "t", y="share").figure() for count in (2, 5)
    )
    points = [
        [(round(box.x0, 1), box.y0) for box in (axes.get_position() for axes in figure.axes)] for figure in (two, five)
    ]
    counts = [(len({x for x, _ in found}), len({y for _, y in found})) for found in points]
    assert counts == [(2, 1), (2, 3)]  # columns, rows
    assert [axes.get_visible() for axes in five.axes] == [True] * 5 + [False]
    assert [axes.get_ylabel() for axes in five.axes] == ["share", "", "share", "", "share", ""]
    (alone,) = view.bars(range(100), {"one": torch.rand(100)}, "t").figure().axes
    assert alone.get_visible()  # and has the picture for itself


def test_range_of_baseline_is_shaded_across_rows():
    columns = {"right": torch.tensor([[3.0, 1.0], [5.0, 2.0]]), "loss": torch.tensor([[0.5, 0.1], [0.25, 0.2]])}
    figure = view.bar_table(["whole", "part"], columns, "t", baseline="whole").figure()
    spans = [[patch for patch in axes.patches if patch.get_zorder() == 0] for axes in figure.axes]
    assert [(band.get_x(), band.get_width()) for (band,) in spans] == [(3, 2), (0.25, 0.25)]


def test_bars_are_signed_grey_and_compared_with_references():
    columns = {"one": [0.5, -0.25], "other (%)": [40.0, 20.0]}
    given = {"chance": {"other (%)": 50.0}, "two": 0.2}
    one, other = view.bar_table(["a", "b"], columns, "t", references=given, grey=["b"]).figure().axes
    assert [bar.get_width() for bar in one.patches] == [0.5, -0.25]
    assert one.get_xlim() == pytest.approx((-0.25, -0.25 + 1.22 * 0.75))
    assert other.get_xlim() == pytest.approx((0, 1.22 * 50))
    assert [line.get_xdata()[0] for line in one.lines] == pytest.approx([0, 0.2])  # the axis, then the reference
    assert [line.get_xdata()[0] for line in other.lines] == pytest.approx([50, 0.2])
    assert [text.get_text() for text in other.texts] == ["40", "20", "chance", "two"]
    assert all(text.xyann == (2.5, 0) for text in other.texts[2:])  # beside the end of its line, not under it
    blue, grey = (bar.get_facecolor() for bar in one.patches)
    assert blue[2] > 2 * blue[0]
    assert max(grey[:3]) - min(grey[:3]) < 0.1
    shared = (
        view.bar_table(["a"], {"one": torch.tensor([[1.2345], [1.3]]), "other": [33.31]}, "t", limit=50).figure().axes
    )
    assert [text.get_text() for axes in shared for text in axes.texts] == ["1.3 (1.2 to 1.3)", "33.3"]
    panel = view.bars([1, 2], {"one": [0.5, -0.25]}, "t", grey=[2], x="what they are").figure()
    assert panel.get_supxlabel() == "what they are"
    assert [bar.get_facecolor() for bar in panel.axes[0].patches] == [blue, grey]
    pair = view.bars([1, 2], {"one": [0.5, 0.2], "other": [0.1, 0.2]}, "t", grey={"other": [1]}).figure()
    assert [bar.get_facecolor() for axes in pair.axes for bar in axes.patches] == [blue, blue, grey, blue]
    with pytest.raises(LookupError, match="grey is given for 'third'; the series are"):
        view.bars([1, 2], {"one": [0.5, 0.2]}, "t", grey={"third": [1]})


def test_rows_of_a_group_stand_apart_with_their_names_and_numbers():
    names, runs = ["a", "b", "c", "d"], {"one": torch.tensor([[1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 5.0]])}
    (axes,) = view.bar_table(names, runs, "t", gap_before=["b", "d"], references={"half": 2.0}).figure().axes
    heights = [0, 1.6, 2.6, 4.2]
    assert [bar.get_y() + bar.get_height() / 2 for bar in axes.patches] == pytest.approx(heights)
    assert [text.get_position()[1] for text in axes.texts[:4]] == pytest.approx(heights)
    assert axes.get_yticks() == pytest.approx(heights)
    assert [text.get_text() for text in axes.get_yticklabels()] == names
    assert axes.texts[-1].xy[1] > heights[-1]  # the name of the dashed line


def test_shares_name_the_outlined_heads_that_have_a_word():
    columns = {"one": torch.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])}
    (axes,) = view.head_table(columns, outlined={(1, 0): "chosen", (0, 2): "second"}).figure().axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["0.0", "0.1", "second 0.2", "chosen 1.0", "1.1", "1.2"]
    (axes,) = view.head_table(columns, outlined=[(1, 0)]).figure().axes
    assert [label.get_text() for label in axes.get_yticklabels()][3] == "1.0"


def test_rows_and_cells_are_outlined_in_every_head_and_step():
    some = maps(2, 2)
    outlined = [1, (2, 3)]

    def frames(figure):  # left, top, width, height, in cells
        boxes = [box for axes in figure.axes for box in axes.patches if not box.get_fill()]
        bounds = ((*box.get_xy(), box.get_width(), box.get_height()) for box in boxes)
        return [[round(number, 2) for number in bound] for bound in bounds]

    expected = [[2.56, 1.56, 0.88, 0.88], [-0.5, 0.56, 7, 0.88]]
    assert frames(view.head(some, 0, 1, outlined=outlined).figure()) == expected
    sheet = view.heads(some, outlined=outlined)
    assert frames(sheet.figure()) == 4 * expected
    assert (sheet.document["outlined"], sheet.document["dividers"]) == ([[2, 3]], [("rows", 1), ("rows", 2)])
    table = view.head_table({"one": torch.rand(2, 3)}, outlined=[(1, 0)]).figure()
    assert frames(table) == [[-0.5, 2.56, 1, 0.88]]
    film = view.steps({"first": some, "second": some, "third": some}, outlined=outlined, static_steps=["second"])
    assert frames(film.figure()) == expected
    assert film.summary.startswith("Layer 0, head 0, step by step (1 of 3 frames)")
    assert len(film.document["parts"]) == 3


def test_steps_say_how_many_outlined_cells_are_strongest():
    rows = [[[0.7, 0.3], [0.4, 0.6]], [[0.2, 0.8], [0.4, 0.6]]]
    film = {f"step {n}": AttentionMaps(torch.tensor(weights)[None, None]) for n, weights in enumerate(rows)}
    figure = view.steps(film, outlined=[(0, 1), (1, 1)]).figure()
    titles = [axes.get_xlabel() for axes in figure.axes[:2]]
    assert titles == ["step 0: 1 of 2", "step 1: 2 of 2"]
    assert len(figure.legends) == 1
    plain = view.steps(film).figure()
    assert (plain.axes[0].get_xlabel(), plain.legends) == ("step 0", [])


def test_steps_use_custom_axis_names():
    parts = {"before": maps(1, 1), "after": maps(1, 1)}
    shown = view.steps(parts, axes=("letter that comes next", "place"))
    assert shown.document["axes"] == ["letter that comes next", "place"]
    figure = shown.figure()
    assert [figure.get_supylabel(), figure.get_supxlabel()] == ["letter that comes next", "place"]
    assert [view.steps(parts).figure().get_supylabel(), view.heads(parts["after"]).figure().get_supxlabel()] == [
        "query",
        "key",
    ]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: view.heads(maps(2, 2, 17)), "attention weight, square-root scale"),
        (
            lambda: view.compare(maps(1, 1, 17), maps(1, 1, 17), layer=0, head=0),
            "difference of attention weights, square-root scale",
        ),
    ],
)
def test_colour_bar_says_what_it_measures_and_how(make, said):
    assert said in {axes.get_ylabel() for axes in make().figure().axes}


def test_sheet_of_letters_names_its_words_at_their_beginnings():
    line = "a line of so many letters"
    weights = torch.ones(2, 3, len(line), len(line)).tril().softmax(-1)
    letters = AttentionMaps(weights, query_tokens=list(line))
    first, *others = (axes for axes in view.heads(letters).figure().axes if axes.images)
    assert [tick.get_text() for tick in first.get_xticklabels()] == line.split()
    assert first.get_xticks().tolist() == [0, 2, 7, 10, 13, 18]
    assert [tick.get_text() for tick in first.get_yticklabels()] == line.split()
    assert len(others[0].get_yticks()) == 0
    tokens = AttentionMaps(weights, query_tokens=[f"w{n}" for n in range(len(line))])
    assert not any(axes.get_xticks().size for axes in view.heads(tokens).figure().axes if axes.images)


def test_shares_with_a_range_have_two_decimals_without_one_three():
    def numbers(values):
        (axes,) = view.bar_table(["a"], {"share": values}, "t").figure().axes
        return [text.get_text() for text in axes.texts]

    assert numbers(torch.tensor([[0.8984], [0.9671]])) == ["0.93 (0.90 to 0.97)"]
    assert numbers([0.9328]) == ["0.933"]
    assert numbers(torch.tensor([[12.34], [12.56]])) == ["12.5 (12.3 to 12.6)"]


@pytest.mark.parametrize(("lowest", "lines"), [(-1.0, 1), (1.0, 0)])
def test_scatter_has_a_line_at_zero_where_numbers_have_both_signs(lowest, lines):
    points = torch.tensor([[1.0, lowest], [2.0, 3.0]])
    (axes,) = view.scatter(points, ["a", "b"], "t").figure().axes
    assert len(axes.lines) == lines
    assert [line.get_ydata()[0] for line in axes.lines] == [0] * lines


@pytest.mark.parametrize("style", palette.THEMES)
def test_small_numbers_in_cells_are_muted(style):
    weights = torch.tensor([[0.049, 0.051, 0.9]])
    axes = view.head(AttentionMaps(weights[None, None]), 0, 0).figure(style).axes[0]
    with view.theme(style):
        soft = palette.muted()
    numbers = [(text.get_text(), text.get_color() == soft) for text in axes.texts]
    assert numbers == [("0.05", True), ("0.05", False), ("0.90", False)]
