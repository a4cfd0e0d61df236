"""What a file of plain values (JSON, YAML) may hold, checked when it is read.

A check is a function of a value and its key, such as `nodes[3].op`; it raises a ValueError that names the key, what
stands there and what must stand there. Larger checks are made of smaller ones:

>>> point = record({"x": whole(0, 9), "names": list_of(text())})
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
MANY = 1_000_000  # members of a list or a dictionary
DEEP = 100  # lists and dictionaries within each other
LONG = 60  # characters of a value in a message
LARGEST = 2**63 - 1
SCALARS = (float, int, str, bool, type(None))


def fail(value: Any, key: str, expected: str) -> NoReturn:
    """Raise the ValueError of a value that is not as expected."""
    raise ValueError(f"{key} is {brief(value)}; it must be {expected}")


def text(most: int = 100_000) -> Check:
    """A string of at most so many characters."""

    def check(value: Any, key: str) -> None:
        if type(value) is not str:
            fail(value, key, "a text")
        if len(value) > most:
            raise ValueError(f"{key} has {len(value):,} characters; it can have {most:,}")

    return check


def whole(least: int = -LARGEST, most: int = LARGEST) -> Check:
    """A whole number within these bounds."""
    expected = "a whole number" if most == LARGEST else f"a whole number from {least} to {most}"
    expected = f"a whole number, at least {least}" if most == LARGEST and least > -LARGEST else expected

    def check(value: Any, key: str) -> None:
        if type(value) is not int or not least <= value <= most:
            fail(value, key, expected)

    return check


def number(value: Any, key: str) -> None:
    """A finite number."""
    if type(value) not in (int, float) or not math.isfinite(value) or abs(value) > LARGEST * 1e300:
        fail(value, key, "a finite number")


def scalar(value: Any, key: str) -> None:
    """A number, a text, True, False or None."""
    if not isinstance(value, SCALARS):
        fail(value, key, "a number, a text, true, false or null")


def truth(value: Any, key: str) -> None:
    """True or false."""
    if type(value) is not bool:
        fail(value, key, "true or false")


def one_of(*values: str) -> Check:
    """One of these texts."""

    def check(value: Any, key: str) -> None:
        if type(value) is not str or value not in values:
            fail(value, key, " or ".join(map(repr, values)))

    return check


def optional(one: Check) -> Check:
    """None, or what another check takes."""

    def check(value: Any, key: str) -> None:
        if value is not None:
            one(value, key)

    return check


def list_of(one: Check, least: int = 0, most: int = MANY) -> Check:
    """A list of so many members, each of which passes."""

    def check(value: Any, key: str) -> None:
        if type(value) is not list:
            fail(value, key, "a list")
        if not least <= len(value) <= most:
            raise ValueError(f"{key} has {len(value):,} members; it must have {_range(least, most)}")
        for place, member in enumerate(value):
            one(member, f"{key}[{place}]")

    return check


def dict_of(one: Check, most: int = MANY) -> Check:
    """A dictionary whose keys are texts and whose values pass."""

    def check(value: Any, key: str) -> None:
        _is_dict(value, key)
        if len(value) > most:
            raise ValueError(f"{key} has {len(value):,} members; it can have {most:,}")
        for name, member in value.items():
            if type(name) is not str:
                raise ValueError(f"{key} has the key {brief(name)}; every key must be a text")
            one(member, _below(key, name))

    return check


def record(needed: Mapping[str, Check], more: Mapping[str, Check] | None = None) -> Check:
    """A dictionary with exactly these keys; those of `more` may be absent."""
    known = {**needed, **(more or {})}

    def check(value: Any, key: str) -> None:
        _is_dict(value, key)
        for name in needed:
            if name not in value:
                raise ValueError(f"{key} has no {name!r}; it must have {', '.join(needed)}")
        for name, member in value.items():
            if name not in known:
                raise ValueError(f"{key} has the key {brief(name)}, which is not known; it can have {', '.join(known)}")
            known[name](member, f"{key}.{name}")

    return check


def plain(value: Any, key: str, deep: int = DEEP) -> None:
    """Anything that JSON gives back as it is: numbers, texts, lists, dictionaries of texts; tuples become lists."""
    if isinstance(value, SCALARS):
        return
    if not deep:
        raise ValueError(f"{key} is nested deeper than {DEEP} lists and dictionaries")
    if isinstance(value, dict):
        for name, member in value.items():
            if not isinstance(name, str):
                raise ValueError(f"{key} has the key {brief(name)}; every key must be a text, such as {str(name)!r}")
            plain(member, _below(key, name), deep - 1)
    elif isinstance(value, list | tuple):
        for place, member in enumerate(value):
            if type(member) not in SCALARS:  # there may be many numbers
                plain(member, f"{key}[{place}]", deep - 1)
    else:
        fail(value, key, "a number, a text, a list or a dictionary")


def parse(content: str | bytes, key: str) -> Any:
    """What JSON says.

    Raises:
        ValueError: it is no JSON, or is nested too deep.
    """
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError(f"{key} is nested too deep to be read") from None
    except ValueError as error:
        raise ValueError(f"{key} is no JSON: {error}") from error


@contextmanager
def of_file(path: str | Path) -> Iterator[None]:
    """Begin each ValueError with the name of the file."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _is_dict(value: Any, key: str) -> None:
    if type(value) is not dict:
        fail(value, key, "a dictionary")


def _below(key: str, name: str) -> str:
    return f"{key}.{name}" if name.isidentifier() and len(name) <= LONG else f"{key}[{brief(name)}]"


def _range(least: int, most: int) -> str:
    return f"{least}" if least == most else f"at least {least}" if most >= MANY else f"{least} to {most}"


def brief(value: Any) -> str:
    """A value in a message: itself if it is short, else its kind."""
    if type(value) in (str, bytes):
        shown = repr(value[: LONG + 1])
        return shown if len(value) <= LONG else f"{shown[:LONG]}…"
    if type(value) is int and abs(value) > LARGEST:
        return f"a number of {value.bit_length()} bits"
    if value is None or type(value) in (bool, int, float):
        return repr(value)
    kind = {"dict": "dictionary"}.get(type(value).__name__, type(value).__name__)
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
