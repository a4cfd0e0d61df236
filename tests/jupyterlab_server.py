"""A JupyterLab server to open notebooks in, with no network but the loopback.

PYTEST_DONT_REWRITE: test modules name this as their plugin, and import from it.
"""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager, suppress

import nbformat
import pytest
from browser import wait_until_drawn
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_notebook

KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
LOOPBACK = "127.0.0.1"
IDLE = ".jp-Notebook-ExecutionIndicator[data-status='idle']"
HAS_KERNEL = """async () => (await (await fetch('/api/sessions?token=t')).json()).some(
    ({ kernel }) => kernel?.execution_state === 'idle')"""  # JupyterLab asks which one to take as long as it has none


def write(folder, name, cells):
    path = folder / f"{name}.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(source) for source in cells], metadata=KERNEL), path)
    return path


def papermilled(notebook, name):
    """What papermill leaves of a notebook, beside it."""
    folder = notebook.parent
    environment = {**os.environ, "JUPYTER_DATA_DIR": str(folder / ".data"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", "--cwd", folder]
    command = [*command, notebook, folder / f"{name}.ipynb"]
    if subprocess.run(command, env=environment, timeout=180).returncode:  # such as a kernel whose ports were taken
        subprocess.run(command, check=True, env=environment, timeout=180)
    return nbformat.read(folder / f"{name}.ipynb", as_version=4)


def run_by_papermill(notebook):
    """Beside a notebook: `unsigned.ipynb`, as papermill leaves it, and `signed.ipynb`, which JupyterLab trusts."""
    folder = notebook.parent
    ran = papermilled(notebook, "unsigned")
    ran.metadata["signed"] = True  # another text, or the signature would hold for both
    nbformat.write(ran, folder / "signed.ipynb")
    notary = NotebookNotary(data_dir=str(folder / ".data"))
    notary.sign(nbformat.read(folder / "signed.ipynb", as_version=4))
    notary.store.close()


@contextmanager
def nbconverted(folder, chromium):
    """The page that nbconvert makes of `unsigned.ipynb`, without an error when it is left."""
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "unsigned.ipynb", "--output", "plain.html"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    with chromium.new_context(offline=True, viewport={"width": 1300, "height": 900}) as context:
        page, wrong = context.new_page(), []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        # its formulas ask the network, in vain
        page.goto((folder / "plain.html").as_uri(), wait_until="domcontentloaded")
        yield page
        assert wrong == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What JupyterLab has open."""
    made = tmp_path_factory.mktemp("house")
    (made / ".data").mkdir()
    return made


@pytest.fixture(scope="module")
def lab(folder):
    """The address of a JupyterLab that has the folder open."""
    folders = {f"JUPYTER_{kind}_DIR": str(folder / f".{kind.lower()}") for kind in ("DATA", "CONFIG", "RUNTIME")}
    settings = ["--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={folder}", "--LabApp.news_url="]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--IdentityProvider.token=t"]
    with open(folder / "lab.log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(
            [*command, *settings], stdout=log, stderr=log, env={**os.environ, **folders, "OMP_NUM_THREADS": "1"}
        )
    try:
        yield find_address(folder / ".runtime", server)
    finally:
        server.terminate()
        server.wait(20)


def find_address(runtime, server):
    """The address of a JupyterLab, from the file that it writes once it has a port: another one than it was to have
    where that is taken."""
    for _ in range(240):
        for file in runtime.glob("jpserver-*.json"):
            with suppress(ValueError):  # while it is written
                return f"http://{LOOPBACK}:{json.loads(file.read_text(encoding='utf-8'))['port']}"
        assert server.poll() is None, "JupyterLab did not start: see lab.log"
        time.sleep(0.25)
    raise TimeoutError("JupyterLab has no port after a minute")


@pytest.fixture
def notebook(chromium, folder, lab):
    """`notebook("views")`: that notebook, open in JupyterLab; nothing but the loopback is asked for anything."""
    context = chromium.new_context(viewport={"width": 1300, "height": 1600})
    wrong = []

    def route(asked):
        if asked.request.url.startswith((lab, "data:", "blob:")):
            return asked.continue_()
        wrong.append(asked.request.url)
        return asked.abort()

    def opened(name):
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text) if complains(line) else None)
        context.route("**/*", route)
        page.goto(f"{lab}/lab/workspaces/{name}/tree/{name}.ipynb?token=t&reset")
        cells = min(3, len(nbformat.read(folder / f"{name}.ipynb", as_version=4).cells))
        page.locator(".jp-Notebook .jp-Cell").nth(cells - 1).wait_for(timeout=60_000)
        return page

    yield opened
    context.close()
    shut_down(lab)
    assert not wrong, wrong


def kernels(lab):
    """What JupyterLab's server knows of its kernels."""
    with urllib.request.urlopen(f"{lab}/api/kernels?token=t", timeout=60) as answer:
        return json.load(answer)


def shut_down(lab):
    """End all kernels: each holds memory, and they outlive their page."""
    for kernel in kernels(lab):
        asked = urllib.request.Request(f"{lab}/api/kernels/{kernel['id']}?token=t", method="DELETE")
        urllib.request.urlopen(asked, timeout=60).close()


def complains(line):
    """JupyterLab complains where a machine was slow, or a kernel's line made twice: a lesson can do nothing of that.

    It gives up on a widget whose model it has not made within 2 seconds (ipywidgets, issue 4026).
    """
    own = "did not appear within|is taking too long|WebSocket is closed before the connection is established"
    own += "|widget model not found"
    return line.type in ("error", "warning") and not re.search(own, line.text)


def choose(page, menu, item):
    page.get_by_role("menuitem", name=menu, exact=True).click()
    page.get_by_role("menuitem", name=item, exact=True).click()


def accept(dialog):
    """What JupyterLab asks where a machine was slow, such as whether to wait: what its first button says."""
    print("JupyterLab asked:", dialog.last.inner_text())
    dialog.last.locator("button.jp-mod-accept").click()  # one may stand on another


def save(page):
    """As a reader does, by the keys; a question that stands before the notebook is answered first."""
    while (dialog := page.locator("dialog.jp-Dialog")).count():
        accept(dialog)
    page.keyboard.press("Control+s")
    page.wait_for_timeout(500)


def begin(page):
    """Run all cells by the menu, as a reader does; and again where JupyterLab was not listening yet."""
    page.wait_for_function(HAS_KERNEL, timeout=60_000)
    page.locator(IDLE).wait_for(timeout=60_000)
    page.add_locator_handler(page.locator("dialog.jp-Dialog"), accept, no_wait_after=True)
    # of a cell that is shown: a lesson's first one is folded
    prompts = page.locator(".jp-CodeCell .jp-InputPrompt:visible")
    ran, begun = (prompts.filter(has_text=re.compile(count)).first for count in (r"^\[\d+\]:$", r"^\[[*\d]+\]:$"))
    for _ in range(5):
        choose(page, "Run", "Run All Cells")
        for _ in range(30):
            page.wait_for_timeout(100)
            if ran.count():
                return
        if begun.count():
            return
    begun.wait_for()


def run_all(page):
    begin(page)
    ran = page.locator(".jp-CodeCell").last.locator(".jp-InputPrompt", has_text=re.compile(r"^\[\d+\]:$"))
    ran.wait_for(timeout=60_000)
    page.locator(".tfviz canvas").first.wait_for()
    wait_until_drawn(page)
