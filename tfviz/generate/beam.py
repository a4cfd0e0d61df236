"""Beam search and greedy search with an encoder-decoder."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from tfviz.checks import at_least, between, require_weights, token_ids
from tfviz.eval_mode import eval_mode_with_grad
from tfviz.generate.beam_state import Beam, extend, initial_beam, likeliest_tokens, penalty_divisor
from tfviz.generate.hf_model import EncoderDecoderModel, PretrainedModel, as_encoder_decoder
from tfviz.schema import describe
from tfviz.shapes import Float, Int
from tfviz.text.subwords import PAD

__all__ = ["EncoderDecoder", "beam_indices", "greedy", "penalty", "search", "steps"]

MAX_LENGTH_PENALTY = 10.0  # a larger exponent would leave no digit of a long text's probability
MAX_NUM_BEAMS = 1000


@runtime_checkable
class EncoderDecoder(Protocol):
    """The protocol of encoder-decoders for beam search, such as `models.Transformer` and `models.Seq2Seq`.

    The memory that `encode` returns is a named tuple of tensors whose first axis is the batch. A model may also have
    `new_cache(length)`, which returns a list of entries with a method `reorder(rows)`. Then `decode(target, memory,
    cache)` is called with only the last tokens and with the unchanged memory; the texts of a source are in consecutive
    rows of `target`.
    """

    training: bool

    def encode(self, source: Tensor) -> Any: ...

    def decode(self, target: Tensor, memory: Any) -> Tensor: ...

    def parameters(self) -> Iterator[Tensor]: ...

    def train(self, mode: bool = True) -> Any: ...


def penalty(length: Int[Tensor, "*any"], exponent: float) -> Float[Tensor, "*any"]:
    """Return the length penalty, ((5 + length) / 6)^exponent, by which scores are divided (Wu et al. 2016, section 7).

    Raises:
        TypeError: `length` is neither a tensor nor an integer.

    >>> penalty(torch.tensor([1, 7]), exponent=1.0)
    tensor([1., 2.])
    """
    between(0, MAX_LENGTH_PENALTY, exponent=exponent)
    if not isinstance(length, Tensor | int):
        raise TypeError(f"length is {describe(length)}; give tokens, as a tensor or an integer")
    lengths = torch.as_tensor(length)
    if lengths.device.type == "cpu" and lengths.numel():
        at_least(0, length=lengths.min().item())
    return penalty_divisor(length, exponent)


def steps(
    model: EncoderDecoder | PretrainedModel,
    source: Int[Tensor, "batch source"],
    *,
    bos: int,
    eos: int,
    num_beams: int = 5,
    length_penalty: float = 1.0,
    max_new_tokens: int = 100,
) -> Iterator[Beam]:
    """Run a beam search for each row of `source`, and yield the beam after each step, until all texts have ended.

    In each step every text is continued by every token, and the best `num_beams` continuations remain (Sutskever et al.
    2014, section 3.2). A text that has ended keeps its score and competes with the others. The tokens for padding
    and for the beginning are never generated, unless one of them is also the token for the end, as BART's beginning is.

    Args:
        model: an encoder-decoder of tfviz, or of Hugging Face, such as `T5ForConditionalGeneration`.
        source: ids of the sources, `[batch, source]`, padded with 0, or with the `pad_token_id` of a Hugging Face
            model that has one.
        bos: the id of the token for the beginning (Hugging Face's `decoder_start_token_id`).
        eos: the id of the token for the end; not 0 in a model of tfviz.
        num_beams: number of texts that remain after each step; 1 is greedy search.
        length_penalty: exponent of the length penalty, from 0 to 10; 0 means no penalty, which favours short texts.
        max_new_tokens: the maximum number of tokens in a text, including its end token.

    Raises:
        ValueError: `num_beams` or `max_new_tokens` is below 1; `bos` or `eos` is not a token; `length_penalty` is out
            of range; a row of `source` is padding only.
        FloatingPointError: the model's logits are not finite.
    """
    at_least(1, max_new_tokens=max_new_tokens)
    between(1, MAX_NUM_BEAMS, num_beams=num_beams)
    at_least(0, bos=bos)  # T5 begins with its padding token
    between(0, MAX_LENGTH_PENALTY, length_penalty=length_penalty)
    if source.dim() != 2 or not source.numel():
        raise ValueError(f"source is {list(source.shape)}; give texts of at least one token, [batch, source]")
    token_ids(source=source)
    require_weights(model)
    encoder_decoder = as_encoder_decoder(model)
    pad = PAD
    if isinstance(encoder_decoder, EncoderDecoderModel):
        pad = encoder_decoder.pad_token_id
        at_least(0, eos=eos)  # Marian ends with 0
    else:
        at_least(1, eos=eos)  # 0 is padding, which never comes
    if source.device.type == "cpu" and (source == pad).all(1).any():
        raise ValueError("a row of source holds nothing but padding; leave it out")
    return _steps(encoder_decoder, source, bos, eos, pad, num_beams, length_penalty, max_new_tokens)


def _steps(
    model: EncoderDecoder,
    source: Tensor,
    bos: int,
    eos: int,
    pad: int,
    num_beams: int,
    length_penalty: float,
    max_new_tokens: int,
) -> Iterator[Beam]:
    with eval_mode_with_grad(model) as device:
        source = source.to(device)
        forbidden = source.new_tensor([token for token in {pad, bos} if token != eos])
        with torch.no_grad():  # not inference_mode, since the results may be used with gradients later
            next_logits = _decoder(model, model.encode(source), num_beams, max_new_tokens)
        beam = initial_beam(source, bos, num_beams, length_penalty)
        for _ in range(max_new_tokens):
            with torch.no_grad():
                logits = next_logits(beam).float()
                if eos >= logits.shape[-1]:
                    raise ValueError(f"eos is {eos}; the model's tokens are 0 to {logits.shape[-1] - 1}")
                logs, tokens = likeliest_tokens(logits, num_beams, forbidden)
                logs, tokens = (part.unflatten(0, beam.sums.shape) for part in (logs, tokens))
                beam = extend(beam, logs, tokens, eos, pad)
            yield beam
            if beam.ended.all():
                break


def search(model: EncoderDecoder | PretrainedModel, source: Int[Tensor, "batch source"], **options: Any) -> Beam:
    """Search to the end and return the last beam, whose texts are [batch, beam, position].

    Args:
        model: an encoder-decoder.
        source: ids of the source texts; there is a search for each row.
        options: `bos`, `eos`, `num_beams`, `length_penalty` and `max_new_tokens`, as for `steps`.
    """
    for beam in steps(model, source, **options):
        last = beam
    return last


def greedy(model: EncoderDecoder | PretrainedModel, source: Int[Tensor, "batch source"], **options: Any) -> Beam:
    """Return the text with the likeliest token at each step, for each row of `source`; the options are as for `steps`.

    Raises:
        TypeError: `num_beams` or `length_penalty` is among the options.
    """
    if fixed := {"num_beams", "length_penalty"} & options.keys():
        raise TypeError(
            f"{fixed.pop()} is given, but a greedy search keeps one text and has no penalty; use beam.search"
        )
    return search(model, source, num_beams=1, length_penalty=0.0, **options)


def beam_indices(beams: Sequence[Beam], rank: int = 0) -> Int[Tensor, "batch step"]:
    """Return the row of the decoder's batch in which each token of a text was chosen, or -1 after its end.

    `look.AttentionMaps.over_time(beam_indices=)` uses these rows to follow a text through the search.

    Args:
        beams: all beams of a search, as `steps` yields them.
        rank: rank of the text in the last beam.

    Raises:
        ValueError: the beams are not all beams of a search in order, or no text has this rank.
    """
    if not beams or not 0 <= rank < beams[-1].parents.shape[1]:
        raise ValueError(f"there is no text of rank {rank} in {len(beams)} beams; give all that steps(...) yields")
    in_order = all(beam.sequences.shape[-1] < after.sequences.shape[-1] for beam, after in pairwise(beams))
    if len(beams) != beams[-1].sequences.shape[-1] - 1 or not in_order:
        raise ValueError(f"these {len(beams)} beams are not the steps of a search in order; give all of steps(...)")
    batch, num_beams = beams[-1].parents.shape
    device = beams[-1].parents.device
    first_rows = num_beams * torch.arange(batch, device=device)[:, None]
    ranks, reversed_rows = torch.full((batch, 1), rank, device=device), []
    for beam in reversed(beams):
        ranks = beam.parents.gather(1, ranks)
        reversed_rows.append(ranks + first_rows)
    ended = torch.arange(len(beams), device=device) >= beams[-1].lengths[:, rank, None]
    return torch.cat(reversed_rows[::-1], 1).masked_fill(ended, -1)


def _decoder(
    model: Any, memory: Any, num_beams: int, max_new_tokens: int
) -> Callable[[Beam], Float[Tensor, "batch vocab"]]:
    """Return a function from a beam to the logits of the next token of each text."""
    if not hasattr(model, "new_cache"):
        memory = type(memory)(*(part.repeat_interleave(num_beams, dim=0) for part in memory))
        return lambda beam: model.decode(beam.sequences.flatten(0, 1), memory)[:, -1]
    cache = model.new_cache(max_new_tokens)

    def decode_last(beam: Beam) -> Tensor:
        if num_beams > 1:
            first_rows = num_beams * torch.arange(len(beam.sequences), device=beam.sequences.device).unsqueeze(-1)
            parent_rows = (first_rows + beam.parents).flatten()
            for layer in cache:
                layer.reorder(parent_rows)
        return model.decode(beam.sequences[..., -1:].flatten(0, 1), memory, cache)[:, -1]

    return decode_last
