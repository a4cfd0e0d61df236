"""Tables of invalid input: each case raises a clear error or behaves as its entry says."""

import json
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest
from case_tables import HERE, table

ROOMS = sorted(path.stem.removeprefix("cases_") for path in HERE.glob("cases_*.py"))
CASES = [(room, number) for room in ROOMS for number in range(len(table(room).CASES))]


@lru_cache
def outcomes(room):
    """In a process of its own, as a reader's: without jaxtyping and beartype."""
    command = [sys.executable, str(HERE / "case_tables.py"), room, "--json"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=900, cwd=Path(HERE).parents[1])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("room", "number"), CASES, ids=lambda value: str(value))
def test_case_has_expected_outcome(room, number):
    code, wrong = outcomes(room)[number]
    assert not wrong, f"{code}\n{wrong}"


def test_cases_are_many_and_unique():
    asked = [(room, code) for room in ROOMS for code, _ in table(room).CASES]
    assert len(asked) == len(set(asked))
    assert len(asked) >= 250
