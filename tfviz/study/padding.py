"""Checks of padding: metrics that read padding, prompts with different masks, and shifted positions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.shapes import Bool, Float
from tfviz.study.block_replay import hooked
from tfviz.study.check_prompts import MASK_ARGUMENTS
from tfviz.study.inputs import Inputs, attention_mask_of, ids_at
from tfviz.study.metrics import Metric


def check_position(metric: Metric, inputs: Inputs, logits: Float[Tensor, "batch *position vocab"]) -> None:
    """Raise ValueError if the position that a metric reads is padding; a position that is unknown is not checked."""
    position, tokens = getattr(metric, "position", None), _real_tokens(inputs)
    if position is None or tokens is None or logits.dim() != 3:
        return
    positions = torch.as_tensor(position, device=tokens.device).flatten().expand(len(tokens))
    padded = (~tokens.gather(1, positions[:, None] % tokens.shape[1])).flatten().nonzero()
    if len(padded):
        text = int(padded[0])
        raise ValueError(
            f"the metric reads position {int(positions[text])}, which is padding in text {text}: pad on the left, or "
            "give the metric position=, one number for each text, such as attention_mask.sum(-1) - 1"
        )


def check_equal_masks(clean: Inputs, corrupt: Inputs) -> None:
    """Raise ValueError if two prompts have different attention masks."""
    for name in (*MASK_ARGUMENTS, "decoder_attention_mask"):
        first, second = clean.named.get(name), corrupt.named.get(name)
        if isinstance(first, Tensor) and isinstance(second, Tensor) and not torch.equal(first, second):
            raise ValueError(
                f"clean and corrupt differ in {name}, so that a token of one is where the other has padding or "
                f"another token; give prompts of equally many tokens"
            )


@contextmanager
def warning_of_shifted_positions(model: nn.Module, inputs: Inputs) -> Iterator[None]:
    """Warn if a model that runs inside the context counts positions from left padding on, as GPT-2 does.

    Such a model looks up the position embeddings 0, 1, 2, ... whether or not the first positions are padding.
    """
    tokens = None if "position_ids" in inputs.named else _real_tokens(inputs)
    if tokens is None or bool((tokens[:, :-1] | ~tokens[:, 1:]).all()):
        yield
        return
    ids, shifted = ids_at(inputs, "decoder"), []

    def before(path: str, _: nn.Module, args: tuple[Any, ...], __: Mapping[str, Any]) -> None:
        given = args[0] if args else None
        if not isinstance(given, Tensor) or given.is_floating_point() or torch.equal(given, ids):
            return
        if given.shape[-1:] == ids.shape[-1:] and bool((given.diff(dim=-1) == 1).all()):
            shifted.append(path)

    with hooked(((path, part) for path, part in model.named_modules() if isinstance(part, nn.Embedding)), before):
        yield
    if shifted:
        warnings.warn(
            f"the texts are padded on the left, and {shifted[0]} counts positions from the padding on, so tokens get "
            f"other positions than without padding; give position_ids, (attention_mask.cumsum(-1) - 1).clamp(min=0)",
            stacklevel=3,
        )


def _real_tokens(inputs: Inputs) -> Bool[Tensor, "batch position"] | None:
    """Return a mask of the decoder's or the only text, True at tokens; None without ids or a mask that fits them."""
    try:
        return attention_mask_of(inputs, ids_at(inputs, "decoder"), "decoder")
    except ValueError:
        return None
