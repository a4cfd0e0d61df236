"""The logit lens: the predictions of each layer's residual stream, or a metric of them (nostalgebraist 2020)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from tfviz import checks, schema
from tfviz.compiled import uncompiled
from tfviz.eval_mode import eval_mode
from tfviz.look.map_arguments import range_labels
from tfviz.shapes import Float, Int
from tfviz.study.block_replay import BlockReplay, first_tensor
from tfviz.study.inputs import Inputs, Prompt, attention_mask_at, ids_at
from tfviz.study.metrics import Metric, evaluate_metric, text_axis, unit_of
from tfviz.study.padding import check_position, warning_of_shifted_positions
from tfviz.study.sites import site_axis
from tfviz.study.table import Table
from tfviz.validation import check_callable

MAX_POSITIONS_PER_RUN = 8192  # of all texts and layers of one run
ToTokens = Callable[[Sequence[int]], Sequence[str]]


def _check_names(value: Any, name: str, depth: int = 3) -> None:
    """Check a string, or strings in lists nested at most `depth` deep."""
    is_name = isinstance(value, str) or not depth
    (schema.string() if is_name else schema.list_of(partial(_check_names, depth=depth - 1)))(value, name)


@dataclass(eq=False, repr=False)
class LensTable(Table):
    """A table of probabilities, [(text,) layer, position], with the likeliest tokens of each cell.

    Attributes:
        ids: [(text,) layer, position, rank], the ids of the likeliest tokens, in descending order of probability.
        probabilities: [(text,) layer, position, rank], the probabilities of these tokens.
        tokens: [(text)][layer][position][rank], the names of these tokens.
        text_tokens: [text][position], the names of the tokens of each text of a batch; empty for one text.
    """

    ids: Int[Tensor, "*axes rank"] | None = None
    probabilities: Float[Tensor, "*axes rank"] | None = None
    tokens: Sequence[Any] = ()
    text_tokens: Sequence[Sequence[str]] = ()

    format: ClassVar[str] = "tfviz.LensTable/1"
    more_tensors: ClassVar[tuple[str, ...]] = ("ids", "probabilities")
    more_labels: ClassVar[Mapping[str, schema.Check]] = {
        "tokens": schema.list_of(_check_names),
        "text_tokens": schema.list_of(schema.list_of(schema.string())),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        axes = ", ".join(self.axes)
        for name, ranked in (("ids", self.ids), ("probabilities", self.probabilities)):
            if ranked is None or ranked.shape[:-1] != self.values.shape or ranked.dim() not in (3, 4):
                raise ValueError(f"{name} is not a tensor [{axes}, rank] for values {list(self.values.shape)}")
        if not _has_sizes(self.tokens, self.values.shape):
            raise ValueError(f"tokens must have a list of names for each cell of values {list(self.values.shape)}")
        texts, *_, positions = self.values.shape
        if self.values.dim() == 3 and [len(row) for row in self.text_tokens] != [positions] * texts:
            raise ValueError(f"text_tokens must have a name for each of {positions} positions of {texts} texts")

    def text(self, index: int) -> LensTable:
        """Return the table [layer, position] of one text of a batch.

        Raises:
            ValueError: the table is already that of one text.
            IndexError: there is no such text.
        """
        if self.values.dim() != 3:
            raise ValueError("the table is of one text already")
        if not 0 <= index < len(self.values):
            raise IndexError(f"index is {index}; there are {len(self.values)} texts, counted from 0")
        assert self.ids is not None
        assert self.probabilities is not None
        axes = {"layer": self.axes["layer"], "position": self.text_tokens[index]}
        kept = self.ids[index], self.probabilities[index], self.tokens[index]
        return LensTable(self.values[index], axes, self.unit, self.title, {**self.notes, "text": index}, *kept)


def _has_sizes(nested: Sequence[Any], sizes: Sequence[int]) -> bool:
    """Return whether nested lists have these lengths, and the innermost lists have equal lengths."""
    if not sizes:
        return True
    inner = {len(part) for part in nested} if len(sizes) == 1 else set()
    return len(nested) == sizes[0] and len(inner) <= 1 and all(_has_sizes(part, sizes[1:]) for part in nested)


def logit_lens(
    model: nn.Module,
    ids: Prompt,
    *,
    to_tokens: ToTokens | None = None,
    token: int | None = None,
    top_k: int = 10,
) -> LensTable:
    """Return the logit lens: each layer's prediction at each position, by the model's last norm and unembedding.

    For each layer, the model runs with the layer's output instead of the last block's output. So all modules after the
    blocks (a norm, a projection, a cap on logits) are applied; the blocks do not run again.

    Args:
        model: the model.
        ids: one text [1, position], several [batch, position], or a model's arguments by name.
        to_tokens: ids -> the tokens, such as `tokenizer.tokens` or `tokenizer.convert_ids_to_tokens`; None: the ids.
        token: the id of the token whose probability is returned; None: the likeliest token of each cell.
        top_k: the number of likeliest tokens to keep for each cell.

    Returns:
        A table [layer, position] of probabilities, 0 to 1. For several texts [text, layer, position], of which
        `.text(0)` is the table of the first text. The first layer, "in", is the embedding; the last is the model's own
        prediction. Values at padding are NaN.

    Raises:
        LookupError: the model has no stack of blocks.
        ValueError: the logits are not [batch, position, vocab]; there is no such token.

    >>> from tfviz import models
    >>> gpt, ids = models.GPT(11, layers=2, heads=3, dim=6), torch.tensor([[1, 2, 3]])
    >>> logit_lens(gpt, ids).axes
    {'layer': ['in', '0', '1'], 'position': ['0', '1', '2']}
    """
    checks.at_least(1, top_k=top_k)
    model = uncompiled(model)
    inputs = Inputs.from_prompt("ids", ids, model)
    with eval_mode(model):
        replay, logits = _observed(model, inputs)
        if logits.dim() != 3:
            raise ValueError(f"the model's logits are {list(logits.shape)}; the lens reads [batch, position, vocab]")
        vocab_size = logits.shape[-1]
        if token is not None and not 0 <= token < vocab_size:
            raise ValueError(f"token is {token}; there are {vocab_size}, counted from 0")
        stack = replay.stack()
        kept: list[tuple[Tensor, Tensor, Tensor]] = []  # only top tokens, to save memory
        for part in _read_layers(model, inputs, replay, stack):
            shares = part.softmax(-1)
            best = shares.topk(min(top_k, vocab_size), dim=-1)
            token_shares = best.values[..., 0] if token is None else shares[..., token]
            kept.append((best.indices.cpu(), best.values.cpu(), token_shares.cpu()))
    likeliest, probabilities, values = (
        torch.cat(parts).unflatten(0, (-1, inputs.size)).transpose(0, 1) for parts in zip(*kept)
    )  # [text, layer, position, ...]
    values = torch.where(attention_mask_at(inputs, "decoder", values.shape[-1]).cpu()[:, None], values, torch.nan)
    subject = "the likeliest token" if token is None else _token_name(token, to_tokens)
    table = LensTable(
        values,
        {
            "text": range_labels(inputs.size),
            "layer": ["in", *site_axis(stack)[1]],
            "position": range_labels(values.shape[-1]),
        },
        "probability",
        f"Logit lens of {type(model).__name__}: probability of {subject}",
        {"model": type(model).__name__},
        likeliest,
        probabilities,
        [[[_names_of(cell, to_tokens) for cell in layer] for layer in text] for text in likeliest.tolist()],
        _position_names(inputs, values.shape[-1], to_tokens),
    )
    return table if inputs.size > 1 else replace(table.text(0), notes=table.notes)


def metric_by_layer(model: nn.Module, ids: Prompt, metric: Metric) -> Table:
    """Return a metric of each layer's logits, which are computed as for `logit_lens`.

    Args:
        model: the model.
        ids: the prompt, as for `logit_lens`.
        metric: logits [batch, position, vocab] -> one number, such as `study.logit_difference(right, other)`, or one
            for each text, as with `reduction="none"`.

    Returns:
        A table [layer] or [text, layer] in the unit of the metric. The first layer, "in", is the embedding; the last is
        the model's own prediction.

    Raises:
        LookupError: the model has no stack of blocks.
        TypeError: the metric returns neither one number nor one for each text.
        ValueError: the metric reads padding.

    >>> from tfviz import models
    >>> gpt, ids = models.GPT(11, layers=2, heads=3, dim=6), torch.tensor([[1, 2, 3]])
    >>> metric_by_layer(gpt, ids, lambda logits: logits[0, -1, 5]).axes
    {'layer': ['in', '0', '1']}
    """
    check_callable("logits", metric=metric)
    model = uncompiled(model)
    inputs = Inputs.from_prompt("ids", ids, model)
    with eval_mode(model):
        replay, logits = _observed(model, inputs)
        axes = text_axis(evaluate_metric(metric, logits))
        check_position(metric, inputs, logits)
        stack = replay.stack()
        runs = (run.split(inputs.size) for run in _read_layers(model, inputs, replay, stack))
        values = torch.stack([evaluate_metric(metric, part).float().cpu() for run in runs for part in run], -1)
    axes["layer"] = ["in", *site_axis(stack)[1]]
    name = type(model).__name__
    return Table(values, axes, unit_of(metric), f"The metric in each layer of {name}", {"model": name})


def _observed(model: nn.Module, inputs: Inputs) -> tuple[BlockReplay, Tensor]:
    """Run the model once; return a record of the inputs and outputs of its blocks, and the logits."""
    replay = BlockReplay(model, inputs)
    with replay.observe(), warning_of_shifted_positions(model, inputs):
        return replay, inputs.logits(model)


def _read_layers(model: nn.Module, inputs: Inputs, replay: BlockReplay, stack: list[str]) -> Iterator[Tensor]:
    """Yield the logits of several layers at a time, [layers x batch, position, vocab], from the embedding on."""
    outputs = [first_tensor(replay.blocks[path]) for path in stack]
    streams = [replay.block_inputs[stack[0]], *(stream for stream in outputs if stream is not None)]
    at_once = max(1, MAX_POSITIONS_PER_RUN // (streams[0].shape[1] * inputs.size))
    for first in range(0, len(streams), at_once):
        chunk = streams[first : first + at_once]
        with replay.skipping(list(replay.blocks), len(chunk), {stack[-1]: torch.cat(chunk)}):
            yield inputs.repeat(len(chunk)).logits(model)


def _position_names(inputs: Inputs, count: int, to_tokens: ToTokens | None) -> list[list[str]]:
    """Return the names of each text's tokens (of an encoder-decoder, the decoder's), or the numbers of positions."""
    try:
        ids = ids_at(inputs, "decoder")
    except ValueError:
        ids = None
    if to_tokens is None or ids is None or ids.shape[1] != count:
        return [range_labels(count)] * inputs.size
    return [_names_of(row, to_tokens) for row in ids.tolist()]


def _names_of(ids: Sequence[int], to_tokens: ToTokens | None) -> list[str]:
    return [str(name) for name in (to_tokens(ids) if to_tokens is not None else ids)]


def _token_name(token: int, to_tokens: ToTokens | None) -> str:
    return _names_of([token], to_tokens)[0]
