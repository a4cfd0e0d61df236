"""`view.interact` in Chromium without a kernel: every control works by mouse and keyboard, and outputs match torch."""

import csv
import math

import pytest
import torch
from browser import (
    VIEW_READY_JS,
    axe,
    axe_violations,
    focused,
    goto_view,
    page_picture,
    plain,
    press,
    status_text,
    takes,
    wait_until_drawn,
)
from example_views import BITE, WORDS, attention, every_control, lesson
from PIL import Image, ImageStat
from studio_pages import button, remove_and_restore, with_kernel
from torch import nn

from tfviz import text, view
from tfviz.view.figures.formatting import format_number, percent

pytest_plugins = ["browser"]
RECORDS = """window.answers = []; window.asked = []; const Own = window.Worker;
const plain = (outputs) => Object.fromEntries(
    Object.entries(outputs).map(([name, { shape, data }]) => [name, { shape, data: [...data] }]));
window.Worker = class extends Own {
    constructor(...given) { super(...given); this.addEventListener('message', ({ data }) => {
        if (data.result && data.result.outputs) window.answers.push(plain(data.result.outputs)); }); }
    postMessage(message) { if ("run" in message) window.asked.push(message); super.postMessage(message); } };"""
READY = "() => document.querySelector('.tfviz').shadowRoot.querySelector('.results').ariaBusy === 'false'"


@pytest.fixture
def open_interact(new_page, tmp_path):
    """`open_interact(view, scheme="dark", width=400)`: its page, which remembers what the engine was asked and said."""

    def made(shown, scheme="light", width=1000, path=None):
        page = new_page(scheme, width)
        page.add_init_script(RECORDS)
        goto_view(page, path or shown.save(tmp_path / "x.html"))
        return ready(page)

    return made


def ready(page):
    page.wait_for_function(READY)
    return page


def last_outputs(page):
    """What the engine said last."""
    ready(page)
    last = page.evaluate("window.answers.at(-1)")
    return {name: torch.tensor(one["data"]).reshape(one["shape"]) for name, one in last.items()}


def last_argument(page, name):
    """What the program was given last for an argument."""
    ready(page)
    one = page.evaluate(
        "name => { const { shape, data } = window.asked.at(-1).inputs[name]; return [shape, [...data]]; }", name
    )
    return torch.tensor(one[1]).reshape(one[0])


def check_outputs(page, expected):
    found = last_outputs(page)
    assert list(found) == list(expected)
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name].to(tensor.dtype), tensor, rtol=1e-5, atol=1e-5)


def middle(element):
    box = element.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page, element, right, down, steps=4):
    x, y = middle(element)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + right, y + down, steps=steps)
    page.mouse.up()
    return ready(page)


