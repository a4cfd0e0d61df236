"""Gradient checkpointing: blocks are recomputed in the backward pass instead of being stored."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint


class CheckpointedBlocks(AbstractContextManager[None]):
    """A context in which blocks store only their input and recompute the rest in the backward pass.

    Blocks are the members of a `ModuleList` (Chen et al. 2016, "Training deep nets with sublinear memory cost"). The
    context can be entered repeatedly. It reuses its functions, since `torch.compile` would compile new ones again.

    Raises:
        ValueError: the model has no `ModuleList`.
    """

    def __init__(self, model: nn.Module):
        lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
        self.blocks = [block for blocks in lists for block in blocks]
        if not self.blocks:
            raise ValueError(f"{type(model).__name__} has no nn.ModuleList; it has no blocks to recompute")
        self.forwards = [partial(checkpoint, block.forward, use_reentrant=False) for block in self.blocks]
        self.config = getattr(model, "config", None)  # models of Hugging Face would fill their cache twice
        self.use_cache: bool | None = None

    def __enter__(self) -> None:
        self.use_cache = getattr(self.config, "use_cache", None)
        if self.use_cache:
            self.config.use_cache = False  # type: ignore[union-attr]
        for block, forward in zip(self.blocks, self.forwards):
            block.forward = forward

    def __exit__(self, *_: Any) -> None:
        for block in self.blocks:
            del block.forward
        if self.use_cache:
            self.config.use_cache = self.use_cache  # type: ignore[union-attr]
