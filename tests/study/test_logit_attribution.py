"""Direct logit attribution compared with a reference: hooked outputs times the frozen norm times the unembedding."""

from functools import partial
from typing import NamedTuple

import pytest
import torch
from combinations import one_at_a_time
from study_models import (
    FAMILIES,
    IDS,
    MASK,
    SMALL,
    VOCAB_SIZE,
    build,
    call,
    config,
    first,
    prompts,
    residual_model,
    transformers,
)
from torch import nn

from tfviz import study
from tfviz.study import logit_attribution

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:transformers")
TOKEN, OTHER = 5, 2


class Parts(NamedTuple):
    """Where the parts of a model are.

    Attributes:
        terms: modules whose outputs add up to the stream, with {} for the layer.
        projection: of the heads' outputs, with {} for the layer.
        one: 1 where the norm's gain is 1 + weight.
        after: the RMSNorm between projection and stream, if there is one, with {} for the layer.
    """

    kind: object
    settings: object
    norm: str
    output: str
    terms: tuple
    projection: str
    one: int = 0
    after: str = ""


POST = "model.layers.{}.post_attention_layernorm"
PROJECTION = "model.layers.{}.self_attn.o_proj"
POST_NORMED = ("model.embed_tokens", POST, "model.layers.{}.post_feedforward_layernorm")
LLAMA = ("model.embed_tokens", "model.layers.{}.self_attn", "model.layers.{}.mlp")
GROUPED = {"num_key_value_heads": 2, "max_position_embeddings": 8}
KINDS = {
    "GPT-2": Parts(
        *FAMILIES["GPT-2"][:2], "transformer.ln_f", "lm_head",
        ("transformer.wte", "transformer.wpe", "transformer.h.{}.attn", "transformer.h.{}.mlp"),
        "transformer.h.{}.attn.c_proj",
    ),
    "Llama": Parts(*FAMILIES["Llama"][:2], "model.norm", "lm_head", LLAMA, "model.layers.{}.self_attn.o_proj"),
    "GPT-NeoX": Parts(
        "GPTNeoXForCausalLM", partial(config, "GPTNeoX", max_position_embeddings=8, **SMALL),
        "gpt_neox.final_layer_norm", "lm_head",
        ("gpt_neox.embed_in", "gpt_neox.layers.{}.attention", "gpt_neox.layers.{}.mlp"),
        "gpt_neox.layers.{}.attention.dense",
    ),
    "Gemma": Parts(
        "GemmaForCausalLM", partial(config, "Gemma", head_dim=8, **GROUPED, **SMALL), "model.norm", "lm_head",
        LLAMA, "model.layers.{}.self_attn.o_proj", 1,
    ),
    "Gemma 2": Parts(
        "Gemma2ForCausalLM", partial(config, "Gemma2", head_dim=8, final_logit_softcapping=None, **GROUPED, **SMALL),
        "model.norm", "lm_head", POST_NORMED, PROJECTION, 1, POST,
    ),
    "Gemma 3": Parts(
        "Gemma3ForCausalLM",
        lambda: transformers.Gemma3TextConfig(vocab_size=VOCAB_SIZE, head_dim=8, **GROUPED, **SMALL),
        "model.norm", "lm_head", POST_NORMED, PROJECTION, 1, POST,
    ),
    "OLMo 2": Parts(
        "Olmo2ForCausalLM", partial(config, "Olmo2", pad_token_id=0, **GROUPED, **SMALL), "model.norm", "lm_head",
        POST_NORMED, PROJECTION, 0, POST,
    ),
    "OPT": Parts(
        "OPTForCausalLM",
        partial(
            config, "OPT", hidden_size=24, num_hidden_layers=2, num_attention_heads=4, ffn_dim=10,
            max_position_embeddings=8, word_embed_proj_dim=24, pad_token_id=1,
        ),
        "model.decoder.final_layer_norm", "lm_head",
        (
            "model.decoder.embed_tokens", "model.decoder.embed_positions", "model.decoder.layers.{}.self_attn",
            "model.decoder.layers.{}.fc2",
        ),
        "model.decoder.layers.{}.self_attn.out_proj",
    ),
    "Bloom": Parts(
        "BloomForCausalLM", partial(config, "Bloom", hidden_size=24, n_layer=2, n_head=4), "transformer.ln_f",
        "lm_head",
        (
            "transformer.word_embeddings_layernorm", "transformer.h.{}.self_attention.dense",
            "transformer.h.{}.mlp.dense_4h_to_h",
        ),
        "transformer.h.{}.self_attention.dense",
    ),
    "Falcon": Parts(  # whose linear layers are a class of their own
        "FalconForCausalLM",
        partial(config, "Falcon", hidden_size=24, num_hidden_layers=2, num_attention_heads=4, bias=False),
        "transformer.ln_f", "lm_head",
        ("transformer.word_embeddings", "transformer.h.{}.self_attention", "transformer.h.{}.mlp"),
        "transformer.h.{}.self_attention.dense",
    ),
    "T5": Parts(
        *FAMILIES["T5"][:2], "decoder.final_layer_norm", "lm_head",
        (
            "decoder.embed_tokens", "decoder.block.{}.layer.0.SelfAttention",
            "decoder.block.{}.layer.1.EncDecAttention",
            "decoder.block.{}.layer.2.DenseReluDense",
        ), "",
    ),
    "Mixtral": Parts(
        "MixtralForCausalLM",
        partial(
            config, "Mixtral", num_local_experts=3, num_experts_per_tok=2, hidden_size=32, num_hidden_layers=2,
            num_attention_heads=4, intermediate_size=16, **GROUPED,
        ),
        "model.norm", "lm_head", LLAMA, "model.layers.{}.self_attn.o_proj",
    ),
    "GPT": Parts(
        *FAMILIES["GPT"][:2], "norm", "tokens",
        ("tokens", "positions", "blocks.{}.attention", "blocks.{}.feed_forward"), "blocks.{}.attention.out_proj",
    ),
}  # fmt: skip


