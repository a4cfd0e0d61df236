"""Pages of every kind, with very long names where they take names, are not wider than the window."""

import re

import nbformat
import pytest
import torch
from browser import axe, axe_violations_by_scheme, horizontal_overflow, maps, tabbed
from example_views import every_control
from small_models import randomize_weights
from small_translators import tokenizers, translated
from studio_pages import click, switch, types, wait_until_idle, with_state
from writing_studios import TOKENIZER, gpt, write_studio

from tfviz import view
from tfviz.lessons import gallery
from tfviz.lessons.runs import Outcome, Run
from tfviz.models import BERT, GPT, Classifier
from tfviz.text import train_whole_words

pytest_plugins = ["browser", "studio_pages"]
LONG = "x" * 3000
NAMES = [LONG, "b", "c", "d", "e"]
SENTENCES = {f"{'Many words that name a thing ' * 9}{i}": i for i in range(3)}
TABLE = torch.eye(5)
LONG_NAMED = {
    "bars": lambda: view.bars(NAMES, {LONG: TABLE[0], "b": TABLE[1]}, LONG, y=LONG, references={LONG: 0.3}),
    "bar_table": lambda: view.bar_table(NAMES, {LONG: TABLE[0]}, LONG),
    "lines": lambda: view.lines({LONG: ([1, 2], [1.0, 2.0])}, x=LONG, y=LONG, title=LONG),
    "planes": lambda: view.planes({LONG: TABLE[:, :2]}, NAMES, LONG, mark=[LONG]),
    "head_table": lambda: view.head_table({LONG: torch.rand(1, 2)}, LONG),
    "cells": lambda: view.interact(lambda p: p.sum(0), p=view.controls.cells(TABLE, NAMES, NAMES)),
    "menu": lambda: view.interact(lambda k: TABLE * k, k={LONG: 1.0, "b": 2.0}),
}
LONG_TITLED = {
    "masks": lambda: view.masks({name: long_named_rule(number) for name, number in SENTENCES.items()},
                                roles=dict.fromkeys(SENTENCES, "all")),
    "groups": lambda: view.groups(**{name: maps(2, 2, 5, 5, seed=seed) for name, seed in SENTENCES.items()}),
    "steps": lambda: view.steps({name: maps(2, 2, 5, 5, seed=seed) for name, seed in SENTENCES.items()}),
    "positions": lambda: view.positions({name: torch.eye(5, 8) for name in SENTENCES}),
    "gates": lambda: view.gates({name: torch.eye(5, 8) for name in SENTENCES}),
}  # fmt: skip


def long_named_rule(number):
    return {size: torch.ones(5, 5, dtype=torch.bool).tril(size + number) for size in range(3)}


def open_all_details(page):
    for summary in page.locator("summary").all():
        if summary.is_visible():  # a narrow page has no list of keys
            summary.click()


@pytest.mark.parametrize("name", LONG_NAMED)
def test_long_names_do_not_scroll_page_horizontally(open_view, tmp_path, name):
    page = open_view(LONG_NAMED[name]())
    open_all_details(page)
    assert horizontal_overflow(page, 1280, 500) == {}
    assert LONG in (tmp_path / "x.html").read_text(encoding="utf-8")  # nothing is lost


@pytest.mark.parametrize("name", LONG_TITLED)
def test_long_titles_do_not_scroll_page_horizontally_and_are_kept_as_tooltips(open_view, name):
    page = open_view(LONG_TITLED[name]())
    assert horizontal_overflow(page, 1000, 400) == {}
    titles = page.locator(".tfviz [title]").evaluate_all("all => all.map(one => one.title)")
    assert any(title.startswith(sentence) for sentence in SENTENCES for title in titles)


def test_gallery_with_long_names_does_not_scroll_horizontally(new_page, tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(f"# {LONG}\n\n{LONG}")])
    outcome = Outcome("failed", summary=LONG, error=LONG)
    path = gallery.write([Run("01_a", {LONG[:400]: LONG}, notebook, "", LONG[:90], outcome)], tmp_path)
    page = new_page()
    page.goto(f"file://{path}")
    open_all_details(page)
    assert horizontal_overflow(page, 1280, 500) == {}


def open_write():
    return with_state(
        write_studio()[1], prompt="face.badface.badface.bad", ablated_heads=[["blocks.1.attention.pattern", 0]]
    )


def use_write(page):
    click(page, "One letter", "One letter", "Back")
    page.locator(".bar-list button").nth(3).click()
    wait_until_idle(page)
    page.get_by_role("button", name="head 1 of layer 1, on").click()
    click(page, "Open this head ↓")


