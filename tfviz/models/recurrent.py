"""A recurrent language model: one state, rewritten at every token, is all it knows of the past."""

from torch import Tensor, nn

from tfviz import bounds
from tfviz.layers import sizes
from tfviz.layers.embeddings import Tokens
from tfviz.layers.recurrent import LSTM, RNN, Recurrent, State
from tfviz.shapes import Float, Int


class RecurrentLM(nn.Module):
    """Embedding, recurrent layers, and a linear map to the next token (Mikolov et al. 2010, section 2).

    Args:
        vocab: number of tokens.
        cell: `RNN`, `LSTM`, or one with the same signatures.
        dim: width of the embeddings.
        hidden: width of each layer's state.
        dropout: share set to zero in training, of the input of every layer and of the last layer's output, but never
            along the text (Zaremba et al. 2014, figure 2).

    >>> import torch
    >>> model = RecurrentLM(11, dim=2, hidden=3)
    >>> model(torch.zeros(5, 7, dtype=torch.long)).shape
    torch.Size([5, 7, 11])
    """

    context = 10**9  # tokens; there is no limit: the state does not grow with the text

    def __init__(
        self,
        vocab: int,
        *,
        cell: type[RNN] | type[LSTM] = LSTM,
        dim: int = 128,
        hidden: int = 256,
        layers: int = 1,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.tokens = Tokens(vocab, dim)
        bounds.between(0, 1, dropout=dropout)
        bounds.affordable(hidden=hidden, vocab=vocab)
        self.recurrent = Recurrent(cell, dim, hidden, layers, dropout=dropout)
        self.dropout = nn.Dropout(dropout)
        self.to_logits = nn.Linear(hidden, vocab)

    def forward(
        self, ids: Int[Tensor, "batch position"], cache: list[State] | tuple[()] = ()
    ) -> Float[Tensor, "batch position vocab"]:
        """Logits of the token that follows each position.

        Args:
            cache: from `new_cache()`; then `ids` continue the text seen before, and only they are computed.
        """
        x = self.dropout(self.tokens(ids))
        sizes.caches(
            cache, len(self.recurrent.cells), lambda kept: isinstance(kept, tuple), texts=ids.shape[0], new=True
        )
        x, states = self.recurrent(x, cache)
        if isinstance(cache, list):
            cache[:] = states
        return self.to_logits(self.dropout(x))

    def new_cache(self) -> list[State]:
        """An empty cache; a call of the model leaves in it the state of each layer."""
        return []
