"""A classifier: an encoder reads a text both ways, and what it made of the words is pooled into one vector."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from tfviz import bounds
from tfviz.doors import takes, what
from tfviz.layers import Block, Tokens, masks, positions, pre_norm, sizes
from tfviz.layers.blocks import Residual, stack
from tfviz.shapes import Bool, Float, Int

States = Float[Tensor, "batch position dim"]
Words = Bool[Tensor, "batch position"]  # False at padding
Pooled = Float[Tensor, "batch dim"]
Pooling = Callable[[Tensor, Tensor], Tensor]  # from states and words to what is pooled
Embedding = Callable[[int, int], nn.Module]  # from vocabulary and width to a module that turns ids into vectors


def mean(x: States, words: Words) -> Pooled:
    """The average over the words; padding does not count. Zeros where there is no word."""
    _check(x, words)
    words = words.unsqueeze(-1)
    return (x * words).sum(1) / words.sum(1).clamp(min=1)


def maximum(x: States, words: Words) -> Pooled:
    """The largest value of each column over the words; zeros where there is no word."""
    _check(x, words)
    largest = x.masked_fill(~words.unsqueeze(-1), -torch.inf).amax(1)
    return largest.masked_fill(~words.any(1, keepdim=True), 0.0)


def first(x: States, words: Words) -> Pooled:
    """What stands at the first position: the text must begin with a token for it, `[CLS]` (Devlin et al. 2019)."""
    _check(x, words)
    return x[:, 0]


def _check(x: Tensor, words: Tensor) -> None:
    if torch.compiler.is_compiling():
        return
    fits = isinstance(x, Tensor) and isinstance(words, Tensor) and x.dim() == 3 and words.shape == x.shape[:2]
    if not fits or words.dtype != torch.bool:
        kind = words.dtype if isinstance(words, Tensor) else what(words)
        raise ValueError(
            f"states are {what(x)}, words {what(words)} ({kind}); give batch position dim, and bool, batch position"
        )


class Classifier(nn.Module):
    """Token embeddings, positions, blocks that look everywhere but at padding, pooling, logits. Id 0 is padding.

    Args:
        vocab: number of tokens.
        classes: number of labels.
        context: the longest text it is trained on, in tokens.
        pooling: `mean`, `maximum` or `first`.
        dropout: share set to zero in training, of the embeddings, of each branch, and of the pooled vector.
        embedding: default: a vector for each token; `layers.Bigrams` adds one for each pair.
        mask: where words may look beside the padding; `masks.window(8)` reads locally. One that differs from text to
            text, such as `masks.documents(ids)`, or from head to head does so.
    """

    def __init__(
        self,
        vocab: int,
        classes: int = 2,
        *,
        context: int = 512,
        layers: int = 2,
        heads: int = 4,
        dim: int = 128,
        inner: int | None = None,
        dropout: float = 0.1,
        pooling: Pooling = mean,
        embedding: Embedding = Tokens,
        mask: masks.Mask = masks.full,
        positions: type[positions.Positions] = positions.Learned,
        residual: Residual = pre_norm,
    ):
        super().__init__()
        bounds.at_least(1, context=context, heads=heads)
        bounds.affordable(classes=classes, dim=dim)
        bounds.between(0, 1, dropout=dropout)
        takes("states", "words", pooling=pooling)
        self.pooling, self.mask, self.heads = pooling, mask, heads
        self.tokens = sizes.made("embedding", embedding, "layers.Bigrams", vocab, dim)
        self.positions = positions(context, dim, heads)
        self.dropout = nn.Dropout(dropout)
        self.blocks = stack(layers, lambda: Block(dim, heads, inner, dropout, residual))
        self.norm = nn.LayerNorm(dim) if residual is pre_norm else nn.Identity()
        self.to_logits = nn.Linear(dim, classes)

    def forward(self, ids: Int[Tensor, "batch position"]) -> Float[Tensor, "batch label"]:
        """Logits of the labels."""
        sizes.ids(ids=ids)
        x = self.dropout(self.positions(sizes.by("embedding", self.tokens, ids)))
        (batch, length), words = ids.shape, ids != 0
        mask = self.mask.dense(length, length, batch=batch, heads=self.heads, device=ids.device) & words[:, None, None]
        for block in self.blocks:
            x = block(x, mask=mask, positions=self.positions)
        pooled = sizes.by("pooling", self.pooling, self.norm(x), words)
        if not torch.compiler.is_compiling() and getattr(pooled, "shape", None) != (batch, x.shape[-1]):
            raise ValueError(f"pooling made {what(pooled)}; it must make {[batch, x.shape[-1]]}, a vector of each text")
        return self.to_logits(self.dropout(pooled))
