"""Boxes in layers, each below all that it comes from, with few crossings (Sugiyama, Tagawa & Toda 1981)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

GAP, BETWEEN = 16.0, 26.0  # points between boxes side by side, and between layers
SWEEPS = 12
SETTLED = 0.5  # points: a box that moves by less is not seen to move
STRAIGHT = 6  # times as much as its ends count the other places that a long link passes
Point = tuple[float, float]


class Box(NamedTuple):
    """In points."""

    width: float
    height: float


@dataclass(frozen=True)
class Layout:
    """Where everything stands, in points from the top left.

    Attributes:
        places: of each box the middle of its upper edge.
        sizes: of each box width and height.
        ways: of each link the places it passes, from a lower edge to an upper one.
    """

    width: float
    height: float
    places: list[Point]
    sizes: list[Box]
    ways: list[list[Point]]


def laid(boxes: Sequence[Box], parents: Sequence[Sequence[int]]) -> Layout:
    """Put each box below those it comes from; what comes from nowhere stands just above what takes it first.

    Args:
        parents: of each box the numbers of those that it comes from, all smaller than its own.
    """
    levels = _levels(parents)
    sizes, chains, above = list(boxes), [], [list[int]() for _ in boxes]
    for child, its in enumerate(parents):
        for parent in its:
            chain = [parent]
            for level in range(levels[parent] + 1, levels[child]):  # a place in each layer that the link passes
                above.append([chain[-1]])
                levels.append(level)
                sizes.append(Box(6.0, 0.0))
                chain.append(len(sizes) - 1)
            above[child].append(chain[-1])
            chains.append([*chain, child])
    rows = _ordered(levels, above)
    across = _across(rows, sizes, chains)
    tops, y = [], 4.0
    for row in rows:
        tops.append(y)
        y += max(sizes[one].height for one in row) + BETWEEN
    left = min(across[one] - sizes[one].width / 2 for one in range(len(sizes))) - 4
    right = max(across[one] + sizes[one].width / 2 for one in range(len(sizes))) + 4
    places = [(across[one] - left, tops[levels[one]]) for one in range(len(sizes))]
    tall = [max(sizes[one].height for one in row) for row in rows]
    ways = [_way(chain, places, sizes, levels, tall) for chain in chains]
    return Layout(right - left, y - BETWEEN + 4, places[: len(boxes)], sizes[: len(boxes)], ways)


def _levels(parents: Sequence[Sequence[int]]) -> list[int]:
    levels: list[int] = []
    for its in parents:
        levels.append(1 + max((levels[parent] for parent in its), default=-1))
    for number in reversed(range(len(parents))):
        takers = [levels[child] for child, its in enumerate(parents) if number in its]
        if not parents[number] and takers:
            levels[number] = min(takers) - 1
    return levels


def _ordered(levels: Sequence[int], above: Sequence[Sequence[int]]) -> list[list[int]]:
    """The rows, each in an order that has its members near those they are linked with."""
    rows: list[list[int]] = [[] for _ in range(max(levels) + 1)]
    for number, level in enumerate(levels):
        rows[level].append(number)
    below = [[child for child, its in enumerate(above) if number in its] for number in range(len(above))]
    for sweep in range(SWEEPS):
        links = below if sweep % 2 else above
        for row in reversed(rows) if sweep % 2 else rows:
            spot = {one: place / max(1, len(other)) for other in rows for place, one in enumerate(other)}
            row.sort(key=lambda one: fmean([spot[other] for other in links[one]] or [spot[one]]))
    return rows


def _across(rows: list[list[int]], sizes: Sequence[Box], chains: Sequence[Sequence[int]]) -> dict[int, float]:
    """Where each stands from left to right: near the mean of those it is linked with, in its row's order.

    What a long link passes stands, if it can, in one line from top to bottom.
    """
    linked: dict[int, list[int]] = {one: [] for one in range(len(sizes))}
    for first, *between, last in chains:
        linked[first].append(between[0] if between else last)
        linked[last].append(between[-1] if between else first)
        for one in between:
            linked[one] = [first, last, *(STRAIGHT * between)]
    across = {one: 0.0 for row in rows for one in row}
    for row in rows:
        _apart(row, [0.0] * len(row), sizes, across)
    before = across.copy()
    for sweep in range(20 * SWEEPS):
        for row in rows if sweep % 2 else reversed(rows):
            wanted = [fmean([across[other] for other in linked[one]] or [across[one]]) for one in row]
            _apart(row, wanted, sizes, across)
        if sweep % 2 and max(abs(across[one] - old) for one, old in before.items()) < SETTLED:
            break
        before = across.copy() if sweep % 2 else before
    return across


def _apart(row: Sequence[int], wanted: Sequence[float], sizes: Sequence[Box], across: dict[int, float]) -> None:
    """As near as can be to where each wants to stand, in order and with room between: least squares, by groups."""
    groups: list[tuple[list[int], float]] = []  # members, where the first one's left edge wants to be on average
    before = 0.0
    offsets = []
    for one in row:
        offsets.append(before + sizes[one].width / 2)
        before += sizes[one].width + GAP
    for place in range(len(row)):
        group, want = [place], wanted[place] - offsets[place]
        while groups and groups[-1][1] > want:  # they would overlap: go on as one
            others, theirs = groups.pop()
            want = (want * len(group) + theirs * len(others)) / (len(group) + len(others))
            group = [*others, *group]
        groups.append((group, want))
    for group, want in groups:
        for place in group:
            across[row[place]] = want + offsets[place]


def _way(
    chain: Sequence[int], places: Sequence[Point], sizes: Sequence[Box], levels: Sequence[int], tall: Sequence[float]
) -> list[Point]:
    (x, y), first = places[chain[0]], sizes[chain[0]]
    way = [(x, y + first.height)]
    for one in chain[1:-1]:
        x, y = places[one]
        way += [(x, y), (x, y + tall[levels[one]])]
    return [*way, places[chain[-1]]]
