"""Controls of `view.interact` in addition to sliders, menus and switches."""

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
from tfviz.view.result_spec import round_up
from tfviz.view.spec import NO_NAMES

MAX_POINTS, MAX_CELLS, MAX_WORDS = 60, 400, 60  # of one control


def points(positions: Mapping[str, Sequence[float]], *, limit: float | None = None) -> Points:
    """Let the reader drag points in the plane: the function takes their positions, float [point, 2].

    Args:
        positions: name -> (x, y).
        limit: extent of the plane on each side of 0; by default slightly beyond the farthest point.

    Raises:
        ValueError: there are no points, or more than 60, or a position is not two finite numbers.
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
    cols: Sequence[Any] | None = None,
    *,
    step: float = 0.1,
    limits: tuple[float, float] | None = None,
    axes: tuple[str, str] = NO_NAMES,
) -> Cells | Switches:
    """Let the reader drag or type numbers in a table: the function takes them, float32 of the same shape.

    A matrix of booleans becomes a table of switches, to click or to paint over: the function takes booleans.

    Args:
        matrix: [row, col], or one row.
        rows: names of the rows; by default numbers from 0.
        cols: names of the columns; by default numbers from 0.
        step: the amount by which a key press changes a number.
        limits: the smallest and the largest number, which the page says beside the table and keeps; by default none.
        axes: names of the rows and of the columns, such as ("query", "key").

    Raises:
        ValueError: the matrix does not have one or two axes, is empty, or has more than 400 numbers; names do not fit;
            a number is outside the limits.
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
        "cols": axis_labels(cols, table.shape[1], "cols", "cols", "cells"),
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
    """Let the reader type a text: the function takes its ids, int64 [1, length].

    Args:
        text: the initial text.
        tokenizer: a tokenizer of `tfviz.text`: characters, bytes, whole words, byte-pair encoding, WordPiece.
        min_tokens: minimum number of tokens; of a shorter text the page says so, and draws nothing new.
        max_tokens: maximum number of tokens.

    Raises:
        TypeError: a page cannot encode with `tokenizer`.
        ValueError: the text has fewer tokens than `min_tokens` or more than `max_tokens`; `min_tokens` is below 1 or
            above `max_tokens`.
    """
    tokenizer = subwords.as_tokenizer(tokenizer)
    if not all(hasattr(tokenizer, name) for name in ("encode", "words", "to_spec")):
        raise TypeError(
            f"tokenizer is a {type(tokenizer).__name__}; give one of tfviz.text, such as "
            "text.Characters.from_text(corpus)"
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
    if 0 < count < min_tokens:  # an empty field is to be typed into
        raise ValueError(f"text has {count} tokens, and min_tokens is {min_tokens}")
    return control


def order(words: Sequence[Any]) -> Order:
    """Let the reader drag words into another order.

    The function takes a permutation, int64 [word]: the index of the word at each place, so that `x[permutation]` is in
    the reader's order.

    Raises:
        ValueError: there are fewer than 2 words, or more than 60.
    """
    check_at_most(len(words), MAX_WORDS, "words", "give fewer of them")
    if len(words) < 2:
        raise ValueError("an order needs 2 words at least")
    names = as_strings(words)
    return Order({"kind": "order", "names": names, "start": list(range(len(names)))})


def angle(start: float = 0.0) -> Angle:
    """Let the reader turn a dial: the function takes its angle in radians, a scalar float from -pi to pi.

    Raises:
        ValueError: `start` is not finite, or exceeds two turns, as an angle in degrees would.
    """
    if math.isfinite(start) and abs(start) > 4 * math.pi:
        raise ValueError(f"start is {start}; it is in radians: math.radians({start:g})")
    if not math.isfinite(start):
        raise ValueError(f"start is {start}; give an angle in radians, such as math.pi / 4")
    return Angle({"kind": "angle", "start": math.remainder(start, 2 * math.pi)})


def _decimals(table: Tensor) -> list[list[float]]:
    """Return numbers as they were written: 0.1, not the nearest float32."""
    return [[float(f"{cell:.7g}") for cell in row] for row in table.tolist()]
