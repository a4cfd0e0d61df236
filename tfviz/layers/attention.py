"""Attention: every query takes the average of the values, weighted by how well their keys answer it."""

from collections.abc import Iterable

from torch import Tensor, nn
from torch.nn import functional

from tfviz.layers.cache import KeyValues, NoCache
from tfviz.layers.positions import Positions
from tfviz.shapes import Bool, Float

NOWHERE = Positions()
NOTHING = NoCache()


def attend(
    query: Float[Tensor, "batch head query dim"],
    key: Float[Tensor, "batch head key dim"],
    value: Float[Tensor, "batch head key out"],
    mask: Bool[Tensor, "#batch #head query key"] | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "batch head query out"]:
    """Scaled dot-product attention, softmax(Q K^T / sqrt(d)) V (Vaswani et al. 2017, equation 1), fused.

    The scores are divided by the square root of the width of a *head*. A query that may look nowhere gets zeros.

    Args:
        mask: True where a query may look.
        dropout: share of the weights set to zero.
    """
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)


class MultiHead(nn.Module):
    """Several attentions side by side, each in its own slice of the width (Vaswani et al. 2017, section 3.2.2).

    One packed product makes the queries, keys and values of all heads: 3 `dim`^2 weights however many heads there
    are, and `out_proj` adds `dim`^2. Parameters are laid out as in `torch.nn.MultiheadAttention`.

    Args:
        dim: width of the input and of the output.
        heads: number of heads; each is `dim / heads` wide.
        dropout: share of the attention weights set to zero in training.
    """

    def __init__(self, dim: int, heads: int, dropout: float = 0.0, bias: bool = True):
        super().__init__()
        if dim % heads:
            raise ValueError(f"width {dim} is not divisible by {heads} heads; take dim={dim // heads * heads or heads}")
        self.heads, self.dropout = heads, dropout
        self.in_proj = nn.Linear(dim, 3 * dim, bias=bias)
        self.out_proj = nn.Linear(dim, dim, bias=bias)

    def forward(
        self,
        x: Float[Tensor, "batch query dim"],
        memory: Float[Tensor, "batch key dim"] | None = None,
        *,
        mask: Bool[Tensor, "#batch #head query all"] | None = None,
        positions: Positions = NOWHERE,
        cache: KeyValues = NOTHING,
    ) -> Float[Tensor, "batch query dim"]:
        """Queries come from `x`; keys and values from `memory`, or from `x` itself (self-attention)."""
        query, key, value = self._project(x, x if memory is None else memory)
        start = cache.length
        query, key = positions.turn(query, start), positions.turn(key, start)
        key, value = cache.extend(key, value)
        mixed = attend(query, key, value, mask, self.dropout if self.training else 0.0)
        return self.out_proj(mixed.transpose(1, 2).flatten(2))

    def _project(self, x: Tensor, memory: Tensor) -> Iterable[Float[Tensor, "batch head position width"]]:
        """Queries, keys and values: in one product where they come from the same words."""
        if memory is x:
            return self._split(self.in_proj(x), parts=3)
        dim, weight, bias = x.shape[-1], self.in_proj.weight, self.in_proj.bias
        of_x, of_memory = (None, None) if bias is None else (bias[:dim], bias[dim:])
        query = functional.linear(x, weight[:dim], of_x)
        return *self._split(query, parts=1), *self._split(functional.linear(memory, weight[dim:], of_memory), parts=2)

    def _split(self, x: Tensor, parts: int) -> Tensor:
        """batch position (part head width) -> part batch head position width"""
        return x.unflatten(-1, (parts, self.heads, -1)).permute(2, 0, 3, 1, 4)
