"""The convolutional language model: receptive field, blocks and gates (see also test_language_models.py)."""

from itertools import product

import pytest
import torch
from small_models import build, close, ids, random

from tfviz import look
from tfviz.models.convolution import ConvLM, GatedConvBlock

REACH = {(1, 2, 2): 2, (4, 2, 2): 16, (3, 3, 2): 15, (2, 3, 3): 9, (3, 2, 1): 4, (2, 2, 3): 5, (3, 1, 2): 1}


def convolution(layers=2, kernel=2, dilation=2):
    return build(ConvLM, 11, dim=6, layers=layers, kernel=kernel, dilation=dilation, std=0.7)


@pytest.mark.parametrize(("layers", "kernel", "dilation"), REACH)
def test_reach_matches_the_receptive_field(layers, kernel, dilation):
    model, text = convolution(layers, kernel, dilation), ids(batch=5, length=21)
    assert model.receptive_field == REACH[layers, kernel, dilation]
    changed = text.clone()
    changed[:, 3] = (text[:, 3] + 1) % 11
    moved = (model(changed) != model(text)).any(-1).any(0).nonzero().flatten().tolist()
    taps = product(*(range(0, kernel * dilation**layer, dilation**layer) for layer in range(layers)))
    assert moved == sorted({3 + sum(steps) for steps in taps})
    assert moved[-1] == 3 + model.receptive_field - 1
    model(text, cache := model.new_cache())
    assert torch.equal(cache[0], text[:, 21 - model.receptive_field + 1 :])


def test_causal_block_matches_reference():
    block, x = GatedConvBlock(3, kernel=2, dilation=4), random(2, 7, 3)
    normed, (old, new), bias = block.norm(x), block.convolution.weight.unbind(-1), block.convolution.bias
    for position in range(7):
        both = new @ normed[:, position, :, None] + bias[:, None]
        if position >= 4:
            both = both + old @ normed[:, position - 4, :, None]
        content, gate = both[:, :3, 0], both[:, 3:, 0]
        close(block(x)[:, position], x[:, position] + block.out_proj(content.tanh() * gate.sigmoid()))


def test_gates_can_be_captured_and_zeroed():
    model, text = convolution(), ids()
    with look.capture(model, ["*.gate", "*.filter"]) as seen:
        model(text)
    assert list(seen) == [f"blocks.{block}.{part}" for block in range(2) for part in ("filter", "gate")]
    assert seen["blocks.1.gate"].shape == (2, 7, 6)
    with look.capture(model, "*.gate", edit={"*.gate": torch.zeros_like}):
        shut = model(text)
    bias = sum(block.out_proj.bias for block in model.blocks)
    close(shut, model.to_logits(model.norm(model.tokens(text) + bias)))
