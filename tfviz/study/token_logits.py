"""`TokenLogits`: compute the logits of only a few tokens, if a metric reads no others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz.study.block_replay import BlockReplay
from tfviz.study.metrics import Metric, evaluate_metric, tokens_of
from tfviz.study.partial_forward import PartialForward


class TokenLogits(PartialForward):
    """A cheaper forward of the output projection, for only the tokens whose logits a metric reads.

    With a large vocabulary, the logits of all tokens cost as much as a block or more. Logits that are not computed are
    NaN. Whether the metric reads no others is tested on the unchanged run.

    Args:
        replay: the record of the unchanged run.
        metric: the metric, as for `patch`.
        logits: the logits of the unchanged run.
        enabled: whether to replace the forward.
    """

    def __init__(self, replay: BlockReplay, metric: Metric, logits: Tensor, enabled: bool) -> None:
        model, tokens = replay.model, tokens_of(metric)
        path = _output_projection(replay, logits.shape[-1]) if enabled and tokens else ""
        projection = model.get_submodule(path) if path else None
        super().__init__(model, {path: _of_tokens(projection, tokens)} if isinstance(projection, nn.Linear) else {})
        self.keep_if_exact(replay, list(replay.blocks), partial(evaluate_metric, metric), logits)


def _output_projection(replay: BlockReplay, vocab: int) -> str:
    """Return the path of the last `nn.Linear` to `vocab` outputs that ran after all blocks; empty if there is none."""
    end = max((replay.ends[block] for block in replay.blocks), default=0)
    found = {
        path: replay.ends[path]
        for path, module in replay.model.named_modules()
        if replay.starts.get(path, 0) > end and type(module) is nn.Linear and module.out_features == vocab
    }
    return max(found, key=found.__getitem__, default="")


def _of_tokens(module: nn.Linear, tokens: list[int]) -> Callable[[Tensor], Tensor]:
    """Return a forward that computes only the outputs `tokens` of a linear map; the others are NaN."""
    weight, bias = module.weight[tokens], None if module.bias is None else module.bias[tokens]

    def forward(x: Tensor) -> Tensor:
        logits = x.new_full((*x.shape[:-1], module.out_features), torch.nan)
        logits[..., tokens] = functional.linear(x, weight, bias)
        return logits

    return forward
