"""Where a word stands: positions that are added to the embeddings, that turn queries and keys, or that bias scores.

Every kind is built from `(context, dim, heads)` and offers the same three places to act, so that a model takes any
of them as a part: calling it acts on embeddings, `rotate` on queries and keys, `bias` on scores. Each does nothing in
the places it has no use for.
"""

import torch
from torch import Tensor, nn

from tfviz import bounds
from tfviz.doors import door
from tfviz.layers import encodings, sizes
from tfviz.layers.encodings import alibi, relative, shift, sinusoids
from tfviz.shapes import Float

__all__ = [
    "KINDS",
    "ALiBi",
    "Learned",
    "Positions",
    "Relative",
    "Rotary",
    "Sinusoidal",
    "alibi",
    "relative",
    "shift",
    "sinusoids",
]


class Positions(nn.Module):
    """No positions at all, and the base of those that follow: a set, not a sequence."""

    def __init__(self, context: int = 0, dim: int = 0, heads: int = 1):
        super().__init__()

    def forward(self, x: Float[Tensor, "batch position dim"], start: int = 0) -> Float[Tensor, "batch position dim"]:
        """Add positions `start`, `start + 1`, ... to embeddings."""
        return x

    def rotate(self, heads: Float[Tensor, "batch head position dim"], start: int = 0) -> Tensor:
        """Turn the queries or keys that stand at positions `start`, `start + 1`, ..."""
        return heads

    def bias(
        self, query: Float[Tensor, "batch head query dim"], key: Float[Tensor, "batch head key dim"]
    ) -> Float[Tensor, "#batch #head query key"] | None:
        """What is added to the scores. The queries are the last of the positions that the keys stand at."""
        return None


class Learned(Positions):
    """A trained vector for each of `context` positions (Radford et al. 2018)."""

    def __init__(self, context: int, dim: int, heads: int = 1):
        super().__init__()
        bounds.affordable(context=context, dim=dim)
        self.vectors = nn.Embedding(context, dim)
        nn.init.normal_(self.vectors.weight, std=0.02)

    def forward(self, x: Float[Tensor, "batch position dim"], start: int = 0) -> Float[Tensor, "batch position dim"]:
        sizes.embedded(self.vectors.embedding_dim, x, start)
        return x + self.table(start + x.shape[1])[start:]

    def table(self, length: int) -> Float[Tensor, "position dim"]:
        """The first `length` vectors."""
        encodings.check(length)
        if length > len(self.vectors.weight):
            raise ValueError(
                f"{length} positions asked for, {len(self.vectors.weight)} were learned; "
                "shorten the text or build the model with a longer context"
            )
        return self.vectors.weight[:length]


class Sinusoidal(Positions):
    """Fixed sines and cosines, defined at any position (Vaswani et al. 2017, section 3.5)."""

    kept: Tensor

    def __init__(self, context: int, dim: int, heads: int = 1):
        super().__init__()
        bounds.at_least(0, context=context)
        bounds.affordable(context=max(1, context), dim=dim)
        self.register_buffer("kept", sinusoids(torch.arange(context), dim), persistent=False)

    def forward(self, x: Float[Tensor, "batch position dim"], start: int = 0) -> Float[Tensor, "batch position dim"]:
        sizes.embedded(self.kept.shape[1], x, start)
        return x + self.table(start + x.shape[1])[start:]

    def table(self, length: int) -> Float[Tensor, "position dim"]:
        """The first `length` rows; beyond the context they are computed when first asked for."""
        encodings.check(length)
        if length > len(self.kept):
            if length > encodings.LARGE:
                bounds.affordable(length=length, dim=self.kept.shape[1])
            with torch.inference_mode(False):  # what is kept while generating must serve in training, too
                self.kept = encodings.sines(torch.arange(length, device=self.kept.device), self.kept.shape[1])
        return self.kept[:length]


