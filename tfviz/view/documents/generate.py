"""Generate the files that the page's scripts share with Python: `python -m tfviz.view.documents.generate`.

`js/documents.d.ts` has the types of documents, by which tsc checks the scripts. `js/base/spec.json` has scales,
thresholds and colours. A test fails if one of these files is stale.
"""

import inspect
import json
import re
import types
from pathlib import Path
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from tfviz.view.documents import charts, heads, interact, neurons, studio_base, studios, view_document
from tfviz.view.figures.palette import theme_colours
from tfviz.view.result_spec import STACK_COLOURS
from tfviz.view.spec import (
    MAX_INNER_TICK,
    MAX_MUTED_NUMBER,
    MAX_NUMBERED_CELLS,
    MIN_SCALE_EVEN_WEIGHTS,
    SCALE_RULES,
    TICK_FACTORS,
)

MODULES = (heads, charts, neurons, interact, studio_base, studios, view_document)
SCRIPTS = Path(__file__).parents[1] / "js"
HEADER = "// The documents of views, written by `python -m tfviz.view.documents.generate`.\n"
PRIMITIVE_NAMES = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", Any: "any"}
UNION_TYPES = (Union, types.UnionType)
TYPE_ALIASES = {  # types that have a name
    hint: name
    for module in MODULES
    for name, hint in vars(module).items()
    if get_origin(hint) in (*UNION_TYPES, Literal, tuple)
}


def generated_files() -> dict[Path, str]:
    """Return the text of each generated file, by its path."""
    texts = {"base/spec.json": json.dumps(constants(), indent=2) + "\n", "documents.d.ts": declarations()}
    return {SCRIPTS / name: text for name, text in texts.items()}


def constants() -> dict[str, Any]:
    """Return scales, thresholds and colours as plain values."""
    scales = {
        kind: {"root": r.root, "diverging": r.diverging, "ticks": list(r.ticks)} for kind, r in SCALE_RULES.items()
    }
    return {
        "max_numbered_cells": MAX_NUMBERED_CELLS,
        "min_scale_even_weights": MIN_SCALE_EVEN_WEIGHTS,
        "max_muted_number": MAX_MUTED_NUMBER,
        "max_inner_tick": MAX_INNER_TICK,
        "tick_factors": list(TICK_FACTORS),
        "stack_colours": list(STACK_COLOURS),
        "scales": scales,
        "themes": theme_colours(),
    }


def declarations() -> str:
    """Return a TypeScript type for each type that the document modules define."""
    aliases = [f"\nexport type {name} = {_type(hint, named=False)};\n" for hint, name in TYPE_ALIASES.items()]
    classes = [value for module in MODULES for value in vars(module).values() if is_typeddict(value)]
    return HEADER + "".join([*aliases, *map(_interface, dict.fromkeys(classes))])


def _interface(cls: Any) -> str:
    summary, members = _docstring(cls)
    lines = [f"\n/** {summary} */", f"export interface {cls.__name__} {{"]
    for name, hint in get_type_hints(cls, include_extras=True).items():
        if name in members:
            lines.append(f"  /** {members[name]} */")
        required = get_origin(hint) is not NotRequired
        lines.append(f"  {name}{'' if required else '?'}: {_type(hint if required else get_args(hint)[0])};")
    return "\n".join([*lines, "}\n"])


def _docstring(cls: Any) -> tuple[str, dict[str, str]]:
    """Return the first line of a class's docstring, and the description of each attribute by name."""
    text = inspect.getdoc(cls) or ""
    entries = re.findall(r"(?ms)^    (\w+): (.*?)(?=^    \w|\Z)", text.partition("Attributes:\n")[2])
    return text.split("\n")[0], {name: " ".join(line.split()) for name, line in entries}


def _type(hint: Any, named: bool = True) -> str:
    """Return an annotation in TypeScript, by its own name if it has one.

    >>> _type(list[str | None] | None), _type(tuple[int, str]), _type(dict[str, Literal["a", "b"]])
    ('(string | null)[] | null', '[number, string]', 'Record<string, "a" | "b">')
    """
    if named and hint in TYPE_ALIASES:
        return TYPE_ALIASES[hint]
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " | ".join(f'"{value}"' for value in parts)
    if origin in UNION_TYPES:
        return " | ".join(map(_type, parts))
    if origin is list:
        item = _type(parts[0])
        return f"({item})[]" if " | " in item else f"{item}[]"
    if origin is tuple:
        return f"[{', '.join(map(_type, parts))}]"
    if origin is dict:
        return f"Record<string, {_type(parts[1])}>"
    return PRIMITIVE_NAMES.get(hint) or hint.__name__


if __name__ == "__main__":
    for path, text in generated_files().items():
        path.write_text(text, encoding="utf-8", newline="\n")
