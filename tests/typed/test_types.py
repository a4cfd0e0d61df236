"""What a user's editor and type checker see of tfviz: types, names to complete, a version."""

import importlib
import inspect
import os
import rlcompleter
import subprocess
import sys
import tomllib
from pathlib import Path

import public_api
import pytest

import tfviz
from tfviz.lessons.site import reference

PACKAGE = Path(tfviz.__file__).parent
LEVELS = [module.__name__ for module in reference.modules()]


def test_code_that_uses_the_public_api_passes_mypy_strict(tmp_path):
    """Types of tfviz are read as those of an installed package are: its own errors are not reported."""
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", "--cache-dir"]
    checked = [*command, str(tmp_path), public_api.__file__]
    variables = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    pytest.importorskip("mypy")
    done = subprocess.run(checked, cwd=tmp_path, env=variables, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_also_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    public_api.main()
    assert capsys.readouterr().out.endswith(f"{tfviz.__version__}\n")


def test_the_package_tells_that_it_is_typed():
    assert (PACKAGE / "py.typed").is_file()


@pytest.mark.parametrize("level", LEVELS)
def test_dir_lists_every_public_name(level):
    module = importlib.import_module(level)
    assert set(module.__all__) <= set(dir(module))
    assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.parametrize("level", LEVELS)
def test_tab_completes_every_public_name(level):
    """At a prompt where only `tfviz` was imported; it is not said that nothing else is completed."""
    found, completer = set(), rlcompleter.Completer({"tfviz": tfviz})
    while (one := completer.complete(f"{level}.", len(found))) is not None:
        found.add(one.partition("(")[0])
    assert {f"{level}.{name}" for name in importlib.import_module(level).__all__} <= found


@pytest.mark.parametrize("level", [level for level in LEVELS if level != "tfviz"])
def test_arguments_can_be_seen(level):
    """Each public function has a signature with the type of each argument."""
    module = importlib.import_module(level)
    for name in module.__all__:
        function = getattr(module, name)
        if inspect.isfunction(function):
            signature = inspect.signature(function)
            untyped = [each for each, it in signature.parameters.items() if it.annotation is inspect.Parameter.empty]
            assert not untyped, f"{level}.{name}"
            assert signature.return_annotation is not inspect.Signature.empty, f"{level}.{name}"


def test_the_command_is_there_by_both_names():
    done = subprocess.run([sys.executable, "-m", "tfviz", "--version"], capture_output=True, encoding="utf-8")
    assert tfviz.__version__ in done.stdout, done.stderr
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, name = project["scripts"]["tfviz"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))
