"""The page's own modules: named once, used where imported, in rooms of one order, silent outside their view."""

import re

import pytest

from tfviz.view.page.bundle import JS, module_of, script
from tfviz.view.page.html import KINDS

MODULES = sorted(path.relative_to(JS).with_suffix("").as_posix() for path in JS.rglob("*.js"))
ROOMS = {"base": {"base"}, "controls": {"base", "controls"}, "stages": {"base", "controls", "engine", "stages"}}
ROOMS["interact"] = ROOMS["stages"] | {"engine", "text", "interact"}


def source(name):
    return (JS / f"{name}.js").read_text(encoding="utf-8")


def room(name):
    return name.rpartition("/")[0]


def test_no_name_stands_at_the_top_of_two_modules():
    """But for the engine's, whose names a function of its own holds."""
    homes = {}
    for module in MODULES:
        for name in module_of(JS, module).names if room(module) != "engine" else ():
            homes.setdefault(name, []).append(module)
    assert len(homes) > 50
    assert {name: there for name, there in homes.items() if len(there) > 1} == {}


@pytest.mark.parametrize("module", MODULES)
def test_what_is_imported_is_used_and_comes_from_a_room_below(module):
    text = source(module)
    for other, names in module_of(JS, module).imports.items():
        assert room(other) in ROOMS.get(room(module), {room(other)}), f"{module} imports {other}"
        for name in names:
            assert len(re.findall(rf"\b{name}\b", text)) > 1, f"{name} is imported and not used"


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_touched_outside_a_view(module):
    text = source(module)
    assert not re.search(r"(window|document|document\.body|globalThis)\.(addEventListener|on\w+ =)", text)
    assert "innerHTML" not in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(("module", "kind"), KINDS.values())
def test_the_joined_script_has_no_import_left(module, kind):
    joined = script(module, "page")
    assert not re.search(r"\b(import|export)\b", joined)
    assert "</script" not in joined
    assert f"class {kind} " in joined


def test_the_widget_is_one_module():
    joined = script("widget")
    assert not re.search(r"\bimport\b", joined)
    assert joined.rstrip().endswith("export default { render };")


def test_a_page_carries_only_what_its_kind_needs():
    assert "class Explorer" in script("stages/explorer", "page")
    assert "class Explorer" not in script("stages/points", "page")
