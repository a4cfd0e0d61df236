"""The message for a site that is not there, with those of its kind that are nearest to it."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches

MAX_SITES_LISTED = 40
MAX_NEAREST = 6
FUSED_SITES = ("query", "key", "value", "query_heads", "key_heads", "value_heads")  # arguments of a fused kernel


def no_site(glob: str, sites: Sequence[str], inputs: Sequence[str] = ()) -> str:
    """Return an error message that names the available sites of the kind that was probably meant.

    Args:
        glob: it matched nothing.
        sites: those that fired, or were captured.
        inputs: the sites of the inputs of modules, which fire only if they are named.
    """
    if not sites:
        return f"there is no site {glob!r} yet: the model has not been called inside the with"
    last, everything = _last(glob), [*sites, *inputs]
    kinds = {_last(site) for site in everything}
    if last in FUSED_SITES and last not in kinds and "pattern" in kinds:
        return (
            f"no site matches {glob!r}: attention was computed without a fused kernel, whose arguments queries, keys "
            "and values are; load a model of Hugging Face with attn_implementation='sdpa', or name the modules that "
            "project them"
        )
    near = get_close_matches(last, sorted(kinds), n=1)
    listed = [site for site in everything if _last(site) in near] or list(sites)
    matcher = SequenceMatcher(b=glob, autojunk=False)

    def likeness(site: str) -> float:
        matcher.set_seq1(site)
        return matcher.ratio()

    ranked = sorted(listed, key=likeness, reverse=True)
    if len(ranked) <= MAX_NEAREST:
        return f"no site matches {glob!r}; this model has {len(ranked)}: {', '.join(ranked)}"
    nearest = ", ".join(ranked[:MAX_NEAREST])
    kind = f" that end in .{near[0]}" if near else ""
    return f"no site matches {glob!r}; of the {len(ranked)} of this model{kind}, the nearest are: {nearest}"


def _last(site: str) -> str:
    return site.rpartition(".")[2]
