"""Cases of shape, creation and indexing operations."""

import torch
from case_strategies import FULL, SHAPES, axis, changed, tensors
from hypothesis import strategies as st
from operation_cases import Case

X, INTS, BOOLS = torch.arange(24.0).reshape(2, 3, 4), torch.arange(24).reshape(2, 3, 4), torch.eye(3, 4).bool()
EMPTY, ONE, MATRIX = torch.zeros(2, 0, 3), torch.tensor(2.5), torch.arange(12.0).reshape(3, 4)


def shaping():
    for op in ("view", "reshape"):
        yield changed(op, lambda draw, x: ([*x.shape, 1, 1],))
        yield st.sampled_from([Case(op, (X, [4, -1])), Case(op, (EMPTY, [3, 0])), Case(op, (ONE, [1, 1]))])
    for op in ("view_as", "expand_as"):
        yield changed(op, lambda draw, x: (x.clone(),))
    yield changed("flatten.using_ints", lambda draw, x: (0, -1))
    yield st.sampled_from([Case("flatten.using_ints", (X, a, b)) for a, b in ((1, 2), (-3, 1), (2, 2))])
    yield st.sampled_from([Case("unflatten.int", (X, -1, lengths)) for lengths in ([2, 2], [-1, 2], [4, 1, -1])])
    yield changed("unsqueeze", lambda draw, x: (draw(axis(x.dim() + 1)),))
    yield changed("squeeze.dim", lambda draw, x: (draw(axis(x.dim())),))
    yield changed("squeeze.dims", lambda draw, x: ([draw(axis(x.dim()))],))
    yield changed("permute", lambda draw, x: (draw(st.permutations(range(-x.dim(), 0))),))
    yield st.just(Case("permute", (torch.arange(120).reshape(2, 3, 4, 5, 1), [2, 0, 3, 1, 4])))
    yield changed("transpose.int", lambda draw, x: (draw(axis(x.dim())), draw(axis(x.dim()))))
    yield tensors((2, 3, 4)).map(lambda x: Case("mT", (x,)))
    yield st.sampled_from([Case("t", (MATRIX,)), Case("t", (MATRIX[0],)), Case("t", (ONE,))])
    yield changed("expand", lambda draw, x: ([3, *x.shape],))
    yield st.just(Case("expand", (X[:, :1], [5, -1, 3, -1])))
    yield changed("repeat", lambda draw, x: ([2, *draw(st.tuples(*[st.integers(0, 2)] * x.dim()))],))
    for op in ("clone", "contiguous", "alias", "detach", "lift_fresh_copy"):
        yield changed(op, lambda draw, x: ())
    yield changed("dropout", lambda draw, x: (0.5, False), ("float",))


def pieces():
    ends = st.one_of(st.none(), st.integers(-5, 5), st.just(2**63 - 1))
    slices = [axis, lambda rank: ends, lambda rank: ends, lambda rank: st.integers(1, 3)]
    for _ in range(4):
        yield changed("slice.Tensor", lambda draw, x: [draw(of(x.dim())) for of in slices], shapes=FULL)
    for op in ("unbind.int", "select.int"):
        yield changed(
            op, lambda draw, x, op=op: (draw(axis(x.dim())),) + ((-1,) if op == "select.int" else ()), shapes=FULL
        )
    yield st.sampled_from(
        [Case("slice_scatter", (X, X[:, 1:] * 2, 1, 1, None)), Case("slice_scatter", (X, X[..., ::2] - 9, -1, 0, 4, 2))]
    )
    for size in (1, 2, 5):
        yield changed("split.Tensor", lambda draw, x, size=size: (size, draw(axis(x.dim()))), shapes=FULL)
        yield changed("chunk", lambda draw, x, size=size: (size, draw(axis(x.dim()))), shapes=FULL)
    yield st.sampled_from([Case("split_with_sizes", (X, [1, 0, 2], 1)), Case("split_with_sizes", (INTS, [3, 1], -1))])
    yield changed("cat", lambda draw, x: (0,), shapes=FULL).map(
        lambda case: Case("cat", ([case.args[0], case.args[0][:1], case.args[0][:0]], 0))
    )
    yield st.sampled_from(
        [Case("cat", ([X, INTS], -1)), Case("cat", ([torch.zeros(0), MATRIX], 1)), Case("cat", ([BOOLS, BOOLS], 1))]
    )
    yield changed("stack", lambda draw, x: (draw(axis(x.dim() + 1)),)).map(
        lambda case: Case("stack", ([case.args[0], case.args[0]], case.args[1]))
    )


