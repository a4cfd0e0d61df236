"""Masks: closed forms, composition, explanations, block masks, copies and devices."""

import copy
import pickle
import subprocess
import sys

import pytest
import torch
from combinations import one_at_a_time
from small_models import random
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.nn.attention.flex_attention import flex_attention

from tfviz.layers import attend, masks
from tfviz.models import GPT

LENGTHS = [4, 6]
DOCUMENTS = [[0, 0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 4, 4, 3]]
LINKS = [{(0, 1), (1, 0), (2, 2), (3, 6), (4, 0)}, {(0, 0), (1, 5), (2, 4), (5, 1), (6, 3)}]
HALVES = masks.per_head(masks.window(2), masks.dilated(3))
AHEAD = masks.Mask(lambda b, h, q, k: (q - k) >= h, "by head")


def half(h, q, k):
    return (q - k) % 3 == 0 if h == 1 else k in (q - 1, q, q + 1)


def edges():
    cells = [[[(q, k) in links for k in range(7)] for q in range(7)] for links in LINKS]
    return torch.tensor(cells)


FORMS = {
    "full": (masks.full, lambda b, h, q, k: True),
    "nothing": (~masks.full, lambda b, h, q, k: False),
    "causal": (masks.causal, lambda b, h, q, k: k <= q),
    "window": (masks.window(3), lambda b, h, q, k: -3 < q - k < 3),
    "dilated": (masks.dilated(3), lambda b, h, q, k: k in range(q % 3, 99, 3)),
    "strided": (masks.strided(3), lambda b, h, q, k: k in (q, q - 1, q - 2, q - 3, q - 6)),
    "fixed": (masks.fixed(3, 2), lambda b, h, q, k: k <= q and (q // 3 == k // 3 or k % 3 in (1, 2))),
    "padding": (masks.padding(torch.tensor(LENGTHS)), lambda b, h, q, k: k < LENGTHS[b]),
    "prefix": (masks.prefix(torch.tensor(LENGTHS)), lambda b, h, q, k: k <= q or k < LENGTHS[b]),
    "documents": (masks.documents(torch.tensor(DOCUMENTS)), lambda b, h, q, k: DOCUMENTS[b][q] == DOCUMENTS[b][k]),
    "graph": (masks.graph(edges()), lambda b, h, q, k: (q, k) in LINKS[b]),
    "heads": (AHEAD, lambda b, h, q, k: q - k >= h),
    "per head": (HALVES, lambda b, h, q, k: half(h, q, k)),
    "not": (~masks.causal, lambda b, h, q, k: k > q),
    "and": (masks.causal & masks.window(2), lambda b, h, q, k: k in (q, q - 1)),
    "or": (masks.causal | masks.dilated(2), lambda b, h, q, k: k <= q or (k - q) % 2 == 0),
    "strictly": (masks.causal & ~masks.window(1), lambda b, h, q, k: k < q),
    "composed": (
        masks.causal & HALVES & masks.padding(torch.tensor(LENGTHS)) | masks.documents(torch.tensor(DOCUMENTS)),
        lambda b, h, q, k: (k <= q and half(h, q, k) and k < LENGTHS[b]) or DOCUMENTS[b][q] == DOCUMENTS[b][k],
    ),
    "shared out": (
        masks.per_head(masks.padding(torch.tensor(LENGTHS)), masks.causal, ~masks.causal),
        lambda b, h, q, k: (k < LENGTHS[b], k <= q, k > q)[h],
    ),
}
named = pytest.mark.parametrize("name", FORMS)
SOME = ["composed", "nothing", "strided", "padding", "graph", "per head"]
some_from_start = pytest.mark.parametrize(("name", "start"), one_at_a_time(SOME, [2, 0]))


def by_hand(form, batch, heads, queries, keys, start=0):
    cells = [
        [[[form(b, h, q, k) for k in range(keys)] for q in range(start, start + queries)] for h in range(heads)]
        for b in range(batch)
    ]
    return torch.tensor(cells)


@pytest.mark.parametrize(("name", "start"), one_at_a_time(reversed(FORMS), [2, 0]))
def test_dense_matches_closed_form(name, start):
    mask, form = FORMS[name]
    dense = mask.dense(5, 7, batch=2, heads=3, start=start)
    assert dense.dtype == torch.bool
    assert torch.equal(dense.expand(2, 3, 5, 7), by_hand(form, 2, 3, 5, 7, start))


@named
def test_why_is_empty_for_allowed_cells(name):
    mask, form = FORMS[name]
    for cell in ((b, h, q, k) for b in range(2) for h in range(3) for q in range(5) for k in range(7)):
        batch, head, query, key = cell
        assert (mask.explain(query, key, batch=batch, head=head) == []) == form(*cell)


def test_why_lists_the_forbidding_rules():
    mask = masks.causal & (masks.window(2) | masks.dilated(3)) & ~masks.fixed(2)
    assert mask.explain(4, 2) == ["window(2)", "dilated(3)"]
    assert mask.explain(2, 4) == ["causal", "window(2)", "dilated(3)"]
    assert (masks.causal & HALVES).explain(4, 2, head=3) == ["dilated(3)"]
    assert (masks.causal & HALVES).explain(1, 3, head=2) == ["causal", "window(2)"]
    assert mask.explain(3, 3) == [f"~{masks.fixed(2)}"]
    assert repr(masks.causal & masks.strided(3)) == "(causal & (window(3) | dilated(3)))"  # causal only once
    assert repr(masks.causal | masks.window(2)) == "(causal | window(2))"


@named
def test_count_matches_closed_form(name):
    mask, form = FORMS[name]
    assert mask.count(5, batch=2, heads=3) == int(by_hand(form, 2, 3, 5, 5).sum())


@some_from_start
def test_block_mask_matches_closed_form(name, start):
    mask, form = FORMS[name]
    blocks = mask.block_mask(5, 7, batch=2, heads=3, start=start, device="cpu", size=2)
    padded = functional.pad(by_hand(form, 2, 3, 5, 7, start), (0, 1, 0, 1)).unflatten(2, (3, 2)).unflatten(4, (4, 2))
    assert torch.equal(blocks.to_dense().bool(), padded.any(5).any(3))
    assert blocks.shape == (2, 3, 5, 7)


def attention(query, key, value, allowed):
    """Softmax cell by cell, zeros for a query that may look nowhere."""
    out = torch.zeros(*query.shape[:-1], value.shape[-1])
    for b, h, q in torch.cartesian_prod(*map(torch.arange, query.shape[:3])).tolist():
        keys = [k for k in range(key.shape[2]) if allowed[b, h, q, k]]
        strength = [(query[b, h, q] @ key[b, h, k] / query.shape[-1] ** 0.5).exp() for k in keys]
        for k, weight in zip(keys, strength):
            out[b, h, q] += weight / sum(strength) * value[b, h, k]
    return out


@some_from_start
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_and_attend_match_reference(name, start):
    mask, form = FORMS[name]
    query, key, value = random(2, 3, 5, 4), random(2, 3, 7, 4), random(2, 3, 7, 8)  # powers of two, as PyTorch 2.6 asks
    expected = attention(query, key, value, by_hand(form, 2, 3, 5, 7, start))
    blocks = mask.block_mask(5, 7, batch=2, heads=3, start=start)
    with torch.compiler.set_stance("force_eager"):
        flexed = flex_attention(query, key, value, block_mask=blocks)
    torch.testing.assert_close(flexed, expected)
    torch.testing.assert_close(attend(query, key, value, mask.dense(5, 7, batch=2, heads=3, start=start)), expected)


def test_block_mask_is_shared_across_batch_and_heads():
    blocks = masks.strided(3).block_mask(300, 300)
    assert blocks.shape == (1, 1, 300, 300)
    assert blocks.BLOCK_SIZE == (128, 128)
    assert torch.equal(blocks.to_dense()[0, 0].bool(), torch.ones(3, 3).tril().bool())
    far = masks.causal & masks.window(7)
    assert far.block_mask(300, 300).to_dense()[0, 0].tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 1]]


