"""Chromium for tests of pages: without network access, and failing on any request, page error or console warning.

PYTEST_DONT_REWRITE: test modules name this as their plugin, and import from it.
"""

import importlib.util
import io
import re
import shutil
from pathlib import Path

import pytest
import torch
from PIL import Image

from tfviz.look import AttentionMaps, quantize
from tfviz.view.figures.formatting import format_number

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
ARGUMENTS += ["--disable-component-update", "--disable-sync"]
# For each page Chromium loads two more, of its address bar, and keeps a process in reserve: half of what a page costs.
OFF = ["WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "SpareRendererForSitePerProcess"]
# Chromium hears the last such list only, so these are playwright's own.
OFF += ["AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades", "LensOverlay"]
OFF += ["HttpsFirstBalancedModeAutoEnable", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning"]
OFF += ["AvoidCorsURLLoaderRestartOnRedirect", "TcpPortRandomizationWin", "OptimizationHints", "AimEnabled"]
OFF += ["NetworkTimeServiceQuerying", "PreconnectToSearch"]
ARGUMENTS.append(f"--disable-features={','.join(OFF)}")
VIEW_READY_JS = """() => [...document.querySelectorAll('.tfviz')].every(view => view.dataset.alive && view.shadowRoot
    && ['.status', '.stage :is(canvas, .word, .token)'].every(one => view.shadowRoot.querySelector(one)))"""
COUNTS = """const wait = Response.prototype.arrayBuffer; window.unpacking = 0; Response.prototype.arrayBuffer =
    function () { window.unpacking++; return wait.call(this).finally(() => { window.unpacking--; }); }"""
WAIT_UNTIL_DRAWN_JS = """async () => { let calm = 0; while (calm < 2) {
    await new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)));
    calm = window.unpacking ? 0 : calm + 1; } }"""
REACHED = """() => { const at = document.activeElement?.shadowRoot?.activeElement; if (!at) return null;
    const { outlineStyle, outlineWidth } = getComputedStyle(at), all = [...at.getRootNode().querySelectorAll('*')];
    return [all.indexOf(at), outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2]; }"""
REACHABLE = """() => { const all = [...document.querySelector('.tfviz').shadowRoot.querySelectorAll('*')];
    const stops = 'button:not([tabindex="-1"]), select, input, summary, textarea, [tabindex="0"]';
    return all.filter(one => one.matches(stops) && one.checkVisibility()).map(one => all.indexOf(one)); }"""
READING = re.compile("(?s)“(.*)” → “(.*)”  (.*)")
SCAN = """canvas => { const { left, top, width, height } = canvas.getBoundingClientRect(), found = [];
    const status = canvas.getRootNode().querySelector('.status'), go = (kind, x, y) => canvas.dispatchEvent(
        new PointerEvent(kind, { clientX: left + x, clientY: top + y }));
    for (let y = 2; y < height; y += 6) for (let x = 2; x < Math.min(width, 400); x += 6) {
        go('pointermove', x, y); if (status.textContent) found.push([x, y, status.textContent]); }
    go('pointerleave', 0, 0); return found; }"""


@pytest.fixture(scope="session")
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def new_page(chromium):
    """`new_page(scheme="dark", width=400)`: a fresh page without a network, each in a context of its own."""
    contexts, wrong = [], []

    def asked(request):
        if not request.url.startswith(("file:", "data:", "blob:")):
            wrong.append(request.url)

    def opened(scheme="light", width=1000, **given):
        context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}, **given)
        context.set_offline(True)
        context.set_default_timeout(30_000)
        contexts.append(context)
        context.add_init_script(COUNTS)
        page = context.new_page()
        page.on("request", asked)
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text) if line.type in ("error", "warning") else None)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == [], wrong


