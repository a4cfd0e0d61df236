"""How dotted paths of modules and sites lie in one another."""

from __future__ import annotations


def is_within(path: str, outer: str) -> bool:
    """Return whether a path is a module's own, or lies inside it; inside the model, "", lie all.

    >>> is_within("layers.1.pattern", "layers.1"), is_within("layers.10.pattern", "layers.1")
    (True, False)
    """
    return not outer or path == outer or path.startswith(f"{outer}.")