UNCHECKED = """
import sys
from tfviz.layers import masks
assert not {"torch._dynamo", "torch.nn.attention.flex_attention"} & set(sys.modules)
import torch
from torch.nn.attention.flex_attention import flex_attention
query = torch.randn(2, 3, 7, 4)
lengths = torch.tensor([4, 6])
for mask in masks.causal & ~masks.window(1), masks.per_head(masks.strided(3), masks.padding(lengths)):
    flexed = flex_attention(query, query, query, block_mask=mask.block_mask(7, 7, batch=2, heads=3))
    dense = mask.dense(7, 7, batch=2, heads=3)
    expected = torch.nn.functional.scaled_dot_product_attention(query, query, query, dense)
    torch.testing.assert_close(flexed, expected)
"""


def test_import_loads_no_compiler_and_flex_attention_matches_sdpa():
    # a fresh process: shapes are not checked there, and the compiler cannot trace the checks
    ignored = "ignore:flex_attention called without:UserWarning"
    done = subprocess.run(
        [sys.executable, "-W", ignored, "-c", UNCHECKED], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr


MADE = [
    masks.causal,
    masks.padding(torch.tensor([3, 5])),
    ~masks.window(2),
    masks.fixed(3, 2),
    masks.prefix(torch.tensor([2, 1])),
    masks.strided(2) | masks.documents(torch.tensor([[0, 0, 1, 1, 2]]).expand(2, -1)),
    masks.per_head(masks.full, masks.graph(torch.eye(5).bool().expand(2, -1, -1))),
]


@pytest.mark.parametrize("mask", MADE, ids=repr)
def test_masks_survive_deepcopy_and_pickle(mask):
    table = mask.dense(5, 5, batch=2, heads=3)
    for other in (copy.deepcopy(mask), pickle.loads(pickle.dumps(mask))):
        assert torch.equal(other.dense(5, 5, batch=2, heads=3), table)
        assert repr(other) == repr(mask)
        assert (other is mask) == (mask is masks.causal)


def test_copied_gpt_keeps_the_causal_singleton():
    model = GPT(9, layers=1, heads=1, dim=4)
    assert copy.deepcopy(model).mask is masks.causal
    assert pickle.loads(pickle.dumps(model)).mask is masks.causal


def test_dense_moves_mask_tables_to_the_device():
    """The meta device stands for a GPU; the second time, the copy of the first is taken."""
    for mask in (
        masks.padding(torch.tensor(LENGTHS)),
        masks.prefix(torch.tensor(LENGTHS)),
        masks.documents(torch.tensor(DOCUMENTS)),
        masks.graph(edges()),
        masks.per_head(masks.padding(torch.tensor(LENGTHS)), masks.causal) | ~masks.documents(torch.tensor(DOCUMENTS)),
    ):
        before = mask.dense(7, 7, heads=2)
        for _ in range(2):
            assert mask.dense(7, 7, heads=2, device="meta").device.type == "meta"
        assert torch.equal(mask.dense(7, 7, heads=2), before)


def test_table_caches_one_copy_per_device_but_no_fake_tensor():
    table = masks._Table(torch.tensor(LENGTHS))
    index = torch.tensor([0, 1], device="meta")
    assert table[index].device.type == "meta"
    assert table._on(index.device) is table._on(index.device)
    with FakeTensorMode(allow_non_fake_inputs=True):
        gpu = torch.empty(1, dtype=torch.long, device="cuda")
        assert table._on(gpu.device).device.type == "cuda"
    assert list(table._copies) == [torch.device("meta")]
    assert table[torch.tensor([1])].tolist() == LENGTHS[1:]


def test_gpt_on_another_device_accepts_table_masks():
    model = GPT(11, context=7, layers=1, heads=3, dim=6, mask=masks.prefix(torch.tensor(LENGTHS))).to("meta")
    assert model(torch.zeros(2, 7, dtype=torch.long, device="meta")).shape == (2, 7, 11)
