"""`tfviz look`: a page with the attention of a checkpoint, or with the differences between two checkpoints."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from torch import Tensor

from tfviz import look, view
from tfviz.files import atomic
from tfviz.lessons.hf_checkpoint import Checkpoint, ModelInputs
from tfviz.view.figures.images import read_image
from tfviz.view.page.html import View, joined_page
from tfviz.view.patch_grid import find_grids

MAX_STUDIO_PARAMETERS = 20_000_000  # a larger model does not get a studio in the page
MAX_HEADS_RANKED = 20  # rows of the table of changes
STUDIOS: dict[str, Callable[..., Any]] = {
    "ForCausalLM": view.write, "LMHeadModel": view.write, "ForMaskedLM": view.fill,
    "ForSequenceClassification": view.classify,
}  # fmt: skip
Groups = Mapping[str, Any]  # look.AttentionMaps by name


def page(name: str, text: str, image: Path | None, other: str | None, out: Path) -> None:
    """Write a page with the attention of a checkpoint, or a comparison of two checkpoints.

    Args:
        name: a folder with a checkpoint, or a name on the Hub.
        text: the text, if the model reads text.
        image: the path of the picture, if the model reads pictures.
        other: the checkpoint to compare with; None: no comparison.
        out: the path of the page.

    Raises:
        ImportError, OSError, ValueError: as for `Checkpoint` and `Checkpoint.prepare`.
        ValueError: the two checkpoints cannot be compared.
    """
    if other is not None and _absolute(name) == _absolute(other):
        raise ValueError(f"{name} and {other} are one checkpoint; compare with another")
    checkpoint, inputs, groups = _capture(name, text, image)
    if other is None:
        title = f"{_absolute(name).name}: what it looks at"
        parts: dict[str, View | str] = {**_views(groups, inputs), **_studio(checkpoint, text)}
    else:
        short = (_absolute(name).name, _absolute(other).name)
        names = short if len({*short}) == 2 else (name, other)
        decoder_ids = inputs.arguments.get("decoder_input_ids")
        del checkpoint  # two may need more memory than there is
        _, other_inputs, other_groups = _capture(other, text, image, decoder_ids)
        if other_inputs.tokens != inputs.tokens:
            raise ValueError(
                f"{names[0]} and {names[1]} split this text into different tokens; their maps cannot be compared"
            )
        title = f"{names[0]} and {names[1]}: what changed"
        parts = _comparison(groups, other_groups, names)
    with atomic(out) as draft:
        draft.write_text(joined_page(title, parts), encoding="utf-8", newline="\n")
    click.echo(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


def _absolute(name: str) -> Path:
    """Return a folder or a name on the Hub as an absolute path, which ends in a name even for "."."""
    return Path(os.path.abspath(os.path.expanduser(name)))


def _capture(
    name: str, text: str, path: Path | None, decoder_ids: Tensor | None = None
) -> tuple[Checkpoint, ModelInputs, Groups]:
    """Load a checkpoint, run it once, and return it with its inputs and its attention maps by group."""
    short = _absolute(name).name
    click.echo(f"{short}: loading")
    checkpoint = Checkpoint(name)
    image = None if path is None else read_image(path)
    click.echo(f"{short}: {type(checkpoint.model).__name__}, {checkpoint.size:,} parameters")
    try:
        inputs = checkpoint.prepare(text, image, decoder_ids)
        groups, summary = checkpoint.attention(inputs)
    except (ValueError, LookupError, OSError, ImportError):
        raise
    except Exception as error:  # a damaged checkpoint makes a model or a tokenizer raise anything
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise ValueError(f"{name} cannot be run: {reason}; get the checkpoint again") from error
    if image is not None and inputs.image is None:
        click.echo(f"{short}: its picture is cut into pieces that no view knows: maps are shown without it")
    click.echo(f"{short}: {summary}")
    for group, maps in groups.items():
        click.echo(f"  {group}: {' × '.join(map(str, maps.shape))} (layer, head, query, key)")
    return checkpoint, inputs, groups


def _views(groups: Groups, inputs: ModelInputs) -> dict[str, View]:
    """Return views of all maps by heading: on the picture for maps with patches, as a sheet of heads for others."""
    if inputs.image is None:
        return {"": view.groups(**groups)}
    size = (inputs.image.shape[1], inputs.image.shape[2])
    over = {
        name: maps for name, maps in groups.items() if any(find_grids(maps.query_tokens, maps.key_tokens, size, None))
    }
    rest = {name: maps for name, maps in groups.items() if name not in over}
    views: dict[str, View] = {"On the picture": view.image(over, inputs.image)} if over else {}
    return {**views, **({"Elsewhere": view.groups(**rest)} if rest else {})}


def _studio(checkpoint: Checkpoint, text: str) -> dict[str, View]:
    """Return {heading: studio} for the model; empty if no studio fits or the model is too large for a page."""
    name = type(checkpoint.model).__name__
    studio = next((studio for suffix, studio in STUDIOS.items() if name.endswith(suffix)), None)
    if studio is None or checkpoint.sees_pictures:
        return {}
    if checkpoint.size > MAX_STUDIO_PARAMETERS:
        click.echo(
            f"no studio: {checkpoint.size:,} parameters are too many for a page, which takes {MAX_STUDIO_PARAMETERS:,}"
        )
        return {}
    try:
        if studio is view.classify:
            return {"Question it": _classify(checkpoint, text)}
        return {"Question it": studio(checkpoint.model, checkpoint.tokenizer, text)}
    except (ValueError, TypeError, LookupError) as error:
        click.echo(f"no studio: {error}")
        return {}


def _classify(checkpoint: Checkpoint, text: str) -> View:
    """Return the studio of a classifier, with its labels and with the ids that its tokenizer adds around a text.

    Raises:
        ValueError: the tokenizer adds more than one token at an end.
    """
    tokenizer: Any = checkpoint.tokenizer
    plain, whole = (tokenizer(text, add_special_tokens=added)["input_ids"] for added in (False, True))
    start = next((at for at in range(len(whole)) if whole[at : at + len(plain)] == plain), len(whole))
    before, after = whole[:start], whole[start + len(plain) :]
    if max(len(before), len(after)) > 1:
        raise ValueError("its tokenizer adds more than one token before or after a text")
    names = checkpoint.config.id2label
    labels, ends = [names[label] for label in sorted(names)], {"bos": [*before, None][0], "eos": [*after, None][0]}
    return view.classify(checkpoint.model, tokenizer, labels, text, **ends)


def _comparison(groups: Groups, others: Groups, names: tuple[str, str]) -> dict[str, View | str]:
    """Return a table of heads ranked by their change, and views of both checkpoints side by side, by heading."""
    shared = [name for name, maps in groups.items() if name in others and others[name].shape == maps.shape]
    if not shared:
        raise ValueError(f"{names[0]} and {names[1]} have no maps of one name and shape")
    ranked: list[tuple[float, str, int, int]] = []
    for name in shared:
        change = look.measures.total_variation(groups[name], others[name])
        layers, heads = change.shape
        ranked += [(float(change[i, j]), name, i, j) for i in range(layers) for j in range(heads)]
    ranked.sort(key=lambda row: (-row[0], *row[1:]))
    for amount, name, layer, head in ranked[:5]:
        click.echo(f"  {amount:.2f} {name}, layer {layer}, head {head}")
    parts: dict[str, View | str] = {"Heads by how much they changed": _change_table(ranked[:MAX_HEADS_RANKED])}
    for name in shared:
        layer, head = next((layer, head) for _, group, layer, head in ranked if group == name)
        parts[name] = view.compare(groups[name], others[name], layer, head, names)
    return parts


def _change_table(ranked: list[tuple[float, str, int, int]]) -> str:
    rows = "".join(
        f"<tr><td>{amount:.3f}</td><td>{html.escape(name)}</td><td>{layer}</td><td>{head}</td></tr>"
        for amount, name, layer, head in ranked
    )
    caption = "Half the sum of |difference| of a query's weights, mean over queries: 0 the same, 1 nothing in common."
    head = "".join(f"<th>{name}</th>" for name in ("change", "where", "layer", "head"))
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