class Rotary(Positions):
    """Each query and key turned by an angle that grows with its position (Su et al. 2021, equation 34).

    Column `i` of a head is paired with column `i + width / 2`, as in LLaMA; the paper pairs neighbours, which is the
    same up to the order of the columns. A score then depends on how far apart two words are, not on where they are.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, context: int, dim: int, heads: int = 1, base: float = 10_000.0):
        super().__init__()
        bounds.at_least(1, dim=dim, heads=heads)
        bounds.above(0, base=base)
        bounds.at_least(0, context=context)
        bounds.affordable(context=max(1, context), dim=dim)
        if dim % (2 * heads):
            raise ValueError(f"rotary positions pair columns: the width of a head, {dim} / {heads}, must be even")
        self.width, self.base = dim // heads, base
        self._keep(context, None)

    @torch.inference_mode(False)  # what is kept while generating must serve in training, too
    def _keep(self, context: int, device: torch.device | None) -> None:
        angles = self.table(context, device)
        self.register_buffer("cos", angles.cos().repeat(1, 2), persistent=False)
        self.register_buffer("sin", angles.sin().repeat(1, 2), persistent=False)

    def table(self, length: int, device: torch.device | str | None = None) -> Float[Tensor, "position pair"]:
        """The angles in radians, one column for each pair of a head's columns."""
        encodings.check(length)
        if isinstance(device, str):
            bounds.device(device=device)
        if length > encodings.LARGE:
            bounds.affordable(length=length, width=self.width)
        pairs = torch.arange(self.width // 2, device=device)
        return torch.arange(length, device=device)[:, None] / self.base ** (2 * pairs / self.width)

    @door
    def agreement(self, length: int) -> Float[Tensor, "position position"]:
        """The cosine of a vector turned at one position and itself turned at another, mean over all vectors."""
        bounds.affordable(length=length, width=self.width)
        angles = self.table(length)
        return (angles[:, None] - angles[None]).cos().mean(-1)

    def rotate(self, heads: Float[Tensor, "batch head position dim"], start: int = 0) -> Tensor:
        sizes.heads(self.width, None, heads, "rotary", start)
        stop = start + heads.shape[2]
        if stop > len(self.cos):
            self._keep(stop, self.cos.device)
        first, second = heads.chunk(2, dim=-1)
        turned = torch.cat((-second, first), dim=-1)
        return heads * self.cos[start:stop].to(heads.dtype) + turned * self.sin[start:stop].to(heads.dtype)


class ALiBi(Positions):
    """Scores that fall with the distance, at a slope for each head; nothing is learned (Press et al. 2022)."""

    kept: Tensor

    def __init__(self, context: int, dim: int, heads: int = 1):
        super().__init__()
        self.heads = heads
        self.register_buffer("kept", alibi(context, heads), persistent=False)

    def bias(self, query: Tensor, key: Tensor) -> Float[Tensor, "1 head query key"]:
        sizes.heads(None, self.heads, query, "ALiBi", key.shape[2] - query.shape[2])
        length = key.shape[2]
        if length > self.kept.shape[1]:
            with torch.inference_mode(False):  # what is kept while generating must serve in training, too
                self.kept = encodings.slopes(length, self.heads).to(self.kept)
        return self.kept[None, :, length - query.shape[2] : length, :length]


class Relative(Positions):
    """Distances as sinusoids that queries look for, and two learned biases (Dai et al. 2019, section 3.3).

    The score of query i and key j has four terms, (a) q_i k_j + (b) q_i r_(i-j) + (c) u k_j + (d) v r_(i-j), with
    r the projected sinusoid of the distance. Attention itself computes (a); the others are the bias.
    """

    def __init__(self, context: int, dim: int, heads: int = 1):
        super().__init__()
        bounds.at_least(1, dim=dim, heads=heads)
        if dim % heads:
            raise ValueError(f"width {dim} is not divisible by {heads} heads; take dim={dim // heads * heads or heads}")
        bounds.affordable(dim=dim, rows=dim)
        self.project = nn.Linear(dim, dim, bias=False)
        self.content = nn.Parameter(torch.zeros(heads, 1, dim // heads))  # u
        self.distance = nn.Parameter(torch.zeros(heads, 1, dim // heads))  # v

    def bias(self, query: Tensor, key: Tensor) -> Float[Tensor, "batch head query key"]:
        queries, keys, (heads, _, width) = query.shape[2], key.shape[2], self.content.shape
        sizes.heads(width, heads, query, "relative", keys - queries)
        distances = torch.arange(keys - 1, -queries, -1, device=query.device)
        vectors = self.project(encodings.sines(distances, heads * width).to(query.dtype))
        vectors = vectors.unflatten(-1, (heads, width)).permute(1, 2, 0)  # head dim distance
        by_distance = shift((query + self.distance.to(query.dtype)) @ vectors, keys)
        return (by_distance + self.content.to(key.dtype) @ key.mT) * width**-0.5


KINDS = {
    "none": Positions,
    "learned": Learned,
    "sinusoidal": Sinusoidal,
    "rotary": Rotary,
    "alibi": ALiBi,
    "relative": Relative,
}
