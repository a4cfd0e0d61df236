"""`view.image` and `view.audio` pages in Chromium: values, shading and exports match the attention maps."""

import csv

import numpy
import pytest
import torch
from browser import (
    axe,
    axe_violations_by_scheme,
    choose,
    control,
    horizontal_overflow,
    maps,
    named,
    number,
    page_picture,
    point_at_head,
    press,
    read,
    status_text,
    table,
    takes,
    wait_until_drawn,
    weights,
)
from PIL import Image
from studio_pages import tab_to

from tfviz import view
from tfviz.look import AttentionMaps

pytest_plugins = ["browser"]
WORDS = ["a", "red", "<b>house</b>", "and", "the", "sea"]
WHITE = Image.new("RGB", (80, 60), "white")
BOX = (3, 20)  # where a picture without words above it begins
PALE, STRONG = 0.7, 0.75


def vit_maps(layers=2, heads=3, **given):
    """A class token and 3 x 4 cells that look at themselves."""
    return maps(layers, heads, 13, 13, **given)


def cross_maps(queries=12, **given):
    return maps(1, 2, queries, 6, key_tokens=WORDS, **given)


def canvas(page):
    return page.locator("canvas").first


def picture_box(page, words=1):
    """Where the picture stands on the canvas: (left, top, width, height), with lines of words above it."""
    wide = 520
    return BOX[0], BOX[1] + 32 * words, wide, wide * 3 / 4


def cell_centre(page, row, col, down=3, across=4, words=1):
    left, top, wide, tall = picture_box(page, words)
    return left + (col + 0.5) * wide / across, top + (row + 0.5) * tall / down


def hover(page, x, y):
    canvas(page).hover(position={"x": x, "y": y})
    wait_until_drawn(page)


def click(page, x, y):
    canvas(page).click(position={"x": x, "y": y})
    wait_until_drawn(page)


def rounds_to(value, expected):
    return float(value) == float(f"{float(expected):.2g}")


def read_csv(page, folder):
    """The words and the numbers of what is shown, from the CSV."""
    _, *lines = csv.reader(takes(page, "CSV", folder).read_text(encoding="utf-8").splitlines())
    return [line[0].removeprefix("'") for line in lines], torch.tensor(
        [float(line[1] or "nan") for line in lines]
    ).double()


def test_hover_reads_class_token_weights_of_each_patch(open_view):
    some = vit_maps()
    page = open_view(view.image(some, WHITE, head=2))
    expected = weights(some, 1, 2)
    for row in range(3):
        for col in range(4):
            hover(page, *cell_centre(page, row, col))
            query, key, value = read(page)
            assert (query, key) == ("cls", f"({row},{col})")
            assert rounds_to(value, expected[0, 1 + 4 * row + col])
    hover(page, BOX[0] + 12, BOX[1] + 11)  # the word above the picture
    assert read(page)[:2] == ("cls", "cls")


def test_clicked_patch_becomes_query_or_key(open_view, tmp_path):
    some = vit_maps()
    page = open_view(view.image(some, WHITE))
    click(page, *cell_centre(page, 1, 2))
    words, found = read_csv(page, tmp_path)
    assert words[:3] == ["cls", "(0,0)", "(0,1)"]
    assert (found - weights(some, 1, 0)[1 + 4 + 2]).abs().max() < 1e-4
    choose(page, "Show", "what looks at it")
    click(page, *cell_centre(page, 2, 0))
    assert (read_csv(page, tmp_path)[1] - weights(some, 1, 0)[:, 1 + 8]).abs().max() < 1e-4
    heads, rows, cells = table(page)
    assert (heads, rows[0], len(cells)) == (["(2,0)"], "cls", 13)


def test_shading_is_proportional_to_root_of_weights(open_view):
    """On a white picture: the page's white towards the ink, by the square root; the scale of 13 keys ends at 1."""
    some = vit_maps()
    page = open_view(view.image(some, WHITE))
    seen = Image.open(page_picture(page, "canvas")).convert("RGB")
    row = weights(some, 1, 0)[0]
    ink = numpy.array([0x0B, 0x2A, 0x6F])
    for index in range(12):
        x, y = cell_centre(page, *divmod(index, 4))
        share = round(255 * float(row[1 + index] ** 0.5)) / 255
        expected = 255 + STRONG * share * (ink - 255)
        assert numpy.abs(numpy.array(seen.getpixel((int(x), int(y)))) - expected).max() <= 2


def test_uniform_head_leaves_image_visible(open_view):
    """Of 65 tokens, each with 1 / 65: the scale ends at 16 times that, and its root is a quarter of the ink."""
    page = open_view(view.image(AttentionMaps(torch.full((1, 1, 65, 65), 1 / 65)), Image.new("RGB", (64, 64), "white")))
    seen = Image.open(page_picture(page, "canvas")).convert("RGB")
    expected = 255 + STRONG * 0.25 * (numpy.array([0x0B, 0x2A, 0x6F]) - 255)
    assert numpy.abs(numpy.array(seen.getpixel((200, 200))) - expected).max() <= 3


