"""Masks that differ between heads reach the page of a kernel studio unchanged."""

import numpy
import pytest
import torch
from calls import Calls
from torch import nn

from tfviz import look, models, text, view
from tfviz.layers.masks import causal, dilated, per_head, window
from tfviz.view.studio.widget import encoded_maps

TOKENIZER = text.CharacterTokenizer("abcdefghijkl")
MASK = causal & per_head(window(2), dilated(3))


def write_studio():
    torch.manual_seed(1)
    model = models.GPT(len(TOKENIZER), context=12, layers=2, heads=2, dim=8, mask=MASK)
    return view.write(model, TOKENIZER, "abcdefghijkl", kernel=True)


def unpack_masks(told, pieces):
    """[head, query, key] of each site, as the page puts them together."""
    made = {}
    for site, shape, number in told["patterns"]:
        mask = numpy.frombuffer(pieces[number], numpy.uint8)
        made[site] = torch.from_numpy(mask.reshape(-1, *shape[-2:]).copy()).bool()
    return made


def test_packed_maps_keep_mask_of_each_head():
    live = write_studio()
    _, seen = live._programs["read"].run([torch.arange(12)[None]])
    told, pieces = encoded_maps(seen)
    wanted = MASK.dense(12, 12, heads=2)[0]
    assert not torch.equal(wanted[0], wanted[1])
    for site, made in unpack_masks(told, pieces).items():
        assert torch.equal(made, wanted), site
    assert told["masks"] == 1  # that of both layers is sent once
    assert len(pieces[0]) == 2 * 12 * 12


@pytest.mark.parametrize(
    ("mask", "size"),
    {
        "of all heads": (causal, 49), "none": (None, 49), "alike in each head": (per_head(causal, causal), 49),
        "of each head": (per_head(causal, window(2)), 2 * 49),
    }.values(),
)  # fmt: skip
def test_mask_shared_by_all_heads_is_sent_once(mask, size):
    model = models.GPT(7, context=7, layers=1, heads=2, dim=8, mask=causal if mask is None else mask)
    if mask is None:
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8, batch_first=True, dropout=0.0), 1).eval()
    given = torch.arange(7)[None] if mask is not None else torch.randn(1, 7, 8)
    with torch.no_grad(), look.capture(model, "*.pattern") as seen:
        model(given)
    told, pieces = encoded_maps(seen)
    assert (told["masks"], len(pieces[0])) == (1, size)


def test_weights_without_head_axis_have_one_mask():
    """Given as [batch, query, key]: what differs there are queries, not heads."""
    allowed = torch.ones(5, 7).tril(2).bool()
    model = Calls(lambda q, k, v: nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=allowed))
    with look.capture(model, "*pattern") as seen:
        model(torch.randn(1, 5, 3), torch.randn(1, 7, 3), torch.randn(1, 7, 3))
    told, pieces = encoded_maps(seen)
    assert [(shape, number) for _, shape, number in told["patterns"]] == [([1, 1, 5, 7], 0)]
    assert list(pieces[0]) == allowed.flatten().tolist()
