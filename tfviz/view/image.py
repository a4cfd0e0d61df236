"""Where a model looks, on what it looks at: weights over a picture, or over a spectrogram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

from PIL import Image
from torch import Tensor

from tfviz.bounds import at_least
from tfviz.look.maps import AttentionMaps
from tfviz.view.page.heads import BUDGET, heads_view
from tfviz.view.page.html import View
from tfviz.view.still import photograph
from tfviz.view.still.formatting import counted
from tfviz.view.still.onpicture import Placed, onpicture
from tfviz.view.still.selection import check_drawable, check_index

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
    budget: float = BUDGET,
) -> View:
    """What a token looks at, over the picture: a patch, a word, a class token. Click another; `heads` is a button away.

    Queries, keys or both lie on the picture: an axis without words of its own, or the run of one word that repeats,
    as `<image>` in the prompt of a language model that sees. A vision Transformer:

        with look.capture(model, "*.pattern") as seen:
            model(pixel_values=pixels)
        view.image(look.AttentionMaps.of(seen), pixels[0])

    Words over a picture, in several resolutions: `view.image(look.groups(seen, cols=words), picture)`.

    Args:
        picture: as the model was given it, cropped and scaled alike: a path, a PIL image, an array or a tensor,
            [height, width, 3] or [3, height, width]; numbers beyond 0 to 1 are stretched.
        grid: rows and columns of cells, or by name of a capture. None: a square, else cells that are squares; before
            them none, one, two or five other tokens. The page says what was taken.
        layer, head: what is shown first.
        token: what it shows first, by number or word: of the queries; of the keys, if those are the words and the
            queries lie on the picture. None: the class token, the middle of a picture without one, or the word whose
            weights differ most over the picture.
        names: of the tokens before the first cell; default: `cls`, then `register 1` and on.
        arrange: how several captures stand to each other: `choose` one, `compare` two, `steps` of a slider.

    Raises:
        ValueError: neither side fits the picture; it cannot be read.
        LookupError: there is no such token, layer or head.
    """
    shown = photograph.read(picture)
    return _view(maps, shown, shown.size[::-1], grid, names, (layer, head, token), title, arrange, budget)


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
    budget: float = BUDGET,
) -> View:
    """As `image`, over a spectrogram: what a frame or a word looks at, in time.

    Args:
        spectrogram: [frequency, time], the lowest frequency first; drawn from its least to its greatest number.
        grid: None: a cell for each token, one after the other in time, as Whisper has them; (frequencies, times) where
            patches have a place in both, as in an audio spectrogram Transformer.
    """
    shown = photograph.spectrogram(spectrogram)
    return _view(maps, shown, None, grid, names, (layer, head, token), title, arrange, budget)


def _view(
    maps: AttentionMaps | Mapping[str, AttentionMaps],
    shown: Image.Image,
    size: tuple[int, int] | None,
    grid: Grid | None,
    names: Sequence[str],
    start: tuple[int, int, int | str | None],
    title: str | None,
    arrange: str,
    budget: float,
) -> View:
    given = {"": maps} if isinstance(maps, AttentionMaps) else dict(maps)
    if not given:
        raise ValueError("there are no maps; give AttentionMaps, or several by name, as look.groups(seen) has them")
    grids = dict(grid) if isinstance(grid, Mapping) else dict.fromkeys(given, grid)
    if unknown := [name for name in grids if name not in given]:
        raise ValueError(f"grid names {', '.join(map(repr, unknown))}; the captures are {', '.join(map(repr, given))}")
    for cells in filter(None, grids.values()):
        at_least(1, rows=cells[0], columns=cells[1])
    placed = {}
    for name, one in given.items():
        check_drawable(one)
        placed[name] = Placed.of(name, one, size, grids.get(name), names)
    _given(grid, placed)
    before = max((where.first for one in placed.values() for where in (one.rows, one.cols) if where), default=0)
    if len(names) > before:
        raise ValueError(f"names has {len(names)} names, and {before} tokens stand before the picture")
    if arrange == "compare" and len({(one.rows, one.cols, *one.maps.shape[2:]) for one in placed.values()}) > 1:
        raise ValueError("these captures lie on the picture in different cells, and cannot be compared cell by cell")
    last = list(placed)[-1 if arrange == "steps" else 0]
    begun = placed[last]
    layer, head, token = start
    layers, heads, *_ = begun.maps.shape
    layer, head = _counted("layer", layer, layers), _counted("head", head, heads)
    side, at = begun.words, begun.begin(layer, head, token)
    picture = onpicture(begun, shown, layer, head, at, title)
    state = {"mode": "picture", "part": list(placed).index(last), "layer": layer, "head": head, side: [at]}
    state["direction"] = "at" if side == "rows" else "by"
    parts = {name: one.maps for name, one in placed.items()}
    made = heads_view(picture, parts, state, title, budget=budget, arrange=arrange)
    made.document["picture"] = photograph.told(shown)
    for part, own in zip(made.document["parts"], placed.values(), strict=True):
        part["places"] = {side: where and where.told() for side, where in (("rows", own.rows), ("cols", own.cols))}
    made.document["note"] = f"{_said(placed)} {made.document['note']}".strip()
    return made


def _given(grid: Grid | None, placed: Mapping[str, Placed]) -> None:
    """A grid is that of some tokens, if not of all: keys may lie in larger cells than queries.

    Raises:
        ValueError: none lies in its cells.
    """
    asked = {name: [name] for name in grid} if isinstance(grid, Mapping) else {"": list(placed)}
    for name, captures in asked.items():
        wanted = grid[name] if isinstance(grid, Mapping) else grid
        sides = [one for capture in captures for one in (placed[capture].rows, placed[capture].cols) if one]
        found = list(dict.fromkeys((one.down, one.across) for one in sides))
        if wanted is not None and tuple(wanted) not in found:
            there = ", ".join(f"{down} x {across}" for down, across in found)
            own = f" of {name!r}" if name else ""
            raise ValueError(
                f"grid is {wanted[0]} x {wanted[1]} cells{own}, and the tokens lie in {there}: give those, or none"
            )


def _counted(name: str, number: int, count: int) -> int:
    """A layer or head from the front, where it was counted from the end."""
    at = index(number)
    check_index(name, at % count if -count <= at < 0 else at, count, f"{name}s")
    return at % count


def _said(placed: Mapping[str, Placed]) -> str:
    """How the tokens were taken to lie, in a sentence."""
    said: dict[str, None] = {}
    for where in (where for one in placed.values() for where in (one.rows, one.cols) if where):
        before = f"{counted(where.first, 'token')} and " if where.first else ""
        said[f"{before}{where.down} × {where.across} cells"] = None
    return f"Taken as {'; '.join(said)}."
