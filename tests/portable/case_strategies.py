"""Hypothesis strategies for arguments of operations: tensors of all kinds and shapes, also empty and scalar ones."""

import torch
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, mutually_broadcastable_shapes
from operation_cases import Case

ODD = (0.0, -0.0, 1.0, torch.nan, torch.inf, -torch.inf)
SHAPES = array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
FULL = array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4)


@st.composite
def tensors(draw, shape, kind="float", odd=False, low=-9, high=10):
    shape = draw(shape) if isinstance(shape, st.SearchStrategy) else shape
    random = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    if kind == "bool":
        return torch.randint(2, shape, generator=random).bool()
    if kind == "int":
        return torch.randint(low, high, shape, generator=random)
    if kind == "distinct":  # no two alike, in no order
        return (
            torch.randperm(max(1, torch.Size(shape).numel()), generator=random)[: torch.Size(shape).numel()].reshape(
                shape
            )
            / 4
        )
    if kind == "eighths":
        return torch.randint(-40, 41, shape, generator=random) / 8
    values = 3 * torch.randn(shape, generator=random)
    if odd:
        strange = torch.tensor(ODD)[torch.randint(len(ODD), shape, generator=random)]
        values = torch.where(torch.rand(shape, generator=random) < 0.2, strange, values)
    return values


@st.composite
def each(draw, op, kinds=("float",), odd=True, close=1e-6, arguments=()):
    """One tensor, and other arguments."""
    x = draw(tensors(SHAPES, draw(st.sampled_from(kinds)), odd=odd))
    return Case(op, (x, *(draw(one) for one in arguments)), close=close)


@st.composite
def two(draw, op, kinds=(("float", "float"),), odd=False, low=-9, keywords=None, shapes=2):
    """Tensors that stretch to each other."""
    found = draw(mutually_broadcastable_shapes(num_shapes=shapes, min_dims=0, max_dims=4, min_side=0, max_side=4))
    chosen = draw(st.sampled_from(kinds))
    values = [draw(tensors(shape, kind, odd=odd, low=low)) for shape, kind in zip(found.input_shapes, chosen)]
    return Case(op, tuple(values), {name: draw(one) for name, one in (keywords or {}).items()})


@st.composite
def with_number(draw, op, kinds=("float", "int"), numbers=(2, -3, 0.5, 2.0, 7.25), odd=False):
    """A tensor and a number; whether it was 2 or 2.0 is told, since JSON has one of them only."""
    x = draw(tensors(SHAPES, draw(st.sampled_from(kinds)), odd=odd))
    return Case(op, (x, draw(st.sampled_from(numbers))), told=True)


@st.composite
def axis(draw, rank):
    return draw(st.integers(-max(rank, 1), max(rank, 1) - 1))


@st.composite
def some_axes(draw, rank):
    chosen = draw(st.sets(st.integers(0, rank - 1), min_size=1)) if rank else set()
    return [one - rank if draw(st.booleans()) else one for one in sorted(chosen)]


@st.composite
def reductions(draw, op, kinds=("float",), form="axes", shapes=SHAPES, odd=False, extra=(), one=False, keep=True):
    """Along axes, one axis, or all; `extra` arguments stand between the tensor and the axes."""
    x = draw(tensors(shapes, draw(st.sampled_from(kinds)), odd=odd))
    before = [draw(argument) for argument in extra]
    if form == "all":
        return Case(op, (x, *before), close=1e-5)
    rank = x.dim()
    where = draw(axis(rank)) if form == "axis" else draw(some_axes(rank))
    kept = [draw(st.booleans())] if keep else []
    return Case(op, (x, *before, where, *kept), close=1e-5)


@st.composite
def along(draw, op, kinds=("float",), shapes=SHAPES, odd=False, extra=(), keywords=None, close=1e-5):
    """Along one axis of a tensor."""
    x = draw(tensors(shapes, draw(st.sampled_from(kinds)), odd=odd))
    given = [draw(argument) for argument in extra]
    return Case(op, (x, draw(axis(x.dim())), *given), dict(keywords or {}), close=close)


@st.composite
def changed(draw, op, change, kinds=("float", "int", "bool"), shapes=SHAPES):
    """`change(draw, x)` gives the other arguments."""
    x = draw(tensors(shapes, draw(st.sampled_from(kinds))))
    return Case(op, (x, *change(draw, x)))
