"""Gradients of captured patterns, measures that use them, and edits by site name."""

import pytest
import torch
from calls import Calls
from small_models import randomize_weights
from torch import nn

from tfviz.look import capture, edits, measures
from tfviz.models import Classifier

IDS = torch.tensor([[3, 5, 7, 2, 9], [4, 4, 6, 8, 1]])


def model():
    torch.manual_seed(2)
    return randomize_weights(Classifier(11, 3, context=8, layers=2, heads=3, dim=12), seed=None, std=0.4)


def test_pattern_gradients_match_finite_differences():
    made = model().double()
    site = "blocks.0.attention.pattern"
    with capture(made, grad=True) as seen:
        logits = made(IDS)
    torch.testing.assert_close(logits, made(IDS), rtol=1e-5, atol=1e-5)
    logits[0, 1].backward()
    assert all(seen[name].grad is not None for name in seen)
    step = 1e-3

    def moved(by):
        def change(weights):
            weights = weights.clone()
            weights[0, 2, 1, 3] += by
            return weights

        with torch.no_grad(), capture(made, edit={site: change}):
            return made(IDS)[0, 1].item()

    slope = (moved(step) - moved(-step)) / (2 * step)
    assert seen[site].grad[0, 2, 1, 3].item() == pytest.approx(slope, rel=2e-2, abs=1e-4)


@pytest.mark.parametrize("written", [True, False])
def test_pattern_gradients_of_raw_attention_match_reference(written):
    def attend(q, k, v):
        if written:
            return (q @ k.mT).softmax(-1) @ v
        return nn.functional.scaled_dot_product_attention(q, k, v, scale=1.0)

    q, k, v = (torch.randn(2, 3, n, 4, requires_grad=True) for n in (5, 7, 7))
    own = Calls(attend)
    with capture(own, grad=True) as seen:
        made = own(q, k, v)
    made.square().sum().backward()
    weights = (q @ k.mT).softmax(-1).detach().requires_grad_()
    (weights @ v).square().sum().backward()
    torch.testing.assert_close(seen["pattern"].grad, weights.grad)
    torch.testing.assert_close(seen["pattern"].detach(), weights.detach())


def test_relevance_matches_reference():
    made = model()
    with capture(made, grad=True) as seen:
        made(IDS)[0, 2].backward()
    weights, gradients = (
        torch.stack([part(seen[site])[0] for site in seen]) for part in (lambda t: t, lambda t: t.grad)
    )
    found = measures.relevance(weights, gradients)
    expected = torch.eye(weights.shape[-1])
    for layer in range(2):
        cam = sum((gradients[layer, head] * weights[layer, head]).clamp(min=0) for head in range(3)) / 3
        expected = expected + cam @ expected
        torch.testing.assert_close(found[layer], expected)
    assert not found.requires_grad
    with pytest.raises(ValueError, match="they must have one shape"):
        measures.relevance(weights, gradients[:1])
    with pytest.raises(ValueError, match="square maps"):
        measures.relevance(weights[..., :3], gradients[..., :3])


def test_grad_capture_warns_without_gradients():
    made = model()
    with pytest.warns(UserWarning, match="ran without gradients"), torch.no_grad(), capture(made, grad=True) as seen:
        made(IDS)
    assert not seen["blocks.0.attention.pattern"].requires_grad


def test_edit_receives_the_site_name():
    named = []

    def change(weights, site):
        named.append(site)
        return edits.zero(0)(weights)

    made = model()
    with torch.no_grad(), capture(made, edit={"*.pattern": change}):
        one = made(IDS)
    with torch.no_grad(), capture(made, edit={"*.pattern": edits.zero(0)}):
        other = made(IDS)
    torch.testing.assert_close(one, other)  # by the map, and by the kernel's output
    assert named == ["blocks.0.attention.pattern", "blocks.1.attention.pattern"]


def test_module_named_query_keeps_its_own_site():
    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key = nn.Linear(6, 6), nn.Linear(6, 6)

        def forward(self, x):
            heads = [part(x).unflatten(-1, (3, 2)).transpose(1, 2) for part in (self.query, self.key)]
            return nn.functional.scaled_dot_product_attention(*heads, heads[1])

    made, x = Bert(), torch.randn(2, 5, 6)
    with torch.no_grad(), capture(made, ["query", "query_heads", "value"]) as seen:
        made(x)
    assert seen["query"].shape == (2, 5, 6)
    assert seen["query_heads"].shape == seen["value"].shape == (2, 3, 5, 2)
