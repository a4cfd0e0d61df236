"""`FusedWeights`: the weights of a fused attention call, recomputed as [batch, head, query, key]."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from tfviz.look.attention_call import AttentionCall, compact_mask
from tfviz.look.axes import Layout, OutputAxes
from tfviz.look.key_signatures import KeyRecord, keys_of_call


@dataclass
class FusedWeights:
    """The weights of a fused call, and the layout of their axes.

    Heads may share an axis with the batch, or lie on the query axis of a single query.
    """

    call: AttentionCall
    layout: Layout

    def arrange(self, tensor: Tensor) -> Tensor:
        """Reshape a tensor of the call's shape to [batch, head, query, key]."""
        return tensor if self.layout.is_plain else self.layout.to_bhqk(tensor.reshape(self.layout.shape))

    def scores(self) -> Tensor:
        return self.arrange(self.call.scores())

    def pattern(self, dtype: torch.dtype) -> Tensor:
        return self.arrange(self.call.pattern(dtype))

    def allowed(self) -> Tensor | None:
        """Return a mask, True where a query may attend; None if every query may attend to every key."""
        allowed = self.call.allowed()
        if allowed is None or self.layout.is_plain:
            return allowed
        return compact_mask(self.arrange(allowed.expand(self.call.shape)))

    def output_axes(self, output: Tensor) -> OutputAxes:
        """Return the axes of the call's output."""
        keys = len(self.layout.shape) - 1
        return OutputAxes(self.layout.with_dim(keys, output.shape[-1]), tuple(range(output.dim())))

    def key_record(self) -> KeyRecord:
        """Return the key record of the call, by which maps are joined over time."""
        full_mask = cache(self.allowed)

        def allowed(rows: slice) -> Tensor | None:
            if self.layout.is_plain:
                return self.call.allowed(rows)
            mask = full_mask()
            return None if mask is None else mask[:, :, rows]

        return KeyRecord(self.layout.sizes[2], allowed, keys_of_call(self.call, self.layout), self.call.key.dtype)
