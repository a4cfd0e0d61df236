"""`AlignedTexts` and `MarkedTexts`: the texts of a batch with padding on the right, and their visible keys."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tfviz.look.head_scores import Cells, Marks
from tfviz.shapes import Bool, Float, Int


class VisibleKeys(NamedTuple):
    """The keys that the queries of a layer may attend to.

    Attributes:
        mask: the captured mask, True where a query may attend; None: to all keys.
        sees: [#text, #head, query], whether a query may attend to any key.
        uniform: [text, #head, kind], the share of each kind under uniform attention.
    """

    mask: Tensor | None
    sees: Bool[Tensor, "#batch #head query"]
    uniform: Tensor


class MarkedTexts:
    """The texts of a batch and their marked cells; visible keys are computed once for layers with the same mask."""

    def __init__(self, aligned: AlignedTexts, marks: Marks) -> None:
        self.aligned, self.marks = aligned, marks
        self._visible: VisibleKeys | None = None  # the result of the previous call

    def visible_keys(self, mask: Tensor | None, ignore_first_key: bool) -> VisibleKeys:
        """Return the keys that the queries of a layer may attend to.

        Args:
            mask: the mask of the layer, True where a query may attend; None: to all keys.
            ignore_first_key: whether to exclude the first key.
        """
        known = self._visible
        if known is not None and _are_equal(known.mask, mask):
            return known
        allowed = self.aligned.allowed(mask)
        if ignore_first_key:
            allowed = clear_first_key(allowed)
        sees = allowed.any(-1)
        even = allowed / allowed.sum(-1, keepdim=True).clamp(min=1)
        texts = len(self.aligned.ids)
        uniform = self.marks.shares(even.expand(texts, -1, -1, -1), sees.expand(texts, -1, -1)).cpu()
        self._visible = VisibleKeys(mask, sees, uniform)
        return self._visible


def clear_first_key(cells: Tensor) -> Tensor:
    """Return a copy with 0 or False at the first key."""
    cells = cells.clone()
    cells[..., 0] = 0
    return cells


def _are_equal(first: Tensor | None, second: Tensor | None) -> bool:
    """Return whether two masks on one device are equal."""
    if first is None or second is None:
        return first is second
    return first.device == second.device and torch.equal(first, second)


class AlignedTexts:
    """The texts of a batch with padding moved to the end.

    Attributes:
        ids: [batch, position], the token ids.
        is_token: [batch, position], False at padding.
        length: the number of positions.
        has_padding: whether there is any padding.
        order: [batch, position], the original index of each position; None if the texts were not reordered.
    """

    def __init__(self, ids: Int[Tensor, "batch position"], is_token: Bool[Tensor, "batch position"]) -> None:
        self.order = None
        if not (is_token[:, :-1] | ~is_token[:, 1:]).all():  # padding in front of tokens
            self.order = (~is_token).long().argsort(dim=-1, stable=True)
            ids, is_token = ids.gather(1, self.order), is_token.gather(1, self.order)
        self.ids, self.is_token, self.length = ids, is_token, ids.shape[1]
        self.has_padding = not is_token.all()

    def weights(self, weights: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
        """Return attention weights with padding moved to the end; the rows of padding queries are zeros."""
        weights = self._reordered(weights)
        return weights * self.is_token[:, None, :, None] if self.has_padding else weights

    def without_padding(self, cells: Cells) -> Cells:
        """Return the marked cells [batch, query, key] whose query and key are both tokens, not padding."""
        return cells & self.is_token[:, :, None] & self.is_token[:, None, :] if self.has_padding else cells

    def allowed(self, mask: Tensor | None) -> Bool[Tensor, "#batch #head query key"]:
        """Return the mask without padding keys, True where a query may attend; None allows all keys but padding."""
        is_token = self.is_token[:, None, None, :].expand(-1, 1, self.length, -1)
        if mask is None:
            return is_token
        if not self.has_padding:
            return mask.expand(-1, -1, self.length, self.length)
        return self._reordered(mask.expand(len(self.ids), -1, self.length, self.length)) & is_token

    def _reordered(self, tensor: Tensor) -> Tensor:
        if self.order is None:
            return tensor
        size = tensor.shape
        tensor = tensor.gather(2, self.order[:, None, :, None].expand(size))
        return tensor.gather(3, self.order[:, None, None, :].expand(size))
