"""Pages of attention heads in Chromium, offline: displayed values match the attention tensors."""

import re

import pytest
import torch
from browser import (
    assert_table_equals,
    choose,
    colours,
    control,
    focused,
    goto_view,
    maps,
    middle,
    named,
    numbers,
    pixels,
    plain,
    point_at_head,
    press,
    read,
    shown,
    spots,
    status_text,
    table,
    takes,
    wait_until_drawn,
    weights,
)

from tfviz import view
from tfviz.look import AttentionMaps

pytest_plugins = ["browser"]
QUERIES = ["die", "Katze", "sitzt", "dort", "."]
KEYS = ["the", "cat", "sits", "over", "there", ".", "</s>"]
SIX = ["a", "b", "c", "d", "e", "f"]


def cross_attention_maps(layers=2, heads=3, **given):
    return maps(layers, heads, query_tokens=QUERIES, key_tokens=KEYS, **given)


def changed(before, after):
    return {cell for cell in before if before[cell] != after[cell]}


WAY = {(0, 0): ["ArrowRight"] * 2, (0, 2): ["ArrowDown"] * 3, (3, 2): ["ArrowRight"] * 3, (3, 5): []}


@pytest.mark.parametrize("causal", [False, True])
def test_arrow_keys_and_table_read_cells(open_view, causal):
    some = maps(queries=6, keys=6, causal=True, query_tokens=SIX) if causal else cross_attention_maps()
    page = open_view(view.head(some, 1, 2))
    rows, cols, expected = some.query_tokens, some.key_tokens, shown(weights(some, 1, 2)).tolist()
    page.locator("canvas").first.focus()
    for row, col in ((0, 0), (0, 2), (3, 2), (3, 5)):
        query, key, number = read(page)
        assert (query, key) == (rows[row], cols[col])
        if causal and col > row:
            assert number == "may not look"
        else:
            assert float(number) == expected[row][col]
        press(page, *WAY[row, col])
    assert_table_equals(page, weights(some, 1, 2), some.mask[1, 2] if causal else None)
    assert table(page)[:2] == (cols, rows)


def test_mouse_reads_the_drawn_cell(open_view):
    some = cross_attention_maps()
    page = open_view(view.head(some, 1, 2))
    cells, expected = spots(page, QUERIES, KEYS), shown(weights(some, 1, 2)).tolist()
    assert set(cells) == {(row, col) for row in range(5) for col in range(7)}
    box = page.locator("canvas").bounding_box()
    for (row, col), points in cells.items():
        for x, y in (points[0], points[-1]):
            page.mouse.move(box["x"] + x, box["y"] + y)
            assert read(page)[:2] == (QUERIES[row], KEYS[col])
            assert float(read(page)[2]) == expected[row][col]
    page.mouse.move(0, 0)
    assert status_text(page) == ""
    light = {cell: sum(colour) for cell, colour in colours(page, cells).items()}
    codes = some.layers[1][2]
    strongest = sorted(light, key=lambda cell: -codes[cell])
    assert [light[cell] for cell in strongest] == sorted(light.values())


def test_each_head_has_its_own_stable_picture(open_view):
    some = cross_attention_maps()
    page = open_view(view.head(some, 0, 0))
    canvas, seen = page.locator("canvas"), {}
    canvas.focus()
    for turn in range(2):
        for layer in range(2):
            for head in range(3):
                assert named(page) == f"Layer {layer}, head {head}"
                picture = canvas.screenshot()
                assert seen.setdefault((layer, head), picture) == picture
                assert turn or len(set(seen.values())) == len(seen)
                press(page, "]")
            press(page, "PageDown")
    press(page, "[", "PageUp")
    assert named(page) == "Layer 1, head 2"


def test_value_under_cursor_updates_with_head(open_view):
    some = cross_attention_maps()
    page = open_view(view.head(some, 0, 0))
    page.locator("canvas").first.focus()
    press(page, "ArrowDown", "]")
    assert read(page) == ("Katze", "the", f"{shown(weights(some, 0, 1))[1, 0]:.2g}")
    press(page, "PageDown")
    assert read(page) == ("Katze", "the", f"{shown(weights(some, 1, 1))[1, 0]:.2g}")


