"""The command `tfviz`, on small notebooks made here."""

import json
import re
from pathlib import Path

import nbformat
import pytest
import yaml
from click.testing import CliRunner
from nbformat.sign import NotebookNotary

from tfviz.suite import committed, gallery, notebooks, options
from tfviz.suite.cli import main
from tfviz.suite.result import Result
from tfviz.suite.run import run

ROOT = Path(__file__).parents[2]


def notebook(folder, name, *cells, parameters="steps = 3  # how many\nword = 'a'"):
    code = [nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})]
    code += [nbformat.v4.new_code_cell(source, metadata={"tags": tags}) for source, tags in cells]
    title = nbformat.v4.new_markdown_cell(f"# About {name} <b>\n\nA promise & more.")
    kernel = {"kernelspec": committed.KERNEL}
    nbformat.write(nbformat.v4.new_notebook(cells=[title, *code], metadata=kernel), folder / f"{name}.ipynb")


@pytest.fixture
def suite(tmp_path, monkeypatch):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    presets = {"cpu": {}, "smoke": {"01_good": {"steps": 1}}}
    (folder / notebooks.PRESETS).write_text(yaml.safe_dump(presets))
    notebook(folder, "01_good", ("print('did', steps, word)", ["result"]))
    notebook(folder, "02_bad", ("first = 1\nfirst", []), ("raise RuntimeError('on purpose')", []))
    notebook(folder, "03_late", ("seen = 3", []))
    monkeypatch.setattr(notebooks, "folder", lambda: folder)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    return folder


def tfviz(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)


def test_a_failing_notebook_is_named_with_its_cell_and_does_not_stop_the_others(suite, tmp_path):
    out = tmp_path / "out"
    ended = tfviz("run", "--out", out, "--jobs", 2)
    assert ended.exit_code == 1
    assert "02_bad: failed" in ended.output
    assert "cell In [4] (raise RuntimeError('on purpose')): RuntimeError: on purpose" in ended.output
    assert "2 of 3 notebooks ran" in ended.output
    assert ended.output.strip().endswith(str(out / "index.html"))
    assert json.loads((out / "03_late.json").read_text())["status"] == "ok"
    page = (out / "index.html").read_text()
    assert "About 01_good &lt;b&gt;" in page
    assert "on purpose" in page
    assert "did 3 a" in page
    assert "refresh" not in page


def test_a_second_run_does_only_what_is_new(suite, tmp_path):
    run = ["run", "01", "--out", tmp_path / "out"]
    assert "01_good: ok" in tfviz(*run).output
    assert "01_good: unchanged" in tfviz(*run).output
    assert "01_good: ok" in tfviz(*run, "-p", "steps=5").output
    assert "01_good: ok" in tfviz(*run, "--force").output
    notebook(suite, "01_good", ("print('other')", []))
    assert "01_good: ok" in tfviz(*run).output
    (tmp_path / "out" / "01_good.ipynb").unlink()
    assert "01_good: ok" in tfviz(*run).output