@pytest.fixture
def page(new_page, tmp_path):
    """A page, and `page.shows(html)`."""
    page = new_page()

    def shows(text):
        (tmp_path / "x.html").write_text(text, encoding="utf-8")
        page.goto((tmp_path / "x.html").as_uri())

    page.shows = shows
    return page


@pytest.fixture
def open_view(new_page, tmp_path):
    """`open_view(view, scheme="dark", width=400)`: the page that the view is saved as, once it is alive."""

    def opened(view, scheme="light", width=1000):
        page = new_page(scheme, width)
        goto_view(page, view.save(tmp_path / "x.html"))
        return page

    return opened


def goto_view(page, path):
    page.goto(path.as_uri())
    page.wait_for_function(VIEW_READY_JS)
    wait_until_drawn(page)


def wait_until_drawn(page):
    """Until what was chosen is drawn."""
    page.evaluate(WAIT_UNTIL_DRAWN_JS)


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)
    wait_until_drawn(page)


def control(page, name):
    """The list, slider or box of this name."""
    return page.locator(f"label:visible:has(> span:text-is('{name}')) :is(select, input)")


def choose(page, name, option):
    control(page, name).select_option(option)
    wait_until_drawn(page)


def named(page):
    """What the title says is shown."""
    return page.locator(".caption").text_content() or page.locator("h1, h3").first.text_content()


def status_text(page):
    """The line that reads the cursor, without the signs that keep right-to-left words in their place."""
    return plain(page.locator(".status").text_content())


def point_at_head(page, name):
    """Move the pointer over the sheet of heads until it is at the head of this name, and return where that is."""
    box = page.locator("canvas").first.bounding_box()
    for y in range(30, int(box["height"]), 20):
        for x in range(60, int(box["width"]), 20):
            page.mouse.move(box["x"] + x, box["y"] + y)
            if status_text(page).startswith(name):
                return box["x"] + x, box["y"] + y
    raise AssertionError(f"{name} is not on the sheet")


def plain(text):
    return re.sub("[\u2066-\u2069]", "", text).replace("\N{NO-BREAK SPACE}", " ")


def read(page):
    """The words and the number under the cursor: (query, key, number)."""
    found = READING.fullmatch(status_text(page))
    return found and found.groups()


def table(page, which=0):
    """One table of the twin: its column heads, its row heads, and its cells as text."""
    twin = page.locator("details", has_text="Table").first
    if twin.get_attribute("open") is None:
        twin.locator("summary").click()
    wait_until_drawn(page)
    heads, *rows = (
        twin.locator("table")
        .nth(which)
        .locator("tr")
        .evaluate_all("rows => rows.map(row => [...row.cells].map(c => c.innerText))")
    )
    return heads[1:], [row[0] for row in rows], [row[1:] for row in rows]


def number(text):
    """What a page writes, as a float."""
    return float(text.replace("−", "-").replace(",", ""))


def numbers(page, which=0):
    """The numbers of one table of the twin; NaN for a cell that may not be looked at."""
    cells = [[float("nan") if cell == "–" else number(cell) for cell in row] for row in table(page, which)[2]]
    return torch.tensor(cells, dtype=torch.double)


def shown(weights, mask=None):
    """Weights as pages show them; NaN where the mask forbids."""
    rounded = torch.tensor(
        [[number(format_number(value)) for value in row] for row in weights.tolist()], dtype=torch.double
    )
    return rounded if mask is None else rounded.where(mask, torch.nan)


def assert_table_equals(page, weights, mask=None):
    torch.testing.assert_close(numbers(page), shown(weights, mask), rtol=1e-9, atol=0, equal_nan=True)


def maps(layers=2, heads=3, queries=5, keys=7, seed=1, causal=False, even=False, **given):
    """Random maps in the bytes that a page holds, so that what it says can be compared exactly."""
    draw, mask = torch.Generator().manual_seed(seed), torch.ones(queries, keys).tril().bool() if causal else None
    size = (layers, heads, queries, keys)
    scores = torch.rand(size, generator=draw) if even else 2 * torch.randn(size, generator=draw)
    scores = scores.masked_fill(~mask, -torch.inf) if causal else scores
    return AttentionMaps(quantize(scores.softmax(-1)), mask=mask, **given)


