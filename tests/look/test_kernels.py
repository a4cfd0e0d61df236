"""Attention kernels outside PyTorch, with stand-ins for flash-attn and xformers."""

import math
import sys
from types import ModuleType

import numpy
import pytest
import torch
from calls import Calls

from tfviz import look
from tfviz.look import capture, edits, external_kernels


def window(queries, keys, before, after):
    return external_kernels.packed_mask(
        torch.tensor([0, queries]), torch.tensor([0, keys]), before, after, queries, keys
    )


B, H, Q, K, D = 2, 3, 4, 6, 8


def computed(q, k, v, scale, allowed):
    """Outside PyTorch: where no capture sees it."""
    scores = numpy.einsum("bqhd,bkhd->bhqk", q.detach().numpy(), k.detach().numpy()) * scale
    scores = numpy.where(allowed, scores, -1e30)
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return torch.from_numpy(numpy.einsum("bhqk,bkhd->bqhd", weights, v.detach().numpy())), torch.from_numpy(weights)


def flash_attn_func(
    q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None
):
    seen = window(q.shape[1], k.shape[1], window_size[0], 0 if causal else window_size[1]).numpy()
    return computed(q, k, v, softmax_scale or q.shape[-1] ** -0.5, seen)[0]


def memory_efficient_attention(query, key, value, attn_bias=None, p=0.0, scale=None, *, op=None):
    return computed(query, key, value, scale or query.shape[-1] ** -0.5, True)[0]


imported = flash_attn_func  # as a model's module has it


MODULES = {"flash_attn.flash_attn_interface": flash_attn_func, "xformers.ops.fmha": memory_efficient_attention}


@pytest.fixture
def packages(monkeypatch):
    for name, function in MODULES.items():
        module = ModuleType(name)
        setattr(module, function.__name__, function)
        monkeypatch.setitem(sys.modules, name, module)
    yield
    external_kernels.KERNELS_BY_FUNCTION.clear()


def random_inputs():
    torch.manual_seed(4)
    return [torch.randn(B, n, H, D) for n in (Q, K, K)]


CALLS = {
    "plain": (lambda q, k, v: imported(q, k, v), None, -1, -1),
    "causal": (lambda q, k, v: imported(q, k, v, causal=True), None, -1, 0),
    "window": (lambda q, k, v: imported(q, k, v, 0.0, 0.3, window_size=(2, 1)), 0.3, 2, 1),
    "xformers": (lambda q, k, v: memory_efficient_attention(q, k, v, scale=0.7), 0.7, -1, -1),
}


@pytest.mark.parametrize("kind", CALLS)
def test_known_kernels_are_captured_and_edited(packages, kind):
    call, scale, before, after = CALLS[kind]
    model, parts = Calls(call), random_inputs()
    plain = model(*parts)
    with capture(model, ["pattern", "scores", "query"]) as seen:
        watched = model(*parts)
    assert torch.equal(plain, watched)
    allowed = window(Q, K, before, after)
    _, weights = computed(*parts, scale or 1 / math.sqrt(D), allowed.numpy())
    torch.testing.assert_close(seen["pattern"], weights, rtol=1e-4, atol=1e-5)
    assert seen["query"].shape == (B, H, Q, D)
    with capture(model, edit={"pattern": edits.zero(1)}):
        edited = model(*parts)
    torch.testing.assert_close(edited[:, :, [0, 2]], plain[:, :, [0, 2]], rtol=1e-4, atol=1e-5)
    assert not edited[:, :, 1].any()


def test_capture_restores_patched_kernels(packages):
    code, defaults, names = flash_attn_func.__code__, flash_attn_func.__defaults__, set(globals())
    model = Calls(CALLS["plain"][0])

    def breaks():
        with capture(model):
            with capture(model):
                model(*random_inputs())
            assert flash_attn_func.__code__ is not code
            raise KeyError

    with pytest.raises(KeyError):
        breaks()
    assert (flash_attn_func.__code__, flash_attn_func.__defaults__) == (code, defaults)
    assert set(globals()) == names
    assert torch.equal(flash_attn_func(*random_inputs()), model(*random_inputs()))


def test_nested_captures_all_see_the_kernel(packages):
    model, parts = Calls(CALLS["causal"][0]), random_inputs()
    with capture(model) as outer, capture(model) as inner:
        model(*parts)
    assert torch.equal(outer["pattern"], inner["pattern"])
    assert len(outer.invocations("pattern")) == 1


def test_unsupported_kernel_options_raise(packages):
    model = Calls(lambda q, k, v: imported(q, k, v, softcap=5.0))
    with (
        pytest.raises(LookupError, match=r"not visible to a capture: pattern \(flash_attn_func with softcap\)"),
        capture(model),
    ):
        model(*random_inputs())


def custom_kernel(values, keys, queries, hide, *, temper=1.0):
    return computed(*(x.transpose(1, 2) for x in (queries, keys, values)), 1 / temper, hide.numpy())[0].transpose(1, 2)


def test_custom_kernel_can_be_registered():
    parts = [x.transpose(1, 2) for x in random_inputs()]
    mask = torch.rand(Q, K) > 0.4
    mask[:, 0] = True
    model = Calls(lambda q, k, v: custom_kernel(v, k, q, mask))
    with pytest.raises(LookupError), capture(model):
        model(*parts)
    look.register_attention_kernel(
        custom_kernel, query="queries", key="keys", value="values", mask="hide", causal=None, axes="b h n d"
    )
    try:
        with capture(model) as seen:
            plain = model(*parts)
    finally:
        external_kernels.KERNELS_BY_FUNCTION.clear()
    scores = (parts[0] @ parts[1].mT / math.sqrt(D)).masked_fill(~mask, -torch.inf)
    torch.testing.assert_close(seen["pattern"], scores.softmax(-1))
    assert plain.shape == (B, H, Q, D)
