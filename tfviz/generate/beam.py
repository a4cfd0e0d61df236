"""Text from an encoder-decoder: the likeliest token at each step, or a beam of the likeliest texts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from tfviz.bounds import at_least, between, filled, token_ids
from tfviz.doors import what
from tfviz.shapes import Bool, Float, Int

STRONGEST = 10.0  # alpha: beyond it the penalty of a long text leaves no digit of its probability
WIDEST = 1000  # texts kept at a time
BLOCK = 64  # logarithms whose largest is found first
PAD = 0  # in sources and, after an end, in texts


@runtime_checkable
class EncoderDecoder(Protocol):
    """What the search asks of a model; `models.Transformer` and `models.Seq2Seq` have it.

    The memory is a named tuple of tensors whose first axis is the batch. Where there is a `new_cache(length)`, too,
    `decode(target, memory, cache)` gets the last words alone, and the memory as `encode` has made it: the texts of a
    source stand side by side. What is in the list that `new_cache` gives has `reorder(rows)`.
    """

    training: bool

    def encode(self, source: Tensor) -> Any: ...

    def decode(self, target: Tensor, memory: Any) -> Tensor: ...

    def parameters(self) -> Iterator[Tensor]: ...

    def train(self, mode: bool = True) -> Any: ...


@dataclass(frozen=True)
class Beam:
    """The texts of a search after some steps, best first.

    Attributes:
        texts: their ids so far, from the token for the beginning on; 0 after an end.
        sums: logarithms of their probabilities, in nats.
        ended: whether the end token has come.
        lengths: tokens after the beginning, the end token included.
        parents: the place each text's beginning had in the beam one step before.
        alpha: exponent of the length penalty.
    """

    texts: Int[Tensor, "batch width position"]
    sums: Float[Tensor, "batch width"]
    ended: Bool[Tensor, "batch width"]
    lengths: Int[Tensor, "batch width"]
    parents: Int[Tensor, "batch width"]
    alpha: float = 0.0

    @property
    def scores(self) -> Float[Tensor, "batch width"]:
        """What texts are ranked by: the sums over the length penalty."""
        return self.sums / _penalty(self.lengths, self.alpha)

    def ids(self, row: int, rank: int = 0) -> Int[Tensor, "_"]:
        """One text without the tokens for beginning and end.

        Raises:
            IndexError: there is no such text.
        """
        texts, width = self.sums.shape
        if not (-texts <= row < texts and -width <= rank < width):
            raise IndexError(f"row is {row}, rank is {rank}; there are {texts} texts of {width} each, counted from 0")
        length = int(self.lengths[row, rank]) - int(self.ended[row, rank])
        return self.texts[row, rank, 1 : length + 1]


def penalty(length: Int[Tensor, "*any"], alpha: float) -> Float[Tensor, "*any"]:
    """((5 + length) / 6)^alpha: what logarithms are divided by, so that long texts stand a chance (Wu et al. 2016, 7).

    >>> penalty(torch.tensor([1, 7]), alpha=1.0)
    tensor([1., 2.])
    """
    between(0, STRONGEST, alpha=alpha)
    if not isinstance(length, Tensor | int):
        raise TypeError(f"length is {what(length)}; give tokens, as a tensor or a whole number")
    given = torch.as_tensor(length)
    if given.device.type == "cpu" and given.numel():
        at_least(0, length=given.min().item())
    return _penalty(length, alpha)


def _penalty(length: Tensor, alpha: float) -> Tensor:
    """As `penalty`, within a search, which has looked at its own numbers."""
    return ((5 + length) / 6) ** alpha


def steps(
    model: EncoderDecoder,
    source: Int[Tensor, "batch source"],
    *,
    bos: int,
    eos: int,
    width: int = 5,
    alpha: float = 1.0,
    length: int = 100,
) -> Iterator[Beam]:
    """Search for the best texts of each row of `source`; yields the beam after each step, until all texts have ended.

    In each step every text goes on with every token, and the best `width` of all remain (Sutskever et al. 2014,
    section 3.2); a text that has ended stays as it is, and what others score must beat it. The tokens for padding (0)
    and for the beginning never come, however likely the model thinks them.

    Args:
        source: padded with 0.
        width: how many texts are kept; 1 is greedy search.
        alpha: exponent of the length penalty, from 0 to 10; with 0 there is none, and short texts win.
        length: the most tokens of a text, its end token included.

    Raises:
        ValueError: no text, or none of any length, is asked for; `bos` or `eos` is no token; a penalty out of range.
        FloatingPointError: the model's logits are not finite.
    """
    at_least(1, width=width, length=length)
    between(1, WIDEST, width=width)
    at_least(1, bos=bos, eos=eos)  # 0 is padding, which never comes
    between(0, STRONGEST, alpha=alpha)
    if source.dim() != 2 or not source.numel():
        raise ValueError(f"source is {list(source.shape)}; give texts of at least one token, batch source")
    token_ids(source=source)
    filled(model)
    if source.device.type == "cpu" and (source == PAD).all(1).any():
        raise ValueError("a row of source holds nothing but padding; leave it out")
    return _steps(model, source, bos, eos, width, alpha, length)


def _steps(
    model: EncoderDecoder, source: Tensor, bos: int, eos: int, width: int, alpha: float, length: int
) -> Iterator[Beam]:
    was_training = model.training
    model.train(False)
    try:
        source = source.to(next(model.parameters()).device)
        never = source.new_tensor([token for token in {PAD, bos} if token != eos])
        with torch.no_grad():  # not inference_mode: what comes out may meet gradients later
            ahead = _ahead(model, model.encode(source), width, length)
        beam = _start(source, bos, width, alpha)
        for _ in range(length):
            with torch.no_grad():
                logits = ahead(beam).float()
                if eos >= logits.shape[-1]:
                    raise ValueError(f"eos is {eos}; the model's tokens are 0 to {logits.shape[-1] - 1}")
                logs, tokens = _likeliest(logits, width, never)
                beam = _step(beam, logs.unflatten(0, beam.sums.shape), tokens.unflatten(0, beam.sums.shape), eos)
            yield beam
            if beam.ended.all():
                break
    finally:
        model.train(was_training)


def search(model: EncoderDecoder, source: Int[Tensor, "batch source"], **how) -> Beam:
    """The best texts for each row of `source`; `how` goes to `steps`."""
    for beam in steps(model, source, **how):
        found = beam
    return found


def greedy(model: EncoderDecoder, source: Int[Tensor, "batch source"], **how) -> Beam:
    """The text that takes the likeliest token at each step, for each row of `source`; `how` goes to `steps`."""
    if own := {"width", "alpha"} & how.keys():
        raise TypeError(f"{own.pop()} is given, and a greedy search has one text and no penalty; take beam.search")
    return search(model, source, width=1, alpha=0.0, **how)


def rows(beams: Sequence[Beam], rank: int = 0) -> Int[Tensor, "batch step"]:
    """In which row of the decoder's batch each token of a text was chosen, -1 after its end.

    It is what `look.AttentionMaps.over_time(beams=)` follows a text by.

    Args:
        beams: all beams of a search, as `steps` yields them.
        rank: of the text in the last of them.

    Raises:
        ValueError: there are none, or none of this rank.
    """
    if not beams or not 0 <= rank < beams[-1].parents.shape[1]:
        raise ValueError(f"there is no text of rank {rank} in {len(beams)} beams; give all that steps(...) yields")
    many = beams[-1].texts.shape[-1] - 1
    if len(beams) != many:
        raise ValueError(f"there are {len(beams)} beams of a search of {many} steps; give all that steps(...) yields")
    if any(one.texts.shape[-1] >= other.texts.shape[-1] for one, other in pairwise(beams)):
        raise ValueError(
            "beams must be in the order of their steps, each a token longer; give all that steps(...) yields"
        )
    texts, width = beams[-1].parents.shape
    place, made = torch.full((texts, 1), rank, device=beams[-1].parents.device), []
    for beam in reversed(beams):
        place = beam.parents.gather(1, place)
        made.append(place + width * torch.arange(texts, device=place.device)[:, None])
    found, lengths = torch.cat(made[::-1], 1), beams[-1].lengths[:, rank, None]
    return found.masked_fill(torch.arange(len(beams), device=found.device) >= lengths, -1)


def _start(source: Tensor, bos: int, width: int, alpha: float) -> Beam:
    none = torch.zeros(len(source), width, dtype=torch.long, device=source.device)
    sums = torch.full(none.shape, -torch.inf, device=source.device)
    sums[:, 0] = 0.0  # all texts are the same at first: only one may count
    return Beam(none.unsqueeze(-1) + bos, sums, none.bool(), none, none, alpha)


def _ahead(model: Any, memory: Any, width: int, length: int) -> Callable[[Beam], Float[Tensor, "text vocab"]]:
    """From a beam to the logits of what follows each of its texts."""
    if not hasattr(model, "new_cache"):
        memory = type(memory)(*(part.repeat_interleave(width, dim=0) for part in memory))
        return lambda beam: model.decode(beam.texts.flatten(0, 1), memory)[:, -1]
    cache = model.new_cache(length)

    def go_on(beam: Beam) -> Tensor:
        if width > 1:
            first = width * torch.arange(len(beam.texts), device=beam.texts.device).unsqueeze(-1)
            rows = (first + beam.parents).flatten()
            for kept in cache:
                kept.reorder(rows)
        return model.decode(beam.texts[..., -1:].flatten(0, 1), memory, cache)[:, -1]

    return go_on


def _likeliest(
    logits: Float[Tensor, "text vocab"], width: int, never: Tensor
) -> tuple[Float[Tensor, "text some"], Int[Tensor, "text some"]]:
    """Of each text the `width` likeliest next tokens, as more cannot remain: logarithms of probabilities, and ids."""
    values, tokens = _top(logits.log_softmax(-1).index_fill_(-1, never, -torch.inf), min(width, logits.shape[-1]))
    if values.isnan().any():
        raise FloatingPointError("the model's logits are not finite; it cannot generate")
    return values, tokens


def _top(logs: Float[Tensor, "text vocab"], some: int) -> tuple[Float[Tensor, "text some"], Int[Tensor, "text some"]]:
    """`topk`, in the blocks with the largest values alone: no others can hold any of them. Half the time on a CPU."""
    (rows, vocab), count = logs.shape, logs.shape[1] // BLOCK
    if count < 2 * some:
        found = logs.topk(some)
        return found.values, found.indices
    largest = logs[:, : count * BLOCK].unflatten(-1, (count, BLOCK)).amax(-1)
    inside, rest = (torch.arange(*ends, device=logs.device) for ends in ((BLOCK,), (count * BLOCK, vocab)))
    blocks = largest.topk(some).indices.unsqueeze(-1) * BLOCK + inside
    tokens = torch.cat((blocks.flatten(1), rest.expand(rows, -1)), dim=1)
    found = logs.gather(1, tokens).topk(some)
    return found.values, tokens.gather(1, found.indices)


def _step(
    beam: Beam, logs: Float[Tensor, "batch width some"], tokens: Int[Tensor, "batch width some"], eos: int
) -> Beam:
    """The best of all continuations by one of these tokens, given the logarithms of their probabilities."""
    width, some = logs.shape[1:]
    ended, stays = beam.ended.unsqueeze(-1), torch.full_like(logs[0, 0], -torch.inf)
    stays[0] = 0.0  # what has ended goes on with padding, for nothing
    sums = beam.sums.unsqueeze(-1) + torch.where(ended, stays, logs)
    lengths = beam.lengths + ~beam.ended
    best = (sums / _penalty(lengths, beam.alpha).unsqueeze(-1)).flatten(1).topk(width).indices
    parents, tokens = best // some, torch.where(ended, PAD, tokens).flatten(1).gather(1, best)
    texts = beam.texts.gather(1, parents.unsqueeze(-1).expand(-1, -1, beam.texts.shape[-1]))
    return replace(
        beam,
        texts=torch.cat((texts, tokens.unsqueeze(-1)), dim=-1),
        sums=sums.flatten(1).gather(1, best),
        ended=beam.ended.gather(1, parents) | (tokens == eos),
        lengths=lengths.gather(1, parents),
        parents=parents,
    )
