"""The state of a beam search, and the functions that compute one step of it."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tfviz.shapes import Bool, Float, Int

TOPK_BLOCK = 64  # tokens in a block, whose largest log-probability is found first


@dataclass(frozen=True)
class Beam:
    """The texts of a beam search after some steps, best first.

    Attributes:
        sequences: ids so far, `[batch, num_beams, position]`, with the token for the beginning; padding after an end.
        sums: log-probability of each text, in nats, `[batch, num_beams]`.
        ended: whether each text has its end token, `[batch, num_beams]`.
        lengths: number of tokens after the beginning, including the end token, `[batch, num_beams]`.
        parents: rank of each text without its last token in the previous beam, `[batch, num_beams]`.
        length_penalty: exponent of the length penalty.
    """

    sequences: Int[Tensor, "batch num_beams position"]
    sums: Float[Tensor, "batch num_beams"]
    ended: Bool[Tensor, "batch num_beams"]
    lengths: Int[Tensor, "batch num_beams"]
    parents: Int[Tensor, "batch num_beams"]
    length_penalty: float = 0.0

    @property
    def scores(self) -> Float[Tensor, "batch num_beams"]:
        """The scores by which texts are ranked: the sums divided by the length penalty."""
        return self.sums / penalty_divisor(self.lengths, self.length_penalty)

    def ids(self, row: int, rank: int = 0) -> Int[Tensor, "_"]:
        """Return the ids of one text, without the tokens for beginning and end.

        Raises:
            IndexError: there is no such text.
        """
        batch, num_beams = self.sums.shape
        if not (-batch <= row < batch and -num_beams <= rank < num_beams):
            raise IndexError(
                f"row is {row}, rank is {rank}; there are {batch} texts of {num_beams} each, counted from 0"
            )
        length = int(self.lengths[row, rank]) - int(self.ended[row, rank])
        return self.sequences[row, rank, 1 : length + 1]


def penalty_divisor(length: Tensor, exponent: float) -> Tensor:
    """Return ((5 + length) / 6)^exponent; `beam.penalty` checks its arguments."""
    return ((5 + length) / 6) ** exponent


def initial_beam(source: Tensor, bos: int, num_beams: int, length_penalty: float) -> Beam:
    """Return the beam before the first step: for each row of `source`, `num_beams` texts with only the token `bos`."""
    zeros = torch.zeros(len(source), num_beams, dtype=torch.long, device=source.device)
    sums = torch.full(zeros.shape, -torch.inf, device=source.device)
    sums[:, 0] = 0.0  # all texts are equal at first, so only one has a finite score
    return Beam(zeros.unsqueeze(-1) + bos, sums, zeros.bool(), zeros, zeros, length_penalty)


def likeliest_tokens(
    logits: Float[Tensor, "batch vocab"], num_beams: int, forbidden: Tensor
) -> tuple[Float[Tensor, "batch k"], Int[Tensor, "batch k"]]:
    """Return log-probabilities and ids of the `num_beams` likeliest next tokens of each text, without `forbidden`.

    No more than `num_beams` continuations of a text can remain in the beam.

    Raises:
        FloatingPointError: a logit is NaN.
    """
    log_probs = logits.log_softmax(-1).index_fill_(-1, forbidden, -torch.inf)
    values, tokens = topk(log_probs, min(num_beams, logits.shape[-1]))
    if values.isnan().any():
        raise FloatingPointError("the model's logits are not finite; check its weights")
    return values, tokens


def topk(log_probs: Float[Tensor, "batch vocab"], k: int) -> tuple[Float[Tensor, "batch k"], Int[Tensor, "batch k"]]:
    """Return `log_probs.topk(k)`, in half the time on a CPU: it searches only the k blocks with the largest values."""
    (rows, vocab_size), blocks = log_probs.shape, log_probs.shape[1] // TOPK_BLOCK
    if blocks < 2 * k:
        values, tokens = log_probs.topk(k)
        return values, tokens
    largest = log_probs[:, : blocks * TOPK_BLOCK].unflatten(-1, (blocks, TOPK_BLOCK)).amax(-1)
    starts = largest.topk(k).indices.unsqueeze(-1) * TOPK_BLOCK
    in_blocks = (starts + torch.arange(TOPK_BLOCK, device=log_probs.device)).flatten(1)
    after_blocks = torch.arange(blocks * TOPK_BLOCK, vocab_size, device=log_probs.device).expand(rows, -1)
    tokens = torch.cat((in_blocks, after_blocks), dim=1)
    values, indices = log_probs.gather(1, tokens).topk(k)
    return values, tokens.gather(1, indices)


def extend(
    beam: Beam, log_probs: Float[Tensor, "batch width k"], tokens: Int[Tensor, "batch width k"], eos: int, pad: int
) -> Beam:
    """Return the beam after one step: the best continuations by one of `tokens` each, or by `pad` after an end."""
    num_beams, choices = log_probs.shape[1:]
    ended, ended_log_probs = beam.ended.unsqueeze(-1), torch.full_like(log_probs[0, 0], -torch.inf)
    ended_log_probs[0] = 0.0  # an ended text continues only with padding, and keeps its log-probability
    sums = beam.sums.unsqueeze(-1) + torch.where(ended, ended_log_probs, log_probs)
    lengths = beam.lengths + ~beam.ended
    best = (sums / penalty_divisor(lengths, beam.length_penalty).unsqueeze(-1)).flatten(1).topk(num_beams).indices
    parents, tokens = best // choices, torch.where(ended, pad, tokens).flatten(1).gather(1, best)
    sequences = beam.sequences.gather(1, parents.unsqueeze(-1).expand(-1, -1, beam.sequences.shape[-1]))
    return replace(
        beam,
        sequences=torch.cat((sequences, tokens.unsqueeze(-1)), dim=-1),
        sums=sums.flatten(1).gather(1, best),
        ended=beam.ended.gather(1, parents) | (tokens == eos),
        lengths=lengths.gather(1, parents),
        parents=parents,
    )
