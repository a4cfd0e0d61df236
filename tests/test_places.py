"""Where tfviz is opened: Colab, Binder, Docker, Codespaces, GitHub. None can be tried here, so their files are read."""

import json
import os
import platform
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import yaml
from operating_systems import links

from tfviz import extras
from tfviz.lessons import notebooks

CLONE = Path(__file__).parents[1]
LESSONS = [book.stem for book in notebooks.find()]
OWNER_AND_NAME = extras.REPOSITORY.removeprefix("https://github.com/")
CPU_INDEX = "--extra-index-url https://download.pytorch.org/whl/cpu"


def read(name):
    return (CLONE / name).read_text(encoding="utf-8")


def workflow(name):
    return yaml.load(read(f".github/workflows/{name}.yml"), yaml.BaseLoader)  # or `on` would be true


README = read("README.md")


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_can_be_opened_in_colab_from_its_row_of_the_readme(name):
    (row,) = (line for line in README.splitlines() if f"[**{name}**]" in line)
    address = f"https://colab.research.google.com/github/{OWNER_AND_NAME}/blob/main/notebooks/{name}.ipynb"
    assert row.count("colab.research") == 1
    assert f"[![Open in Colab](docs/colab.svg)]({address})" in row


def test_all_lessons_can_be_opened_in_binder_by_one_link():
    (address,) = re.findall(r"\[!\[Open in Binder\]\(docs/binder.svg\)\]\((.*?)\)", README)
    assert address == f"https://mybinder.org/v2/gh/{OWNER_AND_NAME}/main?urlpath=lab/tree/notebooks"
    assert (CLONE / "notebooks").is_dir()


def test_the_pictures_of_the_readme_come_with_it():
    badges = re.search(r"<!-- badges -->.*?<!-- /badges -->", README, re.DOTALL)[0]
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README.replace(badges, ""))
    pictures += re.findall(r'src(?:set)?="([^"]+)"', README)
    assert [picture for picture in pictures if not (CLONE / picture).is_file()] == []


@pytest.mark.parametrize("name", ["colab", "binder", "python", "licence"])
def test_a_badge_is_a_small_picture_that_says_what_it_is(name):
    root = ElementTree.fromstring(read(f"docs/{name}.svg"))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert root.get("role") == "img"
    assert root.get("aria-label").replace(":", "") == " ".join(texts)
    assert "http" not in read(f"docs/{name}.svg").replace("http://www.w3.org/2000/svg", "")
    for element in root.iter("{http://www.w3.org/2000/svg}text"):
        assert 6 * len(element.text) < float(root.get("width"))


# What installs: the same versions everywhere, of this clone, and PyTorch without CUDA.


@pytest.mark.parametrize("name", ["binder/postBuild", ".devcontainer/setup.sh"])
def test_a_script_installs_the_tested_versions_and_stops_at_an_error(name):
    lines = read(name).splitlines()
    assert lines[0] == "#!/bin/bash"
    assert "set -euo pipefail" in lines
    installs = [line for line in lines if "pip install" in line]
    assert len(installs) == 2
    assert all("-c constraints.txt" in line for line in installs)
    assert CPU_INDEX in installs[0]
    assert installs[0].endswith(" torch")
    assert re.search(r"-e '\.\[(lessons|dev)\]'$", installs[1])
    if os.name == "posix":
        assert os.access(CLONE / name, os.X_OK)
        assert subprocess.run(["bash", "-n", str(CLONE / name)], check=False).returncode == 0


def test_binder_takes_a_python_that_tfviz_takes():
    assert read("binder/runtime.txt") == "python-3.12\n"  # repo2docker's own is older
    assert sorted(path.name for path in (CLONE / "binder").iterdir()) == ["postBuild", "runtime.txt"]


def instructions():
    """The Dockerfile's instructions, each in one line, without comments."""
    text = re.sub(r"^#.*\n", "", read("Dockerfile"), flags=re.M)
    return [line for line in re.sub(r"\\\n\s*", "", text).splitlines() if line]


