"""Cases of matrix products, layers and attention."""

import torch
from case_strategies import tensors
from hypothesis import strategies as st
from operation_cases import Case
from torch import nn


def drawn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def whole(*shape):
    return torch.randint(-4, 5, shape, generator=torch.Generator().manual_seed(sum(shape)))


def multiplying():
    shapes = [
        ((3, 4), (4, 5)),
        ((4,), (4,)),
        ((3, 4), (4,)),
        ((4,), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (4,)),
        ((4,), (2, 4, 5)),
    ]
    shapes += [
        ((6, 1, 3, 4), (2, 4, 5)),
        ((2, 1, 3, 4), (1, 6, 4, 5)),
        ((3, 0), (0, 5)),
        ((0, 4), (4, 5)),
        ((2, 0, 4), (4, 5)),
        ((3, 4), (2, 4, 5)),
    ]
    for one, other in shapes:
        yield st.just(Case("matmul", (drawn(*one), drawn(*other)), close=1e-5))
        yield st.just(Case("matmul", (whole(*one), whole(*other))))
    yield st.just(Case("mm", (drawn(3, 4), drawn(4, 5)), close=1e-5))
    yield st.just(Case("mm", (whole(3, 4), whole(4, 5))))
    yield st.just(Case("bmm", (drawn(2, 3, 4), drawn(2, 4, 5)), close=1e-5))
    for given in ({}, {"beta": 0.5, "alpha": 2}, {"beta": 0}):
        for start in ((5,), (3, 5), (3, 1)):
            yield st.just(Case("addmm", (drawn(*start), drawn(3, 4), drawn(4, 5)), given, close=1e-5))
    nothing = torch.full((5,), torch.nan)  # a bias that does not count
    yield st.just(Case("addmm", (nothing, drawn(3, 4), drawn(4, 5)), {"beta": 0}, close=1e-5))
    for lead in ((), (3,), (2, 0), (2, 3)):
        for bias in (None, drawn(5)):
            yield st.just(Case("linear", (drawn(*lead, 4), drawn(5, 4), bias), close=1e-5))
    yield st.just(Case("linear", (drawn(2, 4), drawn(4)), close=1e-5))
    yield st.sampled_from([Case("cdist", (drawn(3, 4), drawn(5, 4), p), close=1e-4) for p in (1.0, 2.0)])


def layers():
    x, weight, bias = 2 * drawn(2, 3, 4) + 1, drawn(4), drawn(4, seed=5)
    for given in ((None, None), (weight, None), (weight, bias)):
        yield st.just(Case("layer_norm", (x, [4], *given, 1e-5), close=1e-5))
    for op, more in (("layer_norm", (None, None, 1e-3)), ("rms_norm", ())):
        yield st.just(Case(op, (x, [3, 4], *more), close=1e-5))
        yield st.just(Case(op, (x[:0], [4], *more)))
    yield st.sampled_from([Case("rms_norm", (x, [4], weight, epsilon), close=1e-5) for epsilon in (None, 1e-2)])
    image = drawn(2, 6, 4, 3)
    for groups in (1, 2, 6):
        yield st.just(Case("group_norm", (image, groups, drawn(6), drawn(6, seed=2)), close=1e-5))
    yield st.just(Case("instance_norm", (image, None, None, None, None, True, 0.1, 1e-5, False), close=1e-5))
    own = (drawn(6), drawn(6, seed=1), drawn(6, seed=2), drawn(6, seed=3).abs())
    yield st.just(Case("batch_norm", (image, *own, False, 0.1, 1e-5, False), close=1e-5))
    yield st.just(Case("_native_batch_norm_legit_no_training", (image, *own, 0.1, 1e-5), close=1e-5))


