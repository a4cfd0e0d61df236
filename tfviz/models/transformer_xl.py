"""Transformer-XL: a language model that reads segment by segment and remembers the one before (Dai et al. 2019)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz import bounds
from tfviz.layers import Block, Tokens, masks, positions, pre_norm, sizes
from tfviz.layers.blocks import Residual, init_weights, stack
from tfviz.shapes import Float, Int


class RecurringBlock(Block):
    """A block whose keys and values come from the last segment too; the arguments are those of `Block`."""

    def forward(  # type: ignore[override]
        self, x: Float[Tensor, "batch position dim"], past: Float[Tensor, "batch past dim"], **attention
    ) -> tuple[Float[Tensor, "batch position dim"], Float[Tensor, "batch all dim"]]:
        """What the block makes of `x`, and all that its attention has now seen, the past first.

        No gradient flows into the past (section 3.2); the keys and values made of it are today's all the same.
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
    """A language model over segments: distances instead of places, and a memory of the segment before.

    Through the memory each layer reaches a segment further back than the one below: information travels
    `layers` x `memory` tokens (section 3.2, figure 2).

    Args:
        vocab: number of tokens.
        memory: how many past positions each layer keeps, in tokens.
    """

    context = 10**9  # tokens; there is no limit: what lies beyond the memories is not seen

    def __init__(
        self,
        vocab: int,
        *,
        memory: int = 64,
        layers: int = 4,
        heads: int = 4,
        dim: int = 128,
        dropout: float = 0.0,
        residual: Residual = pre_norm,
    ):
        super().__init__()
        bounds.at_least(0, memory=memory)
        bounds.between(0, 1, dropout=dropout)
        self.memory = memory
        self.tokens = Tokens(vocab, dim)
        self.dropout = nn.Dropout(dropout)
        self.blocks = stack(layers, lambda: RecurringBlock(dim, heads, dropout=dropout, residual=residual))
        self.distances = nn.ModuleList(positions.Relative(0, dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim) if residual is pre_norm else nn.Identity()
        init_weights(self)
        nn.init.normal_(self.tokens.weight, std=0.02)  # small, since it is also the output's

    def forward(
        self, ids: Int[Tensor, "batch position"], cache: list[Tensor] | tuple[()] = ()
    ) -> Float[Tensor, "batch position vocab"]:
        """Logits of the token that follows each position.

        Args:
            cache: from `new_cache()`; then `ids` continue the segments seen before.
        """
        x = self.dropout(self.tokens(ids))
        sizes.some(x)
        sizes.caches(cache, len(self.blocks), lambda past: sizes.alike(past, x, 0, 2), texts=x.shape[0], new=True)
        pasts = list(cache) or [x[:, :0]] * len(self.blocks)
        length, start = ids.shape[1], pasts[0].shape[1]
        mask = masks.causal.dense(length, start + length, start=start, device=ids.device)
        kept = []
        for block, past, distances in zip(self.blocks, pasts, self.distances, strict=True):
            x, seen = block(x, past, mask=mask, positions=distances)
            kept.append(seen[:, max(0, seen.shape[1] - self.memory) :])
        if isinstance(cache, list):
            cache[:] = kept
        return functional.linear(self.norm(x), self.tokens.weight)

    def new_cache(self) -> list[Tensor]:
        """An empty memory; a call of the model leaves in it what each layer has to remember."""
        return []