def test_black_image_is_visible_on_dark_page(open_view):
    page = open_view(view.image(vit_maps(), Image.new("RGB", (80, 60), "black")), scheme="dark")
    seen = numpy.array(Image.open(page_picture(page, "canvas")).convert("RGB")).astype(int)
    left, top, wide, tall = map(int, picture_box(page))
    there = seen[top + 4 : top + int(tall) - 4, left + 4 : left + int(wide) - 4]
    assert there[..., 2].min() >= 0.4 * 0x12
    assert there[..., 2].max() > 120


def test_image_works_by_keyboard_alone(open_view):
    some = vit_maps()
    page = open_view(view.image(some, WHITE))
    page.keyboard.press("Escape")
    tab_to(page, "canvas")
    wait_until_drawn(page)
    assert read(page)[:2] == ("cls", "cls")
    press(page, "ArrowDown")
    assert read(page)[1] == "(0,0)"
    press(page, "ArrowRight", "ArrowRight", "ArrowDown")
    assert read(page)[1] == "(1,2)"
    press(page, "Enter")
    assert read(page)[:2] == ("(1,2)", "(1,2)")
    press(page, "Shift+ArrowRight")
    assert read(page)[1] == "(1,3)"
    press(page, "ArrowUp", "ArrowUp")
    assert read(page)[1] == "cls"
    press(page, " ")
    assert read(page)[:2] == ("cls", "cls")
    before = canvas(page).evaluate("canvas => canvas.toDataURL()")
    press(page, "p")
    assert canvas(page).evaluate("canvas => canvas.toDataURL()") != before
    press(page, "p")
    assert canvas(page).evaluate("canvas => canvas.toDataURL()") == before
    press(page, "Escape")
    assert "2 layers × 3 heads" in named(page)
    press(page, "5")
    assert page.locator("h1").text_content() == "Layer 1, head 0"


def test_cross_attention_is_read_from_words_and_patches(open_view, tmp_path):
    some = cross_maps()
    page = open_view(view.image(some, WHITE, token="red"))
    words, found = read_csv(page, tmp_path)
    assert (found - weights(some, 0, 0)[:, 1]).abs().max() < 1e-4
    assert words[5] == "(1,1)"
    hover(page, *cell_centre(page, 1, 1, words=0))
    query, key, value = read(page)
    assert (query, key) == ("(1,1)", "red")
    assert rounds_to(value, weights(some, 0, 0)[5, 1])
    click(page, *cell_centre(page, 2, 3, words=0))  # a place: what it looks at is among the words
    words, found = read_csv(page, tmp_path)
    assert words == WORDS
    assert (found - weights(some, 0, 0)[11]).abs().max() < 1e-4
    left, top, _, tall = picture_box(page, 0)
    hover(page, left + 10, top + tall + 12 + 11)
    assert read(page)[:2] == ("(2,3)", "a")
    click(page, left + 10, top + tall + 12 + 11)
    assert (read_csv(page, tmp_path)[1] - weights(some, 0, 0)[:, 0]).abs().max() < 1e-4


def test_query_and_key_grids_of_different_sizes(open_view, tmp_path):
    """Pooled attention: 12 queries, 48 keys, one picture."""
    some = maps(1, 2, 12, 48)
    page = open_view(view.image(some, WHITE))
    hover(page, *cell_centre(page, 5, 7, 6, 8, words=0))
    assert read(page)[1] == "(5,7)"
    click(page, *cell_centre(page, 5, 7, 6, 8, words=0))
    assert (read_csv(page, tmp_path)[1] - weights(some, 0, 0)[11]).abs().max() < 1e-4


def test_overview_opens_clicked_head(open_view):
    some = vit_maps()
    page = open_view(view.image(some, WHITE))
    page.get_by_role("tab", name="All heads").click()
    wait_until_drawn(page)
    assert named(page).endswith(
        "2 layers × 3 heads: what “cls” looks at".replace("“", "“\u2068").replace("”", "\u2069”")
    )
    page.mouse.click(*point_at_head(page, "layer 1, head 1"))
    wait_until_drawn(page)
    assert page.locator("h1").text_content() == "Layer 1, head 1"


def test_hidden_key_is_left_out_and_row_renormalized(open_view, tmp_path):
    some = vit_maps()
    page = open_view(view.image(some, WHITE))
    choose(page, "Hide", "the first key")
    _words, found = read_csv(page, tmp_path)
    rest = weights(some, 1, 0)[0, 1:]
    assert found[0].isnan()
    assert (found[1:] - rest / rest.sum()).abs().max() < 1e-4
    hover(page, BOX[0] + 12, BOX[1] + 11)
    assert status_text(page).endswith("left out")


