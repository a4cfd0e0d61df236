"""Still charts: where names, numbers and the line at 0 stand."""

import itertools
import math

import pytest
import torch

from tfviz import view
from tfviz.look import AttentionMaps


def texts(axes):
    return {text.get_text(): text for text in axes.texts}


def test_name_of_line_that_breaks_off_stands_at_its_last_point():
    falls = [10.0**-x if x < 4 else math.nan for x in range(9)]
    chart = view.lines(
        {"short": (range(9), falls), "long": (range(9), [0.5] * 9)}, x="x", y="y", title="t", at_ends=True, yscale="log"
    )
    named = texts(chart.figure().axes[0])
    assert named["short"].xy == pytest.approx((3, 1e-3))
    assert named["long"].xycoords == "axes fraction"


def test_log_axis_has_powers_of_ten_where_a_number_would_be_too_long():
    def ticks(low):
        chart = view.lines({"a": ([0, 1], [1.0, low])}, x="x", y="y", title="t", yscale="log").figure()
        return {label.get_text() for label in chart.axes[0].get_yticklabels()}

    assert {"1", "10⁻⁴"} <= ticks(1e-8)
    assert {"1", "0.01"} <= ticks(1e-4)
    assert not any("e" in label for label in ticks(1e-8))


def test_name_of_stretch_avoids_reference_line():
    def name_of(references):
        lines = {"a": ([0, 1, 2], [0.5, 0.5, 0.5])}
        chart = view.lines(lines, x="x", y="y", title="t", ylim=(0, 1), shaded={"here": (0, 1)}, references=references)
        return texts(chart.figure().axes[0])["here"].get_verticalalignment()

    assert name_of({}) == "bottom"
    assert name_of({"low": 0.1}) == "top"


def test_signed_bars_begin_at_a_line_at_0():
    def drawn(low):
        bars = view.draw.bars(["a", "b"], limit=2.0)
        return (
            view.interact(lambda x: x * torch.tensor([low, 1.0]), x=(0.5, 1.5), draw={"output": bars}).figure().axes[0]
        )

    signed, plain = drawn(-1.0), drawn(1.0)
    assert not signed.spines["left"].get_visible()
    assert [list(line.get_xdata()) for line in signed.lines] == [[0, 0]]
    assert plain.spines["left"].get_visible()
    assert not plain.lines


def test_bars_with_the_expected_sign_are_filled_and_others_outlined():
    bars = view.draw.bars(["a", "b", "c"], expected=[1, 1, -1], ends=("no", "yes"), limit=2.0)
    factors = torch.tensor([1.0, -1.0, -1.0])
    axes = view.interact(lambda x: x * factors, x=(0.5, 1.5), draw={"output": bars}).figure().axes[0]
    drawn, sides = ([bar.get_width() for bar in container] for container in axes.containers)
    assert (drawn, sides) == ([1.0, -1.0, -1.0], [2.0, 2.0, -2.0])
    assert [bar.get_facecolor()[3] > 0 for bar in axes.containers[0]] == [True, False, True]
    assert [text.get_text() for text in axes.texts] == ["1 ✓", "−1 ✗", "−1 ✓", "← no", "yes →"]


def test_dot_at_the_edge_is_whole_and_dot_beyond_it_is_not_drawn_outside():
    dots = view.draw.dots(["edge", "beyond"], limit=1.0)
    shown = view.interact(
        lambda x: x * torch.tensor([[0.5, 0.0], [0.5, 3.0]]), x=(0.5, 1.5), draw={"output": dots}
    ).figure()
    points = {
        tuple(line.get_xydata()[0]): line.get_clip_on() for line in shown.axes[0].lines if line.get_marker() == "o"
    }
    assert points == {(0.5, 0.0): False, (0.5, 3.0): True}


def test_names_in_planes_do_not_cross_paths():
    corners = torch.tensor([[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, -1.0]])
    names = ["far to the west", "north", "far to the east", "south"]
    figure = view.planes({"p": corners}, names, "t", mark=names, paths=[[0, 1, 2, 3, 0]]).figure()
    axes = figure.axes[0]
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    assert len(boxes) == 4
    ring = axes.transData.transform(corners[[0, 1, 2, 3, 0]].numpy())
    for start, end in itertools.pairwise(ring):
        for share in (0.1, 0.3, 0.5, 0.7, 0.9):
            assert not any(box.contains(*(start + share * (end - start))) for box in boxes)


