"""Sizes that do not fit are told in a sentence, before a kernel tells them."""

import jaxtyping
import pytest
import torch
from torch import nn

from tfviz.layers import LSTM, RNN, Additive, Block, Dot, KeyValues, MultiHead, attend, masks
from tfviz.models import BERT, GPT, Transformer


@pytest.fixture
def unchecked():
    """As for a user, who has no checks of types."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def of(*shape):
    return torch.zeros(shape)


def filled():
    cache = KeyValues(5)
    cache.extend(of(2, 3, 4, 6), of(2, 3, 4, 6))
    return cache


HEADS, BLOCK, IDS = MultiHead(8, 2), Block(8, 2), torch.tensor([[3, 1, 4], [1, 5, 9]])
WRONG = {
    "width": (lambda: HEADS(of(2, 5, 7)), r"x is \[2, 5, 7\]; it must be batch position dim, with dim 8$"),
    "one text": (lambda: HEADS(of(5, 8)), r"x is \[5, 8\].*of one text x\[None\]"),
    "memory": (lambda: HEADS(of(2, 5, 8), of(2, 4, 6)), r"memory is \[2, 4, 6\]"),
    "a list": (lambda: HEADS([[1.0]]), "x is a list; give a tensor"),
    "a block's": (lambda: BLOCK(of(2, 5, 7)), r"x is \[2, 5, 7\]"),
    "a name as mask": (lambda: HEADS(of(2, 5, 8), mask="causal"), "mask is 'causal'; give a table of bools"),
    "another mask's": (
        lambda: HEADS(of(2, 5, 8), mask=of(4, 4).bool()),
        r"mask is \[4, 4\], the scores are \[2, 2, 5, 5\]",
    ),
    "queries and keys": (lambda: attend(of(2, 3, 4, 6), of(2, 3, 5, 7), of(2, 3, 5, 7)), "must have one width"),
    "keys and values": (lambda: attend(of(2, 3, 4, 6), of(2, 3, 5, 6), of(2, 3, 7, 6)), "as many values as keys"),
    "batches": (lambda: attend(of(2, 3, 4, 6), of(5, 3, 4, 6), of(5, 3, 4, 6)), "do not fit together"),
    "axes": (lambda: attend(of(2, 3, 4, 6), of(3, 4, 6), of(3, 4, 6)), "each must be batch head position dim"),
    "additive": (lambda: Additive(3, 4, 5)(of(2, 1, 4), of(2, 6, 5), of(2, 6, 4)), r"query is \[2, 1, 4\]"),
    "keys not made": (lambda: Dot(3, 4, 5)(of(2, 1, 3), of(2, 6, 4), of(2, 6, 4)), r"key is \[2, 6, 4\]"),
    "a cell's word": (lambda: RNN(4, 3)(of(2, 5), RNN(4, 3).start(of(2, 5))), "with dim 4"),
    "a cell's state": (lambda: LSTM(4, 3)(of(2, 4), (of(2, 3),)), r"a tuple of 2, each batch hidden, \[2, 3\]"),
    "an RNN's state": (lambda: RNN(4, 3)(of(2, 4), None), r"a tuple of 1, each batch hidden, \[2, 3\]"),
    "bytes as ids": (lambda: GPT(11, dim=8, heads=2)(IDS.byte()), r"ids are uint8; .*ids\.long\(\)"),
    "bools as ids": (lambda: GPT(11, dim=8, heads=2)(IDS.bool()), "ids are bool"),
    "segments": (lambda: BERT(11, dim=8, heads=2)(IDS, IDS[:, :2]), r"segments are \[2, 2\]; ids are \[2, 3\]"),
    "other segments": (lambda: BERT(11, dim=8, heads=2)(IDS, IDS), "0 in the first sentence and 1 in the second"),
    "a place": (lambda: BERT(11, dim=8, heads=2)(IDS, where=2), "where is 2; give a table of bools"),
    "a bias of bools": (
        lambda: attend(of(2, 3, 4, 6), of(2, 3, 4, 6), of(2, 3, 4, 6), bias=of(4, 4).bool()),
        "bias is bool; numbers are added",
    ),
    "an additive mask": (
        lambda: Dot(3, 4, 5)(of(2, 1, 3), of(2, 6, 5), of(2, 6, 4), of(2, 6).bool()),
        r"mask is bool \[2, 6\]; it must be bool, batch query key",
    ),
    "sources": (
        lambda: Transformer(11, dim=8, heads=2)(IDS, torch.ones(3, 2, dtype=torch.long)),
        "3 texts cannot be shared out to 2 sources",
    ),
    "rows of a cache": (lambda: filled().reorder(torch.tensor([9, 0])), r"rows are \[9, 0\]; the cache is of 2 texts"),
    "fewer rows": (lambda: filled().reorder(torch.tensor([0])), "give 2 whole numbers"),
    "and": (lambda: masks.causal and masks.window(2), "the mask causal is neither true nor false: join masks by & and"),
    "lengths": (lambda: masks.padding(torch.tensor([1.5])), "lengths are float32; give whole numbers"),
    "a function": (lambda: Block(8, 2, activation=torch.relu), r"activation is the function relu; .*nn\.ReLU"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.usefixtures("unchecked")
def test_sizes_that_do_not_fit_are_told(name):
    call, message = WRONG[name]
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.usefixtures("unchecked")
def test_a_model_of_these_is_compiled_whole():
    model = nn.Sequential(Block(8, 2), Block(8, 2))
    x = torch.randn(2, 5, 8)
    torch.testing.assert_close(torch.compile(model, fullgraph=True, backend="eager")(x), model(x))


@pytest.mark.usefixtures("unchecked")
def test_a_cache_that_an_interrupt_left_uneven_is_told():
    model = GPT(11, context=9, layers=2, heads=2, dim=8).eval()
    cache = model.new_cache()
    with torch.no_grad():
        model(IDS, cache)
        cache[1].length -= 1
        with pytest.raises(ValueError, match="layers of the cache hold unlike lengths"):
            model(IDS, cache)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.usefixtures("unchecked")
def test_ids_are_mapped():
    model = GPT(11, context=9, layers=1, heads=2, dim=8).eval()
    each = torch.vmap(lambda ids: model(ids[None])[0])(IDS)
    torch.testing.assert_close(each, model(IDS))
