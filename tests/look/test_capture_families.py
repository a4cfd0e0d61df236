"""Capture of PyTorch's own attention modules and of Hugging Face models."""

import math

import pytest
import torch
from combinations import all_pairs
from small_models import random
from small_transformers import small_model, transformers
from torch import nn
from torch.nn import functional

from tfviz.look import AttentionMaps, capture

transformers.logging.set_verbosity_error()

LENGTHS = torch.tensor([5, 3])
PADDED = torch.arange(5) >= LENGTHS[:, None]


def by_hand(layer, query, key, forbidden=0.0):
    """The weights of `nn.MultiheadAttention`, batch first: batch head query key."""
    weights = layer.in_proj_weight.chunk(3) if layer._qkv_same_embed_dim else (layer.q_proj_weight, layer.k_proj_weight)
    bias = layer.in_proj_bias.chunk(3)
    query = functional.linear(query, weights[0], bias[0]).unflatten(-1, (layer.num_heads, -1))
    key = functional.linear(key, weights[1], bias[1]).unflatten(-1, (layer.num_heads, -1))
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(layer.head_dim)
    return (scores + forbidden).softmax(-1)


@pytest.mark.parametrize(
    ("mask", "training", "need_weights", "batch_first"),
    all_pairs(["none", "bool", "float", "padding"], *[[True, False]] * 3),
)
def test_multihead_attention_matches_reference(training, need_weights, batch_first, mask):
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(6, 3, kdim=4, vdim=7, batch_first=batch_first, dropout=0.3).train(training)
    nn.init.normal_(layer.in_proj_bias)
    inputs = random(2, 5, 6), random(2, 5, 4), random(2, 5, 7)
    triangle = torch.ones(5, 5).triu(1).bool()
    added = random(5, 5).masked_fill(triangle, -torch.inf)
    forbidden = {"none": 0.0, "bool": triangle * -1e9, "float": added, "padding": PADDED[:, None, None] * -1e9}[mask]
    given = {"bool": {"attn_mask": triangle}, "float": {"attn_mask": added}, "padding": {"key_padding_mask": PADDED}}
    turned = inputs if batch_first else [part.transpose(0, 1) for part in inputs]
    torch.manual_seed(3)
    plain, weights = layer(*turned, need_weights=need_weights, **given.get(mask, {}))
    torch.manual_seed(3)
    with capture(layer, "pattern") as seen:
        watched, again = layer(*turned, need_weights=need_weights, **given.get(mask, {}))
    torch.testing.assert_close(seen["pattern"], by_hand(layer, *inputs[:2], forbidden))
    torch.testing.assert_close(watched, plain)
    assert (weights is None) == (again is None) == (not need_weights)
    if need_weights:
        torch.testing.assert_close(again, weights)
    with capture(layer, edit={"pattern": torch.zeros_like}):
        silent, _ = layer(*turned, need_weights=need_weights, **given.get(mask, {}))
    torch.testing.assert_close(silent, layer.out_proj.bias.expand_as(silent))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("heads", [1, 3])
def test_multihead_attention_without_batch_axis(training, heads):
    layer, x = nn.MultiheadAttention(6, heads).train(training), random(5, 6)
    for need_weights in (True, False):
        with capture(layer) as seen:
            layer(x, x, x, need_weights=need_weights)
        torch.testing.assert_close(seen["pattern"], by_hand(layer, x[None], x[None]))


@pytest.mark.filterwarnings("ignore:.*nested.*:UserWarning")
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("padded", [PADDED, None])
def test_transformer_encoder_matches_reference(training, padded):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(6, 2, dim_feedforward=5, batch_first=True, dropout=0.0)
    model, x = nn.TransformerEncoder(layer, 3).train(training), random(2, 5, 6)
    for p in model.parameters():
        nn.init.normal_(p, std=0.5)
    plain = model(x, src_key_padding_mask=padded)
    with capture(model, "*.pattern") as seen:
        watched = model(x, src_key_padding_mask=padded)
    assert list(seen) == [f"layers.{i}.self_attn.pattern" for i in range(3)]
    for layer, site in zip(model.layers, seen, strict=True):
        forbidden = 0.0 if padded is None else padded[:, None, None] * -1e9
        torch.testing.assert_close(seen[site], by_hand(layer.self_attn, x, x, forbidden), rtol=1e-4, atol=1e-5)
        x = layer(x, src_key_padding_mask=padded) if training else layer.train()(x, src_key_padding_mask=padded)
    words = torch.ones(2, 5, dtype=torch.bool) if padded is None else ~padded
    torch.testing.assert_close(watched[words], plain[words], rtol=1e-4, atol=1e-5)
    with capture(model, edit={"layers.1.*.pattern": torch.zeros_like}):
        assert (model(random(2, 5, 6), src_key_padding_mask=padded) - plain)[words].abs().max() > 1e-2