def test_slider_by_keyboard_and_mouse_matches_torch(open_interact):
    page = open_interact(lesson())
    words = torch.tensor(list(WORDS.values()))
    check_outputs(page, attention(words, torch.tensor(2.55)))
    slider = page.get_by_label("sharpness")
    slider.focus()
    page.keyboard.press("ArrowRight")
    check_outputs(page, attention(words, torch.tensor(2.6)))
    assert plain(page.locator("label.slider output").text_content()) == "2.60"
    assert status_text(page).startswith("sharpness is 2.60; scores: “cat” → “mat” 9.1 (was 8.9); shares: ")
    page.keyboard.press("Home")
    check_outputs(page, attention(words, torch.tensor(0.1)))
    box = slider.bounding_box()
    page.mouse.click(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
    check_outputs(page, attention(words, torch.tensor(5.0)))


def test_points_by_mouse_and_keyboard_match_torch(open_interact):
    page = open_interact(lesson())
    cat = page.get_by_role("button", name="cat at")
    x, y = middle(cat)
    drag(page, cat, 50, 30)
    moved = last_argument(page, "words")
    assert moved[1:].tolist() == torch.tensor(list(WORDS.values()))[1:].tolist()
    torch.testing.assert_close(moved[0], torch.tensor([1.0 + 50 * 3 / 150, 2.0 - 30 * 3 / 150]), rtol=0, atol=0.026)
    check_outputs(page, attention(moved, torch.tensor(2.55)))
    assert "“cat” is at (2, 1.4)" in status_text(page)
    assert middle(cat) == pytest.approx((x + 50, y + 30), abs=1.5)
    drag(page, cat, 5000, -5000)
    assert last_argument(page, "words")[0].tolist() == [3.0, 3.0]
    page.get_by_role("button", name="mat at").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+ArrowDown")
    torch.testing.assert_close(last_argument(page, "words")[2], torch.tensor([0.45, 1.05]))
    assert focused(page, "aria-label") == "mat at (0.45, 1.05)"
    check_outputs(page, attention(torch.tensor([[3.0, 3.0], [2.0, 0.5], [0.45, 1.05]]), torch.tensor(2.55)))


def branching(x, twice, kind, times):
    made = (x * torch.arange(1.0, 4.0) * times).sin() if kind == "sin" else x * torch.arange(1.0, 4.0) ** times
    return made * 2 if twice else made


def test_choices_select_matching_program(open_interact):
    page = open_interact(view.interact(branching, x=(0.0, 1.0), twice=False, kind=["sin", "<b>"], times=(1, 3)))
    x = torch.tensor(0.5)
    check_outputs(page, {"output": branching(x, False, "sin", 2)})
    page.get_by_label("twice").focus()
    page.keyboard.press("Space")
    check_outputs(page, {"output": branching(x, True, "sin", 2)})
    page.get_by_label("kind").select_option("<b>")
    check_outputs(page, {"output": branching(x, True, "power", 2)})
    assert status_text(page).startswith("kind is “<b>”")
    page.get_by_label("times").focus()
    page.keyboard.press("ArrowRight")
    check_outputs(page, {"output": branching(x, True, "power", 3)})
    page.get_by_label("twice").click()
    check_outputs(page, {"output": branching(x, False, "power", 3)})
    assert page.evaluate("window.asked.at(-1).run") == "0.1.2"


def test_interact_with_choices_only_matches_torch(open_interact):
    page = open_interact(view.interact(lambda on, times: torch.arange(4) * times + on, on=False, times=[2, 3]))
    page.get_by_role("checkbox", name="on").check()
    page.get_by_label("times").select_option("3")
    check_outputs(page, {"output": torch.arange(4) * 3 + 1})


def product(matrix, row):
    return {"product": matrix @ row, "sum": matrix.sum()}


def test_sorted_bars_are_read_in_drawn_order(open_interact):
    drawn = {"output": view.draw.bars(["low", "middle", "high"], top_k=2)}
    page = open_interact(view.interact(lambda x: x * torch.tensor([1.0, 2.0, 3.0]), x=(-1.0, 1.0), draw=drawn))
    page.get_by_role("slider").focus()
    press(page, "End")
    page.locator("canvas").focus()
    press(page, "ArrowUp")
    assert status_text(page) == "“high” 3"
    press(page, "ArrowDown")
    assert status_text(page) == "“middle” 2"
    page.get_by_role("slider").focus()
    press(page, "Home")
    assert status_text(page).endswith("“low” is first (was “high”)")


def test_cells_by_keyboard_typing_and_mouse_match_torch(open_interact):
    matrix, row = torch.tensor([[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]]), torch.tensor([0.5, 1.5, 2.5])
    cells = {"matrix": view.controls.cells(matrix, ["a", "b"], list("xyz"), step=0.5), "row": view.controls.cells(row)}
    page = open_interact(view.interact(product, draw={"product": view.draw.bars("matrix")}, **cells))
    check_outputs(page, product(matrix, row))
    page.get_by_role("button", name="a, x: 1").focus()
    press(page, "ArrowRight", "ArrowDown", "ArrowDown", "+")
    matrix[1, 1] += 0.5
    check_outputs(page, product(matrix, row))
    assert status_text(page).startswith("b, y is −4.5; product: “b” ")
    press(page, "Shift+_")
    matrix[1, 1] -= 5
    check_outputs(page, product(matrix, row))
    press(page, "7", ".", "2", "5", "Enter")
    matrix[1, 1] = 7.25
    check_outputs(page, product(matrix, row))
    assert focused(page, "aria-label") == "b, y: 7.25"
    press(page, "Enter")
    page.keyboard.type("-1e1")
    press(page, "Escape")
    check_outputs(page, product(matrix, row))
    press(page, "Enter")
    page.keyboard.type("nonsense")
    press(page, "Enter")
    assert status_text(page) == "“nonsense” is no number"
    check_outputs(page, product(matrix, row))
    drag(page, page.get_by_role("button", name="a, z: 3"), -21, 3)
    matrix[0, 2] -= 5 * 0.5
    check_outputs(page, product(matrix, row))
    page.get_by_role("button", name="1: 1.5").dblclick()
    page.keyboard.type("−2,5")
    press(page, "Tab")
    row[1] = -2.5
    check_outputs(page, product(matrix, row))


def ordered(order):
    table = torch.outer(torch.arange(5.0), torch.tensor([1.0, 10.0]))
    return {"table": table[order], "order": order}


def test_order_by_keyboard_and_mouse_matches_torch(open_interact):
    words = ["the", "cat", "שלום", "<b>", "mat"]
    page = open_interact(
        view.interact(ordered, order=view.controls.order(words), draw={"table": view.draw.grid("order")})
    )
    chip = lambda word: page.get_by_role("button", name=word)  # noqa: E731
    chip("cat").focus()
    press(page, "Alt+ArrowRight", "Alt+ArrowRight")
    check_outputs(page, ordered(torch.tensor([0, 2, 3, 1, 4])))
    assert "“cat” is number 4 of 5" in status_text(page)
    assert focused(page, "aria-label") == "cat, 4 of 5"
    press(page, "ArrowLeft", "Space", "ArrowLeft", "ArrowLeft", "ArrowLeft", "Space", "ArrowRight")
    check_outputs(page, ordered(torch.tensor([3, 0, 2, 1, 4])))
    assert focused(page, "aria-label") == "the, 2 of 5"
    (x, y), (to, _) = middle(chip("mat")), middle(chip("the"))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(to - 9, y, steps=8)
    page.mouse.up()
    check_outputs(page, ordered(torch.tensor([3, 4, 0, 2, 1])))
    assert page.locator(".ordered").all_inner_texts() == ["<b>", "mat", "the", "שלום", "cat"]


def turned(angle):
    return {"place": torch.stack([angle.cos(), angle.sin()])[None], "angle": angle}


def test_angle_by_keyboard_and_mouse_matches_torch(open_interact):
    page = open_interact(
        view.interact(turned, angle=view.controls.angle(math.pi / 6), draw={"place": view.draw.dots()})
    )
    check_outputs(page, turned(torch.tensor(math.pi / 6)))
    dial = page.get_by_role("slider", name="angle")
    dial.focus()
    press(page, "ArrowRight", "Shift+ArrowDown", "PageUp")
    check_outputs(page, turned(torch.tensor(math.radians(30 + 5 - 1 + 45))))
    assert dial.get_attribute("aria-valuetext") == "79°, 1.4 rad"
    press(page, "PageUp", "PageUp", "PageUp")
    check_outputs(page, turned(torch.tensor(math.radians(79 + 135 - 360))))
    press(page, "Home")
    check_outputs(page, turned(torch.tensor(0.0)))
    x, y = middle(dial)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 20, steps=3)
    page.mouse.up()
    check_outputs(page, turned(torch.tensor(math.pi / 2)))


