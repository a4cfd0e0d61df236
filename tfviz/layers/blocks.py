"""Blocks: attention and a feed-forward network, each in a residual branch with a norm."""

from collections.abc import Callable

from torch import Tensor, nn

from tfviz.layers.attention import MultiHead
from tfviz.shapes import Float

Residual = Callable[[Tensor, nn.Module, Callable[[Tensor], Tensor]], Tensor]


def pre_norm(x: Tensor, norm: nn.Module, branch: Callable[[Tensor], Tensor]) -> Tensor:
    """x + branch(norm(x)): the stream is never normalised, so gradients flow at any depth (Xiong et al. 2020)."""
    return x + branch(norm(x))


def post_norm(x: Tensor, norm: nn.Module, branch: Callable[[Tensor], Tensor]) -> Tensor:
    """norm(x + branch(x)): the order of the first Transformer (Vaswani et al. 2017, section 3.1)."""
    return norm(x + branch(x))


class FeedForward(nn.Sequential):
    """The same two-layer network at every position (Vaswani et al. 2017, equation 2), `inner` wide inside."""

    def __init__(self, dim: int, inner: int | None = None, activation: type[nn.Module] = nn.GELU):
        inner = inner or 4 * dim
        super().__init__(nn.Linear(dim, inner), activation(), nn.Linear(inner, dim))


class Block(nn.Module):
    """Self-attention, which moves information between positions, then a network that works at each.

    Args:
        residual: `pre_norm` or `post_norm`: where the norm stands.
        dropout: share of each branch's output, and of the attention weights, set to zero in training.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        inner: int | None = None,
        dropout: float = 0.0,
        residual: Residual = pre_norm,
    ):
        super().__init__()
        self.residual = residual
        self.attention_norm = nn.LayerNorm(dim)
        self.attention = MultiHead(dim, heads, dropout)
        self.feed_forward_norm = nn.LayerNorm(dim)
        self.feed_forward = FeedForward(dim, inner)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "batch position dim"], **attention) -> Float[Tensor, "batch position dim"]:
        """`attention` (mask, positions, cache) goes to `MultiHead` as it is."""
        x = self.residual(x, self.attention_norm, lambda x: self.dropout(self.attention(x, **attention)))
        return self.residual(x, self.feed_forward_norm, lambda x: self.dropout(self.feed_forward(x)))