def difference(logits):
    """Linear in the logits; of all texts and two positions."""
    return (logits[:, -1, TOKEN] - logits[:, -1, OTHER]).mean() + 0.5 * logits[1, 1, TOKEN]


def reference_share(model, kind, taken):
    """A function: a term of the stream -> its share of `difference`, by the formulas of the norms."""
    norm, weight = model.get_submodule(kind.norm), model.get_submodule(kind.output).weight.detach()
    is_centered = isinstance(norm, nn.LayerNorm)
    centered = taken - taken.mean(-1, keepdim=True) if is_centered else taken
    eps = getattr(norm, "eps", None) or getattr(norm, "variance_epsilon", None)
    size = (centered.pow(2).mean(-1, keepdim=True) + eps).sqrt()
    scale = 24**-0.5 if kind.norm.startswith("decoder") and model.config.scale_decoder_outputs else 1.0

    def share(term):
        term = term - term.mean(-1, keepdim=True) if is_centered else term
        return difference(scale * (term / size * (norm.weight.detach() + kind.one)) @ weight.T).item()

    return share


def hooked(model, prompt, modules, inputs=False):
    """What modules returned (or took) in a run; the first time, where there are several."""
    found, handles = {}, []
    for path in modules:
        module = model.get_submodule(path)

        def kept(_, args, output, path=path):
            found.setdefault(path, (args[0] if inputs else first(output)).detach().clone())

        handles.append(module.register_forward_hook(kept))
    with torch.no_grad():
        call(model, prompt)
    for handle in handles:
        handle.remove()
    return found


def prompt_of(name, padded):
    return prompts(name if name in FAMILIES else "GPT-2", padded and name != "GPT")[0]


def stream_of(model, prompt, kind):
    return hooked(model, prompt, [kind.norm], inputs=True)[kind.norm]


