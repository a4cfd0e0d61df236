"""What a token looks at, over a picture: some heads of a layer, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy
import torch
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image
from torch import Tensor

from tfviz.look.map_arguments import are_numbers
from tfviz.look.maps import AttentionMaps
from tfviz.view.spec import Scale
from tfviz.view.still import photograph
from tfviz.view.still.formatting import maps_size
from tfviz.view.still.heatmap import colourbar, norm
from tfviz.view.still.palette import DPI, MARK, plain, ramp
from tfviz.view.still.picture import Picture, bare, headline
from tfviz.view.still.places import Places, both

HEADS = 7  # beside the picture itself
BESIDE = 5  # panels in one line
WIDE = 1.9  # inches of a panel
Side = Literal["rows", "cols"]


@dataclass(frozen=True)
class Placed:
    """Maps, and where the tokens of their sides lie on a picture; None: nowhere."""

    maps: AttentionMaps
    rows: Places | None
    cols: Places | None
    classed: bool = False  # tokens before the picture are a class token and registers, not words

    @classmethod
    def of(
        cls,
        name: str,
        maps: AttentionMaps,
        size: tuple[int, int] | None,
        grid: tuple[int, int] | None,
        names: Sequence[str],
    ) -> Placed:
        """Maps whose tokens on the picture have names of their own; arguments as of `lie`, and `Places.words`.

        Raises:
            ValueError: neither side lies on it.
        """
        rows, cols = both(maps.rows, maps.cols, size, grid)
        if not rows and not cols:
            *_, queries, keys = maps.shape
            cells = "no grid" if grid is None else f"no {grid[0]} x {grid[1]} cells"
            raise ValueError(
                f"{name or 'maps'}: {queries} queries and {keys} keys fit {cells} of the picture, or have their own "
                "words; give grid=(rows, columns) of cells, and leave away the words of the side that lies on it"
            )
        words = [where.words(own, names) if where else own for where, own in ((rows, maps.rows), (cols, maps.cols))]
        more: Any = {"mask": maps.mask, "sites": maps.sites, "provenance": maps.provenance}
        return cls(AttentionMaps(maps.layers, words[0], words[1], **more), rows, cols, are_numbers(maps.rows))

    @property
    def words(self) -> Side:
        """The side whose tokens are looked from: the one that does not lie on the picture, else the queries."""
        return "cols" if self.rows and not self.cols else "rows"

    def begin(self, layer: int, head: int, token: int | str | None) -> int:
        """The token of that side to begin with, as `view.image` says it.

        Raises:
            LookupError: there is none.
        """
        words: list[str] = getattr(self.maps, self.words)
        if isinstance(token, str):
            if token not in words:
                raise LookupError(f"token is {token!r}; there are: {', '.join(words[:12])}{', …' * (len(words) > 12)}")
            return words.index(token)
        if token is not None:
            if not -len(words) <= token < len(words):
                raise LookupError(f"token is {token}; there are {len(words)}, counted from 0")
            return token % len(words)
        own: Places | None = getattr(self, self.words)
        if own and (self.classed or own.cells == len(words)):
            return 0 if own.first else own.first + (own.down // 2) * own.across + own.across // 2
        found = self.maps[layer, head]
        varies = self._cells(found if self.words == "rows" else found.T, self.words).std(-1)
        if own:
            varies[own.first : own.first + own.cells] = -1.0  # of the words, not of the picture's own cells
        return int(varies.argmax())

    def weights(self, layer: int, head: int, side: Side, index: int) -> tuple[numpy.ndarray, numpy.ndarray, float]:
        """What a token looks at on the picture, or what looks at it, and where that may be: [down, across]; the largest
        of all its weights, also of those beside the picture.
        """
        along = slice(index, index + 1)
        part = (along, slice(None)) if side == "rows" else (slice(None), along)
        weights, allowed = self.maps.tile(layer, head, *part).flatten(), self.maps.allowed(layer, head, *part)
        open_cells = torch.ones_like(weights) if allowed is None else allowed.flatten()
        shape = self._onto(side)
        cells = [self._cells(values, side).reshape(shape.down, shape.across) for values in (weights, open_cells.bool())]
        drawn = [(one.flipud() if shape.upward else one).numpy() for one in cells]
        return drawn[0], drawn[1], float(weights.max())

    def _onto(self, side: Side) -> Places:
        found = self.cols if side == "rows" else self.rows
        assert found is not None
        return found

    def _cells(self, values: Tensor, side: Side) -> Tensor:
        places = self._onto(side)
        return values[..., places.first : places.first + places.cells]


def onpicture(
    placed: Placed, seen: Image.Image, layer: int, head: int, index: int, title: str | None = None
) -> Picture:
    """The picture with the chosen token outlined, and some heads of one layer over it, on one scale."""
    side = placed.words
    heads = placed.maps.shape[1]
    shown = sorted({round(float(at)) for at in numpy.linspace(0, heads - 1, min(HEADS, heads))} | {head})
    word = getattr(placed.maps, side)[index]
    asked = f"what “{word}” looks at" if side == "rows" else f"what looks at “{word}”"
    title = title or f"Layer {layer}: {asked}"

    def draw() -> Figure:
        found = {one: placed.weights(layer, one, side, index) for one in shown}
        limit = max(largest for *_, largest in found.values()) or 1.0
        tall = WIDE * min(2.5, seen.height / seen.width)
        down = 1 if len(shown) < BESIDE else 2
        across = -(-(len(shown) + 1) // down)
        figure = Figure(figsize=(across * (WIDE + 0.12) + 0.7, down * (tall + 0.3) + 0.45), layout="constrained")
        axes = figure.subplots(down, across, squeeze=False)
        for cells in axes.flat[len(shown) + 1 :]:
            cells.set_axis_off()
        for cells in axes.flat[: len(shown) + 1]:
            bare(cells)
            cells.set(xticks=[], yticks=[])
        first, *others = axes.flat
        first.imshow(numpy.asarray(seen), extent=(0, 1, 1, 0), aspect="auto")
        first.set_title("the picture", loc="left")
        own = getattr(placed, side)
        if own and own.first <= index < own.first + own.cells:
            row, col = divmod(index - own.first, own.across)
            row = own.down - 1 - row if own.upward else row
            box = (col / own.across, row / own.down), 1 / own.across, 1 / own.down
            first.add_patch(Rectangle(*box, fill=False, edgecolor=MARK[0], linewidth=1.5))
        for cells, (one, (weights, allowed, _)) in zip(others, found.items()):
            over = photograph.tinted(seen, numpy.sqrt(weights / limit), allowed, int(WIDE * DPI))
            cells.imshow(over, extent=(0, 1, 1, 0), aspect="auto")
            cells.set_title(f"head {one}", loc="left")
        scale = Scale("sqrt", limit)
        colourbar(figure, ScalarMappable(norm(scale), ramp()), axes, scale)
        headline(figure, plain(title))
        return figure

    return Picture(draw, f"{title}\n{maps_size(placed.maps)}; heads {', '.join(map(str, shown))}, on one scale")
