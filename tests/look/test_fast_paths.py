"""Capture does not change how a model runs: compiled kernels, fast paths, packed texts, tracing and interrupts."""

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from calls import IDS, PATTERNS, Calls
from combinations import one_at_a_time
from small_models import gpt, random
from torch import nn
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from torch.utils.flop_counter import FlopCounterMode

from tfviz import portable
from tfviz.look import AttentionMaps, capture, register_attention_kernel
from tfviz.look.external_kernels import KERNELS_BY_FUNCTION

INT = {"dtype": torch.int32}


class Flex(nn.Module):
    def __init__(self, kernel, mask):
        super().__init__()
        self.kernel, self.mask = kernel, mask

    def forward(self, q, k, v):
        return self.kernel(q, k, v, block_mask=self.mask)


def by_hand():
    """Two rows of blocks: the first row sees its first block, the second both, its second as far as the rule allows."""
    listed = torch.tensor([[[1, 1]]], **INT), torch.tensor([[[[0, 1], [1, 0]]]], **INT)
    full = torch.tensor([[[0, 1]]], **INT), torch.tensor([[[[0, 1], [0, 1]]]], **INT)
    return BlockMask.from_kv_blocks(*listed, *full, BLOCK_SIZE=128, mask_mod=lambda b, h, q, k: q >= k)


def blocks_alone():
    return BlockMask.from_kv_blocks(
        torch.tensor([[[1, 1]]], **INT), torch.tensor([[[[1, 0], [0, 1]]]], **INT), BLOCK_SIZE=128
    )


def allowed_cells(mask):
    cells = torch.zeros(256, 256, dtype=torch.bool)
    if mask is by_hand:
        cells[:128, :128] = cells[128:, 128:] = torch.ones(128, 128).tril().bool()
        cells[128:, :128] = True
    else:
        cells[:128, 128:] = cells[128:, :128] = True
    return cells


