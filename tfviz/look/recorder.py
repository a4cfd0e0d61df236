"""`Recorder`: edits the tensors computed at sites, and stores the requested ones in the requested form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tfviz.apply_edit import Edit, apply_edit
from tfviz.look.attention_call import AttentionCall, as_4d
from tfviz.look.device_sync import may_be_true
from tfviz.look.key_signatures import InvocationHistory, KeyRecord
from tfviz.look.module_paths import is_within
from tfviz.look.module_stack import ModuleStack, first_tensor_argument
from tfviz.look.quantization import is_quantizable, quantize
from tfviz.look.torch_modes import in_backward, in_checkpoint, in_functorch, untraced

WEIGHT_SUFFIXES = ("pattern", "implicit")  # of sites that hold weights
ATTENTION_SUFFIXES = (*WEIGHT_SUFFIXES, "scores", "softmax")  # of sites whose tensors are stored in the requested dtype
MaskFactory = Callable[[], Tensor | None]
Invocation = tuple[Tensor | AttentionCall, Tensor | None]  # a tensor or a lazy call, and the mask of a pattern


@lru_cache(maxsize=2**14)
def matches(site: str, glob: str) -> bool:
    """Return whether a glob matches a site; `*.pattern` also matches `pattern`, of a model that is itself attention."""
    return fnmatchcase(site, glob) or fnmatchcase(f".{site}", glob)


class Recorder:
    """A recorder of all computed sites, which first edits their tensors, then stores the requested ones.

    Args:
        edits: site or glob -> function.
        globs: the sites to store.
        dtype: dtype of stored patterns: float32, float16 or uint8.
        grad: whether to store tensors of the autograd graph, so that they get gradients.
        device: the device on which tensors are stored; None: where they were computed.

    Attributes:
        sites: all sites that were computed, in order, stored or not.
        invocations: site -> its stored invocations.
        history: the model's calls and the keys of each invocation, by which maps are joined over time.
    """

    def __init__(
        self,
        stack: ModuleStack,
        edits: Mapping[str, Edit],
        globs: list[str],
        dtype: torch.dtype,
        grad: bool,
        device: torch.device | None = None,
    ) -> None:
        self.stack, self.edits, self.globs, self.dtype, self.grad = stack, edits, globs, dtype, grad
        self.device = device
        self.sites: dict[str, None] = {}
        self.invocations: dict[str, list[Invocation]] = {}
        self.history = InvocationHistory()
        self._wants_patterns = any(fnmatchcase("pattern", glob.rpartition(".")[2]) for glob in globs)

    def wants(self, site: str) -> bool:
        """Return whether tensors at a site are stored."""
        return any(matches(site, glob) for glob in self.globs)

    def wants_input(self, site: str) -> bool:
        """Return whether the input of a module is stored or edited: only by a glob whose last part is `input`."""
        named = [glob for glob in (*self.globs, *self.edits) if glob.rpartition(".")[2] == "input"]
        return any(matches(site, glob) for glob in named)

    def edits_of(self, site: str) -> list[Edit]:
        """Return the functions that edit a site, in order."""
        return [function for glob, function in self.edits.items() if matches(site, glob)]

    def is_edited(self, site: str) -> bool:
        """Return whether the model continues with another tensor at a site: edited, or stored with its gradient."""
        return bool(self.edits_of(site)) or (self.grad and self.wants(site))

    def is_edited_below(self, path: str) -> bool:
        """Return whether any site inside a module is edited, or stored with its gradient."""
        return any(self.is_edited(site) for site in self.sites if is_within(site, path))

    def edit(self, site: str, tensor: Tensor) -> Tensor:
        """Return the edited tensor, with which the model continues.

        Raises:
            ValueError: the site runs under gradient checkpointing, or an edit of weights is applied to another kind of
                site.
        """
        for function in self.edits_of(site):
            if in_checkpoint():
                raise ValueError(
                    f"{site} lies in a part that the backward pass recomputes (gradient checkpointing), so its edit "
                    f"would be applied twice or not at all, and gradients would be wrong: turn checkpointing off"
                )
            if getattr(function, "changes_weights", False) and not site.endswith("pattern"):
                raise ValueError(f"{site}: look.edits change weights; name a site that ends in .pattern")
            with untraced():
                tensor = apply_edit(site, tensor, function)
        return tensor

    def edit_and_record(self, site: str, tensor: Tensor) -> Tensor:
        """Edit and record a tensor; return the tensor with which the model continues."""
        return self.keep(site, self.edit(site, tensor))

    def keep(self, site: str, tensor: Tensor, allowed: MaskFactory = lambda: None) -> Tensor:
        """Record a tensor; return the tensor with which the model continues."""
        if not (self.grad and self.wants(site) and tensor.requires_grad):
            self.record(site, lambda: self.copy(site, tensor), allowed)
            return tensor
        stored = tensor.view_as(tensor)
        stored.retain_grad()
        self.sites[site] = None
        self.invocations.setdefault(site, []).append((stored, allowed()))
        return stored

    def amend(self, site: str, tensor: Tensor) -> None:
        """Replace the last stored tensor of a site by what an inner capture made of it.

        With `grad`, the stored tensor stays: its gradient is that of the original.
        """
        if self.invocations.get(site) and self.wants(site) and not self.grad:
            with untraced(), torch.no_grad():
                _, allowed = self.invocations[site][-1]
                self.invocations[site][-1] = self._to_storage_device(self.copy(site, tensor).detach(), allowed)

    def record(
        self, site: str, make: Callable[[], Tensor | AttentionCall], allowed: MaskFactory = lambda: None
    ) -> None:
        """Store the result of `make` if the site is requested.

        Nothing is recorded in a backward pass, which recomputes checkpointed parts, or under functorch.
        """
        if in_backward() or in_functorch():
            return
        self.sites[site] = None
        if self.wants(site):
            with untraced(), torch.no_grad():
                tensor = make()
                invocation = (
                    (tensor, None)
                    if isinstance(tensor, AttentionCall)
                    else self._to_storage_device(*_zero_masked_weights(site, tensor, allowed()))
                )
                self.invocations.setdefault(site, []).append(invocation)

    def _to_storage_device(self, tensor: Tensor, allowed: Tensor | None) -> Invocation:
        """Return an invocation on the device that stores it."""
        if self.device is None:
            return tensor, allowed
        return tensor.to(self.device), None if allowed is None else allowed.to(self.device)

    def record_keys(self, site: str, keys: Callable[[], KeyRecord]) -> None:
        """Record the keys of an invocation, if its maps, or other maps of the same call, may be joined over time."""
        needed = self.wants(site) or (self._wants_patterns and self.history.is_reference_site(site))
        if needed and not in_backward() and not in_functorch():
            with untraced(), torch.no_grad():
                self.history.add(site, keys())

    def record_output(self, path: str, output: Any) -> Any:
        """Edit and record a module's first output; return its replacement, or None if it is unchanged."""
        first = output[0] if isinstance(output, tuple) and output else output
        if not path or not isinstance(first, Tensor):
            return None
        changed = self.edit_and_record(path, first)
        if changed is first:
            return None
        if output is first:
            return changed
        parts = (changed, *output[1:])
        if hasattr(output, "_fields"):  # a named tuple
            return type(output)(*parts)
        return parts if type(output) is tuple else type(output)(parts)

    def record_input(self, site: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Edit and record the first tensor argument of a module; return changed (args, kwargs), or None."""
        name, first = first_tensor_argument(args, kwargs)
        if first is None:
            return None
        changed = self.edit_and_record(site, first)
        if changed is first:
            return None
        if isinstance(name, int):
            return (*args[:name], changed, *args[name + 1 :]), kwargs
        return args, {**kwargs, str(name): changed}

    def copy(self, site: str, tensor: Tensor) -> Tensor:
        """Return a copy in stored form, which later steps of the model cannot change."""
        if not tensor.is_floating_point() or not site.endswith(ATTENTION_SUFFIXES):
            return tensor.clone()
        if self.dtype == torch.uint8:
            packed = site.endswith(WEIGHT_SUFFIXES) and is_quantizable(tensor)
            return quantize(tensor) if packed else tensor.to(torch.float32, copy=True)
        return tensor.to(self.dtype, copy=True)


def _zero_masked_weights(site: str, tensor: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Return weights with four axes and zeros in fully masked rows, where a softmax gives equal weights or NaN."""
    if site.endswith(WEIGHT_SUFFIXES):
        tensor = as_4d(tensor)
        if allowed is not None and allowed.numel():
            blind = ~allowed.any(-1, keepdim=True)
            tensor = tensor.masked_fill(blind, 0) if may_be_true(blind) else tensor
    return tensor.detach(), allowed
