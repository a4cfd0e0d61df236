"""The sparse Transformer: a GPT whose queries attend to about sqrt(n) keys instead of n (Child et al. 2019)."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tfviz.layers import masks
from tfviz.layers.attention import MIN_FLEX_WIDTH, AttentionMask
from tfviz.layers.positions import PositionEncoding
from tfviz.models.gpt import GPT

MaskMaker = Callable[[int], masks.Mask]


class SparseTransformer(GPT):
    """A GPT with a sparse causal mask; on a GPU, FlexAttention skips the forbidden blocks.

    By default it is `GPT(vocab_size, mask=masks.strided(stride))`. With a stride near the square root of the length n,
    a layer computes about n sqrt(n) cells, and information from a token reaches every later position within two layers.

    Args:
        vocab_size: number of tokens.
        stride: size of the local window or block in which all past keys are allowed; of earlier keys, only some are.
        make_mask: function from `stride` to a mask: `masks.strided`, for data that repeat at a known distance, or
            `masks.fixed`, for text; or a list of such functions, one for each head in turn, such as `[masks.window,
            masks.dilated]` (section 5.1).
        parts: arguments of `GPT`. With positions that bias scores, or heads narrower than 16, attention is computed
            densely.

    >>> SparseTransformer(11, stride=3, context=9).mask
    (causal & (window(3) | dilated(3)))
    """

    def __init__(
        self, vocab_size: int, *, stride: int, make_mask: MaskMaker | Sequence[MaskMaker] = masks.strided, **parts: Any
    ):
        makers = [make_mask] if callable(make_mask) else make_mask
        mask = masks.causal & masks.per_head(*(make(stride) for make in makers))
        super().__init__(vocab_size, mask=mask, **parts)
        # the last one is stored, since it takes longer to build than to use
        self.block_masks: dict[tuple[int, torch.device], Any] = {}

    def attention_mask(self, batch: int, length: int, start: int, device: torch.device) -> AttentionMask:
        unbiased = type(self.positions).bias is PositionEncoding.bias
        wide = self.tokens.embedding_dim // self.heads >= MIN_FLEX_WIDTH
        if start == 0 and unbiased and wide and device.type == "cuda":
            return self.block_mask(length, device)
        return super().attention_mask(batch, length, start, device)

    def block_mask(self, length: int, device: torch.device) -> Any:
        """Return the `BlockMask` for texts of this length, which is built again when length or device change."""
        if (length, device) not in self.block_masks:
            heads = self.heads if self.mask.heads else None  # a mask for all heads is built once
            self.block_masks = {(length, device): self.mask.block_mask(length, length, heads=heads, device=device)}
        return self.block_masks[length, device]
