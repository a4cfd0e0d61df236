"""What becomes of a tensor that goes by at a site: it is edited if it is to be, and kept if it was asked for."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.edited import Edit, edited
from tfviz.look.aside import aside, bare, is_wrapped, mapped
from tfviz.look.call import Call, four
from tfviz.look.history import History
from tfviz.look.kept import pack, packable
from tfviz.look.running import ACTIVE, OPEN, Running, checkpointed, recomputed
from tfviz.look.signatures import Keys

MAPS = ("pattern", "implicit")  # what sites of weights are called
Allowed = Callable[[], Tensor | None]
# of a firing: how many queries, where some of them may look, what its keys are, and of what type they were
Dated = tuple[int, Callable[[slice], Tensor | None], Keys, torch.dtype]
KINDS = ("pattern", "implicit", "scores", "softmax")  # sites that are kept in the type that was asked for


@lru_cache(maxsize=2**14)
def matches(site: str, glob: str) -> bool:
    """Whether a site is meant by a glob; `*.pattern` also means the `pattern` of a model that is itself attention."""
    return fnmatchcase(site, glob) or fnmatchcase(f".{site}", glob)


class Sites(Running):
    """Notes every site that fires, edits what is to be edited, keeps what was asked for.

    Attributes:
        fired: the sites there were, in order, kept or not.
        kept: site -> its firings, each a tensor and, for a pattern, where queries might look; or what it is made of.
        given: site -> the shapes that the modules around it were given, the innermost first.
        history: which text each firing is of.
    """

    def __init__(
        self, model: nn.Module, globs: list[str], dtype: torch.dtype, edit: dict[str, Edit], grad: bool = False
    ):
        super().__init__(model)
        self.globs, self.dtype, self.edit, self.grad = globs, dtype, edit, grad
        self.fired: dict[str, None] = {}
        self.kept: dict[str, list[tuple[Tensor | Call, Tensor | None]]] = {}
        self.given: dict[str, list[tuple[int, ...]]] = {}
        self.mapped: set[str] = set()  # sites of a vmap, whose batch is another than that of one call
        self.outer = [one for one in ACTIVE.get() if isinstance(one, Sites) and one in OPEN]
        self.history = History()
        self.ungraded = False  # whether the model ran where no gradients are kept
        self.dropped: dict[str, float] = {}  # patterns -> the share that dropout took of them before they met values
        self._wants_maps = any(fnmatchcase("pattern", glob.rpartition(".")[2]) for glob in globs)

    def began(self) -> None:
        self.history.begin()
        self.ungraded |= not torch.is_grad_enabled()

    def ended(self, given: dict[str, Any], output: Any) -> None:
        if self.history.logs:
            self.history.end(given, output)

    def close(self) -> None:
        super().close()
        self.history.close()

    def _date(self, site: str, firing: Callable[[], Dated]) -> None:
        """Note what the keys of a firing are, where maps of it, or of others in the same call, are to be joined."""
        if recomputed() or mapped() or not (self._wants(site) or (self._wants_maps and self.history.leads(site))):
            return
        with aside(), torch.no_grad():
            queries, seen, keys, dtype = firing()
            if not queries or not keys.shape[1]:
                return
            first = seen(slice(0, 1))
            last = first if queries == 1 else seen(slice(queries - 1, queries))
            self.history.note(site, queries, (first, last), keys, dtype)

    def passed(self, path: str, module: nn.Module, output: Any) -> Any:
        """A module's output goes by, or the first of several, which come back as they came if one was edited."""
        if not path:
            return None
        if isinstance(output, Tensor):
            shown = self._pass(path, output)
            return None if shown is output else shown
        if not (isinstance(output, tuple) and output and isinstance(output[0], Tensor)):
            return None
        shown = self._pass(path, output[0])
        if shown is output[0]:
            return None
        parts = (shown, *output[1:])
        return (
            type(output)(*parts)
            if hasattr(output, "_fields")
            else parts
            if type(output) is tuple
            else type(output)(parts)
        )

    def edits_below(self, path: str) -> bool:
        return any(self._edits(site) for site in self.fired if site.startswith(path))

    def _site(self, name: str) -> str:
        return f"{self.state.running[-1]}.{name}".removeprefix(".")

    def _edits(self, site: str) -> bool:
        """Whether what flows on is to be another tensor; one that is kept with its gradient flows on itself."""
        return any(matches(site, glob) for glob in self.edit) or (self.grad and self._wants(site))

    def _wants(self, site: str) -> bool:
        return any(matches(site, glob) for glob in self.globs)

    def _pass(self, site: str, tensor: Tensor, allowed: Allowed = lambda: None) -> Tensor:
        """A tensor goes by: returns what flows on."""
        tensor = self._changed(site, tensor)
        if not (self.grad and self._wants(site) and tensor.requires_grad):
            self._note(site, lambda: self._copy(site, tensor), allowed)
            return tensor
        kept = tensor.view_as(tensor)
        kept.retain_grad()
        self.fired[site] = None
        self.given[site] = self.state.given[::-1]
        self.kept.setdefault(site, []).append((kept, allowed()))
        return kept

    def _changed(self, site: str, tensor: Tensor) -> Tensor:
        """What the edits of a site make of it."""
        for glob, function in self.edit.items():
            if matches(site, glob):
                tensor = _edited(site, tensor, function)
        return tensor

    def _note(self, site: str, make: Callable[[], Tensor | Call], allowed: Allowed = lambda: None) -> None:
        """Keep what was asked for: made aside, of no gradient, and not again when a part is computed again."""
        if recomputed():
            return
        self.fired[site] = None
        if self._wants(site):
            self.given[site] = self.state.given[::-1]
            if mapped():
                self.mapped.add(site)
            with aside(), torch.no_grad():
                made = make()
                self.kept.setdefault(site, []).append(
                    (made, None) if isinstance(made, Call) else self._shown(site, made, allowed())
                )

    def _shown(self, site: str, made: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        made = bare(made)
        return (_closed(four(made), mask) if site.endswith(MAPS) else made).detach(), mask

    def _copy(self, site: str, tensor: Tensor) -> Tensor:
        """A copy that later steps of the model cannot change, in the form it is to be kept in."""
        tensor = bare(tensor)
        if not tensor.is_floating_point():
            return tensor.clone()
        if not site.endswith(KINDS):
            return tensor.clone()
        if self.dtype == torch.uint8:
            return pack(tensor) if site.endswith(MAPS) and packable(tensor) else tensor.to(torch.float32, copy=True)
        return tensor.to(self.dtype, copy=True)


def _closed(weights: Tensor, allowed: Tensor | None) -> Tensor:
    """Zeros in rows that see nothing: by a mask that is finite, a softmax makes them even, by one of -inf NaN."""
    if allowed is None or is_wrapped(weights) or not allowed.numel():
        return weights
    dead = ~allowed.any(-1, keepdim=True)
    return weights.masked_fill(dead, 0) if dead.any() else weights


def _edited(site: str, tensor: Tensor, function: Edit) -> Tensor:
    if checkpointed():
        raise ValueError(
            f"{site} lies in a part that the backward pass computes again (gradient checkpointing), where its edit "
            "would come twice or not at all, and gradients would be wrong: turn checkpointing off while you edit"
        )
    if getattr(function, "of_weights", False) and site.rpartition(".")[2] != "pattern":
        raise ValueError(f"{site}: what look.edits makes changes weights; name a site that ends in .pattern")
    with aside():
        return edited(site, tensor, function)
