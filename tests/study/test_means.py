"""Mean activations over a data set compared with a hook-based reference, and patching with them."""

import pytest
import torch
from study_models import FAMILIES, IDS, MASK, build, call, cut, prompts, recorded, run, score

from tfviz import look, study

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning:transformers")
SITES = {
    "GPT-2": ("transformer.h.1.attn.output_heads", "transformer.h.1.attn.c_proj", 4, "input"),
    "Llama": ("model.layers.0.mlp", "model.layers.0.mlp", None, "output"),
    "T5": (
        "decoder.block.1.layer.0.SelfAttention.output_heads", "decoder.block.1.layer.0.SelfAttention.o", 4, "input",
    ),
    "GPT": ("blocks.0.attention.output_heads", "blocks.0.attention.out_proj", 4, "input"),
}  # fmt: skip
DECODED_MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]])


def batches(name):
    clean, other = prompts(name, padded=name != "GPT")
    if name == "T5":
        clean["decoder_attention_mask"] = other["decoder_attention_mask"] = DECODED_MASK
    first = {key: value[:2] for key, value in other.items()} if isinstance(other, dict) else other[:2]
    return clean, [clean, first]


@pytest.mark.parametrize("by_position", [False, True])
@pytest.mark.parametrize("name", SITES)
def test_mean_activations_and_patching_match_reference(name, by_position, tmp_path):
    site, module, heads, at = SITES[name]
    model = build(*FAMILIES[name][:2])
    clean, texts = batches(name)
    rows, words = [], []
    for batch in texts:
        with torch.no_grad():
            rows.append(recorded(model, batch, module, at))
        plain = torch.ones(rows[-1].shape[:2])
        mask = {"T5": DECODED_MASK, "GPT": plain}.get(name, MASK)[: len(plain)]
        words.append(mask.bool())
    values, marks = torch.cat(rows).double(), torch.cat(words)[..., None]
    axes = (0,) if by_position else (0, 1)
    expected = (values * marks).sum(axes, keepdim=True) / marks.sum(axes, keepdim=True)
    expected = expected.float()
    expected = expected if heads is None else expected.unflatten(-1, (heads, -1)).transpose(1, 2)
    kept = tmp_path / "means"
    for _ in range(2):  # the second time from the file
        found = study.mean_activations(model, texts, sites=site, by_position=by_position, progress=False, resume=kept)
        assert list(found) == [site]
        torch.testing.assert_close(found[site], expected)
    table = study.patch(model, clean, metric=score, source=found, progress=False, batch_size=5)
    changed = []
    with torch.no_grad():
        base = score(call(model, clean))
        own = recorded(model, clean, module, at)
        source = expected if heads is None else expected.transpose(1, 2).flatten(-2)
        source = source.expand_as(own)
        for index in range(heads or own.shape[1]):
            where = (index, None) if heads else (None, index)

            def change(tensor, where=where):
                tensor = tensor.clone()
                cut(tensor, heads, *where)[:] = cut(source, heads, *where)
                return tensor

            changed.append(score(run(model, clean, module, change, at)) - base)
    torch.testing.assert_close(table.values[0], torch.stack(changed), rtol=1e-4, atol=1e-4)
    assert table.notes["source"] == "custom"
    edit = look.edits.paste(found[site], head=0 if heads else None, positions=None if heads else 0)
    with torch.no_grad(), look.capture(model, [], edit={site: edit}):
        torch.testing.assert_close(score(call(model, clean)) - base, changed[0], rtol=1e-4, atol=1e-4)


def test_resume_rejects_another_mean(tmp_path):
    model, kept = build(*FAMILIES["GPT"][:2]), tmp_path / "patches"
    for mean in (0.0, 1.0):
        by = {"blocks.0.attention.output_heads": torch.full((6,), mean)}
        call = {"metric": score, "source": by, "resume": kept, "progress": False}
        if mean:
            with pytest.raises(ValueError, match="holds results of another model, prompt"):
                study.patch(model, IDS, **call)
        else:
            zero = study.patch(model, IDS, metric=score, source="zero", sites=list(by), progress=False)
            torch.testing.assert_close(study.patch(model, IDS, **call).values, zero.values)
