"""The search for a text as a tree: what was kept at each step, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from torch import Tensor

from tfviz.view.still.formatting import counted, fixed
from tfviz.view.still.heatmap import soft
from tfviz.view.still.numbers import few
from tfviz.view.still.palette import BOLD, draws, plain, printable
from tfviz.view.still.picture import Picture, headline

NODES = 1500  # at most
Place = tuple[int, int]  # step, rank


@runtime_checkable
class Beam(Protocol):
    """What `generate.beam.steps` yields: `batch width` of each, best first; texts `batch width position`."""

    texts: Tensor
    parents: Tensor
    ended: Tensor

    @property
    def scores(self) -> Tensor: ...


def tree(beams: Sequence[Beam], words: Sequence[str], row: int = 0, title: str = "Beam search") -> Picture:
    """A column for each step, a node for each text that was kept, the best on top; the winner's way is strong.

    A node is the token that the text went on with, and under it the text's score so far. A line leads to where the
    text went on; where none leaves, it was dropped. A text that has ended is a dotted line from then on.

    Args:
        beams: all that `generate.beam.steps` yielded.
        words: the word of each id.
        row: of the batch.

    Raises:
        ValueError: no steps, more than a picture has room for, or an id without a word.
        IndexError: no such row.
    """
    beams = list(beams)
    if not beams:
        raise ValueError("there are no steps to draw; give list(generate.beam.steps(...))")
    steps, (batch, width) = len(beams), beams[0].parents.shape
    if not 0 <= row < batch:
        raise IndexError(f"row is {row}; the batch has {batch} texts, from 0 to {batch - 1}")
    if any(beam.texts.shape[-1] != step + 2 for step, beam in enumerate(beams)):
        raise ValueError("beams are not the steps of one search in order; give list(generate.beam.steps(...))")
    few(steps * width, NODES, "nodes", "give fewer steps, or a narrower beam")
    most = max(int(beam.texts[row].max()) for beam in beams)
    if most >= len(words):
        raise ValueError(f"words has {len(words)} words, and the texts hold the id {most}; give a word for each id")
    way = _way(beams, row)

    def draw() -> Figure:
        figure = Figure(figsize=(min(12.0, 1.15 * steps + 0.9), 0.6 * width + 0.5), layout="constrained")
        axes = figure.subplots()
        axes.set_axis_off()
        axes.set(xlim=(-0.9, steps - 0.4), ylim=(width - 0.3, -0.6))
        axes.plot([-0.75], [0], marker="o", markersize=5, color=matplotlib.rcParams["text.color"], clip_on=False)
        for step, beam in enumerate(beams):
            for rank in range(width):
                if beam.scores[row, rank].isfinite():
                    _node(axes, beams, words, row, (step, rank), way)
        headline(figure, title)
        return figure

    best = beams[-1].texts[row, 0, 1:].tolist()
    said = " ".join(words[token] for token in best if token)
    return Picture(
        draw, f"{title}\nof {counted(width, 'text')} at each step the best is: {said} ({_score(beams[-1], row, 0)})"
    )


def _way(beams: Sequence[Beam], row: int) -> set[Place]:
    """Where the text that won stood at each step."""
    rank, way = 0, set()
    for step in range(len(beams) - 1, -1, -1):
        way.add((step, rank))
        rank = int(beams[step].parents[row, rank])
    return way


def _node(axes: Axes, beams: Sequence[Beam], words: Sequence[str], row: int, place: Place, way: set[Place]) -> None:
    step, rank = place
    beam, won = beams[step], place in way
    parent = int(beam.parents[row, rank])
    over = step > 0 and bool(beams[step - 1].ended[row, parent])  # it had ended before: nothing was added
    ink = matplotlib.rcParams["text.color"] if won else soft()
    start, end = (step - 0.68 if step else -0.75, parent if step else 0), (step + 0.3 if over else step - 0.32, rank)
    middle = (start[0] + end[0]) / 2
    way_there = Path([start, (middle, start[1]), (middle, end[1]), end], [Path.MOVETO, *3 * [Path.CURVE4]])
    line = {"edgecolor": ink, "linewidth": 1.8 if won else 0.8, "linestyle": ":" if over else "-", "fill": False}
    axes.add_patch(PathPatch(way_there, **line))  # type: ignore[arg-type]
    if over:
        return
    token = printable([words[int(beam.texts[row, rank, step + 1])]])[0]
    face = {"family": BOLD, "weight": "bold"} if won and draws(BOLD, token) else {}
    # a long word hides the ends of the lines that lead to it and from it
    paper = {"facecolor": matplotlib.rcParams["figure.facecolor"], "edgecolor": "none", "pad": 1.2}
    size = 10 if len(beams) < 12 else 9
    axes.text(step, rank, plain(token), ha="center", va="center", size=size, color=ink, bbox=paper, **face)  # type: ignore[arg-type]
    axes.text(step, rank + 0.3, _score(beam, row, rank), ha="center", va="center", size=7.5, color=soft())


def _score(beam: Beam, row: int, rank: int) -> str:
    return fixed(float(beam.scores[row, rank]), 2)
