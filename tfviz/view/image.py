"""Views of attention weights over the image or the spectrogram that a model takes as input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from PIL import Image
from torch import Tensor

from tfviz.checks import at_least
from tfviz.look import AttentionMaps
from tfviz.view.figures.formatting import format_count
from tfviz.view.figures.image_overlay import MapsOnImage, image_overlay
from tfviz.view.figures.images import read_image, spectrogram_image
from tfviz.view.figures.selection import check_drawable, nonnegative_index
from tfviz.view.page.heads import MAX_PAGE_BYTES, heads_document
from tfviz.view.page.html import View
from tfviz.view.page.images import image_spec, patches_spec

Grid = tuple[int, int] | Mapping[str, tuple[int, int]]


def image(
    maps: AttentionMaps | Mapping[str, AttentionMaps],
    image: Any,
    grid: Grid | None = None,
    *,
    layer: int = -1,
    head: int = 0,
    token: int | str | None = None,
    prefix_labels: Sequence[str] = (),
    title: str | None = None,
    arrange: str = "choose",
    max_bytes: float = MAX_PAGE_BYTES,
) -> View:
    """Show the attention weights of a token (patch, text token or class token) over an image; a click selects another.

    Queries, keys or both are patches of the image. Patches are the tokens of an axis without labels, or the longest run
    of one repeated label, such as `<image>` in the prompt of a vision-language model. With a vision Transformer:

        with look.capture(model, "*.pattern") as captured:
            model(pixel_values=pixels)
        view.image(look.AttentionMaps.from_capture(captured), pixels[0])

    With cross-attention from image patches to a prompt, at several resolutions:
    `view.image(look.groups(captured, key_tokens=words), picture)`.

    Args:
        maps: the attention maps, or several by name.
        image: the image, cropped and scaled as for the model: a path, a PIL image, or an array or tensor, [height,
            width], [height, width, 3] or [3, height, width]. Floats outside 0 to 1 are rescaled.
        grid: rows and columns of patches, or a mapping from names of captures to these. None: a square grid, otherwise
            square patches; before them there may be 0, 1, 2 or 5 tokens (class, distillation, registers). A note in
            the page names the grid.
        layer: index of the layer shown first.
        head: index of the head shown first.
        token: index or label of the token selected first: a query, or a key if only the queries are patches. None: the
            class token; without one, the patch in the middle, or the text token whose weights vary most over the image.
        prefix_labels: labels of the tokens before the first patch; default: `cls`, then `register 1` and so on.
        title: the title.
        arrange: the arrangement of several captures: `choose` one, `compare` two, `steps` of a slider.
        max_bytes: maximum size of the data in the page, in bytes; larger data are reduced to blocks of cells, with a
            note.

    Raises:
        ValueError: neither axis fits a grid of patches, no tokens form the grid given, or the image cannot be read.
        LookupError: there is no such token, layer or head.
    """
    pixels = read_image(image)
    return _view(
        maps, pixels, pixels.size[::-1], grid, prefix_labels, _Start(layer, head, token), title, arrange, max_bytes
    )


def audio(
    maps: AttentionMaps | Mapping[str, AttentionMaps],
    spectrogram: Tensor,
    grid: Grid | None = None,
    *,
    layer: int = -1,
    head: int = 0,
    token: int | str | None = None,
    prefix_labels: Sequence[str] = (),
    title: str | None = None,
    arrange: str = "choose",
    max_bytes: float = MAX_PAGE_BYTES,
) -> View:
    """Show the attention weights of an audio frame or a text token over a spectrogram; a click selects another.

    Errors are those of `image`.

    Args:
        maps: the attention maps, or several by name.
        spectrogram: [frequency, time], lowest frequency first; shades range from its minimum to its maximum.
        grid: None: one frame for each token, in order of time, as in Whisper; (frequencies, times) for patches along
            both axes, as in an audio spectrogram Transformer.
        layer: index of the layer shown first.
        head: index of the head shown first.
        token: index or label of the token selected first; see `image`.
        prefix_labels: labels of the tokens before the first frame or patch; default: `cls`, then `register 1` and so
            on.
        title: the title.
        arrange: the arrangement of several captures: `choose` one, `compare` two, `steps` of a slider.
        max_bytes: maximum size of the data in the page, in bytes; larger data are reduced to blocks of cells, with a
            note.
    """
    return _view(
        maps,
        spectrogram_image(spectrogram),
        None,
        grid,
        prefix_labels,
        _Start(layer, head, token),
        title,
        arrange,
        max_bytes,
    )


class _Start(NamedTuple):
    """What a view selects first; see `image`."""

    layer: int
    head: int
    token: int | str | None


def _view(
    maps: AttentionMaps | Mapping[str, AttentionMaps],
    image: Image.Image,
    size: tuple[int, int] | None,
    grid: Grid | None,
    prefix_labels: Sequence[str],
    start: _Start,
    title: str | None,
    arrange: str,
    max_bytes: float,
) -> View:
    """Return the view of maps over a picture; `size` is its (height, width), or None for a spectrogram."""
    placed = _maps_on_image(maps, size, grid, prefix_labels)
    if arrange == "compare":
        _check_comparable(placed)
    shown = [*placed.values()][-1 if arrange == "steps" else 0]  # in the static figure
    layers, heads, *_ = shown.maps.shape
    layer = nonnegative_index("layer", start.layer, layers, "layers")
    head = nonnegative_index("head", start.head, heads, "heads")
    token = shown.first_token(layer, head, start.token)
    static_figure = image_overlay(shown, image, layer, head, token, title)
    direction, locks = ("from", "locked_rows") if shown.side == "rows" else ("to", "locked_columns")
    state = {"mode": "picture", "layer": layer, "head": head, "direction": direction, locks: [token]}
    captures = {name: one.maps for name, one in placed.items()}
    document, data = heads_document(captures, state, title, max_bytes, arrange=arrange, note=_note(placed))
    document["image"] = image_spec(image)
    for described, own in zip(document["parts"], placed.values(), strict=True):
        rows, columns = (patches_spec(grid) if grid else None for grid in (own.rows, own.columns))
        described["patches"] = {"rows": rows, "columns": columns}
    return View(static_figure, document, data)


def _maps_on_image(
    maps: AttentionMaps | Mapping[str, AttentionMaps],
    size: tuple[int, int] | None,
    grid: Grid | None,
    prefix_labels: Sequence[str],
) -> dict[str, MapsOnImage]:
    """Return each capture with its patches, by name; a single one has the name "".

    Raises:
        ValueError: there are no maps, or they have no such patches; there are more prefix labels than tokens before
            the patches.
    """
    maps_by_name = {"": maps} if isinstance(maps, AttentionMaps) else dict(maps)
    if not maps_by_name:
        raise ValueError("there are no maps; give AttentionMaps, or several by name, as look.groups(captured) has them")
    shapes = _grid_shapes(grid, list(maps_by_name))
    for part in maps_by_name.values():
        check_drawable(part)
    placed = {
        name: MapsOnImage.from_maps(part, size, shapes.get(name), prefix_labels, name)
        for name, part in maps_by_name.items()
    }
    _check_grid(grid, placed)
    _check_prefix_labels(prefix_labels, placed)
    return placed


def _grid_shapes(grid: Grid | None, names: Sequence[str]) -> dict[str, tuple[int, int] | None]:
    """Return the rows and columns of patches that are given for each capture.

    Raises:
        ValueError: `grid` names a capture that does not exist, or has a number below 1.
    """
    shapes: dict[str, tuple[int, int] | None] = {**grid} if isinstance(grid, Mapping) else dict.fromkeys(names, grid)
    if unknown := [name for name in shapes if name not in names]:
        raise ValueError(f"grid names {', '.join(map(repr, unknown))}; the captures are {', '.join(map(repr, names))}")
    for shape in filter(None, shapes.values()):
        at_least(1, **{"grid[0]": shape[0], "grid[1]": shape[1]})
    return shapes


def _check_prefix_labels(labels: Sequence[str], placed: Mapping[str, MapsOnImage]) -> None:
    """Raise ValueError if there are more labels than tokens before the first patch."""
    before = max(found.first for one in placed.values() for found in one.grids)
    if len(labels) > before:
        raise ValueError(
            f"prefix_labels has {len(labels)} labels, and {format_count(before, 'token')} "
            f"precede{'s' * (before == 1)} the first patch"
        )


def _check_comparable(placed: Mapping[str, MapsOnImage]) -> None:
    """Raise ValueError unless all captures divide the picture into the same cells."""
    if len({(one.rows, one.columns, *one.maps.shape[2:]) for one in placed.values()}) > 1:
        raise ValueError(
            "these captures divide the picture into different cells, so they cannot be compared cell by cell"
        )


def _check_grid(grid: Grid | None, placed: Mapping[str, MapsOnImage]) -> None:
    """Check that the tokens of some axis form the given grid.

    Not all axes need to: key patches may be larger than query patches.

    Raises:
        ValueError: no axis has this grid.
    """
    ones = {name: [placed[name]] for name in grid} if isinstance(grid, Mapping) else {"": list(placed.values())}
    for name, captures in ones.items():
        shape = grid[name] if isinstance(grid, Mapping) else grid
        found = list(dict.fromkeys((own.rows, own.columns) for one in captures for own in one.grids))
        if shape is not None and tuple(shape) not in found:
            there = ", ".join(f"{rows} x {columns}" for rows, columns in found)
            of = f" of {name!r}" if name else ""
            raise ValueError(
                f"grid is {shape[0]} x {shape[1]} cells{of}, but the tokens lie in {there}; give that grid, or leave "
                f"grid out"
            )


def _note(placed: Mapping[str, MapsOnImage]) -> str:
    """Return a note that states the grids found."""
    found: dict[str, None] = {}
    for grid in (grid for one in placed.values() for grid in one.grids):
        before = f"{format_count(grid.first, 'token')} and " if grid.first else ""
        found[f"{before}{grid.rows} × {grid.columns} cells"] = None
    return f"Taken as {'; '.join(found)}."
