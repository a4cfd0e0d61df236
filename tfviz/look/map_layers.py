"""The layers of maps, made of the stored invocations of one batch element, or of all invocations of one text."""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import torch
from torch import Tensor
from torch.nn import functional

from tfviz.look.attention_call import AttentionCall
from tfviz.look.key_signatures import InvocationHistory
from tfviz.look.lazy import LazyAttention
from tfviz.look.map_arguments import check_batch_element
from tfviz.look.quantization import dequantize
from tfviz.look.recorder import WEIGHT_SUFFIXES, Invocation
from tfviz.look.text_matching import Timeline
from tfviz.look.text_selection import SequenceSelector
from tfviz.shapes import Bool

INVOCATION_INDEX = re.compile(r", (\d+) of (\d+)$")  # the suffix of a site with several invocations
Layer = Tensor | LazyAttention


def patterns(captured: Iterable[str], sites: str) -> list[str]:
    """Return the captured sites that hold weights (patterns and implicit maps) and match a glob.

    Raises:
        LookupError: no captured site matches.
    """
    chosen = [site for site in captured if site.rpartition(".")[2] in WEIGHT_SUFFIXES and fnmatchcase(site, sites)]
    if not chosen:
        meant = "" if sites == "*" else f" of {sites!r}"
        raise LookupError(f"no pattern{meant} was captured, only: {', '.join(captured) or 'nothing'}")
    return chosen


def choose_invocations(
    invocations_by_site: Mapping[str, Sequence[Invocation]], invocations: str | None
) -> dict[str, Invocation]:
    """Return one invocation of each site: the last, or all as separate layers; see `AttentionMaps.from_capture`."""
    several = {site: len(of_site) for site, of_site in invocations_by_site.items() if len(of_site) > 1}
    if invocations == "layers":  # `INVOCATION_INDEX` finds these names
        return {
            f"{site}, {index} of {len(of_site)}" if len(of_site) > 1 else site: invocation
            for site, of_site in invocations_by_site.items()
            for index, invocation in enumerate(of_site, 1)
        }
    if several and invocations is None:
        site, count = next(iter(several.items()))
        more = f", and {len(several) - 1} more did so" if len(several) > 1 else ""
        same = len({tuple(stored.shape) for stored, _ in invocations_by_site[site]}) == 1
        each = "invocations='layers'" if same else "look.groups(captured, invocations='layers')"
        warnings.warn(
            f"{site} was computed {count} times, the last is shown{more}: {each} shows each, invocations='last' is "
            "this without a warning, and AttentionMaps.over_time joins those of a text generated token by token",
            stacklevel=4,
        )
    return {site: of_site[-1] for site, of_site in invocations_by_site.items()}


def layers(invocations: Mapping[str, Invocation], batch: int) -> tuple[list[Layer], Tensor | None]:
    """Return the weights of each site's invocation, [head, query, key], and a mask for all; None if nothing is masked.

    Raises:
        ValueError: there is no such batch element, or the sites have different shapes.
    """
    size = next(iter(invocations.values()))[0].shape[0]
    check_batch_element(batch, size)
    return _check_shapes({site: _layer(invocation, batch) for site, invocation in invocations.items()})


def layers_over_time(
    invocations: Mapping[str, Sequence[Invocation]],
    history: InvocationHistory,
    batch: int,
    beam_indices: Tensor | None,
    text_index: int | None,
) -> tuple[list[Layer], Tensor | None]:
    """Return layers and mask of all invocations of one text, with their queries stacked in order of time.

    Raises:
        ValueError: there is no such batch element; the invocations of one text cannot be determined; the sites have
            different shapes.
    """
    joined, sequences = {}, None
    for site, some in invocations.items():
        size = some[-1][0].shape[0]
        if beam_indices is None:
            check_batch_element(batch, size)
        row = batch % size if beam_indices is None else batch
        if len(some) == 1 and beam_indices is None:
            if text_index not in (None, 0, -1):
                raise ValueError(f"text_index is {text_index}; the capture holds 1 text, counted from 0")
            joined[site] = _layer(some[0], row)
            continue
        known = history.sites.get(site)
        if known is None or len(known.invocations) != len(some):
            raise ValueError(
                f"{site} was computed {len(some)} times, and its keys could not be identified; "
                "AttentionMaps.from_capture(captured, invocations='layers') shows each"
            )
        sequences = (
            sequences
            if sequences is not None and sequences.row == row
            else SequenceSelector(history, row, beam_indices, text_index)
        )
        joined[site] = _join(some, sequences.timeline(site))
    return _check_shapes(joined)


