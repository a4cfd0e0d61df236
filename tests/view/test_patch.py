"""`view.patch` without a browser: its program matches capture with edits."""

import pytest
import torch
from calls import Calls
from writing_studios import KINDS, TOKENIZER, gpt

from tfviz import view
from tfviz.look import capture, edits
from tfviz.view.studio.patching_program import export_patching, find_sites

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2], [3, 1, 4, 2, 6, 9, 2]])


def neox():
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 4}
    return transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(vocab_size=len(TOKENIZER), **sizes))


def eager():
    transformers = pytest.importorskip("transformers")
    sizes = {"n_positions": 20, "n_embd": 12, "n_layer": 2, "n_head": 3, "bos_token_id": 0, "eos_token_id": 0}
    config = transformers.GPT2Config(vocab_size=len(TOKENIZER), attn_implementation="eager", **sizes)
    return transformers.GPT2LMHeadModel(config)


MODELS = {**{kind: lambda kind=kind: gpt(**KINDS[kind]) for kind in KINDS}, "neox": neox, "eager": eager}


@pytest.mark.parametrize("kind", MODELS)
@torch.no_grad()
def test_patching_program_matches_capture_edits(kind):
    torch.manual_seed(2)
    model = MODELS[kind]().eval()
    sites = find_sites(model)
    program = export_patching(model, sites, "float32")
    layers, positions = len(sites.blocks), IDS.shape[1]
    residual_at = torch.zeros(layers, positions, dtype=torch.bool)
    heads_at = torch.zeros(layers, sites.heads, positions, dtype=torch.bool)
    none = (residual_at, torch.zeros(layers, positions, sites.dim), heads_at)
    clean = program(IDS[:1], *none, torch.zeros(layers, positions, sites.heads, sites.size))
    watched = [f"{path}.input" for path in sites.blocks] + [f"{path}.output_heads" for path in sites.attentions]
    with capture(model, watched) as seen:
        model(IDS[:1])
    for layer, (stream, head) in enumerate(zip(watched, watched[layers:])):
        torch.testing.assert_close(clean["residual"][layer], seen[stream][0], rtol=0, atol=1e-5)
        torch.testing.assert_close(clean["heads"][layer].transpose(0, 1), seen[head][0], rtol=0, atol=1e-5)
    residual_at[1, 4] = heads_at[0, 1, 3] = heads_at[0, 1, 5] = True
    patched = program(IDS[1:], residual_at, clean["residual"], heads_at, clean["heads"])["logits"]
    changes = {
        watched[1]: edits.paste(seen[watched[1]], positions=4),
        watched[layers]: edits.paste(seen[watched[layers]], head=1, positions=[3, 5]),
    }
    with capture(model, [], edit=changes):
        output = model(IDS[1:])
    logits = getattr(output, "logits", output)[0, -1]
    torch.testing.assert_close(patched, logits, rtol=0, atol=1e-5)
    unpatched = model(IDS[1:])
    assert (patched - getattr(unpatched, "logits", unpatched)[0, -1]).abs().max() > 1e-4


def test_patch_leaves_model_hooks_mode_and_weights_unchanged():
    model = gpt().train()
    hooked = []
    model.blocks[0].register_forward_pre_hook(lambda *_: hooked.append(1))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    one, two = (view.patch(model, TOKENIZER, "abc", "abd") for _ in range(2))
    assert one.html() == two.html()
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    modules = [module for module in model.modules() if module._forward_pre_hooks]
    assert modules == [model.blocks[0]]
    assert hooked


def test_summary_contains_top_probability_of_both_runs():
    model = gpt()
    made = view.patch(model, TOKENIZER, "abc", "abd", answers=("g", 3), title="Names")
    with torch.no_grad():
        top = [model(TOKENIZER.encode(text)[None])[0, -1].softmax(-1).max().item() for text in ("abc", "abd")]
    assert made.summary.startswith("Names: clean is 'abc'")
    assert all(f"{share:.3g}" in made.summary for share in top)
    assert (made.document["state"]["clean_answer_id"], made.document["state"]["corrupt_answer_id"]) == (
        TOKENIZER.encode("g").item(),
        3,
    )


def test_figure_picture_has_the_change_at_each_target():
    model, texts = gpt(), [TOKENIZER.encode(text)[None] for text in ("abc", "abd")]
    figure = view.patch(model, TOKENIZER, "abc", "abd", answers=("g", "h"), title="Names").figure()
    right, other = (TOKENIZER.encode(answer).item() for answer in "gh")

    def difference(logits):
        return float(logits[0, -1, right] - logits[0, -1, other])

    (axes,) = figure.axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["a", "b", "c/d"]
    changes = torch.tensor(axes.images[0].get_array().data)
    site = "blocks.1.input"
    with torch.no_grad(), capture(model, site) as clean:
        model(texts[0])
    with torch.no_grad(), capture(model, [], edit={site: edits.paste(clean[site], positions=2)}):
        patched = difference(model(texts[1]))
    with torch.no_grad():
        unpatched = difference(model(texts[1]))
    assert changes.shape == (len(model.blocks), 3)
    assert changes[1, 2].item() == pytest.approx(patched - unpatched, abs=1e-4)
    assert "minus that of" in figure.get_supxlabel()
    bars = view.patch(model, TOKENIZER, "abc", "abd", answers=("g", "h")).figure
    alike = view.patch(model, TOKENIZER, "abc", "abc").figure()  # one answer: nothing to compare
    assert len(bars().axes) == 1 < len(alike.axes)


def test_layers_with_different_heads_raise():
    model = gpt()
    other = gpt(heads=4)
    model.blocks[1] = other.blocks[1]
    with pytest.raises(ValueError, match=r"its layers differ in the number or size of their heads; use study.patch"):
        view.patch(model, TOKENIZER, "abc", "abd")


def test_block_called_twice_raises():
    model = gpt(layers=1)
    twice = Calls(lambda ids: (model(ids), model(ids))[1], inner=model)
    with pytest.raises(ValueError, match="Calls cannot be patched in a page: Calls has no stack of blocks"):
        view.patch(twice, TOKENIZER, "abc", "abd")
