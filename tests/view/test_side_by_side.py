"""Still pictures of links, words, alignments, comparisons and steps: exact contents and input checks."""

import itertools

import numpy
import pytest
import torch
from figure_checks import NASTY, SHAPES, draws, maps, panels, sound
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from tfviz import view
from tfviz.look import AttentionMaps
from tfviz.view.figures import attention, heatmap, links, palette
from tfviz.view.figures import text as running_text
from tfviz.view.spec import DIFFERENCE_SCALE

SENTENCE = ["The", "animal", "did", "not", "cross", "the", "street", "because", "it", "was", "tired"]


def sentence(words=SENTENCE, **given):
    return maps(queries=len(words), keys=len(words), query_tokens=words, causal=True, **given)


def growing(count):
    return {f"step {n}": sentence(SENTENCE[: n + 2]) for n in range(count)}


VIEWS = {
    "links": lambda: links.links(sentence(), 1, (0, 2)),
    "links of one head": lambda: links.links(maps(causal=True), 0, (1,)),
    "words": lambda: running_text.attended_text(sentence(), 0, 1),
    "words of two sentences": lambda: running_text.attended_text(maps(), 1, 2, query=3),
    "alignment": lambda: attention.alignment(maps(), [(0, 0), (1, 4), (4, 6)]),
    "compare": lambda: attention.compare(sentence(SENTENCE[:4]), sentence(SENTENCE[:4], seed=2), 0, 1),
    "compare two sizes": lambda: attention.compare(maps(), maps(1, 1, 3, 3)),
    "steps": lambda: attention.steps(growing(3)),
}


def lines(picture, style="light"):
    axes = picture.figure(style).axes[0]
    return [collection for collection in axes.collections if isinstance(collection, LineCollection)]


def boxes(axes, colour=None):
    found = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    return [box for box in found if colour is None or to_hex(box.get_edgecolor()) == colour]


VERMILLION = "#d55e00"


@pytest.mark.parametrize("name", VIEWS)
def test_figure_picture_is_deterministic_and_logs_no_warnings(name, caplog, tmp_path):
    sound(VIEWS[name], caplog, tmp_path)


@pytest.mark.parametrize(
    "make",
    [
        lambda words: links.links(words, heads=(0, 1), title="漢 $x$ 👩"),
        lambda words: running_text.attended_text(words),
        *(
            lambda _, word=word: running_text.attended_text(sentence([word]))
            for word in (NASTY[1], *NASTY[4:6], NASTY[7], NASTY[9])
        ),
        lambda words: running_text.attended_text(
            maps(queries=len(NASTY), keys=2, query_tokens=NASTY, key_tokens=["\n", "\ud800"]), query=7
        ),
        lambda words: attention.alignment(words, [(0, 0)], title="\n"),
        lambda words: attention.compare(words, sentence(NASTY[::-1]), names=("漢 $_$", "\ud800\n")),
        *(
            lambda _, start=start: attention.steps(dict.fromkeys(NASTY[start::3], sentence(["", "\ud800"])))
            for start in range(3)
        ),
    ],
)
def test_unusual_text_is_drawn_anywhere(make, caplog):
    draws(make(sentence(NASTY)), caplog, "svg")


@pytest.mark.parametrize("shape", SHAPES)
def test_maps_of_any_shape_are_drawn(shape, caplog):
    some = maps(*shape)
    draws(links.links(some, heads=range(shape[1])), caplog)
    draws(running_text.attended_text(some), caplog)
    draws(attention.alignment(some, [(0, 0)]), caplog)
    draws(attention.compare(some, maps(*shape, seed=2)), caplog)
    draws(attention.steps({"one": some, "two": maps(1, 1, 2, 3)}), caplog)


def test_links_draw_one_line_per_weight_above_threshold():
    weights = torch.tensor([[0.5, 0.3, 0.19, 0.01], [0.02, 0.98, 0.0, 0.0]])
    mask = torch.tensor([[True, True, False, True], [True, True, True, True]])
    some = AttentionMaps(weights[None, None], mask=mask)
    (drawn,) = lines(links.links(some))
    ends = [tuple(map(tuple, segment)) for segment in drawn.get_segments()]
    by_weight = {0.02: (1, 0), 0.3: (0, 1), 0.5: (0, 0), 0.98: (1, 1)}
    assert ends == [((0, row), (1, col)) for row, col in by_weight.values()]
    assert list(drawn.get_linewidths()) == sorted(drawn.get_linewidths())
    alphas = drawn.get_colors()[:, 3]
    numpy.testing.assert_allclose(alphas / alphas[-1], numpy.sqrt([w / 0.98 for w in by_weight]), rtol=1e-5)
    assert "4 weights" in links.links(some).summary


