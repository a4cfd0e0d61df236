"""Layered layout of directed acyclic graphs: parents above children, few crossings (Sugiyama, Tagawa & Toda 1981)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

COLUMN_GAP, LAYER_GAP, MARGIN = 16.0, 26.0, 4.0  # points
PORT_GAP = 14.0  # points between the ends of edges at one side of a box
VERTICAL_POINTS = 8.0  # a piece of an edge that leans no further is made vertical
PART_GAP = 48.0  # points between unconnected parts, drawn side by side
SWEEP_COUNT = 12
SETTLED_POINTS = 0.5  # the layout stops when no box moves further, since smaller moves are invisible
BEND_WEIGHT = 6  # weight of the other bends of a long edge, relative to its ends
MAIN_WEIGHT = 200  # weight of a main link (see `_main_links`), relative to other links
SNAP_POINTS = 14.0  # columns nearer than this to each other are aligned
Point = tuple[float, float]


class Box(NamedTuple):
    """The size of a box, in points."""

    width: float
    height: float


@dataclass(frozen=True)
class GraphLayout:
    """Positions (x, y) of all boxes and edges, in points from the top left corner.

    Attributes:
        width: the width of the drawing.
        height: the height of the drawing.
        tops: the middle of each box's upper side.
        edges: the points of each edge, from the lower side of the parent to the upper side of the child.
    """

    width: float
    height: float
    tops: list[Point]
    edges: list[list[Point]]


def layered_layout(boxes: Sequence[Box], parents: Sequence[Sequence[int]]) -> GraphLayout:
    """Return a layout with each box below its parents; a box without parents is one layer above its first child.

    Args:
        boxes: the sizes of the boxes.
        parents: for each box, the indices of its parents, which are smaller than its own index.
    """
    layer_of = _layers(parents)
    nodes, chains = list(boxes), []
    above: list[list[int]] = [[] for _ in boxes]  # for each node, its neighbours in the layer above
    for child, node_parents in enumerate(parents):
        for parent in node_parents:
            chain = [parent]
            for layer in range(layer_of[parent] + 1, layer_of[child]):  # a bend in each layer that the edge passes
                nodes.append(Box(6.0, 0.0))
                layer_of.append(layer)
                above.append([chain[-1]])
                chain.append(len(nodes) - 1)
            above[child].append(chain[-1])
            chains.append([*chain, child])
    layers = _in_reading_order(_ordered(layer_of, above), len(boxes))
    x = _columns(layers, nodes, chains, _main_links(parents))
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
    edges = _with_ports(edges, [(first, last) for first, *_, last in chains], boxes)
    return GraphLayout(right - left, y[-1] + heights[-1] + MARGIN, tops[: len(boxes)], edges)


def _with_ports(
    edges: Sequence[list[Point]], ends: Sequence[tuple[int, int]], boxes: Sequence[Box]
) -> list[list[Point]]:
    """Return the edges with nearly vertical pieces made vertical, and with places of their own at each box.

    At the lower side of its parent and the upper side of its child, a vertical edge keeps its place, and those that
    come from the left or go to the left are to the left of it, the furthest outermost; likewise at the right.

    Args:
        edges: the points of each edge.
        ends: the parent and the child of each edge.
        boxes: the sizes of the boxes.
    """
    moved = [list(edge) for edge in edges]
    for side, (end, beside) in enumerate(((0, 1), (-1, -2))):  # where edges leave a box, where they enter one
        for box in range(len(boxes)):
            leaning = [
                (edges[at][beside][0] - edges[at][end][0], at)
                for at, pair in enumerate(ends)
                if pair[side] == box and abs(edges[at][beside][0] - edges[at][end][0]) > VERTICAL_POINTS
            ]
            straight = sum(pair[side] == box for pair in ends) > len(leaning)
            for sign in (-1, 1):
                group = sorted((abs(lean), at) for lean, at in leaning if lean * sign > 0)
                alone = not straight and len(group) == len(leaning) == 1
                gap = min(PORT_GAP, (boxes[box].width / 2 - 8) / max(1, len(group)))
                for place, (_, at) in enumerate(group, 0 if alone else 1):
                    x, y = edges[at][end]
                    moved[at][end] = (x + sign * gap * place, y)
    for edge in moved:
        for at in range(1, len(edge)):
            if abs(edge[at][0] - edge[at - 1][0]) <= VERTICAL_POINTS:
                edge[at] = (edge[at - 1][0], edge[at][1])
    return moved


def _layers(parents: Sequence[Sequence[int]]) -> list[int]:
    """Return each node's layer: one below its lowest parent; without parents, one above its highest child."""
    layers: list[int] = []
    for node_parents in parents:
        layers.append(1 + max((layers[parent] for parent in node_parents), default=-1))
    for node in reversed(range(len(parents))):
        children = [layers[child] for child, node_parents in enumerate(parents) if node in node_parents]
        if not parents[node] and children:
            layers[node] = min(children) - 1
    return layers