def test_overview_opens_marks_and_combines_heads(open_view):
    some = cross_attention_maps()
    page = open_view(view.heads(some))
    page.locator("canvas").first.focus()
    press(page, "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown")
    best = weights(some, 1, 2).amax(-1).mean()
    assert status_text(page) == f"layer 1, head 2: the strongest key of a query has {best:.2g} on average"
    assert numbers(page)[1, 2] == float(f"{best:.2g}")
    page.locator("canvas").first.focus()
    before = pixels(page)
    press(page, "Enter")
    assert named(page) == "Layer 1, head 2"
    assert focused(page, "aria-label").startswith("Heatmap")
    assert_table_equals(page, weights(some, 1, 2))
    page.locator("canvas").first.focus()
    press(page, "Escape")
    assert named(page) == "2 layers × 3 heads"
    press(page, "Home", "Space", "ArrowUp", "End", "Space")
    assert named(page) == "2 layers × 3 heads, 2 marked"
    assert pixels(page) != before
    press(page, "2")
    assert named(page) == "Mean of heads 0.2, 1.1"
    both = torch.stack([weights(some, 0, 2), weights(some, 1, 1)])
    assert_table_equals(page, both.mean(0))
    choose(page, "Together", "maximum")
    assert named(page) == "Max of heads 0.2, 1.1"
    assert_table_equals(page, both.amax(0))
    page.get_by_role("button", name="head 0", exact=True).click(modifiers=["Shift"])
    wait_until_drawn(page)
    assert named(page) == "Max of heads 0.2, 1.1, 1.0"
    page.get_by_role("button", name="head 1", exact=True).click()
    wait_until_drawn(page)
    assert named(page) == "Layer 1, head 1"
    assert_table_equals(page, weights(some, 1, 1))


def test_overview_click_opens_and_shift_click_marks(open_view):
    page = open_view(view.heads(cross_attention_maps()))
    spot = point_at_head(page, "layer 0, head 1")
    page.keyboard.down("Shift")
    page.mouse.click(*spot)
    page.keyboard.up("Shift")
    wait_until_drawn(page)
    assert named(page) == "2 layers × 3 heads, 1 marked"
    page.mouse.click(*spot)
    wait_until_drawn(page)
    assert named(page) == "Layer 0, head 1"


def test_lines_use_distinct_colours_for_same_head_in_two_layers(open_view, tmp_path):
    some = maps(2, 3, 6, 6, causal=True, query_tokens=SIX)

    def colours(page):
        text = takes(page, "SVG", tmp_path).read_text(encoding="utf-8")
        return set(re.findall(r'<path[^>]* stroke="(#\w+)"', text)), re.findall(r">(\d\.\d)<", text)

    page = open_view(view.links(some, 1, [1]))
    assert colours(page)[1] == []
    assert len(colours(page)[0]) == 1
    page = open_view(view.heads(some))
    page.locator("canvas").first.focus()
    press(page, "ArrowDown", "Space", "ArrowRight", "Space", "3")
    assert named(page) == "Heads 0.1, 1.1"
    found, legend = colours(page)
    assert len(found) == 2
    assert legend == ["0.1", "1.1"]


def test_number_keys_switch_tabs(open_view):
    page = open_view(view.heads(maps(queries=6, keys=6, causal=True, query_tokens=SIX)))
    page.locator("canvas").first.focus()
    ways = {"1": "All heads", "2": "One head", "3": "Lines", "4": "Words"}
    for key in "2341421":
        press(page, key)
        assert page.get_by_role("tab", selected=True).inner_text() == ways[key]
    press(page, "2")
    page.get_by_role("tab", name="One head").focus()
    press(page, "ArrowRight")
    assert page.get_by_role("tab", selected=True).inner_text() == "Lines"


def test_key_without_effect_does_not_steal_focus_later(open_view):
    page = open_view(view.head(cross_attention_maps(), 0, 0))
    page.locator("canvas").first.focus()
    press(page, "2")
    control(page, "Layer").focus()
    choose(page, "Layer", "1")
    assert page.evaluate("document.activeElement.shadowRoot.activeElement.tagName") == "SELECT"


