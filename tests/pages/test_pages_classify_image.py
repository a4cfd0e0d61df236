"""`view.classify_image` in Chromium, offline: results match torch."""

import csv
import io
import re
from functools import cache

import numpy
import pytest
import torch
from browser import axe, axe_violations_by_scheme, plain, press, takes
from PIL import Image
from small_models import vit, without_patches
from small_models import vit_pixels as pixels
from studio_pages import (
    button,
    click,
    do_try,
    focused,
    leave,
    open_with_kernel,
    state,
    status_text,
    switch,
    tab_to,
    wait_until_idle,
    with_state,
)
from studio_pages import tensor as numbers
from writing_studios import format_percent

from tfviz import look, view

pytest_plugins = ["browser", "studio_pages"]
LABELS = ["cat", "so <b>so</b>", "sea"]
ROWS, COLUMNS = 3, 4
COUNT = ROWS * COLUMNS


@cache
def vit_studio(extra=1):
    model = vit(extra)
    return model, view.classify_image(model, pixels(), LABELS, dtype="float32")


def run_torch(model, hidden=(), off=()):
    """What torch gives for the pixels without these patches, painted by hand, and its maps, with some heads off."""
    edit = {f"blocks.{layer}.attention.pattern": look.edits.zero(head) for layer, head in off}
    with torch.no_grad(), look.capture(model, "*.pattern", edit=edit) as seen:
        return model(without_patches(pixels(), hidden)[None])[0], seen


def check_against_torch(page, model, hidden=(), off=()):
    """The page's logits and maps of these patches and heads are torch's; returns torch's probabilities."""
    mask = [int(patch in hidden) for patch in range(COUNT)]
    edits = [{"site": f"blocks.{layer}.attention.pattern", "head": head, "kind": "zero"} for layer, head in off]
    one = [
        told for told in page.evaluate("told") if told["inputs"]["hidden"]["data"] == mask and told["edits"] == edits
    ]
    expected, seen = run_torch(model, hidden, off)
    torch.testing.assert_close(numbers(one[-1]["outputs"]["logits"])[0], expected, rtol=0, atol=1e-4)
    for site, maps in one[-1]["patterns"].items():
        torch.testing.assert_close(numbers(maps[0]).float(), seen[site], rtol=0, atol=1e-4)
    return expected.softmax(-1)


RAMP = (11, 42, 111)  # the strongest ink of attention on a light page


def patch_centre(patch):
    """The middle of a patch, as a share of the picture."""
    row, column = divmod(patch, COLUMNS)
    return (column + 0.5) / COLUMNS, (row + 0.5) / ROWS


def patch_position(page, patch):
    box = page.locator(".patches canvas").bounding_box()
    across, down = patch_centre(patch)
    return box["x"] + across * box["width"], box["y"] + down * box["height"]


def press_patch(page, patch):
    page.mouse.click(*patch_position(page, patch))
    wait_until_idle(page)


def hover(page, patch):
    page.mouse.move(*patch_position(page, patch))
    wait_until_idle(page)


def shares(page):
    texts = "rows => rows.map(row => ['.name', '.number'].map(kind => row.querySelector(kind).textContent))"
    return dict(page.locator(".prediction .bar-row").evaluate_all(texts))


def percent(value):
    return float(re.sub("[<> %]", "", value)) / 100


def check_shares(page, expected):
    found = shares(page)
    assert [percent(found[label]) for label in LABELS] == pytest.approx(expected.tolist(), abs=0.006)


def sentence(page):
    return plain(page.locator(".sentence-of-head").text_content())


def colour(page, patch):
    """The middle of a patch, a little aside of the sign of a hidden one."""
    return pixel(page, patch, down=-0.12)


def pixel(page, patch, right=0.0, down=0.0, more=0):
    """What is seen beside the middle of a patch, by shares of the picture, and so many pixels to the right."""
    picture = Image.open(io.BytesIO(page.locator(".patches canvas").screenshot())).convert("RGB")
    x, y = patch_centre(patch)
    point = int((x + right) * picture.width) + more, int((y + down) * picture.height)
    return numpy.array(picture.getpixel(point)).astype(int)


def as_percent(share):
    return re.sub(r"\.0+$", "", f"{100 * float(share):.2g}") + "%"


