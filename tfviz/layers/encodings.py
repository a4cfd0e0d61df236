"""Tables of positions: sines and distances, computed from where a word stands and nothing else."""

import torch
from torch import Tensor, nn

from tfviz import bounds
from tfviz.shapes import Float, Int

WHOLE = (int, torch.SymInt)  # lengths, also those that PyTorch's compiler leaves open
LARGE = 2**32  # rows, from which on the memory is looked at first


def check(length: int) -> None:
    """A table can have this length. It is asked in forward passes, too, where it costs a comparison.

    Raises:
        TypeError: it is no whole number.
        ValueError: it is below 0.
    """
    if not isinstance(length, WHOLE) or length < 0:
        bounds.whole(length=length)
        bounds.at_least(0, length=length)


def sinusoids(positions: Int[Tensor, "position"], dim: int, base: float = 10_000.0) -> Float[Tensor, "position dim"]:
    """Sines in the even columns, cosines in the odd; wavelengths from 2 pi to `base` 2 pi (Vaswani et al. 2017, 3.5).

    >>> sinusoids(torch.arange(2), 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    if positions.dim() != 1 or positions.is_complex():
        raise ValueError(f"positions are {list(positions.shape)}; give a list of numbers, such as torch.arange(9)")
    bounds.affordable(positions=max(1, len(positions)), dim=dim)
    bounds.above(0, base=base)
    return sines(positions, dim, base)


def sines(positions: Tensor, dim: int, base: float = 10_000.0) -> Tensor:
    """As `sinusoids`, within a forward pass: nothing is looked at."""
    columns = torch.arange(dim, device=positions.device)
    angles = positions[:, None] / base ** (columns.div(2, rounding_mode="floor") * 2 / dim)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())


def alibi(length: int, heads: int) -> Float[Tensor, "head query key"]:
    """What attention with linear biases adds to the scores: minus the distance, times a slope for each head.

    The slopes fall geometrically from 2^(-8 / heads) to 2^-8 (Press et al. 2022, section 3). The paper's models are
    causal and see no key ahead of the query; where an encoder does, only the distance counts, not the direction.

    >>> alibi(3, heads=2)[0]
    tensor([[-0.0000, -0.0625, -0.1250],
            [-0.0625, -0.0000, -0.0625],
            [-0.1250, -0.0625, -0.0000]])
    """
    bounds.at_least(0, length=length)
    bounds.affordable(heads=heads, queries=max(1, length), keys=max(1, length))
    return slopes(length, heads)


def slopes(length: int, heads: int) -> Tensor:
    """As `alibi`, within a forward pass: nothing is looked at."""
    falls = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
    places = torch.arange(length)
    return -falls[:, None, None] * (places[:, None] - places).abs()


def relative(length: int, dim: int) -> Float[Tensor, "query key"]:
    """The cosine of each distance with distance 0, where distances stand as sinusoids (Dai et al. 2019, 3.3)."""
    bounds.affordable(queries=length, keys=length, dim=dim)
    places = torch.arange(length)
    vectors = sinusoids((places[:, None] - places).flatten(), dim)
    return nn.functional.cosine_similarity(vectors, sinusoids(torch.arange(1), dim)).view(length, length)


def shift(scores: Float[Tensor, "batch head query distance"], keys: int) -> Float[Tensor, "batch head query key"]:
    """From distances to keys: row i moves i columns to the right (Dai et al. 2019, appendix B).

    The columns are distances from `keys - 1` down to `1 - queries`. Read as one line with a cell more in each row,
    every row begins one cell later than the one above it, which is the move; nothing is computed.

    >>> shift(torch.tensor([[[[2, 1, 0, -1], [2, 1, 0, -1]]]]).float(), keys=3)[0, 0].int().tolist()
    [[1, 0, -1], [2, 1, 0]]
    """
    queries, distances = scores.shape[-2:]
    if not torch.compiler.is_compiling() and distances != queries + keys - 1:
        raise ValueError(
            f"there are {distances} distances for {queries} queries and {keys} keys; there must be "
            f"{queries + keys - 1}, from {keys - 1} down to {1 - queries}"
        )
    line = nn.functional.pad(scores, (0, 1)).flatten(-2)[..., queries - 1 : queries - 1 + queries * distances]
    return line.unflatten(-1, (queries, distances))[..., :keys]