TOKENIZER = text.CharacterTokenizer.from_text("abcdefg <>/שלום\0\u202e'\"&;")


def reader(rows=None):
    rows = rows or len(TOKENIZER)
    torch.manual_seed(4)
    table = nn.Embedding(rows, 3)

    def read(sentence, sharpness):
        made = table(sentence)
        return {"shares": (sharpness * made @ made.mT).softmax(-1), "first": made[0, :, 0]}

    drawn = {"shares": view.draw.grid("sentence", "sentence"), "first": view.draw.words("sentence")}
    shown = view.interact(
        read, sentence=view.controls.text("abc", TOKENIZER, max_tokens=12), sharpness=(0.0, 2.0), draw=drawn
    )
    return shown, lambda words: read(TOKENIZER.encode(words).long()[None], torch.tensor(1.0))


def test_typed_text_matches_python_and_errors_are_shown(open_interact):
    shown, read = reader()
    page = open_interact(shown)
    area = page.get_by_label("sentence")
    check_outputs(page, read("abc"))
    area.press("End")
    page.keyboard.type(" fed")
    check_outputs(page, read("abc fed"))
    for hostile in ("</b>\0'&\"", "שלום\u202e<", "a"):
        area.fill(hostile)
        check_outputs(page, read(hostile))
        assert area.input_value() == hostile
    for wrong, told in {
        "": "sentence is empty",
        "abz": '"z" (U+007A)',
        "ab" * 5000: "10,000 tokens, and there is room for 12",
    }.items():
        area.fill(wrong)
        ready(page)
        assert told in status_text(page)
        assert area.input_value() == wrong
    area.fill("gab")
    check_outputs(page, read("gab"))


