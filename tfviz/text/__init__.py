"""Text and ids: vocabularies, corpora, batches."""

from tfviz.text import batches, corpora
from tfviz.text.batches import Windows, in_order
from tfviz.text.tokens import Bytes, Characters

__all__ = ["Bytes", "Characters", "Windows", "batches", "corpora", "in_order"]
