"""Signatures of the keys of each invocation, by which `AttentionMaps.over_time` matches the invocations of one text.

Only a signature of each key is stored: its projection on a few fixed random directions (Johnson & Lindenstrauss 1984).
A key keeps its signature wherever a cache moves it, and different keys have different signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tfviz.look.attention_call import AttentionCall
from tfviz.look.axes import Layout
from tfviz.look.products import Contraction
from tfviz.look.torch_modes import frames
from tfviz.shapes import Bool, Float, Int

SIGNATURE_SIZE = 8  # numbers in the signature of a key
SIGNATURE_TOLERANCE = 1e-3  # relative distance of two signatures of one key, computed twice in float32
SIGNATURE_TOLERANCE_HALF = 2e-2  # the same in half precision
MAX_CALLER_FRAMES = 32  # frames above the model's call in which a beam search is looked for

Keys = Float[Tensor, "_ _ width"]  # batch key width


class KeyRecord(NamedTuple):
    """The keys of one invocation.

    Attributes:
        queries: number of queries.
        allowed: function from rows to their mask, [batch, head, row, key], True where a query may attend; None: no
            mask.
        keys: signatures of the keys, [batch, key, width].
        dtype: dtype of the keys before they were projected.
    """

    queries: int
    allowed: Callable[[slice], Tensor | None]
    keys: Keys
    dtype: torch.dtype


class InvocationInfo(NamedTuple):
    """Facts about one invocation, apart from its keys.

    Attributes:
        call: number of the model's call in which it was computed.
        queries: number of queries.
        first_end: for each batch element, one past the last key to which the first query may attend.
        starts, ends: for each batch element, the first key to which the last query may attend, and one past the last.
        tolerance: relative distance within which two signatures belong to the same key.
    """

    call: int
    queries: int
    first_end: Int[Tensor, "batch"]
    starts: Int[Tensor, "batch"]
    ends: Int[Tensor, "batch"]
    tolerance: float


class _Change(NamedTuple):
    """The keys that differ from the previous invocation's, from `start` on; the last `unchanged` keys are the same."""

    start: int
    keys: Keys
    unchanged: int


class SiteHistory:
    """The invocations of a site and their keys; only changes from invocation to invocation are stored.

    Attributes:
        grows: whether an invocation had new keys in addition to some of the previous invocation's.
    """

    def __init__(self) -> None:
        self.invocations: list[InvocationInfo] = []
        self.grows = False
        self._changes: list[_Change] = []
        self._last: Keys | None = None

    def add(self, invocation: InvocationInfo, keys: Keys) -> None:
        self.invocations.append(invocation)
        before, self._last = self._last, keys
        if before is None or before.shape[0] != keys.shape[0]:
            self._changes.append(_Change(0, keys, 0))
            return
        common = min(before.shape[1], keys.shape[1])
        differs = (before[:, :common] != keys[:, :common]).any(-1).any(0)
        start = int(differs.to(torch.uint8).argmax()) if differs.any() else common
        unchanged = 0
        if before.shape[1] == keys.shape[1] and start < common:  # a cache of fixed size: the rest is unchanged
            unchanged = int(differs.flip(0).to(torch.uint8).argmax())
        if not self.grows and start < keys.shape[1] and invocation.queries < keys.shape[1]:
            self.grows = bool((before[0] == keys[0, 0]).all(-1).any())
        self._changes.append(_Change(start, keys[:, start : keys.shape[1] - unchanged].clone(), unchanged))

    def keys(self) -> Iterator[Keys]:
        """Yield the signatures of each invocation."""
        last: Keys | None = None
        for start, keys, unchanged in self._changes:
            if last is None or not (start or unchanged):  # no key is the same; the batch size may differ
                last = keys
            else:
                last = torch.cat([last[:, :start], keys, last[:, last.shape[1] - unchanged :]], 1)
            yield last


class InvocationHistory:
    """A record of each invocation's keys, and of the model's call to which it belongs."""

    def __init__(self) -> None:
        self.calls = 0
        self.sites: dict[str, SiteHistory] = {}
        self._reference_site: str | None = None  # the last site seen to attend to a growing text
        self._beam_calls: set[int] = set()
        self._cached: dict[int, tuple[int, int]] = {}  # call -> number of its cache, and of the tokens in it
        self._final_lengths: dict[int, int] = {}  # number of a cache -> its final number of tokens
        self._cache: Any = None  # the cache in use

    def begin_call(self) -> None:
        """Record the start of a call of the model."""
        self.calls += 1
        self._reference_site = next((site for site, log in reversed(self.sites.items()) if log.grows), None)
        if any("beam_search" in frame.f_code.co_name for frame in islice(frames(), MAX_CALLER_FRAMES)):
            self._beam_calls.add(self.calls)

    def end_call(self, kwargs: dict[str, Any], output: Any) -> None:
        """Record how many tokens the cache of a call holds, if it has a cache."""
        cache: Any = kwargs.get("past_key_values")
        cache = getattr(output, "past_key_values", None) if cache is None else cache
        if not self.sites or not hasattr(cache, "get_seq_length"):
            return
        if cache is not self._cache:
            self.close()
            self._cache = cache
        self._cached[self.calls] = len(self._final_lengths), int(cache.get_seq_length())

    def close(self) -> None:
        """Record the final number of tokens in the cache, when the capture ends or another cache comes into use."""
        if self._cache is not None:
            self._final_lengths[len(self._final_lengths)] = int(self._cache.get_seq_length())
            self._cache = None

    def add(self, site: str, record: KeyRecord) -> None:
        """Add an invocation of a site."""
        queries, allowed, keys, dtype = record
        if queries and keys.shape[1]:
            first = allowed(slice(0, 1))
            last = first if queries == 1 else allowed(slice(queries - 1, queries))
            (_, first_end), (starts, ends) = (_visible_range(row, keys) for row in (first, last))
            invocation = InvocationInfo(self.calls, queries, first_end, starts, ends, _tolerance(dtype))
            self.sites.setdefault(site, SiteHistory()).add(invocation, keys)

    def is_reference_site(self, site: str) -> bool:
        """Return whether a site is the last with self-attention to a growing text; True as long as none is known."""
        return self._reference_site in (None, site)

    def is_beam_search(self, call: int) -> bool:
        """Return whether a beam search made a call."""
        return call in self._beam_calls

    def dropped(self, call: int) -> int:
        """Return how many tokens of a call were dropped from its cache before the next call."""
        if call not in self._cached:
            return 0
        cache, length = self._cached[call]
        if any(other == cache and number > call for number, (other, _) in self._cached.items()):
            return 0
        return max(0, length - self._final_lengths.get(cache, length))


