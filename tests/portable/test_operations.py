"""Operations of the page's engine match torch, in Node."""

from functools import cache

import cases_elementwise
import cases_layers
import cases_reductions
import cases_shapes
import pytest
import torch
from operation_cases import Case, answers, collected, compare, prepared, readable

from tfviz import portable

pytest_plugins = ["node"]

FAMILIES = {**cases_elementwise.FAMILIES, **cases_reductions.FAMILIES, **cases_shapes.FAMILIES, **cases_layers.FAMILIES}
EXAMPLES = 5  # of each way to call an operation
X = torch.arange(6.0).reshape(2, 3)
ATTEND = "scaled_dot_product_attention"
WRONG = [
    (Case("add.Tensor", (X, X.T)), "add.Tensor of [2, 3], [3, 2]: [2, 3] and [3, 2] cannot be broadcast together"),
    (Case("mm", (X, X)), "mm of [2, 3], [2, 3]: [2, 3] and [2, 3] have no common length to sum over"),
    (Case("bmm", (X, X)), "bmm of [2, 3], [2, 3]: both tensors must have 3 axes, not [2, 3] and [2, 3]"),
    (Case("mm", (X[0], X[0])), "mm of [3], [3]: both tensors must have 2 axes, not [3] and [3]"),
    (
        Case("bmm", (X[None], X[:, :, None])),
        "bmm of [1, 2, 3], [2, 3, 1]: [1, 2, 3] and [2, 3, 1] are not equally many matrices",
    ),
    (Case("linear", (X, X.T)), "linear of [2, 3], [3, 2]: the weight [3, 2] takes 2 numbers, not 3"),
    (Case("view", (X, [4])), "view of [2, 3]: [2, 3] cannot be reshaped to [4]"),
    (Case("view", (X, [4, -1])), "view of [2, 3]: [2, 3] cannot be reshaped to [4, -1]"),
    (Case("sum.dim_IntList", (X, [2])), "sum.dim_IntList of [2, 3]: axis 2 is out of range for 2 axes"),
    (Case("sum.dim_IntList", (X, [1, -1])), "sum.dim_IntList of [2, 3]: the axes [1, -1] name an axis twice"),
    (Case("amax", (X[:0], [0])), "amax of [0, 3]: an empty row has no largest or smallest number; give at least one"),
    (Case("cat", ([X, X[:, :1]],)), "cat of [2, 3], [2, 1]: [2, 3] and [2, 1] cannot be joined along axis 0"),
    (Case("select.int", (X, 0, 2)), "select.int of [2, 3]: index 2 is out of range for a length of 2"),
    (Case("embedding", (X, torch.tensor([0, 2]))), "embedding of [2, 3], [2]: id 2 is out of range for 2 embeddings"),
    (
        Case("index.Tensor", (X, [torch.tensor([-3])])),
        "index.Tensor of [2, 3], [1]: index -3 is out of range for a length of 2",
    ),
    (Case("permute", (X, [0, 0])), "permute of [2, 3]: [0, 0] is not a permutation of 2 axes"),
    (Case("expand", (X, [2, 4])), "expand of [2, 3]: [2, 3] cannot be broadcast to [2, 4]"),
    (Case("layer_norm", (X, [2])), "layer_norm of [2, 3]: [2, 3] does not end in [2]"),
    (Case("topk", (X, 4)), "topk of [2, 3]: there are no 4 numbers in a row of 3"),
    (
        Case(ATTEND, (X[None], X[None, :, :2], X[None])),
        f"{ATTEND} of [1, 2, 3], [1, 2, 2], [1, 2, 3]: "
        "queries [1, 2, 3], keys [1, 2, 2] and values [1, 2, 3] do not fit each other",
    ),
]
UNKNOWN = [  # torch knows them
    (Case("to.dtype", (X, torch.complex64)), "to.dtype of [2, 3]: tensors of complex64 are not supported"),
]


@pytest.fixture
def engine(fresh_node):
    return prepared(fresh_node)


