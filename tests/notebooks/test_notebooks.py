"""Every notebook: its structure, execution by papermill at smoke size, and nbval on the committed outputs."""

import html
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import nbformat
import papermill
import pytest
from PIL import Image

from tfviz.lessons import claims, clean, course, install_cell, notebooks, parameters, prose
from tfviz.lessons.clean import darken
from tfviz.lessons.runner import run

BOOKS = notebooks.find()
DOCS = notebooks.folder().parent / "docs"
NAMES = [book.stem for book in BOOKS]

# The concepts of the field that the lessons must show, and the notebook that does; a C with its number is a cell's tag.
CONCEPTS = {
    "01_attention_from_nothing": [1, 2, *range(4, 10), 11, 12],
    "02_recommender": [3],
    "03_masks": [15, 16, 17, 54],
    "04_positions": [18, 19, 20],
    "05_recurrent": [21, 22, 23, 24, 25, 26, 27, 28, 32],
    "06_alignment": [29, 30, 31, 10, 13],
    "07_transformer": [34, 35, 37, 38],
    "08_training_it": [36, 39],
    "09_decoding_and_cost": [40, 41, 43],
    "10_classifier": [44, 42],
    "11_bert": [46, 49, 50],
    "12_gpt": [45, 46, 47, 48],
    "13_long_context": [52, 53, 14],
    "14_cost": [33, 40, 55, 56, 57, 58],
    "15_side_by_side": [42, 51, 59, 60, 61, 62],
    "16_your_model": [63],
    "17_investigation": [42],
}


def read(book):
    return nbformat.read(book, as_version=4)


def code(book):
    return [cell for cell in read(book).cells if cell.cell_type == "code"]


def tags(cell):
    return cell.metadata.get("tags", [])


def nbval(*paths, replay=None):
    """Run nbval on notebooks; with `replay`, on the outputs of the executed copies in that folder."""
    command = [sys.executable, "-m", "pytest", "-q", "--nbval-lax", "-p", "no:cacheprovider", "-c", os.devnull]
    environment = dict(os.environ)
    if replay:
        command += ["-p", "replay"]
        here = f"{Path(__file__).parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        environment |= {"REPLAY": str(replay), "PYTHONPATH": here}
    return subprocess.run([*command, *map(str, paths)], capture_output=True, encoding="utf-8", env=environment)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Copies with smoke parameters put in and the committed outputs kept."""
    folder = tmp_path_factory.mktemp("prepared")
    for book in BOOKS:
        values = notebooks.values(book, "smoke", {"seed": 3})
        papermill.execute_notebook(book, folder / book.name, values, prepare_only=True, progress_bar=False)
    return folder


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The folder of the lessons as `tfviz run` leaves them at smoke size, and their runs."""
    out = tmp_path_factory.mktemp("executed")
    return out, run([], "smoke", {"seed": 3}, out, jobs=2)


def test_papermill_runs_every_notebook_and_makes_gallery(executed):
    out, runs = executed
    assert {each.name: each.outcome.error for each in runs} == dict.fromkeys(NAMES, "")
    assert all(each.outcome.summary for each in runs)
    page = html.unescape((out / "index.html").read_text(encoding="utf-8"))
    assert page.count("data:image/png;base64,") == len(BOOKS)
    for book in BOOKS:
        for question in course.questions(read(book)):
            assert f'<li><a href="{book.stem}.html">{question}</a></li>' in page


def test_nbval_accepts_outputs_of_papermill_run(prepared, executed):
    ended = nbval(*sorted(prepared.glob("*.ipynb")), replay=executed[0])
    assert ended.returncode == 0, ended.stdout[-3000:]
    assert f"{sum(len(code(prepared / book.name)) for book in BOOKS)} passed" in ended.stdout


