"""The logit lens: the predictions of a model that ends after an earlier layer (nostalgebraist 2020)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar  # noqa: F401 (Any is in an annotation that is inherited, and looked up here)

import torch
from torch import Tensor, nn

from tfviz import checks, schema
from tfviz.eval_mode import eval_mode
from tfviz.shapes import Float, Int
from tfviz.study.block_replay import BlockReplay, first_tensor
from tfviz.study.inputs import Inputs, Prompt, uncompiled
from tfviz.study.sites import site_axis
from tfviz.study.table import Table

MAX_POSITIONS_PER_RUN = 8192  # over all layers
Names = Callable[[Sequence[int]], Sequence[str]]


@dataclass(eq=False, repr=False)
class LensTable(Table):
    """Probabilities, [layer, position], and the likeliest tokens of each cell.

    Attributes:
        ids: [layer, position, rank], the likeliest first.
        probabilities: probabilities of these tokens.
        tokens: names of these tokens, [layer][position][rank].
    """

    ids: Int[Tensor, "layer position rank"] | None = None
    probabilities: Float[Tensor, "layer position rank"] | None = None
    tokens: Sequence[Sequence[Sequence[str]]] = ()

    format: ClassVar[str] = "tfviz.LensTable/1"
    more_tensors: ClassVar[tuple[str, ...]] = ("ids", "probabilities")
    more_labels: ClassVar[Mapping[str, schema.Check]] = {
        "tokens": schema.list_of(schema.list_of(schema.list_of(schema.string())))
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = [(len(row), [len(cell) for cell in row]) for row in self.tokens]
        for name, ranked in (("ids", self.ids), ("probabilities", self.probabilities)):
            if ranked is None or ranked.dim() != 3 or ranked.shape[:2] != self.values.shape:
                raise ValueError(f"{name} is not a tensor [layer, position, rank] for values {list(self.values.shape)}")
        count = self.values.shape[1]
        if len(sizes) != len(self.values) or any(len(cells) != count or len(set(cells)) > 1 for _, cells in sizes):
            raise ValueError(f"tokens have no list of names for each cell of values {list(self.values.shape)}")


def lens(
    model: nn.Module,
    ids: Prompt,
    *,
    names: Names | None = None,
    token: int | None = None,
    top: int = 10,
) -> LensTable:
    """Return the prediction of each layer's residual stream at each position, by the model's last norm and output.

    For each layer, the model is run with that layer's output in place of the last block's output. So everything after
    the blocks (a norm, a projection, a cap on logits) is applied; blocks are not run again.

    Args:
        model: the model to read.
        ids: one text, [1, position], or a model's arguments by name.
        names: ids -> their names, such as `vocab.words` or `tokenizer.convert_ids_to_tokens`.
        token: the token whose probability the table shows; None: the likeliest token of each cell.
        top: number of likeliest tokens to keep for each cell.

    Returns:
        A table of layer x position, the probability, 0 to 1. The first layer is the embedding, "in"; the last is the
        model's own prediction.

    Raises:
        LookupError: the model has no stack of blocks.
        ValueError: there is more than one text or no such token, or the logits are not [batch, position, vocab].

    >>> from tfviz import models
    >>> gpt, ids = models.GPT(11, layers=2, heads=3, dim=6), torch.tensor([[1, 2, 3]])
    >>> lens(gpt, ids).axes
    {'layer': ['in', '0', '1'], 'position': ['0', '1', '2']}
    """
    checks.at_least(1, top=top)
    model = uncompiled(model)
    inputs = Inputs.of("ids", ids, model)
    if inputs.size != 1:
        raise ValueError(f"there are {inputs.size} texts; the lens shows one: give ids[:1]")
    with eval_mode(model), torch.no_grad():
        replay = BlockReplay(model, inputs)
        with replay.observe():
            logits = inputs.logits(model)
        if logits.dim() != 3:
            raise ValueError(f"the model's logits are {list(logits.shape)}; the lens reads [batch, position, vocab]")
        vocab = logits.shape[-1]
        if token is not None and not 0 <= token < vocab:
            raise ValueError(f"token is {token}; there are {vocab}, counted from 0")
        stack = replay.stack()
        kept, likeliest, named = [], [], []  # by run, never for the whole vocabulary
        for part in _read_layers(model, inputs, replay, stack):
            shares = part.softmax(-1)
            best = shares.topk(min(top, vocab), dim=-1)
            kept.append(best.values.cpu())
            likeliest.append(best.indices.cpu())
            named.append(best.values[..., 0].cpu() if token is None else shares[..., token].cpu())
    probabilities, tokens, values = torch.cat(kept), torch.cat(likeliest), torch.cat(named)
    positions = range(values.shape[1])
    own = _read_ids(inputs)
    words = names(own) if names is not None and len(own) == len(positions) else positions
    _, labels = site_axis(stack)
    subject = "the likeliest token" if token is None else _named(token, names)
    return LensTable(
        values,
        {"layer": ["in", *labels], "position": [str(word) for word in words]},
        "probability",
        f"Logit lens of {type(model).__name__}: probability of {subject}",
        {"model": type(model).__name__},
        tokens,
        probabilities,
        [[_names_of(row.tolist(), names) for row in layer] for layer in tokens],
    )


def _read_layers(model: nn.Module, inputs: Inputs, replay: BlockReplay, stack: list[str]) -> Iterator[Tensor]:
    """Yield the logits for each layer's residual stream, several layers at a time."""
    outputs = [first_tensor(replay.blocks[path]) for path in stack]
    streams = [replay.block_inputs[stack[0]], *(stream for stream in outputs if stream is not None)]
    at_once = max(1, MAX_POSITIONS_PER_RUN // streams[0].shape[1])
    for first in range(0, len(streams), at_once):
        chunk = streams[first : first + at_once]
        with replay.skipping(list(replay.blocks), len(chunk), {stack[-1]: torch.cat(chunk)}):
            yield inputs.repeat(len(chunk)).logits(model)


def _read_ids(inputs: Inputs) -> list[int]:
    """Return the ids of the positions with predictions; for an encoder-decoder, the decoder's ids."""
    named = [inputs.kwargs[name] for name in ("decoder_input_ids", "input_ids") if name in inputs.kwargs]
    placed = [value for value in reversed(inputs.args) if isinstance(value, Tensor)]
    ids = next(iter([*named[:1], *placed]), None)
    return [] if ids is None or ids.is_floating_point() else ids[0].tolist()


def _names_of(ids: Sequence[int], names: Names | None) -> list[str]:
    return [str(name) for name in (names(ids) if names is not None else ids)]


def _named(token: int, names: Names | None) -> str:
    return _names_of([token], names)[0]
