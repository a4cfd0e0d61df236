"""Captures add hardly any device synchronization, counted as tensor elements read per layer.

The profiler counts what reads numbers, also where captures hide their own calls; the fixture `elsewhere` makes captures
treat tensors as if they were on a GPU.
"""

import pytest
import torch
from combinations import one_at_a_time
from small_transformers import small_model
from torch import nn

from tfviz import models
from tfviz.look import attention_call, capture, device_sync, edits
from tfviz.look.key_ranges import KeyRanges

READS = {"aten::_local_scalar_dense", "aten::nonzero", "aten::equal", "aten::masked_select"}
IDS = torch.tensor([[3, 5, 8, 2, 9, 4, 1], [3, 7, 8, 1, 9, 1, 2]])
MASK = torch.tensor([[1] * 7, [1] * 5 + [0] * 2])


@pytest.fixture
def elsewhere(monkeypatch):
    """As if tensors were on a GPU."""
    monkeypatch.setattr(device_sync, "is_host_readable", lambda tensor: False)
    monkeypatch.setattr(attention_call, "is_host_readable", lambda tensor: False)


def gpt2(layers, attention):
    return small_model("GPT2LMHeadModel", vocab_size=13, n_layer=layers, attn_implementation=attention)


def count_reads(model, inputs, **options):
    with torch.no_grad(), torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        if options:
            with capture(model, **options):
                model(**inputs)
        else:
            model(**inputs)
    return sum(event.count for event in seen.key_averages() if event.key in READS)


def reads_per_layer(build, inputs, **options):
    """Those that a capture adds, in each layer beyond the first two."""
    few, many = (build(layers) for layers in (2, 5))
    extra = [count_reads(model, inputs, **options) - count_reads(model, inputs) for model in (few, many)]
    return (extra[1] - extra[0]) / 3


OPTIONS = {
    "plain": {"sites": "*.pattern"},
    "lazy": {"sites": "*.pattern", "lazy": True},
    "heads": {"sites": "*.output_heads"},
    "half": {"sites": ["*.pattern", "*.output_heads"], "dtype": torch.float16, "device": "cpu"},
    "zeroed": {"edit": {"*.pattern": edits.zero(1)}},
    "outputs": {"sites": "*"},
}


@pytest.mark.parametrize(("options", "masked"), one_at_a_time(OPTIONS, [True, False]))
def test_capture_of_fused_attention_adds_no_sync(elsewhere, options, masked):
    inputs = {"input_ids": IDS} | ({"attention_mask": MASK} if masked else {})
    assert reads_per_layer(lambda layers: gpt2(layers, "sdpa"), inputs, **OPTIONS[options]) == 0


@pytest.mark.parametrize("options", ["outputs", "zeroed"])
def test_capture_of_tfviz_gpt_adds_no_sync(elsewhere, options):
    def build(layers):
        return models.GPT(13, layers=layers, heads=4, dim=24, context=8).eval()

    assert reads_per_layer(build, {"ids": IDS}, **OPTIONS[options]) == 0


@pytest.mark.parametrize(("options", "masked"), one_at_a_time(OPTIONS, [True, False]))
def test_capture_of_eager_attention_reads_at_most_three_numbers(elsewhere, options, masked):
    """Two tell that query and key are no weights; one, which texts and heads share a mask."""
    inputs = {"input_ids": IDS} | ({"attention_mask": MASK} if masked else {})
    expected = 2 if options == "heads" else 3
    assert reads_per_layer(lambda layers: gpt2(layers, "eager"), inputs, **OPTIONS[options]) <= expected


def test_count_reads_detects_device_reads():
    class Reads(nn.Module):
        def forward(self, x):
            return x * x.sum().item() if x.any() else x[x > 3]

    assert count_reads(Reads(), {"x": torch.ones(3)}) == 2
    assert count_reads(Reads(), {"x": torch.zeros(3)}) == 2


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_maps_are_identical_without_host_reads(monkeypatch, attention):
    model, found = gpt2(2, attention), []
    blind = MASK.clone()
    blind[1, 0] = 0  # a first query that sees nothing
    for is_elsewhere in (False, True):
        if is_elsewhere:
            monkeypatch.setattr(device_sync, "is_host_readable", lambda tensor: False)
            monkeypatch.setattr(attention_call, "is_host_readable", lambda tensor: False)
        with torch.no_grad(), capture(model) as seen:
            model(IDS, attention_mask=blind)
        found.append([(seen[site], seen.allowed(site)) for site in seen])
    for first, second in zip(*found):
        for one, other in zip(first, second):
            assert torch.equal(one, other)


@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (3, 7), (7, 3), (1, 4)])
def test_causal_key_ranges_match_plain_key_ranges(queries, keys):
    causal = KeyRanges.causal(queries, keys)
    plain = causal._replace(is_causal=False)
    for rows in (slice(None), slice(1, 3), slice(2, 9), slice(0, None, 2), slice(4, 4)):
        assert causal.key_range(rows) == plain.key_range(rows)
        for part in (slice(None), slice(1, 3), slice(2, 2)):
            count = len(range(*part.indices(keys)))
            scores = torch.randn(2, 1, len(range(*rows.indices(queries))), count)
            torch.testing.assert_close(
                causal.mask_scores_(scores.clone(), rows, part), plain.mask_scores_(scores.clone(), rows, part)
            )