@pytest.mark.parametrize("training", [True, False])
def test_transformer_decoder_matches_reference(training):
    torch.manual_seed(0)
    layer = nn.TransformerDecoderLayer(6, 3, dim_feedforward=5, batch_first=True, dropout=0.0)
    model, x, memory = nn.TransformerDecoder(layer, 2).train(training), random(2, 4, 6), random(2, 5, 6)
    causal = torch.ones(4, 4).triu(1).bool()
    with capture(model, "*.pattern") as seen:
        model(x, memory, tgt_mask=causal, memory_key_padding_mask=PADDED, tgt_is_causal=True)
    assert [tuple(tensor.shape) for tensor in seen.values()] == [(2, 3, 4, 4), (2, 3, 4, 5)] * 2
    first = model.layers[0]
    torch.testing.assert_close(seen["layers.0.self_attn.pattern"], by_hand(first.self_attn, x, x, causal * -1e9))
    middle = first.norm1(x + first.self_attn(x, x, x, attn_mask=causal)[0])
    expected = by_hand(first.multihead_attn, middle, memory, PADDED[:, None, None] * -1e9)
    torch.testing.assert_close(seen["layers.0.multihead_attn.pattern"], expected, rtol=1e-4, atol=1e-5)


FAMILIES = {
    "bert": "BertModel", "gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM", "t5": "T5ForConditionalGeneration",
}  # fmt: skip


def twins(family, implementation):
    """The same weights twice: eager, which shows its weights, and as asked."""
    return [small_model(FAMILIES[family], std=0.5, attn_implementation=how) for how in ("eager", implementation)]


def own_attentions(output):
    """The model's own weights, layer by layer in the order of the computation."""
    if "cross_attentions" not in output or output.get("encoder_attentions") is None:
        return list(output.attentions)
    decoder = [part for pair in zip(output.decoder_attentions, output.cross_attentions) for part in pair]
    return [*output.encoder_attentions, *decoder]


@pytest.mark.filterwarnings("ignore::FutureWarning:transformers")
@pytest.mark.parametrize(("family", "implementation", "padded"), all_pairs(FAMILIES, ["sdpa", "eager"], [True, False]))
def test_hugging_face_matches_output_attentions(family, implementation, padded):
    eager, model = twins(family, implementation)
    inputs = {"input_ids": torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 0, 0]])}
    if padded:
        inputs["attention_mask"] = (~PADDED).long()
    if family == "t5":
        inputs["decoder_input_ids"] = torch.tensor([[0, 9, 8, 7], [0, 6, 5, 4]])
    with torch.no_grad():
        own = own_attentions(eager(**inputs, output_attentions=True))
        plain = model(**inputs)[0]
        with capture(model, "*.pattern") as seen:
            watched = model(**inputs)[0]
        with capture(model, edit={next(iter(seen)): torch.zeros_like}):
            moved = model(**inputs)[0]
    assert len(seen) == len(own)
    for site, expected in zip(seen, own, strict=True):
        torch.testing.assert_close(
            seen[site], expected, rtol=0, atol=1e-5, msg=lambda text, site=site: f"{site}: {text}"
        )
    torch.testing.assert_close(watched, plain, rtol=0, atol=1e-5)
    assert (moved - plain).abs().max() > 1e-3
    if family != "t5":
        allowed = AttentionMaps.from_capture(seen, batch=1).allowed(1, 2)
        assert (~allowed if allowed is not None else torch.zeros(5, 5)).sum() == masked_count(family, padded)


@pytest.mark.filterwarnings("ignore::FutureWarning:transformers")
@pytest.mark.parametrize(("family", "targets"), [("bert", ["query", "value"]), ("llama", ["q_proj", "k_proj"])])
def test_peft_adapters_match_output_attentions(family, targets):
    """The maps are those of the adapted model, not of the base; merged into the weights, they are the same."""
    import peft

    eager, model = twins(family, "sdpa")
    ids = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 1]])
    adapted = []
    for base in (eager, model):
        torch.manual_seed(1)
        how = peft.LoraConfig(r=2, target_modules=targets, init_lora_weights=False)  # so that it changes something
        adapted.append(peft.get_peft_model(base, how).eval())
    own = own_attentions(adapted[0](ids, output_attentions=True))
    with torch.no_grad(), capture(adapted[1]) as seen:
        adapted[1](ids)
    for site, expected in zip(seen, own, strict=True):
        torch.testing.assert_close(seen[site], expected, rtol=0, atol=1e-5)
    with torch.no_grad(), adapted[1].disable_adapter(), capture(adapted[1]) as base:
        adapted[1](ids)
    assert all((seen[site] - base[site]).abs().max() > 1e-3 for site in seen)
    merged = adapted[1].merge_and_unload()
    with torch.no_grad(), capture(merged) as after:
        merged(ids)
    for expected, found in zip(seen.values(), after.values(), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def masked_count(family, padded):
    open_to = torch.ones(5, 5) if family == "bert" else torch.ones(5, 5).tril()
    return (open_to * (~PADDED[1] if padded else 1) == 0).sum()
