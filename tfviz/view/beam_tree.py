"""Pictures of beam search as a tree of the hypotheses kept at each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from torch import Tensor

from tfviz.view.check_numbers import check_at_most
from tfviz.view.figures.formatting import format_count, format_fixed
from tfviz.view.figures.palette import BOLD_FONT, drawable, has_glyphs, muted, tick_labels
from tfviz.view.figures.static_figure import StaticFigure, set_title

MAX_NODES = 1500


@runtime_checkable
class Beam(Protocol):
    """A step of beam search, as `generate.beam.steps` yields it, with the hypotheses sorted best first.

    `sequences` are token ids, [batch, width, position]; `parents`, `ended` and `scores` are [batch, width].
    """

    sequences: Tensor
    parents: Tensor
    ended: Tensor

    @property
    def scores(self) -> Tensor: ...


def tree(
    beams: Sequence[Beam], tokens: Sequence[str], batch_index: int = 0, title: str = "Beam search"
) -> StaticFigure:
    """Draw beam search as a tree: a column for each step, a node for each hypothesis, best on top.

    A node shows the last token of its hypothesis, and below it the score so far. Lines lead to the continuations; a
    node without continuations was dropped, and has a cross behind it. A hypothesis that has ended continues as a
    dotted line to a dot in the last column. The path of the final best hypothesis is emphasized.

    Args:
        beams: all steps that `generate.beam.steps` yielded, in order.
        tokens: the text of each token id.
        batch_index: the index of the text in the batch.
        title: the title.

    Raises:
        ValueError: there are no steps, they are out of order, there are too many nodes, or `tokens` lacks a token id.
        IndexError: there is no such text.
    """
    beams = list(beams)
    if not beams:
        raise ValueError("there are no steps to draw; give list(generate.beam.steps(...))")
    steps, (batch, width) = len(beams), beams[0].parents.shape
    if not 0 <= batch_index < batch:
        raise IndexError(f"batch_index is {batch_index}; the batch has {batch} texts, from 0 to {batch - 1}")
    if any(beam.sequences.shape[-1] != step + 2 for step, beam in enumerate(beams)):
        raise ValueError("beams are not the steps of one search in order; give list(generate.beam.steps(...))")
    check_at_most(steps * width, MAX_NODES, "nodes", "give fewer steps, or a narrower beam")
    max_id = max(int(beam.sequences[batch_index].max()) for beam in beams)
    if max_id >= len(tokens):
        raise ValueError(
            f"there are {len(tokens)} tokens, and the texts hold the id {max_id}; give a token for each id"
        )
    winner = _winner(beams, batch_index)

    def draw() -> Figure:
        figure = Figure(figsize=(min(12.0, 1.15 * steps + 0.9), 0.6 * width + 0.65), layout="constrained")
        axes = figure.subplots()
        axes.set_axis_off()
        axes.set(xlim=(-0.9, steps - 0.4), ylim=(width - 0.3, -0.9))
        axes.plot([-0.75], [0], marker="o", markersize=5, color=matplotlib.rcParams["text.color"], clip_on=False)
        for step, beam in enumerate(beams):
            kept = set(beams[step + 1].parents[batch_index].tolist()) if step + 1 < steps else set(range(width))
            axes.text(step, -0.62, f"word {step + 1}", size=8, color=muted(), ha="center", va="center")
            for rank in range(width):
                if beam.scores[batch_index, rank].isfinite():
                    ended = step > 0 and bool(beams[step - 1].ended[batch_index, beam.parents[batch_index, rank]])
                    _draw_node(axes, beam, tokens, (batch_index, rank), step, winner[step] == rank, ended, steps - 1)
                    if rank not in kept:
                        axes.text(step + 0.32, rank, "×", size=9, color=muted(), ha="center", va="center")
        set_title(figure, title)
        return figure

    padding = sum(bool(beam.ended[batch_index, rank]) for beam, rank in zip(beams[:-1], winner))  # after the end token
    best = " ".join(tokens[token] for token in beams[-1].sequences[batch_index, 0, 1 : steps - padding + 1].tolist())
    score = format_fixed(float(beams[-1].scores[batch_index, 0]), 2)
    return StaticFigure(draw, f"{title}\nof {format_count(width, 'text')} at each step the best is: {best} ({score})")


def _winner(beams: Sequence[Beam], batch_index: int) -> list[int]:
    """Return the rank, at each step, of the hypothesis that is best at the end."""
    ranks = [0]
    for beam in reversed(beams[1:]):
        ranks.insert(0, int(beam.parents[batch_index, ranks[0]]))
    return ranks


def _draw_node(
    axes: Axes,
    beam: Beam,
    tokens: Sequence[str],
    index: tuple[int, int],
    step: int,
    won: bool,
    ended: bool,
    last: int,
) -> None:
    """Draw the line to a hypothesis, and its token and score unless it had already ended.

    Args:
        axes: the axes to draw on.
        beam: the step of beam search.
        tokens: the text of each token id.
        index: the index in the batch, and the rank.
        step: the index of the step.
        won: whether the hypothesis is on the path of the final best one.
        ended: whether the hypothesis had already ended.
        last: the index of the last step.
    """
    rank, size = index[1], 10 if axes.get_xlim()[1] < 11.5 else 9  # smaller from 12 steps on
    ink = matplotlib.rcParams["text.color"] if won else muted()
    x, y = (step - 0.68, int(beam.parents[index])) if step else (-0.75, 0)
    end = step + 0.3 if ended else step - 0.32
    middle = (x + end) / 2
    path = Path([(x, y), (middle, y), (middle, rank), (end, rank)], [Path.MOVETO, *3 * [Path.CURVE4]])
    line: Any = {"linewidth": 1.8 if won else 0.8, "linestyle": ":" if ended else "-"}
    axes.add_patch(PathPatch(path, edgecolor=ink, fill=False, **line))
    if ended:
        if step == last:
            axes.plot([end], [rank], marker="o", markersize=5 if won else 3, color=ink)
        return
    token = tick_labels([tokens[int(beam.sequences[index][-1])]])[0]
    face: Any = {"family": BOLD_FONT, "weight": "bold"} if won and has_glyphs(BOLD_FONT, token) else {}
    # the box of a long token hides the ends of its lines
    paper = {"facecolor": matplotlib.rcParams["figure.facecolor"], "edgecolor": "none", "pad": 1.2}
    centre: Any = {"ha": "center", "va": "center"}
    axes.text(step, rank, drawable(token), size=size, color=ink, bbox=paper, **centre, **face)
    axes.text(step, rank + 0.3, format_fixed(float(beam.scores[index]), 2), size=7.5, color=muted(), **centre)
