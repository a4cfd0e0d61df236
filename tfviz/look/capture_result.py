"""`Capture`: the tensors that a capture recorded, as a mapping from site to tensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from tfviz.look import capture_checks
from tfviz.look.attention_call import AttentionCall
from tfviz.look.capture_state import CaptureDiagnostics, CaptureState
from tfviz.look.map_arguments import check_batch_element
from tfviz.look.recorder import Invocation
from tfviz.look.text_chunks import ChunkOrigins, join_chunks
from tfviz.look.tracer import AttentionTracer
from tfviz.validation import validated


class _StoredState(NamedTuple):
    """The part of a `CaptureState` that a copy of a capture keeps."""

    diagnostics: CaptureDiagnostics
    chunks: dict[str, dict[int, ChunkOrigins]]
    summary: str
    caveats: list[str]
    sites: tuple[list[str], list[str]]


class Capture(Mapping[str, Tensor]):
    """A mapping from each captured site to its tensor, in the order of computation.

    If a site was computed several times, as during generation, `captured[site]` is its last invocation and
    `over_time(site)` returns all of them. A capture can be copied and pickled; `AttentionMaps.save` writes files that
    are safe to open.

    Attributes:
        model: the class name of the model.
        history: the model's calls and the keys of each invocation, by which the invocations of one text are matched.
    """

    def __init__(self, tracer: AttentionTracer, model: str) -> None:
        self.model, self.history = model, tracer.recorder.history
        self._invocations, self._dtype = tracer.recorder.invocations, tracer.recorder.dtype
        self._state: CaptureState | _StoredState = tracer.state

    def __getitem__(self, site: str) -> Tensor:
        return self._computed(self.stored(site)[-1])[0]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to copy or pickle: detached tensors, notes and caveats, without the model."""
        invocations = {
            site: [(stored.detach() if isinstance(stored, Tensor) else stored, allowed) for stored, allowed in some]
            for site, some in self._invocations.items()
        }
        state = _StoredState(self._state.diagnostics, self._state.chunks, self.summary, self._caveats, self._seen_sites)
        return {**self.__dict__, "_invocations": invocations, "_state": state}

    def __iter__(self) -> Iterator[str]:
        return iter(self._invocations)

    def __len__(self) -> int:
        return len(self._invocations)

    def __repr__(self) -> str:
        shapes = (f"  {site}: {' x '.join(map(str, shape))}" for site, shape in self.shapes.items())
        return "\n".join([f"{len(self)} sites of {self.model}", *shapes, *self._caveats])

    @property
    def _caveats(self) -> list[str]:
        """Messages about what the capture could not observe or name."""
        state = self._state
        return state.caveats if isinstance(state, _StoredState) else capture_checks.capture_caveats(state)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each site's last invocation; nothing is computed for a lazy capture."""
        return {site: tuple(invocations[-1][0].shape) for site, invocations in self._invocations.items()}

    def provenance(self, sites: Iterable[str]) -> dict[str, Any]:
        """Return the provenance of maps from these sites: model, dropout, and sites whose rows need not sum to 1."""
        sites = list(sites)
        dropout = max((self._state.diagnostics.dropout.get(site, 0.0) for site in sites), default=0.0)
        unnormalized = [site for site in self._state.diagnostics.unnormalized if site in sites]
        known = {"model": self.model, "dropout": dropout, "unnormalized": unnormalized}
        return {name: value for name, value in known.items() if value}

    @property
    def summary(self) -> str:
        """A line on the number of modules that look like attention, the number that gave maps, and their caveats."""
        state = self._state
        return state.summary if isinstance(state, _StoredState) else capture_checks.summary(state)

    def over_time(self, site: str) -> list[Tensor]:
        """Return all invocations of a site, first to last; `AttentionMaps.over_time` joins patterns to one map."""
        return [tensor for tensor, _ in self.invocations(site)]

    def allowed(self, site: str) -> Tensor | None:
        """Return the mask of a pattern's last invocation, True where a query may attend; None if nothing is masked."""
        return self._computed(self.stored(site)[-1])[1]

    @validated
    def invocations(self, site: str) -> list[tuple[Tensor, Tensor | None]]:
        """Return all invocations of a site, each with the mask of a pattern, True where a query may attend, or None."""
        return [self._computed(invocation) for invocation in self.stored(site)]

    def _computed(self, invocation: Invocation) -> tuple[Tensor, Tensor | None]:
        stored, allowed = invocation
        if isinstance(stored, AttentionCall):
            return stored.pattern(self._dtype), stored.allowed()
        return stored, allowed

    def stored(self, site: str) -> list[Invocation]:
        """Return all invocations of a site in stored form: for a lazy capture, the arguments of attention calls.

        Raises:
            KeyError: no such site was captured.
        """
        if site not in self._invocations:
            raise KeyError(self._absence(site))
        return self._invocations[site]

    def _absence(self, site: str) -> str:
        """Return the error message for a site that was not captured, which says whether the model computed it."""
        if not isinstance(site, str):
            example = next(iter(self), "transformer.h.0.attn.pattern")
            return f"a site is {site!r}; give its name, a string, such as {example!r}"
        sites, inputs = self._seen_sites
        if site in sites or site in inputs:
            return f"{site!r} was not captured: name it, as in sites=[{site!r}] of look.capture or of the analysis"
        return capture_checks.no_site(site, sites, inputs)

    @property
    def _seen_sites(self) -> tuple[list[str], list[str]]:
        """The sites that the model computed, captured or not, and the sites of its modules' inputs."""
        state = self._state
        if isinstance(state, _StoredState):
            return state.sites
        paths = state.stack.called
        inputs = [site for path in paths if (site := state.stack.input_site(path)) is not None]
        return list(state.recorder.sites), inputs

    def assembled(self, site: str, batch: int) -> Sequence[Invocation]:
        """Return the stored invocations of a site, with windows of one picture or chunks of one text joined.

        Raises:
            ValueError: there is no such batch element, or the position of a chunk in the text is unknown.
        """
        if site in self._state.chunks:
            return join_chunks(site, self.invocations(site), self._state.chunks[site], batch)
        stored = self.stored(site)
        size = max(tensor.shape[0] for tensor, _ in stored)
        check_batch_element(batch, size)
        return stored

    @property
    def chunk_sites(self) -> list[str]:
        """Sites whose weights cover chunks of a text or windows of a picture, which `assembled` joins."""
        return list(self._state.chunks)
