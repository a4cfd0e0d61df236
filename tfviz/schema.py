"""Schema checks for plain values that are read from a file (JSON, YAML).

A check is a function of a value and its key, such as `nodes[3].op`. It raises a ValueError with the key, the value and
what is expected. Checks are composed of smaller ones:

>>> point = object_of({"x": integer(0, 9), "names": list_of(string())})
>>> point({"x": 3, "names": ["a"]}, "point")
>>> point({"x": 3, "names": ["a", 5]}, "point")
Traceback (most recent call last):
ValueError: point.names[1] is 5; it must be a text
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

Check = Callable[[Any, str], None]
MAX_MEMBERS = 1_000_000  # of a list or a dictionary
MAX_DEPTH = 100  # of nested lists and dictionaries
MAX_SHOWN = 60  # characters of a value in a message
MAX_INTEGER = 2**63 - 1
SCALAR_TYPES = (float, int, str, bool, type(None))


def fail(value: Any, key: str, expected: str) -> NoReturn:
    """Raise the ValueError for a value that is not as expected."""
    raise ValueError(f"{key} is {describe(value)}; it must be {expected}")


def string(max_length: int = 100_000) -> Check:
    """Return a check that accepts strings of at most this length."""

    def check(value: Any, key: str) -> None:
        if type(value) is not str:
            fail(value, key, "a text")
        if len(value) > max_length:
            raise ValueError(f"{key} has {len(value):,} characters; it can have {max_length:,}")

    return check


def integer(minimum: int = -MAX_INTEGER, maximum: int = MAX_INTEGER) -> Check:
    """Return a check that accepts integers within these bounds."""

    def check(value: Any, key: str) -> None:
        if type(value) is not int or not minimum <= value <= maximum:
            lower = "" if minimum == -MAX_INTEGER else f", at least {minimum}"
            upper = "" if maximum == MAX_INTEGER else f", at most {maximum}"
            fail(value, key, f"an integer{lower}{upper}")

    return check


def number(value: Any, key: str) -> None:
    """Check that a value is a finite number."""
    if type(value) not in (int, float) or not math.isfinite(value):
        fail(value, key, "a finite number")


def scalar(value: Any, key: str) -> None:
    """Check that a value is a number, a string, True, False or None."""
    if not isinstance(value, SCALAR_TYPES):
        fail(value, key, "a number, a text, true, false or null")


def boolean(value: Any, key: str) -> None:
    """Check that a value is True or False."""
    if type(value) is not bool:
        fail(value, key, "true or false")


def enum(*values: str) -> Check:
    """Return a check that accepts only the given strings."""

    def check(value: Any, key: str) -> None:
        if type(value) is not str or value not in values:
            fail(value, key, " or ".join(map(repr, values)))

    return check


def optional(check: Check) -> Check:
    """Return a check that accepts None and the values that another check accepts."""
    return lambda value, key: None if value is None else check(value, key)


def list_of(check_member: Check, minimum: int = 0, maximum: int = MAX_MEMBERS) -> Check:
    """Return a check that accepts lists whose length is within bounds and whose members all pass."""

    def check(value: Any, key: str) -> None:
        if type(value) is not list:
            fail(value, key, "a list")
        if not minimum <= len(value) <= maximum:
            expected = f"{minimum}" if minimum == maximum else f"{minimum:,} to {maximum:,}"
            raise ValueError(f"{key} has {len(value):,} members; it must have {expected}")
        for index, member in enumerate(value):
            check_member(member, f"{key}[{index}]")

    return check


def dict_of(check_member: Check, maximum: int = MAX_MEMBERS) -> Check:
    """Return a check that accepts dictionaries whose keys are strings and whose values all pass."""

    def check(value: Any, key: str) -> None:
        if type(value) is not dict:
            fail(value, key, "a dictionary")
        if len(value) > maximum:
            raise ValueError(f"{key} has {len(value):,} members; it can have {maximum:,}")
        for name, member in value.items():
            check_member(member, _member_key(key, name))

    return check


def object_of(required: Mapping[str, Check], more: Mapping[str, Check] | None = None) -> Check:
    """Return a check that accepts dictionaries with the keys of `required`, and optionally those of `more`."""
    known = {**required, **(more or {})}

    def check(value: Any, key: str) -> None:
        if type(value) is not dict:
            fail(value, key, "a dictionary")
        for name in required:
            if name not in value:
                raise ValueError(f"{key} has no {name!r}; it must have {', '.join(required)}")
        for name, member in value.items():
            if name not in known:
                raise ValueError(
                    f"{key} has the key {describe(name)}, which is not known; it can have {', '.join(known)}"
                )
            known[name](member, f"{key}.{name}")

    return check


def json_value(value: Any, key: str, depth: int = MAX_DEPTH) -> None:
    """Check that JSON can represent a value; tuples are accepted as lists.

    Raises:
        ValueError: the value contains another type than numbers, strings, True, False, None, lists and dictionaries
            with string keys, or is nested too deeply.
    """
    if isinstance(value, SCALAR_TYPES):
        return
    if not depth:
        raise ValueError(f"{key} is nested deeper than {MAX_DEPTH} lists and dictionaries")
    if isinstance(value, dict):
        for name, member in value.items():
            json_value(member, _member_key(key, name), depth - 1)
    elif isinstance(value, list | tuple):
        for index, member in enumerate(value):
            json_value(member, f"{key}[{index}]", depth - 1)
    else:
        fail(value, key, "a number, a text, a list or a dictionary")


def parse(content: str | bytes, key: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: the text is not JSON, or is nested too deeply.
    """
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError(f"{key} is nested too deep to be read") from None
    except ValueError as error:
        raise ValueError(f"{key} is not JSON: {error}") from error


@contextmanager
def prefix_errors(path: str | Path) -> Iterator[None]:
    """Prefix the message of a ValueError inside the context with the path of a file.

    Raises:
        ValueError: the code inside the context raised one.
    """
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def describe(value: Any) -> str:
    """Return a short description of a value for a message: its repr, or its type and shape."""
    if isinstance(value, str | bytes):
        return repr(value) if len(value) <= MAX_SHOWN else f"{value[:MAX_SHOWN]!r}…"
    if isinstance(value, int) and abs(value) >= 10**MAX_SHOWN:
        return f"a number of {value.bit_length()} bits"
    if value is None or isinstance(value, int | float | complex):
        return repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    kind, shape = type(value).__name__, getattr(value, "shape", None)
    kind = {"ndarray": "numpy array", "Tensor": "tensor", "dict": "dictionary"}.get(kind, kind)
    size = f" of shape {list(shape)}" if isinstance(shape, tuple) else ""
    return f"{_with_article(kind)}{size}"


def _with_article(name: str) -> str:
    """Return a name with its indefinite article, by its pronunciation: a GPT, an LSTM."""
    spelt = name.isupper() and name[0] in "FHLMNRSX"
    return f"{'an' if spelt or name[0] in 'aeioAEIO' else 'a'} {name}"


def _member_key(key: str, name: Any) -> str:
    if type(name) is not str:
        raise ValueError(f"{key} has the key {describe(name)}; every key must be a text, such as {str(name)!r}")
    return f"{key}.{name}" if name.isidentifier() and len(name) <= MAX_SHOWN else f"{key}[{describe(name)}]"
