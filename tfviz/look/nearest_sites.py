"""The error message for an unknown site, with the most similar sites of the same kind."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches

MAX_SITES_LISTED = 40
MAX_NEAREST = 6
TRANSFORMER_LENS = {  # names of its hooks -> ours, for a block and its attention
    "resid_pre": "BLOCK.input",
    "resid_mid": "the input of the block's second norm",
    "resid_post": "BLOCK",
    "attn_out": "ATTENTION",
    "q": "ATTENTION.query",
    "k": "ATTENTION.key",
    "v": "ATTENTION.value",
    "z": "ATTENTION.output_heads",
    "attn_scores": "ATTENTION.scores",
}
FUSED_SITES = ("query", "key", "value", "query_heads", "key_heads", "value_heads")  # arguments of a fused kernel


def no_site(glob: str, sites: Sequence[str], inputs: Sequence[str] = ()) -> str:
    """Return an error message that names the available sites of the kind that was probably meant.

    Args:
        glob: the glob that matched nothing.
        sites: the sites that were computed, or were captured.
        inputs: the sites of the inputs of modules, which are recorded only if they are named.
    """
    if not sites:
        return f"there is no site {glob!r} yet: the model has not been called inside the `with` block"
    last, everything = _last(glob), [*sites, *inputs]
    kinds = {_last(site) for site in everything}
    if last in FUSED_SITES and last not in kinds and "pattern" in kinds:
        return (
            f"no site matches {glob!r}: queries, keys and values are captured from the arguments of a fused kernel, "
            "which this attention does not call; load a Hugging Face model with attn_implementation='sdpa', or name "
            "the modules that project them"
        )
    hook = last.removeprefix("hook_")
    if hook in TRANSFORMER_LENS and hook not in kinds:
        return (
            f"no site matches {glob!r}; hook_{hook} of TransformerLens is {TRANSFORMER_LENS[hook]} here, with paths of "
            "the model's own modules, such as look.blocks(model) lists"
        )
    near = get_close_matches(last, sorted(kinds), n=1)
    listed = [site for site in everything if _last(site) in near] or list(sites)
    matcher = SequenceMatcher(b=glob, autojunk=False)

    def likeness(site: str) -> float:
        matcher.set_seq1(site)
        return matcher.ratio()

    ranked = sorted(listed, key=likeness, reverse=True)
    nearest = ", ".join(ranked[:MAX_NEAREST])
    kind = f" that end{'s' if len(ranked) == 1 else ''} in .{near[0]}" if near else ""
    if len(ranked) > MAX_NEAREST:
        return f"no site matches {glob!r}; of the {len(ranked)} of this model{kind}, the nearest are: {nearest}"
    return f"no site matches {glob!r}; this model has {len(ranked)}{kind}: {nearest}"


def _last(site: str) -> str:
    return site.rpartition(".")[2]
