"""Lessons without their answers."""

import ast
import symtable

import pytest
from small_notebooks import tfviz, v4

from tfviz.lessons import answers, clean, notebooks

pytest_plugins = ["small_notebooks"]


def parsed(cells):
    """The sources of cells of code that are Python without magic."""
    for cell in cells:
        if cell.cell_type == "code":
            try:
                yield cell.source, ast.parse(cell.source)
            except SyntaxError:
                continue


@pytest.mark.parametrize("path", notebooks.find(), ids=lambda path: path.stem)
def test_no_answer_is_left_and_no_cell_needs_one(path):
    book = notebooks.read(path)
    kept = answers.without_answers(book)
    identifiers = {cell.id for cell in kept.cells}
    gone = [cell for cell in book.cells if cell.id not in identifiers]
    assert len([cell for cell in gone if "answer" in cell.metadata.get("tags", [])]) >= 3
    text = "".join(cell.source for cell in kept.cells)
    assert "<summary>Answer" not in text
    assert text.count("<details") == text.count("</details>")
    assert "folded" not in text.casefold()  # "The answers to the first three are in the folded cells."
    assert f"{notebooks.WEBSITE}notebooks/" not in text  # whose pages have the answers
    defined = {
        symbol.get_name()
        for source, _ in parsed(gone)
        for symbol in symtable.symtable(source, "cell", "exec").get_symbols()
        if symbol.is_assigned() or symbol.is_imported()
    }
    used = {
        node.id
        for _, tree in parsed(kept.cells)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    elsewhere = {
        node.id if isinstance(node, ast.Name) else getattr(node, "name", None) or getattr(node, "arg", None)
        for _, tree in parsed(kept.cells)
        for node in ast.walk(tree)
        if not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    }
    assert defined & used - elsewhere == set()


@pytest.mark.parametrize("told", ["The answers to the first three are in the folded cells.", "Folded cells answer it."])
def test_nothing_says_that_there_are_answers(told):
    live = f"# X\n\n{clean.LIVE_LINK}{notebooks.WEBSITE}notebooks/x.html): type.\n\nA promise."
    exercises = "## Exercises\n\n1. Which? It is folded twice. Why?"
    cells = [v4.new_markdown_cell(live), v4.new_markdown_cell(f"{exercises}\n\n{told}")]
    kept = answers.without_answers(v4.new_notebook(cells=cells)).cells
    assert [cell.source for cell in kept] == ["# X\n\nA promise.", exercises]


def test_only_the_answers_are_gone():
    question = "**Predict.** Which?\n\n<details><summary>Answer</summary>\n\nThe *second*.\n\n</details>\n\nGo on."
    other = "<details><summary>Why not the keys?</summary>\n\nSo.\n\n</details>"
    cells = [
        v4.new_markdown_cell(question),
        v4.new_code_cell("x = 1", metadata={"tags": ["answer"]}),
        v4.new_markdown_cell("<details><summary>Answer</summary>\n\nNo.\n\n</details>"),
        v4.new_code_cell('claims.state(f"""<details><summary>Answer</summary>{n}</details>""")'),
        v4.new_markdown_cell(other),
        v4.new_code_cell("y = 2", metadata={"tags": ["result"]}),
    ]
    book = v4.new_notebook(cells=cells)
    assert [cell.source for cell in answers.without_answers(book).cells] == [
        "**Predict.** Which?\n\nGo on.",
        other,
        "y = 2",
    ]
    assert book.cells[0].source == question  # the notebook itself is unchanged


def test_run_without_answers_is_another_run(suite, tmp_path):
    """It is not taken for the run with answers."""
    path = suite / "01_good.ipynb"
    book = notebooks.read(path)
    book.cells.append(v4.new_code_cell("print('a secret')", metadata={"tags": ["answer"]}))
    path.write_text(notebooks.nbformat.writes(book), encoding="utf-8")
    out = tmp_path / "out"
    assert tfviz("run", "01", "--out", out).exit_code == 0
    assert "a secret" in (out / "01_good.html").read_text(encoding="utf-8")
    again = tfviz("run", "01", "--out", out, "--without-answers")
    assert "01_good: ok" in again.output
    assert "a secret" not in (out / "01_good.html").read_text(encoding="utf-8")
    assert "a secret" not in (out / "01_good.ipynb").read_text(encoding="utf-8")
