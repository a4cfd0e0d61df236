"""Attention heads computed in the page from queries and keys match Python within the stated error."""

import csv
import re

import pytest
import torch
from browser import named, press, read, status_text, takes, wait_until_drawn

from tfviz import view
from tfviz.look import AttentionMaps
from tfviz.look.attention_call import AttentionCall
from tfviz.look.key_ranges import KeyRanges
from tfviz.look.lazy import LazyAttention
from tfviz.view.page import payload

pytest_plugins = ["browser"]
LAYERS, HEADS, QUERIES, KEYS, DIM = 2, 4, 46, 58, 8
CAUSAL = torch.ones(QUERIES, KEYS, dtype=torch.bool).tril(3)
RULES = {
    "open": None,
    "causal": CAUSAL,
    "window": CAUSAL & ~CAUSAL.tril(-9),
    "rows that see nothing": CAUSAL & (torch.arange(KEYS) > 7),
    "a rule a head": torch.stack([CAUSAL & (torch.arange(KEYS) >= first) for first in (0, 5, 9, 13)]),
}


@pytest.fixture
def treat_maps_as_large(monkeypatch):
    """As if these maps were too large to travel whole."""
    monkeypatch.setattr(payload, "MAX_PAGE_CELLS", 0)


def make_maps(rule="causal", groups=HEADS, scale=0.9, strength=1.0):
    draw = torch.Generator().manual_seed(3)
    mask = RULES[rule]
    key_ranges = None if mask is None else KeyRanges.from_mask(mask.view(1, -1, QUERIES, KEYS))
    assert (key_ranges is None) == (mask is None)
    layers = []
    for _ in range(LAYERS):
        sizes = (HEADS, QUERIES), (groups, KEYS)
        query, key = (torch.randn(1, *size, DIM, generator=draw) * strength for size in sizes)
        layers.append(LazyAttention(AttentionCall(query, key, key[..., :0], key_ranges, scale)))
    words = [[f"{letter}{i}" for i in range(n)] for letter, n in (("q", QUERIES), ("k", KEYS))]
    return AttentionMaps(layers, *words)


def wait_until_computed(page):
    """Until the head that was opened is there."""
    page.wait_for_function(
        "() => !document.querySelector('.tfviz').shadowRoot.querySelector('.status').textContent.startsWith('loading')"
    )
    wait_until_drawn(page)


def stated_error(page):
    """What the page says of how far off its weights are."""
    note = page.locator(".note").text_content()
    return float(re.search("off by more than ([^ ]+[0-9])", note)[1])


def check_close(page, maps, layer, head, folder):
    _, *lines = csv.reader(takes(page, "CSV", folder).read_text(encoding="utf-8").splitlines())
    found = torch.tensor([[float(cell or "nan") for cell in line[1:]] for line in lines], dtype=torch.double)
    expected, allowed = maps[layer, head].double(), maps.allowed(layer, head)
    seen = torch.ones_like(expected).bool() if allowed is None else allowed
    assert torch.equal(~found.isnan(), seen)
    off = (found.nan_to_num() - expected).abs().max()
    assert off <= 1.5 * stated_error(page) + 0.004  # and what a byte leaves out


@pytest.mark.parametrize(
    ("rule", "form"), [*dict.fromkeys(RULES, "16-bit floats").items(), ("causal", "integers from −127 to 127")]
)
def test_opened_head_matches_attention_maps(treat_maps_as_large, open_view, tmp_path, rule, form):
    maps, max_bytes = make_maps(rule), 30_000 if form == "16-bit floats" else 17_000
    page = open_view(view.head(maps, 1, 2, max_bytes=max_bytes))
    assert form in page.locator(".note").text_content()
    for _ in range(2):
        wait_until_computed(page)
        layer, head = map(int, re.findall(r"\d+", named(page)))
        check_close(page, maps, layer, head, tmp_path)
        page.locator("canvas").focus()
        press(page, "]", "PageDown")


