"""A tensor as a function of the reader's changes it: the one rule of captures and of programs."""

from collections.abc import Callable
from functools import lru_cache
from inspect import signature
from typing import Any

from torch import Tensor

TAKES = "it must take a tensor, or a tensor and the site's name"
Edit = Callable[..., Tensor]


def edited(site: str, tensor: Tensor, function: Edit) -> Tensor:
    """What an edit makes of a tensor, in the tensor's own type.

    Raises:
        TypeError: it takes something else.
        ValueError: it gives another shape, another device, or floats for whole numbers.
    """
    made = function(tensor, site) if takes_site(function) else function(tensor)
    if not isinstance(made, Tensor) or made.shape != tensor.shape:
        given = f"shape {list(made.shape)}" if isinstance(made, Tensor) else type(made).__name__
        raise ValueError(f"the edit of {site} returned {given}; it must return a tensor of shape {list(tensor.shape)}")
    if made.device != tensor.device:
        raise ValueError(f"the edit of {site} returned a tensor on {made.device}; it must stay on {tensor.device}")
    if made.dtype != tensor.dtype and not (made.is_floating_point() and tensor.is_floating_point()):
        raise ValueError(f"the edit of {site} returned {made.dtype}; it must return a tensor of {tensor.dtype}")
    return made.to(tensor.dtype)


@lru_cache(maxsize=2**10)
def takes_site(function: Callable[..., Any]) -> bool:
    """Whether an edit wants the site's name, too.

    Raises:
        TypeError: it cannot be called with a tensor, nor with a tensor and a name.
    """
    try:
        given = signature(function).parameters.values()
    except ValueError:  # some that are built in tell nothing
        return False
    named = str(getattr(function, "__name__", type(function).__name__))
    places = [one for one in given if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD, one.VAR_POSITIONAL)]
    if not places:
        raise TypeError(f"the edit {named} takes nothing; {TAKES}")
    needed = [one for one in places if one.default is one.empty and one.kind is not one.VAR_POSITIONAL]
    if len(needed) > 2:
        raise TypeError(f"the edit {named} takes {len(needed)}; {TAKES}")
    return len(needed) == 2
