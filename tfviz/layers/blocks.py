"""Blocks: attention and a feed-forward network, each in a residual branch with a norm."""

from collections.abc import Callable

from torch import Tensor, nn

from tfviz import bounds
from tfviz.doors import takes
from tfviz.layers import sizes
from tfviz.layers.attention import NOTHING, MultiHead
from tfviz.layers.cache import KeyValues
from tfviz.shapes import Bool, Float

Activation = Callable[[], nn.Module]
Residual = Callable[[Tensor, nn.Module, Callable[[Tensor], Tensor]], Tensor]


def pre_norm(x: Tensor, norm: nn.Module, branch: Callable[[Tensor], Tensor]) -> Tensor:
    """x + branch(norm(x)): the stream is never normalised, so gradients flow at any depth (Xiong et al. 2020)."""
    return x + branch(norm(x))


def post_norm(x: Tensor, norm: nn.Module, branch: Callable[[Tensor], Tensor]) -> Tensor:
    """norm(x + branch(x)): the order of the first Transformer (Vaswani et al. 2017, section 3.1)."""
    return norm(x + branch(x))


class FeedForward(nn.Sequential):
    """The same two-layer network at every position (Vaswani et al. 2017, equation 2), `inner` wide inside."""

    def __init__(self, dim: int, inner: int | None = None, activation: Activation = nn.GELU):
        inner = 4 * dim if inner is None else inner
        bounds.affordable(dim=dim, inner=inner)
        super().__init__(nn.Linear(dim, inner), sizes.made("activation", activation, "nn.ReLU"), nn.Linear(inner, dim))

    def forward(self, x: Float[Tensor, "batch position dim"]) -> Float[Tensor, "batch position dim"]:
        first = next(iter(self))  # quicker than self[0], which counts
        sizes.batch(first.in_features, first, x=x)  # type: ignore[arg-type]
        return super().forward(x)


class Block(nn.Module):
    """Self-attention, which moves information between positions, then a network that works at each.

    Args:
        inner: width inside the feed-forward network; default 4 `dim`.
        dropout: share of each branch's output set to zero in training (Vaswani et al. 2017, section 5.4).
        residual: `pre_norm` or `post_norm`: where the norm stands.
        norm: from a width to a norm.
        attention: from width and heads to the attention, such as `partial(MultiHead, norm=nn.RMSNorm)`.
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
        attention: Callable[[int, int], nn.Module] = MultiHead,
    ):
        super().__init__()
        bounds.between(0, 1, dropout=dropout)
        bounds.affordable(dim=dim, inner=inner or 4 * dim)
        takes("x", "norm", "branch", residual=residual)
        self.residual = residual
        self.attention_norm = sizes.made("norm", norm, "nn.RMSNorm", dim)
        self.attention = sizes.made("attention", attention, "MultiHead", dim, heads)
        self.feed_forward_norm = sizes.made("norm", norm, "nn.RMSNorm", dim)
        self.feed_forward = FeedForward(dim, inner, activation)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "batch position dim"], **attention) -> Float[Tensor, "batch position dim"]:
        """`**attention` (mask, positions, cache) goes to `MultiHead` as it is."""
        first = next(iter(self.feed_forward))
        sizes.batch(first.in_features, first, x=x)  # type: ignore[arg-type]
        x = self.branch(x, self.attention_norm, lambda x: self.attention(x, **attention))
        return self.branch(x, self.feed_forward_norm, self.feed_forward)

    def branch(self, x: Tensor, norm: nn.Module, of: Callable[[Tensor], Tensor]) -> Float[Tensor, "batch position dim"]:
        """A residual branch of this block, with dropout at its end."""
        after = self.residual(x, norm, lambda x: self.dropout(sizes.kept(x, of(x), "a branch")))
        return sizes.kept(x, after, "residual")


def init_weights(model: nn.Module) -> None:
    """First weights: a matrix keeps the variance of its input; biases are 0; branches begin `shrink_branches`."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=module.in_features**-0.5)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    shrink_branches(model)


def shrink_branches(model: nn.Module) -> None:
    """What ends a residual branch becomes a tenth of what it was.

    A block at first hardly changes the stream, as if it were added when it has something to say (Zhang et al. 2019,
    "Fixup initialization").
    """
    for module in model.modules():
        if isinstance(module, MultiHead):
            module.out_proj.weight.data.mul_(0.1)
        if isinstance(module, FeedForward):
            module[-1].weight.data.mul_(0.1)  # type: ignore[operator, union-attr]


def stack(layers: int, make: Callable[[], nn.Module]) -> nn.ModuleList:
    """That many blocks, one on the other.

    Raises:
        ValueError: there is none, or more than this machine's memory holds.
    """
    bounds.at_least(1, layers=layers)
    first = make()
    weights = sum(parameter.numel() for parameter in first.parameters())
    bounds.affordable(layers=layers, weights=max(weights, 10_000))  # modules take memory, too
    return nn.ModuleList([first, *(make() for _ in range(layers - 1))])


class DecoderBlock(Block):
    """A block that looks at another text between the two: queries from this one, keys and values from the other.

    The arguments are those of `Block` (Vaswani et al. 2017, section 3.1, decoder).
    """

    def __init__(self, dim: int, heads: int, inner: int | None = None, dropout: float = 0.0, **parts):
        super().__init__(dim, heads, inner, dropout, **parts)
        self.cross_norm = sizes.made("norm", parts.get("norm", nn.LayerNorm), "nn.RMSNorm", dim)
        self.cross = sizes.made("attention", parts.get("attention", MultiHead), "MultiHead", dim, heads)

    def forward(  # type: ignore[override]
        self,
        x: Float[Tensor, "batch position dim"],
        memory: Float[Tensor, "sources source dim"],
        memory_mask: Bool[Tensor, "#sources 1 1 source"] | None = None,
        memory_cache: KeyValues = NOTHING,
        **attention,
    ) -> Float[Tensor, "batch position dim"]:
        """`**attention` goes to the self-attention as it is.

        Args:
            memory: of as many sources as there are texts, or of fewer: then as many texts, one after the other, belong
                to each, and ask together.
        """

        first = next(iter(self.feed_forward))
        sizes.parts(memory_cache=(memory_cache, "extend", "KeyValues()"))
        sizes.batch(first.in_features, first, x=x, memory=memory)  # type: ignore[arg-type]
        sizes.shared(x, memory)

        def cross(x: Tensor) -> Tensor:
            sources = memory.shape[0]
            asked = x if x.shape[0] == sources else x.reshape(sources, -1, x.shape[-1])
            return self.cross(asked, memory, mask=memory_mask, cache=memory_cache).view_as(x)

        x = self.branch(x, self.attention_norm, lambda x: self.attention(x, **attention))
        x = self.branch(x, self.cross_norm, cross)
        return self.branch(x, self.feed_forward_norm, self.feed_forward)
