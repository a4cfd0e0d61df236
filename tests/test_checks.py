"""Checks of numeric arguments: ends of ranges, NaN and infinity, and error messages that name the argument."""

import math

import numpy
import pytest
import torch

from tfviz import checks

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (lambda x: checks.at_least(1, x=x), [1, 2, 1e300], [0, 0.999, -INF, INF, NAN]),
        (lambda x: checks.above(0, x=x), [5e-324, 7], [0, -1, INF, NAN]),
        (lambda x: checks.between(2, 5, x=x), [2, 3.5, 5], [1.999, 5.001, -INF, INF, NAN]),
        (lambda x: checks.fraction_below_one(x=x), [0, 0.999], [1, -1e-9, INF, NAN]),
        (lambda x: checks.multiple_of(6, x=x), [0, 6, -12, 600], [1, 5, 7, -5]),
        (lambda x: checks.one_of(("made", "real"), x=x), ["made", "real"], []),
        (lambda x: checks.fits_memory(x=x), [1, 1000], [0, -1, 10**15]),
    ],
)
def test_checks_accept_valid_and_reject_invalid_values(check, right, wrong):
    for value in right:
        check(value)
    for value in wrong:
        with pytest.raises(ValueError, match=f"^x (is )?{value}"):
            check(value)


def test_checks_cover_every_keyword_argument():
    with pytest.raises(ValueError, match=r"^heads is 0; it must be at least 1$"):
        checks.at_least(1, layers=2, heads=0)
    with pytest.raises(ValueError, match=r"^rate is inf; it must be finite and above 0$"):
        checks.above(0, rate=INF)


def test_seed_range_is_valid_for_torch_generator():
    for seed in (0, checks.MAX_SEED):
        checks.seed(seed)
        torch.Generator().manual_seed(seed)
    for seed in (-1, checks.MAX_SEED + 1):
        with pytest.raises(ValueError, match="seed is"):
            checks.seed(seed)


def test_fits_memory_rejects_huge_sizes_except_on_meta_device():
    with pytest.raises(ValueError, match="vocab_size 1000000000000 x dim 3 are 12,000 GB"):
        checks.fits_memory(vocab_size=10**12, dim=3)
    with torch.device("meta"):
        checks.fits_memory(vocab_size=10**12, dim=3)


def test_error_messages_suggest_valid_values():
    with pytest.raises(ValueError, match=r"^dim is 7; it must be a multiple of 6, such as 12$"):
        checks.multiple_of(6, steps=12, dim=7)
    with pytest.raises(ValueError, match=r"^ratings is ''; it must be one of: made, movielens$"):
        checks.one_of(("made", "movielens"), task="made", ratings="")


def test_integer_accepts_only_whole_numbers():
    checks.integer(x=3, y=numpy.int64(-2), z=torch.tensor(0))
    for value in (2.0, True, "3", torch.tensor(2.0), torch.zeros(1, 2)):
        with pytest.raises(TypeError, match=r"^x is .*; give an integer$"):
            checks.integer(x=value)


def test_materialized_rejects_meta_and_sparse_tensors():
    checks.materialized(x=torch.zeros(2, 3).T)
    for kind, tensor in {
        "on the meta device": torch.zeros(2, device="meta"),
        "torch.sparse_coo": torch.eye(2).to_sparse(),
    }.items():
        with pytest.raises(ValueError, match=f"^x is a tensor {kind}, whose numbers cannot be read"):
            checks.materialized(x=tensor)
