"""Pages of `view.compare`, `steps`, `masks`, `positions`, `gates`, `table` and `tokens`, and their exports."""

import csv
import io
import re
import xml.etree.ElementTree as ElementTree

import pytest
import torch
from browser import (
    choose,
    colours,
    control,
    goto_view,
    maps,
    named,
    number,
    numbers,
    page_picture,
    pixels,
    plain,
    press,
    shown,
    spots,
    status_text,
    table,
    takes,
    wait_until_drawn,
    weights,
)
from example_views import BITE, NINE, ROWS, effects, gates, growing, lab, lens_table, wide
from PIL import Image

from tfviz import view
from tfviz.layers import masks, positions
from tfviz.view.figures.palette import tick_labels

pytest_plugins = ["browser"]


def readings(page):
    """What the cursor reads on each panel: {name: number}."""
    found = [part.replace("−", "-").split(": ", 1) for part in status_text(page).replace(" − ", " less ").split("   ")]
    return {name: rest.rpartition("  ")[2] for name, rest in found}


def walk_diagonal(page, size):
    """The cells on the diagonal, each once the arrow keys have gone there."""
    for index in range(size):
        yield index, index
        press(page, "ArrowRight", "ArrowDown")


def test_compare_shares_cursor_and_shows_exact_difference(open_view):
    one, two = wide(), wide(seed=3)
    page = open_view(view.compare(one, two, 1, 2, names=("before", "after")))
    a, b = weights(one, 1, 2), weights(two, 1, 2)
    expected = torch.stack([shown(a), shown(b), shown(b - a)])
    assert page.locator("canvas").count() == 3
    page.locator("canvas").nth(1).focus()
    for row, col in walk_diagonal(page, 5):
        values = readings(page)
        assert list(values) == ["before", "after", "after less before"]
        assert list(map(float, values.values())) == expected[:, row, col].tolist()
    for panel, values in enumerate((weights(one, 1, 2), weights(two, 1, 2))):
        torch.testing.assert_close(numbers(page, panel), shown(values), rtol=1e-9, atol=0)


def test_compare_of_different_shapes_shows_two_panels(open_view):
    one, two = wide(), maps(2, 3, 6, 8, query_tokens=list("abcdef"), key_tokens=list("stuvwxyz"))
    page = open_view(view.compare(one, two, 0, 1, names=("before", "after")))
    assert page.locator("canvas").count() == 2
    page.locator("canvas").nth(1).focus()
    assert {k: float(v) for k, v in readings(page).items()} == {
        "before": shown(weights(one, 0, 1))[0, 0], "after": shown(weights(two, 0, 1))[0, 0]
    }  # fmt: skip
    press(page, "End", *["ArrowDown"] * 5)
    assert {k: float(v) for k, v in readings(page).items()} == {"after": shown(weights(two, 0, 1))[5, 7]}


def test_compare_aligns_keys_when_sinks_are_hidden(open_view):
    one, two = wide(1, 1), wide(1, 1, seed=3)
    one.layers[0][0][:, 1], two.layers[0][0][:, 4] = 180, 180  # each has a sink of its own
    page = open_view(view.compare(one, two, names=("before", "after")))
    choose(page, "Hide", "sinks")
    page.locator("canvas").first.focus()
    for _ in range(5):
        parts = status_text(page).split("   ")
        keys = {part.rpartition("→ “")[2].partition("”")[0] for part in parts}
        assert len(keys) == 1 or len(parts) == 2
        page.keyboard.press("ArrowRight")


def test_compare_offers_only_common_heads(open_view):
    page = open_view(view.compare(wide(2, 3), wide(1, 2, seed=3)))
    assert page.get_by_role("button", name="head ").count() == 2
    assert control(page, "Layer").count() == 0


def test_steps_leave_future_tokens_blank(open_view):
    parts = growing()
    page = open_view(view.steps(parts, 1, 2))
    cells = spots(page, NINE, NINE)
    blank = Image.open(page_picture(page)).getpixel((3, 3))
    for at, (name, some) in enumerate(parts.items()):
        control(page, "Step").fill(str(at))
        wait_until_drawn(page)
        assert named(page) == f"{name.capitalize()} ({at + 1} of {len(parts)}), layer 1, head 2"
        n = len(some.query_tokens)
        texts = page.locator("canvas").evaluate(READ, [list(cells[cell][0]) for cell in cells])
        own, seen = shown(weights(parts["step 9"], 1, 2)).tolist(), colours(page, cells)
        for (row, col), text in zip(cells, texts):
            beyond, said = row >= n or col >= n, text.rpartition("  ")[2]
            assert (said == "not there yet") == beyond
            assert beyond or (said == "may not look") == (col > row)
            assert beyond or col > row or number(said) == own[row][col]
            assert not beyond or seen[row, col] == blank
    control(page, "Step").fill("0")
    wait_until_drawn(page)
    picture = Image.open(page_picture(page, "canvas")).convert("RGB")
    (left, top), (right, bottom) = cells[3, 3][0], cells[7, 7][-1]
    assert picture.crop((left, top, right, bottom)).getcolors() == [((right - left) * (bottom - top), blank[:3])]


