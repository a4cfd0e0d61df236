"""Transformer blocks: attention and a feed-forward network, each in a residual branch with a norm."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.layers.attention import MultiHeadAttention
from tfviz.layers.cache import KVCache
from tfviz.shapes import Bool, Float

Activation = Callable[[], nn.Module]
Residual = Callable[[Tensor, nn.Module, Callable[[Tensor], Tensor]], Tensor]


def pre_norm(x: Tensor, norm: nn.Module, branch: Callable[[Tensor], Tensor]) -> Tensor:
    """Return x + branch(norm(x)); without norms in the residual stream, gradients stay stable (Xiong et al. 2020)."""
    return x + branch(norm(x))


def post_norm(x: Tensor, norm: nn.Module, branch: Callable[[Tensor], Tensor]) -> Tensor:
    """Return norm(x + branch(x)), as in the original Transformer (Vaswani et al. 2017, section 3.1)."""
    return norm(x + branch(x))


def final_norm(
    dim: int, residual: Residual = pre_norm, norm: Callable[[int], nn.Module] = nn.LayerNorm, **block: Any
) -> nn.Module:
    """Return the final norm of a stack of blocks if `residual` is `pre_norm`, otherwise the identity.

    It takes the arguments of the blocks, `block` among them, which it does not need.
    """
    return norm(dim) if residual is pre_norm else nn.Identity()


class FeedForward(nn.Sequential):
    """A two-layer feed-forward network, applied to each position separately (Vaswani et al. 2017, equation 2).

    Args:
        dim: width of the input and of the output.
        inner: width of the hidden layer; default 4 `dim`.
        activation: class of the activation function.
    """

    def __init__(self, dim: int, inner: int | None = None, activation: Activation = nn.GELU):
        inner = 4 * dim if inner is None else inner
        checks.fits_memory(dim=dim, inner=inner)
        super().__init__(nn.Linear(dim, inner), activation(), nn.Linear(inner, dim))


class Block(nn.Module):
    """A Transformer block: self-attention and a feed-forward network, each in a residual branch with a norm.

    Args:
        dim: width of the input and of the output.
        heads: number of attention heads; it must divide `dim`.
        inner: width of the hidden layer of the feed-forward network; default 4 `dim`.
        dropout: dropout probability of each branch's output (Vaswani et al. 2017, section 5.4).
        residual: `pre_norm` or `post_norm`, the order of norm and branch.
        activation: class of the activation function of the feed-forward network.
        norm: function from a width to a norm.
        attention: function from `dim` and `heads` to the attention module, such as `partial(MultiHeadAttention,
            norm=nn.RMSNorm)`.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        inner: int | None = None,
        dropout: float = 0.0,
        residual: Residual = pre_norm,
        activation: Activation = nn.GELU,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
        attention: Callable[[int, int], nn.Module] = MultiHeadAttention,
    ):
        super().__init__()
        checks.between(0, 1, dropout=dropout)
        self.residual = residual
        self.attention_norm = norm(dim)
        self.attention = attention(dim, heads)
        self.feed_forward_norm = norm(dim)
        self.feed_forward = FeedForward(dim, inner, activation)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "batch position dim"], **attention) -> Float[Tensor, "batch position dim"]:
        """Apply the block; `**attention` (mask, positions, cache) is passed to the attention module."""
        x = self.branch(x, self.attention_norm, lambda x: self.attention(x, **attention))
        return self.branch(x, self.feed_forward_norm, self.feed_forward)

    def branch(
        self, x: Tensor, norm: nn.Module, compute: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "batch position dim"]:
        """Apply a residual branch of this block, with dropout of the branch's output."""
        after = self.residual(x, norm, lambda x: self.dropout(_check_shape("a branch", compute(x), x)))
        return _check_shape("residual", after, x)


def _check_shape(name: str, output: Tensor, x: Tensor) -> Tensor:
    """Return the output after checking its shape, since another shape could broadcast without an error."""
    if not torch.compiler.is_compiling() and output.shape != x.shape:
        raise ValueError(f"{name} turned {list(x.shape)} into {list(output.shape)}; it must keep the shape")
    return output


class DecoderBlock(Block):
    """A decoder block: self-attention, cross-attention to the memory, and a feed-forward network.

    The memory is the encoded source (Vaswani et al. 2017, section 3.1, decoder). The arguments are those of `Block`.
    """

    def __init__(self, dim: int, heads: int, inner: int | None = None, dropout: float = 0.0, **parts):
        super().__init__(dim, heads, inner, dropout, **parts)
        self.cross_norm = parts.get("norm", nn.LayerNorm)(dim)
        self.cross = parts.get("attention", MultiHeadAttention)(dim, heads)

    def forward(  # type: ignore[override]
        self,
        x: Float[Tensor, "batch position dim"],
        memory: Float[Tensor, "sources source dim"],
        memory_mask: Bool[Tensor, "#sources 1 1 source"] | None = None,
        memory_cache: KVCache | None = None,
        **attention,
    ) -> Float[Tensor, "batch position dim"]:
        """Apply the block.

        Args:
            x: the input, `[batch, position, dim]`.
            memory: the encoded sources, `[sources, source, dim]`: one for each text, or fewer, each shared by the same
                number of consecutive texts.
            memory_mask: True at positions of the memory that may be attended to, `[sources, 1, 1, source]`.
            memory_cache: the cache of the memory's keys and values.
            **attention: further arguments of the self-attention: mask, positions, cache.
        """

        def cross(x: Tensor) -> Tensor:
            sources = memory.shape[0]
            check_sources(x.shape[0], sources)
            query = x if x.shape[0] == sources else x.reshape(sources, -1, x.shape[-1])
            return self.cross(query, memory, mask=memory_mask, cache=memory_cache).view_as(x)

        x = self.branch(x, self.attention_norm, lambda x: self.attention(x, **attention))
        x = self.branch(x, self.cross_norm, cross)
        return self.branch(x, self.feed_forward_norm, self.feed_forward)


def check_sources(texts: int, sources: int) -> None:
    """Raise ValueError unless the texts can be divided evenly among the sources."""
    if not torch.compiler.is_compiling() and (not sources or texts % sources):
        raise ValueError(
            f"{texts} texts cannot be divided among {sources} sources; give the same number of texts for each source"
        )


def stack(layers: int, make: Callable[[], nn.Module]) -> nn.ModuleList:
    """Return a `ModuleList` of `layers` blocks made by `make`.

    Raises:
        ValueError: `layers` is below 1, or the blocks need more than this machine's memory.
    """
    checks.at_least(1, layers=layers)
    first = make()
    weights = sum(parameter.numel() for parameter in first.parameters())
    checks.fits_memory(layers=layers, weights=max(weights, 10_000))  # modules take memory, too
    return nn.ModuleList([first, *(make() for _ in range(layers - 1))])


def init_weights(model: nn.Module) -> None:
    """Initialize linear layers with variance-preserving weights and zero biases, then call `shrink_branches`."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=module.in_features**-0.5)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    shrink_branches(model)


def shrink_branches(model: nn.Module) -> None:
    """Divide the weights at the end of each residual branch by ten, so that blocks start close to the identity.

    Deep stacks then train stably (Zhang et al. 2019, "Fixup initialization").
    """
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.out_proj.weight.data.mul_(0.1)
        if isinstance(module, FeedForward):
            module[-1].weight.data.mul_(0.1)  # type: ignore[operator, union-attr]
