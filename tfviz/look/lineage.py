"""Which tensors are attention weights: what a softmax gave, followed through what the model does with it.

A softmax alone is no attention: routers, gates and classifiers have one, too. What it gave is followed through other
shapes, dropout and changes cell by cell, until a product with values adds up over its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import ref

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from tfviz.look.aside import aside
from tfviz.look.products import Product, summed

SHAPES = frozenset(
    "view reshape permute transpose t swapaxes swapdims movedim moveaxis unsqueeze squeeze flatten unflatten expand "  # noqa: SIM905
    "expand_as view_as reshape_as __getitem__ chunk split unbind select narrow mT T tensor_split flip roll".split()
)
SAME = frozenset("contiguous clone detach to type type_as float half bfloat16 double cpu cuda".split())  # noqa: SIM905
DROPS = frozenset(["dropout", "feature_dropout", "dropout2d", "dropout1d"])


@dataclass(eq=False)
class Weights:
    """What is known of a tensor of attention weights.

    Attributes:
        keys: the numbers of the keys, in the tensor's shape; only the axis of the keys has a stride.
        scores: what the softmax was given, in the tensor's shape; None where nothing was seen of it.
        soft: what the softmax gave, and which of its axes has the keys; None: this is it.
        changed: whether these are other numbers than those, but for dropout.
        plain: the weights without dropout; None where there was none.
        drop: the share that dropout took.
        stage: "logs" before they are raised to powers; "gate" for a sigmoid's, whose rows need not add up to 1.
        met: whether they were shown: they may meet several values.
        edited: whether they were changed where they stand.
        times: what they were multiplied with cell by cell, to be added up, and the call.
    """

    keys: Tensor
    scores: Tensor | None = None
    soft: tuple[Tensor, int] | None = None
    changed: bool = False
    plain: Tensor | None = None
    drop: float = 0.0
    stage: str = ""
    met: bool = False
    edited: bool = False
    times: tuple[Tensor, Tensor, Callable[..., Tensor]] | None = None

    @cached_property
    def moves(self) -> list[int]:
        """The axes on which the keys are: one, unless it was joined with another."""
        moves = moving(self.keys)
        if len(moves) > 1:  # the numbers of axes that were joined, and maybe parted again, were written down one by one
            return [axis for axis in moves if bool((self.keys != self.keys.narrow(axis, 0, 1)).any())]
        return moves or [self.keys.dim() - 1]

    @property
    def axis(self) -> int | None:
        """The axis of the keys; None if they are on several."""
        return self.moves[0] if len(self.moves) == 1 else None


class Lineage:
    """The weights that are under way."""

    def __init__(self) -> None:
        self.known: Any = WeakIdKeyDictionary()
        self.sums: Any = WeakIdKeyDictionary()  # logarithms of sums of exponentials -> of which scores, over which axis

    def by_hand(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], output: Any) -> None:
        """A softmax as `(scores - scores.logsumexp(-1, keepdim=True)).exp()`, which rounds too much for its sums."""
        if name in ("logsumexp", "special_logsumexp"):
            dim = args[1] if len(args) > 1 else kwargs.get("dim")
            dim = dim[0] if isinstance(dim, list | tuple) and len(dim) == 1 else dim
            if type(dim) is int:
                self.sums[output] = (ref(args[0]), dim)
        elif name in ("sub", "__sub__", "subtract") and isinstance(args[1], Tensor) and args[1] in self.sums:
            scores, dim = self.sums[args[1]]
            if scores() is args[0]:
                self.begins(output, args[0], dim, "logs")

    def begins(self, weights: Tensor, scores: Tensor | None, axis: int, stage: str = "") -> Weights:
        """Weights over one axis, such as a softmax gives of scores."""
        kept = None if scores is None else scores.detach()
        self.known[weights] = made = Weights(numbers(weights, axis % weights.dim()), kept, stage=stage)
        return made

    def tracked(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor | None:
        """The first of these that is known."""
        for one in (*args, *kwargs.values()):
            for part in one if isinstance(one, list | tuple) else (one,):
                if isinstance(part, Tensor) and part in self.known:
                    return part
        return None

    def follow(
        self, name: str, func: Callable[..., Any], made: Product | None, args: Sequence[Any], kwargs: Any, output: Any
    ) -> None:
        """A call, perhaps a product, was given some of what is known, and gave something."""
        given = self._lasting(made) if made else self.tracked(args, kwargs)
        if given is None:
            return
        was = self.known[given]
        if output is given:
            if name not in SAME | SHAPES | DROPS:  # changed where it stands
                self.known[given] = replace(was, changed=True, met=False)
        elif name in SHAPES:
            self._shaped(
                was, given, lambda one: func(*(one if arg is given else arg for arg in args), **kwargs), output
            )
        elif not isinstance(output, Tensor) or not output.is_floating_point() or was.times:
            return
        elif name in SAME:
            self.known[output] = replace(was, soft=was.soft or _soft(was, given))
        elif name in DROPS:
            share = _dropped(args, kwargs)
            plain = was.plain if not share or was.plain is not None else given
            self.known[output] = replace(was, soft=was.soft or _soft(was, given), plain=plain, drop=share or was.drop)
        elif was.stage == "logs":
            if name == "exp":
                self.known[output] = replace(was, stage="")
        elif name in ("mul", "multiply") and output.shape != given.shape:
            other = args[1] if args[0] is given else args[0]
            if isinstance(other, Tensor):
                self.known[output] = replace(was, times=(given, other, func))
        elif was.stage != "gate":
            self._changed(name, was, given, made, output)

    def _lasting(self, made: Product) -> Tensor | None:
        """Of the factors that are known the one whose keys a product leaves."""
        for factor, letters in zip(made.factors, made.letters):
            was = self.known.get(factor)
            if was and not was.times and not any(made.contracted(letters[axis]) for axis in was.moves):
                return factor
        return None

    def summed(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Product | None:
        """The product that is whole when these are added up: weights times values, cell by cell."""
        was = self.known.get(args[0]) if args and isinstance(args[0], Tensor) else None
        dim = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis"))
        if was is None or was.times is None or dim is None:
            return None
        weights, other, times = was.times
        axes = dim if isinstance(dim, list | tuple) else (dim,)
        return summed(
            weights,
            other,
            args[0],
            axes,
            lambda a, b: times(a, b).sum(dim, *args[2:], **{k: v for k, v in kwargs.items() if k == "keepdim"}),
        )

    def _shaped(self, was: Weights, given: Tensor, again: Callable[[Tensor], Any], output: Any) -> None:
        """The same numbers on other axes, or some of them."""
        if was.times:
            return
        try:
            with aside():  # gradients go through the plain weights, if they are edited
                parts = [None if one is None else again(one) for one in (was.keys, was.scores, was.plain)]
        except RuntimeError:  # the keys were mixed with something else
            return
        one = isinstance(output, Tensor)
        made = [output] if one else list(output)
        columns = [[part] if one else [None] * len(made) if part is None else list(part) for part in parts]
        for tensor, keys, scores, plain in zip(made, *columns):
            if not isinstance(tensor, Tensor) or not isinstance(keys, Tensor) or keys.shape != tensor.shape:
                continue
            now = replace(was, keys=keys, scores=scores, plain=plain, soft=was.soft or _soft(was, given))
            if now.axis is not None and was.axis is not None:
                fewer = keys.shape[now.axis] < was.keys.shape[was.axis]
                self.known[tensor] = replace(now, changed=was.changed or fewer)

    def _changed(self, name: str, was: Weights, given: Tensor, made: Product | None, output: Tensor) -> None:
        """Other numbers in the same cells, or heads mixed with heads."""
        keys = was.keys
        if made:
            mixed = _mixed(keys, made.letters[0 if made.factors[0] is given else 1], made, output)
            if mixed is None:
                return
            keys = mixed
        elif output.shape != given.shape:
            others = [
                axis
                for axis in range(given.dim())
                if output.dim() == given.dim() and output.shape[axis] != given.shape[axis]
            ]
            if len(others) != 1 or others == [was.axis] or name not in ("conv3d", "conv2d", "conv1d"):
                return
            keys = keys.select(others[0], 0).unsqueeze(others[0]).expand(output.shape)
        scores = was.scores if was.scores is not None and was.scores.shape == output.shape else None
        fresh = Weights(keys, scores, was.soft or _soft(was, given), changed=True, stage=was.stage)
        self.known[output] = fresh


def _mixed(keys: Tensor, letters: Sequence[Any], made: Product, output: Tensor) -> Tensor | None:
    """The numbers of the keys in what a product gives that does not add up over them; None: its axes are not known."""
    if output.dim() != len(made.output) or keys.dim() != len(letters):
        return None
    left = [letter for letter in letters if letter in made.output]
    for axis in reversed(range(keys.dim())):
        if letters[axis] not in made.output:
            keys = keys.select(axis, 0)
    keys = keys.permute(sorted(range(len(left)), key=lambda axis: made.output.index(left[axis])))
    for axis, letter in enumerate(made.output):
        keys = keys if letter in left else keys.unsqueeze(axis)
    return keys.expand(output.shape)


def moving(numbered: Tensor) -> list[int]:
    """The axes along which `numbers` change."""
    return [axis for axis, step in enumerate(numbered.stride()) if step and numbered.shape[axis] > 1]


def numbers(tensor: Tensor, axis: int) -> Tensor:
    """The numbers along one axis, in the shape of a tensor."""
    numbers = torch.arange(tensor.shape[axis])
    return numbers.reshape([-1 if one == axis else 1 for one in range(tensor.dim())]).expand(tensor.shape)


def _dropped(args: Sequence[Any], kwargs: Mapping[str, Any]) -> float:
    """The share that a call of dropout takes: none where nothing is trained."""
    share = args[1] if len(args) > 1 else kwargs.get("p", 0.5)
    trains = args[2] if len(args) > 2 else kwargs.get("training", kwargs.get("train", True))
    return share if trains else 0.0


def _soft(was: Weights, given: Tensor) -> tuple[Tensor, int] | None:
    return None if was.axis is None or was.stage == "logs" else (given.detach(), was.axis)


def learned(tensor: Tensor) -> bool:
    """Whether a model has learned these numbers: no values that somebody looks at."""
    return isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)
