"""What studios of one text share: the program that reads it, the ids that frame it, the words of its maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from tfviz.doors import what
from tfviz.portable.export import export
from tfviz.portable.program import Program
from tfviz.view.page.here import Here, positions

if TYPE_CHECKING:
    from tfviz.view.page.questioned import Asked, Words

CONTEXT = 1024  # tokens that a model without a limit of its own reads in a page


def axes(vocab: Any) -> Words:
    """The words of the maps of one text."""

    def words(asked: Asked) -> dict[str, tuple[list[str], list[str]]]:
        text = vocab.words(asked["read"][0][0])
        return {"": (text, text)}

    return words


def reading(model: nn.Module, vocab: Any, weights: str | None) -> Program | Here:
    """What reads one text of any length: a program that travels, or without `weights` the model where it is."""

    def read(ids: Tensor) -> dict[str, Tensor]:
        made = model(ids)
        return {"logits": getattr(made, "tokens", getattr(made, "logits", made))}

    first = next(model.parameters(), None)
    if first is None:
        raise ValueError(f"{type(model).__name__} has no weights; give a model that was trained")
    if weights is None:
        return Here(model, read, {"ids": len(vocab)})
    example = torch.arange(3, device=first.device)[None] % 2 + 1  # id 0 is padding
    return export(read, example, lengths={"ids": {1: "words"}}, weights=weights)


def finite(logits: Tensor) -> None:
    if not bool(logits.isfinite().all()):
        raise ValueError("the model's logits are not finite: it has nothing to say; look for NaN in its weights")


def context_of(program: Program | Here) -> int:
    """How many tokens the model takes."""
    if isinstance(program, Here):
        return positions(program.model) or CONTEXT
    return program.described["lengths"]["words"][1] or CONTEXT


def plain(vocab: Any, kernel: bool) -> dict[str, Any]:
    """A vocabulary as a page is told of it: one that it encodes with, else one that a kernel encodes with."""
    if not hasattr(vocab, "described"):
        raise TypeError(
            f"vocab is {what(vocab)}, which a page cannot encode with: give a vocabulary of tfviz.text, such as "
            "text.whole_words(texts), or a fast tokenizer of transformers"
        )
    try:
        return vocab.described()
    except ValueError as error:
        if kernel:
            return vocab.asked()
        raise ValueError(f"{error}: with kernel=True Python encodes") from error


def known(vocab: Any, name: str, index: int | None) -> int | None:
    if index is not None and not (isinstance(index, int) and 0 <= index < len(vocab)):
        raise ValueError(f"{name} is {index!r}, and the ids of this vocabulary go from 0 to {len(vocab) - 1}")
    return index


def whole(ids: Tensor, frame: dict[str, int | None], context: int) -> Tensor:
    """One text as the model reads it, a batch of one."""
    room = context - sum(index is not None for index in frame.values())
    if not 0 < len(ids) <= room:
        raise ValueError(f"the text has {len(ids)} tokens; the model takes 1 to {room}: give another one")
    front, back = ([] if frame[key] is None else [frame[key]] for key in ("before", "after"))
    return torch.cat([torch.tensor(front, dtype=torch.long), ids, torch.tensor(back, dtype=torch.long)])[None]