def test_forbidden_keys_are_hatched_and_named(open_view):
    some = vit_maps(causal=True)
    page = open_view(view.image(some, WHITE, token="(1,1)"))
    hover(page, *cell_centre(page, 2, 2))
    assert status_text(page).endswith("may not look")
    seen = Image.open(page_picture(page, "canvas")).convert("RGB")
    x, y = map(int, cell_centre(page, 2, 2))
    assert len({seen.getpixel((x + i, y)) for i in range(14)}) > 1


def test_compare_shows_both_captures_and_difference(open_view, tmp_path):
    one, other = vit_maps(), vit_maps(seed=9)
    page = open_view(view.image({"before": one, "after": other}, WHITE, arrange="compare"), width=1400)
    hover(page, 60, 200)
    before, after, less = (number(part.split(": ")[1]) for part in status_text(page).split("  ", 1)[1].split("   "))
    assert abs(after - before - less) < 0.02
    text = takes(page, "CSV", tmp_path).read_text(encoding="utf-8")
    found = [float(line.rsplit(",", 1)[1]) for line in text.splitlines() if "(0,0)" in line]
    expected = [weights(maps_, 1, 0)[0, 1] for maps_ in (one, other)]
    assert numpy.allclose(found, [*expected, expected[1] - expected[0]], atol=1e-4)


def test_steps_slider_selects_capture(open_view):
    parts = {f"step {n}": cross_maps(seed=n) for n in (1, 2, 3)}
    page = open_view(view.image(parts, WHITE, arrange="steps", token="sea"))
    hover(page, *cell_centre(page, 0, 0, words=0))
    assert rounds_to(read(page)[2], weights(parts["step 1"], 0, 0)[0, 5])
    control(page, "Step").fill("2")
    wait_until_drawn(page)
    hover(page, *cell_centre(page, 0, 1, words=0))
    assert rounds_to(read(page)[2], weights(parts["step 3"], 0, 0)[1, 5])


def test_block_values_are_marked_as_upper_bounds(open_view):
    some = maps(3, 4, 145, 145)
    page = open_view(view.image(some, WHITE, layer=0, max_bytes=90_000))
    control(page, "Layer").select_option("2")
    wait_until_drawn(page)
    hover(page, *cell_centre(page, 5, 5, 12, 12))
    assert "at most" in status_text(page)


@pytest.mark.parametrize("hide", ["nothing", "the first key"])
def test_hover_reads_block_containing_token(open_view, hide):
    """577 tokens in blocks of 32 are 19, and 577 / 19 is not 32."""
    some = maps(1, 2, 577, 577)
    page = open_view(view.image(some, Image.new("RGB", (80, 80), "white"), max_bytes=2_000))
    (codes, _) = view.image(some, Image.new("RGB", (8, 8)), max_bytes=2_000).document["parts"][0]["head_codes"]
    assert codes["pool_size"] == 32
    choose(page, "Hide", hide)
    blocks = (some.as_uint8(0, 0, 32).double() / 255) ** 2
    left = blocks[0, 1:] / blocks[0, 1:].sum() if hide == "the first key" else blocks[0]
    for row, col in ((3, 5), (11, 0), (23, 23)):
        box = BOX[0], BOX[1] + 32, 520, 520
        hover(page, box[0] + (col + 0.5) * box[2] / 24, box[1] + (row + 0.5) * box[3] / 24)
        at = (1 + 24 * row + col) // 32 - (hide == "the first key")
        assert float(read(page)[2].removeprefix("at most ")) == float(f"{left[at]:.2g}")


def test_hostile_words_are_shown_as_text(open_view):
    some = cross_maps()
    page = open_view(view.image(some, WHITE, token="<b>house</b>", title="<i>x</i>"))
    assert "<b>house</b>" in status_text(page)
    assert page.locator("h1").text_content() == "<i>x</i>"


def test_exports_contain_image(open_view, tmp_path):
    page = open_view(view.image(vit_maps(), WHITE))
    with Image.open(takes(page, "PNG", tmp_path)) as png:
        assert png.width > 500
        assert png.height > 400
    assert "data:image/png" in takes(page, "SVG", tmp_path).read_text(encoding="utf-8")
    saved = takes(page, "HTML", tmp_path)
    page.goto(saved.as_uri())
    canvas(page).wait_for()
    wait_until_drawn(page)
    hover(page, *cell_centre(page, 1, 1))
    assert read(page)[:2] == ("cls", "(1,1)")


def test_image_passes_axe_and_fits_any_page_width(open_view):
    page = open_view(view.image(cross_maps(), WHITE))
    axe(page)
    assert axe_violations_by_scheme(page) == {}
    for width in (1600, 700, 320):
        assert horizontal_overflow(page, width) == {}
        assert canvas(page).bounding_box()["width"] <= width


def test_audio_reads_frames(open_view):
    some = AttentionMaps(torch.eye(20).add(0.1).div(3)[None, None])
    page = open_view(view.audio(some, torch.rand(8, 40)))
    hover(page, 3 + 520 * 10.5 / 20, 60)
    assert read(page)[:2] == ("10", "10")