def test_play_button_runs_to_last_step_and_can_be_paused(open_view):
    parts = growing()
    page = open_view(view.steps(parts))
    slider, play = control(page, "Step"), page.get_by_role("button", name="Play")
    last = str(len(parts) - 1)
    assert slider.input_value() == "0"
    for _ in range(2):  # from the last step it starts again
        play.click()
        pause = page.get_by_role("button", name="Pause")
        pause.wait_for()
        pause.wait_for(state="detached", timeout=15_000)
        assert slider.input_value() == last
    play.click()
    page.get_by_role("button", name="Pause").click()
    at = slider.input_value()
    page.wait_for_timeout(700)
    assert slider.input_value() == at != last


def test_steps_with_other_axes_have_no_mode_tabs(open_view):
    one = {name: maps(1, 1, 3, 3, seed=seed) for seed, name in enumerate(("step 1", "step 2"))}
    for axes, modes in ((("query", "key"), 3), (("head", "place"), 0)):
        page = open_view(view.steps(one, axes=axes))
        assert page.locator("[role=tab]:visible").count() == modes


READ = """(canvas, spots) => spots.map(([x, y]) => { const { left, top } = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: left + x, clientY: top + y }));
    const text = canvas.getRootNode().querySelector('.status').textContent;
    canvas.dispatchEvent(new PointerEvent('pointerleave')); return text; })"""


def test_masks_page_matches_mask_rules(open_view):
    page = open_view(lab())
    page.get_by_label("window, size").fill("2")
    page.get_by_label("dilated, size").fill("3")
    wait_until_drawn(page)
    either = masks.window(3) | masks.dilated(4)
    rule = masks.causal & either
    assert page.locator(".formula").inner_text() == "causal & (window(3) | dilated(4))"
    allowed = rule.dense(7, 9)[0, 0]
    cells = table(page)[2]
    assert torch.equal(torch.tensor([[cell != "–" for cell in row] for row in cells]), allowed)
    assert named(page).endswith(f"{int(allowed.sum())} of 63 cells allowed")
    page.locator("canvas").focus()
    press(page, *["ArrowDown"] * 4)
    for col in range(9):
        why = rule.explain(4, col)
        reasons = ["causal"] * ("causal" in why) + ["window(3) | dilated(4)"] * ("window(3)" in why)
        expected = f"forbidden by {' and '.join(reasons)}" if why else "may look"
        assert status_text(page) == f"“{NINE[4]}” → “{'abcdefghi'[col]}”  {expected}"
        press(page, "ArrowRight")
    assert page.locator(".warning").inner_text() == ""
    page.get_by_label("causal", exact=True).select_option("must not hold")
    page.get_by_label("window, size").fill("0")
    page.get_by_label("dilated", exact=True).select_option("not used")
    wait_until_drawn(page)
    assert page.locator(".formula").inner_text().replace("(window(1))", "window(1)") == "~causal & window(1)"
    assert plain(page.locator(".warning").inner_text()).startswith("7 queries may look at nothing: “A”, “B”")


def test_masks_page_and_csv_show_no_fractional_values(open_view, tmp_path):
    page = open_view(lab())
    assert {cell for row in table(page)[2] for cell in row} <= {"–", "1", "yes", "may look"}
    assert "0.25" not in takes(page, "CSV", tmp_path).read_text(encoding="utf-8")


