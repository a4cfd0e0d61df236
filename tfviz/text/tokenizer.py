"""Protocols of tokenizers: the methods that a tokenizer needs to be used with `tfviz`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class Tokenizer(Protocol):
    """The protocol of tokenizers for generation, such as `Characters`, `Bytes` and `Subwords`."""

    def encode(self, text: str) -> Tensor: ...

    def pieces(self, ids: Iterable[int]) -> Iterator[str]: ...


@runtime_checkable
class SubwordTokenizer(Protocol):
    """The protocol of tokenizers that look up special tokens and encode many texts, such as `Subwords`."""

    def __len__(self) -> int: ...

    def __getitem__(self, token: str, /) -> int: ...

    def encode_all(self, texts: Sequence[str]) -> list[Tensor]: ...

    def decode(self, ids: Tensor) -> str: ...
