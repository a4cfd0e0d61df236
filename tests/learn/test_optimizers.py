"""Muon: orthogonalized updates, parameter groups, and loading of its state."""

from functools import partial

import pytest
import torch
import trainings
from torch import nn

from tfviz.learn import fit, optimizers
from tfviz.learn.optimizers import Muon, hidden_matrices, muon, orthogonalize
from tfviz.text import Windows

WINDOWS = Windows(torch.arange(300) % 11, length=7, batch_size=5)


gpt = partial(trainings.gpt, dim=12)


@pytest.mark.parametrize("shape", [(3, 5, 9), (3, 9, 5), (2, 6, 6), (4, 1, 7)])
def test_orthogonalize_brings_singular_values_near_one(shape):
    torch.manual_seed(0)
    given = torch.randn(shape) * 40
    u, _, v = torch.linalg.svd(given, full_matrices=False)
    found = orthogonalize(given)
    assert torch.linalg.svdvals(found).sub(1).abs().max() < 0.6
    turned = u.mT @ found @ v.mT  # diagonal: the directions are those of the matrix
    assert turned.sub(torch.diag_embed(turned.diagonal(dim1=1, dim2=2))).abs().max() < 1e-4


def test_orthogonalized_singular_values_are_within_documented_bounds():
    """Diagonal matrices of norm 1 with one singular value from 0.001 to 1."""
    small = torch.logspace(-3, 0, 10_001, dtype=torch.float64)
    found = orthogonalize(torch.diag_embed(torch.stack(((1 - small**2).clamp(min=0).sqrt(), small), 1)))[:, 1, 1]
    assert (round(found.min().item(), 3), round(found.max().item(), 3)) == (0.408, 1.576)
    assert "0.408 to 1.576" in orthogonalize.__doc__


def test_orthogonalize_matches_reference():
    from tfviz.learn.optimizers import NORM_MARGIN, POLYNOMIAL_COEFFICIENTS

    torch.manual_seed(0)
    given = torch.randn(2, 6, 13)
    x = given / (given.norm(dim=(1, 2), keepdim=True) * NORM_MARGIN)
    for a, b, c in POLYNOMIAL_COEFFICIENTS:  # as it is written everywhere
        product = x @ x.mT
        x = a * x + (b * product + c * product @ product) @ x
    torch.testing.assert_close(orthogonalize(given), x, atol=1e-5, rtol=1e-4)


def test_orthogonalize_keeps_zeros():
    assert orthogonalize(torch.zeros(2, 3, 4)).equal(torch.zeros(2, 3, 4))


def test_muon_first_step_matches_reference():
    torch.manual_seed(0)
    matrix, vector = nn.Parameter(torch.randn(4, 6)), nn.Parameter(torch.randn(5))
    before = matrix.detach().clone()
    twin = nn.Parameter(vector.detach().clone())
    groups = [{"params": [matrix], "weight_decay": 0.5, "use_muon": True}, {"params": [vector], "weight_decay": 0.2}]
    optimizer, adamw = Muon(groups, lr=0.1), torch.optim.AdamW([twin], lr=0.1, betas=(0.9, 0.95), weight_decay=0.2)
    matrix.grad, vector.grad = torch.randn(4, 6), torch.randn(5)
    twin.grad = vector.grad.clone()
    u, _, v = torch.linalg.svd(matrix.grad)
    for one in (optimizer, adamw):
        one.step()
    assert vector.equal(twin)
    moved = (before * (1 - 0.1 * 0.5) - matrix) / (0.1 * 0.6 * 6**0.5)
    assert torch.linalg.svdvals(moved).sub(1).abs().max() < 0.6
    assert ((u.mT @ moved)[:, :] @ v[:4].mT).diagonal().sub(1).abs().max() < 0.6


def test_muon_uses_nesterov_momentum():
    weight = nn.Parameter(torch.zeros(1, 3))
    optimizer = Muon([{"params": [weight], "weight_decay": 0.0, "use_muon": True}], lr=1.0)
    gradients = [torch.tensor([[3.0, 0.0, 4.0]]), torch.tensor([[0.0, -2.0, 1.0]])]
    mean, expected = torch.zeros(1, 3), torch.zeros(1, 3)
    for gradient in gradients:
        weight.grad = gradient
        optimizer.step()
        mean = 0.9 * mean + 0.1 * gradient
        ahead = 0.1 * gradient + 0.9 * mean
        expected = expected - 0.6 * 3**0.5 * orthogonalize(ahead[None])[0]
    torch.testing.assert_close(weight.detach(), expected, atol=1e-4, rtol=0)


