"""Static pictures that are displayed as PNG or text and saved as files, and helpers for their figures."""

import base64
import html
import io
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
import numpy
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from tfviz.files import atomic, expand_user
from tfviz.schema import describe
from tfviz.suggestions import did_you_mean
from tfviz.view.figures.formatting import shorten
from tfviz.view.figures.palette import (
    BOLD_FONT,
    DPI,
    THEMES,
    current_theme,
    diverging_colormap,
    drawable,
    has_glyphs,
    sequential_colormap,
    theme,
)

MAX_FIGURE_TEXT_LENGTH, MAX_AXES_TEXT_LENGTH = 120, 60  # characters of a line of text
MAX_TEXT_LINES = 8
CSS_DPI = 100  # of a picture in a browser, where each CSS pixel shows 1.5 x 1.5 pixels of the file
RGB_FACTORS = (65536, 256, 1)  # (red, green, blue) @ RGB_FACTORS encodes a colour as one integer

PAGE_TEMPLATE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<style>body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: {width}px; padding: 0 1rem;
background: Canvas; color: CanvasText; overflow-wrap: anywhere }} img {{ max-width: 100% }}</style>
<picture><source srcset="{dark}" media="(prefers-color-scheme: dark)"><img src="{light}" alt="{title}"></picture>
<p>{summary}</p></html>
"""


class ThemedFigure(Figure):
    """A figure that is drawn and saved in its theme, since matplotlib reads many settings only at that time."""

    style = "light"

    def draw(self, renderer: Any) -> None:
        with theme(self.style):
            super().draw(renderer)

    def savefig(self, *args: Any, **kwargs: Any) -> None:
        with theme(self.style):
            super().savefig(*args, **kwargs)


class StaticFigure:
    """A static picture, displayed as a PNG when it is the last expression of a notebook cell.

    It is drawn when it is first displayed or saved. The same input yields the same bytes.

    Args:
        draw: a function that returns the figure; it is called inside a theme.
        summary: a description in words, for a terminal or a screen reader.
    """

    def __init__(self, draw: Callable[[], Figure], summary: str):
        self._draw, self.summary = draw, summary
        self._png = lru_cache(self._render)

    def __repr__(self) -> str:
        return self.summary

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, str], dict[str, Any]]:
        png = self._png(current_theme())
        data = {"image/png": base64.b64encode(png).decode(), "text/plain": self.summary}
        return data, {"image/png": {"width": _css_width(png)}}

    def figure(self, style: str | None = None) -> Figure:
        """Return a new matplotlib figure for further editing; it keeps its theme regardless of later rcParams.

        Args:
            style: `light` or `dark`; None: the theme of the `with view.theme(...)` around the call, by default light.
        """
        style = current_theme() if style is None else style
        with theme(style):
            figure: Any = self._draw_figure()
        figure.__class__, figure.style = ThemedFigure, style  # `draw` returns a plain Figure
        return figure

    def save(self, path: str | Path, style: str | None = None) -> Path:
        """Save the picture as a PNG, an SVG, or a self-contained HTML page, and return the path.

        Args:
            path: the file, ending in .png, .svg or .html.
            style: `light` or `dark`, for a PNG or SVG; None: the theme of the `with view.theme(...)` around the call,
                by default light. An HTML page follows the reader's colour scheme.

        Raises:
            TypeError: `path` is neither a string nor a path.
            ValueError: the file has another ending, or there is no such style.
            OSError: the file cannot be written.
        """
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"path is {describe(path)}; give the name of a file, such as 'heads.png'")
        path = expand_user(path)
        style = current_theme() if style is None else style
        if style not in THEMES:
            raise ValueError(f"style is {style!r}; it can be 'light' or 'dark'{did_you_mean(style, THEMES)}")
        if path.suffix not in (".png", ".svg", ".html"):
            raise ValueError(f"cannot write {path.name!r}: a picture is saved as .png, .svg or .html")
        content = self.page().encode() if path.suffix == ".html" else self._png(style, path.suffix[1:])
        try:
            with atomic(path) as draft:
                draft.write_bytes(content)
        except (OSError, ValueError) as error:  # the latter: a name that no file can have
            raise OSError(f"cannot write {path}; give the path of a file that can be written ({error})") from error
        return path

    def _draw_figure(self) -> Figure:
        """Draw and return the figure; text that would make it too wide is truncated."""
        figure = self._draw()
        if not isinstance(figure, Figure):
            raise TypeError(f"draw returns {describe(figure)}; it must return a matplotlib figure")
        for text in figure.findobj(Text):
            max_length = MAX_FIGURE_TEXT_LENGTH if text in figure.texts else MAX_AXES_TEXT_LENGTH
            if isinstance(text, Text) and len(text.get_text()) > max_length:
                text.set_text(
                    "\n".join(shorten(line, max_length) for line in text.get_text().split("\n")[:MAX_TEXT_LINES])
                )
        return figure

    def _render(self, style: str, kind: str = "png") -> bytes:
        options: dict[str, Any] = {"metadata": {"Date": None, "Creator": None}}
        if kind == "png":
            options = {"pil_kwargs": {"compress_level": 0}}  # packed later
        stream = io.BytesIO()
        with theme(style):
            self._draw_figure().savefig(stream, format=kind, bbox_inches="tight", pad_inches=0.08, **options)
            return _compressed_png(Image.open(stream).convert("RGB")) if kind == "png" else stream.getvalue()

    def page(self) -> str:
        """Return the picture as a self-contained HTML page, which follows the reader's colour scheme."""
        pngs = {style: self._png(style) for style in THEMES}
        sources = {style: f"data:image/png;base64,{base64.b64encode(png).decode()}" for style, png in pngs.items()}
        title, _, rest = encodable(self.summary).partition("\n")
        width = max(400, _css_width(pngs["light"]))
        return PAGE_TEMPLATE.format(title=html.escape(title), summary=html.escape(rest), width=width, **sources)


