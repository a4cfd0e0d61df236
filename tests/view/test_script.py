"""The page's modules, joined: what is imported is there, nothing is named twice, nothing listens outside."""

import re

import pytest

from tfviz.view.page import KINDS, MODULES, script
from tfviz.view.palette import STATIC

TOP = re.compile(r"^(?:export )?(?:async )?(?:const|let|function|class) (\w+)", re.MULTILINE)
IMPORTED = re.compile(r'^import \{ (.*) \} from "\./(\w+)\.js";$', re.MULTILINE)


def source(name):
    return (STATIC / f"{name}.js").read_text(encoding="utf-8")


def test_every_module_is_joined():
    assert sorted(path.stem for path in STATIC.glob("*.js")) == sorted(MODULES)


def test_no_name_stands_at_the_top_of_two_modules():
    names = [name for module in MODULES for name in TOP.findall(source(module))]
    assert len(names) > 50
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("module", MODULES)
def test_what_is_imported_stands_before(module):
    text = source(module)
    found = IMPORTED.findall(text)
    assert len(found) == len(re.findall(r"^import", text, re.MULTILINE))  # each on one line, in one form
    for names, other in found:
        assert MODULES.index(other) < MODULES.index(module)
        exported = set(re.findall(r"^export (?:async )?(?:const|function|class) (\w+)", source(other), re.MULTILINE))
        assert set(names.split(", ")) <= exported | {"OPEN", "FORBIDDEN", "ABSENT"}
        for name in names.split(", "):
            assert len(re.findall(rf"\b{name}\b", text)) > 1, f"{name} is imported and not used"


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_touched_outside_a_view(module):
    text = source(module)
    assert not re.search(r"(window|document|document\.body|globalThis)\.(addEventListener|on\w+ =)", text)
    assert "innerHTML" not in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("kind", [kind.lower() for kind in KINDS.values()])
def test_the_joined_script_has_no_import_left(kind):
    joined = script(kind, "page")
    assert not re.search(r"^\s*import\b", joined, re.MULTILINE)
    assert "export " not in joined
    assert "</script" not in joined
    assert f"class {kind}" in joined.lower()


def test_the_widget_is_one_module():
    joined = script("widget")
    assert not re.search(r"^\s*import\b", joined, re.MULTILINE)
    assert joined.rstrip().endswith("export default { render };")


def test_a_page_carries_only_what_its_kind_needs():
    assert "class Explorer" in script("explorer", "page")
    assert "class Explorer" not in script("points", "page")
