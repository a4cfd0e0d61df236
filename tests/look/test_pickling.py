"""Pickled or copied captures keep their tensors, masks and summary, but not the model."""

import copy
import pickle

import pytest
import torch
from calls import Calls
from combinations import one_at_a_time
from small_models import gpt
from torch import nn

from tfviz import generate
from tfviz.look import AttentionMaps, capture, edits

IDS = torch.tensor([[3, 5, 8, 2, 9], [3, 7, 8, 1, 9]])
OPTIONS = {
    "plain": {},
    "lazy": {"lazy": True},
    "bytes": {"dtype": torch.uint8},
    "gradients": {"sites": ["*.pattern", "*.output_heads"], "grad": True},
    "edited": {"edit": {"*.pattern": edits.zero(1)}},
}
WAYS = {"pickle": lambda seen: pickle.loads(pickle.dumps(seen)), "deep copy": copy.deepcopy, "copy": copy.copy}


@pytest.mark.parametrize(("options", "way"), one_at_a_time(OPTIONS, WAYS))
def test_pickled_or_copied_capture_matches_original(options, way):
    model, again = gpt(dim=12, dropout=0.1).train(), WAYS[way]
    with capture(model, **OPTIONS[options]) as seen:
        model(IDS)
    other = again(again(seen))
    assert list(other) == list(seen)
    assert repr(other) == repr(seen)
    assert (other.summary, other.model, other.shapes) == (seen.summary, seen.model, seen.shapes)
    assert other.provenance(other) == seen.provenance(seen)
    for site in seen:
        assert torch.equal(other[site], seen[site])
        assert not other[site].requires_grad
    sites = [site for site in seen if site.endswith("pattern")]
    for site in sites:
        assert (other.allowed(site) is None) == (seen.allowed(site) is None)
        assert seen.allowed(site) is None or torch.equal(other.allowed(site), seen.allowed(site))
    maps = [AttentionMaps.from_capture(found, list("abcde"), batch=1) for found in (seen, other)]
    assert torch.equal(maps[0].weights[1, 2], maps[1].weights[1, 2])
    assert len(pickle.dumps(other)) < 60_000  # the weights of the model are not in it


@pytest.mark.parametrize("lazy", [False, True])
def test_over_time_works_after_pickling(lazy):
    model = gpt(dim=12)
    with capture(model, lazy=lazy) as seen:
        text = [3, 5, *generate.ids(model, IDS[0][:2], 4)]
    words = [str(number) for number in text[:-1]]
    other = pickle.loads(pickle.dumps(seen))
    maps = [AttentionMaps.over_time(found, words) for found in (seen, other)]
    assert maps[0].weights.shape == maps[1].weights.shape
    assert torch.equal(maps[0].weights[1, 2], maps[1].weights[1, 2])


def test_pickled_capture_keeps_its_summary():
    used, unused = (nn.MultiheadAttention(12, 3, batch_first=True) for _ in range(2))
    model = Calls(lambda x: used(x, x, x)[0], attention=used, unused_attention=unused)
    with capture(model) as seen:
        model(torch.ones(2, 5, 12))
    other = pickle.loads(pickle.dumps(seen))
    assert other.summary == seen.summary
    with pytest.raises(KeyError, match="nowhere"):
        other["nowhere"]
