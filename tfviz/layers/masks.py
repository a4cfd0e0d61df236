"""Masks as predicates: which key may a query look at?

A mask is a function of four indices, `(batch, head, query, key) -> bool`, True where the query MAY look. Written
so, masks compose with `&`, `|` and `~`, become a dense tensor of any size, explain themselves cell by cell, and
serve as FlexAttention's `mask_mod` as they are.
"""

from functools import partial

from torch import Tensor

from tfviz.bounds import at_least, between
from tfviz.layers.predicates import Mask, PerHead
from tfviz.shapes import Bool, Int

__all__ = [
    "Mask",
    "causal",
    "documents",
    "every",
    "everything",
    "fixed",
    "graph",
    "padding",
    "per_head",
    "prefix",
    "strided",
    "window",
]


class Standing(Mask):
    """A mask with a name in this module, which is the same one wherever it is copied or loaded."""

    def __reduce__(self) -> str:
        return self.name


def _everything(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return (query >= 0) & (key >= 0)


def _causal(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return key <= query


everything = Standing(_everything, "everything")
causal = Standing(_causal, "causal")


def padding(lengths: Int[Tensor, "batch"]) -> Mask:
    """Only the first `lengths[batch]` keys are words; the rest is padding."""
    _lengths(lengths)
    return Mask(partial(_before, lengths), "padding")


def _before(lengths: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return key < lengths[batch]


def window(size: int) -> Mask:
    """Keys fewer than `size` positions away, to either side."""
    at_least(1, size=size)
    return Mask(partial(_near, size), f"window({size})")


def _near(size: int, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return (query - key).abs() < size


def every(stride: int) -> Mask:
    """Keys a multiple of `stride` positions away."""
    at_least(1, stride=stride)
    return Mask(partial(_every, stride), f"every({stride})")


def _every(stride: int, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return (query - key) % stride == 0


def strided(stride: int) -> Mask:
    """The last `stride` positions and every `stride`-th before them (Child et al. 2019, section 4.3, strided)."""
    at_least(1, stride=stride)
    return causal & (window(stride) | every(stride))


def fixed(stride: int, summary: int = 1) -> Mask:
    """The own block of `stride` and the last `summary` cells of each block (Child et al. 2019, section 4.3, fixed)."""
    at_least(1, stride=stride)
    between(1, stride, summary=summary)
    block = Mask(partial(_block, stride), f"block({stride})")
    return causal & (block | Mask(partial(_ends, stride, summary), f"summary({summary})"))


def _block(stride: int, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return query // stride == key // stride


def _ends(stride: int, summary: int, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return key % stride >= stride - summary


def prefix(lengths: Int[Tensor, "batch"]) -> Mask:
    """The first `lengths[batch]` keys are open to all, the rest causally (Raffel et al. 2020, figure 3)."""
    _lengths(lengths)
    return causal | Mask(partial(_before, lengths), "prefix")


def documents(ids: Int[Tensor, "batch position"]) -> Mask:
    """Only keys of the query's own document, where several are packed into one row."""
    _axes(ids, 2, "ids", "batch position")
    return Mask(partial(_together, ids), "documents")


def _together(ids: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return ids[batch, query] == ids[batch, key]


def graph(edges: Bool[Tensor, "batch node node"]) -> Mask:
    """Only neighbours: node `query` may look at node `key` where `edges[batch, query, key]` (Velickovic et al. 2018).

    A node sees itself only where the edges say so; one without edges looks nowhere.
    """
    _axes(edges, 3, "edges", "batch node node")
    return Mask(partial(_linked, edges != 0), "graph")  # a matrix of numbers would be added to the scores


def _linked(edges: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return edges[batch, query, key]


def per_head(*masks: Mask) -> Mask:
    """Head h obeys `masks[h % len(masks)]`: the heads share a pattern out (Child et al. 2019, section 5.1).

    >>> per_head(window(1), causal).dense(2, 2, heads=2)[0].int().tolist()
    [[[1, 0], [0, 1]], [[1, 0], [1, 1]]]
    """
    if not masks:
        raise ValueError("per_head needs at least one mask, such as per_head(causal, window(3))")
    return PerHead(masks) if len(masks) > 1 else masks[0]


def _lengths(lengths: Tensor) -> None:
    _axes(lengths, 1, "lengths", "batch")
    if lengths.device.type == "cpu" and lengths.numel():  # another device would have to be waited for
        at_least(0, lengths=lengths.min().item())


def _axes(table: Tensor, count: int, name: str, axes: str) -> None:
    if table.dim() != count:
        raise ValueError(f"{name} is {list(table.shape)}; it must have {count} axes: {axes}")
