"""Capture leaves unusual models unchanged: outputs, gradients, fast paths, transforms, threads and hooks."""

import asyncio
import contextvars
import copy
import threading
import warnings
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from calls import IDS, PATTERNS, Calls
from small_models import gpt, random
from torch import nn
from torch.nn import functional
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.nn.utils.rnn import PackedSequence, pack_sequence
from torch.overrides import _get_current_function_mode_stack
from torch.utils.checkpoint import checkpoint

from tfviz.look import AttentionMaps, capture, dequantize, quantize
from tfviz.models import GPT


class HandWrittenAttention(nn.Module):
    """Attention written out by hand, with a feed-forward behind it."""

    def __init__(self, dim=6, heads=3):
        super().__init__()
        self.qkv, self.ff, self.heads = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), heads

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        soft = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
        return x + self.ff((soft @ v).transpose(1, 2).flatten(2))


def leftovers(model):
    return [m for m in model.modules() if m._forward_hooks or m._forward_pre_hooks] + _get_current_function_mode_stack()


# --- what modules return

Pair = namedtuple("Pair", "states extra")


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda x: Pair(x * 2, "more"), Pair),
        (lambda x: torch.max(x, dim=-1), torch.return_types.max),
        (lambda x: pack_sequence([x[0], x[1][:3]]), PackedSequence),
        (lambda x: (x * 2, None), tuple),
        (lambda x: [x * 2], list),
        (lambda x: {"states": x}, dict),
    ],
)
def test_capture_keeps_output_types(make, kind):
    model, x = Calls(lambda x: model.inner(x), inner=Calls(make)), random(2, 5, 3)
    plain = model(x)
    with capture(model, ["inner*"] if kind not in (list, dict) else []) as seen:
        watched = model(x)
    assert type(watched) is type(plain) is kind
    if kind in (list, dict):
        return
    assert torch.equal(watched[0], plain[0])
    assert torch.equal(seen["inner"], plain[0])
    with capture(model, [], edit={"inner": lambda tensor: tensor + 1}):
        edited = model(x)
    assert type(edited) is kind
    assert torch.equal(edited[0], plain[0] + 1)
    if kind is Pair:
        assert edited.extra == "more"


# --- gradients, checkpointing


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("backward_inside", [True, False])
@pytest.mark.parametrize("kind", ["written", "fused"])
def test_capture_keeps_gradient_checkpointing(reentrant, backward_inside, kind):
    torch.manual_seed(0)
    inner = HandWrittenAttention() if kind == "written" else nn.MultiheadAttention(6, 3, batch_first=True)
    run = inner if kind == "written" else lambda x: inner(x, x, x, need_weights=False)[0]
    model = Calls(lambda x: checkpoint(run, x, use_reentrant=reentrant), inner=inner)
    x, plain = random(2, 5, 6).requires_grad_(), random(2, 5, 6).requires_grad_()
    model(plain).square().sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    with capture(model) as seen:
        out = model(x).square().sum()
        if backward_inside:
            out.backward()
    if not backward_inside:
        out.backward()
    assert torch.equal(x.grad, plain.grad)
    assert all(torch.equal(p.grad, e) for p, e in zip(model.parameters(), expected))
    assert len(seen.over_time("inner.pattern")) == 1
    lies = pytest.raises(ValueError, match=r"inner.pattern lies in .* \(gradient checkpointing\)")
    with lies, capture(model, edit={"*.pattern": torch.zeros_like}):
        model(x)
    assert not leftovers(model)


def test_capture_keeps_gradients_exactly():
    model, x = HandWrittenAttention(), random(2, 5, 6)
    model(x).square().sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    with capture(model, "*") as seen:
        model(x).square().sum().backward()
    assert all(torch.equal(p.grad, e) for p, e in zip(model.parameters(), expected))
    assert not any(tensor.requires_grad for tensor in seen.values())


# --- PyTorch's fast paths


