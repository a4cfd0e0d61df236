"""Views on a phone-sized touch screen: taps select, drags move controls or scroll."""

import pytest
import torch
from browser import goto_view, named, plain, read, status_text, wait_until_drawn
from studio_pages import button, wait_until_idle
from writing_studios import TOKENIZER, gpt, write_studio

from tfviz import generate, view
from tfviz.look import AttentionMaps

pytest_plugins = ["browser", "studio_pages"]
TAGGING_TIME = 600  # milliseconds after which small maps have their tags
READY = "() => document.querySelector('.tfviz').shadowRoot.querySelector('.results')?.ariaBusy !== 'true'"


@pytest.fixture
def open_on_phone(new_page, tmp_path):
    """`open_on_phone(view)`: its page on a telephone, alive."""

    def made(shown):
        page = new_page(width=400, has_touch=True, is_mobile=True)
        goto_view(page, shown.save(tmp_path / "x.html"))
        page.wait_for_function(READY)
        return page

    return made


def middle(element):
    element.scroll_into_view_if_needed()
    box = element.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page, element, right, down, steps=6):
    """One finger, from the middle of an element."""
    x, y = middle(element)
    touch = page.context.new_cdp_session(page)

    def send(kind, *points):
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]})

    send("touchStart", (x, y))
    for step in range(1, steps + 1):
        send("touchMove", (x + right * step / steps, y + down * step / steps))
        page.wait_for_timeout(20)
    send("touchEnd")
    page.wait_for_function(READY)
    wait_until_drawn(page)


