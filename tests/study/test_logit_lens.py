"""The logit lens compared with the model's own norm and unembedding applied to its hidden states."""

import sys
from functools import partial

import pytest
import torch
from study_models import FAMILIES, IDS, MASK, SMALL, VOCAB_SIZE, build, config
from torch import nn

from tfviz.study import LensTable, Table, logit_lens
from tfviz.view import table as table_view

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:transformers")
GEMMA = partial(
    config, "Gemma2", head_dim=8, num_key_value_heads=2, max_position_embeddings=8, final_logit_softcapping=0.7, **SMALL
)
ONE = {"input_ids": IDS[:1], "attention_mask": MASK[:1]}
DECODED = torch.tensor([[0, 9, 8, 1]])
KINDS = {  # name -> class, config, prompt, the residual stream's last norm, what reads it
    "GPT-2": (*FAMILIES["GPT-2"][:2], ONE, "transformer.ln_f", lambda model, x: model.lm_head(x)),
    "Llama": (*FAMILIES["Llama"][:2], ONE, "model.norm", lambda model, x: model.lm_head(x)),
    "Gemma 2": (
        "Gemma2ForCausalLM", GEMMA, ONE, "model.norm", lambda model, x: (model.lm_head(x) / 0.7).tanh() * 0.7,
    ),
    "T5": (
        *FAMILIES["T5"][:2], ONE | {"decoder_input_ids": DECODED}, "decoder.final_layer_norm",
        lambda model, x: model.lm_head(x * (24**-0.5 if model.config.scale_decoder_outputs else 1)),
    ),
    "BERT": (*FAMILIES["BERT"][:2], ONE, "", lambda model, x: model.cls(x)),
}  # fmt: skip


def by_hand(model, kind):
    _, _, prompt, norm, output = kind
    with torch.no_grad():
        found = model(**prompt, output_hidden_states=True)
        streams = list(found.decoder_hidden_states if "decoder_hidden_states" in found else found.hidden_states)
        if norm:  # the last of Hugging Face's hidden states has had it
            module = model.get_submodule(norm)
            logits = [output(model, module(stream)) for stream in streams[:-1]] + [output(model, streams[-1])]
        else:
            logits = [output(model, stream) for stream in streams]
    return torch.cat([part.float() for part in logits]).softmax(-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", KINDS)
def test_lens_matches_reference(name, dtype):
    kind = KINDS[name]
    model = build(*kind[:2], dtype)
    expected = by_hand(model, kind)
    assert len(expected) == 3
    tolerance = 1e-5 if dtype == torch.float32 else 0.03
    table = logit_lens(model, kind[2], top_k=4)
    torch.testing.assert_close(table.values, expected.max(-1).values, rtol=0, atol=tolerance)
    likeliest = expected.topk(4)
    torch.testing.assert_close(table.probabilities, likeliest.values, rtol=0, atol=tolerance)
    assert dtype != torch.float32 or torch.equal(table.ids, likeliest.indices)
    assert list(table.axes["layer"]) == ["in", "0", "1"]
    named = logit_lens(model, kind[2], token=6)
    torch.testing.assert_close(named.values, expected[..., 6], rtol=0, atol=tolerance)
    assert named.title.endswith("of 6")
    assert named.probabilities.shape == (3, expected.shape[1], 10)


def test_lens_matches_reference_for_tfviz_gpt():
    model = build(*FAMILIES["GPT"][:2])
    streams = []
    with torch.no_grad():
        handles = [block.register_forward_pre_hook(lambda _, args: streams.append(args[0])) for block in model.blocks]
        handles.append(model.norm.register_forward_pre_hook(lambda _, args: streams.append(args[0])))
        model(IDS[1:2])
        for handle in handles:
            handle.remove()
        expected = (model.norm(torch.cat(streams)) @ model.tokens.weight.T).softmax(-1)
    torch.testing.assert_close(logit_lens(model, IDS[1:2]).values, expected.max(-1).values)


@pytest.mark.parametrize("name", ["GPT-2", "T5"])
def test_lens_positions_are_named_by_their_ids(name):
    kind = KINDS[name]
    prompt = {**kind[2]}
    prompt["attention_mask"] = prompt.pop("attention_mask")  # the last, as a tokenizer has it
    table = logit_lens(
        build(*kind[:2]), prompt, to_tokens=lambda ids: [f"<{number}>" for number in ids], token=3, top_k=2
    )
    own = DECODED if name == "T5" else IDS[:1]
    assert list(table.axes["position"]) == [f"<{number}>" for number in own[0].tolist()]
    assert table.tokens == [[[f"<{number}>" for number in cell] for cell in layer] for layer in table.ids.tolist()]
    assert table.title.endswith("of <3>")


class InPlaceBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)

    def forward(self, x):
        x += self.linear(x)
        return x


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.head = nn.Embedding(VOCAB_SIZE, 6), nn.Linear(6, VOCAB_SIZE)
        self.blocks = nn.ModuleList(InPlaceBlock() for _ in range(2))

    def forward(self, ids):
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


@pytest.mark.parametrize("compiled", [False, True])
def test_lens_supports_in_place_and_compiled_models(compiled):
    model = build(InPlace, None)
    with torch.no_grad():
        streams = [model.tokens(IDS[:1])]
        for block in model.blocks:
            streams.append(streams[-1] + block.linear(streams[-1]))
        expected = model.head(torch.cat(streams)).softmax(-1).max(-1).values
    if compiled:
        model = torch.compile(model, backend="eager")
        with torch.no_grad():
            model(IDS[:1])
    torch.testing.assert_close(logit_lens(model, IDS[:1]).values, expected)


