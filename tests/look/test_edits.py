"""Edits of attention weights: exact values, rows that still sum to 1, and what stays unchanged."""

import pytest
import torch
from combinations import one_at_a_time

from tfviz import look
from tfviz.look import edits


def weights(*shape):
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(4))
    causal = torch.ones(shape[-2:], dtype=torch.bool).tril()
    return drawn.masked_fill(~causal, -torch.inf).softmax(-1)


def test_zero_changes_only_its_head():
    given = weights(2, 3, 5, 5)
    made = edits.zero(1)(given)
    assert not made[:, 1].any()
    assert torch.equal(made[:, [0, 2]], given[:, [0, 2]])
    assert not edits.zero()(given).any()


def test_uniform_spreads_weight_over_visible_keys():
    made = edits.uniform(2)(weights(2, 3, 5, 5))
    assert torch.equal(made[0, 2, 3], torch.tensor([0.25, 0.25, 0.25, 0.25, 0.0]))
    assert torch.equal(edits.uniform()(torch.zeros(1, 1, 2, 3)), torch.zeros(1, 1, 2, 3))


def test_hide_redistributes_weight_in_proportion():
    given = torch.tensor([[[[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]]]])
    made = edits.hide([(0, 2), (1, 0)])(given)
    torch.testing.assert_close(made[0, 0], torch.tensor([[0.4, 0.6, 0.0], [0.0, 1.0, 0.0]]))


def test_hide_of_a_whole_row_gives_zeros():
    made = edits.hide([(0, None)])(torch.tensor([[[[0.2, 0.8], [0.5, 0.5]]]]))
    assert made[0, 0].tolist() == [[0.0, 0.0], [0.5, 0.5]]


def test_hide_removes_a_key_for_all_queries():
    made = edits.hide([(None, 0)])(weights(1, 2, 4, 4))
    assert not made[..., 0].any()
    torch.testing.assert_close(made[:, :, 1:].sum(-1), torch.ones(1, 2, 3))
    assert not made[:, :, 0].any()  # it saw nothing but that key


def test_pin_rescales_the_other_weights():
    given = weights(1, 2, 5, 5)
    made = edits.pin([(4, 1)], 0.75, 1)(given)
    torch.testing.assert_close(made[0, 1, 4, 1], torch.tensor(0.75))
    torch.testing.assert_close(made.sum(-1), given.sum(-1))
    others = [0, 2, 3, 4]
    ratio = made[0, 1, 4, others] / given[0, 1, 4, others]
    torch.testing.assert_close(ratio, ratio[:1].expand(4))
    assert torch.equal(made[0, 1, :4], given[0, 1, :4])
    assert torch.equal(made[0, 0], given[0, 0])


@pytest.mark.parametrize("weight", [-0.1, 1.5, float("nan")])
def test_pin_rejects_weights_outside_0_and_1(weight):
    with pytest.raises(ValueError, match="a weight lies between 0 and 1"):
        edits.pin([(0, 0)], weight)


@pytest.mark.parametrize(
    ("cells", "weight", "says"),
    [
        ([(0, 0), (0, 1)], 0.7, "weight is 0.7, for 2 keys of query 0: more than 1 in all; give at most 0.5"),
        ([(2, None)], 0.3, "weight is 0.3, for 5 keys of query 2: more than 1 in all; give at most 0.2"),
        ([(None, 1), (None, 4)], 0.6, "for 2 keys of query 0"),
        ([(3, None)], 0.1, "weight is 0.1, for 5 of the keys of query 3, which sees no other .*: give 0.2"),
        ([(1, 0), (1, 1)], 0.4, "for 2 of the keys of query 1, which sees no other"),  # the others are forbidden
        ([(None, 0)], 0.5, "for 1 of the keys of query 0, which sees no other .*: give 1, or leave the query out"),
    ],
)
def test_pin_rejects_rows_that_cannot_sum_to_1(cells, weight, says):
    for head in (None, 1):
        with pytest.raises(ValueError, match=says):
            edits.pin(cells, weight, head)(weights(2, 3, 5, 5))


@pytest.mark.parametrize(
    ("pinned", "dtype"),
    one_at_a_time(
        [
            ([(2, 0), (2, 1), (2, 2)], 1 / 3),
            ([(0, 0)], 1.0),
            ([(3, None)], 0.2),
            ([(4, 1), (4, 1), (4, 1)], 0.4),  # the same cell, three times
            ([(2, 4)], 0.25),  # which the mask forbids
            ([(1, 0), (2, 1), (4, 3), (4, 0)], 0.5),
            ([(None, 0), (None, 1), (None, 2), (None, 3), (None, 4)], 0.2),
        ],
        [torch.float32, torch.float16, torch.bfloat16, torch.float64],
    ),
)
def test_pinned_rows_sum_to_1_and_are_non_negative(pinned, dtype):
    cells, weight = pinned
    given = weights(2, 3, 5, 5).to(dtype)
    made = edits.pin(cells, weight)(given)
    assert made.dtype == dtype
    assert (made >= 0).all()
    slack = max(1e-6, 4 * torch.finfo(dtype).eps)  # what they were drawn in
    torch.testing.assert_close(made.double().sum(-1), torch.ones(2, 3, 5).double(), atol=slack, rtol=0)
    for query, key in cells:
        if None not in (query, key):
            assert made[..., query, key].tolist() == torch.full((2, 3), weight, dtype=torch.float64).to(dtype).tolist()


def test_edits_keep_fully_masked_queries_zero():
    given = weights(1, 2, 5, 5)
    given[0, :, 3] = 0
    for edit in (edits.pin([(None, None)], 0.2), edits.pin([(3, 1)], 0.5), edits.hide([(3, 1)]), edits.uniform()):
        assert not edit(given)[0, :, 3].any()