@pytest.mark.filterwarnings("ignore:.*nested.*:UserWarning")
def test_capture_keeps_encoder_fast_path_outputs():
    torch.manual_seed(0)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 5, batch_first=True, dropout=0.0), 3).eval()
    x, padding = random(2, 5, 6), torch.arange(5) >= torch.tensor([[5], [3]])
    with torch.no_grad():
        plain = model(x, src_key_padding_mask=padding)
        assert not plain[padding].any()
        for given in ((x, None, padding), (x,)):
            with capture(model) as seen:
                watched = model(*given) if len(given) > 1 else model(x, src_key_padding_mask=padding)
            assert torch.equal(watched, plain)
            assert len(seen) == 3
        with capture(model, edit={"layers.0.self_attn.pattern": torch.zeros_like}):
            edited = model(x, src_key_padding_mask=padding)
    assert not edited[padding].any()
    assert (edited - plain)[~padding].abs().max() > 1e-3


@pytest.mark.filterwarnings("ignore:.*nested.*:UserWarning")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors_run_and_are_reported(layout):
    torch.manual_seed(0)
    x = torch.nested.nested_tensor([random(5, 6), random(3, 6)], layout=layout)
    strided = torch.nested.nested_tensor([random(2, 5, 3), random(2, 3, 3)])
    parts = strided if layout is torch.strided else x.unflatten(-1, (2, 3)).transpose(1, 2)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 5, batch_first=True), 2).eval()
    heads = Calls(lambda _: functional.scaled_dot_product_attention(parts, parts, parts))
    for model in (encoder, heads) if layout is torch.strided else (heads,):
        with torch.no_grad():
            plain = model(x)
            with pytest.raises(LookupError, match="nested tensors"), capture(model):
                watched = model(x)
            with pytest.warns(UserWarning, match=r"some parts were not captured: .*nested tensors"), capture(model, []):
                model(x)
        assert all(torch.equal(a, b) for a, b in zip(watched.unbind(), plain.unbind(), strict=True))
        assert not leftovers(model)


# --- transforms


def test_func_transforms_run_unchanged_and_are_reported():
    model, many = HandWrittenAttention(), random(4, 2, 5, 6)

    def loss(parameters):
        return torch.func.functional_call(model, parameters, (many[0],)).square().sum()

    for transformed in (lambda: torch.vmap(model)(many), lambda: torch.func.grad(loss)(dict(model.named_parameters()))):
        plain = transformed()
        with pytest.raises(LookupError, match=r"only traced .*torch\.func"), capture(model):
            watched = transformed()
        for one, other in zip(*(out.values() if isinstance(out, dict) else [out] for out in (plain, watched))):
            assert torch.equal(one, other)


# --- calls of scaled_dot_product_attention


def by_hand(query, key, allowed=None, bias=0.0):
    scores = query @ key.mT / query.shape[-1] ** 0.5 + bias
    return (scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)).softmax(-1).nan_to_num(0)


@pytest.mark.filterwarnings("ignore:Lower right causal bias")
@pytest.mark.parametrize("corner", [causal_upper_left, causal_lower_right])
@pytest.mark.parametrize(("queries", "keys"), [(5, 7), (7, 5), (5, 5)])
def test_causal_bias_matches_reference(corner, queries, keys):
    query, key, value = random(2, 3, queries, 4), random(2, 3, keys, 4), random(2, 3, keys, 4)
    model = Calls(lambda: functional.scaled_dot_product_attention(query, key, value, attn_mask=corner(queries, keys)))
    diagonal = 0 if corner is causal_upper_left else keys - queries
    allowed = torch.ones(queries, keys, dtype=torch.bool).tril(diagonal)
    plain = model()
    with capture(model) as seen:
        watched = model()
    torch.testing.assert_close(watched, plain, equal_nan=True)
    torch.testing.assert_close(seen["pattern"], by_hand(query, key, allowed))
    assert torch.equal(seen.allowed("pattern").squeeze(), allowed)


def test_five_axes_with_broadcast_bias_match_reference():
    query, key, bias = random(2, 3, 4, 5, 6), random(2, 3, 4, 7, 6), random(3, 1, 5, 7)
    model = Calls(lambda: functional.scaled_dot_product_attention(query, key, key, attn_mask=bias))
    expected = by_hand(query, key, bias=bias)
    with capture(model) as seen:
        torch.testing.assert_close(model(), expected @ key)
    torch.testing.assert_close(seen["pattern"], expected.flatten(0, 1))
    with capture(model, edit={"pattern": lambda pattern: pattern * 2}):
        torch.testing.assert_close(model(), 2 * expected @ key)


