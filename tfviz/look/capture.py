"""Watch a forward pass: attention weights, scores, queries, keys, values and the output of any module.

A model knows nothing of this. While the `with` lasts, hooks tell which module is running, and a
`TorchFunctionMode` sees the attention calls it makes (`look.watch`). A fused kernel still computes the output; its
weights are recomputed beside it, only for the sites asked for. Afterwards nothing is left behind.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from tfviz import bounds
from tfviz.doors import door
from tfviz.edited import takes_site
from tfviz.look import told
from tfviz.look.blocks import joined
from tfviz.look.call import Call
from tfviz.look.history import History
from tfviz.look.ingredients import Shelf
from tfviz.look.join import Firing
from tfviz.look.recompute import pattern
from tfviz.look.running import OPEN
from tfviz.look.sites import Edit
from tfviz.look.verify import Verify
from tfviz.look.watch import Watch
from tfviz.look.windows import Windows


class Seen(Mapping[str, Tensor]):
    """What was captured: site -> tensor, in the order of the computation.

    Where a site fired several times, as it does during generation, `seen[site]` is the last firing and
    `over_time(site)` has all of them.
    """

    def __init__(self, watch: Watch, model: str, verified: Verify | None = None) -> None:
        self._watch, self.model, self.verified = watch, model, verified

    def __getitem__(self, site: str) -> Tensor:
        return self.over_time(site)[-1]

    def __reduce__(self) -> Any:
        raise TypeError(
            "a capture is of one model in one process; keep AttentionMaps.of(seen).save(path), or its tensors"
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._watch.kept)

    def __len__(self) -> int:
        return len(self._watch.kept)

    def __repr__(self) -> str:
        shapes = (f"  {site}: {' x '.join(map(str, shape))}" for site, shape in self.shapes.items())
        return "\n".join([f"{len(self)} sites of {self.model}", *shapes, *told.doubts(self._watch)])

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of each site's last firing; of a lazy capture nothing is computed for it."""
        return {site: tuple(firings[-1][0].shape) for site, firings in self._watch.kept.items()}

    @door
    def windows(self, site: str) -> Windows | None:
        """How a picture was cut whose windows look at themselves here, where that is known; None: it was not cut.

        Raises:
            KeyError: no such site.
        """
        shape = self.as_kept(site)[-1][0].shape
        if not site.endswith("pattern") or len(shape) != 4:
            return None
        parts = site.split(".")[:-1]
        around = [self._watch.parts[".".join(parts[:count])] for count in range(len(parts), -1, -1)]
        return Windows.of(around, self._watch.given[site], shape)

    @property
    def folded(self) -> dict[str, int]:
        """Sites of patterns whose batch is not the model's, and it: of windows, chunks or rows of a text or picture."""
        sizes, mapped = self._watch.sizes, self._watch.mapped
        patterns = {site: shape for site, shape in self.shapes.items() if site.endswith("pattern") and shape[0] > 1}
        return {
            site: batch
            for site, (batch, heads, *_) in patterns.items()
            if not {batch, batch * heads} & sizes
            and site not in (*mapped, *self._watch.pieces)
            and not self.windows(site)
        }

    @property
    def history(self) -> History:
        """Which text each firing is of."""
        return self._watch.history

    @property
    def unnormalized(self) -> list[str]:
        """Sites whose rows need not add up to 1: a sigmoid's, and weights that were named as they are."""
        return list(self._watch.unnormalized)

    def provenance(self, sites: Iterable[str]) -> dict[str, Any]:
        """What maps of these sites say of where they come from."""
        sites = list(sites)
        dropout = max((self._watch.dropped.get(site, 0.0) for site in sites), default=0.0)
        unnormalized = [site for site in self.unnormalized if site in sites]
        known = {"model": self.model, "dropout": dropout, "unnormalized": unnormalized}
        return {name: value for name, value in known.items() if value}

    @property
    def told(self) -> str:
        """One line: how many modules look like attention, how many gave maps, and which gave none."""
        line = told.line(self._watch)
        if self.verified is None or self.verified.difference is None:
            return line
        return f"{line}, the output differs from that without the capture by {self.verified.difference:.2g} at most"

    def over_time(self, site: str) -> list[Tensor]:
        """Every firing of a site, first to last; of patterns `AttentionMaps.over_time` makes one map."""
        return [tensor for tensor, _ in self.firings(site)]

    def allowed(self, site: str) -> Tensor | None:
        """For a pattern: True where the last firing's queries might look; None where they might look everywhere."""
        return self.firings(site)[-1][1]

    @door
    def firings(self, site: str) -> list[Firing]:
        """Every firing of a site, first to last, each with where the queries of a pattern might look."""
        return [
            (pattern(made, self._watch.dtype), made.allowed()) if isinstance(made, Call) else (made, allowed)
            for made, allowed in self.as_kept(site)
        ]

    def as_kept(self, site: str) -> list[tuple[Tensor | Call, Tensor | None]]:
        """As `firings`; of a lazy capture, what they are made of."""
        if site not in self._watch.kept:
            raise KeyError(told.missing(site, list(self)))
        return self._watch.kept[site]

    def as_whole(self, site: str, batch: int) -> Sequence[tuple[Tensor | Call, Tensor | None]]:
        """As `as_kept`; of windows and blocks, those of one picture or text of the batch put together.

        Raises:
            ValueError: no such picture or text; blocks of which it is not known where they belong.
        """
        windows = self.windows(site)
        if windows is None and site in self._watch.pieces:
            return joined(site, self.firings(site), self._watch.pieces[site], batch)
        if windows and not -windows.batch <= batch < windows.batch:
            raise ValueError(f"batch is {batch}; the capture holds a batch of {windows.batch}")
        if windows is None:
            sizes = [made.shape[0] for made, _ in self.as_kept(site)]
            if sizes and not -max(sizes) <= batch < max(sizes):
                raise ValueError(f"batch is {batch}; the capture holds a batch of {max(sizes)}")
        return self.as_kept(site) if windows is None else [windows.whole(*one, batch) for one in self.firings(site)]

    @property
    def cut(self) -> list[str]:
        """Sites whose weights are of blocks of a text, which `AttentionMaps.of` puts together."""
        return [site for site in self._watch.pieces if self.windows(site) is None]


