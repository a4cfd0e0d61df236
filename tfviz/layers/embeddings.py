"""From tokens to vectors: what models begin with."""

from typing import Any

import torch
from torch import Tensor, nn

from tfviz import bounds
from tfviz.layers import sizes
from tfviz.shapes import Float, Int


class Tokens(nn.Embedding):
    """A vector for each token: `nn.Embedding`, which says what is wrong with an id.

    Raises:
        ValueError: ids of one text, without a batch.
        IndexError: an id that is no token. On a GPU, which would have to be waited for, PyTorch's assertion stops the
            run instead.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, **more: Any):
        bounds.affordable(vocab=num_embeddings, dim=embedding_dim)
        super().__init__(num_embeddings, embedding_dim, **more)

    def forward(self, ids: Int[Tensor, "batch position"]) -> Float[Tensor, "batch position dim"]:
        sizes.ids(ids=ids)
        if ids.is_meta and not self.weight.is_meta:
            raise ValueError("ids are on the meta device, without numbers; give those of a text")
        if ids.device.type == "cpu" and ids.numel() and not (torch.compiler.is_compiling() or _is_mapped(ids)):
            low, high = map(int, ids.aminmax())
            if low < 0 or high >= self.num_embeddings:
                raise IndexError(
                    f"id {low if low < 0 else high} is none of the model's {self.num_embeddings} tokens, 0 to "
                    f"{self.num_embeddings - 1}; was it built for this vocabulary?"
                )
        return super().forward(ids)


def _is_mapped(ids: Tensor) -> bool:
    """Whether torch.vmap goes over them, and so nobody may look at their values."""
    return torch._C._functorch.is_functorch_wrapped_tensor(ids)


class Bigrams(nn.Module):
    """A vector for each token, plus one for the pair it makes with the token before it (Joulin et al. 2017, 2.2).

    *not good* has a vector of its own, so that a model need not learn to put the two together. There are too many
    pairs for a table: a hash gives each one of `rows` vectors, and pairs that meet in a row share it. Id 0 is padding
    and stays zero; the first token makes a pair with it.

    Args:
        rows: how many vectors the pairs share.
    """

    def __init__(self, vocab: int, dim: int, rows: int = 2**18):
        super().__init__()
        bounds.affordable(rows=rows, dim=dim)
        self.tokens = Tokens(vocab, dim, padding_idx=0)
        self.pairs = nn.Embedding(rows, dim)
        for table in (self.tokens, self.pairs):  # small, so that what was never trained says little
            nn.init.normal_(table.weight, std=0.05)
        nn.init.zeros_(self.tokens.weight[0])

    def forward(self, ids: Int[Tensor, "batch position"]) -> Float[Tensor, "batch position dim"]:
        return (self.tokens(ids) + self.pairs(self.row(ids))) * (ids != 0).unsqueeze(-1)

    def row(self, ids: Int[Tensor, "batch position"]) -> Int[Tensor, "batch position"]:
        """Which vector the pair that ends at each position has: a multiplicative hash (Knuth 1998, section 6.4)."""
        sizes.ids(ids=ids)
        before = nn.functional.pad(ids, (1, 0))[:, :-1]
        mixed = (before * 1_000_003 + ids) * 2_654_435_761
        return torch.remainder(mixed >> 7, self.pairs.num_embeddings)
