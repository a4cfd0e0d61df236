"""Attention that a model writes out: from a softmax, or other weights, to the product with its values."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor

from tfviz.look.aside import aside, is_wrapped
from tfviz.look.axes import Layout, layout, roles, said
from tfviz.look.blocks import Piece
from tfviz.look.call import four, is_open
from tfviz.look.finding import Finding, counts
from tfviz.look.implicit import Implicit
from tfviz.look.lineage import Weights
from tfviz.look.meeting import Parts, alike
from tfviz.look.products import Product, product
from tfviz.look.running import silent
from tfviz.look.signatures import of_product
from tfviz.look.sites import Allowed, Dated, matches

STARTS = {"softmax": "", "special_softmax": "", "log_softmax": "logs", "special_log_softmax": "logs", "sigmoid": "gate"}


class Written(Finding):
    """Follows weights to the values that they meet, and lets them go by as sites of the module that runs then.

    Attributes:
        softmaxes: modules that called one, whatever became of it.
        channels: modules whose weights mix channels, not words.
        unnormalized: sites whose rows need not add up to 1: those, where they were named, and sigmoids'.
        alone: site -> the one axis beside query and key, of a module that does not say how many heads it has.
    """

    def __init__(self, *given: Any, axes: dict[str, str]):
        super().__init__(*given)
        self.axes = axes
        implicit = any(glob.rpartition(".")[2] == "implicit" for glob in self.globs)
        self.implicit = Implicit() if implicit else None
        self.softmaxes: dict[str, None] = {}
        self.alone: dict[str, int] = {}
        self.channels: dict[str, None] = {}
        self.pieces: dict[str, dict[int, Piece]] = {}  # of sites that saw parts of a text: by firing
        self.unnormalized: dict[str, None] = {}

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
        self._follow(name, func, made, args, kwargs, output)
        return output

    def _meets_sum(self, name: str, made: Product | None, args: tuple) -> None:
        """Queries may meet keys and values that were added up over a text: linear attention, which makes no map."""
        assert self.implicit is not None
        found = self.implicit.met(name, made, args)
        if found is None or not any(found.keys in counts(shape) for shape in self.state.given):
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
        if self.places:
            self.places.softens(input, soft)
        return soft

    def _meet(self, made: Product, place: int, weights: Weights, call: Callable[[], Any]) -> Any:
        """Weights meet values: returns what the product gives, by the call as it is where nothing is edited."""
        given = made.factors[place]
        axes = self._layout(given.shape, roles(made, place, weights.axis or 0))
        parts = Parts(given, weights, axes)
        maps = self._site("pattern")
        dated = cache(lambda: self._dated_product(parts, made, place))
        if weights.drop:
            self.dropped[maps] = weights.drop
        if not weights.met:
            self._date(maps, dated)
            self._note_parts(parts)
            self._look_for_channels(axes)
            if weights.stage == "gate":
                self.unnormalized[maps] = None
        met, weights.met = weights.met, True
        if not self._edits(maps):
            if not met:
                with self._piece(maps, made, place, parts):
                    self._note(maps, lambda: self._copy(maps, parts.shown), parts.allowed)
            return call()
        if not weights.edited:
            with self._piece(maps, made, place, parts):
                given = self._edited_weights(parts, met, dated)
        with silent():
            return made.again(*(given if i == place else factor for i, factor in enumerate(made.factors)))

    @contextmanager
    def _piece(self, site: str, made: Product, place: int, parts: Parts) -> Iterator[None]:
        """Of which words the weights are that are kept meanwhile, if a text was cut."""
        before = len(self.kept.get(site, ()))
        yield
        piece = self.places and self.places.piece(made, place, parts.axes)
        if piece and len(self.kept.get(site, ())) > before:
            self.pieces.setdefault(site, {})[before] = piece

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

    def _dated_product(self, parts: Parts, made: Product, place: int) -> Dated:
        scores, keys = parts.scores, parts.weights.axis or 0

        def seen(rows: slice) -> Tensor | None:
            return None if scores is None else is_open(parts.axes.to(scores)[:, :, rows])

        values = made.factors[1 - place]
        return parts.axes.four[2], seen, of_product(made, place, keys, parts.axes), values.dtype

    def _edited_weights(self, parts: Parts, met: bool, dated: Callable[[], Dated]) -> Tensor:
        """What flows on in place of some weights, with the dropout that they had."""
        given, plain, weights, axes = parts.given, parts.plain, parts.weights, parts.axes
        with aside():
            if met:
                passed = self._changed(self._site("pattern"), parts.shown)
            else:
                passed = self._weighed(
                    None if parts.scores is None else axes.to(parts.scores), parts.shown, parts.allowed, dated
                )
            passed = axes.back(passed).to(given.dtype)
            if parts.scores is not None and not (given.requires_grad or is_wrapped(given) or 0 in plain.stride()):
                plain.copy_(passed)  # for whoever reads them later, such as the caller they are returned to
                weights.edited = weights.plain is None
            if weights.plain is not None:
                passed = torch.where((given == 0) & (plain != 0), 0.0, passed / (1 - weights.drop))
        return passed

    def _weighed(self, scores: Tensor | None, soft: Tensor, allowed: Allowed, dated: Callable[[], Dated]) -> Tensor:
        """Weights of an attention that is edited; captures around this one see no call of it, and are told."""
        soft = self._pass(self._site("pattern"), soft, allowed)
        for outer in (one for one in reversed(self.outer) if one.state.running):
            outer._date(outer._site("pattern"), dated)
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


def named(func: Callable) -> str:
    """The name of a call, without the sign that it changes its tensor."""
    name = getattr(func, "__name__", "")
    return getattr(getattr(func, "__self__", None), "__name__", name) if name == "__get__" else name
