"""Sites whose activations are patched or averaged: their checks, sizes, and labels in a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from tfviz.look.capture_result import Capture
from tfviz.look.recorder import ATTENTION_SUFFIXES

SITE_SUFFIXES = (
    *("output_heads", "input", "query", "key", "value", "query_heads", "key_heads", "value_heads"),
    *("pattern", "scores"),
)
LAYER_NUMBER = re.compile(r"\d+")


class ActivationSite(NamedTuple):
    """The sizes of a site [batch, position, dim] or [batch, head, position, dim], or pattern [batch, head, query, key].

    Attributes:
        name: the name of the site.
        heads: the number of heads; None if there is no axis of heads.
        positions: the number of positions; of a pattern, the number of queries.
    """

    name: str
    heads: int | None
    positions: int


def activation_sites(activations: Mapping[str, Tensor], batch: int) -> list[ActivationSite]:
    """Return the sizes of captured activations or patterns.

    Args:
        activations: site -> activation.
        batch: the number of texts.

    Raises:
        ValueError: a tensor is neither an activation nor a pattern; the sites have different sizes.
    """
    sites = []
    for name, tensor in activations.items():
        check_activation(name, tensor, batch, with_patterns=True)
        sites.append(ActivationSite(name, tensor.shape[1] if tensor.dim() == 4 else None, tensor.shape[-2]))
    if len({site[1:] for site in sites}) > 1:
        sizes = ", ".join(f"{name} ({heads or 'no'} heads, {count} positions)" for name, heads, count in sites[:6])
        raise ValueError(f"the sites differ in size: {sizes}; call it separately for each size")
    return sites


def check_activation(name: str, tensor: Tensor, batch: int, with_patterns: bool = False) -> None:
    """Raise ValueError unless a site's tensor is an activation, or with `with_patterns` a pattern, of the batch."""
    kind = name.rpartition(".")[2]
    is_weights = kind in ATTENTION_SUFFIXES and not (with_patterns and kind == "pattern")
    if is_weights or not tensor.is_floating_point() or tensor.dim() not in (3, 4) or tensor.shape[0] != batch:
        raise ValueError(
            f"{name} is {list(tensor.shape)}, {tensor.dtype}; name sites of activations, [batch, position, dim] or "
            f"[batch, head, position, dim]: modules, their .input, or .output_heads{' or .pattern' * with_patterns}"
        )


def head_count(counts: Iterable[int]) -> int:
    """Return the number of heads of each layer, which must be the same in all layers.

    Raises:
        ValueError: the layers have different numbers of heads.
    """
    heads = set(counts)
    if len(heads) > 1:
        raise ValueError(f"layers have {sorted(heads)} heads; name sites of equally many")
    return heads.pop()


def single_invocations(captured: Capture) -> dict[str, Tensor]:
    """Return the captured tensors as a dictionary, after checking that each site has one invocation.

    Raises:
        ValueError: a site has several invocations, as in a block that the model calls again.
    """
    times = {site: len(captured.stored(site)) for site in captured}
    site = next((site for site, count in times.items() if count > 1), None)
    if site is not None:
        raise ValueError(
            f"{site} is computed {times[site]} times in one run, by a module that the model calls again; only what is "
            "computed once can be replaced"
        )
    return dict(captured)


def module_path(site: str) -> str:
    """Return the path of the module that a site belongs to."""
    path, _, last = site.rpartition(".")
    return path if last in SITE_SUFFIXES else site


def site_axis(sites: Sequence[str]) -> tuple[str, list[str]]:
    """Return the name and the labels of an axis of sites: "layer" and numbers if the sites differ only in the layer.

    >>> site_axis(["h.0.attn.output_heads", "h.1.attn.output_heads"])
    ('layer', ['0', '1'])
    >>> site_axis(["h.0.attn", "h.0.mlp"])
    ('site', ['h.0.attn', 'h.0.mlp'])
    """
    patterns = {LAYER_NUMBER.sub("#", site, count=1) for site in sites}
    if len(patterns) == 1 and "#" in next(iter(patterns)):
        return "layer", [LAYER_NUMBER.search(site)[0] for site in sites]  # type: ignore[index]
    return "site", list(sites)
