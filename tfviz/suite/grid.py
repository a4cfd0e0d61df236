"""Every combination of some parameters, and one table of what came of them."""

from __future__ import annotations

import csv
import hashlib
import html
import io
import re
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from tfviz.files import atomic
from tfviz.suite.result import Result

LONGEST = 100  # bytes of a folder's name
MOST = 10_000  # runs
STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2.5rem auto; max-width: 1120px; padding: 0 1.25rem;
  background: Canvas; color: CanvasText }
table { border-collapse: collapse; width: 100% }
.table { overflow-x: auto } td { overflow-wrap: anywhere; max-width: 40em; min-width: 5em }
th, td { text-align: left; padding: .35rem .8rem .35rem 0;
  border-bottom: 1px solid color-mix(in srgb, CanvasText 18%, Canvas); vertical-align: top }
td.number { font-variant-numeric: tabular-nums; text-align: right } .failed { color: light-dark(#c62f2f, #ff8a80) }
"""


def combinations(grid: Mapping[str, Sequence[Any]], there: Sequence[str]) -> list[dict[str, Any]]:
    """Every choice of one value for each parameter, of those that a notebook has; one empty choice where it has none.

    >>> combinations({"seed": [1, 2], "heads": [4]}, ["seed", "heads", "dim"])
    [{'seed': 1, 'heads': 4}, {'seed': 2, 'heads': 4}]

    Raises:
        ValueError: there are more than anybody would wait for.
    """
    mine = {name: values for name, values in grid.items() if name in there}
    if (many := prod(map(len, mine.values()))) > MOST:
        raise ValueError(f"--grid asks for {many:,} combinations of {', '.join(mine)}; take at most {MOST:,}")
    return [dict(zip(mine, chosen)) for chosen in product(*mine.values())]


def folder(chosen: Mapping[str, Any]) -> str:
    """A folder's name for a combination: `seed=1,heads=2`; empty for none.

    What cannot stand in a name, or is too long for one, is marked by its hash, so that no two are alike.
    """
    said = ",".join(f"{name}={value}" for name, value in chosen.items())
    short = re.sub(r"[^\w.=+,-]", "_", said).encode()[:LONGEST].decode(errors="ignore")
    return short if short == said else f"{short}~{hashlib.sha256(said.encode()).hexdigest()[:8]}"


def write(results: Sequence[Result], names: Sequence[str], out: Path) -> None:
    """`out/results.csv` and `out/results.html`: a row for each run, ended or not.

    Args:
        names: the parameters that have columns of their own.
    """
    head = ["notebook", *names, "status", "seconds", "result", "error"]
    rows = [
        [one.name, *(one.parameters.get(name, "") for name in names), one.status, one.seconds, one.result, one.error]
        for one in results
    ]
    stream = io.StringIO()
    csv.writer(stream).writerows([head, *([_inert(cell) for cell in row] for row in rows)])
    with atomic(out / "results.csv") as draft:
        draft.write_text(stream.getvalue(), encoding="utf-8", errors="replace", newline="")
    body = "".join(_row(result, row, out) for result, row in zip(results, rows))
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>tfviz: all runs</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body><h1>All runs</h1>'
        '<p><a href="index.html">pictures</a> · <a href="results.csv">as CSV</a></p>'
        '<div class="table" tabindex="0" role="region" aria-label="All runs">'
        f"<table><thead><tr>{''.join(f'<th>{html.escape(name)}</th>' for name in head)}</tr></thead>"
        f"<tbody>{body}</tbody></table></div></body></html>\n"
    )
    with atomic(out / "results.html") as draft:
        draft.write_text(page, encoding="utf-8", errors="replace")


def _inert(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula, and compute, begins with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and re.match(r"[=@\t\r]|[+-](?!\d)", value) else value


def _row(result: Result, cells: Sequence[Any], out: Path) -> str:
    notebook, *rest = cells
    there = result.status in ("ok", "unchanged")
    page = html.escape(result.link(out, ".html"))
    first = f'<a href="{page}">{html.escape(notebook)}</a>' if there else html.escape(notebook)
    kind = ' class="failed"' if result.status == "failed" else ""
    return f"<tr{kind}><td>{first}</td>{''.join(map(_cell, rest))}</tr>"


def _cell(value: Any) -> str:
    kind = ' class="number"' if isinstance(value, int | float) and not isinstance(value, bool) else ""
    return f"<td{kind}>{html.escape(str(value)).replace(chr(10), '<br>')}</td>"
