"""Linear attention: its implicit map reproduces its output."""

import pytest
import torch
from calls import Calls
from torch import nn
from torch.nn import functional

from tfviz import look

HEADS, TOKENS, DIM, BATCH = 3, 7, 4, 2


def parts(x, qkv):
    query, key, value = qkv(x).unflatten(-1, (3, HEADS, DIM)).permute(2, 0, 3, 1, 4)
    return functional.elu(query) + 1, functional.elu(key) + 1, value


def by_matmul(query, key, value):
    return query @ (key.transpose(-2, -1) @ value) / (query @ key.sum(-2, keepdim=True).transpose(-2, -1))


def values_first(query, key, value):
    """As in EfficientViT: a row of ones beside the values gives the sum."""
    padded = functional.pad(value.transpose(-2, -1), (0, 0, 0, 1), value=1.0)
    made = (padded @ key) @ query.transpose(-2, -1)
    return (made[..., :-1, :] / made[..., -1:, :]).transpose(-2, -1)


def by_einsum(query, key, value):
    state = torch.einsum("bhnd,bhnm->bhmd", key, value)
    return torch.einsum("bhnd,bhmd->bhnm", query, state) / torch.einsum("bhnd,bhd->bhn", query, key.sum(2))[..., None]


def by_three(query, key, value):
    """As its authors wrote it: the division is a factor of the product."""
    query, key, value = (one.transpose(1, 2) for one in (query, key, value))
    state = torch.einsum("nshd,nshm->nhmd", key, value)
    over = 1 / torch.einsum("nlhd,nhd->nlh", query, key.sum(1))
    return torch.einsum("nlhd,nhmd,nlh->nlhm", query, state, over).transpose(1, 2)


def turned(query, key, value):
    state = (value.transpose(-2, -1) @ key).transpose(-2, -1).contiguous()
    return query @ state / (query @ key.sum(-2, keepdim=True).transpose(-2, -1))


def viewed(query, key, value):
    """Axes are joined on the way, which hides what was added up; the model goes on as it is."""
    made = by_matmul(query, key, value)
    state = (key.transpose(-2, -1) @ value).view(-1, DIM, DIM)
    return made + 0 * (query.flatten(0, 1) @ state).view_as(made).transpose(1, 2).contiguous().view_as(made)


WAYS = [by_matmul, values_first, by_einsum, by_three, turned, viewed]


class Linear(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way, self.qkv, self.num_heads = way, nn.Linear(HEADS * DIM, 3 * HEADS * DIM), HEADS

    def forward(self, x):
        return self.way(*parts(x, self.qkv)).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("way", WAYS)
def test_implicit_map_reproduces_the_output(way):
    torch.manual_seed(0)
    model, x = Linear(way).eval(), torch.randn(BATCH, TOKENS, HEADS * DIM)
    with torch.no_grad(), look.capture(model, "*.implicit") as seen:
        output = model(x)
    assert list(seen) == ["implicit"]
    weights = seen["implicit"]
    query, key, value = parts(x, model.qkv)
    expected = query @ key.transpose(-2, -1)
    assert torch.allclose(weights, expected / expected.sum(-1, keepdim=True), atol=1e-6)
    assert torch.allclose((weights @ value).transpose(1, 2).flatten(2), output, atol=1e-5)
    assert look.AttentionMaps.from_capture(seen, batch=1).shape == (1, HEADS, TOKENS, TOKENS)
    assert list(look.groups(seen)) == ["implicit"]


def test_implicit_map_supports_uint8_and_keeps_gradients():
    model, x = Linear(by_matmul), torch.randn(BATCH, TOKENS, HEADS * DIM)
    with look.capture(model, "*.implicit", dtype=torch.uint8) as seen:
        model(x).sum().backward()
    assert seen["implicit"].dtype == torch.uint8
    own = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    model(x).sum().backward()
    assert all(torch.equal(one, parameter.grad) for one, parameter in zip(own, model.parameters()))


def added(x):
    """A sum that is changed where it stands is no sum of keys and values."""
    state = x.mT @ x
    state += torch.eye(12)
    return x @ state


WITHOUT = {
    "softmax": Calls(lambda x: (x @ x.mT).softmax(-1) @ x),
    "the map itself": Calls(lambda x: (x @ x.mT) @ x),
    "changed in place": Calls(added),
    "no attention": nn.Linear(12, 12),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_other_products_have_no_implicit_map(name):
    with pytest.raises(LookupError, match=r"no site matches '\*.implicit'"), look.capture(WITHOUT[name], "*.implicit"):
        WITHOUT[name](torch.randn(BATCH, TOKENS, 12))


def test_capture_without_maps_mentions_linear_attention():
    model = Linear(by_matmul)
    with pytest.raises(LookupError, match="linear attention"), look.capture(model):
        model(torch.randn(BATCH, TOKENS, HEADS * DIM))


def test_implicit_map_cannot_be_edited():
    with pytest.raises(ValueError, match="only for display"), look.capture(Linear(by_matmul), edit={"*.implicit": abs}):
        pass
