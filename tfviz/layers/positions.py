"""Position encodings: learned, sinusoidal, rotary, ALiBi and relative.

All encodings are constructed from `(context, dim, heads)` and have the same three methods, so that a model can use any
of them: `forward` acts on embeddings, `rotate` on queries and keys, `bias` on scores. An encoding that does not need a
method inherits one that does nothing.
"""

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.layers import encodings
from tfviz.layers.encodings import alibi, check_length, check_memory, relative, shift, sinusoids
from tfviz.shapes import Float
from tfviz.validation import validated

__all__ = [
    "KINDS", "ALiBi", "AddedPositionEncoding", "Learned", "PositionEncoding", "Relative", "Rotary",
    "Sinusoidal", "alibi", "relative", "shift", "sinusoids",
]  # fmt: skip


class PositionEncoding(nn.Module):
    """Base class of position encodings; itself, it encodes none, so that attention ignores the order."""

    def __init__(self, context: int = 0, dim: int = 0, heads: int = 1):
        super().__init__()

    def forward(self, x: Float[Tensor, "batch position dim"], start: int = 0) -> Float[Tensor, "batch position dim"]:
        """Add encodings of positions `start`, `start + 1`, ... to embeddings."""
        return x

    def rotate(
        self, heads: Float[Tensor, "batch head position dim"], start: int = 0
    ) -> Float[Tensor, "batch head position dim"]:
        """Rotate the queries or keys at positions `start`, `start + 1`, ..."""
        return heads

    def bias(
        self, query: Float[Tensor, "batch head query dim"], key: Float[Tensor, "batch head key dim"]
    ) -> Float[Tensor, "#batch #head query key"] | None:
        """Return the bias to add to the scores, or None; the last query is at the position of the last key."""
        return None


class AddedPositionEncoding(PositionEncoding):
    """Base class of encodings that add a vector for each position to the embedding; subclasses define `table`."""

    def table(self, length: int) -> Float[Tensor, "position dim"]:
        """Return the vectors of the first `length` positions.

        Raises:
            NotImplementedError: the subclass does not define this method.
        """
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "batch position dim"], start: int = 0) -> Float[Tensor, "batch position dim"]:
        """Add the vectors of the positions from `start` on.

        Raises:
            ValueError: `x` and the vectors differ in width, or `start` is negative.
        """
        table = self.table(start + x.shape[-2])
        if start < 0 or x.shape[-1] != table.shape[-1]:
            raise ValueError(f"x is {list(x.shape)} from {start} on; positions are {table.shape[-1]} wide, from 0 on")
        return x + table[start:]


class Learned(AddedPositionEncoding):
    """A learned vector for each of `context` positions (Radford et al. 2018)."""

    def __init__(self, context: int, dim: int, heads: int = 1):
        super().__init__()
        checks.fits_memory(context=context, dim=dim)
        self.vectors = nn.Embedding(context, dim)
        nn.init.normal_(self.vectors.weight, std=0.02)

    def table(self, length: int) -> Float[Tensor, "position dim"]:
        """Return the learned vectors of the first `length` positions.

        Raises:
            ValueError: `length` is negative, or exceeds the learned context.
        """
        check_length(length)
        if length > len(self.vectors.weight):
            raise ValueError(
                f"{length} positions are needed, but only {len(self.vectors.weight)} were learned; "
                "shorten the text or build the model with a longer context"
            )
        return self.vectors.weight[:length]


class Sinusoidal(AddedPositionEncoding):
    """Fixed sinusoidal encodings, defined at any position (Vaswani et al. 2017, section 3.5)."""

    vectors: Tensor

    def __init__(self, context: int, dim: int, heads: int = 1):
        super().__init__()
        checks.at_least(0, context=context)
        check_memory(positions=context, dim=dim)
        self.register_buffer("vectors", encodings.sinusoids(torch.arange(context), dim), persistent=False)

    def table(self, length: int) -> Float[Tensor, "position dim"]:
        """Return the vectors of the first `length` positions; those beyond the context are computed on first use."""
        check_length(length)
        if length > len(self.vectors):
            with torch.inference_mode(False):  # a table that grows in generation must also work in training
                positions = torch.arange(length, device=self.vectors.device)
                self.vectors = encodings.sinusoids(positions, self.vectors.shape[1]).to(self.vectors.dtype)
        return self.vectors[:length]


