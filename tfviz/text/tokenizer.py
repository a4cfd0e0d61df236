"""Protocols of tokenizers: the methods that a tokenizer needs to be used with `tfviz`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class Tokenizer(Protocol):
    """The protocol of tokenizers for generation: `CharacterTokenizer`, `ByteTokenizer`, `SubwordTokenizer`."""

    def encode(self, text: str) -> Tensor: ...

    def decode_stream(self, ids: Iterable[int]) -> Iterator[str]: ...


@runtime_checkable
class BatchTokenizer(Protocol):
    """The protocol of tokenizers that encode batches and have special tokens, such as `SubwordTokenizer`."""

    def __len__(self) -> int: ...

    def __getitem__(self, token: str, /) -> int: ...

    def encode_batch(self, texts: Sequence[str]) -> list[Tensor]: ...

    def decode(self, ids: Tensor) -> str: ...
