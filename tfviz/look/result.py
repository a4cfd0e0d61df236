"""`Capture`: what was captured, as a mapping from sites to tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from tfviz.look import caveats
from tfviz.look.attention_call import AttentionCall
from tfviz.look.history import History
from tfviz.look.recompute import attention_pattern
from tfviz.look.recorder import Firing
from tfviz.look.text_blocks import join_blocks
from tfviz.look.tracer import AttentionTracer
from tfviz.look.windows import Windows
from tfviz.validation import validated


class Capture(Mapping[str, Tensor]):
    """What was captured: site -> tensor, in the order of the computation.

    Where a site fired several times, as it does during generation, `seen[site]` is the last firing and
    `over_time(site)` has all of them.

    Attributes:
        model: the name of the model's class.
        history: which text each firing is of.
    """

    def __init__(self, tracer: AttentionTracer, model: str) -> None:
        self._tracer, self.model = tracer, model
        self._firings, self._trace = tracer.recorder.firings, tracer.trace
        self.history: History = tracer.recorder.history

    def __getitem__(self, site: str) -> Tensor:
        return self.over_time(site)[-1]

    def __reduce__(self) -> Any:
        raise TypeError(
            "a capture is of one model in one process; keep AttentionMaps.of(seen).save(path), or its tensors"
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._firings)

    def __len__(self) -> int:
        return len(self._firings)

    def __repr__(self) -> str:
        shapes = (f"  {site}: {' x '.join(map(str, shape))}" for site, shape in self.shapes.items())
        return "\n".join([f"{len(self)} sites of {self.model}", *shapes, *caveats.of_capture(self._trace)])

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each site's last firing; of a lazy capture nothing is computed for it."""
        return {site: tuple(firings[-1][0].shape) for site, firings in self._firings.items()}

    @validated
    def windows(self, site: str) -> Windows | None:
        """Return how a picture was cut whose windows look at themselves at a site; None: it was not, or is unknown.

        Raises:
            KeyError: no such site.
        """
        shape = self.stored(site)[-1][0].shape
        if not site.endswith("pattern") or len(shape) != 4:
            return None
        parts = site.split(".")[:-1]
        modules = self._tracer.stack.modules
        around = [modules[".".join(parts[:count])] for count in range(len(parts), -1, -1)]
        return Windows.of(around, self._tracer.recorder.input_shapes[site], shape)

    @property
    def unnormalized(self) -> list[str]:
        """Sites whose rows need not add up to 1: a sigmoid's, and weights that were named as they are."""
        return list(self._trace.notes.unnormalized)

    def provenance(self, sites: Iterable[str]) -> dict[str, Any]:
        """Return what maps of these sites say of where they come from."""
        sites = list(sites)
        dropout = max((self._trace.notes.dropout.get(site, 0.0) for site in sites), default=0.0)
        unnormalized = [site for site in self.unnormalized if site in sites]
        known = {"model": self.model, "dropout": dropout, "unnormalized": unnormalized}
        return {name: value for name, value in known.items() if value}

    @property
    def summary(self) -> str:
        """One line: how many modules look like attention, how many gave maps, and which gave none."""
        return caveats.summary(self._trace)

    def over_time(self, site: str) -> list[Tensor]:
        """Return every firing of a site, first to last; `AttentionMaps.over_time` makes one map of patterns."""
        return [tensor for tensor, _ in self.firings(site)]

    def allowed(self, site: str) -> Tensor | None:
        """Return True where the queries of a pattern's last firing may look; None: everywhere."""
        return self.firings(site)[-1][1]

    @validated
    def firings(self, site: str) -> list[tuple[Tensor, Tensor | None]]:
        """Return every firing of a site, first to last, each with where the queries of a pattern may look."""
        dtype = self._tracer.recorder.dtype
        return [
            (attention_pattern(stored, dtype), stored.allowed())
            if isinstance(stored, AttentionCall)
            else (stored, allowed)
            for stored, allowed in self.stored(site)
        ]

    def stored(self, site: str) -> list[Firing]:
        """Return every firing of a site as it is stored: of a lazy capture, the arguments of attention calls."""
        if site not in self._firings:
            raise KeyError(caveats.no_site(site, list(self)))
        return self._firings[site]

    def assembled(self, site: str, batch: int) -> Sequence[Firing]:
        """Return the stored firings of a site, with windows of one picture or blocks of one text put together.

        Raises:
            ValueError: no such batch element; blocks of which it is unknown where they belong.
        """
        windows = self.windows(site)
        if windows is None and site in self._trace.blocks:
            return join_blocks(site, self.firings(site), self._trace.blocks[site], batch)
        stored = self.stored(site)
        size = windows.batch if windows else max(tensor.shape[0] for tensor, _ in stored)
        if not -size <= batch < size:
            raise ValueError(f"batch is {batch}; the capture holds a batch of {size}")
        return stored if windows is None else [windows.assemble(*firing, batch) for firing in self.firings(site)]

    @property
    def block_sites(self) -> list[str]:
        """Sites whose weights are of blocks of a text, which `assembled` puts together."""
        return [site for site in self._trace.blocks if self.windows(site) is None]

    def folded(self) -> dict[str, int]:
        """Return the sites of patterns whose batch is not the model's, and it: of windows, chunks or rows, say."""
        sizes, blocks = self._tracer.stack.sizes, self._trace.blocks
        return {
            site: shape[0]
            for site, shape in self.shapes.items()
            if site.endswith("pattern") and shape[0] > 1 and not {shape[0], shape[0] * shape[1]} & sizes
            if site not in blocks and not self.windows(site)
        }