def test_the_image_follows_the_rules_of_hadolint():
    lines = instructions()
    kinds = [line.split()[0] for line in lines]
    assert kinds[0] == "FROM"
    assert re.fullmatch(r"FROM python:3\.1[123]-slim-\w+", lines[0])  # a version, not `latest` (DL3006, DL3007)
    assert kinds.count("CMD") == kinds.count("HEALTHCHECK") == kinds.count("USER") == 1  # DL4003, DL3012
    assert "sudo" not in " ".join(lines)  # DL3004
    assert "ADD" not in kinds  # DL3020
    assert all(line.split()[1].startswith("/") for line in lines if line.startswith("WORKDIR"))  # DL3000
    assert not any(re.match(r"RUN cd ", line) for line in lines)  # DL3003
    assert all(json.loads(line.removeprefix("CMD ")) for line in lines if line.startswith("CMD"))  # DL3025
    for line in lines:
        if "pip install" in line:
            assert "--no-cache-dir" in line  # DL3042
            assert "-c constraints.txt" in line  # DL3013
    last_user = [line.split()[1] for line in lines if line.startswith("USER")][-1]
    assert last_user not in ("root", "0")  # DL3002
    assert any(f"useradd --create-home --uid 1000 {last_user}" in line for line in lines)
    assert kinds.index("USER") > max(n for n, line in enumerate(lines) if "pip install" in line)


def test_what_the_image_copies_is_in_the_clone_and_sent_to_the_builder():
    copied = [part for line in instructions() if line.startswith("COPY") for part in line.split()[1:-1]]
    copied = {part for part in copied if not part.startswith("--")}
    assert all((CLONE / name).exists() for name in copied)
    sent = read(".dockerignore").splitlines()
    assert sent[1] == "*"
    assert {line.removeprefix("!") for line in sent if line.startswith("!")} == copied
    assert all((CLONE / line).exists() for line in sent[1:] if "*" not in line and not line.startswith("!"))
    needed = {"pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "tfviz", "notebooks", "constraints.txt"}
    assert needed <= copied


def test_the_image_installs_torch_before_what_changes_often():
    lines = instructions()
    torch = next(n for n, line in enumerate(lines) if line.endswith(" torch"))
    assert CPU_INDEX in lines[torch]
    assert torch < next(n for n, line in enumerate(lines) if " tfviz " in line and line.startswith("COPY"))


def test_the_image_starts_the_lessons_in_jupyterlab():
    (line,) = (line for line in instructions() if line.startswith("CMD"))
    command = json.loads(line.removeprefix("CMD "))
    assert command[:2] == ["tfviz", "lab"]
    port = next(part.partition("=")[2] for part in command if part.startswith("--port="))
    assert f"EXPOSE {port}" in instructions()
    assert f"127.0.0.1:{port}/api" in read("Dockerfile")
    assert not any("token" in part or "password" in part or "allow-root" in part for part in command)
    shown = re.search(r"docker run [^\n`]*", README)[0]
    assert shown == f"docker run --rm -p 127.0.0.1:{port}:{port} tfviz"  # of this machine alone


def test_the_container_for_developers_names_what_there_is():
    settings = json.loads(read(".devcontainer/devcontainer.json"))
    assert settings["postCreateCommand"] == "bash .devcontainer/setup.sh"
    assert (CLONE / ".devcontainer" / "setup.sh").is_file()
    assert settings["remoteUser"] != "root"
    assert ".venv/bin/python" in settings["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"]
    assert "python -m venv .venv" in read(".devcontainer/setup.sh")
    assert re.fullmatch(r"mcr\.microsoft\.com/devcontainers/python:3\.1[123]", settings["image"])


# GitHub.


def test_every_system_and_python_is_tried():
    matrix = workflow("ci")["jobs"]["systems"]["strategy"]["matrix"]
    tried = set(product(matrix["os"], matrix["python"])) - {(each["os"], each["python"]) for each in matrix["exclude"]}
    whole = workflow("ci")["jobs"]["tests"]
    tried |= {(whole["runs-on"], step["with"]["python-version"]) for step in whole["steps"]
              if "setup-python" in step.get("uses", "")}  # fmt: skip
    systems = [f"{name}-latest" for name in ("ubuntu", "macos", "windows")]
    assert tried == set(product(systems, ["3.11", "3.12", "3.13"]))


@pytest.mark.parametrize("name", ["ci", "site"])
def test_a_workflow_may_do_no_more_than_it_needs(name):
    found = workflow(name)
    assert found["permissions"] == {"contents": "read"}
    assert found["concurrency"]["group"]
    more = {job: each["permissions"] for job, each in found["jobs"].items() if "permissions" in each}
    assert more == ({"publish": {"pages": "write", "id-token": "write"}} if name == "site" else {})
    for job in found["jobs"].values():
        assert int(job["timeout-minutes"]) <= 120
        for step in job["steps"]:
            assert "secrets." not in json.dumps(step)
            assert "github.event." not in step.get("run", "")  # a title of a pull request would be run as a script
            if "uses" in step:
                assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])


