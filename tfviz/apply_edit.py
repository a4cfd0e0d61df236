"""`apply_edit`: apply a user's edit function to a tensor, for captures and for exported programs."""

from collections.abc import Callable
from functools import lru_cache
from inspect import signature
from typing import Any

from torch import Tensor

Edit = Callable[..., Tensor]


def apply_edit(site: str, tensor: Tensor, function: Edit) -> Tensor:
    """Return the result of an edit of the tensor at a site, in the tensor's dtype.

    Args:
        site: the name of the site.
        tensor: the tensor at the site.
        function: a function of (tensor) or (tensor, site) that returns a tensor of the same shape, on the same device.

    Raises:
        TypeError: the function takes other arguments.
        ValueError: the function returns another shape, another device, or another dtype where one is not floating
            point.
    """
    output = function(tensor, site) if takes_site(function) else function(tensor)
    if not isinstance(output, Tensor) or output.shape != tensor.shape:
        returned = f"shape {list(output.shape)}" if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(
            f"the edit of {site} returned {returned}; it must return a tensor of shape {list(tensor.shape)}"
        )
    if output.device != tensor.device:
        raise ValueError(f"the edit of {site} returned a tensor on {output.device}; it must stay on {tensor.device}")
    if output.dtype != tensor.dtype and not (output.is_floating_point() and tensor.is_floating_point()):
        raise ValueError(f"the edit of {site} returned {output.dtype}; it must return a tensor of {tensor.dtype}")
    return output.to(tensor.dtype)


@lru_cache(maxsize=2**10)
def takes_site(function: Callable[..., Any]) -> bool:
    """Return whether an edit takes (tensor, site): it requires two arguments, or names its second one `site`.

    Raises:
        TypeError: the function takes neither (tensor) nor (tensor, site).
    """
    try:
        parameters = signature(function).parameters.values()
    except ValueError:  # some built-in functions have no signature
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    required = [p for p in positional if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    if not positional or len(required) > 2:
        name = getattr(function, "__name__", type(function).__name__)
        raise TypeError(
            f"the edit {name} takes {len(required)} arguments; it must take a tensor, or a tensor and a site"
        )
    return len(required) == 2 or [p.name for p in positional[1:2]] == ["site"]
