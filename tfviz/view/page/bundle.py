"""The page's modules joined: a page has no second file to import, and a widget takes a single module."""

from __future__ import annotations

import json
import posixpath
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tfviz.view.page.tokens import Token, tokens
from tfviz.view.still.palette import inks

JS = Path(__file__).parent.parent / "js"
PAGE_STYLE = """body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 1400px; padding: 0 1rem;
background: Canvas; color: CanvasText; overflow-wrap: anywhere } img { max-width: 100% }"""
GIVEN = ("PALETTE", "CSS", "PAGE_STYLE")  # names that Python gives to every page
DECLARES = ("const", "let", "var", "function", "class", "async")
DECLARATION = "a declaration at the top gives one name, as in const a = 1;"
IMPORT = re.compile(r'import \{ (\w+(?: , \w+)*)(?: ,)? \} from "(\.\.?/[\w./-]+)\.js"')


class Module(NamedTuple):
    """A module: what it imports (module -> names), names at its top, those it exports, and its code without either."""

    imports: dict[str, tuple[str, ...]]
    names: tuple[str, ...]
    exports: tuple[str, ...]
    code: str


@lru_cache
def script(*entries: str, root: Path = JS) -> str:
    """These modules and all they import as one script, with `PALETTE`, `CSS` and `PAGE_STYLE` before them.

    Each module follows those it imports. Names at the top of a module are unique over all of them, so that what is
    imported is what is there. Imports, comments and space that mean nothing go.

    Args:
        entries: paths below `root`, without `.js`.

    Raises:
        ValueError: a file is missing or imports in a circle; a name is imported that its module does not export, or
            stands at the top of two; the text cannot be read.
    """
    values = (inks(), (JS / "view.css").read_text(encoding="utf-8"), PAGE_STYLE)
    constants = "".join(f"const {name} = {script_json(value)};\n" for name, value in zip(GIVEN, values, strict=True))
    return constants + _joined(_ordered(root, entries), GIVEN)


@lru_cache
def factory(name: str, *entries: str, root: Path = JS) -> str:
    """The same as one function, `name`, that gives what the entries export: its text can go to a worker.

    Raises:
        ValueError: as `script`; or an entry exports nothing by name.
    """
    modules = _ordered(root, entries)
    exported = [export for entry in entries for export in modules[entry].exports]
    if not all(modules[entry].exports for entry in entries):
        raise ValueError(f"{name}: each of {', '.join(entries)} must export something by name")
    code = _joined(modules)
    return f'const {name} = () => {{"use strict";\n{code}return {{ {", ".join(exported)} }};\n}};\n'


def script_json(value: Any) -> str:
    """JSON that can stand in a script: pure ASCII, and no `<` that could end it."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _joined(modules: dict[str, Module], given: tuple[str, ...] = ()) -> str:
    homes = dict.fromkeys(given, "Python")
    for path, module in modules.items():
        for name in module.names:
            if homes.setdefault(name, path) != path:
                raise ValueError(f"{name} stands at the top of two modules: {homes[name]} and {path}; rename one")
        for other, names in module.imports.items():
            for name in names:
                if name not in modules[other].exports:
                    exported = ", ".join(modules[other].exports) or "nothing"
                    raise ValueError(f"{path} imports {name} from {other}, which exports {exported}")
    return "".join(module.code for module in modules.values())


def _ordered(root: Path, entries: tuple[str, ...]) -> dict[str, Module]:
    """The entries and all they import, each after those it imports itself."""
    done: dict[str, Module] = {}

    def visit(path: str, way: tuple[str, ...]) -> None:
        if path in way:
            raise ValueError(f"modules import in a circle: {' -> '.join((*way[way.index(path) :], path))}")
        if path in done:
            return
        try:
            module = module_of(root, path)
        except FileNotFoundError:
            asked = f"{way[-1]} imports" if way else "asked for is"
            raise ValueError(f"{asked} {path}, and there is no {path}.js in {root}") from None
        for other in module.imports:
            visit(other, (*way, path))
        done[path] = module

    for entry in entries:
        visit(entry, ())
    return done


@cache
def module_of(root: Path, path: str) -> Module:
    """A module by its path below `root`, without `.js`.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it cannot be read: an import, export or declaration in another form than the house's.
    """
    text = (root / f"{path}.js").read_text(encoding="utf-8")
    try:
        found = tokens(text)
        own, imports = _imports(found, posixpath.dirname(path))
        names, exports, left_out = _names(own)
    except ValueError as error:
        raise ValueError(f"{path}.js: {error}") from None
    return Module(imports, tuple(names), tuple(exports), _code(own, left_out))


def _imports(found: list[Token], folder: str) -> tuple[list[Token], dict[str, tuple[str, ...]]]:
    """What is left without the imports, and those: `import { a, b } from "./c.js";`, before all else."""
    imports: dict[str, tuple[str, ...]] = {}
    at = 0
    while at < len(found) and found[at].text == "import":
        end = next((i for i in range(at, len(found)) if found[i].text == ";"), len(found))
        line = " ".join(token.text for token in found[at:end])
        match = IMPORT.fullmatch(line)
        if not match:
            raise ValueError(f'{line[:80]!r}: an import reads `import {{ a, b }} from "./c.js";`')
        other = posixpath.normpath(posixpath.join(folder, match[2]))
        imports[other] = imports.get(other, ()) + tuple(match[1].split(" , "))
        at = end + 1
    for i in range(at, len(found)):
        if found[i].text == "import" and found[i - 1].text != ".":
            raise ValueError("imports stand before all else, and none is made while the page runs")
    return found[at:], imports


def _names(own: list[Token]) -> tuple[list[str], list[str], set[int]]:
    """Names at the top of a module, those of them that are exported, and the tokens that only export."""
    names: list[str] = []
    exports: list[str] = []
    left_out: set[int] = set()
    listing = False  # in a declaration that a comma could go on with
    for at, token in enumerate(own):
        if token.depth:
            continue
        if listing and token.text == ",":
            raise ValueError(f"after {names[-1]}: {DECLARATION}")
        listing = listing and token.text != ";"
        if token.text not in (*DECLARES, "export") or not _starts(own, at):
            continue
        is_export = token.text == "export"
        if is_export and own[at + 1].text == "default":  # a widget's, which stays
            continue
        if own[at + is_export].text not in DECLARES:
            raise ValueError(f"export {own[at + 1].text}: an export stands before the declaration of its name")
        name = next((other for other in own[at + is_export :] if other.text not in (*DECLARES, "*")), token)
        if name.kind != "word":
            raise ValueError(f"{token.text} {name.text}: {DECLARATION}")
        listing = own[at + is_export].text in ("const", "let", "var")
        names.append(name.text)
        if is_export:
            exports.append(name.text)
            left_out.add(at)
    return names, exports, left_out


def _starts(own: list[Token], at: int) -> bool:
    """Whether a statement may start here."""
    if at == 0:
        return True
    return own[at - 1].text in (";", "}", ")", "]") or (own[at].gap == "\n" and own[at - 1].kind != "mark")


def _code(own: list[Token], left_out: set[int]) -> str:
    """The tokens as text, without ends of lines where nothing depends on them."""
    pieces, last = [], ";"
    for at, token in enumerate(own):
        if at in left_out:
            continue
        gap = own[at - 1].gap if at - 1 in left_out else token.gap
        means_nothing = gap == "\n" and (last in ("{", "(", "[", ",", ";") or token.text in ("}", ")", "]"))
        pieces += ["" if means_nothing else gap, token.text]
        last = token.text
    return "".join(pieces) + "\n"
