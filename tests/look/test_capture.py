"""Capture of tfviz models and of raw attention calls, attention maps and measures."""

import functools
import math
import subprocess
import sys

import pytest
import torch
from calls import IDS, PATTERNS, Calls
from small_models import gpt, random
from torch import nn
from torch.nn import functional
from torch.nn.attention import flex_attention as flex
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.overrides import _get_current_function_mode_stack

from tfviz import generate
from tfviz.look import AttentionMaps, capture, dequantize, measures, quantize
from tfviz.models import SelfAttention


def explicit(scores, allowed=None):
    """Softmax by hand, zeros in a row that may look nowhere."""
    strength = scores.double().exp() if allowed is None else scores.double().exp() * allowed
    return (strength / strength.sum(-1, keepdim=True)).nan_to_num(0).float()


def test_pattern_matches_captured_queries_and_keys():
    model = gpt()
    with capture(model, ["*.pattern", "*.scores", "*.query", "*.key", "*.value", "*.attention.out_proj"]) as seen:
        model(IDS)
    for block in ("blocks.0.attention", "blocks.1.attention"):
        query, key, value = (seen[f"{block}.{part}"] for part in ("query", "key", "value"))
        assert query.shape == (2, 3, 5, 2)
        scores, past = query @ key.mT / math.sqrt(2), torch.ones(5, 5).tril()
        torch.testing.assert_close(seen[f"{block}.scores"], scores.masked_fill(past == 0, -torch.inf))
        torch.testing.assert_close(seen[f"{block}.pattern"], explicit(scores, past))
        torch.testing.assert_close(seen[f"{block}.pattern"].sum(-1), torch.ones(2, 3, 5))
        assert torch.equal(seen.allowed(f"{block}.pattern").squeeze(), past.bool())
        mixed = (seen[f"{block}.pattern"] @ value).transpose(1, 2).flatten(2)
        out = model.get_submodule(f"{block}.out_proj")(mixed)
        torch.testing.assert_close(seen[f"{block}.out_proj"], out, rtol=1e-4, atol=1e-5)


def test_sites_are_in_order_of_computation():
    model = gpt()
    with capture(model, "*") as seen:
        logits = model(IDS)
    order = list(seen)
    assert order.index(PATTERNS[0]) < order.index("blocks.0.attention") < order.index(PATTERNS[1])
    assert torch.equal(seen["norm"] @ model.tokens.weight.T, logits)
    assert "blocks.1.attention.pattern: 2 x 3 x 5 x 5" in repr(seen)
    with pytest.raises(KeyError, match="no site matches 'patern'"):
        seen["patern"]


@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-6), (torch.float16, 1e-3), (torch.uint8, 0.004)])
def test_capture_keeps_patterns_in_the_requested_dtype(dtype, error):
    model = gpt()
    with capture(model) as exact:
        model(IDS)
    with capture(model, ["*.pattern", "norm"], dtype=dtype) as seen:
        model(IDS)
    for site in PATTERNS:
        assert seen[site].dtype == dtype
        assert (dequantize(seen[site]) - exact[site]).abs().max() <= error
        assert not dequantize(seen[site]).triu(1).any()
    torch.testing.assert_close(
        dequantize(quantize(torch.tensor([0.0, 1.0, 0.25]))), torch.tensor([0, 1, (128 / 255) ** 2])
    )


@pytest.mark.parametrize(
    "site", [*PATTERNS, "blocks.0.attention.scores", "blocks.1.attention.query", "blocks.0", "*.value"]
)
def test_edits_propagate_and_identity_edits_change_nothing(site):
    model, changed = gpt(), lambda tensor: tensor.roll(1, 1)
    plain = model(IDS)
    with capture(model, site) as untouched:
        torch.testing.assert_close(model(IDS), plain)
    with capture(model, site, edit={site: lambda tensor: tensor}) as same:
        torch.testing.assert_close(model(IDS), plain, rtol=1e-4, atol=1e-5)
    with capture(model, site, edit={site: changed}) as edited:
        moved = model(IDS)
    first = next(iter(edited))
    torch.testing.assert_close(same[first], untouched[first])
    torch.testing.assert_close(edited[first], changed(untouched[first]))
    assert (moved - plain).abs().max() > 1e-3


