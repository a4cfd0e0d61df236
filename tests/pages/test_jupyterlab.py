"""Views in JupyterLab, in notebooks run by papermill, and in nbconvert's HTML, tested in Chromium."""

import subprocess
import sys
import time

import nbformat
import papermill
import pytest
from browser import press, wait_until_drawn
from jupyterlab_server import IDLE, begin, kernels, nbconverted, run_all, run_by_papermill, save, shut_down, write

from tfviz.lessons import lesson_page, notebooks

pytest_plugins = ["browser", "jupyterlab_server"]
LESSON = "12"  # run by JupyterLab's buttons; tests/notebooks runs all, by papermill
MAPS = """import torch
from tfviz import look, view
scores = torch.randn(3, 4, 6, 6, generator=torch.Generator().manual_seed(1)) * 2
allowed = torch.ones(6, 6).tril().bool()
weights = scores.masked_fill(~allowed, -torch.inf).softmax(-1)
maps = look.AttentionMaps(weights, ["the", "cat", "sat", "on", "a", "mat"], mask=allowed)"""
LIVE = """live = view.live(maps, mode="head", layer=1, max_bytes=900)
live.observe(lambda to: open("told.txt", "a").write(f"{to['name']} {to['new']}\\n"), ["head", "locked_rows"])
live"""
NOTEBOOKS = {
    "views": [MAPS, "view.heads(maps)", LIVE, "live.head = 2\nlive.locked_columns = [1]"],
    "live": [MAPS, "import time", LIVE, "live.head = 2\nlive.locked_columns = [1]"],
    "fixed": [MAPS, "view.heads(maps)", "view.head(maps, 1, 2)", "view.links(maps, 0, [1, 2])"],
}


def make_maps():
    """What `MAPS` makes."""
    made = {}
    exec(MAPS, made)
    return made["maps"]


@pytest.fixture(scope="module")
def notebook_folder(folder):
    """A folder of notebooks: some not run yet, one that papermill ran, signed and not."""
    for name, cells in NOTEBOOKS.items():
        write(folder, name, cells)
    run_by_papermill(folder / "fixed.ipynb")
    return folder


def read_code_cells(file):
    """The cells with code as they lie on the disk, or none while they are being written."""
    try:
        return [
            cell
            for cell in nbformat.reads(file.read_text(encoding="utf-8"), as_version=4).cells
            if cell.cell_type == "code"
        ]
    except ValueError:
        return []


def check_head_view(page, view, maps, layer, head):
    """A view of one head answers to keys: its values are the tensor's, and another head is another picture."""
    canvas = view.locator("canvas")
    canvas.focus()
    press(page, "0", *["ArrowUp"] * 6, *["ArrowLeft"] * 6)
    for row in range(4):
        said = view.locator(".status").text_content()
        weight = float(maps[layer, head][row, 0])
        assert float(said.split()[-1]) == pytest.approx(weight, abs=0.004 + 0.005), said  # stored to 0.004, two digits
        press(page, "ArrowDown")
    press(page, *["ArrowUp"] * 6, "ArrowRight")
    assert "may not look" in view.locator(".status").text_content()
    before = canvas.screenshot()
    press(page, "]")
    page.wait_for_timeout(300)
    assert canvas.screenshot() != before
    press(page, "[")
    page.wait_for_timeout(300)
    assert canvas.screenshot() == before


def test_heads_view_answers_keys_after_run_all(notebook, notebook_folder):
    page, maps = notebook("views"), make_maps()
    run_all(page)
    views = page.locator(".tfviz")
    assert views.locator("h3").all_text_contents() == ["3 layers × 4 heads", "Layer 1, head 2"]
    views.nth(0).locator("canvas").first.focus()
    press(page, "ArrowRight", "ArrowDown", "Enter")
    page.wait_for_timeout(300)
    assert views.nth(0).locator("h3").text_content() == "Layer 1, head 1"
    check_head_view(page, views.nth(0), maps, 1, 1)
    press(page, "m", "a", "d", "d", "c", "Escape", "Escape")  # in JupyterLab's command mode these would change cells
    assert page.locator(".jp-Cell").count() == len(NOTEBOOKS["views"])
    assert page.locator(".jp-MarkdownCell").count() == 0


