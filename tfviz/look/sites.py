"""What becomes of a tensor that goes by at a site: it is edited if it is to be, and kept if it was asked for."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.look.aside import aside, bare
from tfviz.look.kept import pack, packable
from tfviz.look.lineage import Lineage
from tfviz.look.recompute import four
from tfviz.look.running import ACTIVE, Running, checkpointed, recomputed

Edit = Callable[[Tensor], Tensor]
Allowed = Callable[[], Tensor | None]


@lru_cache(maxsize=2**14)
def matches(site: str, glob: str) -> bool:
    """Whether a site is meant by a glob; `*.pattern` also means the `pattern` of a model that is itself attention."""
    return fnmatchcase(site, glob) or fnmatchcase(f".{site}", glob)


class Sites(Running):
    """Notes every site that fires, edits what is to be edited, keeps what was asked for.

    Attributes:
        fired: the sites there were, in order, kept or not.
        kept: site -> its firings, each a tensor and, for a pattern, where queries might look.
    """

    def __init__(
        self, model: nn.Module, globs: list[str], dtype: torch.dtype, edit: dict[str, Edit], axes: dict[str, str]
    ):
        super().__init__(model)
        self.globs, self.dtype, self.edit, self.axes = globs, dtype, edit, axes
        self.alone: dict[str, int] = {}  # site -> the one axis beside query and key, of a module that states no heads
        self.fired: dict[str, None] = {}
        self.kept: dict[str, list[tuple[Tensor, Tensor | None]]] = {}
        self.softmaxes: dict[str, None] = {}  # modules that called one, whatever became of it
        self.lineage = Lineage()
        self.buffers = {id(buffer) for buffer in model.buffers()}
        self.outer = [one for one in ACTIVE.get() if isinstance(one, Sites)]

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
        return any(matches(site, glob) for glob in self.edit)

    def _pass(self, site: str, tensor: Tensor, allowed: Allowed = lambda: None) -> Tensor:
        """A tensor goes by: returns what flows on."""
        tensor = self._changed(site, tensor)
        self._note(site, lambda: self._copy(site, tensor), allowed)
        return tensor

    def _changed(self, site: str, tensor: Tensor) -> Tensor:
        """What the edits of a site make of it."""
        for glob, function in self.edit.items():
            if matches(site, glob):
                tensor = _edited(site, tensor, function)
        return tensor

    def _note(self, site: str, make: Callable[[], Tensor], allowed: Allowed = lambda: None) -> None:
        """Keep what was asked for: made aside, of no gradient, and not again when a part is computed again."""
        if recomputed():
            return
        self.fired[site] = None
        if any(matches(site, glob) for glob in self.globs):
            with aside(), torch.no_grad():
                made, mask = bare(make()), allowed()
                shown = four(made) if site.endswith("pattern") else made
                self.kept.setdefault(site, []).append((shown.detach(), mask))

    def _copy(self, site: str, tensor: Tensor) -> Tensor:
        """A copy that later steps of the model cannot change, in the form it is to be kept in."""
        tensor = bare(tensor)
        if not tensor.is_floating_point():
            return tensor.clone()
        if self.dtype == torch.uint8:
            return (
                pack(tensor) if site.endswith("pattern") and packable(tensor) else tensor.to(torch.float32, copy=True)
            )
        return tensor.to(self.dtype, copy=True)


def _edited(site: str, tensor: Tensor, function: Edit) -> Tensor:
    if checkpointed():
        raise ValueError(
            f"{site} lies in a part that the backward pass computes again (gradient checkpointing), where its edit "
            "would come twice or not at all, and gradients would be wrong: turn checkpointing off while you edit"
        )
    with aside():
        edited = function(tensor)
    if not isinstance(edited, Tensor) or edited.shape != tensor.shape:
        what = f"shape {list(edited.shape)}" if isinstance(edited, Tensor) else type(edited).__name__
        raise ValueError(f"the edit of {site} returned {what}; it must return a tensor of shape {list(tensor.shape)}")
    return edited
