"""Embeddings of tokens and of bigrams, the first layer of a model."""

from typing import Any

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.shapes import Float, Int


def check_ids(ids: Tensor, count: int, names: str = "tokens") -> None:
    """Check that ids are integers from 0 to `count - 1`, the rows of an embedding.

    Raises:
        ValueError: the ids are not integers.
        IndexError: an id is outside 0 to `count - 1`; checked on the CPU only. On a GPU, where the check would wait for
            the values, PyTorch's own assertion stops the run instead.
    """
    if ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"ids of {names} are {ids.dtype}; give integers, ids.long()")
    if torch.compiler.is_compiling() or ids.device.type != "cpu" or not ids.numel():
        return
    if torch._C._functorch.is_functorch_wrapped_tensor(ids):  # torch.vmap, in which values cannot be read
        return
    low, high = map(int, ids.aminmax())
    if low < 0 or high >= count:
        unknown_id = low if low < 0 else high
        raise IndexError(f"id {unknown_id} is not one of the model's {count} {names}, 0 to {count - 1}")


class TokenEmbedding(nn.Embedding):
    """`nn.Embedding` for tokens, which checks the ids before it looks up their vectors."""

    def __init__(self, num_embeddings: int, embedding_dim: int, **more: Any):
        checks.fits_memory(vocab_size=num_embeddings, dim=embedding_dim)
        super().__init__(num_embeddings, embedding_dim, **more)

    def forward(self, ids: Int[Tensor, "batch position"]) -> Float[Tensor, "batch position dim"]:
        """Return the embedding of each id, `[batch, position, dim]`.

        Raises:
            ValueError: `ids` does not have two axes, is on the meta device, or does not hold integers.
            IndexError: an id has no vector (checked on the CPU only).
        """
        if ids.dim() != 2:
            raise ValueError(
                f"ids are {list(ids.shape)}; give a batch of texts, [batch, position]; for one text, ids[None]"
            )
        if ids.is_meta and not self.weight.is_meta:  # PyTorch would return uninitialised memory
            raise ValueError("ids are on the meta device, without values; give those of a text")
        check_ids(ids, self.num_embeddings)
        return super().forward(ids)


class BigramEmbedding(nn.Module):
    """Embedding of each token plus an embedding of the bigram that ends with it (Joulin et al. 2017, section 2.2).

    *not good* has a vector of its own, so that a model need not learn to combine the two words. There are too many
    bigrams for a table, so a hash maps each to one of `rows` vectors; bigrams with the same hash share a vector. The
    output at id 0, padding, is always zero. The first token forms a bigram with padding.

    Args:
        vocab_size: number of tokens.
        dim: width of the vectors.
        rows: number of vectors for bigrams.
    """

    def __init__(self, vocab_size: int, dim: int, rows: int = 2**18):
        super().__init__()
        checks.fits_memory(rows=rows, dim=dim)
        self.tokens = TokenEmbedding(vocab_size, dim, padding_idx=0)
        self.pairs = nn.Embedding(rows, dim)
        for table in (self.tokens, self.pairs):  # small, so that rows that were never trained have little influence
            nn.init.normal_(table.weight, std=0.05)
        nn.init.zeros_(self.tokens.weight[0])

    def forward(self, ids: Int[Tensor, "batch position"]) -> Float[Tensor, "batch position dim"]:
        return (self.tokens(ids) + self.pairs(self.row(ids))) * (ids != 0).unsqueeze(-1)

    def row(self, ids: Int[Tensor, "batch position"]) -> Int[Tensor, "batch position"]:
        """Return the row of the bigram that ends at each position, a multiplicative hash (Knuth 1998, section 6.4)."""
        before = nn.functional.pad(ids, (1, 0))[:, :-1]
        mixed = (before * 1_000_003 + ids) * 2_654_435_761
        return torch.remainder(mixed >> 7, self.pairs.num_embeddings)
