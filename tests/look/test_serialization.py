"""Files of attention maps: round trips, and errors that name file and key of invalid content."""

import json

import numpy as np
import pytest
import torch
from calls import Calls
from combinations import one_at_a_time

from tfviz import look, models
from tfviz.files import load_tensors, save_tensors
from tfviz.look import AttentionMaps, LazyAttention
from tfviz.look.attention_call import AttentionCall
from tfviz.look.key_ranges import KeyRanges

GONE = object()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Maps that are kept whole, in bytes, with a mask; and as what they are made of, under two kinds of rules."""
    folder = tmp_path_factory.mktemp("maps")
    torch.manual_seed(4)
    whole = AttentionMaps(torch.rand(2, 3, 5, 7), mask=torch.ones(5, 7).bool().tril(), provenance={"seed": 4})
    whole.save(folder / "whole")
    model, ids = models.GPT(11, context=9, layers=2, heads=3, dim=12), torch.ones(1, 5, dtype=torch.long)
    with look.capture(model, lazy=True) as seen:
        model(ids)
    AttentionMaps.from_capture(seen, list("abcde")).save(folder / "key_ranges")
    mask = torch.tensor([[True, False, True, True, True]]).expand(5, 5)
    encoder = torch.nn.MultiheadAttention(12, 3, batch_first=True)
    x = torch.rand(1, 5, 12)
    with look.capture(encoder, lazy=True) as seen:
        encoder(x, x, x, attn_mask=~mask, need_weights=False)
    AttentionMaps.from_capture(seen).save(folder / "rules")
    return folder


def changed(path, to, change):
    """A copy of a file after `change(metadata, tensors)` of its plain values."""
    tensors, said = load_tensors(path)
    plain = {name: json.loads(text) if name != "format" else text for name, text in said.items()}
    change(plain, tensors)
    save_tensors(to, tensors, {name: text if name == "format" else json.dumps(text) for name, text in plain.items()})
    return to


def tensor(name, make):
    def change(said, tensors):
        value = make(tensors.get(name))
        tensors.pop(name, None)
        if value is not GONE:
            tensors[name] = value.contiguous()

    return change


def plain(name, value):
    return lambda said, tensors: said.pop(name) if value is GONE else said.update({name: value})


def layer(**values):
    return lambda said, tensors: said["made"][1].update(values)


SPOILT = {  # file, what is changed, what is said
    "no rows": (
        "whole",
        plain("query_tokens", GONE),
        "metadata has no 'query_tokens'; it must have query_tokens, key_tokens, sites, provenance",
    ),
    "rows of numbers": (
        "whole",
        plain("query_tokens", [1, 2, 3, 4, 5]),
        r"metadata\.query_tokens\[0\] is 1; it must be a text",
    ),
    "rows too few": ("whole", plain("query_tokens", ["a"]), "query_tokens has 1 members; the maps have 5"),
    "cols too many": ("whole", plain("key_tokens", ["a"] * 8), "key_tokens has 8 members; the maps have 7"),
    "sites that are a text": ("whole", plain("sites", "ab"), r"metadata\.sites is 'ab'; it must be a list"),
    "more than is known": ("whole", plain("more", 3), "metadata has the key 'more', which is not known"),
    "provenance of a list": ("whole", plain("provenance", [1]), r"metadata\.provenance is a list; it must be a dict"),
    "no layers": ("whole", lambda s, t: [t.pop("layer.0"), t.pop("layer.1")], "its layers have the shapes"),
    "a layer lost": ("whole", tensor("layer.0", lambda _: GONE), "there is no tensor 'layer.0'"),
    "a layer of two axes": ("whole", tensor("layer.0", lambda one: one[0]), "layer.0 is torch.float32 of 2 axes"),
    "a layer of another shape": ("whole", tensor("layer.1", lambda one: one[:, :4]), "its layers have the shapes"),
    "whole numbers": ("whole", tensor("layer.0", lambda one: one.long()), "layer.0 is torch.int64 of 3 axes"),
    "a mask of numbers": ("whole", tensor("mask", lambda one: one.float()), "mask is torch.float32 of 4 axes"),
    "a mask of another size": ("whole", tensor("mask", lambda one: one[..., :6]), r"mask is .*; it does not fit"),
    "a mask of five axes": ("whole", tensor("mask", lambda one: one[None]), "mask is torch.bool of 5 axes"),
    "another tensor": ("whole", tensor("more", lambda _: torch.ones(2)), "there is a tensor 'more', which no layer"),
    "made of a number": ("key_ranges", plain("made", 3), r"metadata\.made is 3; it must be a list"),
    "made of nothing": ("key_ranges", plain("made", [None, None]), "there is no tensor 'layer.0'"),
    "made of more": ("key_ranges", layer(more=1), r"metadata\.made\[1\] has the key 'more', which is not known"),
    "an endless scale": (
        "key_ranges",
        layer(scale=float("inf")),
        r"metadata\.made\[1\]\.scale is inf; it must be a finite",
    ),
    "a scale in words": (
        "key_ranges",
        layer(scale="1"),
        r"metadata\.made\[1\]\.scale is '1'; it must be a finite number",
    ),
    "a rule that is none": ("key_ranges", layer(rule=99), "there is no tensor 'rule.99.first'"),
    "a rule below": (
        "key_ranges",
        layer(rule=-1),
        r"metadata\.made\[1\]\.rule is -1; it must be an integer, at least 0",
    ),
    "no query": ("key_ranges", tensor("layer.0.query", lambda _: GONE), "there is no tensor 'layer.0.query'"),
    "keys of other heads": ("key_ranges", tensor("layer.0.key", lambda one: one[:2]), "they do not fit each other"),
    "keys of no heads": ("key_ranges", tensor("layer.0.key", lambda one: one[:0]), "they do not fit each other"),
    "keys of another width": (
        "key_ranges",
        tensor("layer.0.key", lambda one: one[..., :3]),
        "they do not fit each other",
    ),
    "keys of another kind": ("key_ranges", tensor("layer.0.key", lambda one: one.half()), "they do not fit each other"),
    "key ranges past the end": (
        "key_ranges",
        tensor("rule.0.stop", lambda one: one + 1),
        r"stop goes from 2 to 6; .* 0 to 5",
    ),
    "key ranges before all": ("key_ranges", tensor("rule.0.first", lambda one: one - 1), r"first goes from -1 to -1"),
    "key ranges of fewer rows": ("key_ranges", tensor("rule.0.stop", lambda one: one[..., :4]), "it does not fit"),
    "key ranges of fractions": (
        "key_ranges",
        tensor("rule.0.stop", lambda one: one.float()),
        "rule.0.stop is torch.float32",
    ),
    "key ranges of other keys": (
        "key_ranges",
        tensor("rule.0.keys", lambda one: one + 1),
        "rule.0.keys is 6; the layer has 5",
    ),
    "a mask of whole numbers": ("rules", tensor("rule.0", lambda one: one.long()), "rule.0 is torch.int64 of 4 axes"),
    "a mask of fewer keys": ("rules", tensor("rule.0", lambda one: one[..., :4]), "rule.0 is .*; it does not fit"),
}


@pytest.mark.parametrize("name", ["whole", "key_ranges", "rules"])
def test_maps_round_trip(files, name):
    maps = AttentionMaps.load(files / name)
    again = AttentionMaps.load(maps.save(files / "again"))
    assert torch.equal(again.weights, maps.weights)
    assert (again.query_tokens, again.key_tokens, again.sites, again.provenance) == (
        maps.query_tokens, maps.key_tokens, maps.sites, maps.provenance)  # fmt: skip


@pytest.mark.parametrize("name", ["whole", "key_ranges", "rules"])
def test_maps_are_an_array_of_numpy(files, name):
    maps = AttentionMaps.load(files / name)
    found = np.asarray(maps)
    assert (found.dtype, found.shape) == (np.float32, maps.shape)
    assert np.array_equal(found, maps.weights.numpy())
    assert np.asarray(maps, dtype=np.float64).dtype == np.float64
    assert np.allclose(np.mean(maps, axis=1), maps.weights.mean(1))


@pytest.mark.parametrize("case", SPOILT)
def test_load_rejects_invalid_content(case, files, tmp_path):
    name, change, says = SPOILT[case]
    with pytest.raises(ValueError, match=f"{tmp_path / 'x'}: .*{says}"):
        AttentionMaps.load(changed(files / name, tmp_path / "x", change))


@pytest.mark.parametrize(
    ("text", "key"), one_at_a_time(["", "{", "[" * 100_000, "x"], ["query_tokens", "provenance", "made"])
)
def test_load_rejects_invalid_json(text, key, files, tmp_path):
    tensors, said = load_tensors(files / "key_ranges")
    save_tensors(tmp_path / "x", tensors, {**said, key: text})
    with pytest.raises(ValueError, match=f"{tmp_path / 'x'}: {key} is (not JSON|nested too deep)"):
        AttentionMaps.load(tmp_path / "x")


def test_lazy_maps_broadcast_single_row_masks(tmp_path):
    """Also where only the last of them are looked at."""
    allowed, x = torch.tensor([True, True, True, False, False])[None, None, None], torch.rand(1, 2, 5, 4)
    model = Calls(lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=allowed))
    wanted = (x[0] @ x[0].mT / 2)[:, 3:5, :3].softmax(-1)
    with look.capture(model, lazy=True) as seen:
        model(x)
    maps = AttentionMaps.from_capture(seen)
    for one in (maps, AttentionMaps.load(maps.save(tmp_path / "x"))):
        for head in range(2):
            made = one.max_pool(0, head, slice(3, 5))
            torch.testing.assert_close(made[:, :3], wanted[head])
            assert not made[:, 3:].any()


def test_masks_that_share_memory_are_kept_apart(tmp_path):
    mask = torch.rand(5, 5, generator=torch.Generator().manual_seed(0)) < 0.5
    mask |= torch.eye(5, dtype=torch.bool)
    first, stops = torch.zeros(1, 1, 5, dtype=torch.int32), (torch.arange(1, 6), torch.full((5,), 3))
    shared = [KeyRanges(first, stop.int()[None, None], 5) for stop in stops]
    for masks in ([mask[None, None], mask.mT[None, None]], shared):
        calls = [AttentionCall(*torch.rand(2, 1, 3, 5, 4), torch.rand(1, 3, 5, 0), one, 0.5) for one in masks]
        maps = AttentionMaps([LazyAttention(call) for call in calls])
        loaded = AttentionMaps.load(maps.save(tmp_path / "x"))
        for layer in range(2):
            torch.testing.assert_close(loaded[layer], maps[layer])


def test_save_rejects_unserializable_provenance(tmp_path):
    deep = "x"
    for _ in range(500):
        deep = [deep]
    for provenance, says in (({"a": deep}, "nested deeper than 100"), ({"a": {1: 2}}, "provenance.a has the key 1;")):
        with pytest.raises(ValueError, match=says):
            AttentionMaps(torch.rand(1, 2, 3, 5), provenance=provenance).save(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
