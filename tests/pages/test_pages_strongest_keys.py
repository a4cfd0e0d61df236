"""Pages with `top_k=`: the strongest keys match Python, and omitted weights are reported."""

import csv
import re

import pytest
import torch
from browser import maps, press, status_text, takes, wait_until_drawn, weights

from tfviz import view
from tfviz.look import AttentionMaps
from tfviz.look.attention_call import AttentionCall
from tfviz.look.lazy import LazyAttention
from tfviz.view.figures.formatting import format_number, percent

pytest_plugins = ["browser"]
ROWS, COLS = [f"q{i}" for i in range(9)], [f"k{i}" for i in range(12)]


def cross_maps(causal=False):
    return maps(2, 3, 9, 12, causal=causal, query_tokens=ROWS, key_tokens=COLS)


def read_csv(page, folder):
    _, *lines = csv.reader(takes(page, "CSV", folder).read_text(encoding="utf-8").splitlines())
    return torch.tensor([[float(cell or "nan") for cell in line[1:]] for line in lines], dtype=torch.double)


def keep_top(rows, top):
    """The rows with all but their strongest as NaN."""
    return torch.full_like(rows, torch.nan).scatter(-1, rows.topk(top).indices, rows.topk(top).values)


@pytest.mark.parametrize(("top", "causal"), [(1, False), (3, True), (99, False)])
def test_top_keys_match_torch_topk(open_view, tmp_path, top, causal):
    some = cross_maps(causal)
    page = open_view(view.head(some, 1, 2, top_k=top))
    expected = keep_top(weights(some, 1, 2), min(top, 12))
    found = read_csv(page, tmp_path)
    assert torch.equal(found.isnan(), (expected.nan_to_num() == 0))  # what is 0 is left out, too
    assert (found - expected).nan_to_num().abs().max() < 1e-4


def test_omitted_weights_are_reported_in_cells_and_note(open_view):
    some = cross_maps()
    page = open_view(view.head(some, 0, 1, top_k=2))
    expected = weights(some, 0, 1)
    rest = expected.sum(-1) - expected.topk(2).values.sum(-1)
    texts = {}
    for _x, _y, text in page.locator("canvas").first.evaluate(SCAN):
        found = re.fullmatch("“q(.*)” → “k(.*)”  (.*)", re.sub("[\u2066-\u2069]", "", text))
        texts[int(found[1]), int(found[2])] = found[3]
    assert len(texts) == 9 * 12
    for (row, col), text in texts.items():
        if col in expected[row].topk(2).indices:
            assert text == format_number(expected[row, col])
        else:
            amount = float(re.fullmatch("left out; all that is left out of this row holds (.*)", text)[1])
            assert abs(amount - rest[row]) < 0.01
    note = page.locator(".note").text_content()
    share = float((expected_share(some, 2)).mean())
    assert f"{percent(share)} of its weight" in note
    assert float(re.search("above ([^ ]+[0-9])", note)[1]) == pytest.approx(largest_omitted_weight(some, 2), rel=0.05)


LOADED = """() => !document.querySelector('.tfviz').shadowRoot.querySelector('.status').textContent
    .startsWith('loading')"""
SCAN = """canvas => { const { left, top, width, height } = canvas.getBoundingClientRect(), found = [];
    const status = canvas.getRootNode().querySelector('.status'), go = (kind, x, y) => canvas.dispatchEvent(
        new PointerEvent(kind, { clientX: left + x, clientY: top + y }));
    for (let y = 2; y < height; y += 6) for (let x = 2; x < Math.min(width, 600); x += 6) {
        go('pointermove', x, y); if (status.textContent) found.push([x, y, status.textContent]); }
    go('pointerleave', 0, 0); return found; }"""


def all_heads(some):
    return torch.stack([weights(some, layer, head) for layer in range(2) for head in range(3)])


def expected_share(some, top):
    return all_heads(some).topk(top).values.sum((-1, -2)) / all_heads(some).sum((-1, -2))


def largest_omitted_weight(some, top):
    return float(all_heads(some).topk(top + 1).values[..., top].max())


def test_masked_keys_are_forbidden_not_omitted(open_view):
    page = open_view(view.head(cross_maps(causal=True), 0, 0, top_k=2))
    page.locator("canvas").first.focus()
    press(page, "Home", "End")
    assert status_text(page).endswith("may not look")


def test_long_text_opens_as_blocks_and_shows_exact_rows(open_view, tmp_path):
    draw = torch.Generator().manual_seed(0)
    query, key = (torch.randn(1, 4, 2500, 8, generator=draw) for _ in range(2))
    some = AttentionMaps([LazyAttention(AttentionCall.from_arguments(query, key, key, None, None, causal=True))] * 2)
    page = open_view(view.heads(some, top_k=4))
    assert page.evaluate("document.querySelector('.tfviz').shadowRoot.querySelector('canvas').width > 100")
    page.get_by_role("tab", name="One head").click()
    page.wait_for_function(LOADED)
    wait_until_drawn(page)
    found = read_csv(page, tmp_path)
    expected = keep_top(some[0, 0].double(), 4)
    assert torch.equal(found.isnan() | (found == 0), expected.nan_to_num() < 4e-6)
    assert (found - expected).nan_to_num().abs().max() < 0.005


def test_hide_menu_is_hidden_with_top(open_view):
    page = open_view(view.head(cross_maps(), 0, 1, top_k=2))
    assert not page.locator("label", has_text="Hide").is_visible()


@pytest.mark.parametrize("number", [-0.5, 2.0, torch.nan])
def test_weights_outside_zero_to_one_raise(number):
    with pytest.raises(ValueError, match="give weights of attention"):
        view.heads(AttentionMaps(torch.full((1, 2, 8, 8), number)), top_k=3)


def test_top_beyond_max_bytes_or_zero_raises():
    with pytest.raises(ValueError, match="take fewer with top_k="):
        view.heads(cross_maps(), top_k=9, max_bytes=300)
    with pytest.raises(ValueError, match="top"):
        view.heads(cross_maps(), top_k=0)