@pytest.mark.parametrize("groups", [1, 2])
def test_grouped_query_head_matches_attention_maps(treat_maps_as_large, open_view, tmp_path, groups):
    maps = make_maps(groups=groups)
    page = open_view(view.head(maps, 0, 3, max_bytes=22_000))
    wait_until_computed(page)
    check_close(page, maps, 0, 3, tmp_path)


def test_overview_opens_computed_head_and_saved_page_restores_state(treat_maps_as_large, open_view, tmp_path):
    maps = make_maps("window", strength=2.0)
    page = open_view(view.heads(maps, max_bytes=22_000))
    page.locator("canvas").focus()
    press(page, "ArrowDown", "Enter")
    wait_until_computed(page)
    assert named(page) == "Layer 0, head 1"
    check_close(page, maps, 0, 1, tmp_path)
    page.locator("canvas").focus()
    press(page, "Home")
    assert read(page)[:2] == ("q0", "k0")
    saved = takes(page, "HTML", tmp_path)
    page.goto(saved.as_uri())
    page.wait_for_function("() => document.querySelector('.tfviz').shadowRoot?.querySelector('.stage canvas')")
    wait_until_computed(page)
    assert named(page) == "Layer 0, head 1"
    check_close(page, maps, 0, 1, tmp_path)
    assert status_text(page) == ""


def test_huge_head_is_zoomed_from_block_maxima_to_exact_cells(open_view, tmp_path):
    """From all of it to single cells, which are exact; rows that are locked are exact, too."""
    size, draw = 4800, torch.Generator().manual_seed(5)
    query, key = (1.5 * torch.randn(1, 1, size, 4, generator=draw) for _ in range(2))
    maps = AttentionMaps([LazyAttention(AttentionCall.from_arguments(query, key, key, None, None, causal=True))])
    page = open_view(view.head(maps, 0, 0, max_bytes=3e5))
    wait_until_computed(page)
    page.locator("canvas").focus()
    press(page, "Home")
    assert status_text(page).startswith("“0” → “0”  at most")
    for _ in range(25):
        press(page, "+")
        page.wait_for_timeout(60)
    page.wait_for_timeout(500)
    for step in ["ArrowDown"] * 2 + ["ArrowRight"]:
        press(page, step)
    assert read(page)[:2] == ("2", "1")
    assert abs(float(read(page)[2]) - float(maps[0, 0, 2, 1])) <= 1.5 * stated_error(page) + 0.004
    press(page, "ArrowRight", "ArrowRight")
    assert read(page)[2] == "may not look"
    press(page, "0")
    press(page, "ArrowUp", "Enter")
    page.wait_for_timeout(500)
    wait_until_drawn(page)
    (line,) = list(csv.reader(takes(page, "CSV", tmp_path).read_text(encoding="utf-8").splitlines()))[1:]
    assert line[0] == "1"
    assert len(line) == size + 1
    assert abs(float(line[2]) - float(maps[0, 0, 1, 1])) <= 1.5 * stated_error(page) + 0.004


def test_queries_beyond_float16_range_are_stored_as_8_bit_integers(treat_maps_as_large):
    note = view.heads(make_maps(strength=1e5, scale=1e-9), max_bytes=1e6).document["note"]
    assert "integers from −127 to 127" in note


def test_nan_query_raises(treat_maps_as_large):
    maps = make_maps()
    maps.layers[1].call.query[0, 2, 5] = torch.nan
    with pytest.raises(ValueError, match="layer 1, head 2 holds NaN"):
        view.heads(maps)


def test_small_maps_are_stored_as_weights():
    assert view.heads(make_maps()).document["kind"] == "heads"
    assert view.heads(make_maps("a rule a head")).document["parts"][0]["masks"] is not None


def test_small_max_bytes_falls_back_to_blocks():
    described = view.heads(make_maps(), max_bytes=2_000).document
    assert described["kind"] == "heads"
    assert described["note"].startswith("Of each head one row of 16 is here")
