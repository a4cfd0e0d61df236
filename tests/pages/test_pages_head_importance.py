"""Bars below the maps of a studio: what its answer loses without each head, as torch measures it."""

import pytest
import torch
from browser import axe, plain, takes
from studio_pages import button, click, do_try, switch, wait_until_idle, with_state
from test_pages_classify_fill import LABELS, TEXT, classifier, encode_with_specials, log_odds, logits
from torch.nn import functional
from writing_studios import TOKENIZER, write_studio

from tfviz import look

pytest_plugins = ["browser", "studio_pages"]
PROMPT, BUTTON, PREDICTED_LABEL = "face.badface.bad", "Which heads matter?", -3
BARS = """Object.fromEntries([...document.querySelector('.tfviz').shadowRoot.querySelectorAll('.model .cell')]
    .map(cell => [cell.querySelector('.head').getAttribute('aria-label'), {
        share: parseFloat(cell.style.getPropertyValue('--loss')),
        gain: cell.classList.contains('gain'),
        seen: cell.querySelector('.importance').offsetWidth > 0,
        title: cell.querySelector('.head').title,
    }]))"""


def zeroed(*heads):
    """Edits that switch heads, (layer, head), off."""
    edits = {}
    for layer, head in heads:
        edits.setdefault(f"blocks.{layer}.attention.pattern", []).append(head)
    return {site: look.edits.zero(numbers) for site, numbers in edits.items()}


def loss_without(model, *heads):
    ids = TOKENIZER.encode(PROMPT)
    with torch.no_grad(), look.capture(model, edit=zeroed(*heads)):
        return functional.cross_entropy(model(ids[None])[0, :-1], ids[1:]).item()


def all_heads(model):
    return [(layer, head) for layer, block in enumerate(model.blocks) for head in range(block.attention.heads)]


def check_bars(page, losses, unit):
    """The bars are these losses, by head, beside the largest of them."""
    page.locator(".bars-legend", has_text="lost without it").wait_for()
    largest = max(map(abs, losses.values()))
    hollow = " (hollow: gained)" if min(losses.values()) < 0 else ""
    legend = plain(page.locator(".bars-legend").text_content())
    assert legend == f"Bars: {unit} lost without it{hollow}, up to {largest:.2f}"
    bars = page.evaluate(BARS)
    for (layer, head), loss in losses.items():
        bar = bars[f"head {head} of layer {layer}, on"]
        assert bar["share"] == pytest.approx(abs(loss) / largest, abs=1e-3)
        assert bar["gain"] == (loss < 0)
        assert bar["seen"]
        change = f"{abs(loss):.2f} {unit} {'gained' if loss < 0 else 'lost'}"
        assert plain(bar["title"]).endswith(f"\nwithout it: {change}")


def test_bars_are_losses_of_text_without_each_head(studio):
    model, made = write_studio()
    page = studio(with_state(made, prompt=PROMPT))
    assert not any(bar["seen"] for bar in page.evaluate(BARS).values())
    click(page, BUTTON)
    whole = loss_without(model)
    check_bars(page, {at: loss_without(model, at) - whole for at in all_heads(model)}, "nats a letter")
    axe(page)
    assert button(page, BUTTON).get_attribute("aria-pressed") == "true"
    click(page, BUTTON)
    assert not any(bar["seen"] for bar in page.evaluate(BARS).values())
    runs = len(page.evaluate("told"))
    click(page, "Undo")
    page.wait_for_function(f"Object.values({BARS}).every(bar => bar.seen)")
    assert len(page.evaluate("told")) == runs  # what is known is not measured again


def test_bars_are_measured_again_with_other_heads_off(studio):
    model, made = write_studio()
    page = studio(with_state(made, prompt=PROMPT, head_importance=True))
    page.locator(".bars-legend", has_text="lost without it").wait_for()
    switch(page, 1, 0)
    now = loss_without(model, (1, 0))
    losses = {at: loss_without(model, (1, 0), at) - now for at in all_heads(model) if at != (1, 0)}
    page.wait_for_function(f"Object.values({BARS}).filter(bar => bar.seen).length === {len(losses)}")
    check_bars(page, losses, "nats a letter")
    assert not page.evaluate(BARS)["head 0 of layer 1, off"]["seen"]


def test_bars_of_another_text_are_dropped(studio):
    _, made = write_studio()
    page = studio(with_state(made, prompt=PROMPT, head_importance=True))
    page.locator(".bars-legend", has_text="lost without it").wait_for()
    click(page, "One letter")
    assert not any(bar["seen"] for bar in page.evaluate(BARS).values())
    page.wait_for_function(f"Object.values({BARS}).every(bar => bar.seen)")


def test_table_has_the_losses(studio, tmp_path):
    model, made = write_studio()
    page = studio(with_state(made, prompt=PROMPT, head_importance=True))
    page.locator(".bars-legend", has_text="lost without it").wait_for()
    text = takes(page, "CSV", tmp_path).read_text(encoding="utf-8")
    whole = loss_without(model)
    for layer in range(len(model.blocks)):
        (row,) = [line for line in text.splitlines() if line.startswith(f'"layer {layer}",')]
        expected = [loss_without(model, at) - whole for at in all_heads(model) if at[0] == layer]
        assert [float(cell) for cell in row.split(",")[1:]] == pytest.approx(expected, abs=2e-3)


def test_try_finds_head_without_which_log_odds_fall_most(studio):
    model, made = classifier()
    page = studio(with_state(made, label=PREDICTED_LABEL))
    ids = encode_with_specials(TEXT)
    label = logits(model, ids)[0].argmax().item()
    whole = log_odds(logits(model, ids)[0], label)
    losses = {at: whole - log_odds(logits(model, ids, [at])[0], label) for at in all_heads(model)}
    do_try(page, "Find the head that matters most")
    check_bars(page, losses, f"log-odds of “{LABELS[label]}”")
    wait_until_idle(page)
    layer, head = max(losses, key=losses.get)
    assert page.locator(".sentence-of-head b").text_content() == f"Layer {layer}, head {head}"
