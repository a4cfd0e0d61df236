"""Transformer-XL: a language model over segments, with a memory of past states (Dai et al. 2019)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tfviz import checks
from tfviz.layers import Block, TokenEmbedding, masks, positions, pre_norm
from tfviz.layers.blocks import Residual, final_norm, init_weights, stack
from tfviz.layers.cache import check_entries
from tfviz.shapes import Float, Int


class SegmentRecurrentBlock(Block):
    """A block whose queries also attend to past states; the arguments are those of `Block`."""

    def forward(  # type: ignore[override]
        self, x: Float[Tensor, "batch position dim"], past: Float[Tensor, "batch past dim"], **attention
    ) -> tuple[Float[Tensor, "batch position dim"], Float[Tensor, "batch all dim"]]:
        """Return the output for `x`, and all inputs of the attention, detached: the past, then those for `x`.

        No gradient flows into the past (section 3.2). Keys and values of the past are computed with the current
        weights.
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
    """A language model over segments, with relative positions and a memory of past states in each layer.

    Each layer reaches `memory` tokens further back than the layer below, so that information travels over at most
    `layers` x `memory` tokens (section 3.2, figure 2).

    Args:
        vocab_size: number of tokens.
        memory: number of past positions whose states each layer stores.
        layers: number of blocks.
        heads: number of attention heads; it must divide `dim`.
        dim: width of the residual stream.
        dropout: dropout probability of the embeddings and of each branch.
        residual: `pre_norm` or `post_norm`.
    """

    context = 10**9  # tokens: no limit, since only the memories are used

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
        nn.init.normal_(self.tokens.weight, std=0.02)  # small, since it is also the output matrix

    def forward(
        self, ids: Int[Tensor, "batch position"], cache: list[Tensor] | None = None
    ) -> Float[Tensor, "batch position vocab"]:
        """Return the logits of the token that follows each position.

        Args:
            ids: the ids of the tokens, `[batch, position]`.
            cache: a cache from `new_cache()`, with which `ids` continue the segments of earlier calls.
        """
        x = self.dropout(self.tokens(ids))
        pasts = cache or [x[:, :0]] * len(self.blocks)
        check_entries(pasts, len(self.blocks))
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
        """Return an empty cache, in which a call of the model stores the past states of each layer."""
        return []