def test_positions_page_matches_values_and_cosines(open_view):
    tables = {"sine": positions.sinusoids(torch.arange(9), 6), "other": torch.eye(5, 8) - 0.5}
    page = open_view(view.positions(tables))
    unit = lambda some: torch.nn.functional.normalize(some, dim=-1)  # noqa: E731
    for turn, (name, some) in enumerate(tables.items()):
        if turn:
            page.get_by_role("tab", name=name).click()
            wait_until_drawn(page)
        alike = unit(some) @ unit(some).T
        torch.testing.assert_close(numbers(page), shown(some), rtol=1e-6, atol=0)
        torch.testing.assert_close(numbers(page, 1), shown(alike), rtol=1e-6, atol=2e-7)
        page.locator("canvas").nth(1).focus()
        press(page, "ArrowRight")
        for row in range(3):
            ((panel, value),) = readings(page).items()  # a column of the table is no position: no shared cursor
            assert panel == "cosine of two positions"
            assert number(value) == pytest.approx(float(shown(alike)[row, row + 1]), rel=1e-6, abs=2e-7)
            press(page, "ArrowRight", "ArrowDown")


def test_gates_page_matches_values_by_word(open_view):
    tables = gates()
    page = open_view(view.gates(tables, ROWS))
    page.locator("canvas").first.focus()
    for unit, step in walk_diagonal(page, 4):
        expected = {name: shown(some)[step, unit].item() for name, some in tables.items()}
        assert {name: float(value) for name, value in readings(page).items()} == expected
        assert f"input: unit {unit}, word {ROWS[step]}" in status_text(page)
    for name, some in tables.items():
        page.get_by_role("tab", name=name, exact=True).click()
        wait_until_drawn(page)
        assert table(page)[:2] == (ROWS, list("0123"))
        torch.testing.assert_close(numbers(page), shown(some.T), rtol=1e-9, atol=0)


def test_table_page_reads_axes_and_values(open_view):
    table = effects()
    page = open_view(view.table(table))
    page.locator("canvas").focus()
    for layer in range(2):
        for head in range(3):
            expected = "no number" if table.values[layer, head].isnan() else None
            assert f"layer {layer}, head {head}" in status_text(page)
            if expected:
                assert expected in status_text(page)
            else:
                shown_value = float(status_text(page).rsplit(" ", 1)[-1].replace("−", "-"))
                assert shown_value == pytest.approx(table.values[layer, head].item(), rel=0.05)
            page.keyboard.press("ArrowRight")
        page.keyboard.press("Home")
        page.keyboard.press("ArrowDown")


def test_lens_table_lists_top_tokens_of_cell(open_view):
    lens = lens_table()
    page = open_view(view.table(lens))
    page.locator("canvas").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    for rank in range(3):
        share = lens.probabilities[1, 1, rank].item()
        assert f" {share:.2g}" in status_text(page)


def test_tokens_are_read_one_by_one(open_view):
    page = open_view(view.tokens(["to", " be", "</b>"], [0.5, -2.0, 1.0], "Tokens", unit="nats"))
    words = page.get_by_role("option")
    assert words.all_inner_texts() == ["to", " be", "</b>"]
    assert "“␣be” −2 nats" in re.sub("[\u2068\u2069]", "", status_text(page))
    words.first.click()
    assert "“to” 0.5 nats" in re.sub("[\u2068\u2069]", "", status_text(page))
    page.keyboard.press("End")
    assert "“</b>” 1 nats" in re.sub("[\u2068\u2069]", "", status_text(page))
    colours = words.evaluate_all("all => all.map(one => getComputedStyle(one).backgroundColor)")
    assert len(set(colours)) == 3


def test_exports_match_displayed_head(open_view, new_page, tmp_path):
    some = maps(2, 3, 6, 6, causal=True, query_tokens=["<a>", "b&", '"c"', "d'", "e", "f"])
    page = open_view(view.head(some, 1, 2))
    page.locator("canvas").focus()
    press(page, "ArrowDown", "Space", "ArrowRight", "c")
    page.locator("canvas").blur()
    box = page.locator("canvas").bounding_box()
    picture = Image.open(takes(page, "PNG", tmp_path))
    picture.load()
    assert picture.size == (round(box["width"]) + 24, round(box["height"]) + 46)
    root = ElementTree.parse(takes(page, "SVG", tmp_path)).getroot()
    words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"<a>", "b&", '"c"', "d'", "e", "f"} <= {word.removesuffix("●").strip() for word in words}
    assert words[0].startswith("Layer 1, head 2")
    head, *lines = csv.reader(takes(page, "CSV", tmp_path).read_text("utf-8").splitlines())
    assert (head[1:], [line[0] for line in lines]) == (some.key_tokens, some.query_tokens)
    found = torch.tensor([[float(cell or "nan") for cell in line[1:]] for line in lines], dtype=torch.double)
    expected = weights(some, 1, 2).where(some.mask[1, 2], torch.nan)
    torch.testing.assert_close(found, expected, rtol=5.1e-4, atol=0, equal_nan=True)
    own = new_page()
    goto_view(own, takes(page, "HTML", tmp_path))
    assert own.title() != ""
    assert (named(own), pixels(own)) == (named(page), pixels(page))
    choose(own, "Hide", "locked keys")
    assert table(own)[0] == ["<a>", '"c"', "d'", "e", "f"]
    assert own.evaluate("document.querySelectorAll('script').length") == 4


