"""What all encoder-decoders have in common: `forward` is `decode` after `encode`."""

from typing import Any

from torch import Tensor, nn

from tfviz.shapes import Float, Int


class EncoderDecoder(nn.Module):
    """The base class of encoder-decoders, which define `encode` and `decode`."""

    def encode(self, source: Int[Tensor, "batch source"]) -> Any:
        """Return the encoded source, a named tuple of tensors whose first axis is the batch."""
        raise NotImplementedError

    def decode(self, target: Int[Tensor, "batch target"], memory: Any) -> Float[Tensor, "batch target vocab"]:
        """Return the logits of the token after each target position, given the encoded source."""
        raise NotImplementedError

    def forward(
        self, source: Int[Tensor, "batch source"], target: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target vocab"]:
        """Return the logits of the token after each target position, given the target so far (teacher forcing)."""
        return self.decode(target, self.encode(source))
