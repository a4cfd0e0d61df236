"""Attention that a model writes out: from a softmax, or other weights, to the product with its values."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz.look.aside import aside, is_wrapped
from tfviz.look.axes import Heads, Layout, layout, roles, said
from tfviz.look.call import four
from tfviz.look.implicit import Implicit
from tfviz.look.lineage import Lineage, Weights, learned
from tfviz.look.meeting import Parts, alike
from tfviz.look.products import Product, product
from tfviz.look.running import silent
from tfviz.look.sites import Allowed, Sites, matches

STARTS = {"softmax": "", "special_softmax": "", "log_softmax": "logs", "special_log_softmax": "logs", "sigmoid": "gate"}
NEAR = 3  # modules, from the innermost on, that may say how many heads there are
CLOSE = 200  # steps of their type from 1, of the sum of weights


class Written(Sites):
    """Follows weights to the values that they meet, and lets them go by as sites of the module that runs then.

    Attributes:
        softmaxes: modules that called one, whatever became of it.
        channels: modules whose weights mix channels, not words.
        alone: site -> the one axis beside query and key, of a module that does not say how many heads it has.
    """

    def __init__(self, *given: Any, axes: dict[str, str]):
        super().__init__(*given)
        self.axes, self.lineage = axes, Lineage()
        implicit = any(glob.rpartition(".")[2] == "implicit" for glob in self.globs)
        self.implicit = Implicit() if implicit else None
        self.softmaxes: dict[str, None] = {}
        self.alone: dict[str, int] = {}
        self.channels: dict[str, None] = {}
        self.stated: dict[tuple[Any, ...], Heads] = {}  # by the modules that run
        self.buffers = {id(buffer) for buffer in self.model.buffers()}

    def written_out(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        """A model may write attention out: a softmax, and later a product with values over its keys."""
        name = named(func)
        if name in STARTS:
            return self._starts(STARTS[name], func, *args, **kwargs)
        made = product(name, func, args, kwargs)
        if name == "sum" and self.lineage.known:
            made = self.lineage.summed(args, kwargs) or made
        found = made and self._found(made)
        if made and found:
            return self._meet(made, *found, lambda: func(*args, **kwargs))
        output = func(*args, **kwargs)
        if self.implicit is not None:
            self._meets_sum(name, made, args)
            self.implicit.follow(name, func, made, args, kwargs, output)
        if self.lineage.known:
            self.lineage.follow(name, func, args, kwargs, output)
        return output

    def _meets_sum(self, name: str, made: Product | None, args: tuple) -> None:
        """Queries may meet keys and values that were added up over a text: linear attention, which makes no map."""
        assert self.implicit is not None
        found = self.implicit.met(name, made, args)
        if found is None or not any(found.keys in _counts(shape) for shape in self.state.given):
            return
        site = self._site("implicit")

        def shown() -> Tensor:
            weights = found.weights()
            return self._copy(site, self._layout(weights.shape, found.roles).to(weights))

        self._note(site, shown)

    def _starts(
        self, stage: str, func: Callable, input: Tensor, dim: int | None = None, *args: Any, **kwargs: Any
    ) -> Tensor:
        """A softmax: of attention, perhaps."""
        given = (dim, *args) if stage != "gate" else args
        if input.is_nested or input.layout is not torch.strided or not input.dim() or not input.numel():
            return func(input, *given, **kwargs)
        axis = -1 if stage == "gate" else dim if dim is not None else int(input.dim() not in (0, 1, 3))
        scores = self._site("scores")
        if self._edits(scores) and input.dim() > 1:
            moved = input.movedim(axis, -1)
            edited = self._changed(scores, self._with_heads(moved)).reshape(moved.shape).movedim(-1, axis)
            input = edited
        soft = func(input, *given, **kwargs)
        if stage != "gate":
            self.softmaxes[self.state.running[-1]] = None
        self.lineage.begins(soft, input, axis, stage)
        return soft

    def _found(self, made: Product) -> tuple[int, Weights] | None:
        """Which factor has weights, if one has: what a softmax gave, or numbers whose rows add up to 1."""
        for place in (0, 1):
            weights = self.lineage.known.get(made.factors[place])
            if weights and not weights.times and weights.stage != "logs" and weights.axis is not None:
                meets = made.contracted(made.letters[place][weights.axis])
                if meets and not learned(made.factors[1 - place]):
                    return place, weights
        for place in (0, 1):
            if not learned(made.factors[1 - place]) and (axis := self._of_one(made, place)) is not None:
                return place, self.lineage.begins(made.factors[place], None, axis)
        return None

    def _of_one(self, made: Product, place: int) -> int | None:
        """The axis along which all rows are weights that add up to 1."""
        rows, letters = made.factors[place], made.letters[place]
        axes = [axis for axis, letter in enumerate(letters) if made.contracted(letter)]
        if len(axes) != 1 or rows.dim() < 2 or rows.shape[axes[0]] < 2 or not rows.numel():
            return None
        if (
            not rows.is_floating_point()
            or rows.is_meta
            or is_wrapped(rows)
            or learned(rows)
            or id(rows) in self.buffers
        ):
            return None
        with aside(), torch.no_grad():
            last = rows.movedim(axes[0], -1)
            first = last[(0,) * (last.dim() - 1)]
            close = min(CLOSE * torch.finfo(rows.dtype).eps, 1e-2)
            if not (abs(first.sum() - 1) < close and (first >= 0).all()):
                return None
            return axes[0] if bool(((last.sum(-1) - 1).abs() < close).all() and (last >= 0).all()) else None

    def _meet(self, made: Product, place: int, weights: Weights, call: Callable[[], Any]) -> Any:
        """Weights meet values: returns what the product gives, by the call as it is where nothing is edited."""
        given = made.factors[place]
        axes = self._layout(given.shape, roles(made, place, weights.axis or 0))
        parts = Parts(given, weights, axes)
        maps = self._site("pattern")
        if not weights.met:
            self._note_parts(parts)
            self._look_for_channels(axes)
        met, weights.met = weights.met, True
        if not self._edits(maps):
            if not met:
                self._note(maps, lambda: self._copy(maps, parts.shown), parts.allowed)
            return call()
        if not weights.edited:
            given = self._edited_weights(parts, met)
        with silent():
            return made.again(*(given if i == place else factor for i, factor in enumerate(made.factors)))

    def _note_parts(self, parts: Parts) -> None:
        """Scores go by, and the softmax's own output where other numbers multiply the values."""
        scores, soft, weights = self._site("scores"), self._site("softmax"), parts.weights
        own = parts.scores
        if own is not None and weights.stage != "gate":
            self._note(scores, lambda: self._copy(scores, parts.axes.to(own)))
        if weights.changed and weights.soft is not None:
            given = weights.soft[0].movedim(weights.soft[1], -1)
            if not alike(given, parts.plain):
                self._note(soft, lambda: self._copy(soft, self._with_heads(given)))

    def _edited_weights(self, parts: Parts, met: bool) -> Tensor:
        """What flows on in place of some weights, with the dropout that they had."""
        given, plain, weights, axes = parts.given, parts.plain, parts.weights, parts.axes
        with aside():
            if met:
                passed = self._changed(self._site("pattern"), parts.shown)
            else:
                passed = self._weighed(
                    None if parts.scores is None else axes.to(parts.scores), parts.shown, parts.allowed
                )
            passed = axes.back(passed).to(given.dtype)
            if parts.scores is not None and not (given.requires_grad or is_wrapped(given) or 0 in plain.stride()):
                plain.copy_(passed)  # for whoever reads them later, such as the caller they are returned to
                weights.edited = weights.plain is None
            if weights.plain is not None:
                passed = torch.where((given == 0) & (plain != 0), 0.0, passed / (1 - weights.drop))
        return passed

    def _weighed(self, scores: Tensor | None, soft: Tensor, allowed: Allowed) -> Tensor:
        """Weights of an attention that is edited; captures around this one see no call of it, and are told."""
        soft = self._pass(self._site("pattern"), soft, allowed)
        for outer in (one for one in reversed(self.outer) if one.state.running):
            if scores is not None:
                outer._note(outer._site("scores"), lambda: scores.clone())
            soft = outer._pass(outer._site("pattern"), soft, allowed)
        return soft

    def _look_for_channels(self, axes: Layout) -> None:
        """Whether there is a row for each channel of the texts that the module was given, not for each word."""
        given = self.state.given[-1]
        _, heads, queries, keys = axes.four
        if len(given) == 3 and queries == keys and queries not in given[:2] and heads * queries == given[2]:
            self.channels[self.state.running[-1]] = None

    def _heads(self) -> Heads:
        """What the modules that run say of their heads."""
        near = (*self.state.running[-NEAR:], self.state.heads)
        if near not in self.stated:
            modules = [self.parts[path] for path in reversed(self.state.running[-NEAR:])]
            self.stated[near] = Heads.of(modules, self.state.heads, self.batches)
        return self.stated[near]

    def _layout(self, shape: Sequence[int], found: Sequence[str]) -> Layout:
        heads = self._heads()
        site = self._site("pattern")
        for glob, axes in self.axes.items():
            if matches(site, glob):
                return said(axes, shape, heads)
        if heads.count is None and sum(role == "shared" for role in found) == 1:
            self.alone.setdefault(site, shape[list(found).index("shared")])
        return layout(shape, found, heads)

    def _with_heads(self, tensor: Tensor) -> Tensor:
        heads = self.state.heads
        return tensor.unflatten(0, (-1, heads)) if heads and tensor.dim() == 3 else four(tensor)


def _counts(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How many words, or places of a picture, a tensor of this shape may have."""
    return (math.prod(shape[2:]), math.prod(shape[1:-1])) if len(shape) == 4 else shape[1:2]


def named(func: Callable) -> str:
    """The name of a call, without the sign that it changes its tensor."""
    name = getattr(func, "__name__", "")
    return getattr(getattr(func, "__self__", None), "__name__", name) if name == "__get__" else name
