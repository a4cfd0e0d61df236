"""Changes of attention weights: exact numbers, rows that go on adding up, what is left alone."""

import pytest
import torch

from tfviz import look
from tfviz.look import edits


def weights(*shape):
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(4))
    causal = torch.ones(shape[-2:], dtype=torch.bool).tril()
    return drawn.masked_fill(~causal, -torch.inf).softmax(-1)


def test_a_head_that_is_off_gives_nothing_and_the_others_are_as_they_were():
    given = weights(2, 3, 5, 5)
    made = edits.zero(1)(given)
    assert not made[:, 1].any()
    assert torch.equal(made[:, [0, 2]], given[:, [0, 2]])
    assert not edits.zero()(given).any()


def test_even_is_one_over_what_may_be_seen():
    made = edits.even(2)(weights(2, 3, 5, 5))
    assert torch.equal(made[0, 2, 3], torch.tensor([0.25, 0.25, 0.25, 0.25, 0.0]))
    assert torch.equal(edits.even()(torch.zeros(1, 1, 2, 3)), torch.zeros(1, 1, 2, 3))


def test_hidden_cells_are_shared_out_in_proportion():
    given = torch.tensor([[[[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]]]])
    made = edits.hide([(0, 2), (1, 0)])(given)
    torch.testing.assert_close(made[0, 0], torch.tensor([[0.4, 0.6, 0.0], [0.0, 1.0, 0.0]]))


def test_a_row_with_nothing_left_gives_nothing():
    made = edits.hide([(0, None)])(torch.tensor([[[[0.2, 0.8], [0.5, 0.5]]]]))
    assert made[0, 0].tolist() == [[0.0, 0.0], [0.5, 0.5]]


def test_a_key_nobody_may_look_at():
    made = edits.hide([(None, 0)])(weights(1, 2, 4, 4))
    assert not made[..., 0].any()
    torch.testing.assert_close(made[:, :, 1:].sum(-1), torch.ones(1, 2, 3))
    assert not made[:, :, 0].any()  # it saw nothing but that key


def test_a_pinned_weight_leaves_the_rest_to_the_others():
    given = weights(1, 2, 5, 5)
    made = edits.pin([(4, 1)], 0.75, 1)(given)
    torch.testing.assert_close(made[0, 1, 4, 1], torch.tensor(0.75))
    torch.testing.assert_close(made.sum(-1), given.sum(-1))
    others = [0, 2, 3, 4]
    ratio = made[0, 1, 4, others] / given[0, 1, 4, others]
    torch.testing.assert_close(ratio, ratio[:1].expand(4))
    assert torch.equal(made[0, 1, :4], given[0, 1, :4])
    assert torch.equal(made[0, 0], given[0, 0])


@pytest.mark.parametrize("to", [-0.1, 1.5, float("nan")])
def test_a_weight_lies_between_0_and_1(to):
    with pytest.raises(ValueError, match="a weight lies between 0 and 1"):
        edits.pin([(0, 0)], to)


def test_a_head_that_is_not_there_is_told():
    with pytest.raises(ValueError, match="head is 3; there are 3, counted from 0"):
        edits.zero(3)(weights(1, 3, 2, 2))


def test_capture_takes_them():
    attention = torch.nn.MultiheadAttention(6, 2, batch_first=True)
    x = torch.randn(1, 4, 6)
    with look.capture(attention, "pattern", edit={"pattern": edits.even(1)}) as seen:
        attention(x, x, x)
    torch.testing.assert_close(seen["pattern"][0, 1], torch.full((4, 4), 0.25))