def making():
    kinds = [None, torch.float32, torch.int64, torch.bool]
    for kind in kinds:
        given = {} if kind is None else {"dtype": kind}
        for op in ("zeros", "ones"):
            yield SHAPES.map(lambda shape, op=op, given=given: Case(op, (list(shape),), given))
        for op in ("zeros_like", "ones_like"):
            yield tensors(SHAPES, "int").map(lambda x, op=op, given=given: Case(op, (x,), given))
        yield st.just(Case("full", ([2, 3], 2.0), given, told=True))
        yield st.just(Case("full", ([2, 3], 2), given))
        yield st.just(Case("full", ([], torch.inf if kind is not torch.int64 else 5), given))
        yield st.just(Case("full_like", (X, 3), given))
        yield st.just(Case("scalar_tensor", (3,), given))
    for ends in (
        ([5], ""),
        ([2.5], ""),
        ([-2, 7], "start"),
        ([3, 3], "start"),
        ([9, -1, -2], "start_step"),
        ([0.5, 2, 0.25], "start_step"),
    ):
        yield st.just(Case(f"arange.{ends[1]}" if ends[1] else "arange", tuple(ends[0])))
    yield st.just(Case("arange", (4.0,), told=True))
    yield st.just(Case("arange", (4,), {"dtype": torch.float32}))
    yield st.just(Case("empty.memory_format", ([2, 0],)))  # without cells, since those of others are arbitrary
    yield st.just(Case("empty_like", (EMPTY,), {"dtype": torch.int64}))
    yield st.sampled_from([Case("copy", (X, INTS[0])), Case("copy", (INTS, 2.5 * X))])


def arranging():
    for op in ("tril", "triu"):
        yield changed(
            op, lambda draw, x: (draw(st.integers(-3, 3)),), shapes=st.sampled_from([(3, 4), (2, 4, 3), (2, 0, 3)])
        )
    sides = st.lists(st.integers(0, 2), min_size=4, max_size=4)
    padded = [(X, [-1, 2, 1, -1]), (X, [-2, 0]), (INTS, [1, 1]), (X, [0, 1], -torch.inf)]
    shapes = st.sampled_from([(3, 4), (2, 4, 3), (2, 0, 3)])
    yield changed("constant_pad_nd", lambda draw, x: (draw(sides),), shapes=shapes)
    yield st.sampled_from([Case("constant_pad_nd", args) for args in padded])
    yield changed("flip", lambda draw, x: (sorted({draw(axis(x.dim())) % max(x.dim(), 1)}) if x.dim() else [],))
    yield st.just(Case("flip", (X, [0, -1])))
    yield st.sampled_from([Case("diagonal", (X, k, 0, -1)) for k in (-2, 0, 1, 9)] + [Case("diagonal", (X, 1, 2, 1))])
    yield st.sampled_from([Case("unfold", (X, -1, 2, 1)), Case("unfold", (X, 1, 3, 2)), Case("unfold", (X, 0, 1, 1))])


def indexing():
    indices, pairs = torch.tensor([2, 0, -1]), torch.tensor([[1, 0, 1], [-1, 0, 0]])
    yield st.sampled_from(
        [
            Case("embedding", (MATRIX, ids))
            for ids in (torch.tensor([[2, 0], [1, 1]]), torch.tensor(1), torch.zeros(0, 2).long())
        ]
    )
    yield st.sampled_from(
        [Case("index_select", (X, 1, torch.tensor([2, 0, 2, 1]))), Case("index_select", (INTS, -1, torch.tensor([3])))]
    )
    inside = torch.tensor([[[1, 0], [2, 1]]])
    yield st.sampled_from(
        [Case("gather", (X, 1, inside)), Case("gather", (INTS, -1, inside)), Case("gather", (X, 0, inside * 0))]
    )
    yield st.sampled_from([Case("scatter.value", (X, 1, inside, -1.5)), Case("scatter.value", (INTS, -1, inside, 4))])
    yield st.sampled_from([Case("scatter.src", (X, axis, inside, X + 0.5)) for axis in (1, 2)])
    yield st.sampled_from([Case("scatter_add", (X, axis, inside * 0, X + 0.5)) for axis in (0, 1, -1)])
    masks = [torch.rand(shape, generator=torch.Generator().manual_seed(1)) < 0.5 for shape in ((2,), (2, 3), (3, 4))]
    for given in (
        [indices % 2],
        [None, indices],
        [pairs, None, indices],
        [indices % 2, indices],
        [None, pairs, indices],
        [pairs],
        [masks[0]],
        [masks[1], indices[:1]],
    ):
        yield st.just(Case("index.Tensor", (X, given)))
        shape = X[tuple(slice(None) if one is None else one for one in given)].shape
        yield st.just(Case("index_put", (X, given, torch.tensor(-1.0))))
        yield st.just(Case("index_put", (X, given, torch.ones(shape), True)))
    far = [None, indices, None, indices]  # not beside each other: their axis comes first
    yield st.just(Case("index.Tensor", (torch.arange(120.0).reshape(2, 3, 4, 5), far)))
    yield st.just(Case("index_put", (torch.arange(120.0).reshape(2, 3, 4, 5), far, X[0, :, 0, None, None])))
    yield st.just(Case("index.Tensor", (X, [None, masks[2]])))
    yield st.just(Case("index_put", (INTS, [None, masks[2]], torch.tensor(7))))
    yield st.sampled_from([Case("one_hot", (torch.tensor([[1, 0], [3, 2]]), n)) for n in (-1, 5)])
    yield st.just(Case("take", (X, torch.tensor([[23, 0], [-1, 5]]))))


FAMILIES = {"shaping": shaping, "pieces": pieces, "making": making, "arranging": arranging, "indexing": indexing}
