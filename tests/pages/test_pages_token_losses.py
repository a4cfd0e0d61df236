"""The bars under the text of `view.write` in Chromium, offline: the loss of each token."""

import io
import math
import re

import numpy
import torch
from browser import plain, takes
from PIL import Image
from small_models import randomize_weights
from studio_pages import open_with_kernel, switch, type_in_editor, wait_until_idle, with_state
from torch.nn import functional
from writing_studios import TOKENIZER, write_studio

from tfviz import look, view
from tfviz.models import GPT

pytest_plugins = ["browser", "studio_pages"]
PROMPT = "face.bad"
HEIGHTS = """name => [...document.querySelector('.tfviz').shadowRoot.querySelectorAll('.editor .token')]
    .map((token) => parseFloat(token.style.getPropertyValue(name)))"""


def losses(model, edit=None):
    ids = TOKENIZER.encode(PROMPT)
    with torch.no_grad(), look.capture(model, edit=edit or {}):
        return functional.cross_entropy(model(ids[None])[0, :-1], ids[1:], reduction="none")


def heights(page, name="--bar"):
    return torch.tensor(page.evaluate(HEIGHTS, name))


def as_heights(values, *others):
    """Of the largest, or of the loss of an even guess; the first token has none."""
    most = max(math.log(len(TOKENIZER)), *(one.max().item() for one in (values, *others)))
    return functional.pad(values / most, (1, 0))


def told(page):
    return plain(page.locator(".token-losses").text_content())


def test_bars_show_cross_entropy_and_lines_that_without_ablation(studio):
    model, made = write_studio()
    page = studio(with_state(made, prompt=PROMPT))
    before = losses(model)
    torch.testing.assert_close(heights(page), as_heights(before), rtol=0, atol=1e-4)
    assert heights(page, "--bar-line").isnan().all()
    assert "all heads on" not in told(page)
    switch(page, 1, 2)
    now = losses(model, {"blocks.1.attention.pattern": look.edits.zero(2)})
    torch.testing.assert_close(heights(page), as_heights(now, before), rtol=0, atol=1e-4)
    torch.testing.assert_close(heights(page, "--bar-line"), as_heights(before, now), rtol=0, atol=1e-4)
    assert "; thin line: with all heads on; " in told(page)
    assert told(page).endswith(f"; most: “{PROMPT[1 + now.argmax()]}” {now.max():.2f}")
    switch(page, 1, 2)
    assert heights(page, "--bar-line").isnan().all()


def test_bar_height_matches_cross_entropy(studio):
    page = studio(with_state(write_studio()[1], prompt=PROMPT))
    number = int(heights(page).argmax())
    token = page.locator(".editor .token").nth(number)
    shot = Image.open(io.BytesIO(token.screenshot())).convert("L")
    dark = numpy.asarray(shot) < 140
    rows = (dark.mean(1) > 0.7).nonzero()[0]  # letters have no row as dark as a bar
    assert abs(len(rows) - 14 * heights(page)[number].item()) <= 1.5
    assert rows.max() >= shot.height - 2


def test_hovered_token_shows_its_cross_entropy(studio):
    model, made = write_studio()
    page = studio(with_state(made, prompt=PROMPT))
    each = losses(model)
    for token in (1, 5, 7):
        page.locator(".token").nth(token).hover()
        wait_until_idle(page)
        assert f"; “{PROMPT[token]}” {each[token - 1]:.2f}; most: " in told(page)
    page.locator(".token").nth(0).hover()
    wait_until_idle(page)
    assert told(page) == f"Bars: cost of each letter in nats; most: “{PROMPT[1 + each.argmax()]}” {each.max():.2f}"


def test_text_of_one_token_has_no_bars(studio):
    page = studio(write_studio()[1])
    type_in_editor(page, "a")
    assert not page.locator(".token-losses").is_visible()
    assert page.locator(".editor.losses").count() == 0


def test_tokens_beyond_context_have_no_bars(studio):
    model = randomize_weights(GPT(len(TOKENIZER), context=12, layers=1, heads=2, dim=8))
    page = studio(view.write(model, TOKENIZER, "abc", dtype="float32"))
    type_in_editor(page, "abcdef. " * 3)
    shown = heights(page)
    assert len(shown) == 24
    past = page.locator(".token.past").count()
    assert past > 0
    assert (shown[: past + 1] == 0).all()
    assert (shown[past + 1 :] > 0).all()


def test_svg_contains_bars(studio, tmp_path):
    page = studio(with_state(write_studio()[1], prompt=PROMPT))
    svg = takes(page, "SVG", tmp_path).read_text(encoding="utf-8")
    found = sorted(float(high) for high in re.findall(r'<rect[^>]*height="([0-9.]+)"', svg))
    bars = [14 * high for high in heights(page)[1:].tolist() if 14 * high > 0.5]
    assert all(any(abs(bar - one) < 0.01 for one in found) for bar in bars)


def test_kernel_that_sends_last_logits_has_no_bars(new_page):
    page = open_with_kernel(new_page(), view.write(write_studio()[0], TOKENIZER, PROMPT, kernel=True))
    assert page.locator(".metric").text_content().startswith("Worse than guessing among all 24 letters (")
    assert not page.locator(".token-losses").is_visible()