def open_translate():
    drei = [tokenizers()[1]["drei"]]
    return with_state(translated()[1], ablated_heads=[["decoder.0.cross.pattern", 1]], prefix=drei, forced=[drei])


def open_patch():
    return view.patch(gpt(), TOKENIZER, "abc fed", "abd fed", answers=("g", "h"), dtype="float32")


def use_patch(page):
    for fill in page.get_by_role("button", name="Fill: ").all():
        if fill.get_attribute("aria-disabled") != "true":
            fill.click()
            wait_until_idle(page)
    page.locator("canvas[aria-label^='Residual stream']").press("Enter")
    wait_until_idle(page)


TEXT = "the plot was not very good , but the music was never dull"
WORDS = train_whole_words([TEXT])
SIZES = {"context": 24, "layers": 2, "heads": 3, "dim": 24}


def open_classify():
    return view.classify(randomize_weights(Classifier(len(WORDS), 2, **SIZES)), WORDS, ["bad", "good"], TEXT)


def use_classify(page):
    types(page, f"{TEXT} Unbekannt {'m' * 300}")
    for word in ("good", "m" * 300):
        page.locator(".word-list .word", has_text=word).click()
        wait_until_idle(page)
    page.locator(".word-list .word", has_text="never").dblclick()
    page.keyboard.type("always")
    page.keyboard.press("Enter")
    wait_until_idle(page)
    switch(page, 0, 2)


def open_fill():
    other = randomize_weights(GPT(len(WORDS), **SIZES))
    return view.fill(
        randomize_weights(BERT(len(WORDS), **SIZES)), WORDS, TEXT, masked=[3, 9], compare_with=(other, WORDS)
    )


def use_fill(page):
    types(page, f"{TEXT} Unbekannt {'m' * 300}")
    for word in ("good", "music", "m" * 300):
        page.locator(".word-list .word", has_text=word).click()
        wait_until_idle(page)
    page.locator(".gap").first.locator(".bar-row").nth(2).click()
    wait_until_idle(page)
    switch(page, 0, 2)


def open_text_control():
    text = view.controls.text("abc", TOKENIZER, max_tokens=12)
    drawn = {"rows": view.draw.grid("text", "text"), "first": view.draw.words("text")}
    return view.interact(lambda text: {"rows": text.mT * text * 0.1, "first": text[0] * 1.0}, text=text, draw=drawn)


STUDIOS = {
    "write": (open_write, use_write),
    "translate": (open_translate, lambda page: click(page, "Open this head ↓")),
    "patch": (open_patch, use_patch),
    "classify": (open_classify, use_classify),
    "fill": (open_fill, use_fill),
    "interact": (every_control, wait_until_idle),
    "interact with a text": (open_text_control, wait_until_idle),
}


@pytest.mark.parametrize("kind", STUDIOS)
def test_studio_is_reached_by_tab_key_passes_axe_and_does_not_scroll_horizontally(studio, kind):
    make, use = STUDIOS[kind]
    page = studio(make())
    use(page)
    open_tables(page)
    page.evaluate("document.activeElement.blur()")
    expected, reached = tabbed(page)
    assert set(reached) >= expected
    assert all(reached[control] for control in expected)  # with an outline
    axe(page)
    assert axe_violations_by_scheme(page) == {}
    assert horizontal_overflow(page, 2000, 1280, 700, 400) == {}


def open_tables(page):
    for table in page.locator("summary", has_text=re.compile("^Table$")).all():
        table.click()
    wait_until_idle(page)


@pytest.mark.parametrize("kind", ["write", "patch"])
def test_print_keeps_bars_leaves_out_buttons_and_fits_paper(studio, kind):
    """A printer leaves out backgrounds, and paper is narrower than the window that a drawing was made for."""
    make, _ = STUDIOS[kind]
    page = studio(make())
    if kind == "write":
        page.get_by_role("button", name="Open this head ↓").click()
    wait_until_idle(page)
    page.emulate_media(media="print")
    assert page.locator(".bar-row .bar").first.evaluate("bar => getComputedStyle(bar).printColorAdjust") == "exact"
    buttons = page.locator(".actions, .examples").evaluate_all("all => all.map(one => one.offsetHeight)")
    assert len(buttons) >= 2
    assert set(buttons) == {0}
    overflowing = page.locator(".stage canvas").evaluate_all(
        """all => all.map((canvas) => {
          const stage = canvas.closest(".stage");
          stage.style.width = "300px";
          return canvas.getBoundingClientRect().width - stage.getBoundingClientRect().width;
        })"""
    )
    assert overflowing
    assert max(overflowing) <= 0