def weights(some, layer=0, head=0):
    return (some.layers[layer][head].double() / 255) ** 2


def spots(page, rows, cols):
    """Points over each cell, found by going over the canvas: {(row, col): [(x, y), ...]}."""
    found = {}
    for x, y, text in page.locator("canvas").first.evaluate(SCAN):
        query, key, _ = READING.fullmatch(plain(text)).groups()
        found.setdefault((rows.index(query), cols.index(key)), []).append((x, y))
    return found


def middle(points):
    return tuple(sum(part) // len(points) for part in zip(*points))


def colours(page, cells):
    """The colour of each cell above the number it may hold, as it is seen."""
    picture = Image.open(io.BytesIO(page.locator("canvas").first.screenshot())).convert("RGB")
    return {cell: picture.getpixel(middle([points[0], middle(points)])) for cell, points in cells.items()}


def focused(page, attribute):
    return page.evaluate("name => document.activeElement.shadowRoot?.activeElement.getAttribute(name)", attribute)


def pixels(page):
    return page.locator("canvas").first.evaluate("canvas => canvas.toDataURL()")


def takes(page, kind, tmp_path):
    button = page.get_by_role("button", name=kind, exact=True)
    if not button.first.is_visible():
        page.locator("summary.top-button", has_text=re.compile("^(Share|Save)$")).first.click()
    with page.expect_download(timeout=20_000) as download:
        button.first.click()
    page.keyboard.press("Escape")
    assert download.value.suggested_filename.endswith("." + kind.lower())
    path = tmp_path / f"taken.{kind.lower()}"
    download.value.save_as(path)
    return path


def page_picture(page, where="html"):
    return io.BytesIO(page.locator(where).first.screenshot())


def tabbed(page):
    """What the tab key should reach, and what it reaches: its place, and whether an outline shows it."""
    expected, reached = set(page.evaluate(REACHABLE)), {}
    for _ in range(len(expected) + 3):
        page.keyboard.press("Tab")
        if found := page.evaluate(REACHED):
            reached[found[0]] = found[1]
    return expected, reached


def axe(page):
    spec = importlib.util.find_spec("axe_playwright_python")
    if spec is None:
        pytest.skip("axe-playwright-python is not installed")
    page.evaluate((Path(spec.origin).parent / "axe.min.js").read_text("utf-8"))


COLOR_RULES = ["color-contrast", "link-in-text-block"]


def axe_violations(page, looked="summary-name", rules=None):
    """What axe-core finds that is serious or critical; `looked` is a rule that passes where it has looked at all."""
    found = page.evaluate("rules => axe.run(rules ? { runOnly: rules } : {})", rules)
    assert looked in {rule["id"] for rule in found["passes"]}  # by default: it has looked into the view
    bad = [rule for rule in found["violations"] if rule["impact"] in ("serious", "critical")]
    return [(rule["id"], node["target"], node["any"][:1]) for rule in bad for node in rule["nodes"]]


def axe_violations_by_scheme(page):
    """What axe-core finds on a light page, and by its rules of colours on a dark one; empty where it finds nothing."""
    found = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(60)
        wait_until_drawn(page)
        found[scheme] = (
            axe_violations(page) if scheme == "light" else axe_violations(page, "color-contrast", COLOR_RULES)
        )
    return {scheme: violations for scheme, violations in found.items() if violations}


def horizontal_overflow(page, *widths):
    """By how many pixels the page is wider than the window, for those widths of the window where it is wider."""
    found = {}
    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        wait_until_drawn(page)
        wait_until_drawn(page)
        found[width] = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return {width: pixels for width, pixels in found.items() if pixels > 0}
