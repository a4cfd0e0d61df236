"""Zeroing a head through its output matches zeroing its map, without computing the map."""

import pytest
import torch
from calls import Calls
from combinations import one_at_a_time
from torch import nn
from torch.nn import functional
from torch.nn.attention.flex_attention import flex_attention
from torch.utils.checkpoint import checkpoint

from tfviz.look import ablate, capture, edits
from tfviz.look.attention_call import AttentionCall
from tfviz.models import GPT

BATCH, HEADS, LENGTH, DIM = 2, 6, 7, 5


class AttentionModel(nn.Module):
    """Attention of one kind."""

    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(3)
        self.kind, groups = kind, 2 if kind == "grouped" else HEADS
        self.query = nn.Parameter(torch.randn(BATCH, HEADS, LENGTH, DIM))
        self.key, self.value = (nn.Parameter(torch.randn(BATCH, groups, LENGTH, DIM)) for _ in range(2))

    def attend(self):
        q, k, v = self.query * 1, self.key * 1, self.value * 1
        if self.kind == "flex":
            return flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + 0.1 * (i - j))
        if self.kind == "written":
            return (q @ k.mT * DIM**-0.5).softmax(-1) @ v
        if self.kind == "masked":
            mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril(-1)  # the first query sees nothing
            return functional.scaled_dot_product_attention(q, k, v, mask)
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.kind == "grouped")

    def forward(self, x=None):
        return self.attend()


KINDS = ["causal", "masked", "grouped", "flex", "written"]


def by_map(head):
    """The same, without what lets a kernel compute it."""
    return lambda weights: edits.zero(head)(weights)


def run(model, edit, **more):
    model.zero_grad()
    whole = model.kind != "flex"  # which has no gradient on a CPU
    with torch.set_grad_enabled(whole), capture(model, ["*.pattern", "*.scores"], edit=edit, **more) as seen:
        output = model()
    if whole:
        (output * torch.arange(output.numel()).view(output.shape) / 100).sum().backward()
    return output.detach(), dict(seen), [parameter.grad for parameter in model.parameters() if whole]


@pytest.mark.parametrize(("kind", "head"), one_at_a_time(KINDS, [4, 0, None]))
def test_zeroing_by_output_matches_zeroing_by_map(kind, head):
    model = AttentionModel(kind)
    output, seen, grads = run(model, {"pattern": edits.zero(head)})
    wanted, maps, slopes = run(model, {"pattern": by_map(head)})
    torch.testing.assert_close(output, wanted)
    for site in ("pattern", "scores"):
        torch.testing.assert_close(seen[site], maps[site])
    for one, other in zip(grads, slopes):
        torch.testing.assert_close(one, other)
    off = slice(None) if head is None else head
    assert not output[:, off].any()
    assert not seen["pattern"][:, off].any()
    plain, whole, _ = run(model, {})
    torch.testing.assert_close(seen["scores"], whole["scores"])
    others = [one for one in range(HEADS) if head is not None and one != head]
    assert torch.equal(output[:, others], plain[:, others])  # the kernel's own, to the bit


def test_zeroing_a_head_keeps_dropout_of_the_others():
    query = torch.randn(BATCH, HEADS, LENGTH, DIM)

    model = Calls(lambda: functional.scaled_dot_product_attention(query, query, query, dropout_p=0.5))
    torch.manual_seed(1)
    plain = model()
    torch.manual_seed(1)
    with capture(model, [], edit={"pattern": edits.zero(2)}):
        output = model()
    assert not output[:, 2].any()
    others = [0, 1, 3, 4, 5]
    assert torch.equal(output[:, others], plain[:, others])


@pytest.mark.parametrize("more", [{"dtype": torch.uint8}, {"dtype": torch.float16}, {"lazy": True}, {"grad": True}])
def test_zeroing_matches_for_every_capture_option(more):
    model = AttentionModel("causal")
    output, seen, _ = run(model, {"pattern": edits.zero(1)}, **more)
    wanted, maps, _ = run(model, {"pattern": by_map(1)}, **more)
    torch.testing.assert_close(output, wanted)
    torch.testing.assert_close(seen["pattern"], maps["pattern"])
    assert not seen["pattern"][:, 1].any()


def test_several_edits_apply_in_order():
    model = AttentionModel("causal")
    both = run(model, {"pattern": edits.zero(1), "*pattern": edits.zero(3)})
    assert not both[1]["pattern"][:, [1, 3]].any()
    assert not both[0][:, [1, 3]].any()
    assert both[0][:, [0, 2, 4, 5]].all()
    even = run(model, {"pattern": edits.uniform(1), "*pattern": edits.zero(1)})
    assert not even[0][:, 1].any()
    last = run(model, {"pattern": edits.zero(1), "*pattern": lambda weights: weights + 1 / LENGTH})
    torch.testing.assert_close(last[0][0, 1, 2], model.value[0, 1].mean(0).detach())
    scored = run(model, {"scores": lambda scores: scores * 2, "pattern": edits.zero(1)})
    wanted = run(model, {"scores": lambda scores: scores * 2, "pattern": by_map(1)})
    torch.testing.assert_close(scored[0], wanted[0])
    torch.testing.assert_close(scored[1]["scores"], wanted[1]["scores"])


def test_outer_capture_sees_the_zeroed_head():
    model = AttentionModel("causal")
    with torch.no_grad(), capture(model) as outer, capture(model, edit={"pattern": edits.zero(1)}) as inner:
        model()
    assert not outer["pattern"][:, 1].any()
    assert torch.equal(outer["pattern"], inner["pattern"])


def test_invalid_head_and_checkpointing_raise():
    model = AttentionModel("causal")
    missing = {"pattern": edits.zero(6)}
    with pytest.raises(ValueError, match="there is no head 6; there are 6"), capture(model, [], edit=missing):
        model()

    start = torch.ones(1, requires_grad=True)
    whole = Calls(lambda: checkpoint(model, start, use_reentrant=False), inner=model)
    with pytest.raises(ValueError, match="checkpointing"), capture(whole, [], edit={"*.pattern": edits.zero(1)}):
        whole()


@pytest.fixture
def made(monkeypatch):
    """How many scores each call of it computes."""
    counts, scores = [], AttentionCall.scores
    monkeypatch.setattr(
        AttentionCall, "scores", lambda *given: counts.append((found := scores(*given)).numel()) or found
    )
    return counts


def test_ablate_computes_no_maps(made):
    model = GPT(11, context=128, layers=2, heads=2, dim=8).eval()
    ids = torch.arange(128)[None] % 11

    def measure():
        with torch.no_grad():
            return model(ids).pow(2).sum().item()

    worth = ablate(model, measure)
    assert not made  # neither for the shapes nor where a head is off
    assert [len(one) for one in worth.values()] == [2, 2]
    with capture(model, [], edit={"*.pattern": by_map(0)}):
        measure()
    assert sum(made[-2:]) >= 2 * 2 * 128 * 128  # so it can be told
