"""PNGs keep exact colours: every shade of a scale, and the inks of a theme."""

import io

import matplotlib
import numpy
import pytest
import torch
from matplotlib import pyplot
from matplotlib.cm import ScalarMappable
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from tfviz import view
from tfviz.look.maps import AttentionMaps
from tfviz.view.figures import heatmap, palette
from tfviz.view.figures.static_figure import StaticFigure, set_title
from tfviz.view.spec import Heatmap, Scale

styles = pytest.mark.parametrize("style", palette.THEMES)
OKABE_ITO = ("E69F00", "56B4E9", "009E73", "F0E442", "0072B2", "D55E00", "CC79A7")
ON_DARK = tuple("7A9CFF" if colour == "0072B2" else colour for colour in OKABE_ITO)  # a blue that is seen there


def colours(picture, style):
    """The colours of the PNG, each as one number."""
    pixels = numpy.asarray(Image.open(io.BytesIO(picture._png(style))).convert("RGB")).astype(int)
    return set((pixels @ [65536, 256, 1]).ravel().tolist())


def colour_code(colour):
    return int((numpy.asarray(to_rgb(colour)) * 255).round() @ [65536, 256, 1])


@styles
@pytest.mark.parametrize("scale", [palette.sequential_colormap, palette.diverging_colormap])
@pytest.mark.parametrize("drawn", ["bar", "heatmap"])
def test_png_keeps_every_shade_of_colormap(drawn, scale, style):
    def draw():
        figure = Figure(figsize=(2, 4) if drawn == "bar" else (8, 1))
        axes = figure.add_axes((0.1, 0.05, 0.3, 0.9) if drawn == "bar" else (0, 0, 1, 1))
        if drawn == "bar":  # two or three dots for each shade
            figure.colorbar(ScalarMappable(cmap=scale()), axes).outline.set_visible(False)
            set_title(figure, "a scale")
        else:
            axes.set_axis_off()
            values = (numpy.arange(scale().N)[None] + 0.5) / scale().N
            axes.imshow(values, cmap=scale(), vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        return figure

    with view.theme(style):
        shades = {colour_code(shade) for shade in scale().colors}
        ends = (
            (palette.LOW_COLOURS, palette.HIGH_COLOURS)
            if scale is palette.diverging_colormap
            else (palette.RAMP_COLOURS,)
        )
        assert {colour_code(palette._ink(pair)) for pair in ends} <= shades
    assert len(shades) >= 199
    assert shades - colours(StaticFigure(draw, "a scale"), style) == set()


def test_png_keeps_rare_shades_among_blended_text():
    def draw():
        figure = Figure(figsize=(8, 3))
        axes = figure.add_axes((0, 0, 1, 0.004))  # each shade in a few dots only
        axes.set_axis_off()
        values = (numpy.arange(palette.SCALE_COLOUR_COUNT)[None] + 0.5) / palette.SCALE_COLOUR_COUNT
        axes.imshow(values, cmap=palette.sequential_colormap(), vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        for row in range(12):
            figure.text(0, 0.1 + 0.07 * row, "many words with soft edges " * 4, color=f"C{row % 8}", alpha=0.9)
        return figure

    with view.theme():
        shades = {colour_code(shade) for shade in palette.sequential_colormap().colors}
    assert shades - colours(StaticFigure(draw, "words"), "light") == set()


@styles
def test_png_contains_theme_inks(style):
    with view.theme(style):
        names = ("text.color", "xtick.labelcolor", "axes.edgecolor", "figure.facecolor")
        inks = {name: colour_code(matplotlib.rcParams[name]) for name in names}
    there = colours(view.heads(AttentionMaps(torch.rand(2, 3, 5, 7).softmax(-1))), style)
    assert [name for name, ink in inks.items() if ink not in there] == []
    series = {str(number): ([0, 1], [number, number]) for number in range(8)}
    there = colours(view.lines(series, x="x", y="y", title="t"), style)
    series_inks = {"light": OKABE_ITO, "dark": ON_DARK}[style]
    assert {colour for colour in series_inks if colour_code(f"#{colour}") not in there} == set()


@styles
def test_png_matches_savefig(style):
    picture, stream = view.head(AttentionMaps(torch.rand(2, 3, 5, 7).softmax(-1)), 1, 2), io.BytesIO()
    with view.theme(style):
        picture.figure(style).savefig(stream, bbox_inches="tight", pad_inches=0.08)
    drawn, kept = (numpy.asarray(Image.open(file).convert("RGB")) for file in (stream, io.BytesIO(picture._png(style))))
    off = numpy.abs(kept.astype(int) - drawn).max(-1)
    assert (off > 0).mean() < 0.02  # the edges of words and lines
    assert (off > 24).mean() < 1e-3


def test_png_keeps_more_colours_than_a_palette_holds():
    shades = numpy.stack(numpy.meshgrid(range(17), range(17), [7]), -1).reshape(17, 17, 3) * 15

    def draw():
        figure = Figure(figsize=(6, 6))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.imshow(shades.astype(numpy.uint8), interpolation="nearest", aspect="auto")
        return figure

    wanted = set((shades @ [65536, 256, 1]).ravel().tolist())
    there = colours(StaticFigure(draw, "many"), "light")
    assert len(wanted) == 289
    assert wanted - there == set()


@pytest.mark.parametrize(
    ("limit", "seen"),
    [(1, ["·", "0.01", "0.05", "0.99", ">0.99", "−0.12", "0"]), (15, ["·", "·", "·", "1", "1", "−0.1", "0"])],
)
def test_heatmap_cell_numbers_follow_scale_limit(limit, seen):
    values = numpy.array([[0.004, 0.0055, 0.046, 0.994, 0.996, -0.1234, 0.0]])
    with palette.theme():
        figure, axes = pyplot.subplots()
        heatmap.draw_heatmap(axes, Heatmap(torch.from_numpy(values), scale=Scale("diverging", limit), numbered=True))
    assert [text.get_text() for text in axes.texts] == seen
    pyplot.close(figure)


@styles
def test_theme_inks_have_sufficient_contrast(style):
    def luminance(colour):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    themes = palette.theme_colours()[style]
    page = {"light": "#ffffff", "dark": "#14171b"}[style]
    names = {
        "light": ("ramp", "low", "high", "prediction", "soft", "ink"),
        "dark": ("ramp", "low", "high", "prediction", "soft"),
    }

    def contrast(colour):
        pair = sorted((luminance(colour), luminance(page)))
        return (pair[1] + 0.05) / (pair[0] + 0.05)

    assert {name: contrast(themes[name]) for name in names[style] if contrast(themes[name]) < 4.5} == {}
    if style == "dark":  # there each of the eight is a text's ink, too
        assert {colour: contrast(colour) for colour in themes["heads"] if contrast(colour) < 4.5} == {}