def test_text_below_min_tokens_is_rejected(open_interact):
    def ends(sentence):
        return sentence[:, [0, -3]].float()

    page = open_interact(view.interact(ends, sentence=view.controls.text("abc", TOKENIZER, min_tokens=3, max_tokens=3)))
    area = page.get_by_label("sentence")
    check_outputs(page, {"output": ends(TOKENIZER.encode("abc").long()[None])})
    area.fill("ab")
    ready(page)
    assert "sentence has 2 tokens, and needs 3" in status_text(page)
    area.fill("gab")
    check_outputs(page, {"output": ends(TOKENIZER.encode("gab").long()[None])})


def test_engine_error_is_shown_and_recovered_from(open_interact):
    shown, read = reader(rows=TOKENIZER.encode("g").item() + 1)
    page = open_interact(shown)
    unknown = next(c for c in TOKENIZER.characters if TOKENIZER.encode(c).item() > TOKENIZER.encode("g").item())
    page.get_by_label("sentence").fill(f"ab{unknown}")
    ready(page)
    assert len(status_text(page)) > 10
    asked = page.evaluate("window.asked.length")
    page.set_viewport_size({"width": 700, "height": 900})  # the same values are tried again
    page.wait_for_function(f"window.asked.length > {asked}")
    page.get_by_label("sentence").fill("gab")
    check_outputs(page, read("gab"))


def tables(page):
    page.locator("summary", has_text="Table").click()
    page.locator(".tables table").first.wait_for()  # it is filled when it has opened
    rows = page.locator(".tables table").evaluate_all(
        "all => all.map(one => [...one.rows].map(row => [...row.cells].map(c => c.innerText)))"
    )
    return [[row[1:] for row in one[1:]] for one in rows]


def format_value(value):
    return format_number(value)


def test_table_cursor_and_exports_agree(open_interact, new_page, tmp_path):
    page = open_interact(lesson())
    page.get_by_label("sharpness").fill("1.1")
    expected = attention(torch.tensor(list(WORDS.values())), torch.tensor(1.1))
    ready(page)
    assert tables(page) == [
        [[format_value(cell) for cell in row] for row in table.tolist()] for table in expected.values()
    ]
    page.locator("canvas[aria-label^=shares]").focus()
    press(page, "ArrowRight", "ArrowDown", "End")
    assert status_text(page) == f"shares: “sat” → “mat” {format_value(float(expected['shares'][1, 2]))}"
    page.locator("canvas[aria-label^=mixture]").focus()
    press(page, "ArrowDown", "ArrowDown")
    x, y = expected["mixture"][2].tolist()
    assert status_text(page) == f"mixture: “mat” ({format_value(x)}, {format_value(y)})"
    lines = list(csv.reader(takes(page, "CSV", tmp_path).read_text("utf-8").splitlines()))
    assert ["scores"] in lines
    assert ["mat", *(f"{float(f'{cell:.4g}'):.10g}" for cell in expected["scores"][2].tolist())] in lines
    svg = takes(page, "SVG", tmp_path).read_text("utf-8")
    assert "sharpness = 1.10" in svg
    assert svg.count(">cat<") == 5
    with Image.open(takes(page, "PNG", tmp_path)) as picture:
        assert picture.width > 400


def test_saved_page_restores_state_and_stays_interactive(open_interact, tmp_path):
    page = open_interact(lesson())
    page.get_by_label("sharpness").fill("0.6")
    page.get_by_role("button", name="cat at").focus()
    press(page, "ArrowUp")
    before = last_outputs(page)
    own = open_interact(None, path=takes(page, "HTML", tmp_path))
    assert last_outputs(own)["shares"].tolist() == before["shares"].tolist()
    own.get_by_label("sharpness").fill("3.1")
    moved = torch.tensor([[1.0, 2.05], [2.0, 0.5], [0.5, 1.5]])
    check_outputs(own, attention(moved, torch.tensor(3.1)))


LATER = "() => { const now = performance.now.bind(performance); performance.now = () => now() + 1000; }"


