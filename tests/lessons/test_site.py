"""The built site: links, offline use, widths and accessibility; `TFVIZ_SITE=folder` tests a site built before."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from browser import axe, axe_violations
from click.testing import CliRunner

import tfviz
from tfviz.lessons import notebooks
from tfviz.lessons.cli import main
from tfviz.lessons.site import markdown_pages, reference

CLONE = Path(__file__).parents[2]
pytest_plugins = ["browser"]
MADE = os.environ.get("TFVIZ_SITE")
CHECKED = ["index", "notebooks/index", "notebooks/01_attention_from_nothing", "docs/looking", "api/tfviz/look"]
CHECKED += ["benchmarks/index"]
if MADE:
    CHECKED = [str(path.relative_to(MADE).with_suffix("")) for path in sorted(Path(MADE).rglob("*.html"))]
    CHECKED.remove("api/index")  # which leads on at once


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if MADE:
        return Path(MADE)
    out = tmp_path_factory.mktemp("site")
    ended = CliRunner().invoke(main, ["site", "01", "--preset", "smoke", "--out", str(out)])
    assert ended.exit_code == 0, ended.output
    return out


class Links(HTMLParser):
    """What a page links to, what it loads, and the names in it that can be linked to."""

    def __init__(self, page):
        super().__init__()
        self.links, self.loads, self.names = set(), set(), set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.names |= {found.get("id"), found.get("name")} - {None}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        elif tag in ("img", "script", "source", "iframe", "link", "video"):
            self.loads |= {found.get(key) for key in ("src", "href", "srcset")} - {None, ""}


def pages(site):
    found = {path.resolve(): Links(path) for path in sorted(site.rglob("*.html"))}
    assert len(found) > 50
    return found


def test_every_link_has_a_target(site):
    found = pages(site)
    whole = {path.name for path in notebooks.find()} <= {path.name for path in (site / "notebooks").iterdir()}
    wrong = []
    for path, page in found.items():
        for url in page.links | page.loads:
            if re.match(r"https?:|data:|mailto:", url) and url not in page.loads:
                continue
            path_to, _, name = url.partition("#")
            to = (path.parent / path_to).resolve() if path_to else path
            lesson = to.parent.name == "notebooks" and re.match(r"\d\d_", to.name)
            there = url.startswith("data:") or to.is_file() or (lesson and not whole)
            if not there or (name and to in found and name not in found[to].names):
                wrong.append((path.relative_to(site.resolve()), url))
    assert wrong == []


def test_lesson_page_is_interactive_and_has_no_live_link(site):
    page = (site / "notebooks/01_attention_from_nothing.html").read_text(encoding="utf-8")
    assert 'class="tfviz"' in page
    assert notebooks.WEBSITE not in page
    assert "<title>Attention" in page


def test_pages_name_whose_code_they_carry_and_its_licence(site):
    lesson = (site / "notebooks/01_attention_from_nothing.html").read_text(encoding="utf-8")
    guide = (site / "docs/own.html").read_text(encoding="utf-8")
    for page, names in ((lesson, ("tfviz", "nbconvert", "Pygments")), (guide, ("tfviz", "Pygments"))):
        notice = re.search(r"<!-- with scripts of .*? -->", page, re.DOTALL)[0]
        assert page.index(notice) < 1000
        for name in names:
            assert re.search(rf"\b{name}, copyright [^;]*\b(MIT|BSD \d-clause) licence", notice), name
            assert name == "tfviz" or name in (CLONE / "THIRD_PARTY_LICENSES.txt").read_text(encoding="utf-8")


def test_reference_has_a_page_for_each_public_module(site):
    for module in reference.modules():
        assert (site / "api" / (module.__name__.replace(".", "/") + ".html")).is_file()
        page = (site / "api" / (module.__name__.replace(".", "/") + ".html")).read_text(encoding="utf-8")
        names = [name for name in module.__all__ if not isinstance(getattr(module, name), ModuleType)]
        assert [name for name in names if f'id="{name}"' not in page] == [], module.__name__
    text = (site / "api/tfviz/look.html").read_text(encoding="utf-8")
    assert 'id="capture"' in text
    assert "<strong>LookupError:</strong>" in text


def test_pages_load_offline_and_fit_window_width(site, new_page):
    page = new_page("light", 400)
    too_wide = []
    for path in sorted(site.rglob("*.html")):
        if 'http-equiv="refresh"' in path.read_text(encoding="utf-8"):  # it leads on at once
            continue
        page.goto(path.as_uri())
        page.wait_for_load_state()
        for width in (400, 1600):
            page.set_viewport_size({"width": width, "height": 800})
            if page.evaluate("document.documentElement.scrollWidth") > width:
                too_wide.append((str(path.relative_to(site)), width))
    assert too_wide == []


@pytest.mark.parametrize("name", CHECKED)
def test_axe_reports_no_serious_violations(site, new_page, name):
    page = new_page("light", 1000)
    page.goto((site / f"{name}.html").as_uri())
    page.wait_for_load_state()
    axe(page)
    violations = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(60)
        violations[scheme] = axe_violations(page, "document-title")
    assert violations == {"light": [], "dark": []}


def test_links_in_lesson_text_are_underlined(site, new_page):
    page = new_page("light", 1000)
    page.goto((site / "notebooks/01_attention_from_nothing.html").as_uri())
    text = page.locator(".jp-RenderedMarkdown").first
    text.evaluate("text => text.insertAdjacentHTML('beforeend', '<li>Made by them, <a href=#x>there</a></li>')")
    link = text.get_by_text("there", exact=True)
    assert link.evaluate("link => getComputedStyle(link).textDecorationLine") == "underline"


def test_broken_markdown_link_raises(tmp_path):
    (tmp_path / "README.md").write_text("# x\n[there](docs/none.md)", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"README\.md links to docs/none\.md"):
        markdown_pages.write(tmp_path, tmp_path / "out")


def test_markdown_links_are_rewritten_for_site(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "LICENSE").write_text("MIT", encoding="utf-8")
    (tmp_path / "docs/a.svg").write_text("<svg/>", encoding="utf-8")
    (tmp_path / "README.md").write_text("# One two!\n", encoding="utf-8")
    (tmp_path / "docs/x.md").write_text(
        f"<!-- badges -->\n![b](https://host/b.svg)\n<!-- /badges -->\n# x\n[a](../README.md#one-two) [b](../LICENSE)"
        f" [c]({notebooks.WEBSITE}demo.html) [d](https://other.org/e.md) ![e](a.svg)\n\n| |\n|-|\n| t |\n",
        encoding="utf-8",
    )
    out = tmp_path / "out"
    markdown_pages.write(tmp_path, out)
    text = (out / "docs/x.html").read_text(encoding="utf-8")
    assert re.findall(r'(?:href|src)="([^"]*)"', text.partition('<main id="content">')[2]) == [
        "../index.html#one-two", "../LICENSE.txt", "../demo.html", "https://other.org/e.md", "a.svg",
    ]  # fmt: skip
    assert (out / "docs/a.svg").is_file()
    assert (out / "LICENSE.txt").read_text(encoding="utf-8") == "MIT"
    assert 'id="one-two"' in (out / "index.html").read_text(encoding="utf-8")
    assert 'class="scrolls"' in text


def test_documents_use_site_address_of_package():
    clone = notebooks.folder().parent
    for name in ("README.md", "docs/README.md", "CITATION.cff"):
        named = re.findall(r"https://\w+\.github\.io/[^\s)\]\"]*", (clone / name).read_text(encoding="utf-8"))
        assert named
        assert all(url.startswith(notebooks.WEBSITE) for url in named)


def test_citation_matches_package_version():
    cited = yaml.safe_load((notebooks.folder().parent / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert cited["version"] == tfviz.__version__
    assert {"message", "title", "authors", "license"} <= cited.keys()


def test_missing_pdoc_fails_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(reference.importlib.util, "find_spec", lambda name: None)
    ended = CliRunner().invoke(main, ["site", "01", "--preset", "smoke", "--out", str(tmp_path)])
    assert ended.exit_code == 1
    assert "pip install -e '.[site]'" in ended.output
    assert not list(tmp_path.iterdir())