@pytest.mark.parametrize("name", ["ci", "site"])
def test_what_a_workflow_runs_is_in_the_clone(name):
    runs = [step["run"] for job in workflow(name)["jobs"].values() for step in job["steps"] if "run" in step]
    named = {
        part
        for run in runs
        for part in re.findall(r"(?<![\w/.])(?:tests|\.ci|notebooks)(?:/\w+)+|constraints\.txt", run)
    }
    assert {"constraints.txt", ".ci/run", ".ci/lowest"} <= named or name == "site"
    assert [part for part in sorted(named) if not (CLONE / part).exists()] == []
    extras = {extra for run in runs for extra in re.findall(r"\[([a-z,]+)\]'", run)}
    assert extras <= {"test", "site,test", "lessons"}


def test_the_lowest_versions_are_those_of_the_project():
    command = [sys.executable, str(CLONE / ".ci" / "lowest")]
    printed = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.splitlines()
    project = read("pyproject.toml")
    assert "torch==2.6" in printed
    assert all(f'"{line.replace("==", ">=")}' in project for line in printed)
    assert all(re.fullmatch(r"[\w.-]+==[\d.]+", line) for line in printed)


def test_scripts_below_the_clone_may_be_common_js(tmp_path):
    """Such as `yarn.js` in `.venv`, which JupyterLab asks."""
    if (node := shutil.which("node")) is None:
        pytest.skip("there is no Node")
    shutil.copy(CLONE / "package.json", tmp_path)
    (tmp_path / "yarn.js").write_text("console.log(typeof require)", encoding="utf-8")
    assert subprocess.check_output([node, "yarn.js"], cwd=tmp_path, encoding="utf-8") == "function\n"


@pytest.mark.parametrize("version", ["3.10.13", "3.11.0", "3.13.5", "3.14.0rc1"])
def test_wrong_python_is_refused_by_the_build(version, monkeypatch):
    parts = ["hatchling", "metadata", "plugin", "interface"]
    for end in range(1, 5):  # hatchling is there only while a package is built
        name = ".".join(parts[:end])
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(MetadataHookInterface=object))
    monkeypatch.setattr(platform, "python_version", lambda: version)
    project = tomllib.loads(read("pyproject.toml"))
    assert project["tool"]["hatch"]["metadata"]["hooks"]["custom"] == {}
    hook = runpy.run_path(str(CLONE / "hatch_build.py"))["RightPython"]()
    with (
        pytest.raises(SystemExit, match=f"and this is {version}") if version[:4] in ("3.10", "3.14") else nullcontext()
    ):
        hook.update(project["project"])


def run_ci(tmp_path, *commands, **environment):
    """Run a copy of `.ci/run` where of npm and browsers only these commands are found, and do nothing."""
    (tmp_path / "clone" / ".ci").mkdir(parents=True)
    shutil.copy(CLONE / ".ci" / "run", tmp_path / "clone" / ".ci")
    (tmp_path / "commands").mkdir()
    for name in ("bash", "dirname", "sed", "grep", *commands):
        (tmp_path / "commands" / name).symlink_to(shutil.which("true" if name in commands else name))
    (tmp_path / "clone" / "README.md").write_text("<!-- test -->\n```sh\nexit 7\n```\n", encoding="utf-8")
    command = [shutil.which("bash"), str(tmp_path / "clone" / ".ci" / "run")]
    given = {"PATH": str(tmp_path / "commands"), **environment}
    return subprocess.run(command, env=given, capture_output=True, encoding="utf-8", check=False)


