"""`view.live`: traits, messages to the page, and the static view left behind."""

import zlib

import numpy
import pytest
import torch
import traitlets
from widgets import ask_widget

from tfviz import view
from tfviz.layers import masks
from tfviz.look import AttentionMaps
from tfviz.look.attention_call import AttentionCall
from tfviz.look.lazy import LazyAttention
from tfviz.view.page import heads as page_heads
from tfviz.view.page.live_widget import LiveView


def maps(layers=2, heads=3, size=6):
    mask = masks.causal.dense(size, size)[0, 0]
    scores = torch.randn(layers, heads, size, size, generator=torch.Generator().manual_seed(3))
    return AttentionMaps(scores.masked_fill(~mask, -torch.inf).softmax(-1), mask=mask)


def test_every_state_entry_is_a_synced_trait_with_its_default():
    live = view.live(maps())
    assert isinstance(live, LiveView)
    synced = {name for name in live.trait_names(sync=True) if not name.startswith("_")}
    assert synced - {"document", "data", "layout", "tabbable", "tooltip"} == set(page_heads.HEADS_STATE)
    assert {name: getattr(live, name) for name in page_heads.HEADS_STATE} == page_heads.HEADS_STATE


def test_traits_can_be_set_and_observed():
    live = view.live(maps(), mode="head", layer=1, locked_rows=[2])
    assert (live.mode, live.layer, live.locked_rows) == ("head", 1, [2])
    told = []
    live.observe(lambda change: told.append((change["name"], change["new"])), ["layer", "locked_rows"])
    live.layer, live.locked_rows = 0, [1, 4]
    assert told == [("layer", 0), ("locked_rows", [1, 4])]


@pytest.mark.parametrize(("name", "value"), [("layer", 2), ("head", 3), ("part", 1), ("layer", -1), ("mode", "circle")])
def test_out_of_range_traits_raise(name, value):
    live = view.live(maps())
    with pytest.raises(traitlets.TraitError):
        setattr(live, name, value)
    with pytest.raises(ValueError, match=f"view.live: .*{name}"):
        view.live(maps(), **{name: value})


@pytest.mark.parametrize("name", ["part", "layer", "head"])
@pytest.mark.parametrize("value", [-1, 10**9, "1", 1.0, True, None, [0]])
def test_invalid_head_requests_return_error_without_data(name, value):
    answer, buffers = ask_widget(view.live(maps()), **{"part": 0, "layer": 1, "head": 2, name: value})
    assert not buffers
    assert answer["error"].startswith(f"LookupError: {name} is {value!r}; there are")


def lazy_maps(size=40):
    query, key = (torch.randn(1, 3, size, 4, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    return AttentionMaps([LazyAttention(AttentionCall.from_arguments(query, key, key, None, None, causal=True))] * 2)


@pytest.mark.parametrize(
    ("rows", "columns", "pool_size"), [([0, 40], [0, 40], 4), ([7, 20], [3, 21], 2), ([9, 10], [0, 40], 1)]
)
def test_lazy_head_tiles_are_sent_on_request(rows, columns, pool_size):
    some = lazy_maps()
    live = view.live(some, max_bytes=3_000)
    assert live.document["parts"][0]["key_ranges"] == [0] * 6
    _, (piece,) = ask_widget(live, part=0, layer=1, head=2, rows=rows, columns=columns, pool_size=pool_size)
    codes = numpy.frombuffer(zlib.decompress(piece), numpy.uint8)
    expected = some.max_pool(1, 2, slice(*rows), slice(*columns), pool_size)
    assert abs((codes / 255.0) ** 2 - expected.flatten().numpy()).max() <= 0.004


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": [0, 41]},
        {"columns": [3, 3]},
        {"rows": None},
        {"columns": [0.0, 5]},
        {"pool_size": "2"},
        {"pool_size": 10**9},
    ],
)
def test_invalid_ranges_return_error(wrong):
    given = {"rows": [0, 40], "columns": [0, 40], "pool_size": 2, **wrong}
    content, buffers = ask_widget(view.live(lazy_maps(), max_bytes=3_000), part=0, layer=1, head=2, **given)
    assert content["error"].startswith(f"LookupError: {next(iter(wrong))} is ")
    assert not buffers


def test_heads_beyond_max_bytes_are_sent_on_request():
    some = maps(3, 4, 48)
    live = view.live(some, max_bytes=9_000)
    assert {codes["pool_size"] for codes in live.document["parts"][0]["head_codes"]} > {1}
    assert "as you open them" in live.document["note"]
    _, (piece,) = ask_widget(live, part=0, layer=2, head=3)
    codes = numpy.frombuffer(zlib.decompress(piece), numpy.uint8)
    allowed = some.allowed(2, 3)
    assert abs((codes / 255.0) ** 2 - some[2, 3][allowed].numpy()).max() <= 0.004


@pytest.mark.parametrize("question", [{"part": 0, "layer": 9, "head": 0}, {"part": 3, "layer": 0, "head": 0}, {"x": 1}])
def test_malformed_requests_return_error(question):
    content, buffers = ask_widget(view.live(maps()), **question)
    assert content["error"]
    assert buffers is None


def test_saved_page_contains_current_state(tmp_path):
    live = view.live({"one": maps(), "two": maps(1, 1, 4)}, mode="links", layer=1, title="mine")
    live.locked_rows = [3]
    content, (page,) = ask_widget(live, page=True)
    assert "error" not in content
    assert b'"locked_rows":[3]' in page
    assert page.decode() == live.view().page()
    assert live.view().document["state"]["mode"] == "links"


def test_mimebundle_contains_widget_picture_and_text():
    data, _ = view.live(maps())._repr_mimebundle_()
    assert {"application/vnd.jupyter.widget-view+json", "image/png", "text/plain"} <= set(data)