def _ordered(layer_of: Sequence[int], above: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the nodes of each layer, sorted by the mean relative positions of their neighbours to reduce crossings."""
    layers: list[list[int]] = [[] for _ in range(max(layer_of) + 1)]
    for node, layer in enumerate(layer_of):
        layers[layer].append(node)
    below = [[child for child, node_parents in enumerate(above) if node in node_parents] for node in range(len(above))]
    for sweep in range(SWEEP_COUNT):
        links = below if sweep % 2 else above
        for row in reversed(layers) if sweep % 2 else layers:
            share = {node: index / max(1, len(other)) for other in layers for index, node in enumerate(other)}
            row.sort(key=lambda node: fmean([share[other] for other in links[node]] or [share[node]]))
    return layers


def _in_reading_order(layers: list[list[int]], boxes: int) -> list[list[int]]:
    """Return the layers, or their mirror image if it has more pairs of boxes in index order from left to right."""
    pairs = [pair for row in layers for pair in combinations([node for node in row if node < boxes], 2)]
    turned = sum(left > right for left, right in pairs) > len(pairs) / 2
    return [row[::-1] for row in layers] if turned else layers


def _main_links(parents: Sequence[Sequence[int]]) -> set[tuple[int, int]]:
    """Return the main links (parent, child), drawn vertically if possible; at most one from and one to each box.

    A main link joins a box to the first of its parents, as a sum to the residual stream that it adds to. Inputs that
    only this box uses are considered last. If several children qualify, the last one has the link. A box with a single
    parent has a main link only if no other box uses that parent. If the first parent and another one share an ancestor,
    and neither descends from the other (such as the query and the key of scores), there is no main link: the box is
    centred below its parents.
    """
    uses = Counter(parent for node_parents in parents for parent in node_parents)
    ancestors: list[set[int]] = []
    for node_parents in parents:
        ancestors.append(set(node_parents).union(*(ancestors[parent] for parent in node_parents)))
    main: dict[int, int] = {}
    for child, node_parents in enumerate(parents):
        streams = [parent for parent in node_parents if parents[parent] or uses[parent] > 1] or node_parents[:1]
        for first in streams[:1]:
            alike = [
                other for other in streams
                if first not in ancestors[other] | {other} and other not in ancestors[first]
                and ancestors[first] & ancestors[other]
            ]  # fmt: skip
            if not alike and (len(node_parents) > 1 or uses[first] == 1):
                main[first] = child
    return set(main.items())


def _columns(
    layers: list[list[int]], nodes: Sequence[Box], chains: Sequence[Sequence[int]], main: set[tuple[int, int]]
) -> list[float]:
    """Return the x-coordinate of each node: near the mean of its neighbours, in the order of its layer.

    The bends of a long edge are aligned vertically if possible, and so are boxes joined by main links. Main links are
    applied in a second pass, because boxes that they join hardly move any more; links nearly vertical then become so.
    """
    x = [0.0] * len(nodes)
    for layer in layers:
        _separate(layer, [0.0] * len(layer), [1] * len(layer), nodes, x)
    for straight in (set[tuple[int, int]](), main):
        _settle(layers, nodes, _links(len(nodes), chains, straight), x)
    _straighten(_vertical_groups(chains, main), layers, nodes, x)
    _join_parts(nodes, chains, x)
    return x


def _vertical_groups(chains: Sequence[Sequence[int]], main: set[tuple[int, int]]) -> list[list[int]]:
    """Return the groups of nodes to align vertically: those that main links join, and the bends of each other edge."""
    groups: list[set[int]] = []
    for chain in chains:
        group = set(chain if (chain[0], chain[-1]) in main else chain[1:-1])
        joined = [other for other in groups if other & group]
        groups = [other for other in groups if not other & group] + [group.union(*joined)]
    return [sorted(group) for group in sorted(groups, key=len, reverse=True) if len(group) > 1]


def _straighten(
    groups: Sequence[Sequence[int]], layers: Sequence[Sequence[int]], nodes: Sequence[Box], x: list[float]
) -> None:
    """Give the nodes of each group one x-coordinate, where their neighbours leave room; changes `x`.

    The coordinate is that of an earlier group if one is near, else the mean of the group's.
    """
    beside = {node: at for layer in layers for node, at in zip(layer, zip([None, *layer], [*layer[1:], None]))}
    columns: list[float] = []
    for group in groups:
        lows, highs = [float("-inf")], [float("inf")]
        for node in group:
            left, right = beside[node]
            room = nodes[node].width / 2 + COLUMN_GAP
            lows += [] if left is None else [x[left] + nodes[left].width / 2 + room]
            highs += [] if right is None else [x[right] - nodes[right].width / 2 - room]
        low, high, mean = max(lows), min(highs), fmean(x[node] for node in group)
        if low > high:
            continue
        near = [column for column in columns if abs(column - mean) < SNAP_POINTS and low <= column <= high]
        column = near[0] if near else min(max(mean, low), high)
        columns.append(column)
        for node in group:
            x[node] = column


def _join_parts(nodes: Sequence[Box], chains: Sequence[Sequence[int]], x: list[float]) -> None:
    """Move unconnected parts of the graph next to each other, by changing `x`."""
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
    """Return the neighbours of each node; a neighbour whose link has weight w occurs w times."""
    linked: list[list[int]] = [[] for _ in range(count)]
    for first, *bends, last in chains:
        weight = MAIN_WEIGHT if (first, last) in main else 1
        linked[first] += weight * [last if weight > 1 else bends[0] if bends else last]
        linked[last] += weight * [first if weight > 1 else bends[-1] if bends else first]
        for bend in bends:
            linked[bend] = [*(weight * [first, last]), *(BEND_WEIGHT * bends)]
    return linked


def _settle(layers: list[list[int]], nodes: Sequence[Box], linked: Sequence[Sequence[int]], x: list[float]) -> None:
    """Move each node to the mean of its neighbours, layer by layer, until all nodes are settled; changes `x`."""
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
    """Set the x-coordinates of a layer's nodes near their targets by weighted least squares, keeping order and gaps.

    Minus the widths to their left, the coordinates must be nondecreasing. This is isotonic regression, solved by
    pooling adjacent violators (Barlow et al. 1972).

    Args:
        layer: the nodes, from left to right.
        wanted: the target of each node.
        weights: the weight of each node.
        nodes: the sizes of all nodes.
        x: the coordinates of all nodes, changed in place.
    """
    offsets, used = [], 0.0
    for node in layer:
        offsets.append(used + nodes[node].width / 2)
        used += nodes[node].width + COLUMN_GAP
    pools: list[tuple[list[int], float, int]] = []  # indices in the layer, mean of their targets, sum of their weights
    for index, offset in enumerate(offsets):
        pool, mean, weight = [index], wanted[index] - offset, weights[index]
        while pools and pools[-1][1] > mean:
            pool_before, mean_before, weight_before = pools.pop()
            mean = (mean * weight + mean_before * weight_before) / (weight + weight_before)
            pool, weight = [*pool_before, *pool], weight + weight_before
        pools.append((pool, mean, weight))
    for pool, mean, _ in pools:
        for index in pool:
            x[layer[index]] = mean + offsets[index]
