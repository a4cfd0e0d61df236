"""Tables of position encodings: sinusoids, ALiBi's biases, and the relative shift of Transformer-XL."""

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.shapes import Float, Int


def check_length(length: int) -> None:
    """Raise ValueError for a negative length, which in a slice would count from the end."""
    if length < 0:
        raise ValueError(f"length is {length}; it must be at least 0")


def check_memory(**sizes: int) -> None:
    """Raise ValueError if a table of these sizes does not fit into memory; skipped while compiling."""
    if not torch.compiler.is_compiling():
        checks.fits_memory(**{name: max(1, size) for name, size in sizes.items()})


def sinusoids(positions: Int[Tensor, "position"], dim: int, base: float = 10_000.0) -> Float[Tensor, "position dim"]:
    """Return sinusoidal position encodings: sines in the even columns, cosines in the odd ones.

    Wavelengths grow geometrically from 2 pi towards `base` 2 pi (Vaswani et al. 2017, section 3.5).

    Raises:
        ValueError: `positions` does not have one axis, `dim` is below 1, or `base` is not above 0.

    >>> sinusoids(torch.arange(2), 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    if positions.dim() != 1:
        raise ValueError(f"positions are {list(positions.shape)}; give a list of numbers, such as torch.arange(9)")
    checks.at_least(1, dim=dim)
    checks.above(0, base=base)
    check_memory(positions=len(positions), dim=dim)
    columns = torch.arange(dim, device=positions.device)
    angles = positions[:, None] / base ** (columns.div(2, rounding_mode="floor") * 2 / dim)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())


def alibi(length: int, heads: int) -> Float[Tensor, "head query key"]:
    """Return the biases that ALiBi adds to the scores: for each head, a slope times the negative distance.

    The slopes fall geometrically from 2^(-8 / heads) to 2^-8 (Press et al. 2022, section 3). The paper's models are
    causal; in an encoder, keys on both sides of the query get the same bias at the same distance.

    Raises:
        ValueError: `length` is negative, `heads` is below 1, or the biases do not fit into memory.

    >>> alibi(3, heads=2)[0]
    tensor([[-0.0000, -0.0625, -0.1250],
            [-0.0625, -0.0000, -0.0625],
            [-0.1250, -0.0625, -0.0000]])
    """
    check_length(length)
    checks.at_least(1, heads=heads)
    check_memory(heads=heads, queries=length, keys=length)
    slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
    positions = torch.arange(length)
    return -slopes[:, None, None] * (positions[:, None] - positions).abs()


def relative(length: int, dim: int) -> Float[Tensor, "query key"]:
    """Return the cosine similarity between the sinusoids of the distance of each query and key and of distance 0.

    These are the sinusoids of Transformer-XL (Dai et al. 2019, section 3.3).

    Raises:
        ValueError: a size is below 1, or the table does not fit into memory.
    """
    checks.fits_memory(queries=length, keys=length, dim=dim)
    positions = torch.arange(length)
    vectors = sinusoids((positions[:, None] - positions).flatten(), dim)
    return nn.functional.cosine_similarity(vectors, sinusoids(torch.arange(1), dim)).view(length, length)


def shift(scores: Float[Tensor, "batch head query distance"], keys: int) -> Float[Tensor, "batch head query key"]:
    """Convert scores by distance to scores by key, by shifting row i by i columns (Dai et al. 2019, appendix B).

    The columns of `scores` are the distances from `keys - 1` down to `1 - queries`. Each row is padded by one cell, all
    rows are joined, and the result is cut into rows of the old length. This shifts each row by one cell more than the
    row above it, without any arithmetic.

    Raises:
        ValueError: the number of distances is not queries + keys - 1.

    >>> shift(torch.tensor([[[[2, 1, 0, -1], [2, 1, 0, -1]]]]).float(), keys=3)[0, 0].int().tolist()
    [[1, 0, -1], [2, 1, 0]]
    """
    queries, distances = scores.shape[-2:]
    if not torch.compiler.is_compiling() and distances != queries + keys - 1:
        raise ValueError(
            f"there are {distances} distances for {queries} queries and {keys} keys; there must be {queries + keys - 1}"
        )
    line = nn.functional.pad(scores, (0, 1)).flatten(-2)[..., queries - 1 : queries - 1 + queries * distances]
    return line.unflatten(-1, (queries, distances))[..., :keys]
