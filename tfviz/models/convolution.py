"""A convolutional language model of causal, dilated, gated convolutions, as in WaveNet (van den Oord et al. 2016)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz import checks
from tfviz.layers.embeddings import TokenEmbedding
from tfviz.shapes import Float, Int


class GatedConvBlock(nn.Module):
    """A gated residual block: x + P (tanh(f) sigmoid(g)), with f and g dilated convolutions of the norm of x.

    See van den Oord et al. 2016, equation 2 and figure 4, without the skip connections; the norm is ByteNet's
    (Kalchbrenner et al. 2016, figure 3).

    Args:
        dim: width of the input and of the output.
        kernel: number of positions that a convolution covers: the current one and `kernel - 1` before it.
        dilation: distance between these positions.
        dropout: dropout probability of the branch's output.
    """

    def __init__(self, dim: int, kernel: int, dilation: int, dropout: float = 0.0):
        super().__init__()
        self.back = (kernel - 1) * dilation
        self.norm = nn.LayerNorm(dim)
        self.convolution = nn.Conv1d(dim, 2 * dim, kernel, dilation=dilation)
        self.filter, self.gate = nn.Tanh(), nn.Sigmoid()
        self.out_proj = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "batch position dim"]) -> Float[Tensor, "batch position dim"]:
        before = functional.pad(self.norm(x).mT, (self.back, 0))  # zeros on the left only, for causality
        content, gate = self.convolution(before).mT.chunk(2, dim=-1)
        return x + self.dropout(self.out_proj(self.filter(content) * self.gate(gate)))


class ConvLM(nn.Module):
    """A language model of causal convolutions, whose receptive field grows exponentially with depth.

    The dilation grows from layer to layer (van den Oord et al. 2016, figure 3).

    Args:
        vocab_size: number of tokens.
        dim: width of the residual stream.
        layers: number of blocks.
        kernel: number of positions that each convolution covers.
        dilation: factor by which their distance grows from layer to layer: 1, `dilation`, `dilation`^2, ...
        dropout: dropout probability of the embeddings and of each branch.

    >>> model = ConvLM(11, dim=6, layers=4)
    >>> model.receptive_field
    16
    """

    context = 10**9  # tokens: no limit, since only the receptive field is used

    def __init__(
        self,
        vocab_size: int,
        *,
        dim: int = 128,
        layers: int = 6,
        kernel: int = 2,
        dilation: int = 2,
        dropout: float = 0.0,
    ):
        super().__init__()
        checks.at_least(1, layers=layers, kernel=kernel, dilation=dilation)
        checks.fits_memory(layers=layers, weights=max(2 * kernel * dim * dim, 10_000))
        checks.fits_memory(reach=(kernel - 1) * dilation ** (layers - 1) + 1, dim=dim)
        checks.between(0, 1, dropout=dropout)
        self.kernel, self.dilation = kernel, dilation
        self.tokens = TokenEmbedding(vocab_size, dim)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(GatedConvBlock(dim, kernel, dilation**layer, dropout) for layer in range(layers))
        self.norm = nn.LayerNorm(dim)
        self.to_logits = nn.Linear(dim, vocab_size)

    @property
    def receptive_field(self) -> int:
        """The length of the receptive field, in tokens: 1 + (kernel - 1) (1 + dilation + dilation^2 + ...).

        The receptive field has gaps if the dilation exceeds the kernel.
        """
        return 1 + sum((self.kernel - 1) * self.dilation**layer for layer in range(len(self.blocks)))

    def forward(
        self, ids: Int[Tensor, "batch position"], cache: list[Tensor] | None = None
    ) -> Float[Tensor, "batch position vocab"]:
        """Return the logits of the token that follows each position.

        Args:
            ids: the ids of the tokens, `[batch, position]`.
            cache: a cache from `new_cache()`, with which `ids` continue the texts of earlier calls.
        """
        new = ids.shape[-1]
        if cache is not None:
            ids = torch.cat([*cache, ids], dim=1)
            cache[:] = [ids[:, max(0, ids.shape[1] - self.receptive_field + 1) :]]
        x = self.dropout(self.tokens(ids))
        for block in self.blocks:
            x = block(x)
        return self.to_logits(self.norm(x[:, x.shape[1] - new :]))

    def new_cache(self) -> list[Tensor]:
        """Return an empty cache, in which a call of the model stores the last `receptive_field - 1` ids."""
        return []
