"""Collate texts into batches: strings, or the rows of a `datasets.Dataset`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from tfviz.look.error_hints import TOKENIZER_CALL
from tfviz.schema import describe
from tfviz.study.check_prompts import check_no_string
from tfviz.study.inputs import Prompt

Tokenize = Callable[[list[str]], Prompt]


def as_batches(texts: Iterable[Any], tokenize: Tokenize | None, batch_size: int) -> Iterable[Prompt]:
    """Return batches of single texts; texts that are batches already are returned unchanged.

    Args:
        texts: strings, rows with `input_ids`, or batches.
        tokenize: strings -> the model's arguments, padded; for strings only.
        batch_size: the number of single texts in a batch.

    Raises:
        TypeError: `texts` is one text or one batch, or strings without `tokenize`.
    """
    if isinstance(texts, str | Mapping | Tensor):
        raise TypeError(f"texts is {describe(texts)}; give a list of texts or batches, such as [batch]")
    rows = iter(texts)
    try:
        first = next(rows)
    except StopIteration:
        return []
    if isinstance(first, str):
        if tokenize is None:
            raise TypeError(
                "texts are strings: give tokenize, a function of a list of them that returns the model's ids, such as "
                f"lambda texts: {TOKENIZER_CALL}"
            )
        return _Batches(texts, first, rows, batch_size, lambda chunk: _tokenized(tokenize, chunk))
    if isinstance(first, Mapping) and not _is_batch(first):
        return _Batches(texts, first, rows, batch_size, _padded)
    return texts if hasattr(texts, "__len__") and rows is not texts else chain([first], rows)


class _Batches:
    """An iterable of collated batches; its length is known if the texts have a length."""

    def __init__(
        self, texts: Any, first: Any, rest: Iterator[Any], size: int, collate: Callable[[list[Any]], Prompt]
    ) -> None:
        self._rows, self._size, self._collate = chain([first], rest), size, collate
        self._count = len(texts) if hasattr(texts, "__len__") else None

    def __iter__(self) -> Iterator[Prompt]:
        chunk: list[Any] = []
        for row in self._rows:
            chunk.append(row)
            if len(chunk) == self._size:
                yield self._collate(chunk)
                chunk = []
        if chunk:
            yield self._collate(chunk)

    def __len__(self) -> int:
        if self._count is None:
            raise TypeError("the number of texts is unknown")
        return -(-self._count // self._size)


def _tokenized(tokenize: Tokenize, texts: list[str]) -> Prompt:
    """Return the batch that `tokenize` makes from strings.

    Raises:
        ValueError: `tokenize` returns lists instead of tensors, or does not pad texts of different lengths.
    """
    advice = f"give tensors, padded to one length: tokenize=lambda texts: {TOKENIZER_CALL}"
    try:
        batch = tokenize(texts)
    except ValueError as error:
        if "padding" in str(error):  # the message of Hugging Face's tokenizers
            raise ValueError(f"tokenize cannot put texts of several lengths into a tensor; {advice}") from error
        raise
    values = list(batch.values()) if isinstance(batch, Mapping) else batch
    if isinstance(values, list) and values and not any(isinstance(value, Tensor) for value in values):
        raise ValueError(f"tokenize returns lists; {advice}")
    if isinstance(batch, list):
        shapes = ", ".join(str(list(value.shape)) for value in batch if isinstance(value, Tensor))
        raise ValueError(f"tokenize returns a list of tensors, {shapes}; {advice}")
    return batch


def _is_batch(row: Mapping[str, Any]) -> bool:
    """Return whether any tensor has a batch axis, that is, more than one axis."""
    return any(isinstance(value, Tensor) and value.dim() > 1 for value in row.values())


def _padded(rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
    """Return rows of ids as one batch, padded on the right with 0, with an attention mask.

    Raises:
        TypeError: `input_ids` of a row are strings.
        ValueError: a row has no `input_ids`.
    """
    for row in rows:
        check_no_string("texts", [row.get("input_ids")])
    batch: dict[str, Tensor] = {}
    for name in ("input_ids", "attention_mask", "token_type_ids"):
        if all(name in row for row in rows):
            batch[name] = pad_sequence([torch.as_tensor(row[name]).long() for row in rows], batch_first=True)
    if "input_ids" not in batch:
        raise ValueError(f"rows have {', '.join(map(str, rows[0]))}; give rows with input_ids, or batches of tensors")
    lengths = torch.tensor([len(row["input_ids"]) for row in rows])
    mask = torch.arange(batch["input_ids"].shape[1]) < lengths[:, None]
    batch.setdefault("attention_mask", mask.long())
    return batch
