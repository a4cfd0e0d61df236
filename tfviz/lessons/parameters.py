"""Check the parameters of a lesson in its first cells, before minutes of training.

A parameter must have the type of its default. `COMMON_CHECKS` and `LESSON_CHECKS` add further conditions. They omit
conditions that a lesson's models and data check themselves before training.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from tfviz import checks
from tfviz.lessons import notebooks
from tfviz.text import corpora, tasks
from tfviz.text.subwords import SubwordTokenizer

Values = Mapping[str, Any]
Check = Callable[[str, Any, Values], None]  # takes the name and value of a parameter, and all values
MAX_INTEGER = 10**6  # larger numbers of anything would take too long
MAX_PICTURE_WORDS = 100


def check(lesson: str, values: Values) -> None:
    """Check all parameters of a lesson.

    Args:
        lesson: the name of a notebook, such as "12_gpt".
        values: the parameters by name, such as `globals()`; other names are ignored.

    Raises:
        LookupError: there is no such lesson or corpus, or a parameter has no value.
        TypeError: a value is of another type than the parameter's default.
        ValueError: the lesson cannot use a value.

    >>> check("01_attention_from_nothing", {"sentence": "a", "dim": 7, "steps": 9, "seed": 1, "runs": 3})
    Traceback (most recent call last):
    ValueError: dim is 7; it must be a multiple of 6, such as 12
    """
    (path,) = notebooks.find([lesson])
    defaults = notebooks.parameters(path)
    if missing := [name for name in defaults if name not in values]:
        raise LookupError(f"{missing[0]} has no value; run the cell of the parameters first")
    values = {name: values[name] for name in defaults}
    rules = {**COMMON_CHECKS, **LESSON_CHECKS.get(path.stem, {})}
    for name, default in defaults.items():
        notebooks.check_type(name, values[name], default)
        if rule := rules.get(name, integer() if type(default) is int else None):
            rule(name, values[name], values)


def known(tokenizer: SubwordTokenizer, **texts: str) -> None:
    """Check that each word of these texts is in the vocabulary, since all other words become the same token, [UNK].

    Args:
        tokenizer: the tokenizer with the vocabulary.
        texts: the texts by name of parameter.

    Raises:
        ValueError: a word is not in the vocabulary; the message names the text and the word.
    """
    for name, value in texts.items():
        _check_words(name, value, tokenizer.backend_tokenizer.get_vocab())


def begins(titles: Sequence[str], **texts: str) -> None:
    """Check that each of these texts is the beginning of at least one title.

    Args:
        titles: the titles.
        texts: the texts by name of parameter.

    Raises:
        ValueError: no title begins with a text; the message names it.
    """
    for name, value in texts.items():
        if not any(title.startswith(value) for title in titles):
            raise ValueError(f"{name} is {value!r}; no title begins with it; there are {', '.join(titles[:3])}, ...")


def integer(minimum: int = 1, maximum: int = MAX_INTEGER, multiple_of: tuple[int | str, ...] = (1,)) -> Check:
    """Return a check of an integer's range and divisibility.

    Args:
        minimum: the smallest valid value.
        maximum: the largest valid value.
        multiple_of: factors whose product must divide the value: numbers, or names of other parameters.
    """

    def check_value(name: str, value: int, values: Values) -> None:
        checks.between(minimum, maximum, **{name: value})
        factor = math.prod(values[part] if isinstance(part, str) else part for part in multiple_of)
        checks.multiple_of(factor, **{name: value})

    return check_value


def power_of_two(name: str, value: int, values: Values) -> None:
    """Check that an integer is a power of 2 and at least 8.

    Raises:
        ValueError: the value is below 8 or not a power of 2.
    """
    integer(8)(name, value, values)
    if value.bit_count() != 1:
        raise ValueError(f"{name} is {value}; it must be a power of 2, such as {1 << value.bit_length() - 1}")


def one_of(*names: str) -> Check:
    """Return a check that a string is one of these names."""
    return lambda name, value, values: checks.one_of(names, **{name: value})


def words(minimum: int = 1, maximum: int = MAX_PICTURE_WORDS, among: Collection[str] = ()) -> Check:
    """Return a check of a text's number of words, and, if `among` is not empty, that each word is in it."""

    def check_value(name: str, value: str, values: Values) -> None:
        if not minimum <= len(value.split()) <= maximum:
            needed = f"{minimum}" if minimum == maximum else f"{minimum} to {maximum}"
            raise ValueError(f"{name} is {reprlib.repr(value)}; give a text of {needed} words")
        for word in value.split() if among else []:
            checks.one_of(among, **{name: word})

    return check_value