def windows():
    text, image = drawn(2, 4, 9), drawn(2, 4, 6, 7)
    for stride, margin, gap in (([1], [0], [1]), ([2], [1], [1]), ([1], [2], [3])):
        yield st.just(Case("conv1d", (text, drawn(6, 4, 3), drawn(6), stride, margin, gap), close=1e-5))
        yield st.just(Case("conv1d", (text, drawn(6, 2, 2), None, stride, margin, gap, 2), close=1e-5))
    for stride, margin, gap in (([1, 1], [0, 0], [1, 1]), ([2, 3], [1, 0], [1, 2])):
        yield st.just(Case("conv2d", (image, drawn(6, 4, 2, 3), drawn(6), stride, margin, gap), close=1e-5))
        yield st.just(Case("conv2d", (image, drawn(4, 1, 3, 2), None, stride, margin, gap, 4), close=1e-5))
    yield st.just(Case("conv1d", (text[:0], drawn(6, 4, 3))))
    for margin in ("same", "valid"):
        yield st.just(Case("conv1d.padding", (text, drawn(6, 4, 3), None, [1], margin), close=1e-5))
        yield st.just(Case("conv2d.padding", (image, drawn(6, 4, 3, 5), None, [1, 1], margin), close=1e-5))
    for up in (False, True):
        yield st.just(Case("max_pool1d", (text, [3], [2], [1], [1], up)))
        yield st.just(Case("max_pool1d", (text, [2], [], [0], [2], up)))
        yield st.just(Case("max_pool2d", (image, [3, 2], [2, 2], [1, 1], [1, 2], up)))
        for padded in (False, True):
            yield st.just(Case("avg_pool1d", (text, [4], [3], [1], up, padded)))
            yield st.just(Case("avg_pool2d", (image, [3, 2], [], [1, 0], up, padded)))
        # where a last window would begin in the margin, there is none
        yield st.just(Case("max_pool1d", (text, [2], [5], [1], [1], up)))
        yield st.just(Case("max_pool2d", (image, [2, 2], [7, 4], [1, 1], [1, 1], up)))
        yield st.just(Case("avg_pool1d", (text, [1], [3], [0], up)))
        yield st.just(Case("avg_pool2d", (image, [2, 2], [7, 4], [1, 1], up)))
    yield st.just(Case("avg_pool2d", (image, [2]), {"divisor_override": 3}))


def recurrent():
    kinds = {"lstm.input": nn.LSTM, "gru.input": nn.GRU, "rnn_tanh.input": nn.RNN, "rnn_relu.input": nn.RNN}
    for op, kind in kinds.items():
        for layers, both, first, biased in ((1, False, False, True), (2, True, True, True), (2, False, True, False)):
            torch.manual_seed(layers)
            weights = list(kind(5, 4, layers, bidirectional=both, bias=biased).parameters())
            weights = [weight.detach() for weight in weights]
            words, lead = drawn(2, 3, 5) if first else drawn(3, 2, 5), (layers * (1 + both), 2, 4)
            start = [drawn(*lead), drawn(*lead, seed=9)] if kind is nn.LSTM else drawn(*lead)
            yield st.just(Case(op, (words, start, weights, biased, layers, 0.0, False, both, first), close=1e-5))


def attention():
    query, key, value = drawn(2, 4, 3, 6), drawn(2, 4, 5, 6, seed=1), drawn(2, 4, 5, 7, seed=2)
    bools, floats = drawn(3, 5) > 0, drawn(2, 1, 3, 5)
    none = bools.clone()
    none[1] = False
    for given in ({}, {"attn_mask": bools}, {"attn_mask": none}, {"is_causal": True}, {"scale": 0.3}):
        for own in ((query, key, value), (query[0], key[0], value[0])):
            yield st.just(Case("scaled_dot_product_attention", own, given, close=1e-5))
    yield st.just(Case("scaled_dot_product_attention", (query, key, value), {"attn_mask": floats}, close=1e-5))
    dead = floats.masked_fill(~none, -torch.inf)
    yield st.just(Case("scaled_dot_product_attention", (query, key, value), {"attn_mask": dead}, close=1e-5))
    yield st.just(
        Case("scaled_dot_product_attention", (query, key[:, :2], value[:, :2]), {"enable_gqa": True}, close=1e-5)
    )
    yield st.just(Case("scaled_dot_product_attention", (query[:0], key[:0], value[:0])))
    for shape in ((2, 3, 4), (2, 3, 4, 5), (1, 2, 3, 0)):
        yield tensors(shape).map(lambda x: Case("softmax.int", (x.masked_fill(x > 2, -torch.inf), -1)))
    yield st.just(Case("softmax.int", (torch.full((2, 3, 4), -torch.inf), -1)))


FAMILIES = {
    "multiplying": multiplying,
    "layers": layers,
    "windows": windows,
    "recurrent": recurrent,
    "attention": attention,
}