def test_locked_rows_and_columns_fade_other_cells(open_view):
    some = cross_attention_maps(1, 2, even=True)
    page = open_view(view.head(some, 0, 1))
    cells = spots(page, QUERIES, KEYS)
    free, plain, box = colours(page, cells), pixels(page), page.locator("canvas").bounding_box()
    kept = lambda rows=range(5), cols=range(7): {cell for cell in cells if not (cell[0] in rows and cell[1] in cols)}  # noqa: E731

    def click(cell, *modifiers):
        x, y = middle(cells[cell])
        page.locator("canvas").click(position={"x": x, "y": y}, modifiers=modifiers)
        page.mouse.move(box["x"] + box["width"] + 50, box["y"] + 20)
        wait_until_drawn(page)
        return changed(free, colours(page, cells))

    assert click((2, 3)) == kept([2])
    assert click((4, 0)) == kept([2, 4])
    assert click((1, 5), "Shift") == kept([2, 4], [5])
    assert click((2, 5)) == kept([4], [5])
    press(page, "Escape")
    page.mouse.move(0, 0)
    page.locator("canvas").blur()
    assert pixels(page) == plain
    page.locator("canvas").first.focus()
    press(page, "Home", *["ArrowUp"] * 5, "ArrowDown", "Space", "ArrowRight", "ArrowRight", "c", "ArrowDown", "Enter")
    assert changed(free, colours(page, cells)) == kept([1, 2], [2])
    press(page, "Space", "C")
    assert changed(free, colours(page, cells)) == kept([1])
    press(page, "Escape")
    assert changed(free, colours(page, cells)) == set()
    assert named(page) == "Layer 0, head 1"


def drop_keys(weights, *hidden):
    left = weights[:, [col for col in range(weights.shape[1]) if col not in hidden]]
    return left / left.sum(-1, keepdim=True)


def test_hidden_keys_are_left_out_and_rows_renormalized(open_view):
    some = cross_attention_maps()
    some.layers[0][1][:, 2] = 170  # 0.44 of each query: a sink
    page = open_view(view.head(some, 0, 1))
    own = weights(some, 0, 1)
    for option, hidden in {"the first key": [0], "separators": [5, 6], "sinks": [2], "nothing": []}.items():
        choose(page, "Hide", option)
        assert table(page)[0] == [word for i, word in enumerate(KEYS) if i not in hidden]
        assert_table_equals(page, drop_keys(own, *hidden) if hidden else own)
    page.locator("canvas").first.focus()
    press(page, "ArrowRight", "c", "End", "ArrowLeft", "ArrowLeft", "c")
    choose(page, "Hide", "locked keys")
    assert table(page)[0] == ["the", "sits", "over", ".", "</s>"]
    assert_table_equals(page, drop_keys(own, 1, 4))


def test_whole_words_sum_keys_and_average_queries(open_view):
    rows, cols = ["un", "##like", "##ly", "cats", "!"], ["ab", "##c", "d", "ef", "##g", "##h", "."]
    some = maps(query_tokens=rows, key_tokens=cols)
    page = open_view(view.head(some, 1, 0))
    control(page, "whole words").check()
    wait_until_drawn(page)
    assert table(page)[:2] == (["abc", "d", "efgh", "."], ["unlikely", "cats", "!"])
    summed = torch.stack([part.sum(-1) for part in weights(some, 1, 0).split([2, 1, 3, 1], -1)], -1)
    merged = torch.stack([part.mean(0) for part in summed.split([3, 1, 1])])
    assert_table_equals(page, merged)
    choose(page, "Hide", "the first key")
    assert table(page)[0][1:] == ["d", "efgh", "."]
    rest = torch.stack([part.sum(-1) for part in drop_keys(weights(some, 1, 0), 0).split([1, 1, 3, 1], -1)], -1)
    assert_table_equals(page, torch.stack([part.mean(0) for part in rest.split([3, 1, 1])]))