def _visible_range(allowed: Bool[Tensor, "batch head 1 key"] | None, keys: Keys) -> tuple[Tensor, Tensor]:
    """Return the first key to which a query may attend and one past the last, [batch] each; all keys if it has none."""
    batch, count, _ = keys.shape
    if allowed is None or allowed.is_meta:
        return torch.zeros(batch, dtype=torch.long), torch.full((batch,), count)
    visible = allowed[:, :, 0].any(1).cpu().expand(batch, count)
    some, marks = visible.any(-1), visible.to(torch.uint8)
    return torch.where(some, marks.argmax(-1), 0), torch.where(some, count - marks.flip(-1).argmax(-1), count)


@lru_cache(maxsize=64)
def _directions(size: int, device: torch.device) -> Float[Tensor, "size width"]:
    return torch.randn(size, SIGNATURE_SIZE, generator=torch.Generator().manual_seed(size)).to(device) / size**0.5


def _tolerance(dtype: torch.dtype) -> float:
    """Return the relative distance within which two signatures belong to the same key."""
    return SIGNATURE_TOLERANCE_HALF if dtype in (torch.float16, torch.bfloat16) else SIGNATURE_TOLERANCE


def keys_of_call(call: AttentionCall, layout: Layout) -> Keys:
    """Return signatures of a fused call's keys, as the mean over heads, which repeated heads do not change."""
    key = call.key.float()
    directions = _directions(key.shape[-1], key.device)
    if layout.is_plain:
        return _finite(key.mean(1) @ directions).cpu()
    projected = key.repeat_interleave(call.shape[1] // key.shape[1], 1) @ directions
    return _arrange(projected.reshape(*call.leading_shape, 1, *projected.shape[-2:]), layout)


def keys_of_product(product: Contraction, operand: int, keys: int, layout: Layout) -> Keys:
    """Return signatures of the values in a product with weights.

    Args:
        product: the product of weights and values.
        operand: index of the factor that holds the weights.
        keys: the key axis of the weights.
        layout: the layout of the weights.
    """
    subscripts, value_subscripts = product.subscripts[operand], product.subscripts[1 - operand]
    values = product.factors[1 - operand].float()
    shared = [
        axis for axis, name in enumerate(subscripts) if name is not None and name in value_subscripts and axis != keys
    ]
    order = [*(value_subscripts.index(subscripts[axis]) for axis in shared), value_subscripts.index(subscripts[keys])]
    features = [axis for axis in range(values.dim()) if axis not in order]
    flat = values.permute(*order, *features).flatten(len(order)) if features else values.permute(*order)[..., None]
    projected = flat @ _directions(flat.shape[-1], flat.device)
    # the axes of the weights, with one query, and of size 1 where the values do not have them
    sizes = [projected.shape[shared.index(axis)] if axis in shared else 1 for axis in range(len(subscripts))]
    sizes[keys] = projected.shape[-2]
    order_of_axes = sorted(range(len(order)), key=[*shared, keys].__getitem__)
    return _arrange(projected.permute(*order_of_axes, len(order)).reshape(*sizes, SIGNATURE_SIZE), layout)


def _arrange(projected: Float[Tensor, "*axes width"], layout: Layout) -> Keys:
    """Reorder signatures from the axes of the weights, with one query or with all, to [batch, key, width]."""
    batch, heads, _, keys = layout.sizes
    shape = list(layout.shape)
    is_ordered = layout.order == tuple(sorted(layout.order)) and shape[-2:] == list(layout.sizes[-2:])
    if is_ordered:
        shape[-2] = 1  # one query stands for all
    columns = [
        column.reshape(batch, heads, keys) if is_ordered else layout.to_bhqk(column)[:, :, 0]
        for column in (each.expand(shape) for each in projected.unbind(-1))
    ]
    return _finite(torch.stack(columns, -1).mean(1)).cpu()


def _finite(keys: Tensor) -> Tensor:
    return torch.zeros(keys.shape) if keys.is_meta else keys.nan_to_num(0.0, 0.0, 0.0)
