"""A text classifier, a bidirectional encoder with pooling, and the pooling functions."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.layers import Block, TokenEmbedding, masks, positions
from tfviz.layers.blocks import final_norm, stack
from tfviz.shapes import Bool, Float, Int

__all__ = ["Classifier", "first", "maximum", "mean"]

States = Float[Tensor, "batch position dim"]
PaddingMask = Bool[Tensor, "batch position"]  # False at padding
Pooled = Float[Tensor, "batch dim"]
Pooling = Callable[[Tensor, Tensor], Tensor]  # function from states and attention mask to pooled vectors
Embedding = Callable[[int, int], nn.Module]  # function from vocabulary size and width to an embedding


def mean(x: States, attention_mask: PaddingMask) -> Pooled:
    """Return the mean of the states over the tokens of each text, without padding; zeros for a text of padding."""
    _check_mask(x, attention_mask)
    mask = attention_mask.unsqueeze(-1)
    return (x * mask).sum(1) / mask.sum(1).clamp(min=1)


def maximum(x: States, attention_mask: PaddingMask) -> Pooled:
    """Return the maximum of each dimension over the tokens of each text, without padding; zeros for only padding."""
    _check_mask(x, attention_mask)
    largest = x.masked_fill(~attention_mask.unsqueeze(-1), -torch.inf).amax(1)
    return largest.masked_fill(~attention_mask.any(1, keepdim=True), 0.0)


def first(x: States, attention_mask: PaddingMask) -> Pooled:
    """Return the state of the first position, for texts that begin with a `[CLS]` token (Devlin et al. 2019)."""
    _check_mask(x, attention_mask)
    return x[:, 0]


def _check_mask(x: Tensor, attention_mask: Tensor) -> None:
    if x.dim() != 3 or attention_mask.shape != x.shape[:2] or attention_mask.dtype != torch.bool:
        raise ValueError(
            f"states are {list(x.shape)}, the mask {attention_mask.dtype} {list(attention_mask.shape)}; "
            "give states [batch, position, dim] and a boolean attention mask [batch, position]"
        )


class Classifier(nn.Module):
    """A text classifier: embeddings, positions, bidirectional blocks, pooling and logits. Id 0 is padding.

    Args:
        vocab_size: number of tokens.
        classes: number of labels.
        context: length of the longest training text, in tokens.
        layers: number of blocks.
        heads: number of attention heads; it must divide `dim`.
        dim: width of the residual stream.
        dropout: dropout probability of the embeddings, of each branch, and of the pooled vector.
        pooling: `mean`, `maximum` or `first`.
        embedding: function from `vocab_size` and `dim` to the embedding, such as `layers.BigramEmbedding`.
        mask: a mask that is combined with the padding mask, such as `masks.window(8)` for local attention. It may
            depend on the text, as `masks.documents(ids)` does, and on the head.
        positions: a class of `layers.positions`.
        block: further arguments of `layers.Block`, such as `residual` and `inner`; `norm` also makes the final norm.
    """

    def __init__(
        self,
        vocab_size: int,
        classes: int = 2,
        *,
        context: int = 512,
        layers: int = 2,
        heads: int = 4,
        dim: int = 128,
        dropout: float = 0.1,
        pooling: Pooling = mean,
        embedding: Embedding = TokenEmbedding,
        mask: masks.Mask = masks.full,
        positions: type[positions.PositionEncoding] = positions.Learned,
        **block: Any,
    ):
        super().__init__()
        checks.fits_memory(classes=classes, dim=dim)
        self.pooling, self.mask, self.heads = pooling, mask, heads
        self.tokens = embedding(vocab_size, dim)
        self.positions = positions(context, dim, heads)
        self.blocks = stack(layers, lambda: Block(dim, heads, dropout=dropout, **block))
        self.dropout = nn.Dropout(dropout)
        self.norm = final_norm(dim, **block)
        self.to_logits = nn.Linear(dim, classes)

    def forward(self, ids: Int[Tensor, "batch position"]) -> Float[Tensor, "batch label"]:
        """Return the logits of the labels.

        Raises:
            ValueError: the pooling does not return [batch, dim].
        """
        x = self.dropout(self.positions(self.tokens(ids)))
        (batch, length), attention_mask = ids.shape, ids != 0
        mask = self.mask.dense(length, length, batch=batch, heads=self.heads, device=ids.device)
        mask = mask & attention_mask[:, None, None]
        for block in self.blocks:
            x = block(x, mask=mask, positions=self.positions)
        pooled = self.pooling(self.norm(x), attention_mask)
        if not torch.compiler.is_compiling() and pooled.shape != (batch, x.shape[-1]):
            raise ValueError(f"pooling returned {list(pooled.shape)}; it must be {[batch, x.shape[-1]]}, [batch, dim]")
        return self.to_logits(self.dropout(pooled))