@pytest.mark.parametrize(("mask", "compiled"), [(blocks_alone, "kernel"), (by_hand, "model"), (blocks_alone, "not")])
def test_flex_block_masks_match_compiled_kernels(mask, compiled):
    q, k, v = (random(1, 2, 256, 16) for _ in range(3))
    model = Flex(torch.compile(flex_attention) if compiled == "kernel" else flex_attention, mask())
    run = torch.compile(model) if compiled == "model" else model
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = run(q, k, v)
        with capture(run) as seen:
            captured = run(q, k, v)
        with capture(run, lazy=True) as lazy:
            run(q, k, v)
    torch.testing.assert_close(captured, plain, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(seen["pattern"] @ v, plain, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(lazy["pattern"], seen["pattern"], rtol=1e-4, atol=1e-6)
    if compiled != "not":
        assert torch.equal(seen.allowed("pattern").expand(1, 1, 256, 256)[0, 0], allowed_cells(mask))


def encoder(norm_first=False, layers=2):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(12, 2, 20, batch_first=True, norm_first=norm_first)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).eval()


def alibi(size=5):
    gap = torch.arange(size)[:, None] - torch.arange(size)
    return (-gap.float() / 2).masked_fill(gap < 0, -torch.inf)


MASKS = {
    "alibi": alibi(),
    "nowhere": torch.full((5, 5), 0.7),
    "causal": nn.Transformer.generate_square_subsequent_mask(5),
    "some": torch.tensor([[0.0, 1.0, 0.0, 0.0, -2.0]]).repeat(5, 1),
}


@pytest.mark.parametrize(("mask", "padded", "norm_first"), one_at_a_time(MASKS, [False, True], [False, True]))
def test_float_masks_match_encoder_fast_path(mask, padded, norm_first):
    model, x, added = encoder(norm_first), random(2, 5, 12), MASKS[mask]
    padding = torch.tensor([[0.0] * 5, [0.0] * 4 + [-torch.inf]]) if padded else None
    with torch.no_grad():
        plain = model(x, mask=added, src_key_padding_mask=padding)
        with capture(model) as seen:
            captured = model(x, mask=added, src_key_padding_mask=padding)
    assert torch.equal(captured.isnan(), plain.isnan())
    torch.testing.assert_close(captured.nan_to_num(), plain.nan_to_num(), rtol=1e-4, atol=1e-5)
    first = seen["layers.0.self_attn.pattern"]
    forbidden = (added != 0).expand(2, 2, 5, 5) if mask != "causal" else (added == -torch.inf).expand(2, 2, 5, 5)
    assert not first[forbidden].any()
    own = model.layers[0].self_attn
    if not norm_first and mask in ("alibi", "some"):
        weights = own(x, x, x, attn_mask=added != 0, key_padding_mask=None if padding is None else padding != 0)[1]
        torch.testing.assert_close(first.mean(1), weights.detach().nan_to_num(), rtol=1e-4, atol=1e-5)
    assert ("fast path" in seen.summary) == (mask != "causal")


@pytest.mark.parametrize("mask", [None, "some"])
def test_float_padding_matches_layer_fast_path(mask):
    layer, x = encoder().layers[0], random(2, 5, 12)
    how = {"src_mask": mask and MASKS[mask], "src_key_padding_mask": torch.tensor([[0.0] * 4 + [-1.0], [0.0] * 5])}
    with torch.no_grad():
        plain = layer(x, **how)
        with capture(layer) as seen:
            captured = layer(x, **how)
    torch.testing.assert_close(captured.nan_to_num(), plain.nan_to_num(), rtol=1e-4, atol=1e-5)
    assert not seen["self_attn.pattern"][0, :, :, 4].any()
    assert "fast path" in seen.summary


def test_float_masks_are_added_with_gradients():
    model, x = encoder(), random(2, 5, 12)
    with capture(model) as seen:
        captured = model(x, mask=alibi())
    torch.testing.assert_close(captured, model(x, mask=alibi()), rtol=1e-4, atol=1e-5)
    assert seen["layers.0.self_attn.pattern"][0, 0, 4].gt(0).all()
    assert "fast path" not in seen.summary


# --- texts without an axis of their own, and packed ones

Q, K, H, D = 5, 7, 3, 4


def unbatched(q, k, v, causal=False):
    """position head dim"""
    weights = torch.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
    with torch._C.DisableTorchFunction():
        return torch.einsum("hqk,khd->qhd", weights.softmax(-1), v)


def heads_first(q, k, v, causal=False):
    """head position dim"""
    with torch._C.DisableTorchFunction():
        return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v


def packed(q, k, v, cu_seqlens_q, cu_seqlens_k, causal=False, softmax_scale=None):
    """position head dim, text after text"""
    out = torch.empty_like(q)
    with torch._C.DisableTorchFunction():
        for (a, b), (c, d) in zip(*(zip(s[:-1].tolist(), s[1:].tolist()) for s in (cu_seqlens_q, cu_seqlens_k))):
            scores = torch.einsum("qhd,khd->hqk", q[a:b], k[c:d]) * (softmax_scale or q.shape[-1] ** -0.5)
            if causal:
                hidden = torch.ones(b - a, d - c).triu(d - c - (b - a) + 1).bool()
                scores = scores.masked_fill(hidden, -torch.inf)
            out[a:b] = torch.einsum("hqk,khd->qhd", scores.softmax(-1).nan_to_num(), v[c:d])
    return out


@pytest.fixture
def registered():
    before = dict(KERNELS_BY_FUNCTION)
    yield register_attention_kernel
    KERNELS_BY_FUNCTION.clear()
    KERNELS_BY_FUNCTION.update(before)


@pytest.mark.parametrize(("kernel", "axes"), [(unbatched, "n h d"), (heads_first, "h n d")])
def test_registered_kernel_without_batch_axis_is_captured(registered, kernel, axes):
    registered(kernel, axes=axes)
    sizes = [(n, H, D) if axes == "n h d" else (H, n, D) for n in (Q, K, K)]
    q, k, v = (random(*size) for size in sizes)
    model = Calls(lambda *given: kernel(*given))
    with capture(model) as seen:
        out = model(q, k, v)
    assert seen["pattern"].shape == (1, H, Q, K)
    made = torch.einsum("hqk,khd->qhd", seen["pattern"][0], v) if axes == "n h d" else seen["pattern"][0] @ v
    torch.testing.assert_close(made, out, rtol=1e-4, atol=1e-5)
    with capture(model, edit={"pattern": lambda weights: weights.flip(-1)}):
        edited = model(q, k, v)
    assert edited.shape == out.shape
    assert (edited - out).abs().max() > 1e-3


@pytest.mark.parametrize("causal", [False, True])
def test_packed_texts_attend_only_within_themselves(registered, causal):
    registered(packed, cu_seqlens=("cu_seqlens_q", "cu_seqlens_k"), axes="n h d", scale="softmax_scale")
    starts = torch.tensor([0, 2, 5]), torch.tensor([0, 4, 7])
    q, k, v = (random(n, H, D) for n in (5, 7, 7))
    model = Calls(lambda *given: packed(*given, *starts, causal=causal, softmax_scale=0.6))
    with capture(model) as seen:
        out = model(q, k, v)
    weights = seen["pattern"]
    assert weights.shape == (1, H, 5, 7)
    assert not weights[0, :, :2, 4:].any()
    assert not weights[0, :, 2:, :4].any()
    torch.testing.assert_close(torch.einsum("hqk,khd->qhd", weights[0], v), out, rtol=1e-4, atol=1e-5)
    allowed = seen.allowed("pattern").expand(1, 1, 5, 7)[0, 0].int().tolist()
    rows = [[1, 1, 1, causal ^ 1, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0]]
    rows += [[0, 0, 0, 0, 1, causal ^ 1, causal ^ 1], [0, 0, 0, 0, 1, 1, causal ^ 1], [0, 0, 0, 0, 1, 1, 1]]
    assert allowed == rows


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (2, 0)])
def test_torch_varlen_attention_is_captured(monkeypatch, window):
    varlen = pytest.importorskip("torch.nn.attention.varlen")

    def kernel(q, k, v, starts, others, *_, scale=None, **__):
        out = torch.empty_like(q)
        for a, b in zip(starts[:-1].tolist(), starts[1:].tolist()):
            gap = torch.arange(b - a)[:, None] - torch.arange(b - a)
            hidden = (gap < 0) & (window[1] == 0) | (gap > 2) & (window[0] == 2)
            scores = torch.einsum("qhd,khd->hqk", q[a:b], k[a:b]) / q.shape[-1] ** 0.5
            out[a:b] = torch.einsum("hqk,khd->qhd", scores.masked_fill(hidden, -torch.inf).softmax(-1), v[a:b])
        return out, None, None

    class Ops:
        _varlen_attn = staticmethod(kernel)

    monkeypatch.setattr(torch.ops, "torch_attn", Ops, raising=False)
    starts = torch.tensor([0, 4, 9], **INT)
    q, k, v = (random(9, H, D) for _ in range(3))
    model = Calls(lambda *given: varlen.varlen_attn(*given, starts, starts, 5, 5, window_size=window))
    with capture(model) as seen, torch._C.DisableTorchFunction():
        pass_through = model(q, k, v)
    torch.testing.assert_close(torch.einsum("hqk,khd->qhd", seen["pattern"][0], v), pass_through, rtol=1e-4, atol=1e-5)


