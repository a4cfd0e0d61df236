"""The programs of a language model: one that reads a text, one that goes on by a token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.portable.export import export
from tfviz.portable.program import Program


class Given:
    """Keys and values of one attention, as tensors go in and come out: stands for `layers.KeyValues`."""

    def __init__(self, keys: Tensor | None = None, values: Tensor | None = None):
        self.keys, self.values = keys, values

    @property
    def length(self) -> int:
        return 0 if self.keys is None else self.keys.shape[2]

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        if self.keys is not None and self.values is not None:
            keys, values = torch.cat((self.keys, keys), 2), torch.cat((self.values, values), 2)
        self.keys, self.values = keys, values
        return keys, values


def language(model: nn.Module, weights: str = "float16", example: int = 5) -> dict[str, Program]:
    """`read`: the logits after every token of a text; `step`, if the model has a cache: after one more.

    Args:
        model: called with ids, batch position, it gives logits, or what has them as `.logits`. If its `new_cache()`
            gives keys and values, as that of `models.GPT`, it is called with those too.
        example: tokens of the text that it is followed with.

    Raises:
        ValueError: as `export`.
    """
    first = next(model.parameters(), None)
    if first is None:
        raise ValueError(f"{type(model).__name__} has no weights; give a model that was trained")
    device = first.device
    ids = torch.arange(example, device=device)[None] % 2
    new_cache: Any = getattr(model, "new_cache", lambda: [None])
    if not (caches := new_cache()) or not all(hasattr(one, "extend") for one in caches):

        def plain(ids: Tensor) -> dict[str, Tensor]:
            made = model(ids)
            return {"logits": getattr(made, "logits", made)}

        return {"read": export(plain, ids, lengths={"ids": {1: "words"}}, weights=weights)}

    count = len(caches)

    def read(ids: Tensor) -> dict[str, Any]:
        kept = [Given() for _ in range(count)]
        return {"logits": model(ids, kept), **_kept(kept)}

    def step(ids: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]) -> dict[str, Any]:
        kept = [Given(key, value) for key, value in zip(keys, values)]
        return {"logits": model(ids, kept), **_kept(kept)}

    reading = export(read, ids, lengths={"ids": {1: "words"}}, weights=weights)
    made = reading(ids.cpu())
    given = [[made[f"{name}.{i}"].to(device) for i in range(count)] for name in ("keys", "values")]
    before = {"keys": {2: "before"}, "values": {2: "before"}}
    return {"read": reading, "step": export(step, ids[:, :1], *given, lengths=before, weights=weights)}


def _kept(kept: Sequence[Given]) -> dict[str, list[Tensor | None]]:
    return {"keys": [one.keys for one in kept], "values": [one.values for one in kept]}
