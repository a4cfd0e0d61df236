"""Weights of heads from runs on basis vectors, compared with slices of each model's own matrices."""

from collections import OrderedDict
from functools import partial

import pytest
import torch
from study_models import FAMILIES, IDS, SMALL, VOCAB_SIZE, build, config, family, prompts
from torch import nn

from tfviz import look, models, study, view
from tfviz.layers import positions
from tfviz.study import HeadWeights, Table, head_weights
from tfviz.study import head_responses as responses

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:transformers")
LAYERS, HEADS, DIM = 2, 4, 24
PARTS = ("query", "key", "value", "output")


def columns(weight, heads=HEADS):
    """[dim, heads * head_dim] of x @ weight as [head, dim, head_dim]."""
    return weight.unflatten(1, (heads, -1)).transpose(0, 1)


def linears(query, key, value, output, heads=HEADS, groups=HEADS):
    """The four parts from `nn.Linear`, whose weights are [out, in]."""
    keys, values = (columns(part.weight.T, groups).repeat_interleave(heads // groups, 0) for part in (key, value))
    return columns(query.weight.T, heads), keys, values, output.weight.T.unflatten(0, (heads, -1))


def of_gpt2(model, layer):
    attention = model.transformer.h[layer].attn
    packed = [columns(part) for part in attention.c_attn.weight.chunk(3, 1)]  # Conv1D: [in, out]
    return *packed, attention.c_proj.weight.unflatten(0, (HEADS, -1))


def of_llama(model, layer):
    part = model.model.layers[layer].self_attn
    return linears(part.q_proj, part.k_proj, part.v_proj, part.o_proj, groups=2)


def of_bert(model, layer):
    part = model.bert.encoder.layer[layer].attention
    return linears(part.self.query, part.self.key, part.self.value, part.output.dense)


def of_t5(model, layer):
    part = model.encoder.block[layer].layer[0].SelfAttention
    return linears(part.q, part.k, part.v, part.o)


def of_vit(model, layer):
    part = model.vit.layers[layer].attention
    return linears(part.q_proj, part.k_proj, part.v_proj, part.o_proj)


def packed(attention, heads):
    """Those of tfviz's `MultiHeadAttention`, or of `nn.MultiheadAttention`."""
    weight = attention.in_proj.weight if hasattr(attention, "in_proj") else attention.in_proj_weight
    return *(columns(part.T, heads) for part in weight.chunk(3)), attention.out_proj.weight.T.unflatten(0, (heads, -1))


def of_opt(model, layer):
    part = model.model.decoder.layers[layer].self_attn
    query, *rest = linears(part.q_proj, part.k_proj, part.v_proj, part.out_proj)
    return query / (DIM // HEADS) ** 0.5, *rest  # it scales its queries itself


class Torch(nn.Module):
    """A model of PyTorch's own encoder layers, with positions first."""

    def __init__(self, batch_first):
        super().__init__()
        self.tokens, self.batch_first = nn.Embedding(VOCAB_SIZE, 6), batch_first
        layers = [nn.TransformerEncoderLayer(6, 3, 5, batch_first=batch_first) for _ in range(LAYERS)]
        self.layers = nn.ModuleList(layers)

    def forward(self, ids):
        x = self.tokens(ids) if self.batch_first else self.tokens(ids.T)
        for layer in self.layers:
            x = layer(x)
        return x


OPT = partial(
    config, "OPT", hidden_size=DIM, num_hidden_layers=LAYERS, num_attention_heads=HEADS, ffn_dim=10,
    max_position_embeddings=8, word_embed_proj_dim=DIM, pad_token_id=1,
)  # fmt: skip
SLICES = {
    **{name: (*FAMILIES[name][:2], slices) for name, slices in {
        "GPT-2": of_gpt2, "Llama": of_llama, "BERT": of_bert, "T5": of_t5, "ViT": of_vit,
        "GPT": lambda model, layer: packed(model.blocks[layer].attention, HEADS),
    }.items()},
    "OPT": ("OPTForCausalLM", OPT, of_opt),
    "rotary GPT": (
        lambda: models.GPT(VOCAB_SIZE, layers=LAYERS, heads=3, dim=12, context=8, positions=positions.Rotary),
        None, lambda model, layer: packed(model.blocks[layer].attention, 3),
    ),
    "Classifier": (
        lambda: models.Classifier(VOCAB_SIZE, 5, layers=LAYERS, heads=3, dim=12, context=8),
        None, lambda model, layer: packed(model.blocks[layer].attention, 3),
    ),
    "tfviz BERT": (
        lambda: models.BERT(VOCAB_SIZE, layers=LAYERS, heads=3, dim=12, context=8),
        None, lambda model, layer: packed(model.blocks[layer].attention, 3),
    ),
    "Transformer": (
        lambda: models.Transformer(VOCAB_SIZE, 11, layers=LAYERS, heads=3, dim=12),
        None, lambda model, layer: packed(model.encoder[layer].attention, 3),
    ),
    "PyTorch": (lambda: Torch(True), None, lambda model, layer: packed(model.layers[layer].self_attn, 3)),
    "positions first": (lambda: Torch(False), None, lambda model, layer: packed(model.layers[layer].self_attn, 3)),
}  # fmt: skip
GIVEN = {
    "T5": {"ids": prompts("T5")[0], "sites": "encoder.*.output_heads"},
    "ViT": {"ids": prompts("ViT")[0]},
    "Transformer": {"ids": (IDS, IDS.fliplr()), "sites": "encoder.*.output_heads"},
}


def found(name, dtype=torch.float32):
    kind, settings, slices = SLICES[name]
    model = build(kind, settings, dtype)
    return model, head_weights(model, **GIVEN.get(name, {})), [slices(model, layer) for layer in range(LAYERS)]


def close(actual, expected, atol=1e-5):
    torch.testing.assert_close(actual, expected.detach().float(), rtol=0, atol=atol)


@pytest.mark.parametrize("name", SLICES)
def test_weights_match_the_model(name):
    _, weights, slices = found(name)
    for part, expected in zip(PARTS, map(torch.stack, zip(*slices))):
        close(getattr(weights, part), expected)
    assert (weights.query.dtype, weights.query.requires_grad) == (torch.float32, False)
    assert list(weights.labels) == ["0", "1"]


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "BERT"])
def test_many_runs_match_one_run(name, monkeypatch):
    monkeypatch.setattr(responses, "BATCH_SIZE", 7)
    test_weights_match_the_model(name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_large_biases_do_not_hide_weights_in_half_precision(dtype):
    kind, settings, slices = SLICES["GPT-2"]
    model = build(kind, settings)
    for layer in model.transformer.h:
        layer.attn.c_attn.bias.data += 100
    weights = head_weights(model.to(dtype))
    for part, expected in zip(PARTS, map(torch.stack, zip(*(slices(model, layer) for layer in range(LAYERS))))):
        assert getattr(weights, part).dtype == torch.float32
        close(getattr(weights, part), expected, {torch.bfloat16: 5e-3, torch.float16: 1e-3}.get(dtype, 1e-5))


@pytest.mark.parametrize("ids", [IDS, {"input_ids": IDS, "attention_mask": torch.ones_like(IDS)}])
def test_weights_do_not_depend_on_ids(ids):
    model, weights, _ = found("Llama")
    again = head_weights(model, ids)
    for part in PARTS:
        close(getattr(again, part), getattr(weights, part))


def test_weights_do_not_depend_on_process_defaults():
    model, weights, _ = found("BERT")
    torch.set_default_dtype(torch.float64)
    try:
        again = head_weights(model)
    finally:
        torch.set_default_dtype(torch.float32)
    for part in PARTS:
        close(getattr(again, part), getattr(weights, part))


def test_model_is_unchanged():
    model = build(*SLICES["GPT-2"][:2]).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    head_weights(model)
    assert all(part.training for part in model.modules())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(part._forward_pre_hooks or part._forward_hooks for part in model.modules())


@pytest.mark.parametrize("name", ["Llama", "T5"])
def test_qk_matches_scores_without_biases(name):
    """At one position a query looks at itself alone; of Llama, rotation leaves that product as it is anywhere."""
    model, weights, _ = found(name)
    text = {"input_ids": IDS[:, :1]} | ({"decoder_input_ids": IDS[:, :1]} if name == "T5" else {})
    block = "model.layers.1.self_attn" if name == "Llama" else "encoder.block.1.layer.0.SelfAttention"
    with torch.no_grad(), look.capture(model, [f"{block}.input", f"{block}.scores"]) as seen:
        model(**text)
    x = seen[f"{block}.input"][:, 0]
    for head in range(HEADS):
        scores = ((x @ weights.qk(1, head)) * x).sum(1)
        if name == "Llama":
            scores = scores / (DIM // HEADS) ** 0.5
        else:
            bias = model.encoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight[0, head]
            scores = scores + bias.detach()
        close(seen[f"{block}.scores"][:, head, 0, 0], scores, 1e-4)


def test_qk_with_bias_terms_matches_scores():
    model, weights, _ = found("GPT-2")
    sites = ["transformer.h.1.attn.input", "transformer.h.1.attn.scores"]
    with torch.no_grad(), look.capture(model, sites) as seen:
        model(IDS)
    x, scores = (seen[site] for site in sites)
    biases = model.transformer.h[1].attn.c_attn.bias.detach()
    queries, keys, _ = (part.unflatten(0, (HEADS, -1)) for part in biases.chunk(3))
    for head in range(HEADS):
        of_words = x @ weights.qk("1", head) @ x.mT
        of_keys = (x @ weights.key[1, head] @ queries[head])[:, None]
        of_queries = (x @ weights.query[1, head] @ keys[head])[:, :, None]
        expected = (of_words + of_keys + of_queries + queries[head] @ keys[head]) / (DIM // HEADS) ** 0.5
        seen_cells = torch.ones(6, 6, dtype=torch.bool).tril()
        close(scores[:, head, seen_cells], expected[:, seen_cells], 1e-3)


def test_ov_matches_head_output_for_one_token():
    model, weights, _ = found("Llama")
    with torch.no_grad(), look.capture(model, ["model.layers.1.self_attn.input", "model.layers.1.self_attn"]) as seen:
        model(IDS[:, :1])
    x, added = (tensor[:, 0] for tensor in seen.values())
    close(added, sum(x @ weights.ov(1, head) for head in range(HEADS)), 1e-4)


def deep(layers=3, **more):
    """All sizes differ; heads of values are as wide as the others."""
    return build(lambda: models.GPT(VOCAB_SIZE, layers=layers, heads=2, dim=10, context=7, **more), None)


@pytest.mark.parametrize("kind", ["query", "key", "value"])
def test_composition_matches_full_matrix_formula(kind):
    weights = head_weights(deep())
    table = weights.composition(kind)
    assert list(table.axes) == ["sender", "receiver"]
    assert table.axes["sender"] == table.axes["receiver"] == ["0.0", "0.1", "1.0", "1.1", "2.0", "2.1"]
    for sender in range(3):
        for receiver in range(3):
            for one, two in ((0, 0), (0, 1), (1, 0)):
                ov, qk = weights.ov(sender, one), weights.qk(receiver, two)
                read = {"query": qk, "key": qk.T, "value": weights.ov(receiver, two)}[kind]
                expected = (ov @ read).norm() / (ov.norm() * read.norm())
                score = table[f"{sender}.{one}", f"{receiver}.{two}"]
                if sender < receiver:
                    assert score == pytest.approx(expected.item(), abs=1e-5)
                else:
                    assert score != score  # NaN
    assert table.notes["unrelated"] == pytest.approx(10**-0.5)
    assert view.table(table).data is not None


def test_composition_of_random_heads_matches_noted_baseline():
    sizes = [(9, 5, 40, 3), (9, 5, 40, 3), (9, 5, 40, 4), (9, 5, 4, 40)]
    torch.manual_seed(0)
    weights = HeadWeights(*(torch.randn(size) for size in sizes), labels=list("abcdefghi"))
    scores = weights.composition("value")
    assert scores.values.square().nanmean().sqrt().item() == pytest.approx(scores.notes["unrelated"], rel=0.02)


def test_composition_is_full_where_all_is_read_and_zero_where_nothing_is_written():
    query = torch.zeros(2, 1, 6, 2)
    query[1, 0, :2] = torch.eye(2)
    value, output = torch.ones(2, 1, 6, 2), torch.zeros(2, 1, 2, 6)
    output[0, 0, :, :2] = torch.eye(2)  # it writes where the other's queries read
    weights = HeadWeights(query, query, value, output, ["0", "1"])
    assert weights.composition()["0.0", "1.0"] == pytest.approx(2**-0.5)  # of rank 2; 1 of rank 1
    assert weights.composition("value")["0.0", "1.0"] == 0  # the receiver writes nothing


def test_heads_are_named_by_label_or_index():
    weights = head_weights(deep())
    assert torch.equal(weights.ov("2", "1"), weights.ov(-1, -1))
    assert repr(weights) == "weights of GPT: 3 layers x 2 heads, from 10 numbers to 5"


class OwnAttention(nn.Module):
    """Attention with a projection that is no module, and what stands between: a gate, a norm or values of another."""

    def __init__(self, between=""):
        super().__init__()
        self.packed = nn.Linear(6, 18)
        self.out = nn.Parameter(torch.zeros(6, 6))
        self.gate = nn.Linear(6, 6)
        self.between = between

    def forward(self, x, values):
        query, key, value = self.packed(x).unflatten(2, (3, 3, 2)).permute(2, 0, 3, 1, 4)
        if self.between == "values" and values:
            value = value + values[0]
        values.append(value)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2).flatten(2)
        mixed = mixed * self.gate(x).sigmoid() if self.between == "gate" else mixed
        mixed = nn.functional.normalize(mixed, dim=-1) if self.between == "norm" else mixed
        return mixed @ self.out


class Own(nn.Module):
    def __init__(self, between="", times=1):
        super().__init__()
        self.tokens, self.times = nn.Embedding(VOCAB_SIZE, 6), times
        self.blocks = nn.ModuleList(OwnAttention(between) for _ in range(LAYERS))

    def forward(self, ids):
        x, values = self.tokens(ids), []
        for block in [*self.blocks] * self.times:
            x = x + block(x, values)
        return x


def test_projection_without_module_is_supported():
    model = build(Own, None)
    weights = head_weights(model)
    close(weights.output, torch.stack([block.out.unflatten(0, (3, 2)) for block in model.blocks]))
    close(weights.value, torch.stack([columns(block.packed.weight[12:].T, 3) for block in model.blocks]))


def small(name, **more):
    sizes = {"num_key_value_heads": 2, "max_position_embeddings": 8, **SMALL}
    return build(f"{name}ForCausalLM", partial(config, name, **sizes, **more))


def mixed():
    """Attentions of unlike sizes."""
    layers = (nn.TransformerEncoderLayer(6, heads, 5, batch_first=True) for heads in (2, 3))
    return nn.Sequential(OrderedDict(tokens=nn.Embedding(VOCAB_SIZE, 6), layers=nn.Sequential(*layers)))


REFUSED = {
    "eager": (
        lambda: head_weights(small("Llama", attn_implementation="eager")), ValueError,
        r"^there is no model\.layers\.0\.self_attn\.query: queries, keys and values are captured from.*'sdpa'",
    ),
    "none": (
        lambda: head_weights(nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 2))), LookupError, "no attention was seen",
    ),
    "query norm": (
        lambda: head_weights(small("Qwen3", head_dim=8)), ValueError,
        r"^model\.layers\.0\.self_attn\.query is not linear in the input of model\.layers\.0\.self_attn alone, as af",
    ),
    "own query norm": (
        lambda: head_weights(normed()), ValueError,
        r"^blocks\.0\.attention\.query is not linear in the input of blocks\.0\.attention",
    ),
    "gate": (
        lambda: head_weights(build(lambda: Own("gate"), None)), ValueError,
        r"^blocks\.0\.gate is not linear in the outputs|^blocks\.0 is not linear in the outputs of the heads alone",
    ),
    "norm after heads": (
        lambda: head_weights(build(lambda: Own("norm"), None)), ValueError,
        r"^blocks\.0 is not linear in the outputs of the heads alone",
    ),
    "values of an earlier layer": (
        lambda: head_weights(build(lambda: Own("values"), None)), ValueError,
        r"^blocks\.1\.value is not linear in the input of blocks\.1",
    ),
    "twice": (lambda: head_weights(build(lambda: Own(times=2), None)), ValueError, "is computed 2 times in one run"),
    "another text": (
        lambda: head_weights(family("T5")[0], prompts("T5")[0]), ValueError,
        r"^decoder\.block\.0\.layer\.1\.EncDecAttention\.key does not come from the input of .*sites='encoder\.",
    ),
    "unlike sizes": (
        lambda: head_weights(build(mixed, None)), ValueError,
        r"attentions differ in size \(2 heads of 3 for 6 numbers; 3 heads of 2 for 6 numbers\): choose attentions",
    ),
    "a picture is needed": (
        lambda: head_weights(family("ViT")[0]), ValueError,
        r"^ViTForImageClassification does not run on one id alone .*: give the arguments of a call by ids=",
    ),
    "no such site": (
        lambda: head_weights(deep(), sites="*.outputs"), LookupError,
        r"no site matches \*\.outputs; this model has blocks\.0\.attention\.output_heads, blocks",
    ),
    "head": (lambda: head_weights(deep()).qk(0, 2), LookupError, "head has no '2'; it has 0, 1"),
    "layer": (lambda: head_weights(deep()).ov("3", 0), LookupError, "layer has no '3'; it has 0, 1, 2"),
    "labels": (
        lambda: HeadWeights(*[torch.ones(2, 3, 6, 2)] * 3, torch.ones(2, 3, 2, 6), ["0"]), ValueError,
        "labels has 1 labels, the weights have 2 layers",
    ),
    "a name for a model": (
        lambda: head_weights("gpt2"), TypeError, r"study\.head_weights: model is 'gpt2'; give a model",
    ),
}  # fmt: skip


def normed():
    model = deep()
    for block in model.blocks:
        block.attention.query_norm = nn.RMSNorm(5)
    return model.eval()


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_layers_raise(name):
    call, kind, says = REFUSED[name]
    with pytest.raises(kind, match=says):
        call()


def test_composition_table_round_trips(tmp_path):
    table = head_weights(deep()).composition("value")
    again = Table.load(table.save(tmp_path / "composition.safetensors"))
    assert torch.equal(again.values.nan_to_num(9), table.values.nan_to_num(9))
    assert table.top(1) == again.top(1)
    assert study.Table is Table