@pytest.mark.parametrize("shared", ["query", "key", "heads"])
def test_broadcast_queries_and_keys_match_reference(shared):
    query = random(1 if shared == "query" else 2, 3, 5, 4)
    key = random(1 if shared == "key" else 2, 1 if shared == "heads" else 3, 7, 4)
    model = Calls(lambda: functional.scaled_dot_product_attention(query, key, key))
    expected = by_hand(query, key)
    with capture(model) as seen:
        torch.testing.assert_close(model(), expected @ key)
    torch.testing.assert_close(seen["pattern"], expected)
    with capture(model, edit={"pattern": lambda pattern: pattern.clone()}):
        torch.testing.assert_close(model(), expected @ key)


@pytest.mark.parametrize("kind", ["fused", "written", "keyword"])
def test_attention_without_keys_runs_unchanged(kind):
    query, key = random(2, 3, 5, 4), random(2, 3, 0, 4)
    calls = {
        "fused": lambda: functional.scaled_dot_product_attention(query, key, key),
        "written": lambda: (query @ key.mT).softmax(-1) @ key,
        "keyword": lambda: torch.softmax(input=query @ key.mT, dim=-1) @ key,
    }
    model = Calls(calls[kind])
    plain = model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with capture(model, ["*"]):
                watched = model()
        except LookupError:
            pass
    assert torch.equal(watched, plain)


@pytest.mark.parametrize("site", ["scores", "pattern"])
def test_edit_may_return_an_expanded_tensor(site):
    layer, x = nn.MultiheadAttention(6, 3, batch_first=True), random(2, 5, 6)
    with torch.no_grad(), capture(layer, edit={site: lambda tensor: torch.full((), 0.2).expand(tensor.shape)}):
        edited, _ = layer(x, x, x)
    even = layer.out_proj(functional.linear(x.mean(1), layer.in_proj_weight[12:], layer.in_proj_bias[12:]))
    torch.testing.assert_close(edited, even[:, None].expand(2, 5, 6), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("edit", [None, {"pattern": lambda pattern: pattern.clone()}])
def test_autocast_does_not_round_captured_patterns(edit):
    query, key = random(2, 3, 5, 4) * 3, random(2, 3, 7, 4) * 3
    model = Calls(lambda: functional.scaled_dot_product_attention(query, key, key))
    with torch.autocast("cpu", torch.bfloat16), capture(model, edit=edit) as seen:
        model()
        assert torch.is_autocast_enabled("cpu")
    torch.testing.assert_close(seen["pattern"], by_hand(query, key))


# --- copies, threads, tasks, captures in captures


def test_model_copied_during_capture_has_no_hooks():
    model = gpt()
    with capture(model):
        twin = copy.deepcopy(model)
        model(IDS)
    assert not leftovers(twin)
    assert torch.equal(twin(IDS), model(IDS))


def test_threads_capture_independently():
    model, texts = gpt(), torch.randint(11, (20, 1, 5), generator=torch.Generator().manual_seed(1))
    expected = []
    for ids in texts:
        with capture(model) as seen:
            model(ids)
        expected.append(seen[PATTERNS[1]])
    together = threading.Barrier(4)

    def watch(ids):
        with capture(model) as seen:
            together.wait()  # four captures are open at a time
            model(ids)
            together.wait()
        return seen

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(watch, texts))
    for seen, pattern in zip(found, expected, strict=True):
        assert len(seen.over_time(PATTERNS[1])) == 1
        assert torch.equal(seen[PATTERNS[1]], pattern)
    assert not leftovers(model)


