"""Edits of one position in each text, and heads of keys and values that several queries share."""

import pytest
import small_models
import torch
from small_transformers import small_model

from tfviz import look

IDS = torch.tensor([[3, 5, 8, 2, 9, 4], [3, 7, 8, 1, 9, 10], [6, 5, 1, 2, 11, 4]])
MASK = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0]])
LAST = MASK.sum(-1) - 1
VECTOR = torch.randn(12, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def gpt():
    return small_models.gpt(13, dim=12)


@pytest.fixture(scope="module")
def llama():
    return small_model("LlamaForCausalLM", vocab_size=13)


EDITS = {
    "add": ("blocks.0", lambda where: look.edits.add(VECTOR, positions=where)),
    "zero": ("blocks.1.attention", lambda where: look.edits.zero(positions=where)),
    "paste": ("blocks.0.input", lambda where: look.edits.paste(VECTOR, positions=where)),
    "one head": ("*.output_heads", lambda where: look.edits.zero(head=1, positions=where)),
    "two heads": ("*.output_heads", lambda where: look.edits.zero(head=[2, 0], positions=where)),
    "all heads": ("*.output_heads", lambda where: look.edits.zero(positions=where)),
    "queries": ("*.pattern", lambda where: look.edits.zero(head=1, positions=where)),
}


def run(model, ids, site, edit):
    with torch.no_grad(), look.capture(model, [], edit={site: edit}):
        return model(ids)


@pytest.mark.parametrize("name", EDITS)
def test_tensor_of_positions_has_one_per_text(gpt, name):
    site, edit = EDITS[name]
    together = run(gpt, IDS, site, edit(LAST))
    single = [run(gpt, IDS[text : text + 1], site, edit(int(LAST[text]))) for text in range(len(IDS))]
    assert torch.allclose(together, torch.cat(single), atol=1e-5)
    assert torch.equal(run(gpt, IDS, site, edit(LAST - 6)), together)  # counted from the end
    for same in ([2, 4], (2, 4), {2, 4}):
        assert torch.equal(run(gpt, IDS, site, edit(same)), run(gpt, IDS, site, edit([4, 2])))
    assert torch.equal(run(gpt, IDS, site, edit(torch.tensor(3))), run(gpt, IDS, site, edit(3)))


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        (torch.tensor([1, 2]), r"positions is a tensor \[2\] of torch.int64, and there are 3 texts"),
        (torch.tensor([[1], [2], [3]]), r"positions is a tensor \[3, 1\]"),
        (torch.tensor([1.0, 2.0, 3.0]), "of torch.float32"),
        (torch.tensor([], dtype=torch.long), r"positions is a tensor \[0\]"),
        (torch.tensor([1, 2, 6]), "there is no position 6; there are 6"),
        (torch.tensor([1, -7, 0]), "there is no position -7; there are 6"),
    ],
)
def test_mismatched_positions_raise(gpt, positions, message):
    with pytest.raises(ValueError, match=message):
        run(gpt, IDS, "blocks.0", look.edits.add(VECTOR, positions=positions))


def test_positions_within_steps_of_generation_warn(llama):
    edit = {"model.layers.0": look.edits.add(VECTOR.repeat(2), positions=0)}
    with look.capture(llama, [], edit=edit), pytest.warns(UserWarning, match="computes one position at a time"):
        llama.generate(IDS[:1], max_new_tokens=3, do_sample=False)
    with look.capture(llama, [], edit=edit):  # warnings are errors here
        llama.generate(IDS[:1], max_new_tokens=3, do_sample=False, use_cache=False)


def test_shared_keys_and_values_have_one_head_a_group_with_and_without_padding(llama):
    seen = []
    for mask in (None, torch.ones_like(MASK), MASK):
        with torch.no_grad(), look.capture(llama, ["*.query", "*.key", "*.value"]) as found:
            llama(IDS, attention_mask=mask)
        assert [found[f"model.layers.0.self_attn.{name}"].shape[1] for name in ("query", "key", "value")] == [4, 2, 2]
        seen.append(found)
    for site in seen[0]:
        assert torch.allclose(seen[0][site][:1], seen[2][site][:1], atol=1e-6)


@pytest.mark.parametrize("name", ["key", "value"])
def test_editing_a_shared_head_changes_all_queries_of_its_group(llama, name):
    site = f"model.layers.1.self_attn.{name}"
    edit = look.edits.zero(head=1)
    masks = (None, MASK)
    first = [run_masked(llama, {site: edit}, mask)[0] for mask in masks]
    assert torch.allclose(first[0], first[1], atol=1e-5)  # the first text is not padded
    plain = run_masked(llama, {}, None)[0]
    assert (first[0] - plain).abs().max() > 1e-4


def run_masked(model, edit, mask):
    with torch.no_grad(), look.capture(model, [], edit=edit):
        return model(IDS, attention_mask=mask).logits
