"""`tfviz look`: one page with all that a checkpoint looks at, or with what two of them look at otherwise."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from tfviz import look, view
from tfviz.files import atomic
from tfviz.suite.checkpoint import Checkpoint, Given
from tfviz.view.page.html import View, together
from tfviz.view.still.images import read_image
from tfviz.view.still.patch_grid import find_grids

SMALL = 20_000_000  # parameters of a model that can travel
RANKED = 20  # heads of a list
Say = Callable[[str], None]


def page(name: str, text: str, picture: Path | None, other: str | None, out: Path, say: Say) -> Path:
    """Write the page of a checkpoint, or of two.

    Raises:
        ImportError, OSError, ValueError: as `Checkpoint`, `Checkpoint.given`; the two do not fit.
    """
    if other is not None and Path(name) == Path(other):
        raise ValueError(f"both checkpoints are {name}; give another one to compare it with")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("the text holds bytes that are no UTF-8; give it in UTF-8")
    checkpoint, given, groups = _looked(name, text, picture, say)
    if other is None:
        title = f"{_short(name)}: what it looks at"
        parts: dict[str, View | str] = {**_views(groups, given), **_studio(checkpoint, text, say)}
    else:
        names = (_short(name), _short(other)) if _short(name) != _short(other) else (name, other)
        written = given.inputs.get("decoder_input_ids")
        del checkpoint  # two may be more than fit
        _, its, others = _looked(other, text, picture, say, written)
        if its.words != given.words:
            raise ValueError(f"{names[0]} and {names[1]} part this text into other tokens: no two maps can be compared")
        title = f"{names[0]} and {names[1]}: what changed"
        parts = _compared(groups, others, names, say)
    with atomic(out) as draft:
        draft.write_text(together(title, parts), encoding="utf-8")
    say(f"{out}: {out.stat().st_size / 1e6:.1f} MB")
    return out


def _looked(
    name: str, text: str, picture: Path | None, say: Say, written: Tensor | None = None
) -> tuple[Checkpoint, Given, dict[str, look.AttentionMaps]]:
    say(f"{_short(name)}: loading")
    checkpoint = Checkpoint(name)
    seen = None if picture is None else read_image(picture)
    say(f"{_short(name)}: {type(checkpoint.model).__name__}, {checkpoint.size:,} parameters")
    try:
        given = checkpoint.given(text, seen, written)
        groups, told = checkpoint.groups(given)
    except (ValueError, LookupError, OSError, ImportError):
        raise
    except Exception as error:  # whatever a damaged checkpoint makes a model or a tokenizer raise
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(f"{name} cannot be run: {lines[0][:200]}; get the checkpoint again") from error
    if seen is not None and given.picture is None:
        say(f"{_short(name)}: its picture is in pieces that no view knows: maps are shown without it")
    say(f"{_short(name)}: {told}")
    for group, maps in groups.items():
        say(f"  {group}: {' × '.join(map(str, maps.shape))} (layer, head, query, key)")
    return checkpoint, given, groups


def _views(groups: Mapping[str, Any], given: Given) -> dict[str, View]:
    """All maps: those that lie on the picture over it, the others as a sheet."""
    if given.picture is None:
        return {"": view.sources(**groups)}
    onto: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    size = (given.picture.shape[1], given.picture.shape[2])
    for name, maps in groups.items():
        (onto if any(find_grids(maps.rows, maps.cols, size, None)) else rest)[name] = maps
    made = {"On the picture": view.image(onto, given.picture)} if onto else {}
    return {**made, **({"Elsewhere": view.sources(**rest)} if rest else {})}


def _studio(checkpoint: Checkpoint, text: str, say: Say) -> dict[str, View]:
    """The model itself, to question, where it is small enough to travel."""
    kinds: dict[str, Callable[..., Any]] = {
        "ForCausalLM": view.write, "LMHeadModel": view.write, "ForMaskedLM": view.fill,
        "ForSequenceClassification": view.classify,
    }  # fmt: skip
    kind = next((made for ending, made in kinds.items() if type(checkpoint.model).__name__.endswith(ending)), None)
    if kind is None or checkpoint.sees:
        return {}
    if checkpoint.size > SMALL:
        say(f"no studio: {checkpoint.size:,} parameters are too many to travel in a page, which takes {SMALL:,}")
        return {}
    try:
        return {"Question it": kind(checkpoint.model, checkpoint.tokenizer, text)}
    except (ValueError, TypeError, LookupError) as error:
        say(f"no studio: {error}")
        return {}


def _compared(
    groups: Mapping[str, look.AttentionMaps], others: Mapping[str, look.AttentionMaps], names: tuple[str, str], say: Say
) -> dict[str, View | str]:
    """Heads by how much they changed, and both checkpoints side by side, from the head that changed most."""
    both = [name for name, maps in groups.items() if name in others and others[name].shape == maps.shape]
    if not both:
        raise ValueError(f"{names[0]} and {names[1]} have no maps of one name and shape")
    changes = {name: look.measures.change(groups[name], others[name]) for name in both}
    ranked = sorted(
        ((float(change[layer, head]), name, layer, head) for name, change in changes.items()
         for layer in range(len(change)) for head in range(change.shape[1])),
        key=lambda found: (-found[0], *found[1:]),
    )  # fmt: skip
    for amount, name, layer, head in ranked[:5]:
        say(f"  {amount:.2f} {name}, layer {layer}, head {head}")
    made: dict[str, View | str] = {"Heads by how much they changed": _table(ranked[:RANKED])}
    for name in both:
        layer, head = next((layer, head) for _, group, layer, head in ranked if group == name)
        made[name] = view.compare(groups[name], others[name], layer, head, names)
    return made


def _table(ranked: list[tuple[float, str, int, int]]) -> str:
    rows = "".join(
        f"<tr><td>{amount:.3f}</td><td>{html.escape(name)}</td><td>{layer}</td><td>{head}</td></tr>"
        for amount, name, layer, head in ranked
    )
    said = "Half the sum of |difference| of a query's weights, mean over the queries: 0 the same, 1 nothing in common."
    head = "".join(f"<th>{name}</th>" for name in ("change", "where", "layer", "head"))
    return f"<table><caption>{said}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _short(name: str) -> str:
    return Path(name).name or name