def test_sources_support_unequal_depths(open_view):
    parts = {
        "encoder": maps(3, 2, 4, 4, query_tokens=list("pqrs")),
        "decoder": maps(2, 4, 6, 6, causal=True, query_tokens=SIX),
        "cross": maps(1, 3, 6, 4, query_tokens=SIX, key_tokens=list("pqrs")),
    }
    page = open_view(view.groups(**parts))
    assert named(page) == "Encoder, 3 layers × 2 heads"
    page.locator("canvas").first.focus()
    press(page, "ArrowRight", "ArrowRight", "ArrowDown", "Enter")
    assert_table_equals(page, weights(parts["encoder"], 2, 1))
    for name, (layer, head) in {"decoder": (1, 1), "cross": (0, 1), "encoder": (2, 1)}.items():
        page.get_by_role("tab", name=name, exact=True).click()
        wait_until_drawn(page)
        assert named(page).lower() == f"{name}, layer {layer}, head {head}"
        some = parts[name]
        assert_table_equals(page, weights(some, layer, head), None if some.mask is None else some.mask[layer, head])
        if some.shape[0] > 1:
            assert control(page, "Layer").evaluate("list => list.value") == str(layer)


def test_lines_update_with_sliders_and_heads(open_view):
    some = maps(2, 3, 6, 6, causal=True, query_tokens=SIX)
    page = open_view(view.links(some, 1, [0, 2]))
    assert named(page) == "Heads 1.0, 1.2"
    seen = [pixels(page)]
    for name, value in (("At least", "0.6"), ("At least", "0"), ("Strongest", "1"), ("Strongest", "2")):
        control(page, name).fill(value)
        wait_until_drawn(page)
        seen.append(pixels(page))
    page.get_by_role("button", name="head 1", exact=True).click(modifiers=["Shift"])
    wait_until_drawn(page)
    assert named(page) == "Heads 1.0, 1.2, 1.1"
    seen.append(pixels(page))
    assert len(set(seen)) == 6
    page.locator("canvas").first.focus()
    press(page, *["ArrowDown"] * 5)
    assert status_text(page).startswith("“f” → 1.0: ")
    for head, part in zip((0, 2, 1), status_text(page).removeprefix("“f” → ").split("; ")):
        best, found = weights(some, 1, head)[5].sort(descending=True), re.findall(r"“(\w)” ([\d.e-]+)", part)
        assert part.startswith(f"1.{head}: ")
        assert [(word, float(number)) for word, number in found] == [
            (SIX[i], float(f"{value:.2g}")) for value, i in zip(best.values[:3].tolist(), best.indices[:3].tolist())
        ]
    locked = pixels(page)
    press(page, "Space")
    assert pixels(page) != locked


def test_words_shading_matches_weights(open_view):
    some = maps(2, 3, 6, 6, causal=True, query_tokens=SIX)
    page = open_view(view.words(some, 1, 2))
    own = weights(some, 1, 2)

    def shaded():
        found = page.locator(".word").evaluate_all("words => words.map(word => [word.title, word.style.background])")
        return [title for title, _ in found], [sum(map(int, re.findall(r"\d+", back))) for _, back in found]

    def agrees(expected, allowed):
        titles, light = shaded()
        numbers = [f"{float(f'{value:.2g}'):g}" for value in expected.tolist()]
        assert titles == [number if ok else "may not look" for number, ok in zip(numbers, allowed)]
        open_ = [i for i in range(6) if allowed[i]]
        assert sorted(open_, key=lambda i: light[i]) == sorted(open_, key=lambda i: -expected[i])

    agrees(own[5], [True] * 6)
    page.locator(".word[tabindex='0']").focus()
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowRight"):
        press(page, key)
    agrees(own[3], [True] * 4 + [False] * 2)
    choose(page, "Show", "what looks at it")
    page.locator(".word").nth(2).click()
    wait_until_drawn(page)
    agrees(own[:, 2], [False] * 2 + [True] * 4)


def test_words_handle_rapid_arrow_keys(open_view):
    page = open_view(view.words(maps(1, 2, 6, 6, query_tokens=SIX), 0, 1))
    page.locator(".word[tabindex='0']").focus()
    press(page, "Home", "ArrowRight", "ArrowRight")
    assert page.locator(".word[aria-selected=true]").inner_text() == "c"


