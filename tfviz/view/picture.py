"""A picture that answers as PNG, as text, and as a file."""

import base64
import html
import io
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from tfviz.files import atomic
from tfviz.view.palette import BOLD, draws, plain, theme

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
<style>body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: {width}px; padding: 0 1rem;
background: Canvas; color: CanvasText }} img {{ max-width: 100% }}</style>
<picture><source srcset="{dark}" media="(prefers-color-scheme: dark)"><img src="{light}" alt="{title}"></picture>
<p>{summary}</p></html>
"""


class Picture:
    """What a view returns: the last expression of a cell shows it.

    The same input gives the same bytes, and nothing is drawn before it is asked for.

    Args:
        draw: makes the figure; called inside a theme.
        summary: the picture in words, for a terminal or a screen reader.
    """

    def __init__(self, draw: Callable[[], Figure], summary: str):
        self._draw, self.summary = draw, summary
        self._png = lru_cache(self._render)

    def __repr__(self) -> str:
        return self.summary

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, str], dict[str, Any]]:
        png = self._png("light")
        data = {"image/png": base64.b64encode(png).decode(), "text/plain": self.summary}
        return data, {"image/png": {"width": _width(png) // 2}}  # two pixels to a point: sharp on any screen

    def figure(self, style: str = "light") -> Figure:
        """A fresh matplotlib figure, to go on with by hand."""
        with theme(style):
            return self._draw()

    def save(self, path: str | Path, style: str = "light") -> Path:
        """Write `x.png`, `x.svg`, or `x.html`: one file, no links, light or dark with the page.

        Raises:
            ValueError: another ending.
        """
        path = Path(path)
        writers: dict[str, Callable[[], bytes]] = {
            ".png": lambda: self._png(style),
            ".svg": lambda: self._render(style, "svg"),
            ".html": lambda: self.page().encode(),
        }
        if path.suffix not in writers:
            raise ValueError(f"cannot write {path.name}: a picture is saved as .png, .svg or .html")
        with atomic(path) as draft:
            draft.write_bytes(writers[path.suffix]())
        return path

    def _render(self, style: str, kind: str = "png") -> bytes:
        metadata: dict[str, Any] = {"Software": None} if kind == "png" else {"Date": None, "Creator": None}
        stream = io.BytesIO()
        with theme(style):
            self._draw().savefig(stream, format=kind, metadata=metadata, bbox_inches="tight", pad_inches=0.08)
        return _small(stream) if kind == "png" else stream.getvalue()

    def page(self) -> str:
        """The picture as a page of its own, light or dark with the reader's."""
        light, dark = (
            "data:image/png;base64," + base64.b64encode(self._png(style)).decode() for style in ("light", "dark")
        )
        title, _, rest = self.summary.partition("\n")
        width = max(400, _width(self._png("light")) // 2)
        return PAGE.format(title=html.escape(title), summary=html.escape(rest), light=light, dark=dark, width=width)


def _small(png: io.BytesIO) -> bytes:
    """The same picture in 256 colours: a third of the bytes, and a notebook full of pictures stays light."""
    stream = io.BytesIO()
    few = Image.open(png).convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def headline(figure: Figure, title: str) -> None:
    """The title, flush left; bold in the one face that is sure to have a bold cut, where that can draw it."""
    face = {"family": BOLD} if draws(BOLD, title) else {"weight": "normal"}
    figure.suptitle(plain(title), x=0.01, ha="left", **face)


def bare(axes: Axes) -> None:
    """A heatmap's frame: thin, on all sides, and no grid."""
    axes.grid(False)
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color(matplotlib.rcParams["axes.edgecolor"])


def _width(png: bytes) -> int:
    return int.from_bytes(png[16:20])
