"""Place boxes in layers, each below all that it comes from, with few crossings (Sugiyama, Tagawa & Toda 1981)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

COLUMN_GAP, LAYER_GAP, MARGIN = 16.0, 26.0, 4.0  # points
PART_GAP = 48.0  # points between parts without a link, drawn side by side
SWEEP_COUNT = 12
SETTLED_POINTS = 0.5  # layout stops once no box moves by more: smaller moves are invisible
BEND_WEIGHT = 6  # weight of the other bends of a long edge, relative to its ends
MAIN_WEIGHT = 200  # weight of the link to the next box of a main line, relative to other links
Point = tuple[float, float]


class Box(NamedTuple):
    """A box, in points."""

    width: float
    height: float


@dataclass(frozen=True)
class Layout:
    """Positions of all boxes and lines, in points from the top left.

    Attributes:
        tops: the middle of the upper edge of each box.
        edges: the points that each edge passes, from a lower edge of a box to an upper one.
    """

    width: float
    height: float
    tops: list[Point]
    edges: list[list[Point]]


def layered_layout(boxes: Sequence[Box], parents: Sequence[Sequence[int]]) -> Layout:
    """Place each box below its parents; a box without parents just above its first child.

    Args:
        boxes: the boxes.
        parents: of each box the indices of those that it comes from, all smaller than its own.
    """
    layer_of = _layers(parents)
    nodes, chains = list(boxes), []
    above: list[list[int]] = [[] for _ in boxes]  # of each node those in the layer above that it is linked to
    for child, its in enumerate(parents):
        for parent in its:
            chain = [parent]
            for layer in range(layer_of[parent] + 1, layer_of[child]):  # a bend in each layer that the edge passes
                nodes.append(Box(6.0, 0.0))
                layer_of.append(layer)
                above.append([chain[-1]])
                chain.append(len(nodes) - 1)
            above[child].append(chain[-1])
            chains.append([*chain, child])
    layers = _in_reading_order(_ordered(layer_of, above), len(boxes))
    x = _columns(layers, nodes, chains, _main_lines(parents))
    left = min(x[node] - box.width / 2 for node, box in enumerate(nodes)) - MARGIN
    right = max(x[node] + box.width / 2 for node, box in enumerate(nodes)) + MARGIN
    heights = [max(nodes[node].height for node in layer) for layer in layers]
    y = [MARGIN + sum(heights[:layer]) + layer * LAYER_GAP for layer in range(len(layers))]
    tops = [(x[node] - left, y[layer]) for node, layer in enumerate(layer_of)]
    edges = []
    for first, *bends, last in chains:
        points = [(tops[first][0], tops[first][1] + nodes[first].height)]
        for bend in bends:
            points += [tops[bend], (tops[bend][0], tops[bend][1] + heights[layer_of[bend]])]
        edges.append([*points, tops[last]])
    return Layout(right - left, y[-1] + heights[-1] + MARGIN, tops[: len(boxes)], edges)


def _layers(parents: Sequence[Sequence[int]]) -> list[int]:
    """Return the layer of each node: one below the lowest parent; a node without parents is just above its children."""
    layers: list[int] = []
    for its in parents:
        layers.append(1 + max((layers[parent] for parent in its), default=-1))
    for node in reversed(range(len(parents))):
        children = [layers[child] for child, its in enumerate(parents) if node in its]
        if not parents[node] and children:
            layers[node] = min(children) - 1
    return layers


def _ordered(layer_of: Sequence[int], above: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the nodes of each layer in an order that keeps them near their neighbours."""
    layers: list[list[int]] = [[] for _ in range(max(layer_of) + 1)]
    for node, layer in enumerate(layer_of):
        layers[layer].append(node)
    below = [[child for child, its in enumerate(above) if node in its] for node in range(len(above))]
    for sweep in range(SWEEP_COUNT):
        links = below if sweep % 2 else above
        for row in reversed(layers) if sweep % 2 else layers:
            share = {node: place / max(1, len(other)) for other in layers for place, node in enumerate(other)}
            row.sort(key=lambda node: fmean([share[other] for other in links[node]] or [share[node]]))
    return layers


def _in_reading_order(layers: list[list[int]], boxes: int) -> list[list[int]]:
    """Return the layers, or their mirror image if that has more boxes in their own order from left to right."""
    pairs = [pair for row in layers for pair in combinations([node for node in row if node < boxes], 2)]
    turned = sum(left > right for left, right in pairs) > len(pairs) / 2
    return [row[::-1] for row in layers] if turned else layers