def test_hidden_matrices_are_those_of_blocks():
    model = gpt()
    inner = list(hidden_matrices(model))
    assert len(inner) == 2 * 4
    assert all(weight.dim() == 2 for weight in inner)
    named = {id(parameter): name for name, parameter in model.named_parameters()}
    assert all(named[id(weight)].startswith("blocks.") for weight in inner)
    layer = nn.TransformerEncoderLayer(12, 3, 20, batch_first=True)
    assert (
        len(list(hidden_matrices(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)))) == 2 * 4
    )  # in_proj_weight is one
    shared = nn.ModuleList([nn.Linear(3, 3)] * 2)
    assert len(list(hidden_matrices(shared))) == 1
    assert not list(hidden_matrices(nn.ModuleList([nn.Embedding(5, 3)])))
    assert not list(hidden_matrices(nn.Linear(3, 3)))


def test_hidden_matrices_exclude_tied_embeddings():
    both = nn.ModuleList([nn.Embedding(5, 3), nn.Linear(3, 5, bias=False), nn.EmbeddingBag(5, 3), nn.Linear(3, 4)])
    both[1].weight = both[0].weight
    assert [tuple(weight.shape) for weight in hidden_matrices(both)] == [(4, 3)]


def test_muon_orthogonalizes_large_stacks_in_chunks(monkeypatch):
    def moved():
        torch.manual_seed(0)
        weights = [nn.Parameter(torch.randn(3, 5)) for _ in range(7)]
        for weight in weights:
            weight.grad = torch.randn(3, 5)
        Muon([{"params": weights, "use_muon": True}], lr=0.1).step()
        return torch.stack([weight.detach() for weight in weights])

    together, sizes = moved(), []
    whole = optimizers.orthogonalize
    monkeypatch.setattr(optimizers, "MAX_STACKED_NUMBERS", 40)
    monkeypatch.setattr(optimizers, "orthogonalize", lambda given: (sizes.append(len(given)), whole(given))[1])
    torch.testing.assert_close(moved(), together)
    assert sizes == [2, 2, 2, 1]


def test_orthogonalize_is_unaffected_by_autocast():
    torch.manual_seed(0)
    u, v = (torch.linalg.qr(torch.randn(256, 256))[0] for _ in range(2))
    given = ((u / torch.arange(1, 257)) @ v)[None]
    with torch.autocast("cpu", torch.bfloat16):
        found = orthogonalize(given)
    assert found.equal(orthogonalize(given))
    assert torch.linalg.svdvals(found).max() < 2


def test_loaded_state_is_on_the_device_of_the_weights():
    """As when a run goes on on a GPU: the count of steps of a fused AdamW must be there, too."""
    model = gpt()
    list(fit(model, WINDOWS, 1, optimizer=(made := muon(model, 1e-2)), progress=False))
    other = muon(gpt().to("meta"), 1e-2)
    other.load_state_dict(made.state_dict())
    kept = [value for state in other.state.values() for value in state.values()]
    assert {value.device.type for value in kept} == {"meta"}
    assert {state["step"].dtype for state in made.state.values() if "step" in state} == {torch.float32}


def test_muon_rejects_complex_weights():
    with pytest.raises(ValueError, match="complex weights"):
        muon(nn.Linear(3, 3, dtype=torch.complex64), 1e-2)


def test_muon_groups_hold_every_weight_once():
    model = gpt()
    optimizer = muon(model, 1e-2)
    moved = [id(weight) for group in optimizer.param_groups for weight in group["params"]]
    assert sorted(moved) == sorted(map(id, model.parameters()))
    plain = nn.Linear(3, 5)
    assert [group["use_muon"] for group in muon(plain, 1e-2).param_groups] == [False, False]


def test_muon_keeps_frozen_weights():
    model = gpt()
    model.blocks[0].requires_grad_(requires_grad=False)
    before = model.blocks[0].attention.in_proj.weight.clone()
    list(fit(model, WINDOWS, 2, optimizer=muon(model, 1e-2), lr=1e-2, progress=False))
    assert model.blocks[0].attention.in_proj.weight.equal(before)