def test_lens_in_chunks_matches_one_run(monkeypatch):
    model = build(*FAMILIES["Llama"][:2])
    whole = logit_lens(model, ONE)
    monkeypatch.setattr(sys.modules["tfviz.study.logit_lens"], "MAX_POSITIONS_PER_RUN", 7)
    parts = logit_lens(model, ONE)
    torch.testing.assert_close(parts.values, whole.values)
    torch.testing.assert_close(parts.probabilities, whole.probabilities)


def test_lens_rejects_unsupported_models():
    albert = build("AlbertForMaskedLM", partial(config, "Albert", embedding_size=8, max_position_embeddings=8, **SMALL))
    with pytest.raises(LookupError, match="AlbertForMaskedLM has no stack of blocks"):
        logit_lens(albert, IDS[:1])
    with pytest.raises(LookupError, match="Sequential has no stack of blocks"):
        logit_lens(nn.Sequential(nn.Embedding(VOCAB_SIZE, 4), nn.Linear(4, VOCAB_SIZE)), IDS[:1])
    vit = build(*FAMILIES["ViT"][:2])
    with pytest.raises(ValueError, match=r"logits are \[1, 7\]; the lens reads"):
        logit_lens(vit, {"pixel_values": torch.ones(1, 3, 8, 8)})


def test_lens_restores_the_model():
    model = build(*FAMILIES["GPT-2"][:2]).train()
    own = model.transformer.h[1].forward

    def wrapper(*args, **kwargs):
        return own(*args, **kwargs)

    model.transformer.h[1].forward = wrapper
    logit_lens(model, ONE)
    with pytest.raises(ZeroDivisionError):
        logit_lens(model, ONE, to_tokens=lambda ids: 1 / 0)
    assert model.transformer.h[1].forward is wrapper
    assert "forward" not in vars(model.transformer.h[0])
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_lens_table_round_trips(tmp_path):
    shares, ids = torch.rand(2, 3, 4), torch.arange(24).view(2, 3, 4)
    tokens = [[[f"{layer}{position}{rank}" for rank in range(4)] for position in range(3)] for layer in range(2)]
    axes = {"layer": ["in", "0"], "position": list("abc")}
    table = LensTable(shares[..., 0], axes, "probability", "t", {"model": "M"}, ids, shares, tokens)
    again = Table.load(table.save(tmp_path / "lens"))
    assert isinstance(again, LensTable)
    assert torch.equal(again.values, table.values)
    assert torch.equal(again.ids, ids)
    assert torch.equal(again.probabilities, shares)
    assert (again.tokens, again.axes, again.notes) == (tokens, axes, {"model": "M"})
    with pytest.raises(ValueError, match="tokens must have a list of names for each cell"):
        LensTable(shares[..., 0], axes, "", "", {}, ids, shares, tokens[:1])
    with pytest.raises(ValueError, match=r"text_tokens must have a name for each of 2 positions of 2 texts"):
        LensTable(
            torch.zeros(2, 1, 2), {"text": "01", "layer": "0", "position": "ab"}, "", "", {},
            torch.zeros(2, 1, 2, 1).long(), torch.zeros(2, 1, 2, 1), [[[["a"], ["b"]]]] * 2,
        )  # fmt: skip


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "T5", "BERT"])
def test_lens_of_a_batch_matches_single_texts(name, tmp_path, monkeypatch):
    model = build(*KINDS[name][:2])
    prompt = {"input_ids": IDS, "attention_mask": MASK}
    if name == "T5":
        decoded = torch.tensor([[0, 5, 8, 2], [0, 9, 8, 1], [0, 4, 1, 2]])
        prompt["decoder_input_ids"] = decoded
    named = lambda ids: [f"<{number}>" for number in ids]  # noqa: E731
    monkeypatch.setattr(sys.modules["tfviz.study.logit_lens"], "MAX_POSITIONS_PER_RUN", 40)
    batch = logit_lens(model, prompt, to_tokens=named, top_k=3)
    monkeypatch.undo()
    batch = Table.load(batch.save(tmp_path / "lens"))
    assert list(batch.axes) == ["text", "layer", "position"]
    assert batch.values.shape == (3, 3, 4 if name == "T5" else 6)
    for number in range(3):
        one = logit_lens(
            model, {key: value[number : number + 1] for key, value in prompt.items()}, to_tokens=named, top_k=3
        )
        part = batch.text(number)
        torch.testing.assert_close(part.values, one.values, equal_nan=True)
        words = (MASK[number] == 1) if name != "T5" else torch.ones(4, dtype=torch.bool)
        assert torch.equal(part.values.isnan(), ~words.expand(3, -1))
        torch.testing.assert_close(part.probabilities[:, words], one.probabilities[:, words])
        assert torch.equal(part.ids[:, words], one.ids[:, words])
        assert (part.axes, part.notes["text"]) == (one.axes, number)
        assert [cell for layer in part.tokens for cell in layer] == [
            named(cell) for cell in part.ids.flatten(0, 1).tolist()
        ]
    view = table_view(batch)
    assert [len(tab["panels"][0]["details"]) for tab in view.document["tabs"]] == [3, 3, 3]
