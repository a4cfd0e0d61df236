"""Export a language model as two programs: `read` for a text, `step` for one more token with a key/value cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.eval_mode import weights_device
from tfviz.logits import extract_logits
from tfviz.portable.export import export
from tfviz.portable.program import Program

EXAMPLE_LENGTH = 5  # tokens with which the model is traced


class ExportCache:
    """The key/value cache of one attention in an exported program, with the methods of `layers.KVCache`.

    Args:
        keys: [batch, head, position, head_dim]; None: the cache is empty.
        values: [batch, head, position, head_dim]; None: the cache is empty.
    """

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


def export_language_model(model: nn.Module, dtype: str = "float16") -> dict[str, Program]:
    """Export a language model as the program `read` and, if it has a cache, the program `step`.

    `read` returns the logits at every token of a text; `step` returns those at one more token, given the cached keys
    and values.

    Args:
        model: a model of ids [batch, position] that returns logits, or an object with `.logits`. If it has a method
            `new_cache` that returns caches with a method `extend`, as `models.GPT` does, it is called with ids and
            caches, and exported as `step`, too.
        dtype: the storage format of the weights; see `export`.

    Raises:
        ValueError: as for `export`.
    """
    device = weights_device(model)
    ids = torch.arange(EXAMPLE_LENGTH, device=device)[None] % 2
    caches: Any = getattr(model, "new_cache", list)()
    count = len(caches)

    def read_all(ids: Tensor) -> dict[str, Tensor]:
        return {"logits": extract_logits(model(ids))}

    def read(ids: Tensor) -> dict[str, Any]:
        caches = [ExportCache() for _ in range(count)]
        return _outputs(model(ids, caches), caches)

    def step(ids: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]) -> dict[str, Any]:
        caches = [ExportCache(key, value) for key, value in zip(keys, values)]
        return _outputs(model(ids, caches), caches)

    lengths = {"ids": {1: "positions"}}
    if not count or not all(hasattr(cache, "extend") for cache in caches):
        return {"read": export(read_all, ids, lengths=lengths, dtype=dtype)}
    reading = export(read, ids, lengths=lengths, dtype=dtype)
    outputs = reading(ids.cpu())
    past = [[outputs[f"{name}.{i}"].to(device) for i in range(count)] for name in ("keys", "values")]
    before = {"keys": {2: "before"}, "values": {2: "before"}}
    return {"read": reading, "step": export(step, ids[:, :1], *past, lengths=before, dtype=dtype)}


def _outputs(logits: Tensor, caches: Sequence[ExportCache]) -> dict[str, Any]:
    return {"logits": logits, "keys": [cache.keys for cache in caches], "values": [cache.values for cache in caches]}