@pytest.mark.parametrize("name", ["scaled_dot_product_attention", "multi_head_attention_forward"])
def test_capture_sees_through_wrapped_torch_functions(name, monkeypatch):
    layer = nn.TransformerEncoderLayer(6, nhead=3, dim_feedforward=5, batch_first=True)
    x = random(2, 5, 6).requires_grad_()  # so that PyTorch takes the way that calls these functions

    def seen():
        with capture(layer.eval()) as maps:
            layer(x)
        return maps["self_attn.pattern"]

    before, original = seen(), getattr(functional, name)
    monkeypatch.setattr(functional, name, functools.wraps(original)(lambda *args, **more: original(*args, **more)))
    assert torch.equal(seen(), before)


def test_edit_of_another_shape_raises():
    model = gpt()
    with pytest.raises(ValueError, match=rf"{PATTERNS[0]} returned shape \[1, 3, 5, 5\]; .* \[2, 3, 5, 5\]"):
        captured(model, edit={PATTERNS[0]: lambda tensor: tensor[:1]})
    assert_clean(model)


def captured(model, *sites, inputs=IDS, **given):
    with capture(model, *sites, **given) as seen:
        model(inputs)
    return seen


def assert_clean(model):
    """Nothing is left behind: no hook, no mode, no compiler stance."""
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert _get_current_function_mode_stack() == []
    assert torch._dynamo.eval_frame._stance.stance == "default"


def test_generation_is_captured_step_by_step():
    model = gpt()
    with capture(model) as seen:
        tokens = list(generate.ids(model, IDS[0, :3], 4))
    assert_clean(model)
    assert tokens == list(generate.ids(model, IDS[0, :3], 4))
    invocations = seen.over_time(PATTERNS[1])
    assert [tuple(f.shape) for f in invocations] == [(1, 3, 3, 3), (1, 3, 1, 4), (1, 3, 1, 5), (1, 3, 1, 6)]
    assert torch.equal(seen[PATTERNS[1]], invocations[-1])
    whole = captured(model, inputs=torch.tensor([[*IDS[0, :3].tolist(), *tokens[:-1]]]))[PATTERNS[1]]
    torch.testing.assert_close(invocations[-1], whole[:, :, -1:], rtol=1e-4, atol=1e-5)


def fail(_):
    raise RuntimeError("mine")


def test_capture_cleans_up_after_errors():
    model = gpt()
    captured(model)
    assert_clean(model)
    with pytest.raises(RuntimeError, match="mine"), capture(model, edit={"blocks.1": fail}):
        model(IDS)
    assert_clean(model)
    with pytest.raises(IndexError), capture(model):
        model(IDS + 99)
    assert_clean(model)


@pytest.mark.filterwarnings("ignore::UserWarning:torch._dynamo")
def test_compiled_model_is_captured():
    plain = nn.TransformerEncoderLayer(6, 3, 5, batch_first=True, dropout=0.0)
    model, x = torch.compile(plain, backend="eager"), random(2, 5, 6)
    model(x)
    seen = captured(model, inputs=x)
    torch.testing.assert_close(seen["self_attn.pattern"], captured(plain, inputs=x)["self_attn.pattern"])
    assert_clean(plain)
    torch.testing.assert_close(model(x), plain(x))


def test_in_place_operations_do_not_change_captured_tensors():
    model, x = nn.Sequential(nn.Linear(3, 5), nn.ReLU(inplace=True)), random(2, 3)
    expected = model[0](x)
    seen = captured(model, "0", inputs=x)
    assert (expected < 0).any()
    assert torch.equal(seen["0"], expected)


