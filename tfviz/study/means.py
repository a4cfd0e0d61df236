"""`mean_activations`: mean activations over a data set, for mean ablation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.eval_mode import model_device
from tfviz.look.capture_result import Capture
from tfviz.study.aggregation import aggregate
from tfviz.study.collate import Tokenize
from tfviz.study.inputs import Inputs, attention_mask_at, marked_like
from tfviz.study.sites import check_activation, single_invocations
from tfviz.study.statistics import Statistics

COUNT = " tokens"  # ends the names of token counts; no site's name ends so


def mean_activations(
    model: nn.Module,
    texts: Iterable[Any],
    *,
    sites: str | Sequence[str] = "*.output_heads",
    by_position: bool = False,
    tokenize: Tokenize | None = None,
    batch_size: int = 16,
    progress: bool = True,
    resume: str | Path | None = None,
) -> dict[str, Tensor]:
    """Return the mean of activations over all tokens of a data set, for mean ablation by `patch(..., source=means)`.

    Args:
        model: the model to run.
        texts: batches, or single texts, in any form that `aggregate` takes.
        sites: globs of modules, whose output is [batch, position, dim], of their `.input`, or of `.output_heads`.
        by_position: whether to return a mean for each position, which needs texts of one length; else one mean over
            all positions.
        tokenize: strings -> the model's arguments, padded; for strings only.
        batch_size: the number of single texts in a batch.
        progress: whether to show a progress bar.
        resume: a file to which the sums are written about every 30 seconds; a call with the same arguments continues
            from it.

    Returns:
        site -> the mean, [1, (head,) 1, dim], or [1, (head,) position, dim] by position. Padding, which the attention
        mask marks, does not count.

    Raises:
        LookupError: no site matches.
        ValueError: a site is not an activation, or has several invocations in a run; `by_position` is True, and the
            texts have different lengths.

    >>> from tfviz import models
    >>> gpt, texts = models.GPT(11, layers=2, heads=3, dim=6), torch.randint(0, 11, (4, 5)).split(2)
    >>> {site: list(mean.shape) for site, mean in mean_activations(gpt, texts, progress=False).items()}
    {'blocks.0.attention.output_heads': [1, 3, 1, 2], 'blocks.1.attention.output_heads': [1, 3, 1, 2]}
    """
    found = aggregate(
        model,
        texts,
        _TokenSums(by_position),
        sites=sites,
        tokenize=tokenize,
        batch_size=batch_size,
        top_k=1,
        progress=progress,
        resume=resume,
    )
    device = model_device(model)
    return {site: _mean(site, found).to(device) for site in found if not site.endswith(COUNT)}


class _TokenSums:
    """A measure for `aggregate`: the sum of activations over the tokens of each text, and the number of tokens."""

    def __init__(self, by_position: bool) -> None:
        self.by_position, self.length = by_position, 0

    def __repr__(self) -> str:
        return f"sums, by_position={self.by_position}"

    def __call__(self, captured: Capture, inputs: Inputs) -> Mapping[str, Tensor]:
        """Return site -> sums [text, (head,) position or 1, dim], and "site tokens" -> counts [text, position or 1]."""
        values: dict[str, Tensor] = {}
        if self.by_position:
            self._check_length(inputs)
        for site, activation in single_invocations(captured).items():
            check_activation(site, activation, inputs.size)
            tokens = attention_mask_at(inputs, site, activation.shape[-2]).to(activation.device)
            sums, counts = torch.where(marked_like(activation, tokens), activation.double(), 0.0), tokens.double()
            if not self.by_position:
                sums, counts = sums.sum(-2, keepdim=True), counts.sum(-1, keepdim=True)
            values |= {site: sums, f"{site}{COUNT}": counts}
        return values

    def _check_length(self, inputs: Inputs) -> None:
        """Raise ValueError if the texts have another length than those of earlier batches."""
        length = inputs.tensors[0].shape[1]
        if self.length not in (0, length):
            raise ValueError(f"texts have {self.length} and {length} positions; by_position needs texts of one length")
        self.length = length


def _mean(site: str, found: Mapping[str, Statistics]) -> Tensor:
    """Return the mean activation of a site over all tokens, [1, (head,) position or 1, dim]."""
    return (found[site].means / found[f"{site}{COUNT}"].means[:, None])[None].float()