def test_tap_opens_head_then_reads_and_locks_cell(open_on_phone):
    torch.manual_seed(1)
    weights = torch.randn(2, 3, 5, 5).softmax(-1)
    page = open_on_phone(view.heads(AttentionMaps(weights, list("abcde"))))
    sheet = page.locator("canvas:visible").first
    box = sheet.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] * 0.75, box["y"] + box["height"] * 0.4)
    wait_until_drawn(page)
    assert "layer 1" in named(page).lower()
    cells = page.locator("canvas:visible").first
    box = cells.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    wait_until_drawn(page)
    query, key, number = read(page)
    row, column = "abcde".index(query), "abcde".index(key)
    head = int(named(page).lower().rpartition("head ")[2].split()[0])
    assert float(number) == pytest.approx(weights[1, head, row, column].item(), abs=0.01)
    page.touchscreen.tap(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    wait_until_drawn(page)
    assert status_text(page).startswith(f"“{query}” → ")  # a second tap locks its row
    assert status_text(page).count(",") == 2


def test_head_summary_is_pinned_while_scrolling(open_on_phone):
    page = open_on_phone(write_studio()[1])
    wait_until_idle(page)
    sentence, height = page.locator(".studio-summary"), page.viewport_size["height"]
    assert sentence.bounding_box()["y"] > height  # the heads are not in sight, either
    top = page.locator(".model").bounding_box()["y"]
    for scrolled in (top - height / 2, top - 60):
        page.evaluate(f"scrollTo(0, {scrolled})")
        page.locator(".studio-summary.pinned").wait_for()
        box = sentence.bounding_box()
        assert box["y"] + box["height"] <= height + 1
        assert box["height"] < height / 4


def test_tap_on_drawing_keeps_its_reading(open_on_phone):
    page = open_on_phone(
        view.interact(lambda x: {"made": x[:, None] * torch.arange(1.0, 4.0)}, x=view.controls.cells([1.0, 2.0]))
    )
    x, y = middle(page.locator(".results canvas").first)
    page.touchscreen.tap(x, y)
    wait_until_drawn(page)
    page.wait_for_timeout(200)
    assert "made" in status_text(page)


def movable(words, row, turn, order):
    return {"shares": (words @ words.T).softmax(-1), "row": row[0] * turn, "first": order[0] * 1.0}


def test_points_and_angle_are_dragged_by_touch(open_on_phone):
    points = view.controls.points({"cat": (1.0, 2.0), "sat": (2.0, 0.5), "mat": (0.5, 1.5)})
    page = open_on_phone(
        view.interact(
            movable,
            words=points,
            row=view.controls.cells([[1.0, 2.0]]),
            turn=view.controls.angle(),
            order=view.controls.order(["one", "two", "three"]),
        )
    )
    cat = page.get_by_role("button", name="cat at")
    before = cat.get_attribute("aria-label")
    top = page.evaluate("scrollY")
    drag(page, cat, 40, 40)
    assert cat.get_attribute("aria-label") != before
    dial = page.locator(".dial")
    turned = dial.get_attribute("aria-valuenow") or status_text(page)
    drag(page, dial, 0, -25)
    assert (dial.get_attribute("aria-valuenow") or status_text(page)) != turned
    assert abs(page.evaluate("scrollY") - top) <= page.evaluate("innerHeight")


def test_order_is_changed_by_touch_drag(open_on_phone):
    page = open_on_phone(view.interact(lambda order: order * 1.0, order=view.controls.order(["one", "two", "three"])))
    words = page.locator(".ordered")
    first, last = words.nth(0).bounding_box(), words.nth(2).bounding_box()
    drag(page, words.nth(0), last["x"] + last["width"] - first["x"], 0, steps=12)
    assert [plain(word) for word in words.all_text_contents()] == ["two", "three", "one"]


def test_drag_over_picture_scrolls_page(open_on_phone):
    maps = AttentionMaps(torch.randn(4, 6, 9, 9).softmax(-1), [str(n) for n in range(9)])
    page = open_on_phone(view.heads(maps))
    page.evaluate("document.body.style.paddingBottom = '3000px'")
    drag(page, page.locator("canvas:visible").first, 0, -120)
    page.wait_for_timeout(300)
    assert page.evaluate("scrollY") > 50


@pytest.mark.parametrize("width", [1280, 400])
def test_tags_take_no_more_than_their_share_of_a_map(new_page, tmp_path, width):
    """A tag such as "1 back" stands in the corner of a map; on a telephone maps are too small for it."""
    torch.manual_seed(1)
    page = new_page(width=width, has_touch=width < 500, is_mobile=width < 500)
    goto_view(page, view.write(gpt(layers=4), TOKENIZER, "abcabcabc").save(tmp_path / "x.html"))
    wait_until_idle(page)
    page.wait_for_timeout(TAGGING_TIME)
    cells = page.locator(".layer > .cell").evaluate_all(
        """cells => cells.map((cell) => {
          const pen = document.createElement("canvas").getContext("2d");
          pen.font = "12px system-ui, sans-serif";
          return [pen.measureText(cell.dataset.tag ?? "").width, cell.clientWidth];
        })"""
    )
    assert len(cells) == 12
    assert all(tag <= 0.75 * side for tag, side in cells)
    assert all(tag == 0 for tag, side in cells if side < 72)
    assert (max(tag for tag, _ in cells) > 0) == (width > 500)


def test_write_works_by_taps(open_on_phone, tmp_path):
    model, made = write_studio()
    page = open_on_phone(made)
    wait_until_idle(page)
    button(page, "One letter").tap()
    wait_until_idle(page)
    wrote = next(iter(generate.ids(model, TOKENIZER.encode("abc"), 1)))
    assert page.locator(".token.written").text_content() == TOKENIZER.decode(torch.tensor([wrote]))
    button(page, "head 1 of layer 0, on").tap()
    wait_until_idle(page)
    assert page.locator(".studio-summary b").text_content() == "Layer 0, head 1"
    button(page, "layer 0: switch all its heads off or on").tap()
    wait_until_idle(page)
    assert "without 3 heads" in page.locator(".metric").text_content()
    page.locator("button.bar-row").nth(1).tap()
    wait_until_idle(page)
    assert page.locator(".token").count() == 5
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