def test_module_called_twice_fires_twice():
    model = nn.Sequential(layer := SelfAttention(), layer)
    x = random(2, 5, 3)
    first, second = captured(model, inputs=x).over_time("0.pattern")
    torch.testing.assert_close(first[:, 0], (x @ x.mT).softmax(-1))
    y = layer(x)
    torch.testing.assert_close(second[:, 0], (y @ y.mT).softmax(-1))


DEAD = (random(5, 7) > -0.5).index_fill(0, torch.tensor([3]), False)
RAW = {
    "plain": {},
    "scale": {"scale": 0.3},
    "causal": {"is_causal": True},
    "bool": {"attn_mask": random(2, 3, 5, 7) > -0.5},
    "one mask": {"attn_mask": random(5, 7) > -0.5},
    "a mask a head": {"attn_mask": random(3, 5, 7) > -0.5},
    "padding": {"attn_mask": (torch.arange(7) < torch.tensor([[4], [6]]))[:, None, None]},
    "float": {"attn_mask": random(2, 1, 5, 7)},
    "dead row": {"attn_mask": DEAD},
    "minus infinity": {"attn_mask": torch.zeros(5, 7).masked_fill(~DEAD, -torch.inf)},
    "dropout": {"dropout_p": 0.5},
}


@pytest.mark.parametrize(
    ("name", "chunk", "queries"),
    [
        *((name, None, 5) for name in RAW),
        *((name, 1, 5) for name in ("causal", "one mask")),
        ("a mask a head", 200, 5),
        *((name, None, 1) for name in ("causal", "one mask")),
    ],
)
def test_sdpa_capture_matches_reference(monkeypatch, name, chunk, queries):
    if chunk:
        monkeypatch.setattr("tfviz.look.attention_call.CHUNK_BYTES", chunk)
    given = dict(RAW[name])
    query, key, value = random(2, 3, 5, 4)[:, :, :queries], random(2, 3, 7, 4), random(2, 3, 7, 6)
    mask = given.get("attn_mask")
    if mask is not None and mask.shape[-2] == 5:
        mask = given["attn_mask"] = mask[..., -queries:, :]
    scores, allowed = query @ key.mT * given.get("scale", 0.5), torch.ones(queries, 7, dtype=torch.bool)
    if mask is not None:
        scores, allowed = (scores, mask) if mask.dtype == torch.bool else (scores + mask, mask > -torch.inf)
    allowed = allowed.tril() if name == "causal" else allowed
    model = Calls(lambda _: functional.scaled_dot_product_attention(query, key, value, **given))
    seen = captured(model, ["pattern", "scores"])
    expected = explicit(scores, allowed.expand(2, 3, queries, 7))
    torch.testing.assert_close(seen["pattern"], expected)
    torch.testing.assert_close(seen["scores"], scores.masked_fill(~allowed, -torch.inf))
    if seen.allowed("pattern") is not None:
        assert torch.equal(seen.allowed("pattern").expand(2, 3, queries, 7), allowed.expand(2, 3, queries, 7))
    if name != "dropout":
        torch.testing.assert_close(model(IDS), expected @ value, rtol=1e-4, atol=1e-5)
        with capture(model, edit={"pattern": lambda pattern: pattern.clone()}):
            torch.testing.assert_close(model(IDS), expected @ value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("dtype", "error"), [(torch.bfloat16, 2e-2), (torch.float16, 2e-3)])
def test_half_precision_patterns_are_float32(dtype, error):
    query, key = random(2, 3, 5, 4).to(dtype), random(2, 3, 7, 4).to(dtype)
    model = Calls(lambda _: functional.scaled_dot_product_attention(query, key, key))
    expected = (query.float() @ key.float().mT / 2).softmax(-1)
    seen = captured(model)
    assert seen["pattern"].dtype == torch.float32
    torch.testing.assert_close(seen["pattern"], expected, rtol=0, atol=error)
    with capture(model, edit={"pattern": torch.zeros_like}):
        assert model(IDS).dtype == dtype