def test_nbval_fails_when_a_number_is_wrong(prepared, executed, tmp_path):
    broken = read(prepared / "01_attention_from_nothing.ipynb")
    cell = next(cell for cell in broken.cells if "0.6000" in json.dumps(cell.get("outputs", "")))
    cell.outputs[0].data["text/plain"] = cell.outputs[0].data["text/plain"].replace("0.6000", "0.6001")
    nbformat.write(broken, tmp_path / "01_attention_from_nothing.ipynb")
    ended = nbval(tmp_path / "01_attention_from_nothing.ipynb", replay=executed[0])
    assert ended.returncode == 1
    assert "1 failed" in ended.stdout
    for number, status in (("0.6000", 0), ("0.6001", 1)):  # in a kernel, up to that cell
        cell.outputs[0].data["text/plain"] = re.sub(r"0\.600[01]", number, cell.outputs[0].data["text/plain"])
        broken.cells = broken.cells[: broken.cells.index(cell) + 1]
        nbformat.write(broken, tmp_path / "kernel.ipynb")
        ended = nbval(tmp_path / "kernel.ipynb")
        assert ended.returncode == status, ended.stdout[-3000:]


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_committed_notebook_is_executed_small_and_clean(book):
    assert all(cell.execution_count for cell in code(book))
    outputs = [output for cell in code(book) for output in cell.outputs]
    assert not any(output.output_type == "error" for output in outputs)
    assert outputs[0].text.startswith("The outputs below were made with: ")
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 3
    assert book.stat().st_size < 600_000
    assert nbformat.writes(clean.clean_notebook(read(book))) + "\n" == book.read_text(encoding="utf-8")


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_notebook_has_required_structure(book):
    cells = read(book).cells
    assert cells[0].source.startswith("# ")
    parameters = [cell for cell in cells if "parameters" in tags(cell)]
    assert [cells.index(cell) for cell in cells if "install" in tags(cell)] == [1]
    assert cells[1].source == install_cell.SOURCE
    assert cells[1].metadata.jupyter.source_hidden
    assert cells.index(parameters[0]) == 2
    assert 1 <= len(notebooks.parameters(book)) <= 10
    assert all("#" in line for line in parameters[0].source.splitlines())
    assert len(list(filter(None, cells[3].source.splitlines()))) <= 6
    assert "## Exercises" in "\n".join(cell.source for cell in cells)
    assert "## References" in cells[-1].source
    answers = [cell for cell in cells if "answer" in tags(cell)]
    assert len(answers) == 3
    assert all(answer.metadata.jupyter.source_hidden for answer in answers)
    assert sum("nbval-check-output" in tags(cell) for cell in cells) >= 6


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_notebook_is_mostly_prose_with_short_functions(book):
    sentences = [cell for cell in read(book).cells if cell.cell_type == "markdown" or "claims" in tags(cell)]
    words = sum(len(cell.source.split()) for cell in sentences)
    shown = [cell for cell in code(book) if not {"answer", "claims", "install"} & set(tags(cell))]
    lines = [line for cell in shown for line in cell.source.splitlines() if line.strip()]
    assert words / len(lines) >= 6
    for cell in code(book):
        for body in re.findall(r"^def .*\n((?:[ \t]+.*\n?|\n)*)", cell.source, flags=re.M):
            assert len(body.strip().splitlines()) <= 10


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_every_figure_in_prose_is_bound_to_code(book):
    assert [each for each in prose.quantities(read(book)) if not each.bound] == []


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_claims_hold_in_committed_run(book):
    cells = [cell for cell in code(book) if "claims.check(" in cell.source]
    assert cells
    assert all("claims" in tags(cell) and cell.metadata.jupyter.source_hidden and cell.outputs for cell in cells)
    assert claims.failed(read(book)) == []


def test_readme_pictures_match_notebooks():
    drawn = {f"{name}.png": png for book in BOOKS for name, png in clean.tagged_pictures(read(book)).items()}
    dark = {name.replace(".png", "-dark.png"): pixels(darken(png)) for name, png in drawn.items()}
    files = {file.name: file.read_bytes() for file in DOCS.glob("*.png")}
    assert {name: png for name, png in files.items() if name not in dark} == drawn
    assert {name: pixels(png) for name, png in files.items() if name in dark} == dark
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r'srcset="docs/([^"]+)"><img src="docs/([^"]+)"', readme)
    assert {light.replace(".", "-dark.") for _, light in shown} == {dark for dark, _ in shown}
    moving = {"write.webp"}  # `docs/record.py` films it
    assert {light for _, light in shown} == set(re.findall(r'src="docs/([^"]+)"', readme)) == drawn.keys() | moving
    assert all((DOCS / name).is_file() for pair in shown for name in pair)


def pixels(png):
    return Image.open(io.BytesIO(png)).convert("RGB").tobytes()


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_committed_lesson_links_to_live_page(book):
    title, link, *_ = read(book).cells[0].source.split("\n\n")
    assert title.startswith("# ")
    assert f"({notebooks.WEBSITE}notebooks/{book.stem}.html)" in link


def test_every_concept_has_a_tagged_cell():
    assert {number for numbers in CONCEPTS.values() for number in numbers} == set(range(1, 64))
    assert list(CONCEPTS) == NAMES
    missing = []
    for name, book in zip(NAMES, BOOKS):
        found = Counter(tag for cell in code(book) for tag in tags(cell))
        print(f"{name:26}", ", ".join(f"C{number:02} in {found[f'C{number:02}']}" for number in CONCEPTS[name]))
        missing += [(name, number) for number in CONCEPTS[name] if not found[f"C{number:02}"]]
    assert not missing


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_notebook_has_at_least_three_questions(book):
    assert len(course.questions(read(book))) >= 3


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_notebook_references_are_complete(book):
    """Other notebooks, and each of its references: none that is missing, none that nobody points to."""
    cells = read(book).cells
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    prose += "\n".join(re.findall(r"^# .*", "\n".join(cell.source for cell in cells if "answer" in tags(cell)), re.M))
    assert set(re.findall(r"`(\d\d_\w+)`", prose)) <= {*NAMES}
    groups = re.findall(r"\[(\d+(?:, (?:\d+|section [^\]]*|table [^\]]*))*)\]", re.sub(r"`[^`]*`|\$[^$]*\$", "", prose))
    pointed = {number for group in groups for number in re.findall(r"^\d+|(?<=, )\d+", group)}
    assert pointed == set(re.findall(r"^(\d+)\. ", cells[-1].source, re.M))
    assert "TODO" not in prose


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_presets_set_existing_parameters_only(book):
    for preset in notebooks.presets().values():
        assert preset.get(book.stem, {}).keys() <= notebooks.parameters(book).keys()


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_setup_checks_parameters_and_every_preset_passes(book):
    assert f'parameters.check("{book.stem}", globals())' in read(book).cells[3].source
    for preset in notebooks.presets():
        values = notebooks.values(book, preset, {"corpus": "pydoc", "prompt": "The "})  # others would be fetched
        assert parameters.LESSON_CHECKS[book.stem].keys() <= values.keys()
        parameters.check(book.stem, values)