@cache
def cases(family):
    return [case for strategy in FAMILIES[family]() for case in collected(strategy, EXAMPLES)]


@pytest.mark.parametrize("family", FAMILIES)
def test_operations_match_torch(engine, family):
    compare(engine, cases(family))


def test_every_operation_has_a_case(engine):
    there = set(engine.evaluate("() => Object.keys(SUPPORTED_OPERATORS)"))
    assert there == {case.op for family in FAMILIES for case in cases(family)}
    assert there == portable.SUPPORTED_OPERATORS  # what Python says of it


def test_invalid_arguments_return_error_messages(engine):
    for case, _ in WRONG:
        with pytest.raises((RuntimeError, IndexError, ValueError)):
            case.expected()
    cases, sentences = zip(*WRONG, *UNKNOWN)
    assert [told.get("error") for told in answers(engine, cases)] == list(sentences)


def hooked_pattern(engine, case):
    """The weights that went by, and what is allowed of them."""
    (told,) = answers(engine, [case])
    ((weights, allowed),) = told["seen"]
    return readable(weights), readable(allowed), [readable(made) for made in told["made"]]


def test_pattern_hook_sees_softmax_of_three_or_more_axes(engine):
    scores = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(1))
    weights, allowed, _ = hooked_pattern(engine, Case("softmax.int", (scores, -1)))
    torch.testing.assert_close(weights, scores.softmax(-1))
    assert allowed is None
    quiet = [
        Case("softmax.int", (scores, 1)),
        Case("softmax.int", (scores[0, 0], -1)),
        Case("softmax.int", (scores[:0], -1)),
    ]
    assert [told["seen"] for told in answers(engine, quiet)] == [[], [], []]


@pytest.mark.parametrize("least", [-torch.inf, torch.finfo(torch.float32).min])
def test_fully_masked_row_is_zero_in_pattern_and_nan_in_result(engine, least):
    scores = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1)).tril()
    scores = scores.masked_fill(scores == 0, least)
    scores[1, 1] = -torch.inf
    weights, allowed, (made,) = hooked_pattern(engine, Case("softmax.int", (scores, -1)))
    assert torch.equal(allowed, scores > -1e38)
    torch.testing.assert_close(weights, scores.softmax(-1).nan_to_num())
    assert made[1, 1].isnan().all()
    torch.testing.assert_close(made, scores.softmax(-1), equal_nan=True)


def test_pattern_hook_sees_weights_of_fused_attention(engine):
    draw = torch.Generator().manual_seed(2)
    query, key, value = (torch.randn(2, heads, length, 4, generator=draw) for heads, length in ((6, 3), (2, 5), (2, 5)))
    allowed = torch.ones(3, 5, dtype=torch.bool).tril()
    allowed[1] = False
    case = Case(ATTEND, (query, key, value, allowed), {"enable_gqa": True})
    weights, told, (made,) = hooked_pattern(engine, case)
    scores = (query @ key.repeat_interleave(3, 1).mT / 2).masked_fill(~allowed, -torch.inf)
    torch.testing.assert_close(weights, scores.softmax(-1).nan_to_num())
    assert torch.equal(told, allowed.expand(2, 6, 3, 5))
    torch.testing.assert_close(made, weights @ value.repeat_interleave(3, 1))


def test_integer_overflow_keeps_low_bits_of_bigram_hash(engine):
    """torch's wrap at 64 bits and the page's at 32: the last bits are the same."""
    ids = torch.arange(60_000).reshape(2, -1)
    mixed = (ids * 1_000_003 + 7) * 2_654_435_761
    page = ids
    for op, number in (
        ("mul.Tensor", 1_000_003),
        ("add.Tensor", 7),
        ("mul.Tensor", 2_654_435_761),
        ("__rshift__.Scalar", 7),
        ("remainder.Scalar", 2**18),
    ):
        (told,) = answers(engine, [Case(op, (page, number))])
        page = readable(told["made"][0])
    assert torch.equal(page, torch.remainder(mixed >> 7, 2**18))
