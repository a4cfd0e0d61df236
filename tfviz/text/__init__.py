"""Text as token ids: tokenizers, corpora, batches."""

from tfviz.text import batches, buckets, corpora, datasets, subwords, tasks
from tfviz.text.batches import GrowingWindows, RepeatedTokens, Streams, Windows, in_order
from tfviz.text.buckets import Buckets, add_special_tokens, pad, sentence_pairs
from tfviz.text.char_tokenizers import ByteTokenizer, CharacterTokenizer
from tfviz.text.masking import MaskedTokens, TokenDropout
from tfviz.text.subwords import SubwordTokenizer
from tfviz.text.tokenizer_training import train_bpe, train_characters, train_whole_words, train_wordpiece
from tfviz.validation import validate_public

__all__ = [
    "Buckets",
    "ByteTokenizer",
    "CharacterTokenizer",
    "GrowingWindows",
    "MaskedTokens",
    "RepeatedTokens",
    "Streams",
    "SubwordTokenizer",
    "TokenDropout",
    "Windows",
    "add_special_tokens",
    "batches",
    "buckets",
    "corpora",
    "datasets",
    "in_order",
    "pad",
    "sentence_pairs",
    "subwords",
    "tasks",
    "train_bpe",
    "train_characters",
    "train_whole_words",
    "train_wordpiece",
]  # fmt: skip

validate_public(globals(), __all__)
validate_public(vars(corpora), ["load", "split", "paths", "fetch", "readable_files", "verify"])
validate_public(vars(datasets), ["reviews", "pairs", "parallel"])
validate_public(vars(tasks), ["dates", "numbers", "copy", "reverse", "sort"])