def test_words_of_tall_film_stand_above_its_first_and_below_its_last_panel():
    words = [*"abcdefghijklmnop"]
    film = {
        f"step {n}": AttentionMaps(torch.rand(1, 1, 2, 16), query_tokens=["x", "y"], key_tokens=words) for n in range(4)
    }
    panels = view.steps(film).figure().axes[:4]
    shown = [[label.get_text() for label in axes.get_xticklabels()] for axes in panels]
    assert shown == [words, [], [], words]
    ticks = [axes.xaxis.get_major_ticks()[0] for axes in (panels[0], panels[3])]
    assert [tick.label2.get_visible() for tick in ticks] == [True, False]  # above
    assert [tick.label1.get_visible() for tick in ticks] == [False, True]  # below


@pytest.mark.parametrize(
    ("numbers", "settings", "ends"),
    [
        ([3.0, 5.4, 40.0], {}, (2, 50)),
        ([0.02, 0.3], {}, (0.01, 0.5)),
        ([3.0, 5.4, 40.0], {"ylim": (3, 40)}, (3, 40)),
    ],
)
def test_short_log_axis_ends_at_a_number_that_is_written(numbers, settings, ends):
    chart = view.lines(
        {"a": (range(len(numbers)), numbers)}, x="x", y="y", title="t", yscale="log", **settings
    ).figure()
    assert chart.axes[0].get_ylim() == pytest.approx(ends)


@pytest.mark.parametrize(("count", "rows"), [(2, [2]), (3, [3]), (4, [2, 2]), (5, [3, 2]), (7, [3, 3, 1])])
def test_frames_stand_in_rows_of_about_equal_length(count, rows):
    frames = {f"step {n}": AttentionMaps(torch.rand(1, 1, 4, 4)) for n in range(count)}
    figure = view.steps(frames, static_steps=list(frames)).figure()
    tops = [round(axes.get_subplotspec().rowspan.start) for axes in figure.axes[:count]]
    assert [tops.count(row) for row in range(len(rows))] == rows


def test_name_of_reference_line_meets_no_other_name_and_no_other_line():
    near = view.bar_table(["a"], {"one": [1.0]}, "t", references={"the first of two": 0.5, "the second": 0.6})
    far = view.bar_table(["a"], {"one": [1.0]}, "t", references={"low": 0.1, "high": 0.9})
    for chart, rows in ((near, 2), (far, 1)):
        (axes,) = chart.figure().axes
        names = axes.texts[1:]
        assert len({text.xy[1] for text in names}) == rows
        ends = [(axes.lines[i].get_ydata()[1], text.xy[1]) for i, text in enumerate(names)]
        assert all(end > name for end, name in ends)  # a line goes on to its name
    left, right = near.figure().axes[0].texts[1:]
    assert left.xy[1] > right.xy[1]  # the name of the left line passes below the end of the right one


def test_axis_of_bars_reaches_a_reference_line_below_0():
    (axes,) = view.bar_table(["a"], {"one": [1.0]}, "t", references={"low": -0.5}).figure().axes
    assert axes.get_xlim()[0] == -0.5


def test_three_wide_panels_of_bars_stand_one_below_the_other():
    words = [f"{n // 4}.{n % 4}" for n in range(16)]
    panels = view.bars(words, {name: range(16) for name in "abc"}, "t").figure().axes
    assert len({round(axes.get_position().x0, 2) for axes in panels}) == 1
    assert len({round(axes.get_position().y0, 2) for axes in panels}) == 3


def test_scatter_of_training_runs_draws_mean_with_lines_from_lowest_to_highest():
    runs = torch.tensor([[[1.0, 10.0], [5.0, 20.0]], [[3.0, 10.0], [5.0, 26.0]], [[2.0, 13.0], [5.0, 20.0]]])
    shown = view.scatter(runs, ["a", "b"], "t")
    assert shown.document["range"] == [[1.0, 5.0], [10.0, 26.0]]
    axes = shown.figure().axes[0]
    (dots,) = (drawn for drawn in axes.collections if len(drawn.get_offsets()) == 2)
    assert dots.get_offsets().tolist() == [[2.0, 11.0], [5.0, 22.0]]
    along_x, along_y = (drawn.get_segments() for drawn in axes.collections if hasattr(drawn, "get_segments"))
    assert [line.tolist() for line in along_x] == [[[1, 11], [3, 11]], [[5, 22], [5, 22]]]
    assert [line.tolist() for line in along_y] == [[[2, 10], [2, 13]], [[5, 20], [5, 26]]]
    start, size = shown.document["spread"]
    low, high = torch.frombuffer(bytearray(shown.data[start : start + size]), dtype=torch.float32).view(2, 2, 2)
    assert low.tolist() == [[1.0, 10.0], [5.0, 20.0]]
    assert high.tolist() == [[3.0, 13.0], [5.0, 26.0]]
