"""Specify how results are drawn, for `view.interact`, such as `draw={"scores": view.draw.grid("words", "words")}`.

Labels are a list, or the name of a control whose current words are used. `sentence` is a template for a sentence about
the result, such as "{row} looks most at {col} ({percent})"; `tfviz.view.figures.sentences` lists its placeholders.
Grids and bars with equal drawings share one scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from tfviz.look.map_arguments import as_strings
from tfviz.validation import validate_public
from tfviz.view.check_numbers import check_finite, check_positive
from tfviz.view.documents.interact import DrawingKind
from tfviz.view.figures.sentences import check_sentence
from tfviz.view.result_spec import Drawing
from tfviz.view.spec import NO_NAMES, ScaleKind

__all__ = ["arrows", "bars", "dots", "graph", "grid", "lines", "number", "stack", "words"]
SCALE_KINDS: tuple[ScaleKind, ...] = ("linear", "diverging", "sqrt")
AXIS_COUNTS = {"number": (0,), "bars": (1,), "lines": (1, 2), "grid": (2, 3), "arrows": (2,), "dots": (2,),
               "words": (1,), "graph": (2,), "stack": (1,)}  # fmt: skip
DEFAULT_KINDS: dict[int, DrawingKind] = {0: "number", 1: "bars", 2: "grid", 3: "grid"}  # by the number of axes
Labels = str | Sequence[Any] | None


def grid(
    rows: Labels = None,
    columns: Labels = None,
    *,
    title: str = "",
    scale: ScaleKind | None = None,
    limit: float | None = None,
    axes: tuple[str, str] = NO_NAMES,
    ends: tuple[str, str] = NO_NAMES,
    hatched: str = "",
    sentence: str = "",
) -> Drawing:
    """Specify a heatmap of [row, col], or several side by side of [grid, row, col]; small ones show their numbers.

    Args:
        rows: labels of the rows.
        columns: labels of the columns.
        title: the title.
        scale: "linear" (from 0), "diverging" (to both sides of 0), or "sqrt" (from 0, coloured by square roots, as in
            views of attention); by default "diverging" if a number is below 0, otherwise "linear".
        limit: the end of the scale; by default 1 for an explicit "linear" or "sqrt", for booleans, and for rows that
            sum to 1, otherwise the next round number.
        axes: names of the row axis and of the column axis, such as ("query", "key").
        ends: the meanings of the two ends of the scale, shown in its legend, such as ("no weight", "all of it"); for a
            grid of zeros and ones, the meanings of 0 and 1, such as ("may not look", "may look").
        hatched: the meaning of a hatched cell, whose number is minus infinity.
        sentence: a template for the sentence about the grid.

    Raises:
        ValueError: `scale` is unknown, `limit` is not above 0, or `sentence` has an unknown placeholder.
    """
    if scale is not None and scale not in SCALE_KINDS:
        raise ValueError(f"scale is {scale!r}; it can be {', '.join(map(repr, SCALE_KINDS))}")
    check_positive("limit", limit)
    check_sentence("grid", sentence)
    return Drawing(
        "grid",
        title,
        _labels(rows),
        _labels(columns),
        scale,
        limit,
        axes=axes,
        ends=ends,
        hatched=hatched,
        sentence=sentence,
    )


def bars(
    labels: Labels = None,
    *,
    title: str = "",
    limit: float | None = None,
    top_k: int | None = None,
    unit: str = "",
    ends: tuple[str, str] = NO_NAMES,
    expected: Sequence[float] = (),
    sentence: str = "",
) -> Drawing:
    """Specify a bar with its number for each entry of [word].

    With `expected`, the side to which each bar should point is shaded. A bar that points there is filled and has a
    check mark, another one is an outline with a cross.

    Args:
        labels: the labels of the bars.
        title: the title.
        limit: the value of the longest possible bar.
        top_k: draw only the `top_k` largest bars, sorted; by default all, in their order.
        unit: the unit of the numbers, such as "GB".
        ends: what numbers below and above 0 mean, such as ("negative", "positive"), written above the bars.
        expected: for each bar, a number with the sign that its number should have.
        sentence: a template for the sentence about the bars.

    Raises:
        ValueError: `limit` or `top_k` is not above 0, a number of `expected` is 0 or NaN, `expected` is given with
            `top_k`, or `sentence` has an unknown placeholder.
    """
    check_positive("limit", limit)
    check_positive("top_k", top_k)
    check_sentence("bars", sentence)
    if not all(number < 0 or number > 0 for number in expected):
        raise ValueError("expected has a number that is neither below nor above 0; its signs are what counts")
    if expected and top_k:
        raise ValueError("give top_k or expected: sorted bars have no fixed signs to be compared with")
    return Drawing(
        "bars",
        title,
        _labels(labels),
        limit=limit,
        top=top_k or 0,
        unit=unit,
        ends=ends,
        expected=tuple(map(float, expected)),
        sentence=sentence,
    )


def stack(
    labels: Labels = None, *, title: str = "", budget: float | None = None, unit: str = "", sentence: str = ""
) -> Drawing:
    """Specify one stacked bar of the parts in [part], each 0 or greater, with their sum above it.

    With a budget, the picture states whether the sum fits, such as "No: 144 of 80 GB", and a line marks the budget.

    Args:
        labels: the names of the parts.
        title: the title.
        budget: the largest sum that fits.
        unit: the unit of the numbers, such as "GB".
        sentence: a template for the sentence about the parts.

    Raises:
        ValueError: `budget` is not above 0, or `sentence` has an unknown placeholder.
    """
    check_positive("budget", budget)
    check_sentence("stack", sentence)
    return Drawing("stack", title, _labels(labels), budget=budget, unit=unit, sentence=sentence)


def lines(
    rows: Labels = None,
    columns: Labels = None,
    *,
    title: str = "",
    axes: tuple[str, str] = NO_NAMES,
    unit: str = "",
    sentence: str = "",
) -> Drawing:
    """Specify a line over the columns for each row of [row, col], or a single line for [col].

    Args:
        rows: names of the lines.
        columns: labels of the columns, from left to right.
        title: the title.
        axes: names of the y-axis and of the x-axis, such as ("share", "place of the key").
        unit: the unit of the numbers.
        sentence: a template for the sentence about the lines.

    Raises:
        ValueError: `sentence` has an unknown placeholder.
    """
    check_sentence("lines", sentence)
    return Drawing("lines", title, _labels(rows), _labels(columns), axes=axes, unit=unit, sentence=sentence)


def arrows(
    labels: Labels = None,
    *,
    title: str = "",
    limit: float | None = None,
    axes: tuple[str, str] = NO_NAMES,
    mark: Sequence[str] = (),
) -> Drawing:
    """Specify vectors in the plane as arrows, from the origin to each point of [word, 2].

    Args:
        labels: names of the vectors.
        title: the title.
        limit: largest absolute coordinate of the plane.
        axes: names of the horizontal and of the vertical coordinate.
        mark: names of vectors to draw in colour, all others in grey; by default each has its own colour.

    Raises:
        ValueError: `limit` is not above 0.
        LookupError: `mark` names a vector that does not exist.
    """
    return _plane("arrows", labels, title, limit, axes, mark)


def dots(
    labels: Labels = None,
    *,
    title: str = "",
    limit: float | None = None,
    axes: tuple[str, str] = NO_NAMES,
    mark: Sequence[str] = (),
) -> Drawing:
    """Specify points in the plane, [word, 2]; only its upper right quarter if no coordinate is below 0.

    The arguments are those of `arrows`.

    Raises:
        ValueError: `limit` is not above 0.
        LookupError: `mark` names a point that does not exist.
    """
    return _plane("dots", labels, title, limit, axes, mark)


def _plane(
    kind: DrawingKind,
    labels: Labels,
    title: str,
    limit: float | None,
    axes: tuple[str, str],
    mark: Sequence[str],
) -> Drawing:
    check_positive("limit", limit)
    names, marked = _labels(labels), tuple(as_strings(mark))
    if unknown := [name for name in marked if not isinstance(names, str) and name not in names]:
        raise LookupError(f"mark names {unknown[0]!r}, which is not one of the words")
    return Drawing(kind, title, names, limit=limit, axes=axes, mark=marked)


def words(
    labels: Labels = None,
    *,
    title: str = "",
    limit: float | None = None,
    ends: tuple[str, str] = NO_NAMES,
    sentence: str = "",
) -> Drawing:
    """Specify running text, each word shaded by its number in [word]; `limit`, `ends` and `sentence` as in `grid`."""
    check_positive("limit", limit)
    check_sentence("words", sentence)
    return Drawing("words", title, _labels(labels), limit=limit, ends=ends, sentence=sentence)


def graph(
    labels: Labels = None,
    *,
    positions: str | Tensor | None = None,
    title: str = "",
    limit: float | None = None,
    filled: bool = False,
) -> Drawing:
    """Specify a directed graph: an edge for each nonzero cell of [from, to], thicker for larger absolute values.

    Args:
        labels: the names of the nodes.
        positions: positions of the nodes, [node, 2], or the name of a control that has them; by default on a circle.
        title: the title.
        limit: the number of the thickest edge.
        filled: whether to colour the nodes by the numbers on the diagonal, instead of drawing these as loops.

    Raises:
        ValueError: `positions` is not [node, 2], or `limit` is not above 0.
    """
    check_positive("limit", limit)
    nodes: Any = positions or () if isinstance(positions, str | None) else ()
    if isinstance(positions, Tensor):
        table = check_finite("positions", positions)
        if table.dim() != 2 or table.shape[1] != 2:
            raise ValueError(f"positions has the shape {list(table.shape)}; it must be [node, 2]")
        nodes = tuple((float(x), float(y)) for x, y in table.tolist())
    return Drawing("graph", title, _labels(labels), limit=limit, positions=nodes, filled=filled)


def number(*, title: str = "", unit: str = "", sentence: str = "") -> Drawing:
    """Specify a single number in large type, with its unit; `sentence` may hold {value} and {percent}."""
    check_sentence("number", sentence)
    return Drawing("number", title, unit=unit, sentence=sentence)


def _labels(labels: Labels) -> Any:
    return labels if isinstance(labels, str) else tuple(as_strings(labels)) if labels is not None else ()


validate_public(globals(), __all__, package="view.draw")