def test_click_hides_and_restores_patch(studio):
    model, made = vit_studio()
    page = studio(made)
    before = check_against_torch(page, model)
    check_shares(page, before)
    press_patch(page, 6)
    after = check_against_torch(page, model, [6])
    check_shares(page, after)
    best = int(before.argmax())
    moved = "falls" if after[best] < before[best] else "rises"
    assert (
        f"Without this patch “{LABELS[best]}” {moved} from {as_percent(before[best])} to {as_percent(after[best])}."
        in sentence(page)
    )
    assert page.locator(".prediction .before").count() == len(LABELS)
    press_patch(page, 6)
    check_shares(page, before)
    assert "this patch" not in sentence(page)


def test_drag_hides_patches_and_undoes_in_one_step(studio):
    model, made = vit_studio()
    page = studio(made)
    page.mouse.move(*patch_position(page, 0))
    page.mouse.down()
    page.mouse.move(*patch_position(page, 2))  # at once: the patch on the way is hidden, too
    page.mouse.up()
    leave(page)
    check_shares(page, check_against_torch(page, model, [0, 1, 2]))
    assert "Without these 3 patches" in sentence(page)
    click(page, "Undo")
    check_shares(page, check_against_torch(page, model))
    click(page, "Redo")
    check_shares(page, check_against_torch(page, model, [0, 1, 2]))
    click(page, "Show all")
    check_shares(page, check_against_torch(page, model))
    assert focused(page, "canvas")


def test_patches_are_hidden_by_keyboard_alone(studio):
    model, made = vit_studio()
    page = studio(made)
    tab_to(page, ".patches canvas")
    wait_until_idle(page)
    assert status_text(page).startswith("Row 1, column 1: the class token gives it ")
    press(page, "ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown", " ")
    wait_until_idle(page)
    assert status_text(page).startswith("Row 3, column 2: hidden; ")
    check_shares(page, check_against_torch(page, model, [9]))
    press(page, "End", "Delete")
    wait_until_idle(page)
    check_shares(page, check_against_torch(page, model, [9, 11]))
    press(page, "Home", "ArrowRight", "Enter")
    wait_until_idle(page)
    check_shares(page, check_against_torch(page, model, [11]))
    press(page, "Control+z")
    wait_until_idle(page)
    check_shares(page, check_against_torch(page, model, [9, 11]))


def test_hidden_patch_has_mean_colour_of_image(studio):
    _, made = vit_studio()
    page = studio(with_state(made, shade="nothing"))
    press_patch(page, 5)
    leave(page)
    stretched = (pixels() - pixels().min()) / (pixels().max() - pixels().min()) * 255
    assert numpy.abs(colour(page, 5) - stretched.mean((1, 2)).numpy()).max() <= 2


def click_tab(page, name):
    page.get_by_role("tab", name=name, exact=True).click()
    wait_until_idle(page)


def test_attention_query_is_class_token_or_hovered_patch(studio):
    model, made = vit_studio()
    page = studio(with_state(made, shade="attention", layer=1, head=0))
    _, seen = run_torch(model)
    maps = torch.stack([seen[f"blocks.{layer}.attention.pattern"][0] for layer in (0, 1)])
    for query, hovered in ((0, None), (1 + 7, 7)):
        if hovered is None:
            leave(page)
        else:
            hover(page, hovered)
        row = maps[1, 0, query]
        top = 1 + int(row[1:].argmax())
        name = "the class token" if query == 0 else "row 2, column 4"
        assert page.locator(".pane.text h4 small").text_content() == f"Where {name} looks: layer 1, head 0"
        if row.max() >= 1.5 / 13:
            assert f"row {(top - 1) // 4 + 1}, column {(top - 1) % 4 + 1}" in sentence(page)
    largest = max(maps[:, :, 0].max().item(), 4 / 13)  # the scale is that of the class token, whatever looks
    assert (
        page.locator(".legend .ramp").text_content()
        == f"attention0%{format_percent(largest / 4)}{format_percent(largest)} or more"
    )
    assert page.locator(".pane .scale").text_content() == "Darkened where the chosen head looks less."


