"""Run all cases of tables without the tests' shape checks: `python tests/bad_input/case_tables.py view look`.

A case is code, and a pattern of what the error says, which may begin with the error's type, as in "TypeError: x is";
after "= ", a pattern of the value instead.
"""

import contextlib
import importlib.util
import io
import json
import os
import re
import signal
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

HERE = Path(__file__).parent
LIMIT = 20  # seconds for a case
POSIX_CASE = re.compile(r"mkfifo|symlink|/proc/|\bpipe\(|write\('/'\)")  # what Windows has not
EXPECTED_ERRORS = (TypeError, ValueError, LookupError, OSError, ImportError, FloatingPointError)


def table(name):
    """SETUP and CASES of a name."""
    spec = importlib.util.spec_from_file_location(f"cases_{name}", HERE / f"cases_{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def late(*_):
    raise TimeoutError(f"it did not end within {LIMIT} s")


def set_alarm(seconds):
    """Have `late` called after that time, which Windows cannot; 0: never."""
    if hasattr(signal, "SIGALRM"):
        signal.alarm(seconds)


def value_of(code, names):
    """The value of an expression, or of the last of several statements' `it`."""
    try:
        return eval(compile(code, "<case>", "eval"), names)
    except SyntaxError:
        exec(compile(code, "<case>", "exec"), names)
        return names.get("it")


def outcome(code, says, names):
    """Empty if all is as the table says, else what is wrong."""
    try:
        found = value_of(code, dict(names))
    except TimeoutError as error:
        return f"hangs: {error}"
    except EXPECTED_ERRORS as error:
        where = traceback.extract_tb(error.__traceback__)[-1].filename
        if says.startswith("= "):
            return f"raised {type(error).__name__}: {error}"
        if f"{os.sep}tfviz{os.sep}" not in where:
            return f"unclear, from {where}: {type(error).__name__}: {error}"
        told = "\n".join([str(error), *getattr(error, "__notes__", [])])
        named = f"{type(error).__name__}: {told}"
        return "" if re.search(says, told) or re.search(says, named) else f"says: {named}"
    except BaseException as error:
        if any(
            re.search(says, note) for note in getattr(error, "__notes__", [])
        ):  # a caller's own error, and a word on it
            return ""
        return f"unclear: {type(error).__name__}: {error}"
    if says.startswith("= "):
        return "" if re.search(says[2:], repr(found)) else f"gives {found!r}"
    return f"silent: gives {found!r}"[:300]


def run_cases(name):
    """Yield (code, what is wrong) for each case of a table."""
    cases, names = table(name), {}
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, late)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(cases.SETUP, "<setup>", "exec"), names)
        for code, says in cases.CASES:
            if sys.platform == "win32" and POSIX_CASE.search(code):
                continue
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                set_alarm(LIMIT)
                try:
                    wrong = outcome(code, says, names)
                finally:
                    set_alarm(0)
            yield code, wrong


if __name__ == "__main__":
    outcomes = {name: list(run_cases(name)) for name in sys.argv[1:] if name != "--json"}
    if "--json" in sys.argv:
        print(json.dumps(outcomes))
    for name, cases in outcomes.items() if "--json" not in sys.argv else ():
        for code, wrong in cases:
            print("ok   " if not wrong else "WRONG", code, "" if not wrong else f"\n      {wrong}")
        print(name, sum(not wrong for _, wrong in cases), "of", len(cases))
