"""The Long Short-Term Memory-Network: an LSTM that attends to all its past states (Cheng, Dong & Lapata 2016)."""

import torch
from torch import Tensor

from tfviz.layers.recurrent import LSTM, State
from tfviz.layers.seq2seq_attention import AdditiveAttention
from tfviz.models.recurrent import RecurrentLM
from tfviz.shapes import Float


class LSTMNCell(LSTM):
    """One step of an LSTMN (section 3): an LSTM cell that starts each step from an average over its whole past.

    All hidden states h and memories are stored on a tape. Where an LSTM uses the last of each, the LSTMN uses the sum
    of all, weighted by the softmax of v tanh(W x + U s + V h_i), where s is the weighted sum of hidden states one step
    earlier. At the first word there is no past, and both sums are zero.

    The state is the hidden state, the summary (the weighted hidden states), the keys (batch past hidden) and the tape
    (batch past 2 hidden: hidden states and memories side by side). It grows by a row at each step, so all texts of a
    batch must have the same length: there is no mask for padding.
    """

    def __init__(self, dim: int, hidden: int):
        super().__init__(dim, hidden)
        self.attention = AdditiveAttention(dim + hidden, hidden, hidden, bias=False)

    def start(self, x: Float[Tensor, "batch ..."]) -> State:
        """Return the initial state, with empty memory tapes.

        Hidden state and summary, zeros [batch, hidden]; keys [batch, 0, hidden]; tape [batch, 0, 2 * hidden].
        """
        hidden, batch = x.new_zeros(len(x), self.hidden), len(x)
        return hidden, hidden, x.new_zeros(batch, 0, self.hidden), x.new_zeros(batch, 0, 2 * self.hidden)

    def forward(self, x: Float[Tensor, "batch dim"], state: State) -> State:
        """Return the state after the word `x`, its tapes one row longer."""
        _, summary, keys, tape = state
        if tape.shape[1]:
            query = torch.cat((x, summary), dim=-1)[:, None]  # [batch, 1, dim + hidden]
            summary, memory = self.attention(query, keys, tape)[:, 0].chunk(2, dim=-1)
        else:
            memory = torch.zeros_like(summary)
        hidden, memory = super().forward(x, (summary, memory))
        key, row = self.attention.of_key(hidden), torch.cat((hidden, memory), dim=-1)
        return hidden, summary, torch.cat((keys, key[:, None]), dim=1), torch.cat((tape, row[:, None]), dim=1)


class LSTMN(RecurrentLM):
    """A recurrent language model whose cell is a `LSTMNCell`: every word attends to the words before it.

    Its pattern is computed word by word: the weights of word `n`, counted from 0, are over `n` past states. Time and
    memory grow with the square of the text's length, as in a Transformer, but the steps are sequential.

    Args:
        vocab_size: number of tokens.
        dim: width of the embeddings.
        hidden: width of the state, and of the attention's hidden layer.
        dropout: as in `RecurrentLM`.
    """

    def __init__(self, vocab_size: int, *, dim: int = 128, hidden: int = 128, dropout: float = 0.0):
        super().__init__(vocab_size, cell=LSTMNCell, dim=dim, hidden=hidden, dropout=dropout)