@pytest.mark.parametrize(("name", "option"), [("Hide", "the first key"), ("whole words", None)])
def test_words_arrow_keys_work_with_hidden_or_merged_keys(open_view, name, option):
    rows = ["un", "##like", "##ly", "cats", "!", "so"]
    page = open_view(view.words(maps(1, 2, 6, 6, query_tokens=rows), 0, 1))
    if option:
        choose(page, name, option)
    else:
        control(page, name).check()
        wait_until_drawn(page)
    page.locator(".word[tabindex='0']").focus()
    press(page, "Home")
    press(page, "ArrowRight")
    press(page, "ArrowRight")
    assert page.locator(".word[aria-selected=true]").inner_text() == ("ly" if option else "!")
    assert focused(page, "role") == "option"


def test_single_head_has_no_overview(open_view):
    page = open_view(view.head(maps(1, 1, 1, 1, query_tokens=["one"]), 0, 0))
    page.locator("canvas").first.focus()
    assert read(page) == ("one", "one", "1")
    press(page, "Escape", "1")
    assert page.get_by_role("tab", selected=True).inner_text() == "One head"
    page.get_by_role("tab", selected=True).focus()
    press(page, "ArrowLeft")
    assert page.get_by_role("tab", selected=True).inner_text() == "Words"


def selected_head(page):
    """The sentence above the sheet, and the name of the map beside it, if there is one."""
    inner = page.locator(".overview .panels:visible canvas")
    name = inner.get_attribute("aria-label").partition(":")[0] if inner.count() else None
    return plain(page.locator(".finding.of-sheet").inner_text()), name


@pytest.mark.parametrize(("width", "beside"), [(1280, True), (560, None), (480, False)])
def test_overview_describes_hovered_head_and_shows_its_map_if_it_fits(open_view, width, beside):
    """Beside the sheet, on a telephone below it."""
    back = torch.eye(6).roll(-2, 1).tril()
    back[:2, 0] = 1
    back[1, 1:] = 0
    even = torch.ones(6, 6).tril()
    weights = torch.stack([back, even / even.sum(-1, keepdim=True)])[None]
    page = open_view(view.heads(AttentionMaps(weights, list("abcdef"), mask=even.bool())), width=width)
    has_map = beside is not None
    first = ("Layer 0, head 0 looks two letters back in 4 of 4 places.", "Layer 0, head 0" if has_map else None)
    assert selected_head(page) == first
    box = page.locator("canvas").first.bounding_box()
    if has_map:
        assert (page.locator("canvas").nth(1).bounding_box()["y"] < box["y"] + box["height"]) == beside
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.4)
    wait_until_drawn(page)
    second = (
        "Layer 0, head 1 looks from “c” evenly at all 3 that it may look at.",
        "Layer 0, head 1" if has_map else None,
    )
    assert selected_head(page) == second
    page.mouse.move(0, 0)
    wait_until_drawn(page)
    assert selected_head(page) == first


RECORD_TEXTS = """
const fillText = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  (globalThis.texts ??= []).push(text);
  return fillText.call(this, text, ...rest);
};
"""


@pytest.mark.parametrize(("unit", "width"), [(None, 1280), (None, 480), ("activation", 1280)])
def test_overview_lists_keys_and_distances_of_weights_where_there_is_room(new_page, tmp_path, unit, width):
    weights = torch.zeros(1, 2, 4, 4)
    weights[:, :, 0, 0] = 1
    weights[0, 0, 1:] = torch.tensor([[0.5, 0.5, 0, 0], [0, 0.75, 0.25, 0], [0, 0.25, 0.5, 0.25]])
    weights[0, 1, 1:, 0] = 1
    causal = torch.ones(4, 4).tril().bool()
    page = new_page(width=width)
    page.add_init_script(RECORD_TEXTS)
    shown = view.heads(AttentionMaps(weights, list("abcd"), mask=causal), **({"unit": unit} if unit else {}))
    goto_view(page, shown.save(tmp_path / "x.html"))
    texts = [plain(text) for text in page.evaluate("texts")]
    titles = [text for text in texts if " look" in text]
    if unit:
        assert not titles
        return
    assert set(titles) == {"“d” looks at", "All letters look, on average"}
    listed = texts[texts.index("“d” looks at") :]
    assert listed[1:7] == ["“c”", "50%", "“b”", "25%", "“d”", "25%"]
    # 1 back: 0.5, 0.75 and 0.5 of three queries; itself: 0.5, 0.25 and 0.25; for more there is no room beside the map
    assert listed[7:12] == ["All letters look, on average", "1 back", "58%", "at itself", "33%"]
    canvas, stage = (page.locator(one).bounding_box() for one in (".overview .panels canvas", ".overview > canvas"))
    assert (canvas["y"] > stage["y"] + stage["height"]) == (width < 500)