class _Capture(AbstractContextManager["Seen"]):
    """The `with` of a capture. It owns what was put into PyTorch, and takes it back also where it is interrupted."""

    def __init__(self, watch: Watch, seen: Seen) -> None:
        self._watch, self._seen, self._stack = watch, seen, ExitStack()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a capture has no {name!r} before it is begun: with look.capture(model) as seen")

    def __call__(self, *given: Any, **more: Any) -> Any:
        raise TypeError("a capture is no model: with look.capture(model) as seen: model(...)")

    def __getitem__(self, site: str) -> Any:
        raise TypeError("a capture has nothing before it is begun: with look.capture(model) as seen")

    def __enter__(self) -> Seen:
        try:
            self._watch.open()
            if self._seen.verified is not None:
                self._stack.enter_context(self._seen.verified.hooks())
        except BaseException:
            self._watch.close()
            raise
        return self._seen

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._watch.close()
        except BaseException:  # an interrupt, of which there is hardly a second
            self._watch.close()
            raise
        finally:
            self._stack.close()
        if kind is None:
            told.check(self._watch, self._seen.folded)

    def __del__(self) -> None:
        if getattr(self, "_watch", None) in OPEN:  # an interrupt came between the body and `__exit__`
            self._watch.close()
            self._stack.close()


