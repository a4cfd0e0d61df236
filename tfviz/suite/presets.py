"""The presets of the notebooks, and plain values written as YAML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from tfviz import schema

LARGEST = 100_000  # bytes; YAML is read slowly
KINDS = {int: "a whole number", float: "a number", bool: "true or false", type(None): "a number, a text or a list"}
PRESETS = schema.dict_of(schema.dict_of(schema.dict_of(schema.json_value, 1000), 1000), 100)


def read(path: Path, notebooks: Collection[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """preset -> notebook -> parameter -> value

    Args:
        notebooks: those that there are.

    Raises:
        FileNotFoundError: there is no such file, but perhaps a folder or a pipe.
        ValueError: it is something else; names the key.
    """
    if not path.is_file():  # a pipe would be waited for without end
        raise FileNotFoundError(f"there is no file {path}, which says what each preset is")
    with schema.errors_name(path):
        found = parse(_text(path))
        PRESETS(found, "presets")
        for preset, parts in found.items():
            if odd := [name for name in parts if name not in notebooks]:
                raise ValueError(f"{preset} has {odd[0]!r}, and there is no such notebook; there are: "
                                 f"{', '.join(sorted(notebooks)) or 'none'}")  # fmt: skip
    return found


def check(path: Path, preset: str, notebook: str, chosen: dict[str, Any], defaults: dict[str, Any]) -> None:
    """What a preset says of a notebook's parameters has their names and kinds.

    Raises:
        LookupError: the notebook has no such parameter.
        ValueError: a value is of another kind than the notebook's own.
    """
    for name, value in chosen.items():
        key = f"{path}: {preset}.{notebook}"
        if name not in defaults:
            has = ", ".join(defaults) or "none"
            raise LookupError(f"{key}: no notebook here has a parameter {name!r}: {notebook} has {has}")
        if not of_kind(value, defaults[name]):
            said = f"in {notebook} {name} is {kind(defaults[name])}, such as {defaults[name]!r}"
            raise ValueError(f"{key}.{name} is {schema.brief(value)}; {said}")


def of_kind(value: Any, default: Any) -> bool:
    """Whether a value is of the kind of a parameter's default; a whole number is a number."""
    return default is None or type(value) is type(default) or (type(default) is float and type(value) is int)


def kind(default: Any) -> str:
    """The kind of a parameter, in words."""
    return KINDS.get(type(default), {"str": "a text"}.get(type(default).__name__, type(default).__name__))


def parse(text: str) -> Any:
    """What YAML says, each value written out; nothing of Python's is made.

    Raises:
        ValueError: it is no YAML, nested too deep, or refers to its own parts.
    """
    try:
        return yaml.load(text, Plain)
    except RecursionError:
        raise ValueError("it is nested too deep to be read") from None
    except Exception as error:  # a date or a number may be none, which YAML finds out in many ways
        raise ValueError(f"it is no plain YAML: {' '.join(str(error).split())[:300]}") from error


class Plain(yaml.SafeLoader):
    """YAML without aliases: with them a short line can stand for 10**9 values."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("a value is written out, and not referred to")
        return super().compose_node(parent, index)

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if twice := next((name for name, count in Counter(names).items() if count > 1), None):
            raise yaml.YAMLError(f"{twice!r} stands twice in one dictionary")
        return node


def _text(path: Path) -> str:
    with path.open("rb") as stream:
        content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"it has more than {LARGEST:,} bytes; presets are short")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no text in UTF-8: {error}") from error
