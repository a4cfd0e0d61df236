"""Self-attention without parameters."""

from torch import Tensor, nn

from tfviz.layers import attend
from tfviz.shapes import Float


class SelfAttention(nn.Module):
    """Self-attention in which each output is an average of all inputs, weighted by the softmax of dot products.

    There is nothing to learn: the inputs themselves are queries, keys and values.

    Args:
        scaled: whether the dot products are divided by the square root of the width.
    """

    def __init__(self, scaled: bool = False):
        super().__init__()
        self.scaled = scaled

    def forward(self, x: Float[Tensor, "batch position dim"]) -> Float[Tensor, "batch position dim"]:
        """Return, for each position, the average of all positions, weighted by attention.

        Raises:
            ValueError: `x` does not have three axes.
        """
        if x.dim() != 3:
            raise ValueError(f"x is {list(x.shape)}; give [batch, position, dim]; for one text, x[None]")
        query = x if self.scaled else x * x.shape[-1] ** 0.5
        query, key = query.unsqueeze(1), x.unsqueeze(1)  # [batch, 1 head, position, dim]
        return attend(query, key, value=key).squeeze(1)
