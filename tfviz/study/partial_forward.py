"""Replace forwards by cheaper ones that compute only what a metric reads, if a trial run gives the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from tfviz.study.block_replay import BlockReplay, replacing_forward

TOLERANCE = 1e-4  # of logits, relative to the largest: matrices of another size are multiplied in another order


class PartialForward:
    """Forwards of some modules that leave out what a metric does not read.

    Args:
        model: the model.
        forwards: path of a module -> the forward that replaces its own.

    Attributes:
        paths: of the modules; empty after `keep_if_exact` found a difference.
    """

    def __init__(self, model: nn.Module, forwards: dict[str, Callable[..., Any]]) -> None:
        self.model, self.forwards = model, forwards

    @property
    def paths(self) -> list[str]:
        return list(self.forwards)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Replace the forwards inside the context."""
        with ExitStack() as undo:
            for path, forward in self.forwards.items():
                undo.enter_context(replacing_forward(self.model.get_submodule(path), forward))
            yield

    def keep_if_exact(
        self, replay: BlockReplay, skipped: list[str], read: Callable[[Tensor], Tensor], logits: Tensor
    ) -> None:
        """Remove the forwards unless the unchanged run gives the same with them.

        Args:
            replay: of the unchanged run.
            skipped: the blocks before the modules.
            read: logits -> what must be the same.
            logits: of the unchanged run; differences are relative to the largest.
        """
        if not self.forwards:
            return
        expected = read(logits)
        try:
            with replay.skipping(skipped, 1), self.applied():
                found = read(replay.inputs.logits(self.model))
        except (RuntimeError, ValueError, TypeError, IndexError):  # the model needs the whole tensor
            self.forwards = {}
            return
        allowed = TOLERANCE * logits.abs().max()
        if found.shape != expected.shape or not bool(((found - expected).abs() <= allowed).all()):
            self.forwards = {}