def test_live_view_and_kernel_stay_in_sync(notebook, notebook_folder):
    page, maps = notebook("live"), make_maps()
    (notebook_folder / "told.txt").unlink(missing_ok=True)
    run_all(page)
    live = page.locator(".tfviz").first
    assert live.locator("h3").text_content() == "Layer 1, head 2"  # the cell after it said so
    page.wait_for_timeout(500)  # the head in full is on its way
    check_head_view(page, live, maps, 1, 2)
    press(page, "]")
    live.locator("canvas").focus()
    press(page, "ArrowDown", "ArrowDown", "Enter")
    for _ in range(50):
        told = (notebook_folder / "told.txt").read_text(encoding="utf-8").splitlines()
        if told[-1].startswith("locked_rows [") and told[-1] != "locked_rows []":
            break
        time.sleep(0.1)
    assert told[0] == "head 2"
    assert told[-2] == "head 3"
    assert told[-1] == "locked_rows [2]"


@pytest.mark.parametrize("signed", [True, False])
def test_papermill_notebook_is_interactive_only_if_signed(notebook, signed):
    page, maps = notebook("signed" if signed else "unsigned"), make_maps()
    views, pictures = page.locator(".tfviz[data-alive]"), page.locator(".jp-OutputArea-output img")
    (views if signed else pictures).nth(2).wait_for()
    page.wait_for_timeout(300)
    if signed:
        assert views.locator("h3").all_text_contents() == ["3 layers × 4 heads", "Layer 1, head 2", "Heads 0.1, 0.2"]
        check_head_view(page, views.nth(1), maps, 1, 2)
    else:
        assert views.count() == 0
        assert pictures.count() == 3
        assert all(width > 100 for width in pictures.evaluate_all("all => all.map(image => image.naturalWidth)"))


def test_lesson_runs_without_errors(notebook, notebook_folder, lab):
    """At smoke size: every cell ran, none with an error, and nobody complained (see `notebook`)."""
    (lesson,) = notebooks.find([LESSON])
    mine, values = notebook_folder / lesson.name, notebooks.values(lesson, "smoke", {})
    prepared = papermill.execute_notebook(lesson, None, values, prepare_only=True, progress_bar=False)
    for cell in prepared.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.write(prepared, mine)
    page = notebook(lesson.stem)
    begin(page)
    for number in range(200):
        page.wait_for_timeout(500)
        page.locator(IDLE).wait_for(timeout=300_000)  # one cell, on a machine that does other things too
        save(page)
        cells = read_code_cells(mine)
        if cells and all(cell.execution_count for cell in cells):
            break
        if number % 20 == 19 and not any(cell.execution_count for cell in cells):
            print("nothing ran:", page.locator(".jp-InputPrompt").all_inner_texts()[:9], kernels(lab))
            page.close()  # a page that has lost its kernel on a slow machine: a reader would open it anew
            shut_down(lab)
            page = notebook(lesson.stem)
            begin(page)
    assert cells
    assert [cell.source for cell in cells if not cell.execution_count] == []
    assert [output.ename for cell in cells for output in cell.outputs if output.output_type == "error"] == []


def test_lesson_page_has_interactive_views(notebook_folder, new_page):
    lesson_page.write(nbformat.read(notebook_folder / "unsigned.ipynb", as_version=4), notebook_folder / "page.html")
    page, maps = new_page(width=1300), make_maps()
    page.goto((notebook_folder / "page.html").as_uri())
    page.locator(".tfviz[data-alive] canvas").nth(2).wait_for()
    wait_until_drawn(page)
    check_head_view(page, page.locator(".tfviz").nth(1), maps, 1, 2)


def test_plain_nbconvert_html_has_interactive_views(notebook_folder, chromium):
    with nbconverted(notebook_folder, chromium) as page:
        page.locator(".tfviz[data-alive] canvas").nth(2).wait_for()
        wait_until_drawn(page)
        check_head_view(page, page.locator(".tfviz").nth(1), make_maps(), 1, 2)


def test_views_of_fixed_maps_pass_strict_nbval(notebook_folder):
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", "unsigned.ipynb"]
    done = subprocess.run(command, cwd=notebook_folder, capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stdout
    assert f"{len(NOTEBOOKS['fixed'])} passed" in done.stdout