def test_calls_in_another_thread_are_not_captured():
    model = gpt()
    with capture(model) as plain:
        model(IDS)
    with ThreadPoolExecutor(4) as early, capture(model) as seen, ThreadPoolExecutor(4) as late:
        early.submit(model, IDS.flip(0)).result()
        late.submit(model, IDS.flip(0)).result()
        model(IDS)
        list(early.map(model, [IDS.flip(0)] * 20))
    assert len(seen.over_time(PATTERNS[1])) == 1
    assert torch.equal(seen[PATTERNS[1]], plain[PATTERNS[1]])
    with (
        pytest.raises(LookupError, match=r"called in another thread, .* contextvars.copy_context\(\)"),
        ThreadPoolExecutor(1) as pool,
        capture(model),
    ):
        pool.submit(model, IDS).result()


def test_thread_with_copied_context_is_captured():
    model = gpt()
    with capture(model) as seen, ThreadPoolExecutor(1) as pool:
        pool.submit(contextvars.copy_context().run, model, IDS).result()
    assert len(seen.over_time(PATTERNS[1])) == 1


def test_async_tasks_capture_independently():
    model = gpt()

    async def watch(number, first, second):
        with capture(model) as seen:
            for event, other in ((first, second),):
                model(IDS[number : number + 1])
                event.set()
                await other.wait()
                model(IDS[number : number + 1])
            await asyncio.sleep(0)
        return seen

    async def both():
        one, two = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(watch(0, one, two), watch(1, two, one))

    with ThreadPoolExecutor(1) as thread:  # of its own: a browser driven by this process has its loop running here
        both_seen = thread.submit(asyncio.run, both()).result()
    for number, seen in enumerate(both_seen):
        with capture(model) as alone:
            model(IDS[number : number + 1])
        assert len(seen.over_time(PATTERNS[0])) == 2
        assert torch.equal(seen[PATTERNS[0]], alone[PATTERNS[0]])
    assert not leftovers(model)


@pytest.mark.parametrize("model", [gpt(), nn.Sequential(HandWrittenAttention(), HandWrittenAttention())])
def test_nested_captures_match_single_captures(model):
    inputs = IDS if isinstance(model, GPT) else random(2, 5, 6)
    with capture(model, "*") as alone:
        plain = model(inputs)
    with capture(model, "*") as outer, capture(model, "*") as inner:
        assert torch.equal(model(inputs), plain)
    for seen in (outer, inner):
        assert list(seen) == list(alone)
        assert all(len(seen.over_time(site)) == len(alone.over_time(site)) for site in alone)
        assert all(torch.equal(seen[site], alone[site]) for site in alone)
    first = next(site for site in alone if site.endswith("pattern"))
    with capture(model) as outer, capture(model, first, edit={first: torch.zeros_like}) as inner:
        edited = model(inputs)
    assert not outer[first].any()
    assert not inner[first].any()
    assert (edited - plain).abs().max() > 1e-3


def test_softmax_after_caught_exception_is_not_captured():
    model = gpt()
    with capture(model, "*") as seen:
        with pytest.raises(ValueError, match="positions are needed"):
            model(IDS.repeat(1, 3))
        random(2, 3, 5, 5).softmax(-1)
        model(IDS)
    assert [site for site in seen if site.endswith("pattern")] == PATTERNS
    assert len(seen.over_time(PATTERNS[0])) == 1
    assert not leftovers(model)


def test_capture_sees_outputs_of_user_hooks():
    model = gpt()
    handle = model.blocks[0].register_forward_hook(lambda module, args, out: out + 1)
    plain = model(IDS)
    with capture(model, ["blocks.0", "blocks.1"]) as seen, capture(model, "blocks.0", edit={"blocks.0": lambda t: t}):
        assert torch.equal(model(IDS), plain)
    handle.remove()
    with capture(model, "blocks.0") as without:
        model(IDS)
    torch.testing.assert_close(seen["blocks.0"], without["blocks.0"] + 1)
    assert len(seen.over_time("blocks.0")) == 1


# --- what cannot be seen is told truly


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
def test_torchscript_models_raise():
    layer, x = HandWrittenAttention(), random(2, 5, 6)
    for other in (torch.jit.trace(layer, x), torch.jit.script(nn.Linear(3, 2))):
        with (
            pytest.raises(ValueError, match=r"scripted or traced \(TorchScript\).* capture the original model"),
            capture(other),
        ):
            pass
    part = nn.Sequential(nn.Linear(6, 6), torch.jit.trace(layer, x))
    hidden = pytest.raises(LookupError, match=r"no attention was seen in it; not visible to a capture: 1 \(TorchScript")
    with hidden, capture(part):
        part(x)


