"""Synthetic translation tasks with gold word alignments: dates, numbers, and letters to copy, reverse or sort.

The alignments define where attention should look. Each word is one token: no word contains white space, so that words
can be joined by spaces without loss.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import product, takewhile

import numpy

from tfviz import checks
from tfviz.extras import extra
from tfviz.text.synthetic_reviews import SyntheticReview, check_count, synthetic_reviews

__all__ = ["Example", "SyntheticReview", "copy", "dates", "numbers", "reverse", "sort", "synthetic_reviews"]

DATE_LANGUAGES = ("en", "de", "fr", "zh")
NUMBER_LANGUAGES = ("en", "de", "fr", "ja")
ISO_DATE_FORMAT = "yyyy-MM-dd"
FIRST_DATE, DAY_COUNT = date(1950, 1, 1), 36525  # up to 2049-12-31
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MAX_LETTERS = 1_000_000  # letters in a source
MAX_NUMBER = 1_000_000
WORD_PATTERN = re.compile(r"\d+|[^\W\d_]+|[^\w\s]|_")

Order = Callable[[Sequence[str]], list[int]]


@dataclass(frozen=True)
class Example:
    """A source and its target, with their gold alignment.

    Attributes:
        source: the words of the source.
        target: the words of the target.
        gold: the alignment, as pairs (target position, source position) of words.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    gold: frozenset[tuple[int, int]]


def dates(count: int, source: str = "en", target: str = "iso", *, seed: int = 0) -> list[Example]:
    """Draw dates from 1950 to 2049 in everyday formats, to be rewritten in one fixed format.

    The source is in any of the formats that the Unicode locale data (CLDR, read by Babel) have for its language, except
    those with a two-digit year. Each language has one order of fields, so 3 / 5 is never ambiguous. Every word of a
    year, month or day is aligned with every word of the same field, including the dot of "janv ."; weekdays and the
    text between fields are not aligned.

    Args:
        count: the number of dates.
        source: en, de, fr or zh.
        target: `iso` (2021-03-05), or en, de, fr or zh for the `long` format of that language.
        seed: the seed of the random numbers.

    >>> example = dates(1, "en", seed=2)[0]
    >>> " ".join(example.source), " ".join(example.target)
    ('October 4 , 2033', '2033 - 10 - 04')
    >>> sorted(example.gold)
    [(0, 3), (2, 0), (4, 1)]
    """
    generator = _generator(count, seed)
    patterns, pattern = _patterns(source), _target(target)
    examples = []
    for _ in range(count):
        day = FIRST_DATE + timedelta(days=int(generator.integers(DAY_COUNT)))
        source_words = _date_words(day, patterns[generator.integers(len(patterns))], source)
        examples.append(_align(source_words, _date_words(day, pattern, "en" if target == "iso" else target)))
    return examples


def numbers(count: int, language: str = "en", *, seed: int = 0, below: int = MAX_NUMBER) -> list[Example]:
    """Draw numbers spelled out by num2words, to be written in digits; all numbers of digits are equally likely.

    Hyphens and commas are removed, German compounds are split, and each Japanese character is a word. The gold
    alignment is found in the same way in every language: a digit is aligned with the words that disappear when only
    this digit becomes 0. These are the words between the common prefix and the common suffix of the two spellings; a
    final s, as in "eins" or "cents", is ignored. So "thirteen" is aligned with both of its digits, "hundred" with one,
    "thousand" in "twelve thousand" with none, and "and" with every digit without which it would be absent. A digit 0
    is aligned with no word.

    Args:
        count: the number of examples.
        language: en, de, fr or ja.
        seed: the seed of the random numbers.
        below: exclusive upper bound of the numbers, at most 1,000,000.

    >>> example = numbers(1, "de", seed=26, below=1000)[0]
    >>> " ".join(example.source), " ".join(example.target)
    ('fünf hundert zwei und vierzig', '5 4 2')
    >>> sorted(example.gold)
    [(0, 0), (0, 1), (1, 3), (1, 4), (2, 2), (2, 3)]
    """
    generator, spell_out = _generator(count, seed), _spell(language)
    checks.between(1, MAX_NUMBER, below=below)
    examples = []
    for _ in range(count):
        length = int(generator.integers(1, len(str(below - 1)) + 1))
        low = 10 ** (length - 1) if length > 1 else 0
        examples.append(_number_example(int(generator.integers(low, min(10**length, below))), spell_out))
    return examples


def copy(count: int, length: tuple[int, int] = (3, 9), vocab_size: int = 26, *, seed: int = 0) -> list[Example]:
    """Draw sequences of random letters, to be copied.

    Args:
        count: the number of examples.
        length: the minimum and the maximum number of letters in a sequence.
        vocab_size: the number of letters to draw from, counted from a; at most 26.
        seed: the seed of the random numbers.

    >>> example = copy(1, (2, 3), vocab_size=3)[0]
    >>> example.source == example.target, sorted(example.gold)
    (True, [(0, 0), (1, 1), (2, 2)])
    """
    return _letter_examples(count, length, vocab_size, seed, lambda letters: list(range(len(letters))))


def reverse(count: int, length: tuple[int, int] = (3, 9), vocab_size: int = 26, *, seed: int = 0) -> list[Example]:
    """Draw sequences of random letters, to be reversed; the arguments are those of `copy`."""
    return _letter_examples(count, length, vocab_size, seed, lambda letters: list(range(len(letters)))[::-1])


