"""Draw attention weights over the picture or the spectrogram that a model sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

from PIL import Image
from torch import Tensor

from tfviz.checks import at_least
from tfviz.look import AttentionMaps
from tfviz.view.figures.formatting import counted
from tfviz.view.figures.image_overlay import MapsOnImage, image_overlay
from tfviz.view.figures.images import read_image, spectrogram_image
from tfviz.view.figures.selection import check_drawable, check_index
from tfviz.view.page.heads import MAX_PAGE_BYTES, heads_document
from tfviz.view.page.html import View
from tfviz.view.page.images import image_spec, patches_spec

Grid = tuple[int, int] | Mapping[str, tuple[int, int]]


def image(
    maps: AttentionMaps | Mapping[str, AttentionMaps],
    picture: Any,
    grid: Grid | None = None,
    *,
    layer: int = -1,
    head: int = 0,
    token: int | str | None = None,
    names: Sequence[str] = (),
    title: str | None = None,
    arrange: str = "choose",
    budget: float = MAX_PAGE_BYTES,
) -> View:
    """Draw the attention of a token (patch, word or class token) over a picture; a click selects another token.

    Queries, keys or both lie on the picture: an axis without words, or a run of one repeated word, such as `<image>` in
    the prompt of a vision-language model. An example with a vision Transformer:

        with look.capture(model, "*.pattern") as captured:
            model(pixel_values=pixels)
        view.image(look.AttentionMaps.from_capture(captured), pixels[0])

    Words over a picture, in several resolutions: `view.image(look.groups(captured, key_tokens=words), picture)`.

    Args:
        maps: the attention maps, or several by name.
        picture: the model's input, cropped and scaled in the same way: a path, a PIL image, an array or a tensor,
            [height, width, 3] or [3, height, width]; numbers outside 0 to 1 are rescaled.
        grid: rows and columns of cells, or these by name of a capture. None: a square grid, or else square cells, after
            none, one, two or five other tokens. The page shows the grid that was chosen.
        layer: the layer shown first.
        head: the head shown first.
        token: the token shown first, by number or word: a query, or a key if the keys are words and the queries lie on
            the picture. None: the class token, the middle of a picture without one, or the word whose weights vary most
            over the picture.
        names: names of the tokens before the first cell; default: `cls`, then `register 1` and so on.
        title: the title.
        arrange: the arrangement of several captures: `choose` one, `compare` two, `steps` of a slider.
        budget: maximum size of the data in the page, in bytes; larger data are reduced to blocks of cells, with a note.

    Raises:
        ValueError: neither axis fits the picture, or the picture cannot be read.
        LookupError: there is no such token, layer or head.
    """
    pixels = read_image(picture)
    return _view(maps, pixels, pixels.size[::-1], grid, names, (layer, head, token), title, arrange, budget)


def audio(
    maps: AttentionMaps | Mapping[str, AttentionMaps],
    spectrogram: Tensor,
    grid: Grid | None = None,
    *,
    layer: int = -1,
    head: int = 0,
    token: int | str | None = None,
    names: Sequence[str] = (),
    title: str | None = None,
    arrange: str = "choose",
    budget: float = MAX_PAGE_BYTES,
) -> View:
    """Draw the attention of a frame or a word over time, on a spectrogram.

    Arguments and errors are those of `image`, except:

    Args:
        maps: the attention maps, or several by name.
        spectrogram: [frequency, time], lowest frequency first; colours range from its minimum to its maximum.
        grid: None: a cell for each token, in order of time, as in Whisper; (frequencies, times) for patches in both
            axes, as in an audio spectrogram Transformer.
        layer: the layer shown first.
        head: the head shown first.
        token: the token chosen first; see `image`.
        names: names of the tokens before the first cell; default: `cls`, then `register 1` and so on.
        title: the title.
        arrange: the arrangement of several captures: `choose` one, `compare` two, `steps` of a slider.
        budget: maximum size of the data in the page, in bytes; larger data are reduced to blocks of cells, with a note.
    """
    return _view(maps, spectrogram_image(spectrogram), None, grid, names, (layer, head, token), title, arrange, budget)


def _view(
    maps: AttentionMaps | Mapping[str, AttentionMaps],
    picture: Image.Image,
    size: tuple[int, int] | None,
    grid: Grid | None,
    names: Sequence[str],
    start: tuple[int, int, int | str | None],
    title: str | None,
    arrange: str,
    budget: float,
) -> View:
    """Draw maps over a picture; its size (height, width) is None if it is a spectrogram."""
    parts = {"": maps} if isinstance(maps, AttentionMaps) else dict(maps)
    if not parts:
        raise ValueError("there are no maps; give AttentionMaps, or several by name, as look.groups(captured) has them")
    shapes = dict(grid) if isinstance(grid, Mapping) else dict.fromkeys(parts, grid)
    if unknown := [name for name in shapes if name not in parts]:
        raise ValueError(f"grid names {', '.join(map(repr, unknown))}; the captures are {', '.join(map(repr, parts))}")
    for shape in filter(None, shapes.values()):
        at_least(1, rows=shape[0], columns=shape[1])
    for part in parts.values():
        check_drawable(part)
    placed = {name: MapsOnImage.from_maps(part, size, shapes.get(name), names, name) for name, part in parts.items()}
    _check_grid(grid, placed)
    before = max(found.first for one in placed.values() for found in one.grids)
    if len(names) > before:
        raise ValueError(f"names has {len(names)} names, and {before} tokens stand before the picture")
    if arrange == "compare" and len({(one.rows, one.cols, *one.maps.shape[2:]) for one in placed.values()}) > 1:
        raise ValueError("these captures lie on the picture in different cells, and cannot be compared cell by cell")
    first = list(placed)[-1 if arrange == "steps" else 0]
    shown = placed[first]
    layers, heads, *_ = shown.maps.shape
    layer, head = _nonnegative_index("layer", start[0], layers), _nonnegative_index("head", start[1], heads)
    token = shown.first_token(layer, head, start[2])
    static_picture = image_overlay(shown, picture, layer, head, token, title)
    state = {"mode": "picture", "part": list(placed).index(first), "layer": layer, "head": head, shown.side: [token]}
    state["direction"] = "from" if shown.side == "rows" else "to"
    captures = {name: one.maps for name, one in placed.items()}
    document, data = heads_document(captures, state, title, budget, arrange=arrange, note=_note(placed))
    document["picture"] = image_spec(picture)
    for described, own in zip(document["parts"], placed.values(), strict=True):
        rows, cols = (patches_spec(grid) if grid else None for grid in (own.rows, own.cols))
        described["patches"] = {"rows": rows, "cols": cols}
    return View(static_picture, document, data)


def _check_grid(grid: Grid | None, placed: Mapping[str, MapsOnImage]) -> None:
    """Check that some tokens match the given grid; not all need to: key patches may be larger than query patches.

    Raises:
        ValueError: no capture has this grid.
    """
    ones = {name: [placed[name]] for name in grid} if isinstance(grid, Mapping) else {"": list(placed.values())}
    for name, captures in ones.items():
        shape = grid[name] if isinstance(grid, Mapping) else grid
        found = list(dict.fromkeys((own.rows, own.columns) for one in captures for own in one.grids))
        if shape is not None and tuple(shape) not in found:
            there = ", ".join(f"{rows} x {columns}" for rows, columns in found)
            of = f" of {name!r}" if name else ""
            raise ValueError(
                f"grid is {shape[0]} x {shape[1]} cells{of}, and the tokens lie in {there}: give those, or none"
            )


def _nonnegative_index(name: str, number: int, count: int) -> int:
    """Convert a negative index of a layer or a head to one from the front."""
    at = index(number)
    check_index(name, at % count if -count <= at < 0 else at, count, f"{name}s")
    return at % count


def _note(placed: Mapping[str, MapsOnImage]) -> str:
    """Return a note on which grids were found."""
    found: dict[str, None] = {}
    for grid in (grid for one in placed.values() for grid in one.grids):
        before = f"{counted(grid.first, 'token')} and " if grid.first else ""
        found[f"{before}{grid.rows} × {grid.columns} cells"] = None
    return f"Taken as {'; '.join(found)}."
