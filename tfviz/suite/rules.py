"""What a parameter of a lesson may be: rules, each a function of its name, its value and the values of all."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from tfviz import bounds, text
from tfviz.doors import what
from tfviz.text import tasks

Given = Mapping[str, Any]
Rule = Callable[[str, Any, Given], None]
Size = Callable[[Given], int]
MANY = 10**6  # more of anything would not end
WORDS = 100  # that a picture has room for


def whole(least: int = 1, most: int = MANY, of: tuple[int | str, ...] = ()) -> Rule:
    """A whole number; a multiple of the product of numbers and of other parameters."""

    def rule(name: str, value: Any, given: Given) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is {what(value)}; give a whole number")
        bounds.between(least, most, **{name: value})
        bounds.multiple(math.prod(given[part] if isinstance(part, str) else part for part in of), **{name: value})

    return rule


def number(look: Callable[..., None]) -> Rule:
    """A number of which one of `bounds` has to approve."""

    def rule(name: str, value: Any, given: Given) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"{name} is {what(value)}; give a number")
        look(**{name: value})

    return rule


def numbers(one: Rule) -> Rule:
    """A list, each of whose members obeys a rule."""

    def rule(name: str, value: Any, given: Given) -> None:
        if not isinstance(value, list) or not value:
            raise TypeError(f"{name} is {value!r}; give a list of numbers, such as [2, 4]")
        for place, member in enumerate(value):
            one(f"{name}[{place}]", member, given)

    return rule


def choice(*names: str) -> Rule:
    """One of these words."""
    return lambda name, value, given: bounds.one_of(names, **{name: value})


def words(least: int = 1, most: int = WORDS) -> Rule:
    """A text of so many words."""

    def rule(name: str, value: Any, given: Given) -> None:
        _string(name, value)
        if not least <= len(value.split()) <= most:
            asked = "one word" if most == 1 else f"{least} words" if least == most else f"{least} to {most} words"
            raise ValueError(f"{name} is {what(value)}; give a text of {asked}")

    return rule


def some_of(*names: str) -> Rule:
    """One or more of these words, in one string."""

    def rule(name: str, value: Any, given: Given) -> None:
        words()(name, value, given)
        for word in value.split():
            bounds.one_of(names, **{name: word})

    return rule


def letters(most: str) -> Rule:
    """A text of at least one letter, and at most as many as another parameter says."""

    def rule(name: str, value: Any, given: Given) -> None:
        _string(name, value)
        if not 1 <= len(value) <= given[most]:
            raise ValueError(f"{name} has {len(value)} letters; give 1 to {given[most]}, which is {most}")

    return rule


def corpus(least: Size) -> Rule:
    """The name of a text that can be read and is long enough."""

    def rule(name: str, value: Any, given: Given) -> None:
        _string(name, value)
        found, needed = text.corpora.load(value), least(given)
        if len(found) < needed:
            raise ValueError(f"{name} is {value!r}, a text of {len(found):,} letters; give one of {needed:,} or more")
        if len(set(found)) < 2:
            raise ValueError(f"{name} is {value!r}, a text of one letter only; there is nothing to learn from it")

    return rule


def prompt(name: str, value: Any, given: Given) -> None:
    """The beginning of a text, in letters that the corpus has, for models that know no others."""
    _string(name, value)
    found = text.corpora.load(given["corpus"])
    lacking = [letter for letter in dict.fromkeys(value) if letter not in set(found)]
    if lacking or not value:
        why = f"{given['corpus']!r} has no {lacking[0]!r}" if lacking else "it must have a letter"
        raise ValueError(f"{name} is {what(value)}; {why}; begin as that text does: {found[:9]!r}")


def short_prompt(name: str, value: Any, given: Given) -> None:
    """A prompt that the model can look back on."""
    prompt(name, value, given)
    letters("context")(name, value, given)


def of_dates(name: str, value: Any, given: Given) -> None:
    """A date in one of the languages, in words that their dates have."""
    words()(name, value, given)
    familiar(name, value, {word for one in _dates(given["languages"].split()) for word in one.source})


def of_task(name: str, value: Any, given: Given) -> None:
    """What the last model of lesson 07 is shown, in words of its task; any word is one of Multi30k's."""
    words()(name, value, given)
    if given["task"] != "multi30k":
        made = _dates(tasks.DATES) if given["task"] == "dates" else _numbers(tasks.NUMBERS)
        familiar(name, value.lower(), {word.lower() for one in made for word in one.source})


def gap(name: str, value: Any, given: Given) -> None:
    """A text with bars around one word."""
    _string(name, value)
    parts = value.split("|")
    if len(parts) != 3 or len(parts[1].split()) != 1:
        raise ValueError(f"{name} is {what(value)}; put bars around one word, as in 'the plot | was | good'")


def other_word(name: str, value: Any, given: Given) -> None:
    """One word, and not the last of the sentence."""
    words(1, 1)(name, value, given)
    if value.strip() == given["sentence"].split()[-1]:
        raise ValueError(f"{name} is {value!r}, the last word of the sentence already; give another")


def power(name: str, value: Any, given: Given) -> None:
    """A power of 2, at least 8."""
    whole(8)(name, value, given)
    if value.bit_count() != 1:
        raise ValueError(f"{name} is {value}; it must be a power of 2, such as {1 << value.bit_length() - 1}")


def any_words(name: str, value: Any, given: Given) -> None:
    """A text, which may be empty."""
    words(0)(name, value, given)


def _dates(languages: Iterable[str]) -> list[tasks.Example]:
    """So many that none of their words is missing."""
    return [one for language in languages for one in tasks.dates(1000, language, seed=1)]


def _numbers(languages: Iterable[str]) -> list[tasks.Example]:
    """Few, since they take time, but with each of their words: those below 20 have one of their own."""
    below = (20, tasks.LARGEST)
    return [one for own in languages for most in below for one in tasks.numbers(200, own, seed=1, below=most)]


def familiar(name: str, value: str, there: Collection[str]) -> None:
    """Every word is one of these."""
    if strange := next((word for word in value.split() if word not in there), ""):
        plain = sorted(filter(str.isalpha, there))
        some = ", ".join(plain[:: max(1, len(plain) // 8)])
        raise ValueError(f"{name} has {strange!r}, a word that is not in these texts; take theirs, such as {some}")


def _string(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {what(value)}; give a string")