def _check_shapes(joined: Mapping[str, tuple[Layer, Tensor | None]]) -> tuple[list[Layer], Tensor | None]:
    """Return the layers and a mask for all of them, if the layers have the same shape."""
    shapes = {tuple(weights.shape): site for site, (weights, _) in joined.items()}
    if len(shapes) > 1:
        each = ", invocations='layers'" if any(INVOCATION_INDEX.search(site) for site in joined) else ""
        raise ValueError(
            f"the patterns have several shapes (head query key): look.groups(captured{each}) groups those of the "
            f"same shape, sites= selects some: " + ", ".join(f"{site} {shape}" for shape, site in shapes.items())
        )
    weights = [weights for weights, _ in joined.values()]
    if all(allowed is None for _, allowed in joined.values()):
        return weights, None
    masks = [_full_mask(weights[0]) if allowed is None else allowed for _, allowed in joined.values()]
    if all(torch.equal(mask, masks[0]) for mask in masks):
        return weights, masks[0][None]
    return weights, torch.stack([mask.expand(weights[0].shape) for mask in masks])


def _layer(invocation: Invocation, batch: int) -> tuple[Layer, Bool[Tensor, "#head query key"] | None]:
    """Return the weights and the mask of one invocation."""
    stored, allowed = invocation
    if isinstance(stored, AttentionCall):
        return LazyAttention.from_call(stored, batch), None
    return stored[batch].cpu(), None if allowed is None else allowed[batch if len(allowed) > 1 else 0].cpu()


def _join(
    invocations: Sequence[Invocation], timeline: Timeline
) -> tuple[Layer, Bool[Tensor, "#head query key"] | None]:
    """Join invocations to one map of a text; keys that an invocation did not have get weight 0 and are masked."""
    first = min(segment.offset for segment in timeline.segments)
    keys = timeline.length - first
    weights, masks, is_open = [], [], True
    for segment in timeline.segments:
        pattern, allowed = invocations[segment.invocation]
        if isinstance(pattern, AttentionCall):
            allowed, pattern = pattern.allowed(), pattern.pattern(torch.float32)
        part = pattern[segment.batch_index][:, segment.start : segment.stop].cpu()
        mask = _full_mask(part)
        if allowed is not None:
            mask = allowed[segment.batch_index if len(allowed) > 1 else 0][:, segment.start : segment.stop].cpu()
        is_open &= allowed is None and pattern.shape[3] == keys
        weights.append(_pad_keys(part, keys, segment.offset - first))
        masks.append(_pad_keys(mask, keys, segment.offset - first))
    if is_open:
        return _concatenate(weights), None
    heads = max(map(len, masks))
    return _concatenate(weights), _concatenate([mask.expand(heads, -1, -1) for mask in masks])


def _full_mask(weights: Layer) -> Bool[Tensor, "1 query key"]:
    return torch.ones(1, *weights.shape[1:], dtype=torch.bool)


def _pad_keys(tensor: Tensor, keys: int, first: int = 0) -> Tensor:
    """Pad a tensor with zeros before and after its keys, or drop cache slots that no text has filled."""
    tensor = tensor[..., : keys - first]
    missing = keys - tensor.shape[-1]
    return functional.pad(tensor, (first, missing - first)) if missing else tensor


def _concatenate(parts: Sequence[Tensor]) -> Tensor:
    if len(parts) == 1:  # no copy
        return parts[0]
    same = len({part.dtype for part in parts}) == 1  # weights that bytes cannot hold are stored in float32
    return torch.cat([part if same else dequantize(part) for part in parts], dim=1)
