"""Edits of activations for `capture(edit=)`: module outputs and inputs, `.output_heads`, `.query`, `.key`, `.value`.

Activations are [batch, position, dim], or [batch, head, position, dim] at sites with a head axis. An edit changes the
selected heads and positions and leaves the others unchanged. Positions are counted within one call of the model and
include padding: in a batch that is padded on the right, the last token of each text is at `attention_mask.sum(-1) - 1`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tfviz import checks
from tfviz.look.edit_indices import HeadIndices, PositionIndices, as_list, axis_index, in_each_text
from tfviz.look.recorder import ATTENTION_SUFFIXES
from tfviz.shapes import Float

STEPS_WARNING = (
    "the model computes one position at a time, as in generation with a cache, where each has index 0, so positions= "
    "cannot tell them apart; leave positions out, or generate with use_cache=False"
)
EDITS_OF_PATTERNS = ("zero", "mean", "paste")  # whose positions select queries


@dataclass(eq=False)
class ActivationEdit:
    """Edit that replaces the selected part of an activation.

    Attributes:
        replace: function of the activation and the index of the selection, which returns the new values of the
            selection.
        head: index of a head or of several, counted from 0, or from the end with -1; None: all.
        positions: indices of positions, counted from 0, or from the end with -1; a tensor [batch]: one position in each
            text; None: all.
        name: the name of the edit, for messages.
    """

    replace: Callable[[Tensor, tuple[Any, ...]], Tensor]
    head: HeadIndices
    positions: PositionIndices
    name: str
    longest: int = field(default=0, init=False)  # largest number of positions in a call so far

    def __post_init__(self) -> None:
        for axis, numbers in (("head", self.head), ("position", self.positions)):
            as_list(axis, () if numbers is None or isinstance(numbers, Tensor) else numbers)

    def __call__(self, tensor: Tensor, site: str = "activation") -> Tensor:
        kind = site.rpartition(".")[2]
        if kind in ATTENTION_SUFFIXES and (kind != "pattern" or self.name not in EDITS_OF_PATTERNS):
            raise ValueError(
                f"{site}: edits.{self.name} changes activations; name a module, its .input or its .output_heads"
            )
        index = self._index(tensor, site)
        edited = tensor.clone()
        edited[index] = self.replace(tensor, index).to(tensor.dtype)
        return edited

    def _index(self, tensor: Tensor, site: str) -> tuple[Any, ...]:
        """Return the index of the selected part; indexing with it keeps all axes."""
        if not tensor.is_floating_point() or tensor.dim() not in (3, 4):
            raise ValueError(
                f"{site} is {tensor.dtype} {list(tensor.shape)}; edits.{self.name} takes floats, [batch, position, "
                "dim] or [batch, head, position, dim]"
            )
        if self.head is not None and tensor.dim() == 3:
            raise ValueError(
                f"{site} is {list(tensor.shape)}, without heads; name an attention's .output_heads, or leave head out"
            )
        heads = () if tensor.dim() == 3 else (axis_index("head", self.head, tensor.shape[1]),)
        self._warn_of_steps(tensor.shape[-2])
        if isinstance(self.positions, Tensor) and self.positions.dim():
            return in_each_text(self.positions, tensor, *heads)
        positions = int(self.positions) if isinstance(self.positions, Tensor) else self.positions
        where = axis_index("position", positions, tensor.shape[-2])
        if isinstance(where, Tensor) and heads and isinstance(heads[0], Tensor):
            return slice(None), heads[0][:, None], where
        return slice(None), *heads, where

    def _warn_of_steps(self, count: int) -> None:
        """Warn if positions arrive one by one, as in generation with a cache, where each has the index 0."""
        if self.positions is not None and count == 1 and self.longest > 1:
            warnings.warn(STEPS_WARNING, stacklevel=2)
        self.longest = max(self.longest, count)


def zero_activations(head: HeadIndices = None, positions: PositionIndices = None) -> ActivationEdit:
    """Return an edit that sets activations to zero; of a pattern, `positions` selects the rows of these queries."""
    return ActivationEdit(lambda tensor, index: torch.zeros_like(tensor[index]), head, positions, "zero")


def add(
    vector: Float[Tensor, "*lead dim"], head: HeadIndices = None, positions: PositionIndices = None
) -> ActivationEdit:
    """Return an edit that adds a vector to activations, as in activation steering (Turner et al. 2023).

    Args:
        vector: broadcast to the selected part, [batch, (head,) position, dim]; one vector for each text is
            [batch, 1, dim].
        head: the head or heads to edit; None: all.
        positions: the positions to edit; a tensor [batch]: one position in each text; None: all.

    >>> add(torch.ones(2), positions=-1)(torch.zeros(1, 3, 2))[0, :, 0]
    tensor([0., 0., 1.])
    """
    checks.finite(vector=vector)

    def added(tensor: Tensor, index: tuple[Any, ...]) -> Tensor:
        return tensor[index] + _broadcast(vector, tensor[index], "add")

    return ActivationEdit(added, head, positions, "add")


def paste(
    source: Float[Tensor, "*lead dim"], head: HeadIndices = None, positions: PositionIndices = None
) -> ActivationEdit:
    """Return an edit that replaces activations with those of another run (activation patching).

    At a `.pattern` site it replaces attention weights, [batch, head, query, key]; `positions` then selects queries.

    Args:
        source: the tensor that a capture of the other run recorded at this site; the same heads and positions are
            copied from it. A vector [dim], such as the mean over a data set, is copied to every selected position; a
            tensor [batch, 1, dim] gives each text a vector of its own.
        head: the head or heads to edit; None: all.
        positions: the positions to edit; a tensor [batch]: one position in each text; None: all.

    >>> paste(torch.ones(1, 3, 2), positions=[0, 2])(torch.zeros(1, 3, 2))[0, :, 0]
    tensor([1., 0., 1.])
    """
    checks.finite(source=source)

    def pasted(tensor: Tensor, index: tuple[Any, ...]) -> Tensor:
        return _broadcast(source, tensor, "paste")[index]

    return ActivationEdit(pasted, head, positions, "paste")


def mean(head: HeadIndices = None, positions: PositionIndices = None) -> ActivationEdit:
    """Return an edit that replaces activations with their mean over the batch (mean ablation).

    The mean is computed separately at each position. To use the mean over a data set, `paste` it. The edit raises
    ValueError for a batch of one text, which is its own mean.

    >>> mean()(torch.tensor([[[0.0, 2.0]], [[4.0, 2.0]]]))[0]
    tensor([[2., 2.]])
    """

    def averaged(tensor: Tensor, index: tuple[Any, ...]) -> Tensor:
        if len(tensor) == 1:
            raise ValueError(
                "the batch has one text, whose mean is itself, so nothing would change; give several texts, or paste "
                "the mean over a data set, as study.mean_activations gives it"
            )
        return tensor[index].float().mean(0, keepdim=True).expand(tensor[index].shape)

    return ActivationEdit(averaged, head, positions, "mean")


def noise(std: float, seed: int = 0, head: HeadIndices = None, positions: PositionIndices = None) -> ActivationEdit:
    """Return an edit that adds Gaussian noise, as in causal tracing (Meng et al. 2022, section 2.1).

    Every call draws the same noise.

    Args:
        std: standard deviation, in units of the activation; Meng et al. use 3 times that of the embeddings.
        seed: the seed of the noise.
        head: the head or heads to edit; None: all.
        positions: the positions to edit; a tensor [batch]: one position in each text; None: all.
    """
    checks.at_least(0, std=std)
    checks.seed(seed)

    def noisy(tensor: Tensor, index: tuple[Any, ...]) -> Tensor:
        part = tensor[index]
        drawn = torch.randn(part.shape, generator=torch.Generator().manual_seed(seed))
        return part + std * drawn.to(part)

    return ActivationEdit(noisy, head, positions, "noise")


def _broadcast(tensor: Tensor, like: Tensor, name: str) -> Tensor:
    """Expand a tensor to the shape of `like`, in its dtype and on its device.

    Raises:
        ValueError: the shape does not fit, or fits in two ways.
    """
    check_unambiguous_broadcast(f"edits.{name}", tensor, like)
    try:
        return tensor.to(like).expand(like.shape)
    except RuntimeError as error:
        each = _with_axes(tensor, like, 0) if 1 < tensor.dim() < like.dim() and len(tensor) == len(like) else None
        raise ValueError(
            f"edits.{name}: {list(tensor.shape)} does not fit {list(like.shape)}; give this shape, or one that "
            f"broadcasts to it, such as a vector of the last axis{f'; one for each text is {each}' if each else ''}"
        ) from error


def check_unambiguous_broadcast(name: str, tensor: Tensor, like: Tensor) -> None:
    """Raise ValueError if a tensor with fewer axes than `like` could be broadcast to it in two ways.

    For example, `captured[site][:, 3]` is [batch, dim], but would be broadcast as [position, dim] if both sizes are
    equal.
    """
    batch_axis = like.dim() - tensor.dim()  # where broadcasting puts its first axis
    if tensor.dim() < 2 or batch_axis < 1 or len(tensor) == 1 or len(tensor) != like.shape[batch_axis]:
        return
    other = next((axis for axis in range(batch_axis) if like.shape[axis] == len(tensor)), None)
    if other is not None:
        names = ("text", "position", "dim") if like.dim() == 3 else ("text", "head", "position", "dim")
        raise ValueError(
            f"{name}: {list(tensor.shape)} is ambiguous, one for each {names[other]} or one for each "
            f"{names[batch_axis]}: give {_with_axes(tensor, like, other)} or {_with_axes(tensor, like, batch_axis)}"
        )


def _with_axes(tensor: Tensor, like: Tensor, first: int) -> list[int]:
    """Return the shape of a tensor that gets as many axes as `like`, with its first axis at the index `first`."""
    shape = [1] * (like.dim() - tensor.dim() + 1) + list(tensor.shape[1:])
    shape[first] = len(tensor)
    return shape