@links
@pytest.mark.parametrize(
    ("commands", "environment", "status", "said"),
    [
        (["chromium"], {"REQUIRE_ALL": "1"}, 1, "There is no npm here: install Node"),
        (["npm"], {"REQUIRE_ALL": "1"}, 1, "There is no Chromium here: install one"),
        (["npm", "google-chrome"], {"REQUIRE_ALL": "1"}, 7, ""),
        (["npm", "chromium"], {"REQUIRE_ALL": "1"}, 7, ""),
        ([], {}, 7, "There is no npm here"),
    ],
)
def test_ci_says_what_to_install_before_it_begins(tmp_path, commands, environment, status, said):
    done = run_ci(tmp_path, *commands, **environment)
    assert done.returncode == status
    assert said in done.stderr
    assert bool(said) == ("is skipped" in done.stderr)
    assert ("exit 7" in done.stdout) == (status == 7)


@pytest.mark.parametrize("name", ["bug", "idea"])
def test_a_form_asks_little(name):
    form = yaml.safe_load(read(f".github/ISSUE_TEMPLATE/{name}.yml"))
    assert {"name", "description", "labels", "body"} == form.keys()
    identifiers = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert len(set(identifiers)) == len(identifiers) <= 4


def test_links_to_the_repository_lead_to_files():
    files = [*(CLONE / ".github").rglob("*.yml"), CLONE / "CODE_OF_CONDUCT.md", CLONE / "README.md"]
    links = re.compile(re.escape(extras.REPOSITORY) + r"/blob/main/([\w./-]+\.\w+)")
    found = [link for file in files for link in links.findall(file.read_text(encoding="utf-8"))]
    assert len(found) >= 2
    assert [link for link in found if not (CLONE / link).is_file()] == []


def test_what_pip_is_told_to_install_is_not_the_other_project_of_this_name():
    """On PyPI `tfviz` is not this package: any text that installs it names the repository, or the clone."""
    kinds = ("*.md", "*.py", "*.ipynb", "*.j2", "*.js", "*.yml", "*.sh")
    folders = [
        CLONE / name for name in ("tfviz", "docs", "notebooks", "benchmarks", "binder", ".github", ".devcontainer")
    ]
    files = [*CLONE.glob("*.md"), *(file for folder in folders for kind in kinds for file in folder.rglob(kind))]
    installs = re.compile(r"pip install[^`\n]*?(?<![\w/.+])tfviz\b[^`\n]*")
    found = [line for file in files for line in installs.findall(file.read_text(encoding="utf-8"))]
    assert len(found) >= 3  # README, a docstring, the guide
    assert [line for line in found if f" @ git+{extras.REPOSITORY}" not in line] == []


@pytest.mark.parametrize("name", ["lessons", "cluster"])
def test_a_missing_package_is_said_with_a_command_that_installs_its_extra(name):
    with pytest.raises(ImportError) as raised, extras.extra(name):
        import a_package_that_is_missing  # noqa: F401
    command = shlex.split(str(raised.value).partition(" is not installed: ")[2])
    assert command == ["pip", "install", f"tfviz[{name}] @ git+https://github.com/tfviz/tfviz"]
    assert name in tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"]


def ideas():
    return re.split(r"^## ", read("docs/ideas.md"), flags=re.M)[1:]


@pytest.mark.parametrize("idea", ideas(), ids=lambda idea: idea.splitlines()[0])
def test_an_idea_says_where_what_and_how_large(idea):
    assert re.match(r"\d+\. .*\((S|M)\)\n", idea)
    assert idea.count("\nWhere: ") == idea.count("\nDone: ") == 1
    files = re.findall(r"`((?:tfviz|tests|notebooks)/[\w./]+\.py)`", idea)
    assert files
    assert [file for file in files if not (CLONE / file).is_file()] == []
    where = idea[idea.index("\nWhere: ") : idea.index("\nDone: ")]
    sources = "".join(read(file) for file in re.findall(r"`(tfviz/[\w./]+\.py)`", where))
    names = [
        name for name in re.findall(r"`([A-Za-z_]+)`", where) if name != "GlobalMemoryStatusEx" and name != "ctypes"
    ]
    assert [name for name in names if name not in sources] == []


def test_there_are_twelve_ideas():
    assert [int(idea.split(".")[0]) for idea in ideas()] == list(range(1, 13))