def corpus(minimum: int, windows: int = 0) -> Check:
    """Return a check that the corpus loads and has at least max(`minimum`, `windows` × context) characters."""

    def check_value(name: str, value: str, values: Values) -> None:
        needed = max(minimum, windows * values.get("context", 0))
        text = corpora.load(value)
        if len(text) < needed:
            raise ValueError(f"{name} is {value!r}, a text of {len(text):,} letters; give one of {needed:,} or more")
        if len(set(text)) < 2:
            raise ValueError(f"{name} is {value!r}, a text of one letter only; there is nothing to learn from it")

    return check_value


def prompt(name: str, value: str, values: Values) -> None:
    """Check that a prompt is not empty, fits into the model's context, and has only characters of the corpus.

    Raises:
        ValueError: the prompt is empty, too long, or has a character that the corpus lacks.
    """
    text = corpora.load(values["corpus"])
    if not value or not set(value) <= set(text):
        raise ValueError(f"{name} is {value!r}; give letters that {values['corpus']!r} has, such as {text[:9]!r}")
    if len(value) > values.get("context", math.inf):
        raise ValueError(f"{name} has {len(value)} letters; give at most {values['context']}, which is context")


def date(name: str, value: str, values: Values) -> None:
    """Check that all words of a text occur in dates of the lesson's languages."""
    words()(name, value, values)
    _check_words(name, value, _words_of_dates(values["languages"].split()))


def task_sentence(name: str, value: str, values: Values) -> None:
    """Check that all words of a text occur in the lesson's task, ignoring case; with Multi30k, any word is valid."""
    words()(name, value, values)
    if values["task"] != "multi30k":
        vocabulary = _words_of_dates(tasks.DATE_LANGUAGES) if values["task"] == "dates" else _words_of_numbers()
        _check_words(name, value.lower(), {word.lower() for word in vocabulary})


def gap(name: str, value: str, values: Values) -> None:
    """Check that a text has bars around one word.

    Raises:
        ValueError: there are not exactly two bars around one word.
    """
    parts = value.split("|")
    if len(parts) != 3 or len(parts[1].split()) != 1:
        raise ValueError(f"{name} is {value!r}; put bars around one word, as in 'the plot | was | good'")


def fronts(name: str, value: str, values: Values) -> None:
    """Check that a text has 2 to 20 words of three Latin letters each, so that all words have the same length.

    Raises:
        ValueError: the number of words is out of range, or a word does not have three letters from A to z.
    """
    words(2, 20)(name, value, values)
    for word in value.split():
        if len(word) != 3 or not (word.isascii() and word.isalpha()):
            raise ValueError(f"{name} has {word!r}; each word must have three letters from A to z, such as 'And'")


def other_word(name: str, value: str, values: Values) -> None:
    """Check that a text is one word and differs from the last word of `sentence`.

    Raises:
        ValueError: the text is not one word, or is the last word of the sentence.
    """
    words(1, 1)(name, value, values)
    if value.strip() == values["sentence"].split()[-1]:
        raise ValueError(f"{name} is {value!r}, the last word of the sentence already; give another")


def _words_of_dates(languages: Iterable[str]) -> set[str]:
    """Return the words of dates, from so many random dates that no word should be missing."""
    return {word for language in languages for day in tasks.dates(1000, language, seed=1) for word in day.source}


