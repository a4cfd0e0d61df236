"""`tfviz lab`, `demo`, `doctor` and `data`, and the dependencies of the installation."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch
import yaml
from small_notebooks import tfviz

from tfviz import models, text
from tfviz.lessons import demo, lab, look_page
from tfviz.lessons.worker import child_environment

ROOT = Path(__file__).parents[2]


def test_lab_starts_jupyterlab_in_notebooks_folder(monkeypatch):
    became = []
    monkeypatch.setattr(os, "execve", lambda *arguments: became.append(arguments))
    lab.open_lab(("--no-browser",))
    ((program, command, environment),) = became
    assert command == [
        program,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={ROOT / 'notebooks'}",
        lab.NO_NEWS,
        "--no-browser",
    ]
    assert environment == child_environment()


def test_copy_lessons_keeps_edited_copies(tmp_path):
    originals, mine = tmp_path / "originals", tmp_path / "mine"
    originals.mkdir()
    for name in ("01_a", "02_b"):
        (originals / f"{name}.ipynb").write_text(name, encoding="utf-8")
        (originals / f"{name}.ipynb").chmod(0o444)  # as in a package that only an administrator may write
    lab.copy_lessons(originals, mine)
    (mine / "01_a.ipynb").write_text("my own", encoding="utf-8")
    (mine / "02_b.ipynb").unlink()
    lab.copy_lessons(originals, mine)
    assert {path.name: path.read_text(encoding="utf-8") for path in mine.iterdir()} == {
        "01_a.ipynb": "my own",
        "02_b.ipynb": "02_b",
    }


def test_lab_of_installed_package_opens_copies(tmp_path, monkeypatch):
    package = tmp_path / "tfviz"
    (package / "notebooks").mkdir(parents=True)
    monkeypatch.setattr(lab.tfviz, "__file__", str(package / "__init__.py"))
    monkeypatch.setattr(lab.notebooks, "folder", lambda: package / "notebooks")
    monkeypatch.chdir(tmp_path)
    became = []
    monkeypatch.setattr(os, "execve", lambda *arguments: became.append(arguments))
    lab.open_lab(())
    assert became[0][1][3].endswith(lab.COPIES_FOLDER)
    assert (tmp_path / lab.COPIES_FOLDER).is_dir()


def test_demo_writes_page_and_opens_browser_unless_disabled(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(demo.webbrowser, "open", lambda *given: opened.extend(given))
    out = tmp_path / "a page.html"
    assert str(out) in tfviz("demo", "--out", out, "--no-browser").output
    assert not opened
    assert max(out.stat().st_size, demo.WEIGHTS_FILE.stat().st_size) < 4_000_000
    assert f"open {out.resolve().as_uri()} in one" in tfviz("demo", "--out", out).output  # this browser did not open
    assert opened == [out.resolve().as_uri()]


@pytest.mark.parametrize("command", [["demo"], ["look", "gpt2", "a text"]])
@pytest.mark.parametrize("name", ["x.pdf", "x.png", "x.htmls", "x"])
def test_page_is_not_written_as_something_else(command, name, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "page", None)  # it says so before it loads anything
    monkeypatch.setattr(look_page, "page", None)
    ended = tfviz(*command, "--out", tmp_path / name)
    assert ended.exit_code == 1
    assert ended.output.startswith(f"Error: cannot write {name!r}: the page is written as .html; ")
    assert list(tmp_path.iterdir()) == []


def test_demo_model_has_learned_its_text():
    model, letters = demo.load()
    ids = letters.encode("KING RICHARD III:\nNow is the winter of our discontent\n")
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(model(ids[None, :-1])[0], ids[1:])
    assert loss < 2.2  # by chance ln 65 = 4.2


def test_demo_weights_round_trip_and_damaged_file_raises(tmp_path):
    torch.manual_seed(0)
    model, path = models.GPT(4, **demo.CONFIG), tmp_path / "m.safetensors"
    demo.save(model, text.CharacterTokenizer("abc\n"), path)
    loaded, letters = demo.load(path)
    assert letters.characters == "abc\n"
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor.half().float()), name
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(ValueError, match="damaged"):
        demo.load(path)


def test_doctor_and_data_run_without_a_network(monkeypatch, tmp_path):
    monkeypatch.setenv("TFVIZ_CACHE", str(tmp_path))
    monkeypatch.delenv("TFVIZ_DATA", raising=False)
    assert "torch" in tfviz("doctor").output
    listed = tfviz("data", "list").output
    assert "pydoc        embedded" in listed
    assert "shakespeare  absent" in listed
    assert tfviz("data", "path").output.strip() == str(tmp_path)
    assert tfviz("data", "verify").exit_code == 0
    (tmp_path / "shakespeare").mkdir()
    (tmp_path / "shakespeare" / "input.txt").write_text("another text", encoding="utf-8")
    assert tfviz("data", "verify", "shakespeare").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fetch", "nothing"], "there are: pydoc, shakespeare"),
        (["path", "../x"], "there are: pydoc, shakespeare"),
        (["list"], "nowhere, which is not a folder"),
        (["verify"], "nowhere, which is not a folder"),
    ],
)
def test_data_command_rejects_unknown_names_and_folders(arguments, says, tmp_path):
    local = "nowhere" if "nowhere" in says else str(tmp_path)
    ended = tfviz("data", *arguments, TFVIZ_DATA=local)
    assert ended.exit_code == 1
    assert says in ended.output
    assert ended.output.startswith("Error: ")
    assert "nowhere is not a folder" in tfviz("doctor", TFVIZ_DATA="nowhere").output


WITHOUT = """
import sys
from tfviz.__main__ import main
missing = sys.argv.pop(1)
class Finder:
    def find_spec(name, *more):
        if name == missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Finder)
main()
"""


@pytest.mark.parametrize(
    ("missing", "command"),
    [
        ("click", ["demo"]), ("papermill", ["run", "01"]), ("nbformat", ["clean", "x.ipynb"]),
        ("nbformat", ["claims"]), ("jinja2", ["site", "01"]), ("pooch", ["data", "verify"]), ("jupyterlab", ["lab"]),
    ],
)  # fmt: skip
def test_command_names_the_extra_that_a_missing_package_belongs_to(missing, command, tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT, missing, *command], capture_output=True, encoding="utf-8", cwd=tmp_path
    )
    says = f"{missing} is not installed: pip install 'tfviz[lessons] @ git+https://github.com/tfviz/tfviz'"
    assert ended.returncode == 1
    assert ended.stderr.strip() in (f"Error: {says}", f"tfviz: {says}")
    assert list(tmp_path.iterdir()) == []


def test_version_needs_no_extra():
    command = [sys.executable, "-c", WITHOUT, "click", "--version"]
    assert subprocess.check_output(command, encoding="utf-8") == tfviz("--version").output.replace("main", "tfviz")


def test_unencodable_output_is_escaped(tmp_path):
    command = [sys.executable, "-m", "tfviz", "run", "語"]
    ended = subprocess.run(
        command, env={**os.environ, "PYTHONIOENCODING": "latin-1"}, capture_output=True, encoding="utf-8"
    )
    assert r"\u8a9e" in ended.stderr


def test_environment_files_agree_with_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    assert "-e .[lessons]" in pip
    pinned = {
        line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["lessons"], *extras["hf"], *extras["cluster"], *extras["test"][1:]]
    assert extras["test"][0] == "tfviz[lessons,cluster]"
    names = {requirement.split(">")[0].split("<")[0].split("=")[0].lower().replace("_", "-") for requirement in needed}
    assert names <= {name.replace("_", "-") for name in pinned}
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