# --- calls in which no numbers flow


def test_export_works_inside_a_capture():
    model = gpt()
    with capture(model) as seen:
        program = portable.export(model, IDS[:1])
        exported = torch.export.export(model, (IDS,), strict=False)
        model(IDS)
    assert len(seen.over_time(PATTERNS[0])) == 1
    torch.testing.assert_close(program(IDS[:1])[program.outputs[0]], model(IDS[:1]), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(exported.module()(IDS), model(IDS), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("how", ["jit", "fx", "fake", "meta"])
def test_traced_and_meta_calls_are_ignored(how):
    from torch._subclasses.fake_tensor import FakeTensorMode

    class Written(nn.Module):
        def forward(self, x):
            return (x @ x.mT).softmax(-1) @ x

    model, x = Written(), random(2, 5, 6)

    def trace():
        if how == "jit":
            return torch.jit.trace(model, x, check_trace=False)(x)
        if how == "fx":
            return torch.fx.symbolic_trace(model)(x)
        if how == "meta":
            return model(x.to("meta"))
        with FakeTensorMode() as mode:
            return model(mode.from_tensor(x))

    with capture(model) as seen:
        assert trace().shape == (2, 5, 6)
        model(x)
    assert len(seen.over_time("pattern")) == 1
    message = (
        "was not called inside the `with` block" if how == "fx" else "the model was only traced"
    )  # FX calls `forward`
    with pytest.raises(LookupError, match=message), capture(model):
        trace()


def test_capture_adds_no_counted_flops():
    model = gpt()
    with FlopCounterMode(display=False) as plain:
        model(IDS)
    with FlopCounterMode(display=False) as watched, capture(model):
        model(IDS)
    assert watched.get_total_flops() == plain.get_total_flops()


# --- small truths


def test_maps_captured_under_dropout_report_the_rate():
    layer, x = nn.MultiheadAttention(6, 2, dropout=0.25, batch_first=True), random(3, 5, 6)
    with capture(layer) as seen:
        layer(x, x, x)
    assert "1 in training mode, and the maps show weights before dropout" in seen.summary
    maps = AttentionMaps.from_capture(seen)
    assert maps.provenance["dropout"] == 0.25
    assert repr(maps).endswith("taken in training: before a dropout of 0.25")
    layer.eval()
    with capture(layer) as seen:
        layer(x, x, x)
    assert "dropout" not in seen.summary + repr(AttentionMaps.from_capture(seen))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.uint8])