def test_parameters_come_from_the_cell_the_preset_and_the_command_in_this_order(suite):
    path = suite / "01_good.ipynb"
    assert notebooks.values(path, "cpu", {}) == {"steps": 3, "word": "a"}
    assert notebooks.values(path, "smoke", {}) == {"steps": 1, "word": "a"}
    assert notebooks.values(path, "smoke", {"steps": 7}) == {"steps": 7, "word": "a"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "09"], "there is no notebook '09'; there are: 01_good, 02_bad, 03_late"),
        (["run", "--preset", "huge"], "there is no preset 'huge'; there are: cpu, smoke"),
        (["run", "01", "-p", "stesp=3"], "no notebook here has a parameter 'stesp': 01_good has steps, word"),
        (["run", "01", "-p", "steps"], "write it as KEY=VALUE"),
        (["data", "fetch", "nothing"], "there are: pydoc, shakespeare"),
        (["data", "path", "nothing"], "there are: pydoc, shakespeare"),
    ],
)
def test_a_wrong_word_is_refused_before_anything_runs(suite, tmp_path, arguments, says):
    ended = tfviz(*arguments, *(["--out", tmp_path / "out"] if arguments[0] == "run" else []))
    assert ended.exit_code == 1
    assert says in ended.output
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_named_is_the_one_that_runs(suite, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    notebook(own, "01_good")
    assert notebooks.find([str(own / "01_good.ipynb")]) == [own / "01_good.ipynb"]
    with pytest.raises(LookupError, match=r"no file 'gone/01_good.ipynb'.*named without a folder: 01_good"):
        notebooks.find(["gone/01_good.ipynb"])
    with pytest.raises(ValueError, match="asked for twice: 01_good"):
        run([str(own / "01_good.ipynb"), "01_good"], "cpu", {}, tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "value"),
    [("word=ROMEO:", "ROMEO:"), ("word=a # b", "a # b"), ("word=no", "no"), ("word=010", "010"), ("steps=010", 10),
     ("rate=1e-2", 0.01), ("rate=2", 2.0), ("few=[4, 5]", [4, 5]), ("small=true", True), ("any=3", 3)],
)  # fmt: skip
def test_a_value_is_of_the_kind_of_the_default(tmp_path, text, value):
    notebook(tmp_path, "x", parameters="steps: int = 3\nword = 'a'\nrate = .1\nfew = [1]\nsmall = False\nany = None")
    name, _, given = text.partition("=")
    read = options.read(notebooks.defaults([tmp_path / "x.ipynb"]), name, given)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize("text", ["steps=abc", "steps=2.5", "rate=fast", "few=3", "few=[1", "small=1", "small=*a*"])
def test_a_value_of_another_kind_is_refused(tmp_path, text):
    notebook(tmp_path, "x", parameters="steps = 3\nrate = .1\nfew = [1]\nsmall = False")
    name, _, given = text.partition("=")
    with pytest.raises(ValueError, match=rf"^{name}=.*: in x {name} is .*, such as "):
        options.read(notebooks.defaults([tmp_path / "x.ipynb"]), name, given)


@pytest.mark.parametrize(("cell", "line"), [("a = 1\nb = 5 * x", 2), ("a, b = 1, 2", 1), ("a = 1\n\nb = = 2", 3)])
def test_parameters_that_are_no_literals_are_named_with_their_line(tmp_path, cell, line):
    notebook(tmp_path, "x", parameters=cell)
    with pytest.raises(ValueError, match=rf"x.ipynb, parameters, line {line}: write NAME = literal"):
        notebooks.parameters(tmp_path / "x.ipynb")


def test_an_output_folder_that_cannot_be_written_is_said_at_once(suite, tmp_path):
    (tmp_path / "file").write_text("")
    ended = tfviz("run", "01", "--out", tmp_path / "file" / "below")
    assert ended.exit_code == 1
    assert "choose another folder with --out" in ended.output


def test_what_ran_is_trusted(suite, tmp_path):
    tfviz("run", "01", "--out", tmp_path / "out")
    ran = nbformat.read(tmp_path / "out" / "01_good.ipynb", as_version=4)
    assert NotebookNotary().check_signature(ran)


def test_clean_keeps_text_and_pictures_and_says_what_was_run(suite, tmp_path):
    png = {"image/png": "aGk=", "text/html": "<b>", "text/plain": "hi"}
    bar = {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "bar"}
    v4 = nbformat.v4
    outputs = [
        v4.new_output("stream", name="stderr", text="50 %"),
        v4.new_output("stream", name="stdout", text="a"),
        v4.new_output("stream", name="stdout", text="b"),
        v4.new_output("display_data", data=png),
        v4.new_output("display_data", data=bar),
    ]
    cells = [
        v4.new_code_cell("n = 1", metadata={"tags": ["parameters"]}),
        v4.new_code_cell("# Parameters\nn = 5", metadata={"tags": ["injected-parameters"]}),
        v4.new_code_cell("n", outputs=outputs, execution_count=9, metadata={"papermill": {}, "tags": ["C01"]}),
    ]
    file = tmp_path / "ran.ipynb"
    nbformat.write(v4.new_notebook(cells=cells, metadata={"widgets": {}, "papermill": {}}), file)
    assert tfviz("clean", "--check", file).exit_code == 1
    assert tfviz("clean", file).exit_code == 0
    assert tfviz("clean", "--check", file).exit_code == 0
    kept = nbformat.read(file, as_version=4)
    assert kept.metadata.keys() == {"kernelspec", "language_info"}
    assert kept.cells[0].outputs[0].text == "The outputs below were made with: n = 5\n"
    assert kept.cells[1].metadata == {"tags": ["C01"]}
    assert [output.get("text") or sorted(output.data) for output in kept.cells[1].outputs] == [
        "ab",
        ["image/png", "text/plain"],
    ]