def sort(count: int, length: tuple[int, int] = (3, 9), vocab_size: int = 26, *, seed: int = 0) -> list[Example]:
    """Draw sequences of random letters, to be sorted; the arguments are those of `copy`.

    Equal letters keep their order.
    """
    return _letter_examples(
        count, length, vocab_size, seed, lambda letters: sorted(range(len(letters)), key=letters.__getitem__)
    )


def _patterns(language: str) -> list[str]:
    """Return the language's formats for year (of four digits), month and day, with or without a weekday."""
    with extra("lessons"):
        from babel import Locale

    checks.one_of(DATE_LANGUAGES, source=language)
    locale = Locale.parse(language)
    formats = [*locale.date_formats.values(), *locale.datetime_skeletons.values()]
    parts = {form.pattern: dict(_split_pattern(form.pattern)) for form in formats}
    complete = [pattern for pattern in parts if {"y", "M", "d"} <= parts[pattern].keys() <= {"", "y", "M", "d", "E"}]
    return [pattern for pattern in complete if parts[pattern]["y"] != "yy"]


def _target(language: str) -> str:
    with extra("lessons"):
        from babel import Locale

    checks.one_of(("iso", *DATE_LANGUAGES), target=language)
    return ISO_DATE_FORMAT if language == "iso" else Locale.parse(language).date_formats["long"].pattern


def _split_pattern(pattern: str) -> list[tuple[str, str]]:
    """Split a pattern into parts, each with its field: y, M, d or E, or an empty one for text between fields."""
    with extra("lessons"):
        from babel.dates import tokenize_pattern, untokenize_pattern

    parts = tokenize_pattern(pattern)
    return [(part[0] if kind == "field" else "", untokenize_pattern([(kind, part)])) for kind, part in parts]


def _date_words(day: date, pattern: str, language: str) -> list[tuple[str, str]]:
    """Return the words of a date, each with its field's letter."""
    with extra("lessons"):
        from babel.dates import format_date

    texts = [(field, format_date(day, part, language)) for field, part in _split_pattern(pattern)]
    return [(field, word) for field, text in texts for word in WORD_PATTERN.findall(text)]


def _align(read: list[tuple[str, str]], written: list[tuple[str, str]]) -> Example:
    """Return an example from (field, word) pairs of a source and a target; words of the same field are aligned."""
    pairs = product(enumerate(written), enumerate(read))
    gold = frozenset((t, s) for (t, (goal, _)), (s, (field, _)) in pairs if field and field == goal)
    return Example(tuple(word for _, word in read), tuple(word for _, word in written), gold)


def _spell(language: str) -> Callable[[int], list[str]]:
    with extra("lessons"):
        from num2words import CONVERTER_CLASSES, num2words

    checks.one_of(NUMBER_LANGUAGES, language=language)
    atoms = {*(word for value, word in CONVERTER_CLASSES["de"].cards.items() if value <= 1000), "ein", "und"}
    longest_first = "|".join(sorted(atoms, key=len, reverse=True))  # neunzehn is not neun and zehn
    word = re.compile({"de": longest_first, "ja": r"\w"}.get(language, r"\w+"))
    return lambda number: word.findall(num2words(number, lang=language))


def _number_example(number: int, spell_out: Callable[[int], list[str]]) -> Example:
    source, digits = spell_out(number), str(number)
    gold = set()
    for index, digit in enumerate(digits):
        without = spell_out(number - int(digit) * 10 ** (len(digits) - 1 - index))
        gold |= {(index, word) for word in _removed_words(source, without)} if digit != "0" else set()
    return Example(tuple(source), tuple(digits), frozenset(gold))


def _removed_words(words: list[str], others: list[str]) -> range:
    """Return the indices of `words` between the prefix and the suffix that they have in common with `others`."""
    a, b = ([word.removesuffix("s") for word in side] for side in (words, others))
    # The suffix first: "three hundred and three" without its hundreds keeps its last "three", not its first.
    end = _common_prefix(a[::-1], b[::-1])
    return range(_common_prefix(a[: len(a) - end], b[: len(b) - end]), len(a) - end)


def _common_prefix(a: list[str], b: list[str]) -> int:
    """Return the number of words in the common prefix."""
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(a, b))])


def _letter_examples(count: int, length: tuple[int, int], vocab_size: int, seed: int, order: Order) -> list[Example]:
    generator = _generator(count, seed)
    if not 1 <= length[0] <= length[1] or length[1] > MAX_LETTERS:
        raise ValueError(
            f"length is {length}; give the shortest, at least 1, and the longest, as in (3, 9), at most {MAX_LETTERS:,}"
        )
    checks.between(1, len(LETTERS), vocab_size=vocab_size)
    drawn = (generator.integers(vocab_size, size=generator.integers(length[0], length[1] + 1)) for _ in range(count))
    sources = [tuple(LETTERS[letter] for letter in letters) for letters in drawn]
    ordered = [(source, order(source)) for source in sources]
    return [
        Example(s, tuple(s[position] for position in positions), frozenset(enumerate(positions)))
        for s, positions in ordered
    ]


def _generator(count: int, seed: int) -> numpy.random.Generator:
    check_count(count, seed)
    return numpy.random.default_rng(seed)
