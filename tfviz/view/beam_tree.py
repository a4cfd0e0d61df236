"""Pictures of beam search as a tree of the hypotheses kept at each step."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol, runtime_checkable

import matplotlib
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path
from torch import Tensor

from tfviz.view.check_numbers import check_at_most
from tfviz.view.figures.formatting import format_count, format_fixed
from tfviz.view.figures.palette import BOLD_FONT, MAX_LABEL_LENGTH, drawable, has_glyphs, muted, tick_labels
from tfviz.view.figures.static_figure import StaticFigure, set_title

MAX_NODES = 1500
MAX_WIDTH_INCHES, COLUMN_INCHES, ROW_INCHES = 12.0, 1.15, 0.6
BOX_WIDTH, BOX_TOP, BOX_BOTTOM = 0.52, 0.26, 0.42  # of a node, as shares of a column and of a row
LETTER_INCHES = 0.08  # average width of a letter of a token, at 10 points
WINNER_COLOUR = "C5"


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
    dotted line to a dot in the last column. The path of the final best hypothesis is thick and in colour. A legend
    below names those of these signs that occur.

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
        longest = max(
            len(tokens[int(beam.sequences[batch_index, rank, -1])]) for beam in beams for rank in range(width)
        )
        column = max(COLUMN_INCHES, LETTER_INCHES * min(longest, MAX_LABEL_LENGTH) / BOX_WIDTH)
        inches = (min(MAX_WIDTH_INCHES, column * steps + 0.9), ROW_INCHES * width + 0.9)
        figure = Figure(figsize=inches, layout="constrained")
        axes = figure.subplots()
        axes.set_axis_off()
        axes.set(xlim=(-0.9, steps - 0.4), ylim=(width - 0.4, -0.85))
        axes.plot([-0.75], [0], marker="o", markersize=5, color=WINNER_COLOUR, clip_on=False)
        signs = {"win"}
        for step, beam in enumerate(beams):
            kept = set(beams[step + 1].parents[batch_index].tolist()) if step + 1 < steps else set(range(width))
            axes.text(step, -0.62, f"word {step + 1}", size=8, color=muted(), ha="center", va="center")
            for rank in range(width):
                if beam.scores[batch_index, rank].isfinite():
                    ended = step > 0 and bool(beams[step - 1].ended[batch_index, beam.parents[batch_index, rank]])
                    _draw_node(axes, beam, tokens, (batch_index, rank), step, winner[step] == rank, ended, steps - 1)
                    signs |= {"end"} if ended else set()
                    if rank not in kept:
                        axes.text(step + 0.32, rank, "×", size=9, color=muted(), ha="center", va="center")
                        signs |= {"drop"}
        _add_legend(figure, signs)
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
    rank, steps = index[1], last + 1
    ink = WINNER_COLOUR if won else muted()
    x, y = (step - 0.7 if ended else step - 1, int(beam.parents[index])) if step else (-0.75, 0)
    end = step + 0.3 if ended else step
    middle = step - 0.5 if step else -0.5
    path = Path([(x, y), (middle, y), (middle, rank), (end, rank)], [Path.MOVETO, *3 * [Path.CURVE4]])
    line: Any = {"linewidth": 2.2 if won else 0.9, "linestyle": ":" if ended else "-", "zorder": 1.2 if won else 1}
    axes.add_patch(PathPatch(path, edgecolor=ink, fill=False, **line))
    if ended:
        if step == last:
            axes.plot([end], [rank], marker="o", markersize=5 if won else 3, color=ink)
        return
    _draw_box(axes, step, rank, won)
    token = tick_labels([tokens[int(beam.sequences[index][-1])]])[0]
    face: Any = {"family": BOLD_FONT, "weight": "bold"} if won and has_glyphs(BOLD_FONT, token) else {}
    figure: Any = axes.figure
    room = BOX_WIDTH * figure.get_figwidth() / (steps + 0.5)  # inches
    size = min(10.0 if steps < 12 else 9.0, max(6.0, 10 * room / (LETTER_INCHES * len(token))))
    centre: Any = {"ha": "center", "va": "center"}
    axes.text(step, rank, drawable(token), size=size, color=matplotlib.rcParams["text.color"], **centre, **face)
    axes.text(step, rank + 0.28, format_fixed(float(beam.scores[index]), 2), size=7.5, color=muted(), **centre)


def _draw_box(axes: Axes, step: int, rank: int, won: bool) -> None:
    """Draw the box of a node, which hides the ends of its lines; it is tinted on the path of the final best one."""
    paper = to_rgb(matplotlib.rcParams["figure.facecolor"])
    tint = 0.12 * won
    face = [(1 - tint) * one + tint * other for one, other in zip(paper, to_rgb(WINNER_COLOUR))]
    edge = WINNER_COLOUR if won else matplotlib.rcParams["axes.edgecolor"]
    corner, height = (step - BOX_WIDTH / 2, rank - BOX_TOP), BOX_TOP + BOX_BOTTOM
    box = FancyBboxPatch(corner, BOX_WIDTH, height, boxstyle="round,pad=0,rounding_size=0.08")
    axes.add_collection(PatchCollection([box], facecolor=[face], edgecolor=edge, linewidth=0.9, zorder=2))


def _add_legend(figure: Figure, signs: Collection[str]) -> None:
    """Name the signs that occur, in a line below the tree."""
    soft = muted()
    entries = {
        "win": (Line2D([], [], color=WINNER_COLOUR, linewidth=2.2), "the text that wins"),
        "end": (Line2D([], [], color=soft, linewidth=1, linestyle=":"), "finished"),
        "drop": (Line2D([], [], color=soft, linewidth=0, marker="x", markersize=5), "dropped at the next step"),
    }
    handles, names = zip(*(entry for sign, entry in entries.items() if sign in signs))
    figure.legend(handles, names, loc="outside lower left", ncols=len(names), labelcolor=soft)
