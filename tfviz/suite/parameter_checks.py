"""Checks of one value of a lesson's parameter; each is a function of its name, its value and the values of all."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from tfviz import checks, text
from tfviz.text import tasks

Values = Mapping[str, Any]
Check = Callable[[str, Any, Values], None]
LARGEST = 10**6  # more of anything would not end
WORDS = 100  # words that a picture has room for


def integer(least: int = 1, most: int = LARGEST, multiple_of: tuple[int | str, ...] = (1,)) -> Check:
    """Return a check of an integer's range; `multiple_of` has factors: numbers, or names of other parameters."""

    def check_value(name: str, value: int, values: Values) -> None:
        checks.between(least, most, **{name: value})
        factor = math.prod(values[part] if isinstance(part, str) else part for part in multiple_of)
        checks.multiple_of(factor, **{name: value})

    return check_value


def power_of_two(name: str, value: int, values: Values) -> None:
    """Check that an integer is a power of 2, at least 8."""
    integer(8)(name, value, values)
    if value.bit_count() != 1:
        raise ValueError(f"{name} is {value}; it must be a power of 2, such as {1 << value.bit_length() - 1}")


def fraction(name: str, value: float, values: Values) -> None:
    """Check that a number is at least 0 and below 1."""
    checks.fraction(**{name: value})


def one_of(*names: str) -> Check:
    """Return a check that a string is one of these."""
    return lambda name, value, values: checks.one_of(names, **{name: value})


def some_of(*names: str) -> Check:
    """Return a check that each word of a string is one of these, and that it has a word."""

    def check_value(name: str, value: str, values: Values) -> None:
        words()(name, value, values)
        for word in value.split():
            checks.one_of(names, **{name: word})

    return check_value


def words(least: int = 1, most: int = WORDS) -> Check:
    """Return a check of a text's number of words."""

    def check_value(name: str, value: str, values: Values) -> None:
        if not least <= len(value.split()) <= most:
            needed = f"{least}" if least == most else f"{least} to {most}"
            raise ValueError(f"{name} is {reprlib.repr(value)}; give a text of {needed} words")

    return check_value


def corpus(least: int, windows: int = 0) -> Check:
    """Return a check that a corpus can be read and has letters enough: `least`, and `windows` times the context."""

    def check_value(name: str, value: str, values: Values) -> None:
        needed = max(least, windows * values.get("context", 0))
        found = text.corpora.load(value)
        if len(found) < needed:
            raise ValueError(f"{name} is {value!r}, a text of {len(found):,} letters; give one of {needed:,} or more")
        if len(set(found)) < 2:
            raise ValueError(f"{name} is {value!r}, a text of one letter only; there is nothing to learn from it")

    return check_value


def prompt(name: str, value: str, values: Values) -> None:
    """Check that a prompt has letters that the corpus has, at least one, and not more than the model's context."""
    found = text.corpora.load(values["corpus"])
    if not value or not set(value) <= set(found):
        raise ValueError(f"{name} is {value!r}; give letters that {values['corpus']!r} has, such as {found[:9]!r}")
    if len(value) > values.get("context", math.inf):
        raise ValueError(f"{name} has {len(value)} letters; give at most {values['context']}, which is context")


def date(name: str, value: str, values: Values) -> None:
    """Check that a text has words that dates in the lesson's languages have."""
    words()(name, value, values)
    check_words(name, value, _words_of_dates(values["languages"].split()))


def task_sentence(name: str, value: str, values: Values) -> None:
    """Check that a text has words of the lesson's task, in small letters or capitals; Multi30k's takes any word."""
    words()(name, value, values)
    if values["task"] != "multi30k":
        known_words = _words_of_dates(tasks.DATES) if values["task"] == "dates" else _words_of_numbers(tasks.NUMBERS)
        check_words(name, value.lower(), {word.lower() for word in known_words})


def gap(name: str, value: str, values: Values) -> None:
    """Check that a text has bars around one word."""
    parts = value.split("|")
    if len(parts) != 3 or len(parts[1].split()) != 1:
        raise ValueError(f"{name} is {value!r}; put bars around one word, as in 'the plot | was | good'")


def other_word(name: str, value: str, values: Values) -> None:
    """Check that a text is one word, and not the last of the sentence."""
    words(1, 1)(name, value, values)
    if value.strip() == values["sentence"].split()[-1]:
        raise ValueError(f"{name} is {value!r}, the last word of the sentence already; give another")


def _words_of_dates(languages: Iterable[str]) -> set[str]:
    """Return the words of so many dates that none is missing."""
    return {word for each in languages for example in tasks.dates(1000, each, seed=1) for word in example.source}


def _words_of_numbers(languages: Iterable[str]) -> set[str]:
    """Return the words of numbers; those below 20 have words of their own."""
    drawn = [tasks.numbers(200, each, seed=1, below=most) for each in languages for most in (20, tasks.LARGEST)]
    return {word for examples in drawn for example in examples for word in example.source}


def check_words(name: str, value: str, vocabulary: Collection[str]) -> None:
    """Check that each word of a text is in a vocabulary."""
    if strange := [word for word in value.split() if word not in vocabulary]:
        ordinary = sorted(filter(str.isalpha, vocabulary))
        some = ", ".join(ordinary[:: max(1, len(ordinary) // 8)])
        raise ValueError(f"{name} has {strange[0]!r}, a word that is not in these texts; take theirs, such as {some}")
