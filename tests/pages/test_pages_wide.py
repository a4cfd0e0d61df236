"""Pages and galleries with very long names do not exceed the window width."""

import nbformat
import pytest
import torch

from tfviz import view
from tfviz.lessons import gallery
from tfviz.lessons.runs import Outcome, Run

pytest_plugins = ["browser"]
LONG = "x" * 3000
NAMES = [LONG, "b", "c", "d", "e"]
TABLE = torch.eye(5)
STILLS = {
    "bars": lambda: view.bars(NAMES, {LONG: TABLE[0], "b": TABLE[1]}, LONG, y=LONG, references={LONG: 0.3}),
    "rows": lambda: view.bar_table(NAMES, {LONG: TABLE[0]}, LONG),
    "lines": lambda: view.lines({LONG: ([1, 2], [1.0, 2.0])}, x=LONG, y=LONG, title=LONG),
    "planes": lambda: view.planes({LONG: TABLE[:, :2]}, NAMES, LONG, mark=[LONG]),
    "shares": lambda: view.head_table({LONG: torch.rand(1, 2)}, LONG),
    "cells": lambda: view.interact(lambda p: p.sum(0), p=view.controls.cells(TABLE, NAMES, NAMES)),
    "menu": lambda: view.interact(lambda k: TABLE * k, k={LONG: 1.0, "b": 2.0}),
}


def horizontal_overflow(new_page, path, width):
    page = new_page(width=width)
    page.goto(f"file://{path}")
    page.wait_for_timeout(400)
    for summary in page.locator("summary").all():
        if summary.is_visible():  # a narrow page has no list of keys
            summary.click()
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


@pytest.mark.parametrize("name", STILLS)
def test_long_names_fit_window_width(new_page, tmp_path, name):
    path = STILLS[name]().save(tmp_path / "x.html")
    assert [horizontal_overflow(new_page, path, width) for width in (1280, 500)] == [0, 0]
    text = path.read_text(encoding="utf-8")
    assert LONG in text  # nothing is lost


def test_gallery_with_long_names_fits_window_width(new_page, tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(f"# {LONG}\n\n{LONG}")])
    outcome = Outcome("failed", summary=LONG, error=LONG)
    path = gallery.write([Run("01_a", {LONG[:400]: LONG}, notebook, "", LONG[:90], outcome)], tmp_path)
    assert [horizontal_overflow(new_page, path, width) for width in (1280, 500)] == [0, 0]
