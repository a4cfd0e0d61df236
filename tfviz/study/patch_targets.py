"""`PatchTargets`: the heads, positions, or heads at positions that a sweep patches one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from torch import Tensor

from tfviz.look.edit_indices import HeadIndices, as_list
from tfviz.look.recorder import matches
from tfviz.study.sites import ActivationSite

Each = Literal["head", "position", "head and position"]
PatchTarget = tuple[int | None, int | None]  # head and position; None: all chosen ones
Sites = str | Sequence[str] | Mapping[str, HeadIndices]  # globs, or glob -> one or several heads; None: all heads
HeadSelection = dict[str, list[int] | None]  # glob or site -> heads; None: all heads


def parse_head_selection(name: str, sites: Sites) -> HeadSelection:
    """Return glob -> its heads, or None for all heads.

    Args:
        name: the name of the argument, for messages.
        sites: globs, or glob -> one or several heads.

    Raises:
        ValueError: `sites` is empty, or the heads of a glob are; a head is not an integer.
    """
    if not sites:
        raise ValueError(f"{name} is empty; name sites, such as '*.output_heads'")
    if not isinstance(sites, Mapping):
        return dict.fromkeys([sites] if isinstance(sites, str) else sites)
    heads = {glob: None if some is None else as_list("head", some) for glob, some in sites.items()}
    without = next((glob for glob, some in heads.items() if some == []), None)
    if without is not None:
        raise ValueError(f"{name} names no head of {without}; give one or several, or None for all")
    return heads


def heads_at(site: str, heads_by_glob: HeadSelection) -> list[int] | None:
    """Return the heads that are chosen by the first glob that matches a site; None: all heads."""
    return next(heads for glob, heads in heads_by_glob.items() if matches(site, glob))


def check_heads(site: str, heads: list[int] | None, activation: Tensor) -> None:
    """Raise ValueError unless a site's activation has these heads."""
    if heads is None:
        return
    if activation.dim() != 4:
        raise ValueError(f"{site} is {list(activation.shape)}, without heads; name its site alone")
    for head in heads:
        if not 0 <= head < activation.shape[1]:
            raise ValueError(f"{site} has no head {head}; it has {activation.shape[1]}, counted from 0")


@dataclass(frozen=True)
class PatchTargets:
    """The units that are patched one at a time in each site; all sites have the same size.

    Attributes:
        site: one of the sites, for its size.
        each: the unit that is patched: "head", "position" or "head and position".
        positions: the positions that are patched, counted from 0.
    """

    site: ActivationSite
    each: Each
    positions: list[int]

    @classmethod
    def from_site(cls, site: ActivationSite, each: Each | None, positions: Sequence[int] | None) -> PatchTargets:
        """Return the targets for `each` and `positions` as a user gives them.

        Args:
            site: one of the sites.
            each: the unit; None: "head" for sites with heads, else "position".
            positions: the positions, which may count from the end; None: all.

        Raises:
            ValueError: `each` has heads, and the site has none; `positions` is empty or out of range.
        """
        each = each or ("position" if site.heads is None else "head")
        if site.heads is None and each != "position":
            raise ValueError(f"each is {each!r}, and {site.name} has no heads; name '*.output_heads'")
        if positions is None:
            return cls(site, each, list(range(site.positions)))
        if not len(positions):
            raise ValueError("positions is empty; name some, such as [-1], or give None for all")
        outside = next((at for at in positions if not -site.positions <= at < site.positions), None)
        if outside is not None:
            raise ValueError(f"there is no position {outside}; {site.name} has {site.positions}, counted from 0")
        return cls(site, each, list(dict.fromkeys(int(at) % site.positions for at in positions)))

    def among(self, chosen: Sequence[list[int] | None]) -> list[PatchTarget]:
        """Return the targets: the product of the heads chosen in any site, and the positions.

        Args:
            chosen: the heads that are chosen in each site; None: all heads.

        Raises:
            ValueError: heads are chosen, and `each` is "position".
        """
        if self.each == "position" and any(heads is not None for heads in chosen):
            raise ValueError("each is 'position', and heads are named: take 'head', or 'head and position'")
        heads: list[int | None] = [None]
        if self.each != "position" and self.site.heads is not None:
            known = {head for some in chosen for head in some or ()}
            heads = [head for head in range(self.site.heads) if None in chosen or head in known]
        return list(product(heads, [None] if self.each == "head" else self.positions))

    def index(self, target: PatchTarget) -> tuple[Any, ...]:
        """Return the index of a target in an activation [batch, (head,) position, dim]."""
        head, position = target
        are_all = len(self.positions) == self.site.positions
        at = position if position is not None else slice(None) if are_all else self.positions
        if self.site.heads is None:
            return slice(None), at
        return slice(None), slice(None) if head is None else head, at

    def axes(self, targets: Sequence[PatchTarget], tokens: Sequence[str] | None) -> dict[str, list[str]]:
        """Return the axes of a table of these targets, name -> labels.

        Args:
            targets: the targets.
            tokens: labels of all positions or of those that are patched; None: their numbers.

        Raises:
            ValueError: the number of tokens is neither that of all positions nor that of the patched ones.
        """
        heads, positions = ([*dict.fromkeys(part)] for part in zip(*targets))
        axes = {} if None in heads else {"head": [str(head) for head in heads]}
        if None in positions:
            return axes
        if tokens is None:
            return axes | {"position": [str(position) for position in positions]}
        if len(tokens) not in (len(positions), self.site.positions):
            raise ValueError(
                f"there are {len(tokens)} tokens and {len(positions)} positions; give one token for each"
                + (f" ({self.site.name} is computed at the last position only)" if self.site.positions == 1 else "")
            )
        chosen = tokens if len(tokens) == len(positions) else [tokens[position] for position in positions]
        return axes | {"position": list(chosen)}