@pytest.mark.parametrize(("name", "padded"), [*((name, True) for name in KINDS), ("GPT-2", False), ("T5", False)])
def test_attribute_to_parts_matches_reference(name, padded):
    kind = KINDS[name]
    model, prompt = build(kind.kind, kind.settings), prompt_of(name, padded)
    table = logit_attribution(model, prompt, target=difference)
    with torch.no_grad():
        target = difference(call(model, prompt)).item()
    assert table.values.sum().item() == pytest.approx(target, abs=1e-4)
    assert table.notes["target"] == pytest.approx(target, abs=1e-5)
    paths = [path.format(layer) for layer in range(2) for path in kind.terms if layer == 0 or "{}" in path]
    outputs = hooked(model, prompt, paths)
    if name == "GPT":
        outputs["positions"] -= outputs["tokens"]  # they return the sum
    if name.startswith("Gemma"):
        outputs["model.embed_tokens"] = hooked(model, prompt, ["model.layers.0"], inputs=True)["model.layers.0"]
    share = reference_share(model, kind, stream_of(model, prompt, kind))
    for path, output in outputs.items():
        output = output.view(-1, *output.shape[-2:]) if output.dim() == 3 else output.view(3, -1, output.shape[-1])
        assert table[path] == pytest.approx(share(output.expand(3, *output.shape[1:])), abs=1e-4), path
    rest = [label for label in table.axes["part"] if label not in outputs]
    assert all("bias" in label for label in rest), rest
    assert abs(table.values).max() > 0.01


@pytest.mark.parametrize(
    ("name", "frozen"), one_at_a_time([name for name, kind in KINDS.items() if kind.projection], [False, True])
)
def test_attribute_to_heads_matches_reference(name, frozen):
    kind = KINDS[name]
    model, prompt = build(kind.kind, kind.settings).requires_grad_(not frozen), prompt_of(name, True)
    table = logit_attribution(model, prompt, target=difference, each="head")
    share = reference_share(model, kind, stream_of(model, prompt, kind))
    projections = [kind.projection.format(layer) for layer in range(2)]
    joined = hooked(model, prompt, projections, inputs=True)
    attended = hooked(model, prompt, projections)
    assert list(table.axes) == ["layer", "head"]
    assert table.values.shape == (2, 4)
    for layer, path in enumerate(projections):
        weight = model.get_submodule(path).weight.detach()
        weight = weight if name == "GPT-2" else weight.T  # [heads * dim, dim]
        for head, rows in enumerate(torch.arange(len(weight)).chunk(4)):
            added = joined[path][..., rows] @ weight[rows]
            if kind.after:
                norm = model.get_submodule(kind.after.format(layer))
                eps = getattr(norm, "eps", None) or norm.variance_epsilon
                size = (attended[path].pow(2).mean(-1, keepdim=True) + eps).rsqrt()
                added = added * size * (norm.weight.detach() + kind.one)
            expected = share(added)
            assert table[str(layer), str(head)] == pytest.approx(expected, abs=1e-4)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(parameter.requires_grad is not frozen for parameter in model.parameters())


@pytest.mark.parametrize(
    ("name", "dtype"), one_at_a_time(["GPT-2", "Llama", "T5", "GPT"], [torch.bfloat16, torch.float16])
)
def test_attribute_supports_half_precision(name, dtype):
    kind = KINDS[name]
    model, prompt = build(kind.kind, kind.settings), prompt_of(name, False)
    whole = logit_attribution(model, prompt, target=difference)
    half = logit_attribution(model.to(dtype), prompt, target=difference)
    for path in whole.axes["part"]:
        assert half[path] == pytest.approx(whole[path], abs=0.1), path
    assert half.values.sum().item() == pytest.approx(whole.notes["target"], abs=0.1)


@pytest.mark.parametrize(
    ("how", "frozen"), one_at_a_time(["in place", "add_", "scaled", "plain", "checkpoint"], [True, False])
)
def test_attribute_supports_any_residual_addition(how, frozen):
    model = residual_model(how).requires_grad_(not frozen)
    table = logit_attribution(model, IDS, target=difference)
    factor = 0.5 if how == "scaled" else 1.0
    paths = [f"blocks.{layer}.{part}" for layer in range(2) for part in ("attention", "mlp")]
    outputs = hooked(model, IDS, paths)
    kind = Parts(None, None, "norm", "head", (), "")
    share = reference_share(model, kind, stream_of(model, IDS, kind))
    for path, output in outputs.items():
        assert table[path] == pytest.approx(factor * share(output), abs=1e-4)
    assert set(table.axes["part"]) == {"tokens", *paths, *[part for part in table.axes["part"] if "bias" in part]}
    assert table.values.sum().item() == pytest.approx(table.notes["target"], abs=1e-4)