def test_links_use_one_colour_per_head():
    some = maps(1, 12, 4, 4)
    alone = to_hex(lines(links.links(some, heads=(3,)))[0].get_colors()[0])
    together = lines(links.links(some, heads=(11, 3, 0, 3)))
    assert [to_hex(drawn.get_colors()[0]) for drawn in together] == ["#000000", alone, alone]
    assert together[1].get_linestyle() != together[2].get_linestyle()
    assert to_hex(lines(links.links(some, heads=(0,)), "dark")[0].get_colors()[0]) == "#ffffff"
    picture = links.links(some, heads=(11, 3, 0))
    legend = picture.figure().legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["head 0", "head 3", "head 11"]
    assert not links.links(some, heads=(3,)).figure().legends


def test_links_state_number_of_omitted_words():
    long = maps(1, 1, 200, 3)
    left, right = links.links(long).figure().axes
    words = [tick.get_text() for tick in left.get_yticklabels()]
    assert words == [*map(str, range(96)), "… 104 more"]
    assert [tick.get_text() for tick in right.get_yticklabels()] == ["0", "1", "2"]
    (drawn,) = lines(links.links(long))
    assert len(drawn.get_segments()) == int((long[0, 0][:96] >= 0.02).sum())
    assert left.get_ylim() == right.get_ylim()


def test_words_shading_matches_weights_of_row():
    some = sentence()
    picture = running_text.attended_text(some, 1, 2, query=6)
    for style in palette.THEMES:
        axes = picture.figure(style).axes[0]
        (marked,) = boxes(axes, VERMILLION)
        filled = [box for box in boxes(axes) if box is not marked]
        texts = [text for text in axes.texts if text.get_text() in SENTENCE]
        assert [text.get_text() for text in texts] == SENTENCE
        assert marked.get_xy() == filled[6].get_xy()
        with palette.theme(style):
            shades = [to_hex(palette.sequential_colormap()(float(weight) ** 0.5)) for weight in some[1, 2][6, :7]]
        assert [to_hex(box.get_facecolor()) for box in filled[:7]] == shades
        assert [bool(box.get_hatch()) for box in filled] == [False] * 7 + [True] * 4