BROWSERS = BITE[9:11]  # an emoji and Chinese letters, for which matplotlib may have no face


def expected_labels():
    """The words as all pictures show them; `BROWSERS` as the page does, whatever faces matplotlib has found."""
    texts = [re.sub(r"⟨(1?[0-9A-F])⟩", lambda code: chr(0x2400 + int(code[1], 16)), text) for text in tick_labels(BITE)]
    return [word if word in BROWSERS else text for word, text in zip(BITE, texts)]


def test_hostile_tokens_are_shown_as_text(open_view, new_page, tmp_path):
    some = maps(1, 2, len(BITE), len(BITE), query_tokens=BITE)
    page = open_view(view.heads(some, title='</script>"\0\ud800<img src=x onerror=alert(2)>'))
    for mode in range(1, 5):
        page.get_by_role("tab").nth(mode - 1).click()
        wait_until_drawn(page)
        ElementTree.parse(takes(page, "SVG", tmp_path))
        Image.open(takes(page, "PNG", tmp_path)).load()
    assert [text.split("⟨")[0] for text in page.locator(".word").all_inner_texts()][7] == "שלום"
    press(page, "2")
    page.locator("canvas").focus()
    for i, text in enumerate(expected_labels()):
        assert status_text(page).startswith(f"“{text[:16]}")
        press(page, "ArrowDown", "ArrowRight") if i + 1 < len(BITE) else None
    lines = csv.reader(io.StringIO(takes(page, "CSV", tmp_path).read_bytes().decode(), newline=""))
    plain = [word.replace("\ud800", "\ufffd") for word in BITE]
    plain[BITE.index("=1+1")] = "'=1+1"  # no spreadsheet runs it
    assert next(lines)[1:] == plain
    assert [line[0] for line in lines] == plain
    own = new_page()
    goto_view(own, takes(page, "HTML", tmp_path))
    assert table(own)[:2] == table(page)[:2]
    assert own.locator("img").count() == page.locator("img").count() == 0


def test_page_labels_match_still_picture_labels(open_view):
    some = maps(1, 1, len(BITE), len(BITE), query_tokens=BITE)
    page = open_view(view.head(some, 0, 0))
    texts = page.locator("details", has_text="Table").first
    texts.locator("summary").click()
    wait_until_drawn(page)
    heads = texts.locator("thead th").evaluate_all("cells => cells.map(cell => cell.textContent)")[1:]
    assert heads == expected_labels()


def test_right_to_left_words_keep_query_key_order(open_view):
    page = open_view(view.head(maps(1, 1, 2, 2, query_tokens=["שלום", "עולם"]), 0, 0))
    page.locator("canvas").focus()
    press(page, "ArrowRight")
    where = page.locator(".status").evaluate("""status => { const text = status.textContent, node = status.firstChild;
        return ['של', 'עו', '0.'].map(part => { const range = document.createRange(), at = text.indexOf(part);
        range.setStart(node, at); range.setEnd(node, at + 2); return range.getBoundingClientRect().left; }); }""")
    assert where == sorted(where)


@pytest.mark.parametrize(
    "make",
    [view.heads, lambda some: view.head(some, 0, 0), view.links, view.words, view.alignment,
     lambda some: view.compare(some, some), lambda some: view.steps({"a": some}), lambda some: view.groups(a=some)],
)  # fmt: skip
def test_views_of_empty_maps_raise(make):
    with pytest.raises(ValueError, match=r"nothing to draw.*\b0\b"):
        make(maps(1, 1, 0, 0))


def test_csv_escapes_formulas(open_view, tmp_path):
    word, written = "+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"
    some = maps(1, 1, 2, 2, query_tokens=[word, "b"])
    page = open_view(view.compare(some, some, names=(word, "b")))
    lines = list(csv.reader(io.StringIO(takes(page, "CSV", tmp_path).read_bytes().decode(), newline="")))
    assert lines[0] == [written]
    assert lines[1][1] == lines[2][0] == written
