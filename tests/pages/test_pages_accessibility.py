"""Accessibility and robustness of view pages: keyboard, axe, window widths, colour schemes, memory."""

import os
import subprocess
import sys
from pathlib import Path

import torch
from browser import (
    assert_table_equals,
    axe,
    axe_violations,
    axe_violations_by_scheme,
    colours,
    goto_view,
    horizontal_overflow,
    maps,
    page_picture,
    pixels,
    press,
    spots,
    tabbed,
    table,
    takes,
    wait_until_drawn,
    weights,
)
from example_views import KINDS, ROWS, every, several, wide
from PIL import Image, ImageChops
from studio_pages import tab_to

from tfviz import view
from tfviz.look import AttentionMaps

pytest_plugins = ["browser"]


def open_each_tab(page, kind):
    """Open each tab of the view of heads in turn; a view of another kind stays as it is."""
    for mode in range(4 if kind == "heads" else 1):
        if kind == "heads":
            page.get_by_role("tab").nth(mode).click()
            wait_until_drawn(page)
        yield mode


@every
def test_view_is_reached_by_tab_key_passes_axe_and_fits_window_width(open_view, kind):
    page = open_view(KINDS[kind]())
    for _ in open_each_tab(page, kind):
        page.evaluate("document.activeElement.blur()")
        expected, reached = tabbed(page)
        assert set(reached) >= expected
        assert all(reached.values())  # with an outline
    axe(page)
    page.get_by_text("Table", exact=True).click()
    violations = {mode: axe_violations_by_scheme(page) for mode in open_each_tab(page, kind)}
    assert not any(violations.values()), violations
    for _ in open_each_tab(page, kind):
        table(page)
        assert horizontal_overflow(page, 2000, 400) == {}


def test_canvas_focus_outline_is_not_clipped(open_view):
    page = open_view(KINDS["heads"]())
    for mode in range(3):
        page.get_by_role("tab").nth(mode).click()
        wait_until_drawn(page)
        page.evaluate("document.activeElement.blur()")
        canvas, before = page.locator("canvas").first.bounding_box(), Image.open(page_picture(page)).convert("RGB")
        tab_to(page, "canvas")
        wait_until_drawn(page)
        after = Image.open(page_picture(page)).convert("RGB")
        left, top, right, bottom = ImageChops.difference(before, after).getbbox()
        assert right - left >= canvas["width"] - 8
        assert bottom - top >= canvas["height"] - 8


def test_heads_are_combined_by_keyboard_alone(open_view, tmp_path):
    """From the sheet to two heads together without their first key, to a file, by keys only."""
    some = wide()
    page = open_view(view.heads(some))
    for name, keys in {
        "canvas": ["Space", "ArrowRight", "ArrowDown", "Space"], "tab": ["ArrowRight"], "Together": ["ArrowDown"],
        "Hide": ["ArrowDown"], "Table": ["Enter"],
    }.items():  # fmt: skip
        for _ in range(25):
            page.keyboard.press("Tab")
            here = "document.activeElement?.shadowRoot?.activeElement"
            text = page.evaluate(f"{here} && [{here}.tagName, {here}.role, ({here}.parentNode.innerText)].join(' ')")
            if text and (name.lower() in text.split("\n")[0].lower().split()):
                break
        press(page, *keys)
    both = torch.stack([weights(some, 0, 0), weights(some, 1, 1)]).amax(0)[:, 1:]
    assert_table_equals(page, both / both.sum(-1, keepdim=True))


def test_saved_html_passes_axe(open_view, new_page, tmp_path):
    page, own = open_view(KINDS["heads"]()), new_page()
    goto_view(own, takes(page, "HTML", tmp_path))
    axe(own)
    assert axe_violations(own) == []


def test_page_follows_color_scheme(open_view):
    eye = AttentionMaps(torch.eye(5, 5).expand(1, 1, 5, 5), query_tokens=ROWS)
    page = open_view(view.head(eye, 0, 0), scheme="dark")
    cell_points, seen = spots(page, ROWS, ROWS), {}
    for scheme in ("dark", "light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(60)
        wait_until_drawn(page)
        blank, cells = Image.open(page_picture(page)).convert("RGB").getpixel((3, 3)), colours(page, cell_points)
        assert (sum(blank) > 600) == (scheme == "light")
        assert {cell for cell, colour in cells.items() if colour == blank} == {c for c in cells if c[0] != c[1]}
        assert abs(sum(cells[2, 2]) - sum(blank)) > 250
        assert seen.setdefault(scheme, pixels(page)) == pixels(page)
    assert len(set(seen.values())) == 2


# As when JupyterLab takes its style sheets away to change its theme.
BLINK = """async () => { const view = document.querySelector('.tfviz').shadowRoot.querySelector('.view');
    document.body.style.display = 'none'; view.dispatchEvent(new Event('transitionrun'));
    await new Promise((done) => setTimeout(done, 0));
    const width = view.querySelector('canvas').style.width; document.body.style.display = ''; return width; }"""


def test_briefly_hidden_view_keeps_its_width(open_view):
    page = open_view(view.head(wide(1, 1), 0, 0))
    before = page.locator("canvas").screenshot()
    assert page.evaluate(BLINK) == page.locator("canvas").evaluate("canvas => canvas.style.width") != "220px"
    wait_until_drawn(page)
    assert page.locator("canvas").screenshot() == before


AGAIN = """async ([html, times]) => { for (let i = 0; i < times; i++) {
    const place = document.body.appendChild(document.createElement('div'));
    place.innerHTML = html;
    for (const old of place.querySelectorAll('script')) { const script = document.createElement('script');
        for (const { name, value } of old.attributes) script.setAttribute(name, value);
        script.textContent = old.textContent; old.replaceWith(script); }
    const alive = () => place.querySelector('.tfviz')?.shadowRoot?.querySelector('.stage canvas');
    while (!alive()) await new Promise(done => setTimeout(done, 5));
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    place.remove(); } }"""


def test_removed_views_do_not_leak(page):
    page.shows("<!doctype html><title>x</title><body></body>")
    client, html = page.context.new_cdp_session(page), view.heads(maps(2, 3, 9, 9)).html(static=False)
    client.send("Performance.enable")

    def counts(times):
        page.evaluate(AGAIN, [html, times])
        for _ in range(3):
            client.send("HeapProfiler.collectGarbage")
        dom = client.send("Memory.getDOMCounters")
        heap = {one["name"]: one["value"] for one in client.send("Performance.getMetrics")["metrics"]}
        return dom["nodes"], dom["jsEventListeners"], dom["documents"], heap["JSHeapUsedSize"]

    tenth, last = counts(10), counts(40)
    assert last[0] <= tenth[0] + 20
    assert last[1] <= tenth[1] + 5
    assert last[2] == tenth[2]
    assert last[3] <= tenth[3] + 1_000_000


def test_large_view_has_few_dom_nodes(open_view):
    page = open_view(view.heads(maps(12, 12, 128, 128, causal=True)))
    for mode in range(4):
        page.get_by_role("tab").nth(mode).click()
        wait_until_drawn(page)
        assert page.evaluate("document.querySelector('.tfviz').shadowRoot.querySelectorAll('*').length") <= 500


def test_html_is_identical_across_processes():
    code = "import example_views; print('\\n'.join(example_views.several()))"
    given = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[1], env=given, capture_output=True)
    assert done.stdout.decode().split() == several()