def test_edits_of_half_precision_compute_in_float32():
    given = torch.full((1, 1, 1, 3000), 1 / 3000, dtype=torch.float16)
    made = edits.hide([(0, key) for key in range(2900)])(given)
    torch.testing.assert_close(made[..., 2900:].float(), torch.full((1, 1, 1, 100), 0.01), atol=1e-5, rtol=0)
    torch.testing.assert_close(edits.uniform()(given).float().sum(), torch.tensor(1.0), atol=1e-3, rtol=0)


def test_capture_applies_edits():
    attention = torch.nn.MultiheadAttention(6, 2, batch_first=True)
    x = torch.randn(1, 4, 6)
    with look.capture(attention, "pattern", edit={"pattern": edits.uniform(1)}) as seen:
        attention(x, x, x)
    torch.testing.assert_close(seen["pattern"][0, 1], torch.full((4, 4), 0.25))


SEVERAL = [{2, 0}, (0, 2), [2, 0], range(0, 3, 2)]
EDITS = {
    "zero": lambda head: edits.zero(head),
    "zero at positions": lambda head: edits.zero(head, positions={3, 1}),
    "mean": lambda head: edits.mean(head),
    "uniform": lambda head: edits.uniform(head),
    "hide": lambda head: edits.hide([(2, 1), (None, 0)], head),
    "pin": lambda head: edits.pin([(2, 1)], 0.5, head),
    "paste": lambda head: edits.paste(weights(2, 3, 5, 5).flip(0), head),
}


@pytest.mark.parametrize(("name", "heads"), one_at_a_time(EDITS, SEVERAL), ids=str)
def test_edit_of_several_heads_matches_single_edits(name, heads):
    given = weights(2, 3, 5, 5)
    expected = EDITS[name](2)(EDITS[name](0)(given))
    assert torch.equal(EDITS[name](heads)(given), expected)
    assert torch.equal(expected[:, 1], given[:, 1])
    assert not torch.equal(expected[:, 0], given[:, 0])
    assert torch.equal(EDITS[name](set())(given), given)


@pytest.mark.parametrize("name", EDITS)
def test_negative_heads_count_from_the_end(name):
    given, make = weights(2, 3, 5, 5), EDITS[name]
    for head, same in ((-1, 2), (-3, 0), ([-1, 0], [2, 0]), ([-1, 2], [2])):
        assert torch.equal(make(head)(given), make(same)(given))
        assert not torch.equal(make(head)(given), given)
    for head in (3, -4):
        with pytest.raises(ValueError, match=f"there is no head {head}; there are 3, counted from 0"):
            make([0, head])(given)


@pytest.mark.parametrize("make", [edits.hide, lambda cells: edits.pin(cells, 0.5)])
def test_negative_queries_and_keys_count_from_the_end(make):
    given = weights(2, 3, 5, 6)
    for cells, same in (([(-1, 0)], [(4, 0)]), ([(4, -5)], [(4, 1)]), ([(-2, -6), (4, 1)], [(3, 0), (4, 1)])):
        assert torch.equal(make(cells)(given), make(same)(given))
    for cell, name in (((5, 0), "query 5"), ((-6, 0), "query -6"), ((0, 6), "key 6"), ((0, -7), "key -7")):
        with pytest.raises(ValueError, match=f"there is no {name}; there are {5 if 'query' in name else 6}, counted"):
            make([cell])(given)


@pytest.mark.parametrize(
    ("site", "heads"), one_at_a_time(["pattern", "output_heads"], [*SEVERAL, [-1, 0], {-3, -1}]), ids=str
)
def test_zero_switches_off_several_heads_at_either_site(site, heads):
    attention = torch.nn.MultiheadAttention(6, 3, batch_first=True)
    x, off = torch.randn(1, 4, 6), torch.tensor([True, False, True])
    with torch.no_grad(), look.capture(attention, "output_heads", edit={site: edits.zero(heads)}) as seen:
        attention(x, x, x, need_weights=False)
    assert (seen["output_heads"] == 0).all(dim=(0, 2, 3)).tolist() == off.tolist()


@pytest.mark.parametrize("head", [None, 1, [0, 2]])
@pytest.mark.parametrize("positions", [None, [0, 2], -1])
def test_pasted_pattern_multiplies_values(head, positions):
    attention = torch.nn.MultiheadAttention(6, 3, batch_first=True)
    x, other = torch.randn(2, 2, 4, 6)
    with torch.no_grad(), look.capture(attention, ["pattern", "value", "output_heads"]) as seen:
        attention(x, x, x, need_weights=False)
    with torch.no_grad(), look.capture(attention) as elsewhere:
        attention(other, other, other)
    mask = torch.zeros(2, 3, 4, 4, dtype=torch.bool)
    for one in range(3) if head is None else [head] if isinstance(head, int) else head:
        mask[:, one, slice(None) if positions is None else positions] = True
    mixed = torch.where(mask, elsewhere["pattern"], seen["pattern"])
    edit = {"pattern": edits.paste(elsewhere["pattern"], head, positions)}
    for need_weights in (False, True):
        with torch.no_grad(), look.capture(attention, ["pattern", "output_heads"], edit=edit) as pasted:
            attention(x, x, x, need_weights=need_weights)
        torch.testing.assert_close(pasted["pattern"], mixed, rtol=0, atol=1e-6)
        torch.testing.assert_close(pasted["output_heads"], mixed @ seen["value"], rtol=0, atol=1e-6)
