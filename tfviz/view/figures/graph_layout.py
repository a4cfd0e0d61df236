"""Layered layout of directed acyclic graphs: parents above children, few crossings (Sugiyama, Tagawa & Toda 1981)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

COLUMN_GAP, LAYER_GAP, MARGIN = 16.0, 26.0, 4.0  # points
PORT_GAP = 14.0  # points between the ends of edges at one side of a box
VERTICAL_POINTS = 8.0  # a piece of an edge that leans no further is made vertical
BEND_WIDTH = 6.0  # points that an edge takes where it passes a layer
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


class Edge(NamedTuple):
    """An edge from parent to child, by the indices of its nodes.

    Attributes:
        parent: the box where it begins.
        bends: a node in each layer that it passes, from above.
        child: the box where it ends.
    """

    parent: int
    bends: list[int]
    child: int


@dataclass(frozen=True)
class LayeredGraph:
    """A graph whose edges join neighbouring layers, since long edges bend at a node in each layer that they pass.

    Attributes:
        nodes: the sizes of all nodes, first the boxes, then the bends.
        layer_of: the layer of each node.
        above: the neighbours of each node in the layer above.
        edges: all edges.
    """

    nodes: list[Box]
    layer_of: list[int]
    above: list[list[int]]
    edges: list[Edge]

    @classmethod
    def from_parents(cls, boxes: Sequence[Box], parents: Sequence[Sequence[int]]) -> LayeredGraph:
        """Return the graph of boxes whose parents are given, with bends in its long edges."""
        graph = cls(list(boxes), _layers(parents), [[] for _ in boxes], [])
        for child, node_parents in enumerate(parents):
            for parent in node_parents:
                graph._add_edge(parent, child)
        return graph

    def _add_edge(self, parent: int, child: int) -> None:
        bends: list[int] = []
        for layer in range(self.layer_of[parent] + 1, self.layer_of[child]):
            self.above.append([bends[-1] if bends else parent])
            self.layer_of.append(layer)
            self.nodes.append(Box(BEND_WIDTH, 0.0))
            bends.append(len(self.nodes) - 1)
        self.above[child].append(bends[-1] if bends else parent)
        self.edges.append(Edge(parent, bends, child))


def layered_layout(boxes: Sequence[Box], parents: Sequence[Sequence[int]]) -> GraphLayout:
    """Return a layout with each box below its parents; a box without parents is one layer above its first child.

    The steps are those of Sugiyama: layers, bends in long edges, the order within each layer, and coordinates.

    Args:
        boxes: the sizes of the boxes.
        parents: for each box, the indices of its parents, which are smaller than its own index.
    """
    graph = LayeredGraph.from_parents(boxes, parents)
    layers = _in_reading_order(_ordered(graph.layer_of, graph.above), len(boxes))
    x = _columns(layers, graph.nodes, graph.edges, _main_links(parents))
    return _placed(graph, layers, x, len(boxes))


def _placed(graph: LayeredGraph, layers: Sequence[Sequence[int]], x: Sequence[float], boxes: int) -> GraphLayout:
    """Return the layout of a graph whose first nodes are the boxes, from its layers and x-coordinates."""
    left = min(middle - node.width / 2 for middle, node in zip(x, graph.nodes)) - MARGIN
    right = max(middle + node.width / 2 for middle, node in zip(x, graph.nodes)) + MARGIN
    heights = [max(graph.nodes[node].height for node in layer) for layer in layers]
    y = [MARGIN + sum(heights[:layer]) + layer * LAYER_GAP for layer in range(len(layers))]
    tops = [(middle - left, y[layer]) for middle, layer in zip(x, graph.layer_of)]

    def points(edge: Edge) -> list[Point]:
        start_x, start_y = tops[edge.parent]
        passed = [
            point
            for bend in edge.bends
            for point in (tops[bend], (tops[bend][0], tops[bend][1] + heights[graph.layer_of[bend]]))
        ]
        return [(start_x, start_y + graph.nodes[edge.parent].height), *passed, tops[edge.child]]

    height = y[-1] + heights[-1] + MARGIN
    lines = _with_ports([points(edge) for edge in graph.edges], graph.edges, graph.nodes[:boxes])
    return GraphLayout(right - left, height, tops[:boxes], lines)


def _with_ports(lines: Sequence[list[Point]], edges: Sequence[Edge], boxes: Sequence[Box]) -> list[list[Point]]:
    """Return the edges' points with nearly vertical pieces made vertical, and with ends side by side at each box.

    At the lower side of its parent and the upper side of its child, a vertical edge keeps its end, and those that
    come from the left or go to the left end to the left of it, the furthest outermost; likewise at the right.

    Args:
        lines: the points of each edge.
        edges: the edges.
        boxes: the sizes of the boxes.
    """
    moved = [list(line) for line in lines]
    for end, beside, boxes_of in ((0, 1, [edge.parent for edge in edges]), (-1, -2, [edge.child for edge in edges])):
        for box, size in enumerate(boxes):
            leans = {at: lines[at][beside][0] - lines[at][end][0] for at, of in enumerate(boxes_of) if of == box}
            for at, shift in _port_shifts(leans, size.width).items():
                x, y = lines[at][end]
                moved[at][end] = (x + shift, y)
    for line in moved:
        for at in range(1, len(line)):
            if abs(line[at][0] - line[at - 1][0]) <= VERTICAL_POINTS:
                line[at] = (line[at - 1][0], line[at][1])
    return moved


def _port_shifts(leans: Mapping[int, float], width: float) -> dict[int, float]:
    """Return how far to move the end of each leaning edge from the middle of its box, in points.

    Args:
        leans: for each edge at this side of the box, how far it goes to the right, negative to the left.
        width: of the box.
    """
    leaning = {at: lean for at, lean in leans.items() if abs(lean) > VERTICAL_POINTS}
    if len(leans) == 1:
        return {}  # the only edge ends in the middle
    shifts = {}
    for sign in (-1, 1):
        group = sorted((abs(lean), at) for at, lean in leaning.items() if lean * sign > 0)
        gap = min(PORT_GAP, (width / 2 - 8) / max(1, len(group)))
        shifts.update({at: sign * gap * rank for rank, (_, at) in enumerate(group, 1)})
    return shifts


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

    def are_parallel(parent: int, other: int) -> bool:
        descends = parent in ancestors[other] or other in ancestors[parent]
        return parent != other and not descends and bool(ancestors[parent] & ancestors[other])

    child_of: dict[int, int] = {}
    for child, node_parents in enumerate(parents):
        streams = [parent for parent in node_parents if parents[parent] or uses[parent] > 1] or node_parents[:1]
        has_parallel_parents = any(are_parallel(streams[0], other) for other in streams[1:])
        is_own_line = len(node_parents) > 1 or all(uses[parent] == 1 for parent in node_parents)
        if streams and is_own_line and not has_parallel_parents:
            child_of[streams[0]] = child
    return set(child_of.items())


def _columns(
    layers: list[list[int]], nodes: Sequence[Box], edges: Sequence[Edge], main: set[tuple[int, int]]
) -> list[float]:
    """Return the x-coordinate of each node: near the mean of its neighbours, in the order of its layer.

    The bends of a long edge are aligned vertically if possible, and so are boxes joined by main links. Main links are
    applied in a second pass, because boxes that they join hardly move any more; links nearly vertical then become so.
    """
    x = [0.0] * len(nodes)
    for layer in layers:
        _separate(layer, [0.0] * len(layer), [1] * len(layer), nodes, x)
    for straight in (set[tuple[int, int]](), main):
        _settle(layers, nodes, _links(len(nodes), edges, straight), x)
    _straighten(_vertical_groups(edges, main), layers, nodes, x)
    _join_parts(nodes, edges, x)
    return x


def _vertical_groups(edges: Sequence[Edge], main: set[tuple[int, int]]) -> list[list[int]]:
    """Return the groups of nodes to align vertically: those that main links join, and the bends of each other edge."""
    groups: list[set[int]] = []
    for parent, bends, child in edges:
        group = {parent, *bends, child} if (parent, child) in main else set(bends)
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


def _join_parts(nodes: Sequence[Box], edges: Sequence[Edge], x: list[float]) -> None:
    """Move unconnected parts of the graph next to each other, by changing `x`."""
    part_of = list(range(len(nodes)))
    for edge in edges:
        joined = {part_of[node] for node in (edge.parent, *edge.bends, edge.child)}
        part_of = [min(joined) if part in joined else part for part in part_of]
    parts = [[node for node, part in enumerate(part_of) if part == name] for name in sorted(set(part_of))]
    end = None
    for part in sorted(parts, key=lambda part: fmean(x[node] for node in part)):
        left = min(x[node] - nodes[node].width / 2 for node in part)
        shift = 0.0 if end is None else end + PART_GAP - left
        for node in part:
            x[node] += shift
        end = max(x[node] + nodes[node].width / 2 for node in part)


def _links(count: int, edges: Sequence[Edge], main: set[tuple[int, int]]) -> list[list[int]]:
    """Return the neighbours of each node; a neighbour whose link has weight w occurs w times."""
    linked: list[list[int]] = [[] for _ in range(count)]
    for first, bends, last in edges:
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
