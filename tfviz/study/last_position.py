"""`LastPosition`: run the modules after the last attention only at the last position, if a metric reads no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from tfviz.look.module_paths import is_within
from tfviz.look.module_stack import first_tensor_argument
from tfviz.study.block_replay import BlockReplay
from tfviz.study.partial_forward import PartialForward


class LastPosition(PartialForward):
    """Cheaper forwards of the modules after the attention of the last block, such as norm and feed-forward network.

    These modules usually compute each position separately, so the last position of their input suffices, at almost no
    cost in a long text. This is tested on the unchanged run.

    Args:
        replay: the record of the unchanged run.
        attentions: the paths of the attentions whose heads are patched; empty: no module is replaced.
        logits: the logits of the unchanged run.
    """

    def __init__(self, replay: BlockReplay, attentions: list[str], logits: Tensor) -> None:
        model = replay.model
        last = max(replay.blocks, key=replay.ends.__getitem__, default=None)
        inside = [] if last is None else [path for path in attentions if is_within(path, last)]
        paths = [] if last is None or not inside else _following(replay, last, inside[-1])
        super().__init__(model, {path: _at_last(model.get_submodule(path).forward) for path in paths})
        if last is not None:
            self.keep_if_exact(replay, replay.before(last), _last_logits, _last_logits(logits))


def _last_logits(logits: Tensor) -> Tensor:
    """Return the logits at the last position, or all logits if they have no axis of positions."""
    return (logits[:, -1] if logits.dim() == 3 else logits).float()


def _following(replay: BlockReplay, block: str, attention: str) -> list[str]:
    """Return the paths of a block's outermost modules that ran after its attention, in order."""
    later = [path for path, start in replay.starts.items() if is_within(path, block) and start > replay.ends[attention]]
    outermost = [path for path in later if path.rpartition(".")[0] not in later]
    return sorted(outermost, key=replay.starts.__getitem__)


def _at_last(forward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a forward that computes only the last position, if its first tensor is [batch, position, dim]."""

    def last_forward(*args: Any, **kwargs: Any) -> Any:
        name, first = first_tensor_argument(args, kwargs)
        if first is None or first.dim() != 3:
            return forward(*args, **kwargs)
        last = first[:, -1:]
        if isinstance(name, int):
            return forward(*args[:name], last, *args[name + 1 :], **kwargs)
        return forward(*args, **{**kwargs, str(name): last})

    return last_forward
