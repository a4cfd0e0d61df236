"""A recurrent encoder-decoder, with one context vector or with attention (Bahdanau, Cho & Bengio 2015)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tfviz import bounds
from tfviz.layers.embeddings import Tokens
from tfviz.layers.recurrent import LSTM, RNN, Recurrent
from tfviz.shapes import Bool, Float, Int


class Memory(NamedTuple):
    """What the encoder made of a source."""

    states: Float[Tensor, "batch source both"]  # of each word, read from the left and from the right
    words: Bool[Tensor, "batch source"]  # False at padding
    summary: Float[Tensor, "batch both"]  # the last state of either direction


class Seq2Seq(nn.Module):
    """A text in, another out: the encoder reads it from both sides, the decoder writes word after word.

    Without attention the decoder starts from the encoder's last states and sees them at each step: all it knows of the
    source has to pass through one vector (Cho et al. 2014, figure 1). With attention it sees at each step an average of
    the source's states, weighted by how well they answer its own state. Id 0 is padding.

    Args:
        source_vocab: number of source tokens.
        target_vocab: number of target tokens; None for one vocabulary, and one table, for both languages.
        attention: `layers.Additive`, `layers.Dot`, or None.
        dim: width of the embeddings.
        hidden: width of the decoder's state; the encoder's is half of it in each direction.
        dropout: share of the embeddings, and of what the logits are made of, set to zero in training.
    """

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int | None = None,
        *,
        attention: Callable[[int, int, int], nn.Module] | None = None,
        cell: type[RNN] | type[LSTM] = LSTM,
        dim: int = 128,
        hidden: int = 256,
        dropout: float = 0.1,
    ):
        super().__init__()
        bounds.at_least(1, hidden=hidden)
        bounds.affordable(dim=dim, hidden=hidden, parts=4)
        bounds.between(0, 1, dropout=dropout)
        if hidden % 2:
            raise ValueError(f"hidden is {hidden}; it must be even, half for either direction of the encoder")
        if isinstance(attention, nn.Module):
            raise TypeError(f"attention is a {type(attention).__name__}; give its class, which is built to size here")
        self.source = Tokens(source_vocab, dim)
        self.target = self.source if target_vocab is None else Tokens(target_vocab, dim)
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

    def forward(
        self, source: Int[Tensor, "batch source"], target: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target vocab"]:
        """Logits of the token that follows each target position, the target so far being given (teacher forcing)."""
        return self.decode(target, self.encode(source))

    def encode(self, source: Int[Tensor, "batch source"]) -> Memory:
        """Read the source, once."""
        words = source != 0
        states, ends = self.encoder(self.dropout(self.source(source)), mask=words)
        return Memory(states, words, torch.cat([end[0] for end in ends], dim=-1))

    def decode(self, target: Int[Tensor, "batch target"], memory: Memory) -> Float[Tensor, "batch target vocab"]:
        """Logits after each target position (Bahdanau et al. 2015, section 3.1 and appendix A.2)."""
        embedded = self.dropout(self.target(target))
        keys = memory.states if self.attention is None else self.attention.of_key(memory.states)
        state = (torch.tanh(self.bridge(memory.summary)), *self.decoder.start(memory.summary)[1:])
        written = []
        for word in embedded.unbind(1):
            context = self._context(state[0], keys, memory)
            state = self.decoder(torch.cat((word, context), dim=-1), state)
            written.append(torch.cat((state[0], context, word), dim=-1))
        return self.to_logits(self.dropout(torch.tanh(self.to_word(torch.stack(written, dim=1)))))

    def _context(self, state: Tensor, keys: Tensor, memory: Memory) -> Float[Tensor, "batch both"]:
        if self.attention is None:
            return memory.summary
        return self.attention(state.unsqueeze(1), keys, memory.states, memory.words.unsqueeze(1)).squeeze(1)
