"""Comparison of dotted paths: whether a module or a site lies inside another module."""

from __future__ import annotations


def is_within(path: str, outer: str) -> bool:
    """Return whether a path equals `outer` or lies inside it; all paths lie inside the model, "".

    >>> is_within("layers.1.pattern", "layers.1"), is_within("layers.10.pattern", "layers.1")
    (True, False)
    """
    return not outer or path == outer or path.startswith(f"{outer}.")
