"""`compare`: the difference between two checkpoints of a model over a data set, for each head and in predictions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.eval_mode import eval_mode
from tfviz.look.capture import capture
from tfviz.look.capture_result import Capture
from tfviz.look.map_arguments import range_labels
from tfviz.study.aggregation import aggregate
from tfviz.study.collate import Tokenize
from tfviz.study.inputs import Inputs, attention_mask_at
from tfviz.study.resumable_file import fingerprint
from tfviz.study.sites import head_count, site_axis
from tfviz.study.statistics import Statistics
from tfviz.study.table import Table


def compare(
    first: nn.Module,
    second: nn.Module,
    texts: Iterable[Any],
    *,
    sites: str | Sequence[str] = "*.pattern",
    tokenize: Tokenize | None = None,
    batch_size: int = 16,
    progress: bool = True,
    resume: str | Path | None = None,
) -> dict[str, Statistics]:
    """Return the differences between two checkpoints in the attention of each head and in the predictions.

    Args:
        first: a model, or an earlier checkpoint of it.
        second: a model with the same layers, heads and vocabulary.
        texts: batches of ids or mappings of inputs, or texts for `tokenize`.
        sites: the sites of the attention patterns to compare.
        tokenize: encodes texts that are strings.
        batch_size: number of texts run at once, of strings.
        progress: whether to show a progress bar.
        resume: a file that keeps the results so far, and from which a stopped call goes on.

    Returns:
        "attention" -> statistics [layer, head] of the total variation distance between the patterns of the two
        checkpoints, from 0 (equal) to 1 (no overlap), mean over the query tokens of a text. "prediction" -> statistics
        of KL(first || second) in nats, mean over the tokens of a text.

    Raises:
        ValueError: the models differ in their layers, heads or vocabulary.
    """
    checks.require_weights(second)
    names = [type(model).__name__ for model in (first, second)]

    def measure(captured: Capture, inputs: Inputs) -> dict[str, Table]:
        with eval_mode(second) as device:
            moved = inputs.map(lambda tensor: tensor.to(device))
            with capture(second, sites) as other:
                second_logits = moved.logits(second)
        _check_equal_shapes(names, captured.shapes, other.shapes)
        _check_patterns(captured)
        layers = [
            _total_variation(
                pattern,
                other[site].to(pattern.device),
                attention_mask_at(inputs, site, pattern.shape[2]).to(pattern.device),
            )
            for site, pattern in captured.items()
        ]
        name, labels = site_axis(list(captured))
        text = range_labels(inputs.size)
        axes = {"text": text, name: labels, "head": range_labels(layers[0].shape[1])}
        first_logits = inputs.logits(first)
        _check_equal_shapes(names, {"logits": first_logits.shape}, {"logits": second_logits.shape})
        # the tokens at which a next token is predicted
        tokens = attention_mask_at(inputs, "decoder", first_logits.shape[1]).to(first_logits.device)
        return {
            "attention": Table(torch.stack(layers, 1), axes, "total variation distance"),
            "prediction": Table(
                _kl_divergence(first_logits, second_logits.to(first_logits.device), tokens), {"text": text}, "nats"
            ),
        }

    if resume is not None:
        measure.__qualname__ = f"compare with {fingerprint(second)}"
    return aggregate(
        first, texts, measure, sites=sites, tokenize=tokenize, batch_size=batch_size, progress=progress, resume=resume
    )


def _check_equal_shapes(
    models: Sequence[str], first: Mapping[str, Sequence[int]], second: Mapping[str, Sequence[int]]
) -> None:
    """Raise ValueError if a tensor of two models differs in shape or one lacks it; the message names the first."""
    name = next((name for name in (*first, *second) if first.get(name) != second.get(name)), None)
    if name is not None:
        one, other = (list(shapes[name]) if name in shapes else "none" for shapes in (first, second))
        raise ValueError(
            f"{' and '.join(models)} differ in {name}, {one} in the first and {other} in the second: compare "
            "checkpoints of one model"
        )


def _check_patterns(captured: Capture) -> None:
    """Raise ValueError unless all sites are patterns, with the same number of heads in each layer."""
    other = next((site for site in captured if site.rpartition(".")[2] != "pattern"), None)
    if other is not None:
        raise ValueError(f"{other} holds no weights; name sites that end in .pattern")
    head_count(tensor.shape[1] for tensor in captured.values())


def _total_variation(first: Tensor, second: Tensor, tokens: Tensor) -> Tensor:
    """Return the total variation distance between two patterns, [text, head], mean over the tokens of a text."""
    distances = (first.float() - second.float()).abs().sum(-1) / 2
    counts = tokens[:, None] & ((first.sum(-1) != 0) | (second.sum(-1) != 0))
    return torch.where(counts, distances, 0.0).sum(-1) / counts.sum(-1).clamp(min=1)


def _kl_divergence(first: Tensor, second: Tensor, tokens: Tensor) -> Tensor:
    """Return KL(first || second) for each text, [text], in nats, mean over its tokens."""
    logs = first.log_softmax(-1), second.log_softmax(-1)
    nats = (logs[0].exp() * (logs[0] - logs[1])).sum(-1)
    if nats.dim() == 1:
        return nats
    counts = tokens if nats.shape == tokens.shape else torch.ones_like(nats, dtype=torch.bool)
    return torch.where(counts, nats, 0.0).sum(-1) / counts.sum(-1).clamp(min=1)
