"""Compute the logits of a few tokens alone, where a metric reads no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz.study.block_replay import BlockReplay, replacing_forward
from tfviz.study.inputs import Inputs
from tfviz.study.last_position import TOLERANCE
from tfviz.study.metrics import Metric, measure, tokens_of


class TokenLogits:
    """The output projection of a language model, computed for the tokens whose logits a metric reads.

    With a large vocabulary, the logits of all tokens cost as much as a block or more. Those that are not computed are
    NaN. Whether the metric reads no others is tried on the unchanged run.

    Args:
        replay: of the unchanged run.
        inputs: of the unchanged run.
        metric: logits -> one number.
        logits: of the unchanged run.
        enabled: whether to try it.

    Attributes:
        path: of the output projection; empty if there is none, or if the metric would change.
    """

    def __init__(self, replay: BlockReplay, inputs: Inputs, metric: Metric, logits: Tensor, enabled: bool) -> None:
        self.model, self.tokens = replay.model, tokens_of(metric)
        self.path = _output_projection(replay, logits.shape[-1]) if enabled and self.tokens else ""
        if self.path and not self._is_exact(replay, inputs, metric, logits):
            self.path = ""

    def _is_exact(self, replay: BlockReplay, inputs: Inputs, metric: Metric, logits: Tensor) -> bool:
        """Return whether the unchanged run gives the same metric."""
        try:
            with replay.skipping(list(replay.blocks), 1), self.alone():
                found = measure(metric, inputs.logits(self.model))
        except (RuntimeError, ValueError, TypeError, IndexError):  # such as weights on another device
            return False
        change = (found - measure(metric, logits)).abs()
        return bool(change <= TOLERANCE * logits.abs().max())

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Compute no other logits inside the context."""
        if not self.path:
            yield
            return
        module = self.model.get_submodule(self.path)
        assert isinstance(module, nn.Linear)
        with replacing_forward(module, _of_tokens(module, self.tokens)):
            yield


def _output_projection(replay: BlockReplay, vocab: int) -> str:
    """Return the path of the linear map to the logits that was computed last, after all blocks; empty for none."""
    end = max((replay.ends[block] for block in replay.blocks), default=0)
    found = {
        path: replay.ends[path]
        for path, module in replay.model.named_modules()
        if replay.starts.get(path, 0) > end and type(module) is nn.Linear and module.out_features == vocab
    }
    return max(found, key=found.__getitem__, default="")


def _of_tokens(module: nn.Linear, tokens: list[int]) -> Callable[[Tensor], Tensor]:
    """Return the forward of a linear map for some of its outputs; the others are NaN."""
    weight, bias = module.weight[tokens], None if module.bias is None else module.bias[tokens]

    def forward(x: Tensor) -> Tensor:
        logits = x.new_full((*x.shape[:-1], module.out_features), torch.nan)
        logits[..., tokens] = functional.linear(x, weight, bias)
        return logits

    return forward
