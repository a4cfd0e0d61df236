"""Every notebook: its skeleton, papermill at smoke size, nbval on what is committed."""

import html
import io
import json
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import nbformat
import papermill
import pytest
from PIL import Image

from tfviz.suite import committed, gallery, notebooks, parameters
from tfviz.suite.dark_images import darken
from tfviz.suite.run import run

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
}


def read(book):
    return nbformat.read(book, as_version=4)


def code(book):
    return [cell for cell in read(book).cells if cell.cell_type == "code"]


def tags(cell):
    return cell.metadata.get("tags", [])


def nbval(*paths):
    command = [sys.executable, "-m", "pytest", "-q", "--nbval-lax", "-p", "no:cacheprovider", "-c", "/dev/null"]
    return subprocess.run([*command, *map(str, paths)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """Copies with smoke parameters put in and the committed outputs kept."""
    folder = tmp_path_factory.mktemp("smoke")
    for book in BOOKS:
        values = notebooks.values(book, "smoke", {})
        papermill.execute_notebook(book, folder / book.name, values, prepare_only=True, progress_bar=False)
    return folder


def test_papermill_runs_every_notebook_at_smoke_size_and_makes_a_gallery(tmp_path):
    results = run([], "smoke", {"seed": 3}, tmp_path, jobs=2, tell=lambda line: None)
    assert {result.name: result.error for result in results} == dict.fromkeys(NAMES, "")
    assert all(result.result for result in results)
    page = (tmp_path / "index.html").read_text()
    assert page.count("data:image/png;base64,") == len(BOOKS)
    for book in BOOKS:
        for question in gallery.questions(read(book)):
            assert f'<li><a href="{book.stem}.html">{html.escape(question)}</a></li>' in page


def test_nbval_finds_the_committed_outputs_again(smoke):
    books = sorted(smoke.glob("*.ipynb"))
    with ThreadPoolExecutor(2) as pool:
        for ended in pool.map(nbval, books):
            assert ended.returncode == 0, ended.stdout[-3000:]


def test_nbval_fails_when_a_number_is_wrong(smoke, tmp_path):
    broken = read(smoke / "01_attention_from_nothing.ipynb")
    cell = next(cell for cell in broken.cells if "0.6000" in json.dumps(cell.get("outputs", "")))
    cell.outputs[0].data["text/plain"] = cell.outputs[0].data["text/plain"].replace("0.6000", "0.6001")
    broken.cells = broken.cells[: broken.cells.index(cell) + 1]
    nbformat.write(broken, tmp_path / "broken.ipynb")
    assert nbval(tmp_path / "broken.ipynb").returncode == 1


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_the_committed_copy_is_executed_light_and_clean(book):
    assert all(cell.execution_count for cell in code(book))
    outputs = [output for cell in code(book) for output in cell.outputs]
    assert not any(output.output_type == "error" for output in outputs)
    assert outputs[0].text.startswith("The outputs below were made with: ")
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 3
    assert book.stat().st_size < 500_000
    assert nbformat.writes(committed.clean(read(book))) + "\n" == book.read_text(encoding="utf-8")


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_the_skeleton(book):
    cells = read(book).cells
    assert cells[0].source.startswith("# ")
    parameters = [cell for cell in cells if "parameters" in tags(cell)]
    assert cells.index(parameters[0]) == 1
    assert 1 <= len(notebooks.parameters(book)) <= 10
    assert all("#" in line for line in parameters[0].source.splitlines())
    assert len(list(filter(None, cells[2].source.splitlines()))) <= 6
    assert "## Exercises" in "\n".join(cell.source for cell in cells)
    assert "## References" in cells[-1].source
    answers = [cell for cell in cells if "answer" in tags(cell)]
    assert len(answers) == 3
    assert all(answer.metadata.jupyter.source_hidden for answer in answers)
    assert sum("nbval-check-output" in tags(cell) for cell in cells) >= 6


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_more_words_than_code_and_no_plumbing(book):
    prose = sum(len(cell.source.split()) for cell in read(book).cells if cell.cell_type == "markdown")
    lines = [
        line for cell in code(book) if "answer" not in tags(cell) for line in cell.source.splitlines() if line.strip()
    ]
    assert prose / len(lines) >= 6
    for cell in code(book):
        for body in re.findall(r"^def .*\n((?:[ \t]+.*\n?|\n)*)", cell.source, flags=re.M):
            assert len(body.strip().splitlines()) <= 10


def test_the_pictures_of_the_readme_are_those_of_the_notebooks_on_light_and_on_dark_pages():
    drawn = {f"{name}.png": png for book in BOOKS for name, png in committed.pictures(read(book)).items()}
    dark = {name.replace(".png", "-dark.png"): pixels(darken(png)) for name, png in drawn.items()}
    files = {file.name: file.read_bytes() for file in DOCS.glob("*.png")}
    assert {name: png for name, png in files.items() if name not in dark} == drawn
    assert {name: pixels(png) for name, png in files.items() if name in dark} == dark
    readme = (DOCS.parent / "README.md").read_text()
    shown = re.findall(r'srcset="docs/([^"]+)"><img src="docs/([^"]+)"', readme)
    assert {light.replace(".", "-dark.") for _, light in shown} == {dark for dark, _ in shown}
    moving = {"write.webp"}  # `docs/record.py` films it
    assert {light for _, light in shown} == set(re.findall(r'src="docs/([^"]+)"', readme)) == drawn.keys() | moving
    assert all((DOCS / name).is_file() for pair in shown for name in pair)


def pixels(png):
    return Image.open(io.BytesIO(png)).convert("RGB").tobytes()


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_a_committed_lesson_leads_to_its_living_page(book):
    title, link, *_ = read(book).cells[0].source.split("\n\n")
    assert title.startswith("# ")
    assert f"({notebooks.SITE}notebooks/{book.stem}.html)" in link


def test_every_concept_has_a_cell_that_computes_it():
    assert {number for numbers in CONCEPTS.values() for number in numbers} == set(range(1, 64))
    assert list(CONCEPTS) == NAMES
    missing = []
    for name, book in zip(NAMES, BOOKS):
        found = Counter(tag for cell in code(book) for tag in tags(cell))
        print(f"{name:26}", ", ".join(f"C{number:02} in {found[f'C{number:02}']}" for number in CONCEPTS[name]))
        missing += [(name, number) for number in CONCEPTS[name] if not found[f"C{number:02}"]]
    assert not missing


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_a_notebook_says_what_it_answers(book):
    assert len(gallery.questions(read(book))) >= 3


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_what_a_notebook_points_to_is_there(book):
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
def test_presets_name_only_parameters_there_are(book):
    for preset in notebooks.presets().values():
        assert preset.get(book.stem, {}).keys() <= notebooks.parameters(book).keys()


@pytest.mark.parametrize("book", BOOKS, ids=NAMES)
def test_every_parameter_is_looked_at_in_the_setup_and_every_preset_passes(book):
    assert f'parameters.check("{book.stem}", globals())' in read(book).cells[2].source
    for preset in notebooks.presets():
        values = notebooks.values(book, preset, {"corpus": "pydoc", "prompt": "The "})  # others would be fetched
        assert parameters.RULES[book.stem].keys() == values.keys()
        parameters.check(book.stem, values)