@pytest.mark.parametrize(
    "content", ["{}", "junk", '{"cells": 3}', '{"nbformat": 4, "nbformat_minor": 5, "cells": [{}]}']
)
def test_clean_names_what_is_no_notebook(tmp_path, content):
    (tmp_path / "x.ipynb").write_text(content)
    ended = tfviz("clean", tmp_path / "x.ipynb")
    assert ended.exit_code == 1
    assert "x.ipynb is not a notebook: " in ended.output
    assert (tmp_path / "x.ipynb").read_text() == content


def test_doctor_says_that_a_data_folder_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("TFVIZ_DATA", str(tmp_path / "typo"))
    assert "typo is no folder" in tfviz("doctor").output


def test_the_pages_ask_nothing_of_the_network(suite, tmp_path):
    tfviz("run", "01", "--out", tmp_path)
    for page in ("index.html", "01_good.html"):
        text = (tmp_path / page).read_text()
        assert 'src="http' not in text
        assert 'href="http' not in text
        assert "@import" not in text


def test_a_page_shows_of_a_progress_bar_what_it_said_last(tmp_path):
    cell = nbformat.v4.new_code_cell("x", execution_count=1)
    cell.outputs = [nbformat.v4.new_output("stream", name="stderr", text=f"\r{share} % done") for share in (0, 50, 100)]
    gallery.page(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "page.html")
    assert [word for word in ("0 %", "50 %", "100 %") if f">{word}" in (tmp_path / "page.html").read_text()] == [
        "100 %"
    ]


def test_the_gallery_folds_the_questions_of_its_notebooks_and_writes_them_plainly(tmp_path):
    title = nbformat.v4.new_markdown_cell("# Memory\n\nIt lasts.\n\n**Questions:** Why *could* `x` < y? And then?")
    source = nbformat.writes(nbformat.v4.new_notebook(cells=[title]))
    gallery.write([Result("05_memory", "cpu", {}, "", source=source)], tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    folded = page.partition("<details class=questions>")[2].partition("</details>")[0]
    assert "<li>Why could x &lt; y?</li><li>And then?</li>" in folded
    assert page.index("<details") < page.index("<article>")


def test_gallery_shows_the_picture_that_is_tagged():
    cells = [nbformat.v4.new_code_cell("x", metadata={"tags": tags}) for tags in (["thumbnail"], [])]
    for cell, data in zip(cells, ("Zmlyc3Q=", "bGFzdA==")):
        cell.outputs = [nbformat.v4.new_output("display_data", data={"image/png": data})]
    assert gallery._thumbnail(nbformat.v4.new_notebook(cells=cells)) == "Zmlyc3Q="


def test_doctor_and_data_run_without_a_network(monkeypatch, tmp_path):
    monkeypatch.setenv("TFVIZ_CACHE", str(tmp_path))
    monkeypatch.delenv("TFVIZ_DATA", raising=False)
    assert "torch" in tfviz("doctor").output
    listed = tfviz("data", "list").output
    assert "pydoc        embedded" in listed
    assert "shakespeare  absent" in listed
    assert tfviz("data", "path").output.strip() == str(tmp_path)
    assert tfviz("data", "verify").exit_code == 0


def test_the_environments_ask_for_the_same():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    assert "-e ." in pip
    pinned = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    names = {requirement.split(">")[0].split("<")[0].split("=")[0].lower().replace("_", "-") for requirement in asked}
    assert names <= {name.replace("_", "-") for name in pinned}
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text().split()


def test_a_folded_answer_stays_folded_in_the_page():
    from tfviz.suite.html_exporter import Exporter

    told = "<details><summary>Answer</summary>\n\nIt is *this*.\n\n</details>\n\nAfter."
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(told)])
    page, _ = Exporter(embed_images=True).from_notebook_node(book)
    folded = re.search(r"<details><summary>Answer</summary>(.*?)</details>(.*)", page, re.DOTALL)
    assert "It is <em>this</em>." in folded[1]
    assert "After." in folded[2]
