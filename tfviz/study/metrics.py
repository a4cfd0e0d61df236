"""Metrics: functions from a model's logits to one number, or to one number for each text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor

from tfviz import checks
from tfviz.look.map_arguments import range_labels
from tfviz.schema import describe
from tfviz.shapes import Float, Int

LOG_PROBABILITY_UNIT = "nats"
Metric = Callable[[Tensor], Tensor]  # logits [batch, position, vocab] -> one number, or one for each text
Reduction = Literal["mean", "none"]  # as for PyTorch's losses
PerText = int | Sequence[int] | Int[Tensor, "batch"]  # one, or one for each text


def logit(token: PerText, position: PerText = -1, reduction: Reduction = "mean") -> Metric:
    """Return the metric "logit of a token", mean over the batch or for each text.

    Args:
        token: the id of the token, or one id for each text.
        position: the position of the logits, or one for each text, such as `attention_mask.sum(-1) - 1` for texts
            that are padded on the right.
        reduction: "mean" over the batch, or "none": one number for each text.

    Returns:
        A function of logits [batch, position, vocab] or [batch, label].

    Raises:
        TypeError: a tensor of ids or positions does not hold integers.
        ValueError: `reduction` is neither "mean" nor "none".
    """
    _check_whole(token=token, position=position)
    return _metric(lambda logits: _token_logits(logits, token, position), reduction, "logit", position, [token])


def logit_difference(
    correct: PerText, incorrect: PerText, position: PerText = -1, reduction: Reduction = "mean"
) -> Metric:
    """Return the metric "logit of the right token minus logit of a wrong one" (Wang et al. 2023).

    Args:
        correct: the id of the right token, or one id for each text.
        incorrect: the id of a wrong token, or one id for each text.
        position: the position of the logits, or one for each text.
        reduction: "mean" over the batch, or "none": one number for each text.

    Raises:
        TypeError: a tensor of ids or positions does not hold integers.
        ValueError: both tokens of a text are the same; `reduction` is neither "mean" nor "none".

    >>> logit_difference(2, 0)(torch.tensor([[[1.0, 0.0, 4.0]]])).item()
    3.0
    """
    _check_whole(correct=correct, incorrect=incorrect, position=position)
    _check_different(correct, incorrect)

    def difference(logits: Tensor) -> Tensor:
        return _token_logits(logits, correct, position) - _token_logits(logits, incorrect, position)

    return _metric(difference, reduction, "logit difference", position, [correct, incorrect])


def log_probability(token: PerText, position: PerText = -1, reduction: Reduction = "mean") -> Metric:
    """Return the metric "natural logarithm of a token's probability", in nats.

    The arguments are those of `logit`.
    """
    _check_whole(token=token, position=position)
    return _metric(
        lambda logits: _token_logits(logits.log_softmax(-1), token, position),
        reduction, LOG_PROBABILITY_UNIT, position,
    )  # fmt: skip


def _check_whole(**numbers: PerText) -> None:
    """Raise TypeError if the dtype of a tensor is floating point or bool."""
    for name, value in numbers.items():
        if isinstance(value, Tensor) and (value.is_floating_point() or value.dtype == torch.bool):
            raise TypeError(f"{name} is {value.dtype}; give whole numbers, as a tokenizer returns them")


def _check_different(correct: PerText, incorrect: PerText) -> None:
    """Raise ValueError if the right and the wrong token of a text are the same."""
    pair = [torch.as_tensor(numbers).flatten().tolist() for numbers in (correct, incorrect)]
    first, second = (numbers * max(map(len, pair)) if len(numbers) == 1 else numbers for numbers in pair)
    same = next((token for token, against in zip(first, second) if token == against), None)
    if same is not None:
        raise ValueError(f"correct and incorrect are both {same}, whose difference is always 0; give two tokens")


def _metric(
    numbers: Callable[[Tensor], Float[Tensor, "batch"]],
    reduction: Reduction,
    unit: str,
    position: PerText,
    tokens: Sequence[PerText] | None = None,
) -> Metric:
    """Return a metric that applies a reduction.

    Args:
        numbers: logits -> one number for each text.
        reduction: "mean" or "none".
        unit: the unit of the metric.
        position: the position of the logits that the metric reads, or one for each text.
        tokens: the tokens whose logits the metric reads; None: all.
    """
    checks.one_of(("mean", "none"), reduction=reduction)

    def metric(logits: Float[Tensor, "batch *position vocab"]) -> Float[Tensor, "*batch"]:
        return numbers(logits).mean() if reduction == "mean" else numbers(logits)

    metric.unit, metric.position, metric.tokens = unit, position, tokens  # type: ignore[attr-defined]
    return metric


def _token_logits(logits: Tensor, token: PerText, position: PerText) -> Float[Tensor, "batch"]:
    """Return the logits of a token at a position for each text; logits [batch, label] have no positions."""
    rows = _position_logits(logits, position) if logits.dim() == 3 else logits
    ids = _numbers("token", token, len(rows)).to(logits.device)
    outside = [number for number in ids.tolist() if not 0 <= number < rows.shape[-1]]
    if outside:
        raise ValueError(f"token is {outside[0]}; there are {rows.shape[-1]}, counted from 0")
    return rows.gather(-1, ids[:, None])[:, 0]


def _position_logits(logits: Float[Tensor, "batch position vocab"], position: PerText) -> Float[Tensor, "batch vocab"]:
    """Return the logits of each text at one position."""
    texts, count, _ = logits.shape
    positions = _numbers("position", position, texts)
    outside = [number for number in positions.tolist() if not -count <= number < count]
    if outside:
        raise ValueError(f"position is {outside[0]}; there are {count}, counted from 0, or from the end with -1")
    return logits[torch.arange(texts, device=logits.device), positions.to(logits.device)]


def _numbers(name: str, values: PerText, texts: int) -> Int[Tensor, "batch"]:
    """Return one number for each text; a single number is expanded."""
    numbers = torch.as_tensor(values).flatten()
    if len(numbers) not in (1, texts):
        several = "; for a word of several tokens, give the first" if name == "token" else ""
        raise ValueError(f"there are {len(numbers)} {name}s for {texts} texts; give one, or one for each text{several}")
    return numbers.long().expand(texts)


def text_axis(value: Float[Tensor, "*batch"]) -> dict[str, list[str]]:
    """Return the axis "text" of a table, given one metric value for each text; no axis for a scalar."""
    return {"text": range_labels(len(value))} if value.dim() else {}


def unit_of(metric: Metric) -> str:
    """Return the unit of a metric; empty if the metric has none."""
    return str(getattr(metric, "unit", ""))


def reads_last(metric: Metric) -> bool:
    """Return whether a metric is known to read only the logits of the last position."""
    position = getattr(metric, "position", None)
    return isinstance(position, int) and position == -1


def tokens_of(metric: Metric) -> list[int]:
    """Return the ids of the only tokens whose logits a metric reads, in ascending order; empty if it may read all."""
    given = getattr(metric, "tokens", None) or []
    return sorted({token for ids in given for token in torch.as_tensor(ids).flatten().tolist()})


def evaluate_metric(metric: Metric, logits: Tensor, name: str = "metric") -> Float[Tensor, "*batch"]:
    """Return the value of a metric: one number, [], or one for each text, [batch].

    If a user's metric raises an error, a note on its arguments is added to the error.

    Args:
        metric: the metric.
        logits: [batch, position, vocab] or [batch, label].
        name: the name of the argument, for messages.

    Raises:
        TypeError: the value is neither one number nor one for each text.
        ValueError: the value is NaN or infinite.
    """
    try:
        value = metric(logits)
    except Exception as error:
        if not hasattr(metric, "tokens"):  # one of the user's
            error.add_note(
                f"{name} is called with the logits, a tensor {list(logits.shape)}, not with the model's output: give a "
                "function of them, such as lambda logits: logits[:, -1, 5].mean()"
            )
        raise
    if isinstance(value, float | int) and not isinstance(value, bool):
        value = torch.tensor(float(value))
    if not isinstance(value, Tensor) or (value.numel() != 1 and list(value.shape) != [len(logits)]):
        shape = f"a tensor {list(value.shape)}" if isinstance(value, Tensor) else describe(value)
        raise TypeError(
            f"{name} returns {shape}; it must return one number, such as the mean over the batch, or one per text"
        )
    if not value.isfinite().all():
        wrong = value.flatten()[~value.isfinite().flatten()][0].item()
        raise ValueError(f"{name} returns {wrong}, by which runs cannot be compared")
    return value if list(value.shape) == [len(logits)] else value.reshape(())


def evaluate_metric_with_gradient(name: str, metric: Metric, logits: Tensor) -> Float[Tensor, "*batch"]:
    """Return the value of a metric after checking that it has a gradient.

    Args:
        name: the name of the metric, for messages.
        metric: logits -> one number, or one for each text.
        logits: logits that require a gradient.

    Raises:
        TypeError: the value is neither one number nor one for each text.
        ValueError: the value does not depend on the logits, or was detached from them; it is NaN or infinite.
    """
    value = evaluate_metric(metric, logits, name)
    if not value.requires_grad:
        raise ValueError(f"the {name} does not depend on the logits by differentiable operations; it has no gradient")
    return value
