"""`tfviz clean`: what it keeps of a notebook, and the pictures it writes for the README."""

import base64
import io
import json

import nbformat
import numpy as np
import pytest
from PIL import Image
from small_notebooks import suite, tfviz, v4, write  # noqa: F401

from tfviz.lessons import clean
from tfviz.lessons.clean import darken


def png(colours, palette=False):
    picture = Image.fromarray(np.array([colours], dtype=np.uint8))
    file = io.BytesIO()
    (picture.quantize(8) if palette else picture).save(file, "PNG")
    return file.getvalue()


def pixels(content):
    return np.array(Image.open(io.BytesIO(content)).convert("RGB"))[0].tolist()


@pytest.fixture
def executed_notebook(tmp_path):
    """A notebook that papermill ran, with a tagged picture."""
    data = {"image/png": base64.b64encode(png([[255, 255, 255]])).decode(), "text/html": "<b>", "text/plain": "hi"}
    outputs = [
        v4.new_output("stream", name="stderr", text="50%"),
        v4.new_output("stream", name="stdout", text="a"),
        v4.new_output("stream", name="stdout", text="b"),
        v4.new_output("display_data", data={**data, clean.WIDGET_MIME_TYPE: {}}),
        v4.new_output("display_data", data={clean.WIDGET_MIME_TYPE: {}, "text/plain": "bar"}),
        v4.new_output("execute_result", data={"text/html": "<i>"}, execution_count=9),
    ]
    cells = [
        v4.new_code_cell("n = 1", metadata={"tags": ["parameters"]}),
        v4.new_code_cell("# Parameters\nn = 5\nm = 6", metadata={"tags": ["injected-parameters"]}, execution_count=8),
        v4.new_code_cell("n", outputs=outputs, execution_count=9, metadata={"papermill": {}, "tags": ["picture:a"]}),
    ]
    file = tmp_path / "ran.ipynb"
    nbformat.write(v4.new_notebook(cells=cells, metadata={"widgets": {}, "tfviz": {}}), file)
    return file


def test_parameters_are_wrapped_between_values(executed_notebook):
    notebook = nbformat.read(executed_notebook, as_version=4)
    sentence = f'sentence = "{" a-word" * 12}"'
    notebook.cells[1].source = "\n".join(["# Parameters", sentence, *(f"value_{i} = {i}" for i in range(12))])
    text = clean.clean_notebook(notebook).cells[0].outputs[0].text
    lines = text.splitlines()
    assert lines[0] == f"The outputs below were made with: {sentence},"
    assert max(map(len, lines[1:])) <= 100
    assert lines[1].startswith("value_0 = 0, value_1 = 1, ")
    assert " ".join(lines[1:]) == ", ".join(f"value_{i} = {i}" for i in range(12))


def test_clean_keeps_text_and_pictures_and_states_parameters(executed_notebook, tmp_path):
    before = executed_notebook.read_text(encoding="utf-8")
    assert tfviz("clean", executed_notebook, "--to", tmp_path / "to").exit_code == 0
    assert executed_notebook.read_text(encoding="utf-8") == before
    assert tfviz("clean", executed_notebook).output == f"cleaned {executed_notebook}\n"
    assert tfviz("clean", executed_notebook).output == ""
    assert executed_notebook.read_text(encoding="utf-8") == (tmp_path / "to" / "ran.ipynb").read_text(encoding="utf-8")
    kept = nbformat.read(executed_notebook, as_version=4)
    assert kept.metadata.keys() == {"kernelspec", "language_info"}
    parameters, cell = kept.cells
    assert parameters.outputs[0].text == "The outputs below were made with: n = 5, m = 6\n"
    assert cell.metadata == {"tags": ["picture:a"]}
    assert (cell.execution_count, cell.outputs[-1].execution_count) == (1, 1)
    found = [each.get("text") or sorted(each.data) for each in cell.outputs]
    assert found == ["ab", ["image/png", "text/plain"], ["text/html"]]


def test_clean_adds_one_live_link_to_lesson(suite, tmp_path):  # noqa: F811
    file = suite / "01_good.ipynb"
    for _ in range(2):
        tfviz("clean", file)
    title, link, promise, *_ = nbformat.read(file, as_version=4).cells[0].source.split("\n\n")
    assert link.startswith(clean.LIVE_LINK)
    assert "notebooks/01_good.html" in link
    assert promise == "A promise & more."
    assert clean.LIVE_LINK not in clean.without_live_link("\n\n".join([title, link, promise]))


def test_pictures_are_written_for_light_and_dark_pages(executed_notebook, tmp_path):
    tfviz("clean", executed_notebook, "--pictures", tmp_path / "docs")
    drawn = {file.name: pixels(file.read_bytes()) for file in (tmp_path / "docs").iterdir()}
    assert drawn == {"a.png": [[255, 255, 255]], "a-dark.png": [[18, 18, 18]]}


@pytest.mark.parametrize("palette", [True, False])
def test_darken_matches_browser_filter(palette):
    """The numbers were read from a Chromium's screenshot of `filter: invert(93%) hue-rotate(180deg)`."""
    light = [[255, 255, 255], [0, 0, 0], [200, 30, 60]]
    browser = [[18, 18, 18], [237, 237, 237], [255, 145, 171]]
    assert np.abs(np.array(pixels(darken(png(light, palette)))) - browser).max() <= 1


@pytest.mark.parametrize("name", ["../../x", "/x", "", "..", "a\\b", "a" * 999])
def test_picture_tag_with_invalid_file_name_is_rejected(executed_notebook, tmp_path, name):
    executed_notebook.write_text(
        executed_notebook.read_text(encoding="utf-8").replace("picture:a", f"picture:{json.dumps(name)[1:-1]}"),
        encoding="utf-8",
    )
    before = executed_notebook.read_text(encoding="utf-8")
    ended = tfviz("clean", executed_notebook, "--pictures", tmp_path / "docs")
    assert ended.exit_code == 1
    assert "names no file" in ended.output
    assert executed_notebook.read_text(encoding="utf-8") == before
    assert not (tmp_path / "docs").exists()


def test_clean_changes_nothing_if_any_notebook_is_invalid(executed_notebook, tmp_path):
    (tmp_path / "b.ipynb").write_text("", encoding="utf-8")
    (tmp_path / "other").mkdir()
    twin = write(tmp_path / "other", "ran")
    before = executed_notebook.read_text(encoding="utf-8")
    for more in ([tmp_path / "b.ipynb"], [twin, "--to", tmp_path / "to"], [tmp_path / "gone.ipynb"]):
        assert tfviz("clean", executed_notebook, *more).exit_code == 1
        assert executed_notebook.read_text(encoding="utf-8") == before
    assert not (tmp_path / "to").exists()
