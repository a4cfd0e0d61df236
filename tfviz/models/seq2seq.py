"""A recurrent encoder-decoder, with one context vector or with attention (Bahdanau, Cho & Bengio 2015)."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.layers.blocks import check_sources
from tfviz.layers.cache import CrossAttentionCache, check_entries
from tfviz.layers.embeddings import TokenEmbedding
from tfviz.layers.recurrent import LSTM, Cell, Recurrent, State
from tfviz.models.encoder_decoder import EncoderDecoder
from tfviz.shapes import Bool, Float, Int


class RecurrentEncoderOutput(NamedTuple):
    """The encoded source, to which the decoder attends."""

    states: Float[Tensor, "batch source both"]  # of each token, in both directions
    attention_mask: Bool[Tensor, "batch source"]  # False at padding
    summary: Float[Tensor, "batch both"]  # the last states of both directions


class DecoderState(CrossAttentionCache):
    """The cache of a `Seq2Seq` decoder: its recurrent state, and the keys of the sources, which are computed once."""

    def __init__(self) -> None:
        super().__init__()
        self.state: State = ()

    def reorder(self, rows: Int[Tensor, "batch"]) -> None:
        """Replace the text in each row `i` of the batch by the text in row `rows[i]`, as beam search requires."""
        self.state = tuple(part[rows] for part in self.state)


class Seq2Seq(EncoderDecoder):
    """A recurrent encoder-decoder: a bidirectional encoder, and a decoder that predicts the target token by token.

    The decoder starts from the encoder's last states. Without attention, these are also an input of each step, so that
    all information about the source passes through one vector (Cho et al. 2014, figure 1). With attention, the input of
    each step is an average of the source's states, weighted by attention from the decoder's state. Id 0 is padding.

    Args:
        source_vocab_size: number of source tokens.
        target_vocab_size: number of target tokens; None for one vocabulary, and one table, for both languages.
        attention: `layers.AdditiveAttention`, `layers.DotAttention`, or None.
        cell: `layers.RNN`, `layers.LSTM`, or another `layers.Cell`.
        dim: width of the embeddings.
        hidden: width of the decoder's state; the encoder's state has half of it in each direction.
        dropout: dropout probability of the embeddings and of the vectors from which logits are computed.
    """

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int | None = None,
        *,
        attention: Callable[[int, int, int], nn.Module] | None = None,
        cell: type[Cell] = LSTM,
        dim: int = 128,
        hidden: int = 256,
        dropout: float = 0.1,
    ):
        super().__init__()
        checks.fits_memory(dim=dim, hidden=hidden, parts=4)
        checks.between(0, 1, dropout=dropout)
        if hidden % 2:
            raise ValueError(f"hidden is {hidden}; it must be even, half for each direction of the encoder")
        self.source = TokenEmbedding(source_vocab_size, dim)
        self.target = self.source if target_vocab_size is None else TokenEmbedding(target_vocab_size, dim)
        self.dropout = nn.Dropout(dropout)
        self.encoder = Recurrent(cell, dim, hidden // 2, bidirectional=True)
        self.bridge = nn.Linear(hidden, hidden)
        self.attention: Any = None if attention is None else attention(hidden, hidden, hidden)
        self.decoder = cell(dim + hidden, hidden)
        self.to_word = nn.Linear(hidden + hidden + dim, dim)
        self.to_logits = nn.Linear(dim, self.target.num_embeddings)
        self.to_logits.weight = self.target.weight
        for table in (self.source, self.target):
            nn.init.normal_(table.weight, std=dim**-0.5)

    def encode(self, source: Int[Tensor, "batch source"]) -> RecurrentEncoderOutput:
        """Encode the source, `[batch, source]`; the result serves all steps of the decoder."""
        attention_mask = source != 0
        states, ends = self.encoder(self.dropout(self.source(source)), mask=attention_mask)
        return RecurrentEncoderOutput(states, attention_mask, torch.cat([end[0] for end in ends], dim=-1))

    def decode(
        self,
        target: Int[Tensor, "batch target"],
        memory: RecurrentEncoderOutput,
        cache: Sequence[DecoderState] | None = None,
    ) -> Float[Tensor, "batch target vocab"]:
        """Return the logits of the token after each target position (Bahdanau et al. 2015, sections 3.1 and A.2).

        Args:
            target: the ids of the target's tokens, `[batch, target]`.
            memory: the encoded sources: one for each target, or fewer, each shared by the same number of consecutive
                targets.
            cache: a cache from `new_cache()`, with which `target` continues the texts of earlier calls, and only its
                positions are computed.
        """
        cache = [DecoderState()] if cache is None else cache
        check_entries(cache, 1)
        check_sources(len(target), len(memory.attention_mask))
        decoder = cache[0]
        decoder.check_source(memory.states)
        if not decoder.state:
            self._start(decoder, memory, len(target) // len(memory.attention_mask))
        outputs = []
        for word in self.dropout(self.target(target)).unbind(1):
            context = self._context(decoder.state[0], decoder.keys, memory)
            decoder.state = self.decoder(torch.cat((word, context), dim=-1), decoder.state)
            outputs.append(torch.cat((decoder.state[0], context, word), dim=-1))
        return self.to_logits(self.dropout(torch.tanh(self.to_word(torch.stack(outputs, dim=1)))))

    def new_cache(self, length: int) -> list[DecoderState]:
        """Return an empty cache; its size does not depend on `length`."""
        return [DecoderState()]

    def _start(self, decoder: DecoderState, memory: RecurrentEncoderOutput, targets: int) -> None:
        """Set the state before the first token, for `targets` targets of each source, and compute the keys."""
        state = torch.tanh(self.bridge(memory.summary)).repeat_interleave(targets, dim=0)
        decoder.state = (state, *self.decoder.initial_state(state)[1:])
        decoder.keys = memory.states if self.attention is None else self.attention.of_key(memory.states)

    def _context(
        self, state: Tensor, keys: Tensor | None, memory: RecurrentEncoderOutput
    ) -> Float[Tensor, "batch both"]:
        sources = len(memory.attention_mask)
        if self.attention is None:
            return memory.summary.repeat_interleave(len(state) // sources, dim=0)
        queries = state.view(sources, -1, state.shape[-1])  # [source, target, hidden]
        return self.attention(queries, keys, memory.states, memory.attention_mask.unsqueeze(1)).flatten(0, 1)