def test_dtype_applies_only_to_patterns(dtype):
    model, x = nn.TransformerEncoderLayer(6, 2, 8, batch_first=True).bfloat16(), random(3, 5, 6).bfloat16()
    with torch.no_grad(), capture(model, ["*.query", "*.pattern", "linear1"], dtype=dtype) as seen:
        model(x)
    kinds = {site.rpartition(".")[2]: seen[site].dtype for site in seen}
    assert kinds == {"query": torch.bfloat16, "pattern": dtype, "linear1": torch.bfloat16}


# --- interrupts


def test_capture_cleans_up_after_interrupts():
    command = [sys.executable, str(Path(__file__).with_name("interrupted.py")), "53"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    whole, moments, modes_of_torch = done.stdout.split()
    assert whole == "whole"
    assert int(moments) > 100
    assert int(modes_of_torch) < 0.02 * int(moments)


class LastThenSecond(nn.Module):
    """Eleven encoder layers, of which the last runs first, then the second, whose first query sees nothing."""

    def __init__(self):
        super().__init__()
        layers = [nn.TransformerEncoderLayer(8, 2, 16, batch_first=True) for _ in range(11)]
        self.layers = nn.ModuleList(layers).eval()

    @torch.no_grad()
    def forward(self, x):
        return self.layers[1](self.layers[10](x), src_mask=torch.tensor([[1.0] * 3, [0.0] * 3, [0.0] * 3]))


def test_edit_of_layer_1_does_not_match_layer_10():
    model, x = LastThenSecond(), random(2, 3, 8)
    alone = model(x)
    assert alone[:, 0].isnan().all()  # as the fast path leaves a row without keys
    assert not alone[:, 1:].isnan().any()
    with capture(model, "layers.10", edit={"layers.10": lambda output: output * 1}):
        seen = model(x)
    torch.testing.assert_close(seen, alone, equal_nan=True)
    with capture(model, "layers.10", edit={"layers.1.linear2": lambda output: output * 1}):
        assert not model(x).isnan().any()  # an edited layer is computed in steps