@pytest.mark.parametrize("how", ["in place", "add_", "scaled", "plain"])
def test_attribute_to_heads_supports_any_residual_addition(how):
    model = residual_model(how)
    table = logit_attribution(model, IDS, target=difference, each="head")
    kind = Parts(None, None, "norm", "head", (), "")
    share = reference_share(model, kind, stream_of(model, IDS, kind))
    factor = 0.5 if how == "scaled" else 1.0
    with torch.no_grad():
        for layer in range(2):
            x = hooked(model, IDS, [f"blocks.{layer}.before.0"])[f"blocks.{layer}.before.0"]
            attention = model.blocks[layer].attention
            query, key, value = (x @ attention.in_proj_weight.T + attention.in_proj_bias).chunk(3, -1)
            for head in range(3):
                own = slice(4 * head, 4 * head + 4)
                weights = (query[..., own] @ key[..., own].mT / 2).softmax(-1)
                added = weights @ value[..., own] @ attention.out_proj.weight[:, own].T
                assert table[str(layer), str(head)] == pytest.approx(factor * share(added), abs=1e-4)


def test_shared_blocks_work_by_part_but_raise_by_head():
    model = residual_model("shared")
    table = logit_attribution(model, IDS, target=difference)
    assert table.values.sum().item() == pytest.approx(table.notes["target"], abs=1e-4)
    with pytest.raises(ValueError, match="is computed several times in one run"):
        logit_attribution(model, IDS, target=difference, each="head")


@pytest.mark.parametrize("each", ["part", "head"])
def test_attribute_rejects_models_without_final_norm(each):
    model = build(*FAMILIES["BERT"][:2])
    with pytest.raises(ValueError, match="BertForMaskedLM has no norm that takes the residual stream after its blocks"):
        logit_attribution(model, {"input_ids": IDS, "attention_mask": MASK}, target=difference, each=each)


def test_attribute_rejects_nonlinear_targets():
    model = build(*FAMILIES["GPT-2"][:2])
    for target in (study.log_probability(TOKEN), lambda logits: logits[:, -1, 3].square().mean()):
        with pytest.raises(ValueError, match="not linear in the output of the last norm"):
            logit_attribution(model, IDS, target=target)
    capped = build("Gemma2ForCausalLM", partial(KINDS["Gemma 2"].settings, final_logit_softcapping=0.5))
    with pytest.raises(ValueError, match="of a model without a cap on logits"):
        logit_attribution(capped, IDS, target=difference)


class Squared(nn.Module):
    def forward(self, x):
        return x.square()


def test_attribute_rejects_nonlinear_modules_after_heads():
    model = build(*KINDS["Gemma 2"][:2])
    model.model.layers[1].post_attention_layernorm = Squared()
    with pytest.raises(ValueError, match=r"passes model\.layers\.1\.post_attention_layernorm \(Squared\)"):
        logit_attribution(model, IDS, target=difference, each="head")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ["Gemma 2", "Gemma 3", "OLMo 2"])
def test_heads_behind_a_norm_sum_to_their_attention(name, dtype):
    model = build(*KINDS[name][:2], dtype)
    by_part = logit_attribution(model, IDS, target=difference)
    by_head = logit_attribution(model, IDS, target=difference, each="head")
    for layer, heads in enumerate(by_head.values):
        tolerance = 1e-5 if dtype == torch.float32 else 0.05
        assert heads.sum().item() == pytest.approx(by_part[POST.format(layer)], abs=tolerance)
    assert by_head.notes["target"] == pytest.approx(by_part.notes["target"], abs=1e-6)