def test_undo_redo_and_shared_link_restore_values(open_interact, new_page):
    page = open_interact(lesson())
    words = torch.tensor(list(WORDS.values()))
    page.get_by_label("sharpness").fill("1.1")
    check_outputs(page, attention(words, torch.tensor(1.1)))
    page.evaluate(LATER)  # what follows soon is one step with it
    page.get_by_role("button", name="cat at").focus()
    press(page, "ArrowUp", "ArrowUp")
    moved = words + torch.tensor([[0, 0.1], [0, 0], [0, 0]])
    check_outputs(page, attention(moved, torch.tensor(1.1)))
    address = copy_link(page)
    button(page, "Undo").click()
    check_outputs(page, attention(words, torch.tensor(1.1)))
    assert page.get_by_role("button", name="cat at (1, 2)").count() == 1
    press(page, "Control+z")
    check_outputs(page, attention(words, torch.tensor(2.55)))
    assert button(page, "Undo").get_attribute("aria-disabled") == "true"
    press(page, "Control+Shift+Z", "Control+Shift+Z")
    check_outputs(page, attention(moved, torch.tensor(1.1)))
    assert button(page, "Redo").get_attribute("aria-disabled") == "true"
    other = new_page()
    other.add_init_script(RECORDS)
    other.goto(address)
    other.wait_for_function(VIEW_READY_JS)
    check_outputs(other, attention(moved, torch.tensor(1.1)))


def test_try_sets_only_its_own_controls(open_interact):
    page = open_interact(view.interact(branching, x=(0.0, 1.0), twice=False, kind=["sin", "<b>"], times=(1, 3),
                                examples={"All of it": {"x": 1.0}, "<b>": {"kind": 1, "times": 1}}))  # fmt: skip
    button(page, "All of it").click()
    check_outputs(page, {"output": branching(torch.tensor(1.0), False, "sin", 2)})
    button(page, "<b>").click()
    check_outputs(page, {"output": branching(torch.tensor(1.0), False, "power", 1)})
    press(page, "Control+z")
    check_outputs(page, {"output": branching(torch.tensor(1.0), False, "sin", 2)})


def copy_link(page):
    page.locator("summary", has_text="Share").click()
    button(page, "Copy link").click()
    page.wait_for_function("location.hash")
    return page.evaluate("location.href")


def few_controls():
    return view.interact(branching, x=(0.0, 1.0), twice=False, kind=["sin"], times=(1, 3))


def table_controls():
    return view.interact(product, matrix=view.controls.cells(torch.eye(3)), row=view.controls.cells([1.0, 2, 3]))


@pytest.mark.parametrize("shown", [lesson, few_controls, table_controls])
def test_controls_are_left_of_results_or_above_on_phone(open_interact, shown):
    page = open_interact(shown(), width=1280)
    for width in (1280, 400):
        resize(page, width)
        parts = (".layout > .arguments", ".layout > .results")
        controls, results = (page.locator(part).bounding_box() for part in parts)
        if width == 1280:
            assert controls["x"] + controls["width"] <= results["x"]
            assert controls["y"] == results["y"]
        else:
            assert controls["y"] + controls["height"] <= results["y"]
            assert controls["x"] == results["x"]
        ends = page.locator(".results canvas").evaluate_all("all => all.map(one => one.getBoundingClientRect().right)")
        assert max(ends) <= results["x"] + results["width"]