def test_patch_brightness_follows_attention(studio):
    """Between a dark tone and the picture's own colour, by the square root of the weight beside the largest."""
    model, made = vit_studio()
    plain_page = studio(with_state(made, shade="nothing"))
    own = [colour(plain_page, patch) for patch in range(COUNT)]
    page = studio(with_state(made, shade="attention", layer=1, head=0))
    _, seen = run_torch(model)
    weights = seen["blocks.1.attention.pattern"][0, 0, 0, 1:]
    for patch in range(COUNT):
        share = 0.4 + 0.6 * (weights[patch] / weights.max()).item() ** 0.5
        assert numpy.abs(colour(page, patch) - share * own[patch]).max() <= 3


def test_most_attended_patch_can_be_masked(studio):
    model, made = vit_studio()
    page = studio(with_state(made, layer=1, head=0))
    weights = run_torch(model)[1]["blocks.1.attention.pattern"][0, 0, 0, 1:]
    strongest = weights.argsort(descending=True)[:3].tolist()
    expected = [patch for patch in strongest if patch == strongest[0] or weights[patch] > 1 / 13]
    crops = page.locator(".crop")
    ranks = [f"{rank} · " if len(expected) > 1 else "" for rank in (1, 2, 3)]
    assert crops.all_text_contents() == [
        rank + format_percent(weights[patch]) for rank, patch in zip(ranks, expected, strict=False)
    ]
    assert [patch for patch in range(COUNT) if is_outlined(page, patch)] == sorted(expected)
    crops.first.click()
    wait_until_idle(page)
    check_shares(page, check_against_torch(page, model, expected[:1]))
    click(page, "Show all")
    switch(page, 1, 0)
    assert not page.locator(".attended").is_visible()  # a head that is off looks at nothing
    assert not any(is_outlined(page, patch) for patch in range(COUNT))


def is_outlined(page, patch):
    """Whether the left edge of a patch has the colour of attention."""
    return bool(numpy.abs(pixel(page, patch, right=-0.5 / COLUMNS, more=1) - RAMP).max() < 30)


def test_heads_are_ablated_and_restored(studio):
    model, made = vit_studio()
    page = studio(made)
    switch(page, 1, 2)
    check_shares(page, check_against_torch(page, model, off=[(1, 2)]))
    assert "Without 1 head" in sentence(page)
    press_patch(page, 3)
    check_shares(page, check_against_torch(page, model, [3], [(1, 2)]))
    assert "Without this patch and 1 head" in sentence(page)
    click(page, "All on", "Undo", "Undo", "Undo")
    check_shares(page, check_against_torch(page, model))


def test_sentence_follows_selected_label(studio):
    model, made = vit_studio()
    page = studio(made)
    press_patch(page, 6)
    leave(page)
    (before, _), (after, _) = run_torch(model), run_torch(model, [6])
    for index in (0, 2):
        page.locator(".prediction .bar-row", has_text=LABELS[index]).click()
        wait_until_idle(page)
        moves = as_percent(before.softmax(-1)[index]), as_percent(after.softmax(-1)[index])
        assert f"“{LABELS[index]}”" in sentence(page)
        assert moves[1] in sentence(page)


def log_odds(logits, label):
    return (logits[label] - torch.cat([logits[:label], logits[label + 1 :]]).logsumexp(0)).item()


def test_most_important_patch_matches_leave_one_out(studio):
    model, made = vit_studio()
    page = studio(made)
    label = made.document["state"]["label"]
    falls = {patch: log_odds(run_torch(model, [patch])[0], label) for patch in range(COUNT)}
    worst = min(falls, key=falls.get)
    do_try(page, "Hide the patch that matters most")
    check_shares(page, check_against_torch(page, model, [worst]))
    assert page.locator(".pane .scale").text_content().startswith("Each patch makes “")
    click(page, "Undo")
    check_shares(page, check_against_torch(page, model))
    hover(page, worst)
    assert "without it" not in status_text(page)  # it is not shaded again, but what was measured stays known
    click_tab(page, "effect of hiding")
    hover(page, worst)
    assert "; without it “" in status_text(page)


def test_most_important_head_matches_leave_one_out(studio):
    model, made = vit_studio()
    page = studio(made)
    label = made.document["state"]["label"]
    falls = {
        (layer, head): log_odds(run_torch(model, off=[(layer, head)])[0], label)
        for layer in (0, 1)
        for head in range(3)
    }
    worst = min(falls, key=falls.get)
    do_try(page, "Switch off the head that matters most")
    check_shares(page, check_against_torch(page, model, off=[worst]))
    assert sentence(page).startswith(f"Layer {worst[0]}, head {worst[1]} is off.")


