"""The bars of `view.write` in Chromium, offline: what each token of the text costs the model."""

import math

import torch
from browser import plain
from studio_pages import set_to, switch, wait_until_idle, wide, with_kernel
from torch.nn import functional
from writing_studios import TOKENIZER, written

from tfviz import look, view
from tfviz.models import GPT

pytest_plugins = ["browser", "studio_pages"]
PROMPT = "face.bad"
HEIGHTS = """name => [...document.querySelector('.tfviz').shadowRoot.querySelectorAll('.costs i')]
    .map((bar) => parseFloat(bar.style.getPropertyValue(name)))"""


def costs(model, edit=None):
    ids = TOKENIZER.encode(PROMPT)
    with torch.no_grad(), look.capture(model, edit=edit or {}):
        return functional.cross_entropy(model(ids[None])[0, :-1], ids[1:], reduction="none")


def heights(page, name="--cost"):
    return torch.tensor(page.evaluate(HEIGHTS, name))


def as_heights(values, *others):
    """In percent of the largest, or of what an even guess costs."""
    most = max(math.log(len(TOKENIZER)), *(one.max().item() for one in (values, *others)))
    return 100 * values / most


def test_bars_equal_cost_of_each_token_and_lines_that_with_all_heads(studio):
    model, made = written()
    page = studio(set_to(made, prompt=PROMPT))
    before = costs(model)
    torch.testing.assert_close(heights(page), as_heights(before), rtol=0, atol=1e-2)
    assert page.locator(".costs i.changed").count() == 0
    assert page.locator(".costs figcaption").text_content() == "cost of each letter, in nats"
    switch(page, 1, 2)
    now = costs(model, {"blocks.1.attention.pattern": look.edits.zero(2)})
    torch.testing.assert_close(heights(page), as_heights(now, before), rtol=0, atol=1e-2)
    torch.testing.assert_close(heights(page, "--unedited"), as_heights(before, now), rtol=0, atol=1e-2)
    assert "all heads on" in page.locator(".costs figcaption").text_content()
    costliest = TOKENIZER.tokens(TOKENIZER.encode(PROMPT)[1:][now.argmax()][None])[0]
    assert f"most: “{costliest}” {now.max():.2f}" in plain(page.locator(".costs .bars").get_attribute("aria-label"))


def test_bar_under_pointer_names_its_token_and_shows_where_it_looks(studio):
    model, made = written()
    page = studio(set_to(made, prompt=PROMPT))
    line, told = page.locator(".cost").text_content(), costs(model)
    for token in (1, 5, 7):
        page.locator(".costs i").nth(token - 1).hover()
        wait_until_idle(page)
        assert plain(page.locator(".cost").text_content()) == f"“{PROMPT[token]}” costs {told[token - 1]:.2f} nats"
        assert plain(page.locator(".token.from").text_content()) == PROMPT[token]
    page.locator(".token").nth(4).hover()
    wait_until_idle(page)
    assert page.locator(".cost").text_content() == line
    assert page.locator(".costs i.from").evaluate("bar => [...bar.parentNode.children].indexOf(bar)") == 3


def test_text_of_one_token_has_no_bars(studio):
    page = studio(written()[1])
    page.locator(".editor").fill("a")
    wait_until_idle(page)
    assert not page.locator(".costs").is_visible()


def test_long_text_has_bars_of_its_last_tokens(studio):
    text = "abcdef. " * 40
    model = wide(GPT(len(TOKENIZER), context=400, layers=1, heads=2, dim=8))
    page = studio(view.write(model, TOKENIZER, text, dtype="float32"))
    assert page.locator(".costs i").count() == 240
    fits = "bars => bars.scrollWidth <= bars.clientWidth && bars.getBoundingClientRect().height < 50"
    for width in (700, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.locator(".costs .bars").evaluate(fits)
    page.locator(".costs i").last.hover()
    assert plain(page.locator(".token.from").text_content()) == " "


def test_kernel_that_sends_last_logits_has_no_bars(new_page):
    page = new_page()
    with_kernel(page, view.write(written()[0], TOKENIZER, PROMPT, kernel=True), "studios-widget", "state")
    page.locator(".studio .token").first.wait_for()
    wait_until_idle(page)
    assert page.locator(".cost").text_content().endswith(" nats")
    assert not page.locator(".costs").is_visible()
