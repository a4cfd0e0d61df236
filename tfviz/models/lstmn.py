"""The Long Short-Term Memory-Network: an LSTM that attends to all its past states (Cheng, Dong & Lapata 2016)."""

import torch
from torch import Tensor

from tfviz.layers.recurrent import LSTM, State
from tfviz.layers.seq2seq_attention import AdditiveAttention
from tfviz.models.recurrent import RecurrentLM
from tfviz.shapes import Float


class LSTMNCell(LSTM):
    """The cell of an LSTMN: an LSTM cell that attends to its past states (Cheng, Dong & Lapata 2016, section 3).

    All hidden states h and memories are stored on a tape. An LSTM uses the last hidden state and the last memory; the
    LSTMN uses sums of all of them, weighted by the softmax of v tanh(W x + U s + V h_i). Here s is the weighted sum of
    hidden states one step earlier. At the first token there is no past, and both sums are zero.

    The state is the hidden state, the summary (the weighted sum of hidden states), the keys `[batch, past, hidden]` and
    the tape `[batch, past, 2 * hidden]`, hidden states and memories side by side. Keys and tape grow by a row at each
    step. There is no mask for padding, so all texts of a batch must have the same length.
    """

    def __init__(self, dim: int, hidden: int):
        super().__init__(dim, hidden)
        self.attention = AdditiveAttention(dim + hidden, hidden, hidden, bias=False)

    def initial_state(self, x: Float[Tensor, "batch ..."]) -> State:
        """Return the initial state, with empty keys and an empty tape.

        The hidden state and the summary are zeros `[batch, hidden]`, the keys are `[batch, 0, hidden]`, and the tape is
        `[batch, 0, 2 * hidden]`.
        """
        hidden, batch = x.new_zeros(len(x), self.hidden), len(x)
        return hidden, hidden, x.new_zeros(batch, 0, self.hidden), x.new_zeros(batch, 0, 2 * self.hidden)

    def forward(self, x: Float[Tensor, "batch dim"], state: State) -> State:
        """Return the state after the token with the vector `x`; keys and tape have one more row."""
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
    """A recurrent language model with an `LSTMNCell`, in which every token attends to the tokens before it.

    The pattern is computed token by token: token `n`, counted from 0, attends to `n` past states. Time and memory grow
    with the square of the text's length, as in a Transformer, but the steps are sequential.

    Args:
        vocab_size: number of tokens.
        dim: width of the embeddings.
        hidden: width of the state, and of the hidden layer of the attention.
        dropout: dropout probability, as in `RecurrentLM`.
    """

    def __init__(self, vocab_size: int, *, dim: int = 128, hidden: int = 128, dropout: float = 0.0):
        super().__init__(vocab_size, cell=LSTMNCell, dim=dim, hidden=hidden, dropout=dropout)
