"""`AttentionMaps`: what the half that computes gives to the half that draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfviz.bounds import at_least, one_of, readable, whole
from tfviz.doors import door
from tfviz.look import doubts, join, kept, stored
from tfviz.look.call import ALL
from tfviz.look.capture import Seen
from tfviz.look.ingredients import Ingredients
from tfviz.look.words import as_broad, named
from tfviz.shapes import Bool, Float, UInt8


class AttentionMaps:
    """Attention weights with the words of both axes; knows no model.

    Args:
        weights: layer head query key, or a list with a tensor (head query key) for each layer; float, or uint8 as
            `capture` keeps it.
        rows: a word for each query; a number becomes its digits.
        cols: a word for each key; default: `rows`, where the map is square.
        mask: True where a query might look; broadcastable to the weights.
        sites: a name for each layer.
        provenance: where this comes from: anything JSON can hold.

    >>> maps = AttentionMaps(torch.eye(3).expand(2, 4, 3, 3), rows=["the", "cat", "sat"])
    >>> maps
    AttentionMaps: 2 layers x 4 heads x 3 queries x 3 keys
    >>> maps[1, 0].diagonal()
    tensor([1., 1., 1.])
    """

    def __init__(
        self,
        weights: Tensor | Sequence[Tensor | Ingredients | None],
        rows: Sequence[Any] | None = None,
        cols: Sequence[Any] | None = None,
        mask: Tensor | None = None,
        sites: Sequence[str] | None = None,
        provenance: Mapping[str, Any] | None = None,
    ):
        if isinstance(weights, Tensor) and not weights.dim():
            raise ValueError("weights is one number; give a tensor layer head query key")
        given: list[Any] = list(weights)
        if not given:
            raise ValueError("there are no weights; a Hugging Face model gives none under sdpa: use look.capture")
        kept.check(given)
        self.layers = [layer if isinstance(layer, Ingredients) else layer.detach().cpu() for layer in given]
        _, queries, keys = self.layers[0].shape
        self.rows = named(rows, queries, "rows", "queries")
        self.cols = list(self.rows) if cols is None and queries == keys else named(cols, keys, "cols", "keys")
        if mask is not None:
            readable(mask=mask)
        self.mask = None if mask is None else as_broad(mask.cpu(), self.shape)
        counted = [f"layer {i}" for i in range(len(self.layers))] if sites is None else sites
        self.sites = named(counted, len(self.layers), "sites", "layers")
        self.provenance = dict(provenance or {})

    @classmethod
    @door
    def of(
        cls,
        seen: Seen,
        rows: Sequence[str] | None = None,
        cols: Sequence[str] | None = None,
        *,
        sites: str | Sequence[str] = "*",
        batch: int = 0,
        firings: str | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> AttentionMaps:
        """The patterns in a capture, a layer each, of one row of the batch.

        Args:
            sites: a glob, where only some are meant, such as `decoder.*.cross.*`; or their names.
            firings: of a site that fired several times, "last" or "layers", one for each; None: the last, with a
                warning. For those of a text that is written word by word see `over_time`.
            provenance: more of where this comes from, such as `{"step": 300}`.

        Raises:
            LookupError: no pattern was captured.
            ValueError: the words do not fit, or the patterns have different shapes: see `look.groups`; or they are of
                blocks of which it is not known where in the text they belong.

        Windows of a picture (Liu et al. 2021) are put together, where the modules around them say how they cut it, and
        so are blocks of a text (Zaheer et al. 2020), or they are refused: a map from each place to each, so capture
        them in uint8. What windows at the edge give to padding is left out.
        """
        if firings is not None:
            one_of(("last", "layers"), firings=firings)
        names = join.patterns(seen, sites) if isinstance(sites, str) else list(sites)
        if not names:
            raise ValueError("sites is empty; give a glob or the names of some")
        chosen = join.chosen({site: seen.as_whole(site, batch) for site in names}, firings)
        return cls.joined(seen, chosen, rows, cols, batch, provenance)

    @classmethod
    @door
    def joined(
        cls,
        seen: Seen,
        firings: Mapping[str, Sequence[join.Kept]],
        rows: Sequence[str] | None = None,
        cols: Sequence[str] | None = None,
        batch: int = 0,
        provenance: Mapping[str, Any] | None = None,
    ) -> AttentionMaps:
        """A layer for each name, of its one firing: what `of` and `look.groups` make of a capture."""
        if not firings or not all(firings.values()):
            raise ValueError("firings are empty; give {name: seen.as_kept(site)}, a firing for each layer")
        weights, mask = join.layers(firings, batch)
        known = seen.provenance(join.FIRING.sub("", name) for name in firings)
        return cls(weights, rows, cols, mask, list(firings), {**known, **(provenance or {})})

    @classmethod
    @door
    def over_time(
        cls,
        seen: Seen,
        rows: Sequence[str] | None = None,
        cols: Sequence[str] | None = None,
        *,
        sites: str = "*",
        batch: int = 0,
        beams: Tensor | None = None,
        generation: int | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> AttentionMaps:
        """As `of`, but of all firings of one text: their queries stand one under the other, in the order of time.

        So patterns that are computed word by word make one map of one pass: head, then all queries, then the keys of
        the last firing. Cells of keys that an earlier one had not yet are 0 and masked. Which firings are of one text
        is told by their keys: tokens that were read and thrown away again (assisted generation, `cache.crop`) have no
        row, and a beam is followed through the rows of the batch. The words of the axes are

        * for `models.Seq2Seq` with attention, a firing for each target word: `over_time(seen, target, source)`;
        * for `models.LSTMN`, whose first word looks at nothing: `over_time(seen, words[1:], words[:-1])`;
        * for a text written with a cache, the first firing being the prompt: `over_time(seen, words_read)`.

        Args:
            beams: after a beam search the row of the batch in which each token of each returned text was chosen, [text,
                step], -1 after its end: `out.beam_indices` of Hugging Face's `generate(return_dict_in_generate=True,
                output_scores=True)`. `batch` is then the number of a returned text.
            generation: which of several texts that were captured one after the other; None: the last, with a warning.
            provenance: as in `of`.

        Raises:
            LookupError: no pattern was captured.
            ValueError: as in `of`; or it cannot be told which firings are of one text: their rows changed places and
                `beams` is not given, what they look at was computed by none of them, or they are layers, not steps.
        """
        chosen, cut = join.patterns(seen, sites), seen.cut
        firings = {site: seen.as_whole(site, batch) if site in cut else seen.as_kept(site) for site in chosen}
        weights, mask = join.texts(firings, seen.history, batch, beams, generation)
        return cls(weights, rows, cols, mask, list(firings), {**seen.provenance(firings), **(provenance or {})})

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """layer head query key"""
        heads, queries, keys = self.layers[0].shape
        return len(self.layers), heads, queries, keys

    @property
    def weights(self) -> Float[Tensor, "layer head query key"]:
        """All weights in float32; `maps[layer, head]` makes one head only."""
        return torch.stack([self[layer] for layer in range(len(self.layers))])

    @door
    def __getitem__(self, where: int | tuple[int | slice, ...]) -> Tensor:
        """In float32: `maps[layer]`, head query key; `maps[layer, head]`, query key; or a part of a head:
        `maps[layer, head, query]`, its row over keys; `maps[layer, head, 10:20, :30]`, some queries and keys.
        """
        asked = where if isinstance(where, tuple) else (where,)
        layer, cells = self._layer(*asked), asked[1:]
        if isinstance(layer, Ingredients):
            return layer[cells]
        return kept.unpack(layer[cells])

    @door
    def tile(
        self, layer: int, head: int, rows: slice = ALL, keys: slice = ALL, block: int = 1
    ) -> Float[Tensor, "down across"]:
        """A part of a head, or all of it, the largest weight of each `block` x `block` cells standing for them."""
        at_least(1, block=block)
        made, block = self._layer(layer, head, rows, keys), min(block, max(1, *self.shape[2:]))
        if isinstance(made, Ingredients):
            return made.tile(head, rows, keys, block)
        return kept.unpack(kept.blocks(made[head, rows, keys], block))

    @door
    def packed(self, layer: int, head: int, block: int = 1) -> UInt8[Tensor, "down across"]:
        """A head as `capture(dtype=torch.uint8)` keeps it: 255 times the square root; errs by at most 0.004.

        Args:
            block: the largest weight of each `block` x `block` cells stands for them.

        Raises:
            ValueError: a weight is not between 0 and 1.
        """
        at_least(1, block=block)
        made, where = self._layer(layer, head), f"layer {layer}, head {head}"
        if isinstance(made, Ingredients):
            return kept.as_bytes(made.tile(head, block=min(block, max(made.shape))), 1, where)
        return kept.as_bytes(made[head], block, where)

    @door
    def allowed(self, layer: int, head: int, rows: slice = ALL, keys: slice = ALL) -> Bool[Tensor, "query key"] | None:
        """True where this head's queries might look; None if nothing was forbidden."""
        made = self._layer(layer, head)
        if isinstance(made, Ingredients):
            return made.allowed(head, rows, keys)
        return None if self.mask is None else self.mask[layer, head, rows, keys]

    def _layer(self, *asked: Any) -> Tensor | Ingredients:
        """The layer that is asked for.

        Raises:
            IndexError, TypeError, ValueError: there is no such layer, head, query or key.
        """
        if not 0 < len(asked) <= 4:
            raise IndexError(f"{len(asked)} indices; the maps have four: layer, head, query, key")
        for name, number, count in zip(("layer", "head", "query", "key"), asked, self.shape):
            if isinstance(number, slice):
                whole(**{f"{name} {end}": at for end, at in _ends(number).items() if at is not None})
                if number.step is not None and number.step < 1:
                    raise ValueError(f"the step of {name} is {number.step}; it must be 1 or more")
                if name in ("layer", "head"):
                    raise TypeError(f"{name} is a slice; give one number, and take several one by one")
            elif not -count <= number < count:
                raise IndexError(f"{name} is {number}; the maps have {count}, from 0 to {count - 1}")
        return self.layers[asked[0]]

    def __repr__(self) -> str:
        layers, heads, queries, keys = self.shape
        size = f"AttentionMaps: {layers} layers x {heads} heads x {queries} queries x {keys} keys"
        return f"{size}{self.remarks}"

    @property
    def remarks(self) -> str:
        """What is to be known of them: that a dropout came after them, that their rows need not add up to 1."""
        dropout = self.provenance.get("dropout")
        taken = f", taken in training: before a dropout of {dropout:g}" if isinstance(dropout, float) else ""
        return f"{taken}; {self.doubt}" if self.doubt else taken

    @cached_property
    def doubt(self) -> str:
        """What a reader must know before these are read as weights: that rows need not add up to 1, as `capture` found
        it, or what the numbers themselves tell (scores, NaN, a mask turned round); empty where there is nothing."""
        sites = self.provenance.get("unnormalized", [])
        if isinstance(sites, list) and sites:
            return f"rows need not add up to 1 in {', '.join(map(str, sites))}"
        return doubts.of_weights(self.layers, self.mask)

    @door
    def save(self, path: str | Path) -> Path:
        """Write one safetensors file, whole or not at all."""
        words = {"rows": self.rows, "cols": self.cols, "sites": self.sites, "provenance": self.provenance}
        return stored.write(path, self.layers, self.mask, words)

    @classmethod
    @door
    def load(cls, path: str | Path) -> AttentionMaps:
        """Read what `save` wrote. Needs no model, GPU or network, and never unpickles.

        Raises:
            FileNotFoundError: no such file.
            ValueError: the file is damaged, or something else.
        """
        return cls(**stored.read(path))


def _ends(one: slice) -> dict[str, Any]:
    return {"start": one.start, "stop": one.stop, "step": one.step}
