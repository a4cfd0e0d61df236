"""The sparse Transformer: a GPT whose queries look at about sqrt(n) keys instead of n (Child et al. 2019)."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tfviz.layers import masks
from tfviz.layers.attention import MIN_FLEX_WIDTH, AttentionMask
from tfviz.layers.positions import Positions
from tfviz.models.gpt import GPT

Pattern = Callable[[int], masks.Mask]


class SparseTransformer(GPT):
    """`GPT(vocab_size, mask=masks.strided(stride))`, computed by FlexAttention on a GPU, which skips what is forbidden.

    With a stride near the square root of the length n, a layer computes about n sqrt(n) cells, and information from a
    word reaches every later position within two layers.

    Args:
        stride: size of the local window or block that is fully visible; of earlier positions, only some are.
        pattern: `masks.strided`, for data that repeat at a known distance, or `masks.fixed`, for text; or a list, one
            for each head in turn, such as `[masks.window, masks.dilated]` (section 5.1).
        parts: arguments of `GPT`. With positions that bias scores, or heads narrower than 16, attention is computed
            densely.

    >>> SparseTransformer(11, stride=3, context=9).mask
    (causal & (window(3) | dilated(3)))
    """

    def __init__(
        self, vocab_size: int, *, stride: int, pattern: Pattern | Sequence[Pattern] = masks.strided, **parts: Any
    ):
        patterns = [pattern] if callable(pattern) else pattern
        mask = masks.causal & masks.per_head(*(make(stride) for make in patterns))
        super().__init__(vocab_size, mask=mask, **parts)
        # at most one is stored: making it costs more than using it
        self.block_masks: dict[tuple[int, torch.device], Any] = {}

    def attention_mask(self, batch: int, length: int, start: int, device: torch.device) -> AttentionMask:
        unbiased = type(self.positions).bias is Positions.bias
        wide = self.tokens.embedding_dim // self.heads >= MIN_FLEX_WIDTH
        if start == 0 and unbiased and wide and device.type == "cuda":
            return self.block_mask(length, device)
        return super().attention_mask(batch, length, start, device)

    def block_mask(self, length: int, device: torch.device) -> Any:
        """Return the `BlockMask` for texts of this length, made when the length changes."""
        if (length, device) not in self.block_masks:
            heads = self.heads if self.mask.heads else None  # equal masks are made once
            self.block_masks = {(length, device): self.mask.block_mask(length, length, heads=heads, device=device)}
        return self.block_masks[length, device]
