"""The edits of one capture: which functions change the tensor at a site, and where that would go wrong."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

from torch import Tensor

from tfviz.editing import Edit, apply_edit
from tfviz.look.context import in_checkpoint, untraced


@lru_cache(maxsize=2**14)
def matches(site: str, glob: str) -> bool:
    """Return whether a glob means a site; `*.pattern` also means the `pattern` of a model that is itself attention."""
    return fnmatchcase(site, glob) or fnmatchcase(f".{site}", glob)


class Editor:
    """Applies the edits of a capture.

    Args:
        edits: site or glob -> function.
    """

    def __init__(self, edits: Mapping[str, Edit]) -> None:
        self.edits = edits

    def of(self, site: str) -> list[Edit]:
        """Return the functions that edit a site, in order."""
        return [function for glob, function in self.edits.items() if matches(site, glob)]

    def apply(self, site: str, tensor: Tensor) -> Tensor:
        """Return the tensor that flows on from a site.

        Raises:
            ValueError: the site runs under gradient checkpointing, or an edit of weights is applied to something else.
        """
        for function in self.of(site):
            if in_checkpoint():
                raise ValueError(
                    f"{site} lies in a part that the backward pass computes again (gradient checkpointing), where its "
                    "edit would come twice or not at all, and gradients would be wrong: turn checkpointing off"
                )
            if getattr(function, "of_weights", False) and not site.endswith("pattern"):
                raise ValueError(f"{site}: look.edits change weights; name a site that ends in .pattern")
            with untraced():
                tensor = apply_edit(site, tensor, function)
        return tensor