class Rotary(PositionEncoding):
    """Rotary encoding: queries and keys are rotated by angles proportional to their positions (Su et al. 2021, eq. 34).

    Column `i` of a head is paired with column `i + width / 2`, as in LLaMA. The paper pairs adjacent columns, which
    differs only in the order of the columns. A score then depends on positions only through the distance of two tokens.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, context: int, dim: int, heads: int = 1, base: float = 10_000.0):
        super().__init__()
        checks.at_least(1, dim=dim, heads=heads)
        checks.above(0, base=base)
        if dim % (2 * heads):
            raise ValueError(f"rotary positions pair columns: the width of a head, {dim} / {heads}, must be even")
        self.width, self.base = dim // heads, base
        self._compute(context)

    @torch.inference_mode(False)  # a table that grows in generation must also work in training
    def _compute(self, context: int, device: torch.device | None = None, dtype: torch.dtype | None = None) -> None:
        angles = self.table(context, device)
        self.register_buffer("cos", angles.cos().repeat(1, 2).to(dtype=dtype), persistent=False)
        self.register_buffer("sin", angles.sin().repeat(1, 2).to(dtype=dtype), persistent=False)

    def table(self, length: int, device: torch.device | str | None = None) -> Float[Tensor, "position pair"]:
        """Return the rotation angles in radians, one row per position and one column per pair of a head's columns."""
        check_length(length)
        check_memory(length=length, width=self.width)
        pairs = torch.arange(self.width // 2, device=device)
        return torch.arange(length, device=device)[:, None] / self.base ** (2 * pairs / self.width)

    @validated
    def cosine_by_distance(self, length: int) -> Float[Tensor, "position position"]:
        """Return the cosine similarity of a vector rotated to each two positions, averaged over all vectors."""
        checks.fits_memory(length=length, width=self.width)
        angles = self.table(length)
        return (angles[:, None] - angles[None]).cos().mean(-1)

    def rotate(
        self, heads: Float[Tensor, "batch head position dim"], start: int = 0
    ) -> Float[Tensor, "batch head position dim"]:
        """Rotate the queries or keys at positions `start`, `start + 1`, ...

        Raises:
            ValueError: `start` is negative, or `heads` is not floating-point.
        """
        if start < 0 or not heads.is_floating_point():
            raise ValueError(f"heads are {heads.dtype} {list(heads.shape)} from {start} on; give floats, from 0 on")
        stop = start + heads.shape[2]
        if stop > len(self.cos):
            self._compute(stop, self.cos.device, self.cos.dtype)
        first, second = heads.chunk(2, dim=-1)
        quarter_turn = torch.cat((-second, first), dim=-1)
        return heads * self.cos[start:stop].to(heads.dtype) + quarter_turn * self.sin[start:stop].to(heads.dtype)


def _first_query(query: Tensor, key: Tensor) -> int:
    """Return the position of the first query; the last query is at the position of the last key."""
    start = key.shape[2] - query.shape[2]
    if not torch.compiler.is_compiling() and start < 0:
        raise ValueError(
            f"there are {query.shape[2]} queries and {key.shape[2]} keys; there must be one key for each query"
        )
    return start


class ALiBi(PositionEncoding):
    """Biases that lower the scores linearly with distance, with a fixed slope for each head (Press et al. 2022)."""

    biases: Tensor

    def __init__(self, context: int, dim: int, heads: int = 1):
        super().__init__()
        self.heads = heads
        self.register_buffer("biases", alibi(context, heads), persistent=False)

    def bias(self, query: Tensor, key: Tensor) -> Float[Tensor, "1 head query key"]:
        start, length = _first_query(query, key), key.shape[2]
        if length > self.biases.shape[1]:
            with torch.inference_mode(False):  # a table that grows in generation must also work in training
                self.biases = encodings.alibi(length, self.heads).to(self.biases)
        return self.biases[None, :, start:length, :length]


class Relative(PositionEncoding):
    """Relative positions of Transformer-XL: scores of queries and distances, added as a bias (Dai et al. 2019, 3.3).

    The score of query i and key j has four terms, (a) q_i k_j + (b) q_i r_(i-j) + (c) u k_j + (d) v r_(i-j), with
    r the projected sinusoid of the distance. Attention itself computes (a); the others are the bias.
    """

    def __init__(self, context: int, dim: int, heads: int = 1):
        super().__init__()
        checks.at_least(1, dim=dim, heads=heads)
        checks.divisible_by_heads(dim, heads)
        checks.fits_memory(dim=dim, rows=dim)
        self.project = nn.Linear(dim, dim, bias=False)
        self.content = nn.Parameter(torch.zeros(heads, 1, dim // heads))  # u
        self.distance = nn.Parameter(torch.zeros(heads, 1, dim // heads))  # v

    def bias(self, query: Tensor, key: Tensor) -> Float[Tensor, "batch head query key"]:
        _first_query(query, key)
        queries, keys, (heads, _, width) = query.shape[2], key.shape[2], self.content.shape
        distances = torch.arange(keys - 1, -queries, -1, device=query.device)
        vectors = self.project(encodings.sinusoids(distances, heads * width).to(query.dtype))
        vectors = vectors.unflatten(-1, (heads, width)).permute(1, 2, 0)  # [head, dim, distance]
        by_distance = shift((query + self.distance.to(query.dtype)) @ vectors, keys)  # [batch, head, query, key]
        return (by_distance + self.content.to(key.dtype) @ key.mT) * width**-0.5


KINDS = {
    "none": PositionEncoding,
    "learned": Learned,
    "sinusoidal": Sinusoidal,
    "rotary": Rotary,
    "alibi": ALiBi,
    "relative": Relative,
}
