"""A recurrent language model (RNN or LSTM), which updates a state at every token."""

from torch import Tensor, nn

from tfviz import checks
from tfviz.layers.embeddings import TokenEmbedding
from tfviz.layers.recurrent import LSTM, Cell, Recurrent, State
from tfviz.shapes import Float, Int


class RecurrentLM(nn.Module):
    """A recurrent language model: embedding, recurrent layers and a linear output layer (Mikolov et al. 2010).

    Args:
        vocab_size: number of tokens.
        cell: `RNN`, `LSTM`, or another `layers.Cell`.
        dim: width of the embeddings.
        hidden: width of each layer's state.
        layers: number of recurrent layers.
        dropout: dropout probability of the input of every layer and of the last layer's output, but not of the states
            that pass from token to token (Zaremba et al. 2014, figure 2).

    >>> import torch
    >>> model = RecurrentLM(11, dim=2, hidden=3)
    >>> model(torch.zeros(5, 7, dtype=torch.long)).shape
    torch.Size([5, 7, 11])
    """

    context = 10**9  # tokens: no limit, since the state does not grow with the text

    def __init__(
        self,
        vocab_size: int,
        *,
        cell: type[Cell] = LSTM,
        dim: int = 128,
        hidden: int = 256,
        layers: int = 1,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.tokens = TokenEmbedding(vocab_size, dim)
        checks.between(0, 1, dropout=dropout)
        checks.fits_memory(hidden=hidden, vocab_size=vocab_size)
        self.recurrent = Recurrent(cell, dim, hidden, layers, dropout=dropout)
        self.dropout = nn.Dropout(dropout)
        self.to_logits = nn.Linear(hidden, vocab_size)

    def forward(
        self, ids: Int[Tensor, "batch position"], cache: list[State] | None = None
    ) -> Float[Tensor, "batch position vocab"]:
        """Return the logits of the token that follows each position.

        Args:
            ids: the ids of the tokens, `[batch, position]`.
            cache: a cache from `new_cache()`, with which `ids` continue the texts of earlier calls, and only their
                positions are computed.
        """
        x, states = self.recurrent(self.dropout(self.tokens(ids)), cache)
        if cache is not None:
            cache[:] = states
        return self.to_logits(self.dropout(x))

    def new_cache(self) -> list[State]:
        """Return an empty cache, in which a call of the model stores the state of each layer."""
        return []
