"""Values of parameters, as they are written on a command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from tfviz.suite import presets


def given(known: Mapping[str, tuple[str, Any]], texts: Iterable[str]) -> dict[str, Any]:
    """Of several `KEY=VALUE`: each parameter's value, of the kind that its default has.

    Args:
        known: parameter -> the notebook that has it, and its default there.

    Raises:
        ValueError: it is written otherwise, of another kind, or a name comes twice.
    """
    return {name: read(known, name, value) for name, value in _once("-p", map(_pair, texts))}


def varied(known: Mapping[str, tuple[str, Any]], texts: Iterable[str]) -> dict[str, list[Any]]:
    """Of several `KEY=V1,V2,...`: each parameter's values.

    Raises:
        ValueError: as for `given`.
    """
    return {
        name: [read(known, name, value) for value in values] for name, values in _once("--grid", map(_values, texts))
    }


def read(known: Mapping[str, tuple[str, Any]], name: str, text: str) -> Any:
    """A parameter's value, of the kind that its default is; a text stands for itself, whatever it looks like.

    Args:
        known: parameter -> the notebook that has it, and its default there; a name that none has is told by `check`.

    Raises:
        ValueError: it is of another kind.
    """
    home, default = known.get(name, ("", ""))
    if isinstance(default, str):
        return text
    try:
        kind = type(default)
        value = kind(text) if kind in (int, float) else yaml.load(text, presets.Plain)
        json.dumps(value)  # a date or a set is no parameter
        if default is None or type(value) is kind:
            return value
    except (ValueError, TypeError, yaml.YAMLError, RecursionError):
        pass
    raise ValueError(f"{name}={_short(text)}: in {home} {name} is {presets.kind(default)}, such as {default!r}")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"-p {_short(text)}: write it as KEY=VALUE, for example -p steps=200")
    return name, value


def _values(text: str) -> tuple[str, list[str]]:
    """A list keeps its commas in brackets, a text its own in quotation marks."""
    name, equals, values = text.partition("=")
    try:
        nodes = yaml.compose(listed := f"[{values}]", presets.Plain).value  # type: ignore[arg-type]
    except (yaml.YAMLError, RecursionError):
        nodes = []
    if not equals or not name or not nodes:
        raise ValueError(
            f"--grid {_short(text)}: write it as KEY=V1,V2,..., for example --grid seed=1,2,3 or word=a,'b, c'"
        )
    return name, [
        node.value if isinstance(node, yaml.ScalarNode) else listed[node.start_mark.index : node.end_mark.index]
        for node in nodes
    ]


def _once(option: str, pairs: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            more = "all its values after one --grid" if option == "--grid" else "one value"
            raise ValueError(f"{option} {name} is given twice; give {more}")
        found[name] = value
    return list(found.items())


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}…"