@pytest.mark.parametrize("style", palette.THEMES)
def test_words_have_sufficient_contrast_on_shading(style):
    weights = torch.linspace(0, 1, 40).expand(40, 40)
    axes = running_text.attended_text(AttentionMaps(weights[None, None])).figure(style).axes[0]

    def light(colour):
        rgb = numpy.array([int(to_hex(colour)[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        return numpy.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

    filled = [box for box in boxes(axes) if to_hex(box.get_edgecolor()) != VERMILLION]
    for box, text in zip(filled, axes.texts, strict=True):
        low, high = sorted((light(box.get_facecolor()), light(text.get_color())))
        assert (high + 0.05) / (low + 0.05) > 3.8


def test_words_fit_their_shading_without_overlap():
    words = [*SENTENCE, " of", "\n", "a", "b", "c", "W" * 30] * 9
    figure = running_text.attended_text(sentence(words)).figure()
    figure.set_dpi(200)  # as it is saved: glyphs are rounded to pixels
    figure.draw_without_rendering()
    axes = figure.axes[0]
    shades = [box for box in boxes(axes) if to_hex(box.get_edgecolor()) != VERMILLION]
    frames = [box.get_window_extent() for box in shades]
    for frame, text in zip(frames, axes.texts, strict=True):
        inside = text.get_window_extent()
        assert frame.x0 - 1 <= inside.x0
        assert inside.x1 <= frame.x1 + 1
    for before, after in itertools.pairwise(frames):
        assert before.x1 <= after.x0 or before.y0 >= after.y1
    assert max(frame.x1 for frame in frames) <= figure.bbox.x1


def test_words_break_at_newlines_and_state_omitted_words():
    line = running_text.LINE_WIDTH_INCHES, running_text.SHADE_PADDING_INCHES
    laid = list(running_text._layout(["a", "\n", " b", "c\nd", "", "x" * 99], 0, *line))
    feed = palette.drawable("\n")
    assert [(index, line, text) for index, _, line, _, text in laid] == [
        (0, 0, "a"), (1, 0, feed), (2, 1, "b"), (3, 1, f"c{feed}"), (3, 2, "d"), (4, 2, "∅"), (5, 2, "x" * 39 + "…"),
    ]  # fmt: skip
    shown = [
        text.get_text() for text in running_text.attended_text(maps(1, 1, 900, 900), query=500).figure().axes[0].texts
    ]
    assert (shown[0], shown[-1]) == ("… 101 before", "… 399 more")
    assert shown[1:-1] == [str(word) for word in range(101, 501)]


def test_words_stack_query_above_key_sentence():
    some = maps(1, 1, 2, 3, query_tokens=["un", "chat"], key_tokens=["a", "small", "cat"])
    axes = running_text.attended_text(some, query=1).figure().axes[0]
    assert [text.get_text() for text in axes.texts] == ["query", "un", "chat", "key", "a", "small", "cat"]
    (marked,) = boxes(axes, VERMILLION)
    chat = axes.texts[2].get_position()
    assert marked.get_x() < chat[0] < marked.get_x() + marked.get_width()
    assert marked.get_y() < chat[1] < marked.get_y() + marked.get_height()


def test_alignment_outlines_and_counts_gold_cells():
    weights = torch.tensor([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.0, 0.0, 0.0]])
    picture = attention.alignment(AttentionMaps(weights[None, None]), [(0, 0), (1, 1), (2, 2), (0, 0)])
    assert "1 of 3 gold cells are the strongest of their row" in picture.summary
    marked = boxes(picture.figure().axes[0], VERMILLION)
    centres = {(box.get_y() + box.get_height() / 2, box.get_x() + box.get_width() / 2) for box in marked}
    assert {(round(row), round(col)) for row, col in centres} == {(0, 0), (1, 1), (2, 2)}
    assert not boxes(attention.alignment(maps()).figure().axes[0])


def test_compare_difference_is_second_minus_first():
    first, second = sentence(), sentence(seed=2)
    shown = panels(attention.compare(first, second, 1, 2, ("before", "after")).figure())
    assert [axes.get_xlabel() for axes in shown] == ["before", "after", "after − before"]
    a, b, difference = (axes.images[0].get_array() for axes in shown)
    numpy.testing.assert_array_equal(difference.filled(0), (second[1, 2] - first[1, 2]).numpy())
    assert (numpy.ma.getmaskarray(difference) == ~first.allowed(1, 2).numpy()).all()
    assert all(axes.patch.get_hatch() for axes in shown)
    assert {(image.norm.vmin, image.norm.vmax) for image in (shown[0].images[0], shown[1].images[0])} == {(0, 1)}
    numpy.testing.assert_array_equal(a.filled(0), first[1, 2].numpy())
    numpy.testing.assert_array_equal(b.filled(0), second[1, 2].numpy())


def test_difference_scale_is_square_root_centred_at_zero():
    norm = heatmap.norm(DIFFERENCE_SCALE)
    numpy.testing.assert_allclose(norm([-1, -0.25, 0, 0.01, 1]), [0, 0.25, 0.5, 0.55, 1])
    numpy.testing.assert_allclose(norm.inverse(norm([-0.3, 0.7])), [-0.3, 0.7])


@pytest.mark.parametrize("size", [5, 900])
def test_compare_keeps_single_difference_when_downsampled(size):
    weights = torch.zeros(1, 1, size, size)
    weights[0, 0, 3, 2] = 0.5
    shown = panels(attention.compare(AttentionMaps(weights), AttentionMaps(weights * 0)).figure())
    assert shown[2].images[0].get_array().min() == -0.5


def test_compare_labels_differing_words_with_both():
    shown = panels(attention.compare(sentence(["a", "b"]), sentence(["a", "c"])).figure())
    assert [tick.get_text() for tick in shown[2].get_yticklabels()] == ["a", "b/c"]


def test_compare_of_different_shapes_has_no_difference_panel():
    picture = attention.compare(maps(), maps(1, 1, 3, 3))
    assert len(panels(picture.figure())) == 2
    assert "5 queries x 7 keys and 3 queries x 3 keys" in picture.summary


def test_steps_leave_future_tokens_blank_without_hatching():
    parts = {"one": sentence(SENTENCE[:2]), "two": sentence(SENTENCE[:4])}
    for name, axes in zip(parts, panels(attention.steps(parts, 1, 1).figure())):
        size = len(parts[name].query_tokens)
        image = axes.images[0].get_array()
        assert (numpy.ma.getmaskarray(image) == ~numpy.tri(size, dtype=bool)).all()
        assert axes.images[0].get_extent() == [-0.5, size - 0.5, size - 0.5, -0.5]
        assert not axes.patch.get_hatch()
        (hatched,) = [patch for patch in axes.patches if patch.get_hatch()]
        assert hatched.get_bbox().bounds == (-0.5, -0.5, size, size)
        assert hatched.get_zorder() < axes.images[0].get_zorder()
        assert axes.get_xlim() == (-0.5, 3.5)
        assert axes.get_ylim() == (3.5, -0.5)
        assert [tick.get_text() for tick in axes.get_xticklabels()] == SENTENCE[:size]
    free = panels(attention.steps({"a": maps(1, 1, 2, 2), "b": maps(1, 1, 3, 3)}).figure())
    assert not any(patch.get_hatch() for axes in free for patch in (axes.patch, *axes.patches))


@pytest.mark.parametrize("count", [1, 2, 6, 7, 10])
def test_steps_draw_at_most_six_including_first_and_last(count):
    picture = attention.steps(growing(count))
    names = [axes.get_xlabel() for axes in panels(picture.figure())]
    assert len(names) == min(6, count)
    assert (names[0], names[-1]) == ("step 0", f"step {count - 1}")
    left_out = f" (6 of {count} frames)"
    assert picture.summary.partition("\n")[0].endswith(left_out) == (count > 6)


def test_steps_label_shared_words_once_for_flat_maps():
    words, other = [*"abcdefghijkl"], [*"abcdefghijkm"]
    flat = {name: AttentionMaps(torch.rand(1, 1, 2, 12), ["x", "y"], words) for name in ("one", "two", "three")}
    named = [[tick.get_text() for tick in axes.get_xticklabels()] for axes in panels(attention.steps(flat).figure())]
    assert named == [words, [], []]
    flat["two"] = AttentionMaps(torch.rand(1, 1, 2, 12), ["x", "y"], other)
    named = [[tick.get_text() for tick in axes.get_xticklabels()] for axes in panels(attention.steps(flat).figure())]
    assert named == [words, other, words]


def test_divide_draws_line_before_key():
    parts = growing(3)
    step, alone = attention.steps(parts, divider=1).figure(), attention.head(maps(), 0, 0, divider=1).figure()
    for shown in (panels(step)[-1], alone.axes[0]):
        assert [list(line.get_xdata()) for line in shown.lines] == [[0.5, 0.5]]
    assert not panels(attention.steps(parts).figure())[-1].lines
    assert view.head(maps(), 0, 0, divider=1).document["dividers"] == [("columns", 1)]
    assert "dividers" not in view.head(maps(), 0, 0).document
    with pytest.raises(ValueError, match="divider is 0; it must be the index of a key, from 1 to"):
        view.head(maps(), 0, 0, divider=0)


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: links.links(maps(1, 1, 0, 0)), ValueError, r"nothing to draw.*\b0\b"),
        (lambda: running_text.attended_text(maps(1, 1, 0, 0)), ValueError, r"nothing to draw"),
        (lambda: attention.alignment(maps(1, 1, 0, 3)), ValueError, r"nothing to draw"),
        (lambda: attention.compare(maps(), maps(1, 1, 0, 0)), ValueError, r"nothing to draw"),
        (lambda: attention.steps({"a": maps(1, 1, 0, 0)}), ValueError, r"nothing to draw"),
        (lambda: links.links(maps(), heads=()), ValueError, r"at least one"),
        (lambda: links.links(maps(), layer=2), IndexError, r"layer is 2; the maps have 2 layers, from 0 to 1"),
        (lambda: links.links(maps(), heads=(0, 3)), IndexError, r"head is 3; the maps have 3 heads"),
        (lambda: running_text.attended_text(maps(), head=-1), IndexError, r"head is -1; the maps have 3 heads"),
        (lambda: running_text.attended_text(maps(), query=5), IndexError, r"query is 5; the maps have 5 queries"),
        (lambda: running_text.attended_text(maps(), query=-1), IndexError, r"query is -1"),
        (lambda: attention.alignment(maps(), [(5, 0)]), IndexError, r"\(5, 0\).*5 queries x 7 keys"),
        (lambda: attention.alignment(maps(), [(0, -1)]), IndexError, r"\(0, -1\)"),
        (lambda: attention.compare(maps(), maps(1, 1), head=1), IndexError, r"the maps have 1 heads"),
        (lambda: attention.steps({"a": maps()}, layer=9), IndexError, r"layer is 9"),
        (lambda: attention.steps({}), ValueError, r"no step"),
    ],
)
def test_invalid_arguments_raise(make, error, says):
    with pytest.raises(error, match=says):
        make()
