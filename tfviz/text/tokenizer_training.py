"""Training of tokenizers with the library `tokenizers`: byte-pair encoding, WordPiece, whole words, characters."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from tfviz.checks import between
from tfviz.extras import extra
from tfviz.text.subwords import SPECIAL_TOKENS, SubwordTokenizer

MAX_WORD_LENGTH = 100  # characters; longer words are split, since the trainer's time grows with the square
LONG_WORD_PART = re.compile(rf"\S{{{MAX_WORD_LENGTH}}}|\s{{{MAX_WORD_LENGTH}}}")
MAX_VOCAB_SIZE = 10**8  # tokens; the trainer allocates memory for all of them at the start


def train_bpe(texts: Iterable[str], vocab_size: int = 8000, *, lower: bool = False) -> SubwordTokenizer:
    """Train a byte-level BPE tokenizer, which encodes any text and decodes it exactly (Sennrich et al. 2016).

    In training, a word of more than 100 characters is split into parts of that length; no merge crosses two parts.

    Args:
        texts: the texts to learn from.
        vocab_size: number of tokens, including special tokens and the 256 bytes.
        lower: convert texts to lower case, in training and in encoding.

    Raises:
        ValueError: `vocab_size` is too small, or there is no text.
    """
    with extra("lessons"):
        from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Lowercase() if lower else normalizers.Sequence([])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(**_trainer_options(vocab_size, len(alphabet)), initial_alphabet=alphabet)
    return _train(tokenizer, trainer, _split_long_words(_check_texts(texts)))


def train_wordpiece(texts: Iterable[str], vocab_size: int = 8000, *, lower: bool = True) -> SubwordTokenizer:
    """Train a WordPiece tokenizer as in BERT, with `##` before pieces inside a word (Devlin et al. 2019).

    Args:
        texts: the texts to learn from.
        vocab_size: number of tokens, including special tokens and every letter, alone and inside a word.
        lower: convert texts to lower case and remove accents.
    """
    with extra("lessons"):
        from tokenizers import models, trainers

    texts, tokenizer = _check_texts(texts), _bert_tokenizer(models.WordPiece(), lower)
    alone, inside = _alphabet(tokenizer, texts)
    options = _trainer_options(vocab_size, len(alone) + len(inside))
    # The trainer orders characters inside words by hash, differently each run; as special tokens their order is fixed
    options["special_tokens"] += [f"##{letter}" for letter in inside]
    tokenizer.train_from_iterator(_split_long_words(texts), trainers.WordPieceTrainer(**options))
    tokenizer = _bert_tokenizer(models.WordPiece(tokenizer.get_vocab(), unk_token="[UNK]"), lower)
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return SubwordTokenizer(tokenizer)


def train_whole_words(texts: Iterable[str], vocab_size: int = 30_000, *, lower: bool = False) -> SubwordTokenizer:
    """Train a word-level tokenizer of the most frequent words and runs of punctuation; all others become `[UNK]`.

    Args:
        texts: the texts to learn from.
        vocab_size: number of tokens, including special tokens.
        lower: convert texts to lower case.
    """
    with extra("lessons"):
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase() if lower else normalizers.Sequence([])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return _train(tokenizer, trainers.WordLevelTrainer(**_trainer_options(vocab_size)), _check_texts(texts))


def train_characters(texts: Iterable[str], vocab_size: int = 1000) -> SubwordTokenizer:
    """Train a tokenizer of the most frequent characters, `vocab_size` with special tokens; others become `[UNK]`."""
    with extra("lessons"):
        from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return _train(tokenizer, trainers.WordLevelTrainer(**_trainer_options(vocab_size)), _check_texts(texts))


def _trainer_options(vocab_size: int, alphabet: int = 0) -> dict[str, Any]:
    min_size = len(SPECIAL_TOKENS) + alphabet + 1
    if vocab_size < min_size:
        raise ValueError(
            f"vocab_size is {vocab_size}; it must be at least {min_size}, since {min_size - 1} tokens are taken already"
        )
    between(min_size, MAX_VOCAB_SIZE, vocab_size=vocab_size)
    return {"vocab_size": vocab_size, "special_tokens": list(SPECIAL_TOKENS), "show_progress": False}


def _check_texts(texts: Iterable[str]) -> list[str]:
    texts = [texts] if isinstance(texts, str) else list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {index} is a {type(text).__name__}; tokenizers learn from strings")
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise ValueError(f"text {index} has a lone surrogate, U+D800 to U+DFFF, which is not text")
    if not any(text.strip() for text in texts):
        raise ValueError("there is no text to build a tokenizer from")
    return texts


def _split_long_words(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts, cut wherever a word or a gap between words is longer than `MAX_WORD_LENGTH`."""
    for text in texts:
        start = 0
        for word in LONG_WORD_PART.finditer(text):
            yield text[start : word.end()]
            start = word.end()
        yield text[start:]


def _train(tokenizer: Any, trainer: Any, texts: Iterable[str]) -> SubwordTokenizer:
    tokenizer.train_from_iterator(texts, trainer)
    return SubwordTokenizer(tokenizer)


def _bert_tokenizer(model: Any, lower: bool) -> Any:
    """Return a tokenizer that cleans and splits text as BERT does."""
    with extra("lessons"):
        from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers

    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _alphabet(tokenizer: Any, texts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the letters that occur in words, and those of them that can stand inside a word."""

    def words(text: str) -> list[tuple]:
        return tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text))

    letters = sorted({letter for sign in set().union(*texts) for word, _ in words(sign) for letter in word})
    return letters, [letter for letter in letters if len(words("a" + letter)) == 1]
