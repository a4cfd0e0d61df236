"""Activation sites (head outputs and module inputs) and edits of them."""

from functools import partial

import pytest
import torch
from calls import IDS, Calls
from combinations import all_pairs
from small_models import gpt, random
from small_transformers import small_model
from torch import nn
from torch.nn import functional
from torch.nn.attention.flex_attention import flex_attention

from tfviz import layers, models
from tfviz.look import capture, edits

TEXTS = {"input_ids": torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 0, 0]])}
PADDED = {"attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])}


FAMILIES = {  # name -> class, the module whose input is the heads' outputs joined, the attention
    "GPT-2": ("GPT2LMHeadModel", "transformer.h.1.attn.c_proj", "transformer.h.1.attn"),
    "Llama, grouped queries": ("LlamaForCausalLM", "model.layers.1.self_attn.o_proj", "model.layers.1.self_attn"),
    "BERT": ("BertModel", "encoder.layer.1.attention.output.dense", "encoder.layer.1.attention.self"),
    "T5": ("T5EncoderModel", "encoder.block.1.layer.0.SelfAttention.o", "encoder.block.1.layer.0.SelfAttention"),
}


def hooked_input(model, path, inputs):
    """The input of a module by a plain hook."""
    kept = []
    handle = model.get_submodule(path).register_forward_pre_hook(lambda _, args: kept.append(args[0].clone()))
    with torch.no_grad():
        model(**inputs)
    handle.remove()
    return kept[0]


def first(output):
    return output[0] if isinstance(output, tuple) or hasattr(output, "keys") else output


@pytest.mark.filterwarnings("ignore::FutureWarning:transformers")
@pytest.mark.parametrize(
    ("name", "implementation", "padded", "dtype"),
    all_pairs(FAMILIES, ["sdpa", "eager"], [True, False], [torch.float32, torch.bfloat16]),
)
def test_output_heads_match_projection_inputs(name, implementation, padded, dtype):
    kind, projection, attention = FAMILIES[name]
    model = small_model(kind, std=0.5, attn_implementation=implementation).to(dtype)
    inputs = TEXTS | (PADDED if padded else {})
    expected = hooked_input(model, projection, inputs)
    site = f"{attention}.output_heads"
    with torch.no_grad(), capture(model, [site, f"{projection}.input"]) as seen:
        plain = first(model(**inputs))
    assert torch.equal(seen[f"{projection}.input"], expected)
    assert seen[site].shape[:3] == (2, 4, 5)
    torch.testing.assert_close(seen[site].transpose(1, 2).flatten(2), expected, rtol=0, atol=0)
    other = seen[site].roll(1, 0)
    with torch.no_grad(), capture(model, edit={site: edits.paste(other, head=1, positions=[0, 2])}):
        edited = first(model(**inputs))
    pasted = expected.view(2, 5, 4, -1).clone()
    pasted[:, [0, 2], 1] = other.transpose(1, 2)[:, [0, 2], 1]
    handle = model.get_submodule(projection).register_forward_pre_hook(lambda *_: (pasted.flatten(2),))
    with torch.no_grad():
        by_hook = first(model(**inputs))
    handle.remove()
    torch.testing.assert_close(edited, by_hook, rtol=0, atol=0)
    assert (edited - plain).abs().max() > 1e-3


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_output_heads_of_torch_multihead_attention(need_weights, batch_first):
    layer = nn.MultiheadAttention(6, 3, kdim=4, vdim=7, batch_first=batch_first).eval()
    inputs = [random(2, 5, 6), random(2, 4, 4), random(2, 4, 7)]
    inputs = inputs if batch_first else [part.transpose(0, 1) for part in inputs]
    with capture(layer, ["pattern", "output_heads"]) as seen:
        plain = layer(*inputs, need_weights=need_weights)[0]
    assert seen["output_heads"].shape == (2, 3, 5, 2)
    joined = layer.out_proj(seen["output_heads"].transpose(1, 2).flatten(2))
    torch.testing.assert_close(joined, plain if batch_first else plain.transpose(0, 1))
    for site in ("pattern", "output_heads"):
        with capture(layer, edit={site: edits.zero(2)}):
            off = layer(*inputs, need_weights=need_weights)[0]
        silent = seen["output_heads"].index_fill(1, torch.tensor(2), 0.0)
        expected = layer.out_proj(silent.transpose(1, 2).flatten(2))
        torch.testing.assert_close(off, expected if batch_first else expected.transpose(0, 1))


MODELS = {
    "GPT": (lambda: gpt(), (IDS,), 3),
    "relative": (lambda: models.TransformerXL(11, layers=2, heads=3, dim=6, memory=4).eval(), (IDS,), 3),
    "Bahdanau": (
        lambda: models.Seq2Seq(11, attention=layers.AdditiveAttention, dim=6, hidden=8).eval(), (IDS, IDS.flip(0)), 1,
    ),
    "Transformer": (lambda: models.Transformer(12, layers=2, heads=3, dim=6).eval(), (IDS + 1, IDS.flip(0) + 1), 3),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_output_heads_of_tfviz_models(name):
    make, inputs, heads = MODELS[name]
    model = make()
    with torch.no_grad(), capture(model, ["*.pattern", "*.output_heads"]) as seen:
        plain = first(model(*inputs))
    sites = [site for site in seen if site.endswith("output_heads")]
    assert [site.removesuffix("output_heads") for site in sites] == [
        site.removesuffix("pattern") for site in seen if site.endswith("pattern")
    ]
    for site in sites:
        pattern = seen[site.replace("output_heads", "pattern")]
        assert seen[site].shape[:3] == (2, heads, pattern.shape[2])
        with torch.no_grad(), capture(model, edit={site: edits.zero()}):
            off = first(model(*inputs))
        with torch.no_grad(), capture(model, edit={site.replace("output_heads", "pattern"): edits.zero()}):
            expected = first(model(*inputs))
        torch.testing.assert_close(off, expected)
        assert not torch.allclose(off, plain)


def single(name, query, key, value):
    """One attention, computed in different ways, on [batch, head, position, dim]; the output is [2, 3, 5, 6]."""
    weights = (query @ key.mT / 2).softmax(-1)
    return {
        "sdpa": lambda: functional.scaled_dot_product_attention(query, key, value),
        "flex": lambda: flex_attention(query, key, value),
        "matmul": lambda: weights @ value,
        "einsum, heads last": lambda: torch.einsum("bhqk,bhkd->bqhd", weights, value).transpose(1, 2),
        "values first": lambda: torch.einsum("bhkd,bhqk->bhdq", value, weights).mT,
        "heads beside texts": lambda: torch.bmm(weights.flatten(0, 1), value.flatten(0, 1)).unflatten(0, (2, 3)),
        "a sum of products": lambda: (weights[..., None] * value[:, :, None]).sum(-2),
    }[name]()


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize(
    "name", ["sdpa", "flex", "matmul", "einsum, heads last", "values first", "heads beside texts", "a sum of products"]
)
def test_output_heads_of_any_attention_implementation(name):
    query, key, value = random(2, 3, 5, 4), random(2, 3, 7, 4), random(2, 3, 7, 6)
    model, expected = Calls(partial(single, name), num_heads=3), (query @ key.mT / 2).softmax(-1) @ value
    with capture(model, ["pattern", "output_heads"]) as seen:
        torch.testing.assert_close(model(query, key, value), expected)
    torch.testing.assert_close(seen["output_heads"], expected)
    changed = random(2, 3, 5, 6)
    with capture(model, "output_heads") as outer, capture(model, edit={"output_heads": edits.paste(changed, head=1)}):
        edited = model(query, key, value)
    expected[:, 1] = changed[:, 1]
    torch.testing.assert_close(edited, expected)
    assert outer["output_heads"].shape == expected.shape
    with capture(model, "output_heads") as outer, capture(model, edit={"pattern": edits.uniform()}):
        edited = model(query, key, value)
    torch.testing.assert_close(edited, value.mean(-2, keepdim=True).expand(2, 3, 5, 6))
    torch.testing.assert_close(outer["output_heads"], edited)  # the outer capture does not see a call that is remade


def test_output_heads_of_cached_decoding_match_full_pass():
    model = small_model("LlamaForCausalLM", std=0.5)
    ids = TEXTS["input_ids"][:1]
    site = "model.layers.0.self_attn.output_heads"
    with torch.no_grad(), capture(model, site) as seen:
        cache = model(ids[:, :4], use_cache=True).past_key_values
        model(ids[:, 4:], past_key_values=cache)
    with torch.no_grad(), capture(model, site) as whole:
        model(ids)
    steps = seen.over_time(site)
    assert [tuple(step.shape) for step in steps] == [(1, 4, 4, 6), (1, 4, 1, 6)]
    torch.testing.assert_close(torch.cat(steps, 2), whole[site])


def test_input_sites_are_excluded_from_star_and_can_be_edited():
    model = gpt()
    with capture(model, "*") as seen:
        plain = model(IDS)
    assert not [site for site in seen if site.endswith("input")]
    with capture(model, ["*.input", "blocks.0"]) as seen:
        model(IDS)
    assert torch.equal(seen["blocks.1.input"], seen["blocks.0"])
    assert torch.equal(seen["input"], IDS)
    for site in ("blocks.0", "blocks.1.input"):
        with capture(model, edit={site: edits.add(torch.arange(6.0) ** 2, positions=-1)}):
            edited = model(IDS)
        assert torch.equal(edited[:, :-1], plain[:, :-1])
        assert not torch.allclose(edited[:, -1], plain[:, -1])
    with capture(model, "blocks.1.input", grad=True) as seen:
        model(IDS).sum().backward()
    assert seen["blocks.1.input"].grad.abs().max() > 0
    assert not any(part._forward_pre_hooks or part._forward_pre_hooks_with_kwargs for part in model.modules())


def test_keyword_inputs_are_captured_and_edited():
    class Inner(nn.Module):
        def forward(self, hidden, scale):
            return hidden * scale

    model, x = Calls(lambda x: model.inner(scale=2.0, hidden=x), inner=Inner()), random(1, 3, 2)
    with capture(model, "inner.input", edit={"inner.input": edits.zero(positions=1)}) as seen:
        out = model(x)
    expected = x.clone()
    expected[:, 1] = 0
    assert torch.equal(seen["inner.input"], expected)
    assert torch.equal(out, 2 * expected)


def test_activation_edits_match_hand_computed_values():
    x = torch.arange(24.0).view(2, 3, 4, 1)
    assert torch.equal(edits.zero(1, [0, -1])(x)[:, 1, :, 0], x[:, 1, :, 0] * torch.tensor([0, 1, 1, 0]))
    assert torch.equal(edits.zero(1, [0, -1])(x)[:, [0, 2]], x[:, [0, 2]])
    added = edits.add(torch.tensor([2.0]), head=2, positions=1)(x) - x
    assert added.nonzero().tolist() == [[0, 2, 1, 0], [1, 2, 1, 0]]
    assert added.max() == 2
    assert torch.equal(edits.mean(head=0)(x)[:, 0], (x[:1, 0] + x[1:, 0]).expand(2, 4, 1) / 2)
    assert torch.equal(edits.mean(head=0)(x)[:, 1:], x[:, 1:])
    one, other = (edits.noise(3.0, seed=seed)(x.expand(2, 3, 4, 500)) for seed in (0, 1))
    assert not torch.equal(one, other)
    assert torch.equal(one, edits.noise(3.0)(x.expand(2, 3, 4, 500)))
    assert abs((one - x).std() - 3) < 0.1
    assert torch.equal(edits.paste(torch.tensor([7.0]), positions=0)(x)[:, :, 0], torch.full((2, 3, 1), 7.0))


@pytest.mark.parametrize("make", [edits.add, edits.paste])
@pytest.mark.parametrize(
    ("shape", "source", "says"),
    [
        (
            (3, 3, 4),
            (3, 4),
            r"\[3, 4\] is ambiguous, one for each text or one for each position: .* \[3, 1, 4\] or \[1, 3, 4\]$",
        ),
        ((3, 2, 3, 4), (3, 4), r"one for each text or one for each position: .* \[3, 1, 1, 4\] or \[1, 1, 3, 4\]$"),
        ((2, 3, 3, 4), (3, 4), r"one for each head or one for each position: .* \[1, 3, 1, 4\] or \[1, 1, 3, 4\]$"),
        ((3, 3, 5, 4), (3, 5, 4), r"one for each text or one for each head: .* \[3, 1, 5, 4\] or \[1, 3, 5, 4\]$"),
        ((3, 3, 3, 4), (3, 1, 4), r"one for each text or one for each head: .* \[3, 1, 1, 4\] or \[1, 3, 1, 4\]$"),
        ((3, 5, 4), (3, 4), r"\[3, 4\] does not fit \[3, 5, 4\]; .* one for each text is \[3, 1, 4\]$"),
        ((3, 2, 5, 4), (3, 4), r"\[3, 4\] does not fit \[3, 2, 5, 4\]; .* one for each text is \[3, 1, 1, 4\]$"),
        ((3, 2, 5, 4), (3, 2, 4), r"does not fit .*; .* one for each text is \[3, 1, 2, 4\]$"),
    ],
)
def test_a_source_that_may_be_of_texts_or_of_positions_is_refused(make, shape, source, says):
    with pytest.raises(ValueError, match=says):
        make(torch.ones(source))(torch.zeros(shape), "x")


@pytest.mark.parametrize("make", [edits.add, edits.paste])
@pytest.mark.parametrize(
    ("shape", "sources"),
    [
        ((3, 5, 4), [(5, 4), (1, 5, 4)]),  # of each position, which only positions can be
        ((3, 3, 4), [(4,), (1, 4), (1, 1, 4)]),
        ((1, 3, 4), [(3, 4), (1, 3, 4)]),
        ((2, 6, 5, 4), [(5, 4), (1, 5, 4), (1, 1, 5, 4)]),
        ((2, 6, 5, 4), [(6, 1, 4), (1, 6, 1, 4)]),
    ],
)
def test_a_source_that_fits_in_one_way_is_taken(make, shape, sources):
    x, values = random(*shape), random(*sources[-1])
    for source in sources:
        expected = values.expand(shape) + (x if make is edits.add else 0)
        assert torch.equal(make(values.view(source))(x, "x"), expected)


def test_mean_edit_keeps_dtype():
    x = random(2, 3, 4).to(torch.bfloat16)
    assert edits.mean()(x).dtype == torch.bfloat16
