"""`did_you_mean`: suggest a similar name in an error message about an unknown name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return the end of an error message that suggests the most similar of `names`, or "" if none is similar.

    >>> did_you_mean("drak", ["light", "dark"]), did_you_mean("gpt", ["11_bert", "12_gpt"]), did_you_mean("x", ["yz"])
    ("; did you mean 'dark'?", "; did you mean '12_gpt'?", '')
    """
    names, wanted = list(names), str(name).casefold()
    within = [each for each in names if len(wanted) > 2 and wanted in each.casefold()]
    near = within[:1] or get_close_matches(wanted, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