def _words_of_numbers() -> set[str]:
    """Return the words of numbers, from random numbers below 20, which have words of their own, and of any size."""
    limits = [(language, below) for language in tasks.NUMBER_LANGUAGES for below in (20, tasks.MAX_NUMBER)]
    drawn = [number for language, below in limits for number in tasks.numbers(200, language, seed=1, below=below)]
    return {word for number in drawn for word in number.source}


def _check_words(name: str, value: str, vocabulary: Collection[str]) -> None:
    """Check that each word of a text is in a vocabulary."""
    if unknown := [word for word in value.split() if word not in vocabulary]:
        ordinary = sorted(filter(str.isalpha, vocabulary))
        examples = ", ".join(ordinary[:: max(1, len(ordinary) // 8)])
        raise ValueError(
            f"{name} has {unknown[0]!r}, a word that is not in these texts; take theirs, such as {examples}"
        )


LAYER_COUNT_CHECK = integer(maximum=100)
COMMON_CHECKS: dict[str, Check] = {
    "layers": LAYER_COUNT_CHECK, "blocks": LAYER_COUNT_CHECK, "rounds": LAYER_COUNT_CHECK,
    "dim": integer(multiple_of=(2, "heads")),
    "dropout": lambda name, value, values: checks.fraction_below_one(**{name: value}),
    "seed": integer(0, 10**9), "runs": integer(maximum=9),
}  # fmt: skip
TRANSLATION_CHECKS: dict[str, Check] = {"task": one_of("numbers", "dates", "multi30k"), "sentence": task_sentence}
LESSON_CHECKS: dict[str, dict[str, Check]] = {
    "01_attention_from_nothing": {"sentence": words(maximum=12), "dim": integer(multiple_of=(6,))},
    "02_recommender": {
        "ratings": one_of("made", "movielens"), "dim": integer(2), "splits": integer(2, 9), "film": words(),
    },
    "03_masks": {
        "sentence": words(), "letters": integer(2, 26), "context": integer(2), "people": integer(4, 1000),
        "dim": integer(multiple_of=(4,)),
    },
    "04_positions": {"context": integer(multiple_of=(4,)), "corpus": corpus(1000, 50)},
    "05_recurrent": {
        "between": words(0), "hidden": integer(multiple_of=(4,)), "steps": integer(2), "longest": power_of_two,
        "corpus": corpus(1000), "prompt": prompt,
    },
    "06_alignment": {
        "longest": integer(4, 1000), "hidden": integer(4, multiple_of=(2,)),
        "languages": words(among=tasks.DATE_LANGUAGES),
        "new_dates": integer(9), "date": date, "runs": integer(2, 9),
    },
    "07_transformer": TRANSLATION_CHECKS,
    "08_training_it": {
        "steps": integer(2), "short": integer(2), "dim": integer(multiple_of=(4, "heads")), "few": integer(maximum=100),
    },
    "09_decoding_and_cost": TRANSLATION_CHECKS,
    "10_classifier": {"reviews": one_of("made", "imdb"), "sentence": words()},
    "11_bert": {"pieces": corpus(1000), "sentence": gap},
    "12_gpt": {"context": integer(4), "corpus": corpus(21_000, 100), "prompt": prompt},
    "13_long_context": {
        "context": integer(multiple_of=(4,)), "dim": integer(multiple_of=(4, "heads")), "drills": integer(20),
        "corpus": corpus(21_000, 100),
    },
    "14_cost": {"batch": integer(multiple_of=(4,)), "corpus": corpus(10_500, 50)},
    "15_side_by_side": {"sentence": words(11, 11), "instead": other_word},
    "16_your_model": {"sentence": words(3, 20), "corpus": corpus(20_000)},
    "17_investigation": {
        "fronts": fronts, "rows": integer(2, 1000), "length": integer(12, 256), "pushes": integer(2, 50),
    },
}  # fmt: skip
