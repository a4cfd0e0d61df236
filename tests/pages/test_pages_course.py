"""Lesson pages in Chromium: code folding, search and table of contents."""

import pytest
from nbformat import v4

from tfviz.lessons import lesson_page
from tfviz.lessons.site import search_index
from tfviz.lessons.site.markdown_pages import site_navigation

pytest_plugins = ["browser"]
SHOWS_CODE = "cells => cells.map(cell => cell.open)"


@pytest.fixture
def lesson(tmp_path):
    """A site of one lesson with three sections, each longer than a window, and two cells of code."""
    (tmp_path / "notebooks").mkdir()
    paragraphs = {
        "Scores": "A dot product / of both.",
        "Masks": "What is *forbidden*.",
        "Heads": "An induction head copies.",
    }
    cells = [v4.new_markdown_cell("# A lesson\n\nIt promises.")]
    for heading, paragraph in paragraphs.items():
        cells += [v4.new_markdown_cell(f"## {heading}\n\n" + f"{paragraph}\n\n" * 30), v4.new_code_cell("x = 1\ny = 2")]
    navigation = site_navigation("../", "Lessons")
    lesson_page.write(v4.new_notebook(cells=cells), tmp_path / "notebooks/01_a.html", navigation)
    search_index.write(tmp_path)
    return tmp_path / "notebooks/01_a.html"


def test_fold_all_button_survives_reload(new_page, lesson):
    page = new_page("light", 1280)
    page.goto(lesson.as_uri())
    cells, button = page.locator("details.code"), page.locator(".fold-all")
    assert cells.evaluate_all(SHOWS_CODE) == [True, True, True]
    button.click()
    assert cells.evaluate_all(SHOWS_CODE) == [False, False, False]
    assert button.text_content() == "Show all code"
    page.reload()
    assert cells.evaluate_all(SHOWS_CODE) == [False, False, False]
    cells.nth(1).locator("summary").press("Enter")
    assert cells.evaluate_all(SHOWS_CODE) == [False, True, False]
    button.click()
    assert cells.evaluate_all(SHOWS_CODE) == [True, True, True]
    assert button.text_content() == "Hide all code"
    cells.nth(2).locator("summary").press("Enter")
    page.get_by_role("button", name="Show all code").wait_for()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert cells.evaluate_all(SHOWS_CODE) == [True, True, True]


def test_code_that_fills_in_numbers_shows_with_all_code(new_page, tmp_path):
    """The sentence that it makes stays."""
    claim = v4.new_code_cell("claims.state(f'It is {x}.')", metadata={"tags": ["claims"]})
    claim.outputs = [v4.new_output("display_data", data={"text/markdown": "It is 1."})]
    cells = [v4.new_markdown_cell("# A lesson\n\nIt promises."), v4.new_code_cell("x = 1"), claim]
    lesson_page.write(v4.new_notebook(cells=cells), tmp_path / "01_a.html")
    page = new_page("light", 1280)
    page.goto((tmp_path / "01_a.html").as_uri())
    code = page.locator("details.code")
    page.locator(".fold-all").click()
    if page.locator(".fold-all").text_content() == "Show all code":
        page.locator(".fold-all").click()
    assert [code.nth(i).is_visible() for i in range(2)] == [True, True]
    page.locator(".fold-all").click()
    assert [code.nth(i).is_visible() for i in range(2)] == [True, False]
    assert page.get_by_text("It is 1.").is_visible()


def test_code_folds_without_local_storage(new_page, lesson):
    page = new_page("light", 1280)
    page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('refused'); } })")
    page.goto(lesson.as_uri())
    page.locator(".fold-all").click()
    assert page.locator("details.code").evaluate_all(SHOWS_CODE) == [False, False, False]


def test_search_works_by_keyboard(new_page, lesson):
    page = new_page("light", 1280)
    page.goto(lesson.as_uri())
    page.keyboard.press("/")
    field, results = page.get_by_role("searchbox"), page.locator(".results a")
    page.keyboard.type("induc")
    results.first.wait_for()
    assert field.input_value() == "induc"
    assert results.locator("b").all_text_contents() == ["A lesson › Heads"]
    assert results.locator("mark").first.text_content() == "induction"
    page.keyboard.press("Escape")
    assert not results.first.is_visible()
    field.fill("a")
    page.wait_for_function("document.querySelectorAll('.results a').length > 1")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement === document.querySelectorAll('.results a')[1]")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.matches('.search input')")
    field.fill("forbidden")
    page.wait_for_function("document.querySelector('.results b')?.textContent.endsWith('Masks')")
    page.keyboard.press("Enter")
    page.wait_for_url("**/01_a.html#Masks")


def test_search_reports_no_results_and_ignores_keys_in_other_fields(new_page, lesson):
    page = new_page("light", 1280)
    page.goto(lesson.as_uri())
    page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<textarea></textarea>')")
    page.locator("textarea").press("/")
    assert page.locator("textarea").input_value() == "/"
    page.get_by_role("searchbox").fill("zebra")
    page.wait_for_function("document.querySelector('.results [role=status]')?.textContent === 'Nothing for “zebra”'")


def test_contents_highlight_current_section(new_page, lesson):
    page = new_page("dark", 1280)
    page.goto(lesson.as_uri())
    current = page.locator(".contents [aria-current]")
    assert current.count() == 0  # above the first heading
    page.locator(".contents").get_by_text("Heads").click()
    page.wait_for_function("document.querySelector('.contents [aria-current]')?.textContent === 'Heads'")
    assert current.is_visible()  # beside the text, wherever that is
    page.evaluate("document.querySelector('#Masks').scrollIntoView()")
    page.wait_for_function("document.querySelector('.contents [aria-current]').textContent === 'Masks'")
    assert current.count() == 1


def test_contents_are_collapsed_above_text_on_phone(new_page, lesson):
    page = new_page("light", 400)
    page.goto(lesson.as_uri())
    contents = page.locator(".contents")
    assert not contents.get_by_text("Masks").is_visible()
    assert contents.bounding_box()["y"] < page.locator("h1").bounding_box()["y"]
    contents.locator("summary").press("Enter")
    contents.get_by_text("Masks").click()
    page.wait_for_function("Math.abs(document.querySelector('#Masks').getBoundingClientRect().top) < 60")
    assert page.evaluate("document.documentElement.scrollWidth") == 400


def test_first_tab_stop_skips_to_text(new_page, lesson):
    page = new_page("light", 1280)
    page.goto(lesson.as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the text"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector(':target').tagName") == "MAIN"
