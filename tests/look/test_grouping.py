"""Grouping of captured maps by module name and shape."""

import warnings

import pytest
import torch
from calls import Calls
from torch import nn
from torch.nn import functional

from tfviz import look, view
from tfviz.models import SelfAttention

HEADS, DIM = 3, 6


class Attention(nn.Module):
    """Looks at pictures of one sequence, each alone, as Qwen2-VL does."""

    def __init__(self, written=False):
        super().__init__()
        self.qkv, self.num_heads, self.written = nn.Linear(DIM, 3 * DIM), HEADS, written

    def forward(self, x, sizes):
        query, key, value = self.qkv(x).view(1, -1, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        made = []
        for q, k, v in zip(*(part.split(sizes, 2) for part in (query, key, value))):
            soft = (q @ k.mT).softmax(-1) if self.written else None
            made.append(functional.scaled_dot_product_attention(q, k, v, scale=1.0) if soft is None else soft @ v)
        return torch.cat(made, 2).transpose(1, 2).reshape(-1, DIM)


class Visual(nn.Module):
    def __init__(self, written=False):
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList(Attention(written) for _ in range(2))

    def forward(self, x, sizes):
        for block in self.blocks:
            x = x + block(x, sizes)
        return x


def pictures(sizes, **how):
    model, x = Visual(how.pop("written", False)).eval(), torch.randn(sum(sizes), DIM)
    with torch.no_grad(), look.capture(model, **how) as seen:
        model(x, sizes)
    return model, x, seen


def alone(model, x, sizes, number):
    """The weights of the first layer for one picture by itself."""
    part = x.split(sizes)[number]
    query, key, _ = model.blocks[0].qkv(part).view(-1, 3, HEADS, DIM // HEADS).permute(1, 2, 0, 3)
    return (query @ key.mT).softmax(-1)


@pytest.mark.parametrize("how", [{}, {"written": True}, {"lazy": True}, {"dtype": torch.uint8}])
@pytest.mark.parametrize("invocations", [None, "layers"])
def test_invocations_of_different_sizes_form_separate_groups(how, invocations):
    sizes = [4, 9]
    model, x, seen = pictures(sizes, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = look.groups(seen, invocations=invocations)
    assert list(found) == ["blocks.*, 1 of 2", "blocks.*, 2 of 2"]
    for number, maps in enumerate(found.values()):
        assert maps.shape == (2, HEADS, sizes[number], sizes[number])
        assert maps.sites == [f"blocks.{layer}.pattern, {number + 1} of 2" for layer in (0, 1)]
        assert (maps[0] - alone(model, x, sizes, number)).abs().max() < 0.01


def test_invocations_of_equal_size_share_a_group():
    sizes = [4, 9, 4]
    *_, seen = pictures(sizes)
    found = look.groups(seen)
    assert list(found) == ["blocks.*, 1, 3 of 3", "blocks.*, 2 of 3"]
    assert found["blocks.*, 1, 3 of 3"].sites == [
        f"blocks.{layer}.pattern, {number} of 3" for layer in (0, 1) for number in (1, 3)
    ]


def test_invocations_of_one_size_form_one_group():
    *_, seen = pictures([4, 4])
    with pytest.warns(UserWarning, match="invocations='layers' shows each"):
        assert look.groups(seen)["blocks.*"].shape == (2, HEADS, 4, 4)
    assert look.groups(seen, invocations="layers")["blocks.*"].shape == (4, HEADS, 4, 4)


def test_messages_suggest_groups():
    *_, seen = pictures([4, 9])
    with pytest.warns(UserWarning, match=r"look\.groups\(captured, invocations='layers'\) shows each"):
        assert look.AttentionMaps.from_capture(seen).shape == (2, HEADS, 9, 9)
    with pytest.raises(
        ValueError, match=r"look\.groups\(captured, invocations='layers'\) groups those of the same shape"
    ):
        look.AttentionMaps.from_capture(seen, invocations="layers")
    assert list(look.groups(seen, invocations="last")) == ["blocks.*"]


def test_groups_assign_words_by_invocation_name():
    *_, seen = pictures([2, 3])
    found = look.groups(seen, {"*1 of 2": ["a", "b"], "*2 of 2": ["c", "d", "e"]})
    assert [maps.query_tokens for maps in found.values()] == [["a", "b"], ["c", "d", "e"]]


def test_cached_decoding_stays_one_group():
    model = Calls(lambda query, key: functional.scaled_dot_product_attention(query, key, key))
    with look.capture(model) as seen:
        for queries, keys in ((3, 3), (1, 4), (1, 5)):
            model(torch.randn(1, HEADS, queries, 2), torch.randn(1, HEADS, keys, 2))
    with pytest.warns(UserWarning, match="was computed 3 times, the last is shown"):
        assert look.groups(seen)["attention"].shape == (1, HEADS, 1, 5)
    found = look.groups(seen, invocations="layers")
    assert list(found) == [f"attention, {number} of 3" for number in (1, 2, 3)]


def test_layers_with_different_head_counts_are_grouped_by_shape():
    """Their names would be the same but for the shape."""

    def layer(heads):
        attention = nn.MultiheadAttention(12, heads, batch_first=True)
        return Calls(lambda x: attention(x, x, x)[0], attention=attention)

    model, x = nn.Sequential(*map(layer, (2, 3, 2, 3))), torch.randn(1, 5, 12)
    with look.capture(model) as seen:
        model(x)
    found = look.groups(seen)
    assert list(found) == ["*.attention", "*.attention (3 x 5 x 5)"]
    assert [maps.shape for maps in found.values()] == [(2, 2, 5, 5), (2, 3, 5, 5)]


# --- words by globs: from the beginning of a name, or from a part of its path on


class Side(nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(6, 2, batch_first=True)
        if cross:
            self.encoder_attn = nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, x, states=None):
        x = self.self_attn(x, x, x)[0]
        return x if states is None else self.encoder_attn(x, states, states)[0]


@pytest.mark.parametrize("prefix", ["", "model."])
def test_groups_assign_words_to_encoder_and_decoder(prefix):
    encoder, decoder = Side(False), Side(True)  # named as Marian's are: model.encoder..., model.decoder...encoder_attn
    inner = Calls(lambda source, target: decoder(target, encoder(source)), encoder=encoder, decoder=decoder)
    model = Calls(lambda *given: inner(*given), model=inner)
    with torch.no_grad(), look.capture(model) as seen:
        model(torch.randn(1, 5, 6), torch.randn(1, 3, 6))
    source, target = list("abcde"), list("xyz")
    made = look.groups(seen, {f"{prefix}encoder*": source, f"{prefix}decoder*": target})
    words = {name: (maps.query_tokens, maps.key_tokens) for name, maps in made.items()}
    assert words == {
        "model.encoder.self_attn": (source, source),
        "model.decoder.self_attn": (target, target),
        "model.decoder.encoder_attn": (target, source),
    }
    only = look.groups(seen, {"encoder*": source})
    assert only["model.decoder.encoder_attn"].query_tokens == ["0", "1", "2"]
    with pytest.raises(
        LookupError, match=r"query_tokens: no group matches 'decodr.'; there are: model.encoder.self_attn, "
    ):
        look.groups(seen, {"encoder*": source, "decodr*": target})


def test_stages_of_different_shapes_form_separate_groups():
    class Stages(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.Sequential(SelfAttention(), SelfAttention()), nn.Sequential(SelfAttention())
            self.stages = nn.ModuleList([nn.Sequential(SelfAttention(), SelfAttention()), SelfAttention()])

        def forward(self, x):
            return self.encoder(x), self.decoder(x[:, :4]), self.stages[0](x[:, :3]), self.stages[1](x[:, :2])

    model = Stages()
    with look.capture(model) as seen:
        model(torch.randn(2, 5, DIM))
    words = list("abcde")
    found = look.groups(seen, words, words, batch=1)
    assert {name: maps.shape for name, maps in found.items()} == {
        "encoder.*": (2, 1, 5, 5), "decoder.0": (1, 1, 4, 4), "stages.0.*": (2, 1, 3, 3), "stages.1": (1, 1, 2, 2),
    }  # fmt: skip
    assert (found["encoder.*"].query_tokens, found["decoder.0"].query_tokens) == (words, list("0123"))
    assert torch.equal(found["stages.0.*"][1, 0], seen["stages.0.1.pattern"][1, 0])
    assert look.groups(seen, {"decoder*": list("wxyz")})["decoder.0"].query_tokens == list("wxyz")
    assert "Encoder.*" in view.groups(**found).summary
