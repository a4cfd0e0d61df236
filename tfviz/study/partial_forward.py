"""`PartialForward`: cheaper forwards that compute only what a metric reads, after a test for equal results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from tfviz.study.block_replay import BlockReplay, replacing_forward

TOLERANCE = 1e-4  # relative to the largest logit; products of other matrix sizes are rounded differently


class PartialForward:
    """Replacements for the forwards of some modules, which compute only what a metric reads.

    Args:
        model: the model.
        forwards: path of a module -> the function that replaces its `forward`.

    Attributes:
        paths: the paths of the modules; empty after `keep_if_exact` found a difference.
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
        """Remove the replacements unless the unchanged run gives the same result with them.

        Args:
            replay: the record of the unchanged run.
            skipped: the paths of the blocks before the modules, which are not run again.
            read: logits -> the tensor that must be the same.
            logits: the logits of the unchanged run; the tolerance is relative to the largest.
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