def _main_lines(parents: Sequence[Sequence[int]]) -> set[tuple[int, int]]:
    """Return the links (parent, child) that are drawn straight down if they can be, at most one from and to each box.

    They join a box to the first of its parents, as a sum to the stream that it adds to, and that parent to the last
    such child. A parent that only this box uses has the lowest priority. Where two parents share an ancestor and
    neither derives from the other (query and key, of scores), no link is straight: the box is centred below the two,
    and the two below their ancestor.
    """
    uses = Counter(parent for its in parents for parent in its)
    ancestors: list[set[int]] = []
    for its in parents:
        ancestors.append(set(its).union(*(ancestors[parent] for parent in its)))
    main: dict[int, int] = {}
    for child, its in enumerate(parents):
        streams = [parent for parent in its if parents[parent] or uses[parent] > 1] or its[:1]
        for first in streams[:1]:
            alike = [
                other for other in streams
                if first not in ancestors[other] | {other} and other not in ancestors[first]
                and ancestors[first] & ancestors[other]
            ]  # fmt: skip
            if not alike and (len(its) > 1 or uses[first] == 1):
                main[first] = child
    return set(main.items())


def _columns(
    layers: list[list[int]], nodes: Sequence[Box], chains: Sequence[Sequence[int]], main: set[tuple[int, int]]
) -> list[float]:
    """Return the x of each node, near the mean of its neighbours, in the order of its layer.

    The bends of a long edge stand, if they can, in one vertical line, and so do the boxes of a main line: these are
    drawn together last, since together they hardly move.
    """
    x = [0.0] * len(nodes)
    for layer in layers:
        _separate(layer, [0.0] * len(layer), [1] * len(layer), nodes, x)
    for straight in (set[tuple[int, int]](), main):
        _settle(layers, nodes, _links(len(nodes), chains, straight), x)
    _join_parts(nodes, chains, x)
    return x


def _join_parts(nodes: Sequence[Box], chains: Sequence[Sequence[int]], x: list[float]) -> None:
    """Move parts that no link joins together: nothing pulls them to each other."""
    part_of = list(range(len(nodes)))
    for chain in chains:
        joined = {part_of[node] for node in chain}
        part_of = [min(joined) if part in joined else part for part in part_of]
    parts = [[node for node, part in enumerate(part_of) if part == name] for name in sorted(set(part_of))]
    end = None
    for part in sorted(parts, key=lambda part: fmean(x[node] for node in part)):
        left = min(x[node] - nodes[node].width / 2 for node in part)
        shift = 0.0 if end is None else end + PART_GAP - left
        for node in part:
            x[node] += shift
        end = max(x[node] + nodes[node].width / 2 for node in part)


def _links(count: int, chains: Sequence[Sequence[int]], main: set[tuple[int, int]]) -> list[list[int]]:
    """Return the neighbours of each node; one whose link has weight w occurs w times."""
    linked: list[list[int]] = [[] for _ in range(count)]
    for first, *bends, last in chains:
        weight = MAIN_WEIGHT if (first, last) in main else 1
        linked[first] += weight * [last if weight > 1 else bends[0] if bends else last]
        linked[last] += weight * [first if weight > 1 else bends[-1] if bends else first]
        for bend in bends:
            linked[bend] = [*(weight * [first, last]), *(BEND_WEIGHT * bends)]
    return linked


def _settle(layers: list[list[int]], nodes: Sequence[Box], linked: Sequence[Sequence[int]], x: list[float]) -> None:
    """Move each node to the mean of its neighbours, layer by layer, until none moves any more."""
    for _ in range(10 * SWEEP_COUNT):
        before = x.copy()
        for layer in (*reversed(layers), *layers):
            wanted = [fmean([x[other] for other in linked[node]] or [x[node]]) for node in layer]
            _separate(layer, wanted, [max(1, len(linked[node])) for node in layer], nodes, x)
        if max(abs(new - old) for new, old in zip(x, before)) < SETTLED_POINTS:
            break


def _separate(
    layer: Sequence[int], wanted: Sequence[float], weights: Sequence[int], nodes: Sequence[Box], x: list[float]
) -> None:
    """Set the x of a layer's nodes as near to the targets as order and gaps allow, by weighted least squares.

    Minus the widths to its left, each x must be nondecreasing: solve by isotonic regression, pooling adjacent violators
    (Barlow et al. 1972).
    """
    offsets, used = [], 0.0
    for node in layer:
        offsets.append(used + nodes[node].width / 2)
        used += nodes[node].width + COLUMN_GAP
    pools: list[tuple[list[int], float, int]] = []  # places in the layer, the mean that they want, their weight
    for place, offset in enumerate(offsets):
        pool, mean, weight = [place], wanted[place] - offset, weights[place]
        while pools and pools[-1][1] > mean:
            others, its, more = pools.pop()
            mean = (mean * weight + its * more) / (weight + more)
            pool, weight = [*others, *pool], weight + more
        pools.append((pool, mean, weight))
    for pool, mean, _ in pools:
        for place in pool:
            x[layer[place]] = mean + offsets[place]
