"""Transformer-XL: a language model that reads segment by segment and remembers the one before (Dai et al. 2019)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz import checks
from tfviz.layers import Block, TokenEmbedding, masks, positions, pre_norm
from tfviz.layers.blocks import Residual, final_norm, init_weights, stack
from tfviz.layers.cache import check_parts
from tfviz.shapes import Float, Int


class SegmentRecurrentBlock(Block):
    """A block whose keys and values also come from the previous segment; the arguments are those of `Block`."""

    def forward(  # type: ignore[override]
        self, x: Float[Tensor, "batch position dim"], past: Float[Tensor, "batch past dim"], **attention
    ) -> tuple[Float[Tensor, "batch position dim"], Float[Tensor, "batch all dim"]]:
        """Return the output for `x`, and all inputs of the attention, the past first.

        No gradient flows into the past (section 3.2); its keys and values are computed with the current weights.
        """
        seen = past

        def attend(x: Tensor) -> Tensor:
            nonlocal seen
            seen = torch.cat((past, x), dim=1)
            return self.attention(x, seen, **attention)

        x = self.branch(x, self.attention_norm, attend)
        x = self.branch(x, self.feed_forward_norm, self.feed_forward)
        return x, seen.detach()


class TransformerXL(nn.Module):
    """A language model over segments, with relative positions and a memory of the previous segment.

    Through the memory each layer reaches a segment further back than the one below: information travels
    `layers` x `memory` tokens (section 3.2, figure 2).

    Args:
        vocab_size: number of tokens.
        memory: how many past positions each layer keeps, in tokens.
    """

    context = 10**9  # tokens: no limit, since what lies beyond the memories is not seen

    def __init__(
        self,
        vocab_size: int,
        *,
        memory: int = 64,
        layers: int = 4,
        heads: int = 4,
        dim: int = 128,
        dropout: float = 0.0,
        residual: Residual = pre_norm,
    ):
        super().__init__()
        checks.at_least(0, memory=memory)
        self.memory = memory
        self.tokens = TokenEmbedding(vocab_size, dim)
        self.dropout = nn.Dropout(dropout)
        self.blocks = stack(layers, lambda: SegmentRecurrentBlock(dim, heads, dropout=dropout, residual=residual))
        self.distances = nn.ModuleList(positions.Relative(0, dim, heads) for _ in range(layers))
        self.norm = final_norm(dim, residual)
        init_weights(self)
        nn.init.normal_(self.tokens.weight, std=0.02)  # small, since it is also the output's

    def forward(
        self, ids: Int[Tensor, "batch position"], cache: list[Tensor] | None = None
    ) -> Float[Tensor, "batch position vocab"]:
        """Return the logits of the token that follows each position.

        Args:
            ids: the ids of the tokens.
            cache: from `new_cache()`; then `ids` continue the segments seen before.
        """
        x = self.dropout(self.tokens(ids))
        pasts = cache or [x[:, :0]] * len(self.blocks)
        check_parts(pasts, len(self.blocks))
        length, start = ids.shape[1], pasts[0].shape[1]
        mask = masks.causal.dense(length, start + length, start=start, device=ids.device)
        memories = []
        for block, past, distances in zip(self.blocks, pasts, self.distances, strict=True):
            x, seen = block(x, past, mask=mask, positions=distances)
            memories.append(seen[:, max(0, seen.shape[1] - self.memory) :])
        if cache is not None:
            cache[:] = memories
        return functional.linear(self.norm(x), self.tokens.weight)

    def new_cache(self) -> list[Tensor]:
        """Return an empty memory, in which a call of the model stores the past states of each layer."""
        return []
