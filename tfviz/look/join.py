"""From what a capture holds to what maps are made of: one row of the batch, firings one under the other."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate, pairwise

import torch
from torch import Tensor
from torch.nn import functional

from tfviz.look.call import Call
from tfviz.look.ingredients import Ingredients
from tfviz.look.kept import unpack
from tfviz.look.recompute import pattern
from tfviz.look.sites import MAPS
from tfviz.shapes import Bool, Float, UInt8

Firing = tuple[Tensor, Tensor | None]  # a pattern, batch head query key, and where its queries might look
Kept = tuple[Tensor | Call, Tensor | None]  # the same, or what it is made of
Map = Float[Tensor, "head query key"] | UInt8[Tensor, "head query key"]
Layer = Tensor | Ingredients


def patterns(seen: Iterable[str], sites: str) -> list[str]:
    """Those of the captured sites that are patterns and match a glob.

    Raises:
        LookupError: there is none.
    """
    chosen = [site for site in seen if site.rpartition(".")[2] in MAPS and fnmatchcase(site, sites)]
    if not chosen:
        meant = "" if sites == "*" else f" of {sites!r}"
        raise LookupError(f"no pattern{meant} was captured, only: {', '.join(seen) or 'nothing'}")
    return chosen


def chosen(every: Mapping[str, Sequence[Kept]], firings: str | None) -> dict[str, Sequence[Kept]]:
    """Of each site one firing, the last, or all as layers of their own; see `AttentionMaps.of`."""
    several = {site: len(some) for site, some in every.items() if len(some) > 1}
    if firings == "layers":
        return {
            f"{site}, {number} of {len(some)}" if len(some) > 1 else site: [one]
            for site, some in every.items()
            for number, one in enumerate(some, 1)
        }
    if several and firings is None:
        site, count = next(iter(several.items()))
        more = f", and {len(several) - 1} more did so" if len(several) > 1 else ""
        warnings.warn(
            f"{site} fired {count} times, the last is shown{more}: firings='layers' shows each, firings='last' is this "
            "without a warning, and AttentionMaps.over_time joins those of a text written word by word",
            stacklevel=4,
        )
    return {site: some[-1:] for site, some in every.items()}


def layers(firings: Mapping[str, Sequence[Kept]], batch: int) -> tuple[list[Layer], Tensor | None]:
    """The weights of each site, head query key, and a mask that fits them all; None if nothing was forbidden.

    Raises:
        ValueError: no such row; sites, or the firings of one, that do not fit together.
    """
    size = next(iter(firings.values()))[0][0].shape[0]
    if not -size <= batch < size:
        raise ValueError(f"batch is {batch}; the capture holds a batch of {size}")
    joined = {site: _join(site, some, batch) for site, some in firings.items()}
    shapes = {tuple(weights.shape): site for site, (weights, _) in joined.items()}
    if len(shapes) > 1:
        raise ValueError(
            "the patterns have several shapes (head query key): look.groups(seen) has those that are alike together, "
            "sites= chooses some: " + ", ".join(f"{site} {shape}" for shape, site in shapes.items())
        )
    weights = [weights for weights, _ in joined.values()]
    if all(allowed is None for _, allowed in joined.values()):
        return weights, None
    masks = [_everywhere(weights[0]) if allowed is None else allowed for _, allowed in joined.values()]
    if all(torch.equal(mask, masks[0]) for mask in masks):
        return weights, masks[0][None]
    return weights, torch.stack([mask.expand(weights[0].shape) for mask in masks])


def _join(site: str, kept: Sequence[Kept], batch: int) -> tuple[Layer, Bool[Tensor, "#head query key"] | None]:
    """One map of all firings; cells of keys that a firing had not yet, or no more, are 0 and forbidden."""
    if len(kept) == 1 and isinstance(only := kept[0][0], Call):
        return Ingredients.of(only, batch), None
    firings = [
        (pattern(made, torch.float32), made.allowed()) if isinstance(made, Call) else (made, allowed)
        for made, allowed in kept
    ]
    firings = firings[_begins(site, [tuple(pattern.shape) for pattern, _ in firings]) :]
    first, keys = _offsets(site, firings)
    weights = [_widened(pattern[batch], keys, at) for at, (pattern, _) in zip(first, firings)]
    same = all(pattern.shape[3] == keys for pattern, _ in firings)
    if same and all(allowed is None for _, allowed in firings):
        return _stacked(weights), None
    masks = [
        _everywhere(pattern[batch]) if allowed is None else allowed[batch if len(allowed) > 1 else 0].cpu()
        for pattern, allowed in firings
    ]
    heads = max(map(len, masks))
    return _stacked(weights), _stacked(
        [_widened(mask.expand(heads, -1, -1), keys, at) for at, mask in zip(first, masks)]
    )


def _begins(site: str, shapes: Sequence[tuple[int, ...]]) -> int:
    """The first firing of the last reading: one that has a query for each of more keys reads the whole text again.

    Raises:
        ValueError: the same text was read again: these are no steps in time.
    """
    begins = 0
    for number, ((_, _, _, before), (_, _, queries, keys)) in enumerate(pairwise(shapes), 1):
        if queries == keys > before:
            begins = number
        elif queries == keys == before > 1:
            raise _again(site, len(shapes), keys)
    return begins


def _offsets(site: str, firings: Sequence[Firing]) -> tuple[list[int], int]:
    """The place of each firing's first key, and how many keys there are in all.

    A cache with a sliding window has dropped those before; one of fixed size has room for more.

    Raises:
        ValueError: they cannot stand one under the other.
    """
    shapes = [tuple(pattern.shape) for pattern, _ in firings]
    _, _, queries, keys = shapes[0]
    mask = firings[0][1]
    causal = queries > 1 and mask is not None and not mask.triu(1).any()
    own = causal or (queries == keys and len({shape[3] for shape in shapes}) > 1)  # a text that looks at itself
    if own and len(shapes) > 1 and len({shape[:2] for shape in shapes}) == 1:
        read = list(accumulate(shape[2] for shape in shapes))
        first = [max(0, count - shape[3]) for count, shape in zip(read, shapes)]
        for (_, allowed), count, at in zip(firings, read, first):
            places = [] if allowed is None else allowed[..., -1, :].nonzero()[:, -1].tolist()
            if places and at + max(places) != count - 1:  # the last word sees itself, and no word after it
                raise _again(site, len(shapes), keys)
        return first, read[-1]
    for before, after in pairwise(shapes):
        if before[:2] != after[:2] or before[3] > after[3]:
            raise ValueError(
                f"{site} fired with the shape {before} and then {after}; firings stand one under the other where batch "
                "and heads stay and keys only grow: capture one pass of the model, or a text within its context"
            )
    return [0] * len(shapes), shapes[-1][3]


def _again(site: str, count: int, keys: int) -> ValueError:
    return ValueError(
        f"{site} fired {count} times, more than once on the same {keys} keys: these are no steps in time; "
        "AttentionMaps.of(seen, firings='layers') shows each"
    )


def _everywhere(weights: Layer) -> Bool[Tensor, "1 query key"]:
    return torch.ones(1, *weights.shape[1:], dtype=torch.bool)


def _widened(tensor: Tensor, keys: int, first: int = 0) -> Tensor:
    """With zeros before and after, or without the room that no text has filled."""
    tensor = tensor[..., : keys - first]
    missing = keys - tensor.shape[-1]
    return functional.pad(tensor, (first, missing - first)) if missing else tensor


def _stacked(parts: Sequence[Tensor]) -> Tensor:
    if len(parts) == 1:  # which is not copied
        return parts[0]
    alike = len({part.dtype for part in parts}) == 1  # what no byte can say is kept in float32
    return torch.cat([part if alike else unpack(part) for part in parts], dim=1)