@pytest.mark.parametrize("shape", [(5, 4), (2, 5, 4)])
def test_missing_batch_and_head_axes_are_supported(shape):
    query, key = random(*shape), random(*shape[:-2], 7, 4)
    model = Calls(lambda _: functional.scaled_dot_product_attention(query, key, key))
    expected = (query @ key.mT / 2).softmax(-1)
    torch.testing.assert_close(captured(model)["pattern"][:, 0].view_as(expected), expected)
    with capture(model, edit={"pattern": lambda pattern: pattern * 2}):
        torch.testing.assert_close(model(IDS), 2 * expected @ key)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("kernel", [functional.scaled_dot_product_attention, flex_attention])
def test_grouped_queries_share_keys(kernel):
    query, key, value = random(2, 6, 5, 4), random(2, 3, 7, 4), random(2, 3, 7, 4) + 1
    model = Calls(lambda _: kernel(query, key, value, enable_gqa=True))
    seen = captured(model, ["pattern", "key"])
    assert seen["key"].shape == key.shape
    for head in range(6):
        expected = (query[:, head] @ key[:, head // 2].mT / 2).softmax(-1)
        torch.testing.assert_close(seen["pattern"][:, head], expected)
        torch.testing.assert_close(model(IDS)[:, head], expected @ value[:, head // 2])


BIAS = random(3, 7)
SEEN = [3, 6]
FLEX = {  # arguments of flex_attention, then by hand: the score and whether the key may be seen
    "plain": ({}, lambda s, b, h, q, k: s, lambda b, h, q, k: True),
    "scale": ({"scale": 1.0}, lambda s, b, h, q, k: 2 * s, lambda b, h, q, k: True),
    "mask": ({"block_mask": lambda b, h, q, k: k <= q}, lambda s, b, h, q, k: s, lambda b, h, q, k: k <= q),
    "score": (
        {"score_mod": lambda s, b, h, q, k: torch.tanh(s) + BIAS.cos()[h, k] - 0.1 * (q - k).abs()},
        lambda s, b, h, q, k: math.tanh(s) + math.cos(BIAS[h, k]) - 0.1 * abs(q - k),
        lambda b, h, q, k: True,
    ),
    "both": (
        {
            "score_mod": lambda s, b, h, q, k: s * (h + 1) - b,
            "block_mask": lambda b, h, q, k: (k < torch.tensor(SEEN)[b]) & (q != 2) & (k >= h),
        },
        lambda s, b, h, q, k: s * (h + 1) - b,
        lambda b, h, q, k: k < SEEN[b] and q != 2 and k >= h,
    ),
    "a score that forbids": (
        {"score_mod": lambda s, b, h, q, k: torch.where(k <= q + h, s, -torch.inf)},
        lambda s, b, h, q, k: s,
        lambda b, h, q, k: k <= q + h,
    ),
}


def flex_model(name, **more):
    """A model that calls FlexAttention, its query, key and value, and by hand its scores and where it may look."""
    given, score, allowed = FLEX[name]
    query, key, value = random(2, 3, 5, 4), random(2, 3, 7, 4), random(2, 3, 7, 6)
    given = {**given, **more}
    if "block_mask" in given:
        given["block_mask"] = create_block_mask(given["block_mask"], 2, 3, 5, 7, device="cpu", BLOCK_SIZE=2)
    plain, scores, mask = query @ key.mT / 2, torch.zeros(2, 3, 5, 7), torch.zeros(2, 3, 5, 7, dtype=torch.bool)
    for cell in torch.cartesian_prod(*map(torch.arange, scores.shape)).tolist():
        scores[tuple(cell)] = score(plain[tuple(cell)].item(), *cell)
        mask[tuple(cell)] = allowed(*cell)
    return Calls(lambda _: flex_attention(query, key, value, **given)), (query, key, value), scores, mask


flexed = pytest.mark.parametrize("name", FLEX)
unfused = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")


@pytest.mark.parametrize(("name", "chunk"), [*((name, None) for name in FLEX), ("both", 1)])
@unfused
def test_flex_attention_capture_matches_reference(monkeypatch, name, chunk):
    if chunk:
        monkeypatch.setattr("tfviz.look.attention_call.CHUNK_BYTES", chunk)
    model, (query, key, value), scores, mask = flex_model(name)
    with capture(model, "*") as seen:
        inside = model(IDS)
    assert_clean(model)
    expected = explicit(scores, mask)
    assert list(seen) == ["query", "key", "value", "scores", "pattern", "output_heads"]
    for site, tensor in (("query", query), ("key", key), ("value", value), ("pattern", expected)):
        torch.testing.assert_close(seen[site], tensor)
    torch.testing.assert_close(seen["scores"], scores.masked_fill(~mask, -torch.inf))
    torch.testing.assert_close(inside, expected @ value)
    allowed = seen.allowed("pattern")
    assert mask.all() if allowed is None else torch.equal(allowed.expand(2, 3, 5, 7), mask)
    torch.testing.assert_close(model(IDS), inside)
    assert (dequantize(captured(model, dtype=torch.uint8)["pattern"]) - expected).abs().max() <= 0.004


@flexed
def test_flex_attention_edits_propagate(name):
    model, (*_, value), scores, mask = flex_model(name)
    scores, plain = scores.masked_fill(~mask, -torch.inf), explicit(scores, mask)

    def edited(site, function):
        with capture(model, "*", edit={site: function}) as seen:
            return model(IDS), seen

    torch.testing.assert_close(edited("pattern", lambda p: p)[0], plain @ value)
    torch.testing.assert_close(edited("value", lambda v: v - 1)[0], plain @ (value - 1))
    torch.testing.assert_close(edited("pattern", lambda p: p.roll(1, 1))[0], plain.roll(1, 1) @ value)
    moved, seen = edited("scores", lambda s: s.roll(1, 1))
    torch.testing.assert_close(moved, explicit(scores.roll(1, 1), mask.roll(1, 1)) @ value)
    torch.testing.assert_close(seen["pattern"], plain.roll(1, 1))
    swapped, seen = edited("query", lambda q: q.flip(2))
    torch.testing.assert_close(swapped, seen["pattern"] @ value)
    assert (swapped - plain @ value).abs().max() > 1e-3


@unfused
@pytest.mark.skipif(not hasattr(flex, "AuxRequest"), reason="this PyTorch has none")
def test_flex_attention_keeps_auxiliary_outputs():
    model, _, scores, mask = flex_model("both", return_aux=flex.AuxRequest(lse=True))
    expected = scores.masked_fill(~mask, -torch.inf).logsumexp(-1)
    with capture(model) as seen:
        torch.testing.assert_close(model(IDS)[1].lse, expected)
    assert seen["pattern"].shape == (2, 3, 5, 7)
    with capture(model, edit={"pattern": torch.zeros_like}):
        output, aux = model(IDS)
    assert not output.any()
    torch.testing.assert_close(aux.lse, expected)


FIRST = """
import sys
import torch
from torch import nn
from tfviz.look import capture

class Late(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(6, 6)

    def forward(self, x):
        from torch.nn.attention.flex_attention import flex_attention
        query = self.project(x).unsqueeze(1)
        return torch.compile(flex_attention)(query, query, query)

model, x = nn.Sequential(Late()), torch.randn(2, 5, 6)
assert "torch._dynamo" not in sys.modules
with torch.no_grad(), capture(model) as seen:
    model(x)
    query = model[0].project(x)
torch.testing.assert_close(seen["0.pattern"][:, 0], (query @ query.mT / 6**0.5).softmax(-1))
assert torch._dynamo.eval_frame._stance.stance == "default"
"""


def test_flex_attention_compiled_during_capture_is_seen():
    strict = ["-W", "error", "-W", "ignore::DeprecationWarning"]
    done = subprocess.run([sys.executable, *strict, "-c", FIRST], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr


def maps(weights=None, **given):
    return AttentionMaps(random(2, 3, 5, 7).softmax(-1) if weights is None else weights, **given)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.uint8])
def test_maps_round_trip(tmp_path, dtype):
    rows, cols = ["a", "\ud800", "</script>", "漢", ""], [*"bcdef", "\n", "👩‍👧"]
    weights = (
        quantize(random(2, 3, 5, 7).softmax(-1)) if dtype == torch.uint8 else random(2, 3, 5, 7).softmax(-1).to(dtype)
    )
    given = {"mask": random(3, 1, 7) > 0, "sites": ["x", "y"], "provenance": {"step": 7, "of": [1.5, None]}}
    one = maps(weights, query_tokens=rows, key_tokens=cols, **given)
    one.save(tmp_path / "new" / "maps.safetensors")
    other = AttentionMaps.load(tmp_path / "new" / "maps.safetensors")
    assert (other.query_tokens, other.key_tokens, other.sites, other.provenance) == (
        rows,
        cols,
        ["x", "y"],
        given["provenance"],
    )
    assert all(map(torch.equal, other.layers, one.layers))
    assert other.layers[0].dtype == dtype
    assert torch.equal(other.mask, one.mask)
    assert torch.equal(other.weights, one.weights)
    assert (tmp_path / "new" / "maps.safetensors").stat().st_size < 4000


def test_maps_of_a_capture_match_its_patterns():
    model = gpt()
    seen = captured(model)
    one = AttentionMaps.from_capture(seen, query_tokens="abcde", batch=1, provenance={"step": 3})
    assert (one.shape, one.query_tokens, one.key_tokens, one.sites) == ((2, 3, 5, 5), [*"abcde"], [*"abcde"], PATTERNS)
    assert torch.equal(one[1, 2], seen[PATTERNS[1]][1, 2])
    assert torch.equal(one.allowed(1, 2), torch.ones(5, 5).tril().bool())
    assert one.provenance == {"model": "GPT", "step": 3}
    with pytest.raises(LookupError, match="no pattern was captured, only: norm"):
        AttentionMaps.from_capture(captured(model, "norm"))


def test_entropy_and_distance_match_hand_computed_values():
    weights = torch.tensor([[1.0, 0, 0], [0.5, 0, 0.5], [0.25, 0.5, 0.25]])
    torch.testing.assert_close(measures.entropy(weights), torch.tensor([0, 1, 1.5]) * math.log(2))
    torch.testing.assert_close(measures.mean_distance(weights), torch.tensor([0, 1, 1.0]))


@pytest.mark.parametrize("lazy", [False, True])
def test_pattern_mask_and_shape_are_those_of_the_last_invocation(lazy):
    masks = [torch.ones(5, 5).bool().tril(), torch.ones(5, 4).bool().triu()]
    model = Calls(lambda x, y, mask: functional.scaled_dot_product_attention(x, y, y, mask))
    with capture(model, lazy=lazy) as seen:
        for mask in masks:
            model(random(2, 3, 5, 4), random(2, 3, mask.shape[1], 4), mask)
    invocations = seen.invocations("pattern")
    for (weights, allowed), mask in zip(invocations, masks, strict=True):
        assert torch.equal(allowed.expand(weights.shape), mask.expand(weights.shape))
        assert torch.equal(weights > 0, mask.expand(weights.shape))
    assert torch.equal(seen["pattern"], invocations[-1][0])
    assert torch.equal(seen.allowed("pattern"), invocations[-1][1])
    assert seen.shapes["pattern"] == (2, 3, 5, 4)
