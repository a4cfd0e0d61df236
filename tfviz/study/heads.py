"""`mean_head_scores` and `HeadScores`: head scores over a data set, compared with uniform attention."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.look.capture_result import Capture
from tfviz.look.head_scores import SCORE_KINDS, TOKEN_KINDS, Cells, Kind, Marks, check_kinds
from tfviz.look.map_arguments import range_labels
from tfviz.look.map_groups import CROSS_ATTENTION_NAME
from tfviz.study.aggregation import aggregate
from tfviz.study.aligned_texts import AlignedTexts, MarkedTexts, clear_first_key
from tfviz.study.collate import Tokenize
from tfviz.study.inputs import Inputs, attention_mask_of, ids_at
from tfviz.study.sites import head_count, site_axis
from tfviz.study.statistics import Statistics
from tfviz.study.table import Table
from tfviz.validation import unchecked

BASELINE = "uniform attention"


class HeadScores:
    """A measure for `aggregate`: the share of each head's attention, 0 to 1, that goes to each kind of position.

    The scores are those of `look.measures.head_scores`, for batches of padded texts. A score is the mean over the
    queries that may attend to any key and have a position of the kind. The attention mask marks padding.

    The result has a second table for each kind, "KIND, uniform attention": the score of a head with equal weights on
    all keys to which a query may attend.

    Args:
        kinds: names of kinds of position: "current", "previous", "two back", "first", "duplicate" or "induction" (the
            position to which an induction head attends). Or name -> a function from ids [text, position], without
            padding on the left, to a mask [text, query, key] that is True at positions of the kind.
        ignore_first_key: whether to remove the first key, often an attention sink (Xiao et al. 2023), from every row
            and rescale the other weights. A query whose only position of a kind is the first key does not count.
    """

    lazy = True  # a map is computed when its layer is scored, and not stored

    def __init__(
        self, kinds: Sequence[str] | Mapping[str, Kind] = tuple(SCORE_KINDS), ignore_first_key: bool = False
    ) -> None:
        self.kinds = check_kinds(kinds)
        self.ignore_first_key = ignore_first_key
        by_position = [kind for name, kind in SCORE_KINDS.items() if name not in TOKEN_KINDS]
        self._compares_tokens = any(kind not in by_position for kind in self.kinds.values())

    def __repr__(self) -> str:
        return f"HeadScores({list(self.kinds)}, ignore_first_key={self.ignore_first_key})"

    def __call__(self, captured: Capture, inputs: Inputs) -> dict[str, Table]:
        """Return kind -> scores [text, layer, head]; in a decoder, the text is that of the decoder.

        Raises:
            ValueError: the maps are not self-attention; layers have different numbers of heads.
        """
        texts: dict[tuple[int, int], MarkedTexts] = {}  # by the ids of an encoder's text and of a decoder's
        scores, uniform = zip(
            *(self._layer(site, captured, self._text(site, captured, inputs, texts)) for site in captured)
        )
        label, labels = site_axis(list(captured))
        heads = head_count(len(layer[0]) for layer in scores)
        axes = {"text": range_labels(inputs.size), label: labels, "head": range_labels(heads)}
        tables = {}
        for index, name in enumerate(self.kinds):
            for title, layers in ((name, scores), (f"{name}, {BASELINE}", uniform)):
                values = torch.stack([layer[..., index] for layer in layers], 1)
                tables[title] = unchecked(Table, values, axes, "share of attention")
        return tables

    def _text(
        self, site: str, captured: Capture, inputs: Inputs, known: dict[tuple[int, int], MarkedTexts]
    ) -> MarkedTexts:
        """Return the texts at a site with their marked cells.

        Raises:
            ValueError: the site is cross-attention.
        """
        if any(map(CROSS_ATTENTION_NAME.search, site.split("."))):
            raise ValueError(f"{site} is cross-attention; heads are scored on self-attention")
        key, ids = self._ids(site, captured, inputs)
        if key not in known:
            aligned = AlignedTexts(ids, attention_mask_of(inputs, ids, site))
            marked = (_checked(name, kind(aligned.ids), aligned.ids) for name, kind in self.kinds.items())
            cells = map(aligned.without_padding, marked)
            known[key] = MarkedTexts(aligned, Marks(map(self._without_first, cells)))
        return known[key]

    def _ids(self, site: str, captured: Capture, inputs: Inputs) -> tuple[tuple[int, int], Tensor]:
        """Return a key for the ids at a site, and the ids; zeros for a model without ids, such as one of images.

        Raises:
            ValueError: there are no ids, and a kind compares tokens.
        """
        try:
            ids = ids_at(inputs, site)
        except ValueError:
            if self._compares_tokens:
                raise
            length = captured.shapes[site][-1]
            return (0, length), torch.zeros(inputs.size, length, dtype=torch.long, device=inputs.tensors[0].device)
        return (id(ids), 0), ids

    def _without_first(self, cells: Cells) -> Cells:
        """Return the cells without those of the first key if it is left out."""
        return clear_first_key(cells) if self.ignore_first_key else cells

    def _layer(self, site: str, captured: Capture, text: MarkedTexts) -> tuple[Tensor, Tensor]:
        """Return the scores of a layer, and those of uniform attention, each [batch, head, kind].

        Raises:
            ValueError: the pattern is not that of self-attention over the texts.
        """
        (weights, allowed), aligned = captured.invocations(site)[-1], text.aligned
        if weights.shape[0] != len(aligned.ids) or weights.shape[2:] != (aligned.length, aligned.length):
            raise ValueError(
                f"{site} is {list(weights.shape)}; heads are scored on self-attention of {len(aligned.ids)} texts, "
                f"{aligned.length} x {aligned.length}: name such sites"
            )
        weights, visible = aligned.weights(weights.float()), text.visible_keys(allowed, self.ignore_first_key)
        if self.ignore_first_key:
            weights = clear_first_key(weights)
            sums = weights.sum(-1, keepdim=True)
            weights = weights / torch.where(sums == 0, 1.0, sums)
        sees = (weights.sum(-1) != 0) & visible.sees  # [text, head, query]
        return text.marks.shares(weights, sees).cpu(), visible.uniform.expand(-1, weights.shape[1], -1)


def _checked(name: str, cells: Any, ids: Tensor) -> Cells:
    count = ids.shape[1]
    shapes = [(size, count, count) for size in (1, len(ids))]
    if not isinstance(cells, Tensor) or cells.dtype != torch.bool or tuple(cells.shape) not in shapes:
        shape = f"{cells.dtype} {list(cells.shape)}" if isinstance(cells, Tensor) else type(cells).__name__
        raise ValueError(
            f"{name} marks {shape}; it must return a mask [text, query, key], True for its cells, here "
            f"{list(shapes[1])}"
        )
    return cells.to(ids.device)


def mean_head_scores(
    model: nn.Module,
    texts: Iterable[Any],
    kinds: Sequence[str] | Mapping[str, Kind] = tuple(SCORE_KINDS),
    *,
    sites: str | Sequence[str] = "*.pattern",
    ignore_first_key: bool = False,
    tokenize: Tokenize | None = None,
    batch_size: int = 16,
    progress: bool = True,
    resume: str | Path | None = None,
    client: Any = None,
) -> dict[str, Statistics]:
    """Return statistics of each head's scores over a data set, and of the scores of uniform attention, by kind.

    A head shows the behaviour of a kind if its score is far above that of uniform attention: compare
    `found["previous"].mean` with `found["previous, uniform attention"].mean`. If all texts repeat at one distance, a
    head that always attends that many positions back scores as high for "duplicate" or "induction" as a head that
    compares tokens, so give texts that repeat at different distances. A warning names each given kind that has no
    position in any text.

    Args:
        model: the model.
        texts: batches of ids or mappings of inputs, or texts for `tokenize`.
        kinds: the behaviours to score; see `look.measures.head_scores`.
        sites: the sites of the attention patterns.
        ignore_first_key: whether to ignore attention to the first key, with which some heads do nothing.
        tokenize: encodes texts that are strings.
        batch_size: number of texts run at once, of strings.
        progress: whether to show a progress bar.
        resume: a file that keeps the results so far, and from which a stopped call goes on.
        client: a client of a Dask cluster that measures the batches.
    """
    measure = HeadScores(kinds, ignore_first_key)
    found = aggregate(
        model,
        texts,
        measure,
        sites=sites,
        tokenize=tokenize,
        batch_size=batch_size,
        progress=progress,
        resume=resume,
        client=client,
    )
    missing = [kind for kind in measure.kinds if not found[kind].counts.any()]
    if missing and tuple(kinds) != tuple(SCORE_KINDS):  # texts often lack some of the default kinds
        named = ", ".join(map(repr, missing))
        warnings.warn(f"no text has a cell of {named}: their scores are NaN", stacklevel=3)
    return found
