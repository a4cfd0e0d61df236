"""Tables of invalid input: each case raises a clear error or behaves as its entry says."""

import json
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest
from case_tables import HERE, table

NAMES = sorted(path.stem.removeprefix("cases_") for path in HERE.glob("cases_*.py"))
CASES = [(name, number) for name in NAMES for number in range(len(table(name).CASES))]


@lru_cache
def outcomes():
    """Return the outcomes of all tables by name, from a process without jaxtyping and beartype, as a user's is."""
    command = [sys.executable, str(HERE / "case_tables.py"), *NAMES, "--json"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=900, cwd=Path(HERE).parents[1])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("name", "number"), CASES, ids=lambda value: str(value))
def test_case_has_expected_outcome(name, number):
    code, wrong = outcomes()[name][number]
    assert not wrong, f"{code}\n{wrong}"


def test_cases_are_unique():
    asked = [(name, code) for name in NAMES for code, _ in table(name).CASES]
    assert len(asked) == len(set(asked))
