"""Argument validation of public functions: which values are converted, and which are rejected."""

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy
import pytest
import torch
from jaxtyping import TypeCheckError
from torch import Tensor, nn

from tfviz import validation
from tfviz.coercion import coerce
from tfviz.generate.beam_state import topk
from tfviz.view.figures.formatting import shorten

PACKAGES = ["generate", "layers", "layers.masks", "layers.positions", "learn", "learn.losses", "learn.evaluate"]
PACKAGES += ["learn.schedule", "learn.checkpoint", "look", "look.measures", "look.edits", "models", "portable", "text"]
PACKAGES += ["study", "text.corpora", "text.datasets", "text.tasks", "view", "view.draw"]


def validated():
    """Yield (name, function) for each public function and constructor whose arguments are checked."""
    for package in PACKAGES:
        for name, member in vars(importlib.import_module(f"tfviz.{package}")).items():
            function = member.__init__ if inspect.isclass(member) else member
            if hasattr(function, "__validated__"):
                yield f"{package}.{name}", function


PUBLIC = dict(validated())


def test_validated_functions_are_found():
    assert len(PUBLIC) > 120
    assert {"view.heads", "learn.fit", "models.GPT", "layers.masks.window", "view.draw.bars"} <= PUBLIC.keys()


@pytest.mark.parametrize("name", PUBLIC)
def test_every_annotation_rejects_unknown_types(name):
    function = inspect.unwrap(PUBLIC[name])
    for key, hint in validation._hints(function).items():
        if hint is not object:
            with pytest.raises(TypeError, match=rf"^f: {key} is an? _Stranger; give "):
                validation._checked("f", key, _Stranger(), hint)


class _Stranger:
    """No number, no sequence, no module."""


@pytest.mark.parametrize(
    ("hint", "value", "converted"),
    [
        (int, numpy.int64(3), 3),
        (int, torch.tensor(3), 3),
        (float, 3, 3),
        (float, numpy.float32(0.5), 0.5),
        (float, torch.tensor(0.5), 0.5),
        (bool, 1, True),
        (bool, numpy.bool_(True), True),
        (int | None, None, None),
        (Sequence[int], torch.tensor([3, 4]), [3, 4]),
        (Sequence[int], numpy.array([3, 4]), [3, 4]),
        (Sequence[int] | None, range(2), range(2)),
        (Sequence[str], iter(["a", "b"]), ["a", "b"]),
        (tuple[int, float], [numpy.int64(1), 2], (1, 2)),
        (tuple[int, ...], numpy.array([1, 2]), (1, 2)),
        (Mapping[str, Sequence[int]], {"a": torch.tensor([1])}, {"a": [1]}),
        (Mapping[str, int], {1: 2}, {"1": 2}),
        (Literal["a", "b"], "b", "b"),
        (Path, Path("x"), Path("x")),
        (type[nn.Module], nn.Linear, nn.Linear),
    ],
    ids=lambda value: type(value).__name__,
)
def test_equivalent_values_are_converted(hint, value, converted):
    found = validation._checked("f", "x", value, hint)
    assert found == converted
    assert type(found) is type(converted)


@pytest.mark.parametrize("value", [[[1, 2], [3, 4]], numpy.array([[1, 2], [3, 4]], dtype=numpy.int32)])
def test_arrays_are_converted_to_tensors_of_default_dtypes(value):
    assert torch.equal(validation._checked("f", "x", value, Tensor), torch.tensor([[1, 2], [3, 4]]))
    assert coerce(numpy.ones(3), Tensor).dtype == torch.float32
    assert coerce(numpy.ones(3, dtype=bool), Tensor).dtype == torch.bool
    rows = [torch.ones(2), torch.zeros(2)]
    assert torch.equal(coerce(rows, Tensor), torch.stack(rows))
    assert validation._checked("f", "x", rows, Tensor | Sequence[Tensor]) is rows  # what fits is left as it is


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (int, 2.5, "x is 2.5; give int"),
        (int, True, "x is True; give int"),
        (int, torch.tensor(2.5), "x is a tensor of shape []; give int"),
        (float, "2", "x is '2'; give float"),
        (float | None, numpy.bool_(True), "give float or None"),
        (bool, 2, "x is 2; give bool"),
        (str, b"a", "x is b'a'; give str"),
        (Sequence[str], ["a"] * 9 + [3], "x is a list: item 9 of list is not an instance of str; give Sequence[str]"),
        (Sequence[int], {1, 2}, "x is a set; give Sequence[int]"),
        (Sequence[tuple[int, int]], [(1, 2), (1, "b")], "item 1 of item 1 of list is not an instance of int"),
        (Mapping[str, Tensor], {"a": "b"}, "value of key 'a' of dict is not an instance of torch.Tensor"),
        (Mapping[str, int] | None, [1], "x is a list; give Mapping[str, int] or None"),
        (tuple[int, int], (1, 2, 3), "x is a tuple; give tuple[int, int]"),
        (Tensor, "abc", "x is 'abc'; give Tensor"),
        (Tensor, [[1], [2, 3]], "x is a list; give Tensor"),
        (nn.Module, nn.Linear, "x is the class Linear; give a model (torch.nn.Module): an instance, Linear(...)"),
        (type[nn.Module], int, "x is the class int; give type[Module]"),
        (Callable[[int], int], lambda: 1, "x is the function <lambda>; give a function of (int)"),
        (Literal["a", "b"], "c", "x is 'c'; give 'a' or 'b'"),
        (Literal["a", "b", "c"] | None, "d", "x is 'd'; give 'a', 'b', 'c' or None"),
        (Callable[..., int], 3, "x is 3; give a function"),
        (nn.Module, torch.ones(2), "x is a tensor of shape [2]; give a model (torch.nn.Module)"),
        (Iterable[str] | Path, 3, "x is 3; give Iterable[str] or Path"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_invalid_values_raise_with_name_value_and_annotation(hint, value, message):
    with pytest.raises(TypeError) as error:
        validation._checked("f", "x", value, hint)
    assert message in str(error.value)


def test_validated_binds_arguments_before_checking():
    @validation.validated
    def scale(x: Tensor, *more: Tensor, times: int = 1, **named: int) -> Any:
        return x * times, more, named

    assert scale([1.0], [2.0], a=numpy.int64(3)) == (torch.tensor([1.0]), (torch.tensor([2.0]),), {"a": 3})
    for call, message in {
        lambda: scale(): "missing a required argument: 'x'; it takes x, more, named; by name times=",
        lambda: scale([1.0], "b"): "more is 'b'; give Tensor",
        lambda: scale([1.0], a="b"): "a is 'b'; give int",
    }.items():
        with pytest.raises(TypeError) as error:
            call()
        assert message in str(error.value)


def test_values_in_messages_are_short():
    for value, shown in (
        ("x" * 61, f"{'x' * 60!r}…"), (b"ab", "b'ab'"), (10**19, "10000000000000000000"),
        (-(10**5000), "a number of 16610 bits"), (True, "True"), (None, "None"), ({}, "a dictionary"),
        (torch.ones(2, 3), "a tensor of shape [2, 3]"), (nn.LSTM(1, 1), "an LSTM"), (nn.GRU, "the class GRU"),
    ):  # fmt: skip
        assert validation.describe(value) == shown


def test_shapes_and_types_are_checked_inside_the_package():
    """As `conftest.py` sets it up: shapes where a function has some, types elsewhere."""
    assert topk(torch.rand(3, 5), 2)[0].shape == (3, 2)
    with pytest.raises(TypeCheckError):
        topk(torch.rand(3), 2)
    with pytest.raises(TypeError):
        shorten(b"bytes", 3)