def test_exported_model_raises():
    model, x = HandWrittenAttention(), random(2, 5, 6)
    exported = torch.export.export(model, (x,)).module()
    told = pytest.raises(LookupError, match=r"no attention was seen in it; not visible to a capture: an exported graph")
    with told, capture(exported):
        watched = exported(x)
    assert torch.equal(watched, model(x))


def test_direct_forward_call_raises():
    layer, x = Calls(lambda x: (x @ x.mT).softmax(-1) @ x), random(2, 5, 6)
    told = pytest.raises(LookupError, match=r"not called inside the `with` block")
    with told, capture(layer):
        layer.forward(x)
    model = gpt()
    with capture(model) as seen:  # its parts are called as they should be
        model.forward(IDS)
    assert list(seen) == PATTERNS


def test_model_without_attention_raises():
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU())
    told = pytest.raises(LookupError, match=r"no attention was seen in it\. .*the other sites here are 0, 1")
    with told, capture(model):
        model(random(2, 3))


# --- uint8


@pytest.mark.parametrize("kind", ["fused", "written"])
def test_uint8_patterns_match_float_patterns(kind):
    query, key = random(2, 3, 5, 4), random(2, 3, 7, 4)
    query[1, 2, 3] = torch.nan
    fused = Calls(lambda: functional.scaled_dot_product_attention(query, key, key))
    model = fused if kind == "fused" else Calls(lambda: (query @ key.mT / 2).softmax(-1) @ key)
    for edit in (None, {"pattern": lambda pattern: pattern * 3}, {"pattern": lambda pattern: -pattern}):
        with capture(model, edit=edit) as exact:
            model()
        with capture(model, dtype=torch.uint8, edit=edit) as small:
            model()
        torch.testing.assert_close(dequantize(small["pattern"]), exact["pattern"], equal_nan=True, rtol=0, atol=0.004)
    maps = AttentionMaps.from_capture(small, batch=1)
    with pytest.raises(ValueError, match="NaN"):
        maps.as_uint8(0, 2)
    for wrong in (torch.tensor([0.5, torch.nan]), torch.tensor([1.5]), torch.tensor([-0.1])):
        with pytest.raises(ValueError, match="below 0, above 1, or NaN"):
            quantize(wrong)


def test_over_time_joins_uint8_and_float_invocations():
    strengths = iter([1.0, 3.0])
    x = random(2, 3, 5, 7)
    model = Calls(lambda: x.softmax(-1) @ random(2, 3, 7, 4))
    with capture(model, dtype=torch.uint8, edit={"pattern": lambda pattern: pattern * next(strengths)}) as seen:
        model()
        model()
    maps = AttentionMaps.over_time(seen)
    torch.testing.assert_close(
        maps[0, 1], torch.cat([x[0, 1].softmax(-1), 3 * x[0, 1].softmax(-1)]), rtol=0, atol=0.004
    )


@pytest.mark.parametrize("fused", [True, False])
def test_fully_masked_rows_are_zero_even_with_nan_queries(fused):
    """As after a layer whose softmax over nothing gave NaN; NaN that a query may see stays NaN."""

    def attend(query, key, mask):
        if fused:
            return functional.scaled_dot_product_attention(query, key, key, mask)
        return (query @ key.mT).masked_fill(~mask, -torch.inf).softmax(-1) @ key

    query, key = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4)
    query[:, :, 1:] = torch.nan
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[1] = False
    with capture(model := Calls(attend)) as seen:
        model(query, key, mask)
    assert torch.equal(seen["pattern"][:, :, 1], torch.zeros(1, 2, 5))
    assert seen["pattern"][:, :, 2].isnan().all()
    allowed = seen.allowed("pattern").expand(1, 2, 3, 5)
    assert torch.equal(allowed, mask.expand(1, 2, 3, 5))
