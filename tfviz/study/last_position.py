"""Run what follows the last attention at the last position alone, where a metric reads no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor

from tfviz.look.module_stack import first_tensor_argument
from tfviz.study.block_replay import BlockReplay, replacing_forward
from tfviz.study.inputs import Inputs

TOLERANCE = 1e-4  # of logits, relative to the largest: matrices of another size are multiplied in another order


class LastPosition:
    """The modules of the last block that come after its attention: norm and feed-forward network.

    They work position by position, so that the last position of their input is enough: in a text of many positions
    they cost nothing then. Whether that holds is not known of a model, but tried, on the unchanged run.

    Args:
        replay: of the unchanged run.
        attentions: the paths of the attentions whose heads are patched.
        logits: of the unchanged run.

    Attributes:
        paths: of the modules; empty if the model's logits would change.
    """

    def __init__(self, replay: BlockReplay, inputs: Inputs, attentions: list[str], logits: Tensor) -> None:
        self.model = replay.model
        last = max(replay.blocks, key=lambda path: replay.ends[path], default="")
        inside = [path for path in attentions if path.startswith(f"{last}.")]
        self.paths = _following(replay, last, inside[-1]) if inside else []
        if self.paths and not self._is_exact(replay, inputs, logits):
            self.paths = []

    def _is_exact(self, replay: BlockReplay, inputs: Inputs, logits: Tensor) -> bool:
        """Return whether the unchanged run gives the same logits at the last position."""
        last = max(replay.blocks, key=lambda path: replay.ends[path])
        try:
            with replay.skipping(replay.before(last), 1), self.alone():
                found = inputs.logits(self.model)
        except (RuntimeError, ValueError, TypeError, IndexError):  # the model minds the shape
            return False
        first, second = (each[:, -1].float() if each.dim() == 3 else each.float() for each in (found, logits))
        allowed = TOLERANCE * second.abs().max()
        return first.shape == second.shape and bool(((first - second).abs() <= allowed).all())

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Run the modules at the last position alone inside the context."""
        with ExitStack() as undo:
            for path in self.paths:
                module = self.model.get_submodule(path)
                undo.enter_context(replacing_forward(module, _at_last(module.forward)))
            yield


def _following(replay: BlockReplay, block: str, attention: str) -> list[str]:
    """Return the outermost modules of a block that began after its attention had ended, in order."""
    later = [
        path for path, start in replay.starts.items() if path.startswith(f"{block}.") and start > replay.ends[attention]
    ]
    outermost = [path for path in later if path.rpartition(".")[0] not in later]
    return sorted(outermost, key=replay.starts.__getitem__)


def _at_last(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a forward that is given the last position of its first tensor, if that is [batch, position, dim]."""

    def alone(*args: Any, **kwargs: Any) -> Any:
        name, first = first_tensor_argument(args, kwargs)
        if first is None or first.dim() != 3:
            return forward(*args, **kwargs)
        last = first[:, -1:]
        if isinstance(name, int):
            return forward(*args[:name], last, *args[name + 1 :], **kwargs)
        return forward(*args, **{**kwargs, str(name): last})

    return alone
