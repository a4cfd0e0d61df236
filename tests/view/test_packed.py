"""The packed data of a page, unpacked independently, matches the attention maps."""

import zlib

import numpy
import pytest
import torch

from tfviz import view
from tfviz.layers import masks
from tfviz.look import AttentionMaps
from tfviz.look.attention_call import AttentionCall
from tfviz.look.lazy import LazyAttention
from tfviz.view.figures.downsampling import SEARCH_BLOCK_CELLS, largest_weight
from tfviz.view.page import heads as page_heads
from tfviz.view.page import payload
from tfviz.view.page.maps import token_groups


def maps(layers=2, heads=3, queries=5, keys=7, seed=1, mask=None, **given):
    scores = torch.randn(layers, heads, queries, keys, generator=torch.Generator().manual_seed(seed)) * 3
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return AttentionMaps(scores.softmax(-1).nan_to_num(), mask=mask, **given)


def unpacked(part, described, data, layer, head):
    """Weights and mask of a head, from the bytes."""
    shape = len(part["rows"]), len(part["columns"])
    stored = part["head_codes"][layer * part["heads"] + head]
    start, length, block = stored["offset"], stored["length"], stored["pool_size"]
    assert start % 3 == 0
    codes = numpy.frombuffer(zlib.decompress(data[start : start + length]), numpy.uint8)
    if block > 1:
        return codes.reshape(-(-shape[0] // block), -(-shape[1] // block)), None
    allowed = numpy.ones(shape, bool)
    if part["masks"] is not None:
        at, size = described["masks"][part["masks"][layer * part["heads"] + head]]
        bits = numpy.frombuffer(zlib.decompress(data[at : at + size]), numpy.uint8)
        allowed = numpy.unpackbits(bits)[: shape[0] * shape[1]].reshape(shape).astype(bool)
    whole = numpy.zeros(shape, numpy.uint8)
    whole[allowed] = codes
    return (whole / 255.0) ** 2, allowed


DEAD_ROW = torch.tensor([[1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]).bool()
A_MASK_A_HEAD = torch.rand(2, 3, 5, 7, generator=torch.Generator().manual_seed(2)) > 0.4
CASES = {
    "rectangular": lambda: maps(),
    "causal": lambda: maps(2, 3, 6, 6, mask=masks.causal.dense(6, 6)[0, 0]),
    "a dead row": lambda: maps(1, 2, 4, 4, mask=DEAD_ROW),
    "a mask a head": lambda: maps(2, 3, 5, 7, mask=A_MASK_A_HEAD),
    "one cell": lambda: maps(1, 1, 1, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_document_contains_every_weight_and_mask(name):
    some = CASES[name]()
    described, data = page_heads.heads_document({"": some}, page_heads.HEADS_STATE, None, 1e6)
    (part,) = described["parts"]
    for layer in range(some.shape[0]):
        for head in range(some.shape[1]):
            weights, allowed = unpacked(part, described, data, layer, head)
            assert abs(weights - some[layer, head].numpy()).max() <= 0.004
            if some.mask is not None:
                assert (allowed == some.allowed(layer, head).numpy()).all()
    assert part["rows"] == some.query_tokens
    assert part["columns"] == some.key_tokens
    assert described["note"] == ""


def test_shared_mask_is_stored_once():
    some = maps(4, 5, 6, 6, mask=masks.causal.dense(6, 6)[0, 0])
    described, _ = page_heads.heads_document({"one": some, "two": some}, page_heads.HEADS_STATE, None, 1e6)
    assert len(described["masks"]) == 1
    assert described["parts"][1]["masks"] == [0] * 20


def test_heads_beyond_max_bytes_are_stored_as_block_maxima():
    some = maps(3, 4, 64, 64, seed=5)
    described, data = page_heads.heads_document(
        {"": some}, {**page_heads.HEADS_STATE, "layer": 1, "head": 2}, None, 12_000
    )
    (part,) = described["parts"]
    sizes = {codes["pool_size"] for codes in part["head_codes"]}
    assert part["head_codes"][1 * 4 + 2]["pool_size"] == 1
    (block,) = sizes - {1}
    assert len(data) * 4 / 3 <= 12_000
    assert described["note"].startswith("1 of 12 heads is stored exactly, the others as the largest weight of each")
    assert f"{block} × {block} cells" in described["note"]
    codes, _ = unpacked(part, described, data, 0, 0)
    weights = some[0, 0].numpy()
    for (row, col), code in numpy.ndenumerate(codes):
        largest = weights[row * block : (row + 1) * block, col * block : (col + 1) * block].max()
        assert abs((code / 255) ** 2 - largest) <= 0.004


def lazy_maps():
    draw = torch.Generator().manual_seed(3)
    layers = []
    for _ in range(2):
        query, key = (torch.randn(1, 3, 64, 16, generator=draw) for _ in range(2))
        layers.append(LazyAttention(AttentionCall(query, key, key[..., :0], None, 0.5)))
    return AttentionMaps(layers)


@pytest.mark.parametrize("kind", ["weights", "computed"])
def test_document_data_fits_max_bytes(kind, monkeypatch):
    monkeypatch.setattr(payload, "MAX_PAGE_CELLS", 0 if kind == "computed" else payload.MAX_PAGE_CELLS)
    some = lazy_maps() if kind == "computed" else maps(3, 4, 64, 64, seed=5)
    forms = set()
    for max_bytes in range(4_000, 44_000, 2_000):
        described, data = page_heads.heads_document({"": some}, page_heads.HEADS_STATE, None, max_bytes)
        assert len(data) * 4 / 3 <= max_bytes
        forms.add(described["note"].replace(f"{max_bytes / 1000}", ""))
    assert len(forms) > 3


@pytest.mark.parametrize("top", [1, 4])
def test_top_keys_beyond_max_bytes_raise(top):
    def size(max_bytes):
        return (
            len(page_heads.heads_document({"": maps()}, page_heads.HEADS_STATE, None, max_bytes, top_k=top)[1]) * 4 / 3
        )

    needed = size(1e6)
    assert size(needed) == needed
    with pytest.raises(ValueError, match="take more than the limit"):
        size(needed - 1)


def test_too_small_max_bytes_raises():
    with pytest.raises(ValueError, match="not even blocks"):
        page_heads.heads_document({"": maps(8, 8, 50, 50)}, page_heads.HEADS_STATE, None, 100)


@pytest.mark.parametrize("bad", [torch.nan, -0.5, 1.5, torch.inf])
def test_invalid_weights_raise(bad):
    weights = torch.rand(2, 3, 5, 7)
    weights[1, 2, 3, 4] = bad
    with pytest.raises(ValueError, match=r"layer 1, head 2 (holds NaN|.*softmax)"):
        view.heads(AttentionMaps(weights))


GROUPS = [
    (["un", "##believ", "##able", "!", "[SEP]"], [0, 0, 0, 1, 2]),
    (["Hello", "Ġwor", "ld", "<|end|>", "x"], [0, 1, 1, 2, 3]),
    (["▁the", "▁c", "at"], [0, 1, 1]),
    (list("to be\nor"), [0, 0, 1, 1, 1, 2, 3, 3]),
    (["the", "cat"], [0, 1]),
    ([], []),
    (["##x"], [0]),
]


@pytest.mark.parametrize(("pieces", "numbers"), GROUPS)
def test_token_groups_join_subwords_to_words(pieces, numbers):
    assert token_groups(pieces) == numbers


def test_packed_blocks_are_maxima_of_their_cells():
    codes = torch.arange(15, dtype=torch.uint8).view(1, 1, 3, 5)
    assert AttentionMaps(codes).as_uint8(0, 0, 2).tolist() == [[6, 8, 9], [11, 13, 14]]
    assert AttentionMaps((codes / 255) ** 2).as_uint8(0, 0, 2).tolist() == [[6, 8, 9], [11, 13, 14]]


def test_largest_weight_of_lazy_maps_matches_argmax():
    draw = torch.Generator().manual_seed(7)
    query, key = torch.randn(1, 8, 150, 4, generator=draw), torch.randn(1, 8, 200, 4, generator=draw)
    some = AttentionMaps([LazyAttention(AttentionCall(query, key, key[..., :0], None, 1.0))])
    beyond = 0
    for head in range(8):
        row, col = divmod(int(some[0, head].argmax()), 200)
        beyond += row >= SEARCH_BLOCK_CELLS and col >= SEARCH_BLOCK_CELLS
        found = largest_weight(some, 0, head)
        assert found == (row, col, pytest.approx(float(some[0, head].max())))
        assert f"'{row}' looks most sharply, at '{col}'" in repr(view.head(some, 0, head))
    assert beyond
