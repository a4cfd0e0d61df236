"""Text and ids: vocabularies, corpora, batches."""

from tfviz.doors import guard
from tfviz.text import batches, buckets, corpora, datasets, subwords, tasks
from tfviz.text.batches import GrowingWindows, RepeatedTokens, Streams, Windows, in_order
from tfviz.text.buckets import Buckets, add_special_tokens, pad, sentence_pairs
from tfviz.text.masking import MaskedTokens, WordDropout
from tfviz.text.subwords import Subwords
from tfviz.text.tokens import Bytes, Characters
from tfviz.text.vocabularies import bpe, letters, whole_words, wordpiece

__all__ = [
    "Buckets",
    "Bytes",
    "Characters",
    "GrowingWindows",
    "MaskedTokens",
    "RepeatedTokens",
    "Streams",
    "Subwords",
    "Windows",
    "WordDropout",
    "add_special_tokens",
    "batches",
    "bpe",
    "buckets",
    "corpora",
    "datasets",
    "in_order",
    "letters",
    "pad",
    "sentence_pairs",
    "subwords",
    "tasks",
    "whole_words",
    "wordpiece",
]

guard(globals(), __all__)
guard(vars(corpora), ["load", "split", "paths", "fetch", "parts", "verify"])
guard(vars(datasets), ["reviews", "pairs", "parallel"])
guard(vars(tasks), ["dates", "numbers", "copy", "reverse", "sort"])
