"""Values of parameters as they are written on a command line."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from tfviz.suite import notebooks


def parse_values(texts: Iterable[str], paths: Sequence[Path]) -> dict[str, Any]:
    """Parse `KEY=VALUE` options; each value becomes of the type that the parameter's default has in these notebooks.

    Raises:
        LookupError: no notebook has such a parameter; lists those there are.
        ValueError: a text that cannot be parsed, or a parameter that is given twice.
    """
    return {name: values[0] for name, values in _parse(texts, paths, several=False).items()}


def parse_grid(texts: Iterable[str], paths: Sequence[Path]) -> dict[str, list[Any]]:
    """Parse `KEY=V1,V2,...` options, as `parse_values`; a value with a comma stands in double quotation marks."""
    return _parse(texts, paths, several=True)


def _parse(texts: Iterable[str], paths: Sequence[Path], several: bool) -> dict[str, list[Any]]:
    known = {path.stem: notebooks.parameters(path) for path in paths}
    parsed: dict[str, list[Any]] = {}
    for text in texts:
        name, _, value = text.partition("=")
        values = next(csv.reader([value]), []) if several else [value]
        if "=" not in text or not name or not values:
            raise ValueError(f"{text!r}: write it as " + ("KEY=V1,V2,..." if several else "KEY=VALUE"))
        if name in parsed:
            raise ValueError(f"{name} is given twice")
        default = _default(name, known)
        parsed[name] = [_convert(name, each, default) for each in values]
    return parsed


def _default(name: str, known: dict[str, dict[str, Any]]) -> Any:
    for defaults in known.values():
        if name in defaults:
            return defaults[name]
    choices = "; ".join(f"{stem} has {', '.join(defaults) or 'none'}" for stem, defaults in known.items())
    raise LookupError(f"no notebook here has a parameter {name!r}: {choices}")


def _convert(name: str, text: str, default: Any) -> Any:
    """Return the value that a text stands for; a string stands for itself, whatever it looks like."""
    if isinstance(default, str):
        return text
    try:
        value = type(default)(text) if type(default) in (int, float) else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError):
        value = text
    try:
        notebooks.check_type(name, value, default)
    except TypeError as error:
        raise ValueError(str(error)) from None
    return value
