"""Pictures of a token's attention weights over an image, for several heads of a layer side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy
import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from tfviz.look import AttentionMaps
from tfviz.look.map_arguments import are_numbers
from tfviz.view.figures.formatting import maps_size
from tfviz.view.figures.heatmap import draw_colourbar, norm
from tfviz.view.figures.images import tinted
from tfviz.view.figures.palette import DPI, MARK_COLOURS, drawable, sequential_colormap
from tfviz.view.figures.static_figure import StaticFigure, draw_frame, set_title
from tfviz.view.patch_grid import PatchGrid, find_grids
from tfviz.view.spec import picture_scale

MAX_HEADS = 7
PANELS_PER_ROW = 5
PANEL_WIDTH_INCHES = 1.9
MAX_HEIGHT_RATIO = 2.5  # height of a panel, relative to its width
Side = Literal["rows", "columns"]


@dataclass(frozen=True)
class MapsOnImage:
    """Attention maps whose queries, keys or both are patches of an image.

    Attributes:
        maps: the maps, with a label for each patch.
        rows: the grid of patches that the queries form; None: the queries are not patches.
        columns: the grid of patches that the keys form; None: the keys are not patches.
        has_class_token: whether the tokens before the patches are a class token and registers, not text.
    """

    maps: AttentionMaps
    rows: PatchGrid | None
    columns: PatchGrid | None
    has_class_token: bool = False

    @classmethod
    def from_maps(
        cls,
        maps: AttentionMaps,
        size: tuple[int, int] | None,
        shape: tuple[int, int] | None,
        names: Sequence[str],
        title: str = "",
    ) -> MapsOnImage:
        """Find the patches among the tokens, and label them.

        Args:
            maps: the attention maps.
            size: height and width of the image; None: a spectrogram.
            shape: rows and columns of patches; see `find_grid`.
            names: names of the tokens before the first patch; see `PatchGrid.words`.
            title: the name of the maps in the error message.

        Raises:
            ValueError: neither queries nor keys are patches.
        """
        rows, columns = find_grids(maps.query_tokens, maps.key_tokens, size, shape)
        if not rows and not columns:
            *_, queries, keys = maps.shape
            cells = "no grid" if shape is None else f"no {shape[0]} x {shape[1]} cells"
            raise ValueError(
                f"{title or 'maps'}: {queries} queries and {keys} keys fit {cells} of the picture, or have their own "
                "words; give grid=(rows, columns) of cells, and leave out the tokens of the axis that lies on it"
            )
        tokens = [
            grid.token_names(own, names) if grid else own
            for grid, own in ((rows, maps.query_tokens), (columns, maps.key_tokens))
        ]
        more: Any = {"mask": maps.mask, "sites": maps.sites, "provenance": maps.provenance}
        placed = AttentionMaps(maps.layers, tokens[0], tokens[1], **more)
        return cls(placed, rows, columns, are_numbers(maps.query_tokens))

    @property
    def grids(self) -> list[PatchGrid]:
        return [grid for grid in (self.rows, self.columns) if grid]

    @property
    def side(self) -> Side:
        """The axis whose tokens can be selected: the keys if only the queries are patches, otherwise the queries."""
        return "columns" if self.rows and not self.columns else "rows"

    @property
    def selectable_tokens(self) -> list[str]:
        """Return the labels of the axis on which a token is selected."""
        return self.maps.query_tokens if self.side == "rows" else self.maps.key_tokens

    def first_token(self, layer: int, head: int, token: int | str | None) -> int:
        """Return the index of the initially selected token on the axis `side`, chosen as `view.image` describes.

        Raises:
            LookupError: there is no such token.
        """
        tokens = self.selectable_tokens
        if isinstance(token, str):
            if token not in tokens:
                raise LookupError(
                    f"token is {token!r}; there are: {', '.join(tokens[:12])}{', …' * (len(tokens) > 12)}"
                )
            return tokens.index(token)
        if token is not None:
            if not -len(tokens) <= token < len(tokens):
                raise LookupError(f"token is {token}; there are {len(tokens)}, counted from 0")
            return token % len(tokens)
        own: PatchGrid | None = getattr(self, self.side)
        if own and (self.has_class_token or own.rows * own.columns == len(tokens)):
            return 0 if own.first else (own.rows // 2) * own.columns + own.columns // 2
        weights = self.maps[layer, head] if self.side == "rows" else self.maps[layer, head].T
        varies = weights[:, self._grid(self.side).patches].std(-1)
        if own:
            varies[own.patches] = -1.0  # a word, not a patch
        return int(varies.argmax())

    def weights(self, layer: int, head: int, side: Side, token: int) -> tuple[numpy.ndarray, numpy.ndarray, float]:
        """Return a token's weights on the grid, [row, column], their mask, [row, column], and its largest weight.

        The largest weight may belong to a token that is not a patch.
        """
        along = slice(token, token + 1)
        part = (along, slice(None)) if side == "rows" else (slice(None), along)
        weights, allowed = self.maps.max_pool(layer, head, *part).flatten(), self.maps.allowed(layer, head, *part)
        allowed_cells = torch.ones_like(weights) if allowed is None else allowed.flatten()
        grid = self._grid(side)
        cells = [values[grid.patches].view(grid.rows, grid.columns) for values in (weights, allowed_cells.bool())]
        drawn = [(one.flipud() if grid.upward else one).numpy() for one in cells]
        return drawn[0], drawn[1], float(weights.max())

    def _grid(self, side: Side) -> PatchGrid:
        """Return the grid of patches on the opposite axis: of the keys for "rows", of the queries for "columns"."""
        found = self.columns if side == "rows" else self.rows
        assert found is not None
        return found


def image_overlay(
    maps_on_image: MapsOnImage, image: Image.Image, layer: int, head: int, token: int, title: str | None = None
) -> StaticFigure:
    """Draw the image with the selected patch outlined, beside up to 8 heads' weights over the image, on one scale."""
    heads = maps_on_image.maps.shape[1]
    shown = sorted({round(float(at)) for at in numpy.linspace(0, heads - 1, min(MAX_HEADS, heads))} | {head})
    word = maps_on_image.selectable_tokens[token]
    title = (
        title
        or f"Layer {layer}: {f'what “{word}” looks at' if maps_on_image.side == 'rows' else f'what looks at “{word}”'}"
    )

    def draw() -> Figure:
        weights = {one: maps_on_image.weights(layer, one, maps_on_image.side, token) for one in shown}
        keys = maps_on_image.maps.shape[3]
        scale = picture_scale(max(largest for *_, largest in weights.values()), keys)
        nrows = 1 if len(shown) < PANELS_PER_ROW else 2
        ncols = -(-(len(shown) + 1) // nrows)
        height = PANEL_WIDTH_INCHES * min(MAX_HEIGHT_RATIO, image.height / image.width)
        figure = Figure(
            figsize=(ncols * (PANEL_WIDTH_INCHES + 0.12) + 0.7, nrows * (height + 0.3) + 0.45), layout="constrained"
        )
        axes = figure.subplots(nrows, ncols, squeeze=False)
        for panel in axes.flat[len(shown) + 1 :]:
            panel.set_axis_off()
        _draw_panel(axes.flat[0], numpy.asarray(image), "the picture")
        _outline_patch(axes.flat[0], getattr(maps_on_image, maps_on_image.side), token)
        for panel, (one, (values, allowed, _)) in zip(axes.flat[1:], weights.items()):
            _draw_panel(
                panel,
                tinted(image, numpy.sqrt(values / scale.limit), allowed, int(PANEL_WIDTH_INCHES * DPI)),
                f"head {one}",
            )
        draw_colourbar(figure, ScalarMappable(norm(scale), sequential_colormap()), axes, scale, even=1 / keys)
        set_title(figure, drawable(title))
        return figure

    return StaticFigure(
        draw, f"{title}\n{maps_size(maps_on_image.maps)}; heads {', '.join(map(str, shown))}, on one scale"
    )


def _draw_panel(axes: Axes, pixels: numpy.ndarray, title: str) -> None:
    axes.imshow(pixels, extent=(0, 1, 1, 0), aspect=min(MAX_HEIGHT_RATIO, pixels.shape[0] / pixels.shape[1]))
    axes.set_title(title, loc="left")
    axes.set(xticks=[], yticks=[])
    draw_frame(axes)


def _outline_patch(axes: Axes, grid: PatchGrid | None, token: int) -> None:
    """Outline the patch of a token, if the token is a patch."""
    if grid and grid.patches.start <= token < grid.patches.stop:
        row, column = divmod(token - grid.first, grid.columns)
        corner = column / grid.columns, (grid.rows - 1 - row if grid.upward else row) / grid.rows
        axes.add_patch(
            Rectangle(corner, 1 / grid.columns, 1 / grid.rows, fill=False, edgecolor=MARK_COLOURS[0], linewidth=1.5)
        )