def test_one_head_is_described_from_its_strongest_or_locked_query(open_view):
    weights = torch.tensor([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7], [0.2, 0.6, 0.2]])
    page = open_view(view.head(AttentionMaps(weights[None, None], list("abc")), 0, 0))
    finding = page.locator(".finding:not(.of-sheet)")
    assert plain(finding.inner_text()) == "“b” looks most at “c”: 70% of its attention."
    page.locator("canvas").focus()
    press(page, "ArrowDown", "ArrowDown", "Space")
    assert plain(finding.inner_text()) == "“c” looks most at “b”: 60% of its attention."
    free = torch.tensor([[1.0, 0.0, 0.0], [0.4, 0.6, 0.0], [0.1, 0.2, 0.7]])  # “a” may look at itself alone
    causal = AttentionMaps(free[None, None], list("abc"), mask=torch.ones(3, 3).tril().bool())
    page = open_view(view.head(causal, 0, 0))
    assert plain(page.locator(".finding:not(.of-sheet)").inner_text()).startswith("“c” looks most at itself: 70%")
    page = open_view(view.head(causal, 0, 0, outlined=[1]))
    assert plain(page.locator(".finding:not(.of-sheet)").inner_text()).startswith("“b” looks most at itself: 60%")
    outlined = view.head(AttentionMaps(weights[None, None], list("abc")), 0, 0, outlined=[(0, 1)])
    page = open_view(outlined)
    assert plain(page.locator(".finding:not(.of-sheet)").inner_text()).startswith("“a” looks most at itself: 50%")


def test_pattern_buttons_select_matching_heads(open_view):
    """Each press goes on to the next head of a kind, the clearest first; there are no buttons without a kind."""
    one_back, itself = torch.eye(6).roll(-1, 1).tril(), torch.eye(6)
    one_back[0, 0] = 1
    blurred = 0.7 * one_back + 0.3 * itself
    blurred[4:] = itself[4:]
    even = torch.ones(6, 6) / 6
    weights = torch.stack([torch.stack([even, blurred]), torch.stack([itself, one_back])])
    page = open_view(view.heads(AttentionMaps(weights, list("abcdef"))), width=1280)
    assert page.locator(".kinds button").all_inner_texts() == ["one letter back", "at the letter itself"]
    for head in ("Layer 1, head 1", "Layer 0, head 1", "Layer 1, head 1"):
        page.get_by_role("button", name="one letter back").click()
        wait_until_drawn(page)
        assert selected_head(page)[1] == head
    press(page, "2")
    assert not page.locator(".kinds").is_visible()
    press(page, "1")
    assert page.locator(".kinds").is_visible()
    page = open_view(view.heads(AttentionMaps(even.expand(2, 2, 6, 6), list("abcdef"))), width=1280)
    assert not page.locator(".kinds").is_visible()


def test_table_matches_numbers_of_static_figure(open_view):
    torch.manual_seed(3)
    weights = torch.rand(2, 2, 5, 7).softmax(-1)
    weights[1, 0, 0] = torch.tensor([0.985, 0.005, 0.0049, 0.0051, 0.0, 0.0, 0.0])  # 8 bits would say 0.98
    page = open_view(view.head(AttentionMaps(weights, QUERIES, list("abcdefg")), 1, 0))
    torch.testing.assert_close(numbers(page), shown(weights[1, 0]), rtol=1e-9, atol=0)