def resize(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    wait_until_drawn(page)
    ready(page)


def test_bars_fill_their_column_and_card_is_centred(open_interact):
    shown = view.interact(lambda x: {"bars": x * torch.tensor([1.0, 2.0, 3.0]), "sum": 6 * x}, x=(0.0, 1.0))
    page = open_interact(shown)
    for width in (400, 1280, 1920):
        resize(page, width)
        column = page.locator(".pictures").bounding_box()["width"]
        assert page.locator("canvas[aria-label^=bars]").bounding_box()["width"] > 0.97 * column
        card, screen = page.locator(".studio").bounding_box(), page.evaluate("document.documentElement.clientWidth")
        assert card["x"] == pytest.approx(screen - card["x"] - card["width"], abs=2)
        assert card["width"] < 0.75 * 1920


def test_controls_are_large_enough_for_touch(open_interact):
    page = open_interact(every_control(), width=400)
    sizes = page.locator(".arguments input[type=range], .arguments select, .point, .cell, .ordered").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 36


def test_purpose_is_shown_above_the_controls(open_interact):
    def turned(x):
        """Turn it until
        it fits. The rest is for others."""
        return x * torch.ones(2)

    purpose = lambda page: page.locator(".purpose").inner_text()  # noqa: E731
    assert purpose(open_interact(view.interact(turned, x=(0.0, 1.0)))) == "Turn it until it fits."
    page = open_interact(view.interact(lambda x: x * torch.ones(2), x=(0.0, 1.0), title="Turn it: it fits"))
    assert page.locator("h1").text_content() == "Turn it"
    assert purpose(page) == "It fits"
    page = open_interact(view.interact(branching, x=(0.0, 1.0), twice=False, kind=["sin"], times=(1, 3)))
    assert purpose(page) == "Drag a slider, tick the box or choose from the list: the results follow."


def test_summary_is_sticky_below_title_on_phone(open_interact):
    page = open_interact(lesson(), width=400)
    top = lambda one: page.locator(one).bounding_box()["y"]  # noqa: E731
    assert top("h1") < top(".summary") < top(".controls") < top(".results")
    page.locator(".results canvas").last.scroll_into_view_if_needed()
    assert page.evaluate("scrollY") > 200
    assert top(".summary") == pytest.approx(0, abs=1)
    before = sentence(page)
    page.get_by_label("sharpness").fill("5")
    ready(page)
    assert sentence(page) != before


def counted(table, row):
    return {"rows": table.sum(1), "open": (table & row).sum(0)}


def test_boolean_cells_by_click_drag_and_keyboard_match_torch(open_interact):
    table, row = torch.eye(3).bool(), torch.tensor([True, False, True])
    cells = {
        "table": view.controls.cells(table, list("abc"), list("xyz")),
        "row": view.controls.cells(row, columns=["p", "q", "r"]),
    }
    page = open_interact(view.interact(counted, draw={"rows": view.draw.bars("table")}, **cells))
    check_outputs(page, counted(table, row))
    page.get_by_role("button", name="a, y").click()
    table[0, 1] = True
    check_outputs(page, counted(table, row))
    assert status_text(page).startswith("a, y is on; rows: “a” ")
    first, last = (page.get_by_role("button", name=name) for name in ("c, x", "c, z"))
    drag(page, first, middle(last)[0] - middle(first)[0], 0, steps=12)
    table[2] = True
    check_outputs(page, counted(table, row))
    drag(page, last, middle(first)[0] - middle(last)[0], 0, steps=12)
    table[2] = False
    check_outputs(page, counted(table, row))
    page.get_by_role("button", name="q").focus()
    press(page, "Space", "ArrowLeft", "Enter")
    row[:2] = torch.tensor([False, True])
    check_outputs(page, counted(table, row))
    assert focused(page, "aria-label") == "p"
    assert page.get_by_role("button", name="q").get_attribute("aria-pressed") == "true"
    axe(page)
    assert axe_violations(page) == []


def graph_weights(x):
    return torch.tensor([[0.0, 1.0], [0.5, 0.0]]) + torch.diag(x)


def test_graph_nodes_are_filled_by_value(open_interact):
    shown = {}
    for filled in (True, False):
        drawing = view.draw.graph(["a", "b"], filled=filled, limit=1.0)
        page = open_interact(view.interact(graph_weights, x=view.controls.cells([1.0, -1.0]), draw={"output": drawing}))
        check_outputs(page, {"output": graph_weights(torch.tensor([1.0, -1.0]))})
        shown[filled] = page.locator(".results canvas").screenshot()
    assert shown[True] != shown[False]


def test_every_drawing_is_read_by_keyboard_in_both_color_schemes(open_interact):
    page = open_interact(every_control())
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(60)
        wait_until_drawn(page)
        blank = ImageStat.Stat(Image.open(page_picture(page)).convert("L")).median[0]
        assert (blank > 200) == (scheme == "light")
        for canvas in page.locator(".results canvas").all():
            canvas.focus()
            press(page, "ArrowRight", "ArrowDown", "Home")
            assert len(status_text(page)) > 8
            before = canvas.evaluate("canvas => canvas.toDataURL()")
            canvas.blur()
            assert canvas.evaluate("canvas => canvas.toDataURL()") != before  # the cursor is gone


def test_hostile_words_are_shown_literally(open_interact):
    bad = [word for word in BITE if len(word) < 100]
    names = {f"{i}{word}": (i / 4, 1.0) for i, word in enumerate(bad)}
    shown = view.interact(lambda points, order: {"</script>": points[order].sum(-1)},
                          points=view.controls.points(names),
                          order=view.controls.order(bad), title="<img src=x onerror=alert(1)>",
                          draw={"</script>": view.draw.bars("order")})  # fmt: skip
    page = open_interact(shown)
    assert page.locator("h1").text_content() == "<img src=x onerror=alert(1)>"
    assert page.locator("img").count() == 0
    page.locator(".ordered").first.focus()
    press(page, "Alt+ArrowRight")
    assert "</script>" in status_text(page)


def test_removed_view_terminates_its_worker(open_interact):
    page = open_interact(lesson())
    remove_and_restore(page)
    page.get_by_label("sharpness").fill("1.1")
    check_outputs(page, attention(torch.tensor(list(WORDS.values())), torch.tensor(1.1)))


def data_dependent(x, order):
    return x * torch.arange(3)[order] if x.sum() > 0 else -x * torch.ones(3)


def test_kernel_computes_and_saved_page_is_static(new_page, tmp_path):
    live = view.interact(data_dependent, x=(-1.0, 1.0), order=view.controls.order(["a", "b", "c"]), kernel=True,
                         draw={"output": view.draw.bars("order")})  # fmt: skip
    page = new_page()
    with_kernel(page, live, "interact-widget", "values")
    page.wait_for_function("document.querySelector('.tfviz').shadowRoot.querySelector('.results canvas')")
    ready(page).get_by_label("x").fill("0.5")
    page.get_by_role("button", name="a, 1").focus()
    press(page, "Alt+ArrowRight")
    ready(page)
    assert live.values == {"x": 0.5, "order": [1, 0, 2]}
    assert tables(page) == [[["0.5"], ["0"], ["1"]]]
    left = new_page()
    goto_view(left, takes(page, "HTML", tmp_path))
    assert tables(ready(left)) == [[["0.5"], ["0"], ["1"]]]
    assert "Static: Python computed this" in left.locator(".note").inner_text()
    assert left.locator(".controls.arguments").get_attribute("inert") is not None
    page.evaluate("close_view()")
    assert page.locator(".tfviz").count() == 0


def sentence(page):
    return plain(page.locator(".summary").text_content()).replace("\N{NO-BREAK SPACE}", " ")


def tables_of(key_size):
    table = key_size * torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    return {"table": table, "flat": torch.ones(2) + 0 * key_size}


def test_summary_does_not_change_on_hover(open_interact):
    drawn = {"table": view.draw.grid(["a", "b"], ["x", "y"]), "flat": view.draw.bars(["c", "d"])}
    page = open_interact(view.interact(tables_of, key_size=(1.0, 9.0), draw=drawn))
    first = "Table: largest for “b” and “y” (20). Flat: 1 everywhere."
    assert sentence(page) == first
    assert status_text(page) == ""
    page.locator(".result canvas").first.hover(position={"x": 60, "y": 60})
    assert status_text(page).startswith("table: “")
    assert sentence(page) == first
    page.mouse.move(1, 1)
    assert status_text(page) == ""
    page.get_by_label("key size").fill("2")
    ready(page)
    assert sentence(page) == "Table: largest for “b” and “y” (8). Flat: 1 everywhere."
    assert page.locator(".flat .slider > span").first.text_content() == "key size"  # the argument's name as words
    assert page.locator(".ends span").all_text_contents() == ["1", "9"]


def test_custom_summary_is_updated_on_change(open_interact):
    told = "{row} looks most at {col} ({percent}), then at {second} ({second_percent})."
    drawn = {"shares": view.draw.grid("words", "words", scale="linear", axes=("looks", "at"), sentence=told)}
    page = open_interact(view.interact(attention, words=view.controls.points(WORDS), sharpness=(0.1, 5.0), draw=drawn))
    page.get_by_label("sharpness").fill("0.4")
    shares = attention(torch.tensor(list(WORDS.values())), torch.tensor(0.4))["shares"]
    ready(page)
    names = list(WORDS)
    row = max(range(3), key=lambda i: max(float(shares[i, j]) for j in range(3) if j != i))
    best, second = shares[row].argsort(descending=True)[:2].tolist()
    word = lambda at: "itself" if at == row else f"“{names[at]}”"  # noqa: E731
    share = lambda at: f"({percent(float(shares[row, at]))})"  # noqa: E731
    expected = f"“{names[row]}” looks most at {word(best)} {share(best)}, then at {word(second)} {share(second)}."
    assert sentence(page) == expected


def ways(x):
    hidden = torch.tensor([[0.0, -torch.inf], [0.0, 0.0]])
    return {"one": hidden + 1 + 0 * x, "two": hidden + torch.tensor([[1.0, 0.0], [2.0, 1.0]]) + 0 * x}


def test_results_with_same_scale_share_one_labelled_key(open_interact):
    grid = view.draw.grid(["a", "b"], ["c", "d"], axes=("hears", "of"), ends=("none", "most"), hatched="cannot")
    page = open_interact(view.interact(ways, x=(0.0, 1.0), draw={"one": grid, "two": grid}))
    keys = page.get_by_role("img", name="Scale:")
    assert [one.get_attribute("aria-label") for one in keys.all()] == ["Scale: 0: none; 2: most; cannot"]
    yes = view.draw.grid(["a", "b"], ["c", "d"], ends=("may not look", "may look"))
    page = open_interact(view.interact(lambda x: torch.eye(2) + 0 * x, x=(0.0, 1.0), draw={"output": yes}))
    keys = page.get_by_role("img", name="Scale:")
    assert [one.get_attribute("aria-label") for one in keys.all()] == ["Scale: may not look; may look"]
    assert sentence(page) == "May look in 2 of 4 cells."


def held(machines):
    return torch.tensor([60.0, 84.0]) / machines


def test_stack_summary_compares_sum_with_budget(open_interact, tmp_path):
    drawn = {"output": view.draw.stack(["weights", "activations"], budget=80, unit="GB", title="memory")}
    page = open_interact(view.interact(held, machines=(1.0, 4.0, 1.0), title="Does it fit? Add machines", draw=drawn))
    page.get_by_role("slider", name="machines").fill("1")
    ready(page)
    assert page.locator(".purpose").inner_text() == "Add machines"
    assert page.locator("h1").text_content() == "Does it fit?"
    assert sentence(page) == "No: 144 of 80 GB. The largest part is “activations”, 84 GB (58%)."
    page.locator("canvas[aria-label^=memory]").focus()
    press(page, "ArrowDown")
    assert plain(status_text(page)).replace("\N{NO-BREAK SPACE}", " ") == "memory: “activations” 84 GB"
    svg = takes(page, "SVG", tmp_path).read_text("utf-8")
    assert "No: 144 of 80\u00a0GB" in svg
    page.get_by_role("slider", name="machines").fill("2")
    ready(page)
    assert "Yes: 72 of 80\u00a0GB" in takes(page, "SVG", tmp_path).read_text("utf-8")


def test_cells_are_clamped_to_stated_limits(open_interact):
    stars = view.controls.cells([3.0, 5.0], columns=["one", "two"], step=0.5, limits=(0.5, 5.0))
    page = open_interact(view.interact(lambda stars: stars * 1, stars=stars))
    assert "0.5 to 5, in steps of 0.5" in page.locator(".control").inner_text()
    page.get_by_role("button", name="two: 5").focus()
    press(page, "+")
    assert status_text(page) == "two goes from 0.5 to 5"
    press(page, "9", "9", "Enter", "ArrowLeft", "Shift+_")
    assert last_argument(page, "stars").tolist() == [0.5, 5.0]


@pytest.mark.parametrize(("size", "least"), [(8, 36), (4, 39)])
def test_switches_meet_touch_target_size(open_interact, size, least):
    table = view.controls.cells(torch.eye(size).bool(), list("abcdefgh")[:size], list("abcdefgh")[:size])
    page = open_interact(view.interact(lambda table: table.float(), table=table), width=400)
    boxes = [one.bounding_box() for one in page.locator(".switch").all()]
    assert max(box["x"] + box["width"] for box in boxes) <= 384
    assert min(min(box["width"], box["height"]) for box in boxes) >= least
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_bars_are_compared_with_expected_signs(open_interact):
    names, expected = ["same", "opposite"], [1, 1]
    bars = view.draw.bars(names, title="t", expected=expected, ends=("no", "yes"), limit=2, sentence="{count} of {of}.")
    shown = view.interact(lambda x: torch.stack([x, -x]), x=(-1.0, 3.0, 0.5), draw={"output": bars})
    page = open_interact(shown)
    assert page.locator(".summary").text_content() == "1 of 2."
    canvas, status = page.locator(".result canvas"), page.locator(".status")
    footer = page.locator("footer").bounding_box()
    canvas.press("Home")
    assert plain(status.text_content()) == "t: “same” 1 ✓"
    canvas.press("ArrowDown")
    assert plain(status.text_content()) == "t: “opposite” −1 ✗"
    assert page.locator("footer").bounding_box() == footer
    slider = page.locator(".slider")
    filled = "slider => ['--from', '--zero', '--to'].map(name => Number(slider.style.getPropertyValue(name)))"
    assert slider.evaluate(filled) == [0.25, 0.25, 0.5]
    assert slider.locator(".ends span").all_text_contents() == ["−1", "0", "3"]
    slider.locator("input").fill("-0.5")
    page.wait_for_function("document.querySelector('.tfviz').shadowRoot.querySelector('output').value === '−0.5'")
    assert slider.evaluate(filled) == [0.125, 0.25, 0.25]
