"""Page scripts: bundles match their sources, are self-contained and appear once per page."""

import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from browser import goto_view, takes
from example_views import KINDS

from tfviz import view
from tfviz.view.page.bundle import BUNDLES, bundle, deduplicate
from tfviz.view.page.html import joined_page

pytest_plugins = ["browser"]
ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in BUNDLES.glob("*.js"))


def test_bundles_match_sources():
    if not (ROOT / "node_modules").is_dir() or shutil.which("npm") is None:
        pytest.skip("npm ci has not been run")
    done = subprocess.run(["npm", "run", "--silent", "build:check"], cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_bundle_contains_no_url_local_path_or_script_end_tag(name):
    code = (BUNDLES / f"{name}.js").read_text("utf-8")
    assert "://" not in code.replace("http://www.w3.org/2000/svg", "")
    assert str(ROOT) not in code
    assert "</script" not in code


def test_page_contains_only_bundles_of_its_kind():
    masks = view.masks({"all": torch.ones(2, 2, dtype=torch.bool)}).html(static=False)
    assert [bundle(name)[1] in masks for name in NAMES if not name.endswith("-widget")] == [
        name == "charts" for name in NAMES if not name.endswith("-widget")
    ]


def test_deduplicate_keeps_first_copy_of_each_bundle():
    (one, first), (_, second) = bundle("maps"), bundle("charts")
    assert deduplicate(f"a{first}b{second}c{first}d", set()) == f"a{first}b{second}cd"
    seen = {one}
    assert deduplicate(f"{first}<p>{second}", seen) == f"<p>{second}"
    assert len(seen) == 2


def test_together_page_has_live_views_that_can_be_saved(new_page, tmp_path):
    path = tmp_path / "together.html"
    path.write_text(joined_page("all", {name: make() for name, make in KINDS.items()}), "utf-8")
    assert path.read_text("utf-8").count("<script data-bundle=") == len({"maps", "charts", "neurons"})
    page = new_page()
    goto_view(page, path)
    assert page.locator(".tfviz[data-alive]").count() == len(KINDS)
    page.locator(".tfviz").evaluate_all("all => all.slice(0, -1).forEach((view) => view.remove())")
    last = takes(page, "HTML", tmp_path)
    goto_view(page, last)
    assert "tfvizBundles" in last.read_text("utf-8")
    again = tmp_path / "again.html"
    shutil.copy(takes(page, "HTML", tmp_path), again)
    goto_view(page, again)