def test_try_keeps_four_most_attended_patches(studio):
    model, made = vit_studio()
    page = studio(with_state(made, shade="attention", layer=1, head=0))
    _, seen = run_torch(model)
    kept = seen["blocks.1.attention.pattern"][0, 0, 0, 1:].topk(4).indices.tolist()
    do_try(page, "Show only the 4 patches this head looks at most")
    check_shares(page, check_against_torch(page, model, [patch for patch in range(COUNT) if patch not in kept]))


def test_link_with_invalid_patches_ignores_them(studio, new_page):
    _, made = vit_studio()
    page = studio(made)
    press_patch(page, 2)
    page.locator("summary", has_text="Share").click()
    click(page, "Copy link")
    address = page.evaluate("location.href").replace("%5B2%5D", "%5B2%2C99%2C-1%5D")
    assert "99" in address
    other = new_page()
    other.goto(address)
    other.wait_for_function("document.querySelector('.tfviz')?.dataset.alive")
    wait_until_idle(other)
    assert "Without this patch" in sentence(other)


def test_model_without_class_token_averages_all_patches(studio):
    model, made = vit_studio(extra=0)
    page = studio(made)
    check_shares(page, check_against_torch(page, model))
    assert "from all patches in the mean" in sentence(page)
    hover(page, 4)
    assert status_text(page) == "Row 2, column 1"
    assert "row 2, column 1" in sentence(page)


def test_open_head_button_shows_full_map(studio):
    model, made = vit_studio()
    page = studio(made)
    page.get_by_role("button", name="Open this head").click()
    wait_until_idle(page)
    assert page.locator(".inner canvas").is_visible()
    press_patch(page, 6)
    check_shares(page, check_against_torch(page, model, [6]))


def test_exports_contain_current_results(studio, tmp_path):
    model, made = vit_studio()
    page = studio(made)
    press_patch(page, 6)
    leave(page)
    expected = check_against_torch(page, model, [6])
    lines = list(csv.reader(takes(page, "CSV", tmp_path).read_text(encoding="utf-8").splitlines()))
    found = {line[0]: float(line[1]) for line in lines if line[0] in LABELS}
    assert [found[label] for label in LABELS] == pytest.approx(expected.tolist(), abs=1e-3)
    with Image.open(takes(page, "PNG", tmp_path)) as png:
        assert png.height > 250
    assert "data:image/png" in takes(page, "SVG", tmp_path).read_text(encoding="utf-8")
    assert state(takes(page, "HTML", tmp_path))["hidden_patches"] == [6]


def test_phone_layout_fits_window_and_passes_axe(studio):
    _, made = vit_studio()
    page = studio(made, width=400)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".patches canvas").bounding_box()["width"] <= 400
    press_patch(page, 6)
    axe(page)
    assert axe_violations_by_scheme(page) == {}


def test_touch_hides_patch_and_leaves_no_hover(studio):
    model, made = vit_studio()
    page = studio(made, width=400, has_touch=True)
    page.touchscreen.tap(*patch_position(page, 6))
    wait_until_idle(page)
    check_shares(page, check_against_torch(page, model, [6]))
    page.get_by_role("tab", name="attention", exact=True).tap()
    wait_until_idle(page)
    assert page.locator(".pane.text h4 small").text_content().startswith("Where the class token looks")


def test_kernel_matches_torch(new_page):
    model, _ = vit_studio()
    live = view.classify_image(model, pixels(), LABELS, kernel=True)
    page = open_with_kernel(new_page(), live, ready=".prediction .bar-row")
    press_patch(page, 1)
    assert live.state["hidden_patches"] == [1]
    check_shares(page, run_torch(model, [1])[0].softmax(-1))


def test_controls_have_accessible_names(studio):
    _, made = vit_studio()
    page = studio(made)
    assert button(page, "Hide every other patch").count() == 1
    name = page.locator(".patches canvas").get_attribute("aria-label")
    assert name == "Picture in 3 × 4 patches: arrows move, Space hides a patch or brings it back"
