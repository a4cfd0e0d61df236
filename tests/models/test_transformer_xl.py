"""Transformer-XL: segments with memory match one long pass, and no gradient flows through the memory."""

import pytest
import torch
from combinations import one_at_a_time
from small_models import build, close

from tfviz import text
from tfviz.layers import Block, masks, post_norm, pre_norm
from tfviz.learn import losses
from tfviz.look import capture
from tfviz.models import TransformerXL

norms = pytest.mark.parametrize("residual", [pre_norm, post_norm])
IDS = torch.randint(11, (2, 12), generator=torch.Generator().manual_seed(3))


def transformer(**parts):
    return build(TransformerXL, 11, **{"memory": 20, "layers": 2, "heads": 3, "dim": 6, **parts})


def in_segments(model, ids, splits):
    """The logits of a text that is read segment by segment."""
    memory = model.new_cache()
    return torch.cat([model(segment, memory) for segment in ids.split(splits, dim=1)], dim=1)


def plain(model, ids):
    """The logits by the blocks of any other model, which know of no memory."""
    x, mask = model.tokens(ids), masks.causal.dense(ids.shape[1], ids.shape[1])
    for block, distances in zip(model.blocks, model.distances, strict=True):
        x = Block.forward(block, x, mask=mask, positions=distances)
    return model.norm(x) @ model.tokens.weight.T


@pytest.mark.parametrize(
    ("splits", "memory", "residual"),
    one_at_a_time([[5, 3, 4], [12], [6, 6], [1, 11], [11, 1], [1] * 12], [12, 50], [pre_norm, post_norm]),
)
def test_segments_with_memory_match_one_long_pass(splits, memory, residual):
    model = transformer(residual=residual, memory=memory)
    close(in_segments(model, IDS, splits), model(IDS))
    close(model(IDS), plain(model, IDS))


def test_memory_holds_attention_inputs():
    model, memory = transformer(memory=4), transformer().new_cache()
    for length, kept in ((3, 3), (2, 4), (7, 4)):
        model(IDS[:, :length], memory)
        assert [tuple(one.shape) for one in memory] == [(2, kept, 6)] * 2
        assert not any(one.requires_grad for one in memory)
    with capture(model, "blocks.*.attention_norm") as seen:
        model(IDS[:, :7])
    model(IDS[:, :7], fresh := model.new_cache())
    for layer in range(2):
        assert torch.equal(fresh[layer], seen[f"blocks.{layer}.attention_norm"][:, -4:])


def first_seen(position, segment, memory, layers):
    """The first position that has a part in what is known at one: each layer sees a memory before the segment."""
    for _ in range(layers):
        position = position // segment * segment - memory
    return position


@torch.no_grad()
@pytest.mark.parametrize(
    ("sizes", "residual"),
    one_at_a_time([(3, 2), (1, 3), (1, 1), (1, 0), (3, 3), (2, 3), (4, 1), (4, 0)], [pre_norm, post_norm]),
)
def test_memory_length_limits_the_context(sizes, residual):
    segment, memory = sizes
    model = transformer(residual=residual, memory=memory).double()
    changed = (IDS[:1] + torch.eye(12, dtype=torch.long)) % 11  # row by row another token
    logits = in_segments(model, torch.cat((IDS[:1], changed)), segment)
    moved = (logits[1:] - logits[0]).abs().amax(-1) > 1e-12
    for position in range(12):
        first = first_seen(position, segment, memory, layers=2)
        assert moved[:, position].tolist() == [first <= token <= position for token in range(12)]
    if segment == 1:  # the number in the docstring
        assert [position - first_seen(position, 1, memory, layers=2) for position in range(12)] == [2 * memory] * 12


def test_gradients_match_long_pass_with_detached_past():
    """The gradient is that of one long pass in which attention takes the past as it is."""
    segmented, whole, memory = transformer(), transformer(), []
    segmented(IDS[:, :5], memory)
    segmented(IDS[:, 5:], memory).square().mean().backward()
    for block in whole.blocks:
        block.attention_norm.register_forward_hook(lambda module, given, x: torch.cat((x[:, :5].detach(), x[:, 5:]), 1))
    plain(whole, IDS)[:, 5:].square().mean().backward()
    for (name, one), other in zip(segmented.named_parameters(), whole.parameters(), strict=True):
        assert one.grad.abs().sum() > 0, name
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_segment_recurrent_loss_matches_one_long_pass():
    model, ids = transformer(), IDS.flatten()[:21]
    streams, carried = text.Streams(ids, length=5, batch_size=2), losses.SegmentRecurrentLoss()
    assert len(streams) == 2
    (first, first_count), (second, second_count) = (carried(model, streams[step]) for step in range(2))
    rows = torch.stack((ids[:11], ids[10:21]))
    chances = model(rows[:, :10]).log_softmax(-1).gather(-1, rows[:, 1:, None]).squeeze(-1)
    assert (first_count, second_count) == (10, 10)
    close(first, -chances[:, :5].sum(), 1e-4)
    close(second, -chances[:, 5:].sum(), 1e-4)
    forgetful, _ = losses.SegmentRecurrentLoss()(model, streams[1])
    assert (forgetful - second).abs() > 1e-2


@torch.no_grad()
def test_segment_recurrent_loss_keeps_a_memory_per_stream():
    model, streams, carried = (
        transformer(),
        text.Streams(IDS.flatten(), length=3, batch_size=2),
        losses.SegmentRecurrentLoss(),
    )
    together = [carried(model, streams[step])[0] for step in range(3)]
    alone = losses.SegmentRecurrentLoss()
    for step in range(3):  # one after the other, as when a batch is taken in parts
        parts = [alone(model, tuple(part[row : row + 1] for part in streams[step])) for row in (1, 0)]
        close(sum(total for total, _ in parts), together[step], 1e-4)


def totals(carried, streams, steps, model):
    with torch.no_grad():
        return [carried(model, streams[step])[0].item() for step in steps]


@pytest.mark.parametrize("begun", [[], [0], [0, 1], [0, 1, 2]])
def test_segment_recurrent_loss_resets_when_a_stream_restarts(begun):
    model, streams = transformer(), text.Streams(IDS.flatten(), length=3, batch_size=2)
    carried = losses.SegmentRecurrentLoss()
    totals(carried, streams, begun, model)
    assert totals(carried, streams, range(3), model) == totals(losses.SegmentRecurrentLoss(), streams, range(3), model)
    assert totals(carried, streams, [3, 4], model) == totals(losses.SegmentRecurrentLoss(), streams, [0, 1], model)


def test_segment_recurrent_loss_ignores_stale_memory():
    model, streams = transformer(), text.Streams(IDS.flatten(), length=3, batch_size=2)
    gone_by, fresh = losses.SegmentRecurrentLoss(), losses.SegmentRecurrentLoss()
    totals(gone_by, streams, [0], model)
    assert totals(gone_by, streams, [2], model) == totals(fresh, streams, [2], model)
    one = text.Streams(IDS.flatten(), length=3, batch_size=1)
    mixed = losses.SegmentRecurrentLoss()
    totals(mixed, streams, [0], model)
    assert totals(mixed, one, [1], model) == totals(losses.SegmentRecurrentLoss(), one, [1], model)
    assert len(gone_by.memories) < 4
