"""Controls of `view.interact` beyond sliders, menus and switches: points, tables, texts, orders and angles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz.checks import between
from tfviz.look.map_arguments import as_strings, axis_labels
from tfviz.text import subwords
from tfviz.view.check_numbers import check_at_most, check_finite, check_positive
from tfviz.view.documents.interact import CellsSpec, TableAxes, TextSpec
from tfviz.view.instrument.controls import Angle, Cells, Order, Points, Switches, Text
from tfviz.view.spec import NO_NAMES, round_up

__all__ = ["angle", "cells", "order", "points", "text"]

MAX_POINTS, MAX_CELLS, MAX_WORDS = 60, 400, 60  # in one control


def points(positions: Mapping[str, Sequence[float]], *, limit: float | None = None) -> Points:
    """Return a control with points to drag in a plane; the function takes their positions, float [point, 2].

    Args:
        positions: the initial position of each point: name -> (x, y).
        limit: largest absolute coordinate of the plane; by default slightly beyond the largest coordinate.

    Raises:
        ValueError: there are no points, or more than 60; a position is not two finite numbers or lies beyond `limit`.
    """
    if not positions or any(len(position) != 2 for position in positions.values()):
        raise ValueError('positions are pairs by name, at least one: {"cat": (1.0, 2.0)}')
    check_at_most(len(positions), MAX_POINTS, "points", "give fewer of them")
    check_positive("limit", limit)
    table = check_finite("positions", torch.tensor([[float(x) for x in position] for position in positions.values()]))
    farthest = float(table.abs().max())
    if limit is not None and farthest > limit:
        raise ValueError(f"limit is {limit:g}, and a point is {farthest:g} away from 0")
    names, far = as_strings(list(positions)), limit or round_up(1.2 * farthest)
    return Points({"kind": "points", "names": names, "start": _decimals(table), "limit": far})


def cells(
    matrix: Tensor,
    rows: Sequence[Any] | None = None,
    columns: Sequence[Any] | None = None,
    *,
    step: float = 0.1,
    limits: tuple[float, float] | None = None,
    axes: tuple[str, str] = NO_NAMES,
) -> Cells | Switches:
    """Return a control with a table of numbers to drag or type; the function takes float32 of the same shape.

    A boolean matrix becomes a table of switches to click or paint over; the function then takes booleans.

    Args:
        matrix: the initial numbers, [row, col] or [col].
        rows: labels of the rows; by default numbers from 0.
        columns: labels of the columns; by default numbers from 0.
        step: the amount by which a key press changes a number.
        limits: the smallest and the largest allowed number, shown beside the table; by default none.
        axes: names of the row axis and of the column axis, such as ("query", "key").

    Raises:
        ValueError: the matrix does not have one or two axes, is empty, or has more than 400 numbers; there are not as
            many labels as rows or columns; `limits` are not increasing, or exclude a number of the matrix.
    """
    truth = isinstance(matrix, Tensor) and matrix.dtype == torch.bool
    matrix = check_finite("matrix", matrix).float()
    if matrix.dim() not in (1, 2) or not matrix.numel():
        raise ValueError(f"matrix has the shape {list(matrix.shape)}; it must be [row, col], with something in it")
    check_at_most(matrix.numel(), MAX_CELLS, "cells", "give fewer of them")
    check_positive("step", step)
    table = matrix.reshape(-1, matrix.shape[-1])
    table_axes: TableAxes = {
        "rows": axis_labels(rows, len(table), "rows", "rows", "cells"),
        "columns": axis_labels(columns, table.shape[1], "columns", "columns", "cells"),
        "flat": matrix.dim() == 1,
    }
    if axes != NO_NAMES:
        table_axes["axes"] = list(axes)
    if truth:
        return Switches({"kind": "switches", "start": table.bool().tolist(), **table_axes})
    spec: CellsSpec = {"kind": "cells", "start": _decimals(table), "step": step, **table_axes}
    if limits is not None:
        spec["limits"] = _checked_limits(limits, table)
    return Cells(spec)


def _checked_limits(limits: tuple[float, float], table: Tensor) -> list[float]:
    low, high = map(float, limits)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"limits are {limits}; give a smaller number and a larger one")
    if found := [cell for cell in table.flatten().tolist() if not low <= cell <= high]:
        raise ValueError(f"the matrix has {found[0]:g}, and limits are {low:g} and {high:g}")
    return [low, high]


def text(text: str, tokenizer: Any, *, min_tokens: int = 1, max_tokens: int = 96) -> Text:
    """Return a control with a text to type; the function takes its token ids, int64 [1, length].

    Args:
        text: the initial text; it may be empty.
        tokenizer: a tokenizer of `tfviz.text`: characters, bytes, whole words, byte-pair encoding, WordPiece.
        min_tokens: minimum number of tokens; for a shorter text the page shows a message and does not redraw.
        max_tokens: maximum number of tokens, at least 2.

    Raises:
        TypeError: the page cannot encode with `tokenizer`.
        ValueError: the text has fewer tokens than `min_tokens` or more than `max_tokens`; `min_tokens` is below 1 or
            above `max_tokens`; `max_tokens` is below 2.
    """
    tokenizer = subwords.as_tokenizer(tokenizer)
    if not all(hasattr(tokenizer, name) for name in ("encode", "tokens", "to_spec")):
        raise TypeError(
            f"tokenizer is a {type(tokenizer).__name__}; give one of tfviz.text, such as "
            "text.CharacterTokenizer.from_text(corpus)"
        )
    if max_tokens < 2:
        raise ValueError(f"max_tokens is {max_tokens}; a text needs room for 2 tokens at least")
    between(1, max_tokens, min_tokens=min_tokens)
    spec: TextSpec = {
        "kind": "text",
        "start": text,
        "tokenizer": tokenizer.to_spec(),
        "min_tokens": min_tokens,
        "max_tokens": max_tokens,
    }
    control = Text(spec, tokenizer)
    if (count := control.tensor(text).shape[1]) > max_tokens:
        raise ValueError(f"text has {count} tokens, and max_tokens is {max_tokens}")
    if 0 < count < min_tokens:  # an empty text is allowed: the reader types one
        raise ValueError(f"text has {count} tokens, and min_tokens is {min_tokens}")
    return control


def order(labels: Sequence[Any]) -> Order:
    """Return a control with words to drag into another order; the function takes a permutation, int64 [word].

    The permutation holds the index of the word at each position, so that `x[permutation]` is in the reader's order.

    Raises:
        ValueError: there are fewer than 2 words, or more than 60.
    """
    check_at_most(len(labels), MAX_WORDS, "words", "give fewer of them")
    if len(labels) < 2:
        raise ValueError("an order needs 2 words at least")
    names = as_strings(labels)
    return Order({"kind": "order", "names": names, "start": list(range(len(names)))})


def angle(start: float = 0.0) -> Angle:
    """Return a control with a dial to turn; the function takes its angle in radians, a scalar float from -pi to pi.

    Raises:
        ValueError: `start` is not finite, or exceeds two turns, and so is probably in degrees.
    """
    if math.isfinite(start) and abs(start) > 4 * math.pi:
        raise ValueError(f"start is {start}; it is in radians: math.radians({start:g})")
    if not math.isfinite(start):
        raise ValueError(f"start is {start}; give an angle in radians, such as math.pi / 4")
    return Angle({"kind": "angle", "start": math.remainder(start, 2 * math.pi)})


def _decimals(table: Tensor) -> list[list[float]]:
    """Return float32 numbers rounded to seven significant digits, so that 0.1 stays 0.1."""
    return [[float(f"{cell:.7g}") for cell in row] for row in table.tolist()]