def encodable(text: str) -> str:
    """Return text that UTF-8 and HTML can encode: lone surrogates and null characters are replaced by their codes."""
    return "".join(f"⟨{ord(c):X}⟩" if 0xD800 <= ord(c) <= 0xDFFF or c == "\0" else c for c in text)


def _compressed_png(image: Image.Image) -> bytes:
    """Return an image as a PNG, with a palette of 256 colours if these suffice, which halves its size.

    The shades of scales, and colours that fill more than a line, are kept; the rest of the palette are the most
    frequent other colours. All others, which are blends at edges of letters, lines and cells, become the nearest one.
    """
    codes = numpy.asarray(image).astype(numpy.int64) @ RGB_FACTORS
    middle = codes[1:-1, 1:-1]
    sides = (codes[:-2, 1:-1], codes[2:, 1:-1], codes[1:-1, :-2], codes[1:-1, 2:])
    filled = middle[numpy.logical_and.reduce([middle == side for side in sides])]
    shades = [
        scale(numpy.arange(scale.N), bytes=True)[:, :3].astype(int) @ RGB_FACTORS
        for scale in (sequential_colormap(), diverging_colormap())
    ]
    counts, colours = zip(*image.getcolors(image.width * image.height) or ())
    flat = numpy.isin(colours @ numpy.array(RGB_FACTORS), numpy.concatenate([filled, *shades]))
    if flat.sum() <= 256:
        palette = numpy.array(colours)[numpy.lexsort((-numpy.array(counts), ~flat))[:256]]
        nearest = numpy.square(numpy.array(colours)[:, None] - palette).sum(-1).argmin(1)
        table = numpy.zeros(2**24, numpy.uint8)
        table[colours @ numpy.array(RGB_FACTORS)] = nearest
        image = Image.fromarray(table[codes])
        image.putpalette(palette.astype(numpy.uint8).tobytes())
    stream = io.BytesIO()
    image.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _css_width(png: bytes) -> int:
    """Return the width, in CSS pixels, at which a browser shows a PNG."""
    return int.from_bytes(png[16:20]) * CSS_DPI // DPI


def subtitled(title: str, subject: str) -> str:
    """Join a title and the subject of a picture with a colon, or with a space if the title ends a sentence."""
    return f"{title} {subject}" if title.endswith(("?", "!", ".")) else f"{title}: {subject}"


def set_title(figure: Figure, title: str) -> None:
    """Write the title of a figure, flush left, in the bold font if it has all characters."""
    face = {"family": BOLD_FONT} if has_glyphs(BOLD_FONT, title) else {"weight": "normal"}
    figure.suptitle(drawable(title), x=0.01, ha="left", **face)


def panel_grid(figure: Figure, nrows: int, ncols: int, count: int, share: bool = False) -> list[Axes]:
    """Return the axes of `count` panels, row by row, with common scales if `share`; those left over are removed."""
    panels = figure.subplots(nrows, ncols, squeeze=False, sharex=share, sharey=share).flatten().tolist()
    for axes in panels[count:]:
        axes.remove()
    return panels[:count]


def draw_frame(axes: Axes) -> None:
    """Draw a thin frame around axes, without a grid."""
    axes.grid(False)
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color(matplotlib.rcParams["axes.edgecolor"])


def reference_line(axes: Axes, name: str, value: float) -> None:
    """Draw a horizontal dashed line, such as chance level, with its name at the right end."""
    muted = matplotlib.rcParams["xtick.labelcolor"]
    axes.axhline(value, color=muted, linestyle=(0, (5, 3)), linewidth=1, zorder=3)
    style: dict[str, Any] = {"ha": "left", "va": "center", "fontsize": 8, "color": muted, "annotation_clip": False}
    axes.annotate(fill(shorten(drawable(name), 48), 16), (1.01, value), xycoords=axes.get_yaxis_transform(), **style)
