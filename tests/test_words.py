"""Names in the package and its scripts use standard terms and none of the banned private words."""

import ast
import re
from pathlib import Path

import pytest

import tfviz

PACKAGE = Path(tfviz.__file__).parent
BANNED = {
    "alike", "alive", "answered", "answering", "aside", "asked", "asking", "barred", "carried", "cols", "committed",
    "darkened", "dialing", "door", "doors", "everything", "fired", "firing", "firings", "followed", "framed", "gear",
    "gears", "given", "here", "house", "ingredients", "kept", "laid", "lined", "living", "looked", "looking", "made",
    "meeting", "met", "nowhere", "passage", "photograph", "place", "places", "questioned", "room", "rooms", "said",
    "say", "says", "scattered", "seal", "sealed", "shelf", "spelling", "spoken", "standing", "still", "tabled", "tall",
    "tell", "told", "translated", "tries", "turned", "wide", "wrong",
}  # fmt: skip
SCRIPTS = ("base", "controls", "engine", "entries", "interact", "studios", "text", "views")
BANNED_IN_SCRIPTS = BANNED | {
    "bench", "compared", "desk", "drawn", "found", "heard", "hooked", "knob", "knobs", "loud", "machine", "own",
    "plain", "roomy", "seen", "shown", "there", "typed", "unedited", "wake", "waking", "wanted", "way", "ways", "whole",
}  # fmt: skip
# Constants say what they are and in which unit: none is one of these words alone.
BARE = {
    "above", "across", "alone", "around", "beside", "between", "broken", "coarse", "door", "edge", "exact",
    "far", "few", "figures", "form", "given", "half", "here", "how", "inside", "knobs", "large", "least", "legible",
    "level", "low", "many", "most", "near", "nines", "own", "pale", "quick", "rings", "room", "roomy", "same",
    "settled", "slack", "small", "spare", "straight", "strong", "tall", "tidy", "unseen", "usual", "ways", "wide",
    "widest", "written",
}  # fmt: skip
CONSTANT = re.compile(r"^(?:export )?(?:const )?([A-Z][A-Z_0-9]*)(?:: [^=\n]+)? = ", re.MULTILINE)
DECLARED = re.compile(
    r"""\b(?:const|let|function\*?|class)\s+([\w$]+)    # a variable, a function, a class
    | ^\s+(?:async\s+|get\s+|static\s+|\*)*([\w$]+)\(.*\)\s\{$    # a method
    | ^\ \ ([\w$]+)\s=\s    # a field""",
    re.MULTILINE | re.VERBOSE,
)


def names(path):
    """Yield the module's name and those of its classes, functions and arguments."""
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg


def words(name):
    """Split a name at underscores, digits and capitals."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def test_python_names_have_no_banned_words():
    found = {(path.name, name) for path in PACKAGE.rglob("*.py") for name in names(path) if words(name) & BANNED}
    assert not found, f"{found}: take the field's word; the glossary is in CONTRIBUTING.md"


def test_script_filenames_have_no_banned_words():
    scripts = [path.stem for path in PACKAGE.glob("view/js/**/*.js")]
    assert len(scripts) > 100
    assert not [name for name in scripts if words(name) & BANNED]


def test_constants_have_descriptive_names():
    modules = [*PACKAGE.rglob("*.py"), *PACKAGE.glob("view/js/**/*.js"), *PACKAGE.glob("lessons/js/*.js")]
    constants = {name: path.name for path in modules for name in CONSTANT.findall(path.read_text("utf-8"))}
    assert {"MAX_PAGE_BYTES", "CONTROLS_WIDTH"} <= constants.keys()
    bare = {f"{path}: {name}" for name, path in constants.items() if name.lower() in BARE}
    assert not bare, f"{bare}: say the quantity and its unit, such as MAX_NAME_LENGTH or ROW_WIDTH_INCHES"


def declared(script):
    """List the variables, functions, classes, methods and fields that a script declares."""
    return ["".join(groups) for groups in DECLARED.findall(script)]


@pytest.mark.parametrize("folder", SCRIPTS)
def test_script_declarations_have_no_banned_words(folder):
    scripts = [path.read_text("utf-8") for path in PACKAGE.glob(f"view/js/{folder}/**/*.js")]
    assert scripts
    private = {name for script in scripts for name in declared(script) if words(name) & BANNED_IN_SCRIPTS}
    assert not private, f"{private}: take the field's word; the glossary is in CONTRIBUTING.md"


def test_declared_finds_javascript_declarations():
    script = """
export class Grid extends Base {
  limit = 0;
  async row(index) {
    const found = this.rows[index];
  }
  get size() {
    let count = 1;
  }
}
function* pairs(a) {}
"""
    assert sorted(declared(script)) == ["Grid", "count", "found", "limit", "pairs", "row", "size"]


def test_words_splits_snake_and_camel_case():
    assert words("LazyAttention_of_2heads") == {"lazy", "attention", "of", "heads"}
    assert words("GPTModel") == {"gpt", "model"}