def capture(
    model: nn.Module,
    sites: str | Sequence[str] = "*.pattern",
    dtype: torch.dtype = torch.float32,
    edit: Mapping[str, Edit] | None = None,
    axes: str | Mapping[str, str] | None = None,
    grad: bool = False,
    lazy: bool | str | torch.device = False,
    verify: bool = False,
) -> AbstractContextManager[Seen]:
    """Capture what `model` computes inside the `with`.

    A site is a module's dotted path and stands for its output. Below a module that computes attention stand
    `.pattern` (the weights that multiply the values, before dropout), `.scores` (after scale and mask), `.softmax`
    where its own output is not what multiplies them, and, where it is fused, `.query`, `.key` and `.value`
    (`.query_heads` and so on, where a part of the module is called `query`).
    `.implicit` is what linear attention, which makes no map, comes to: q.k over its sum (Katharopoulos et al. 2020). It
    is computed only for this, where keys and values are multiplied and added up over the text before queries meet them.
    Patterns are batch head query key, whatever their axes are in the model.

    Args:
        sites: globs, such as `"*.pattern"` or `["decoder.*.cross.pattern", "decoder.0"]`. Weights whose rows do not
            add up to 1, such as `relu(scores) / n`, are taken as they are where their site is named without a star.
        dtype: how patterns are kept: float32, float16, or uint8 (255 times the square root; `unpack` reverses it).
        edit: site or glob -> function; what it returns flows on in place of the tensor it is given. A function that
            needs two arguments is given the site's name, too.
        axes: what the axes of a model's own weights are, for all sites or by glob, where that is told wrong: "b h q k",
            "(b h) q k", "(b h=8) q k", "b q h k" ...
        grad: keep patterns and outputs as they flow, so that `seen[site].grad` is there after a backward pass; fused
            attention is then computed unfused.
        lazy: keep what patterns of fused attention are made of (queries, keys, mask, scale, in the model's own types)
            and compute any part of them when it is looked at, so that a text may be of any length; True, or a device
            to keep them on, such as "cpu". What a model writes out is kept whole, in `dtype`.

        verify: run each call of the model without the capture first, on copies of its arguments, and compare what it
            gives: `seen.told` says by how much the outputs differ, and a warning tells where they are not the same. It
            takes twice the time.

    What the model gives, its gradients and its copies are what they are without; threads and tasks may each have a
    capture of their own, which sees that thread and those that a forward of the model starts. What could not be seen
    (nested tensors) is told by a warning, and so are weights whose one axis beside query and key is not the batch, of a
    module that does not say how many heads it has. Calls in which no numbers flow (export, tracing) pass it by.

    Raises:
        LookupError: at the end, if a glob matched nothing; lists the sites there are.
        ValueError: the model is TorchScript; an edit returns another shape, or lies under gradient checkpointing;
            `axes` does not fit.

    >>> layer = nn.MultiheadAttention(6, 2, batch_first=True)
    >>> x = torch.randn(3, 5, 6)
    >>> with capture(layer) as seen:
    ...     _ = layer(x, x, x)
    >>> seen["pattern"].shape
    torch.Size([3, 2, 5, 5])
    """
    if dtype not in (torch.float32, torch.float16, torch.uint8):
        raise ValueError(f"dtype is {dtype}; patterns can be kept as torch.float32, torch.float16 or torch.uint8")
    if grad and (dtype != torch.float32 or lazy):
        raise ValueError(
            f"dtype is {dtype}, lazy is {lazy}; what carries gradients is kept as it flows: leave them away"
        )
    if verify and edit:
        raise ValueError("verify compares the model with itself as it is, and edit changes it: leave one of them away")
    if any(not isinstance(glob, str) for glob in edit or ()):
        raise TypeError("edit is by site: {'blocks.0.attention.pattern': function}; each key is a string")
    for function in (edit or {}).values():
        takes_site(function)
    lazy = str(lazy) if isinstance(lazy, torch.device) else lazy
    if isinstance(lazy, str):
        bounds.device(lazy=lazy)
    if edit and any(glob.rpartition(".")[2] == "implicit" for glob in edit):
        raise ValueError("a site called implicit is computed to be shown, and by no model: there is nothing to edit")
    shelf = Shelf(lazy if isinstance(lazy, str) else None) if lazy else None
    plain = getattr(model, "_orig_mod", model)
    if isinstance(plain, torch.jit.ScriptModule):
        raise ValueError(
            f"{type(model).__name__} is scripted or traced (TorchScript): it runs outside Python, where nothing can be "
            "seen; capture the model that it was made of"
        )
    named = {"*": axes} if isinstance(axes, str) else dict(axes or {})
    watch = Watch(
        plain,
        [sites] if isinstance(sites, str) else list(sites),
        dtype,
        dict(edit or {}),
        grad,
        axes=named,
        shelf=shelf,
    )
    return _Capture(watch, Seen(watch, type(model).__name__, Verify(model) if verify else None))
