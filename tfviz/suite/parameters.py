"""What the parameters of each lesson may be, looked at in its setup: at once, not after minutes of training.

`check("10_gpt", globals())` tells the first that does not fit, in one sentence. `RULES` has a rule for every parameter
of every lesson: a function of its name, its value and the values of all. What a lesson's models and data look at
themselves before anything is trained (a width that this machine has no memory for) needs no second rule here.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfviz import bounds, text
from tfviz.doors import what
from tfviz.text.subwords import UNK, Subwords

Given = Mapping[str, Any]
Rule = Callable[[str, Any, Given], None]
Size = Callable[[Given], int]
MANY = 10**6  # more of anything would not end
WORDS = 100  # that a picture has room for


def check(lesson: str, given: Given) -> None:
    """Look at all parameters of a lesson.

    Args:
        given: their values by name, such as `globals()`; what else it holds does not matter.

    Raises:
        LookupError: there is no such lesson, no such corpus, or a parameter without a value.
        TypeError: a value is of another kind than the parameter.
        ValueError: a value that the lesson cannot use.

    >>> check("01_attention_from_nothing", {"sentence": "a b", "dim": 7, "steps": 9, "seed": 1})
    Traceback (most recent call last):
    ValueError: dim is 7; it must be a multiple of 6, such as 12
    """
    if lesson not in RULES:
        raise LookupError(f"there is no lesson {lesson!r}; there are: {', '.join(RULES)}")
    if missing := [name for name in RULES[lesson] if name not in given]:
        raise LookupError(f"{missing[0]} has no value; run the cell of the parameters first")
    for name, rule in RULES[lesson].items():
        rule(name, given[name], given)


def known(vocab: Subwords, **given: str) -> None:
    """Every word of these texts is in the vocabulary; a model would read all others alike, as [UNK]."""
    for name, value in given.items():
        rows = vocab.encode_all(value.split())
        if strange := [word for word, ids in zip(value.split(), rows) if UNK in ids.tolist()]:
            there = sorted(word for word in vocab.tokenizer.get_vocab() if word.isalpha())
            some = ", ".join(there[:: max(1, len(there) // 8)])
            raise ValueError(
                f"{name} has {strange[0]!r}, a word that is not in these texts; take theirs, such as {some}"
            )


def begins(titles: Sequence[str], **given: str) -> None:
    """Each of these texts is how at least one of the titles begins."""
    for name, value in given.items():
        if not any(title.startswith(value) for title in titles):
            raise ValueError(f"{name} is {what(value)}; no title begins so; there are {', '.join(titles[:3])}, ...")


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


def _string(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {what(value)}; give a string")


LAYERS, WIDE = whole(1, 100), whole(of=(2, "heads"))
SEED = whole(0, 10**9)
MODEL = {"layers": LAYERS, "heads": whole(), "dim": WIDE}
RULES: dict[str, dict[str, Rule]] = {
    "01_attention_from_nothing": {"sentence": words(), "dim": whole(of=(6,)), "steps": whole(), "seed": SEED},
    "02_recommender": {
        "ratings": choice("made", "movielens"), "dim": whole(2), "steps": whole(),
        "rate": number(lambda **given: bounds.between(1e-9, 10, **given)), "seed": SEED, "film": words(),
    },
    "03_masks": {
        "sentence": words(), "letters": whole(2), "context": whole(), "people": whole(3, 1000), "rounds": LAYERS,
        "dim": whole(of=(4,)), "steps": whole(), "seed": SEED,
    },
    "04_positions": {
        "context": whole(of=(4,)), **MODEL, "batch": whole(), "steps": whole(), "drills": whole(), "length": whole(4),
        "seed": SEED, "corpus": corpus(lambda given: max(1000, 50 * given["context"])),
    },
    "05_recurrent": {
        "between": any_words, "hidden": whole(of=(4,)), "steps": whole(2), "longest": power, "reading": whole(),
        "labels": whole(), "seed": SEED, "corpus": corpus(lambda given: 1000), "prompt": prompt, "length": whole(),
    },
    "06_alignment": {
        "task": choice("reverse", "copy", "sort"), "longest": whole(8, 1000), "hidden": whole(4, of=(2,)),
        "steps": whole(), "languages": some_of("en", "de", "fr", "zh"), "date_steps": whole(), "date": words(),
        "seed": SEED,
    },
    "07_transformer": {
        "task": choice("numbers", "dates", "multi30k"), "sentence": words(), "steps": whole(), "blocks": LAYERS,
        "heads": whole(), "dim": whole(of=(2, "heads")), "short": whole(6), "dropout": number(bounds.share),
        "depths": numbers(LAYERS), "seed": SEED,
    },
    "08_classifier": {
        "reviews": choice("made", "imdb"), **MODEL, "steps": whole(20), "epochs": whole(), "words": whole(400),
        "seed": SEED, "sentence": words(),
    },
    "09_bert": {
        "reviews": choice("made", "imdb"), "pieces": corpus(lambda given: 1000), **MODEL, "length": whole(8),
        "steps": whole(), "labels": whole(), "seed": SEED, "sentence": gap,
    },
    "10_gpt": {
        "context": whole(4), **MODEL, "batch": whole(), "steps": whole(), "seed": SEED,
        "corpus": corpus(lambda given: max(21_000, 100 * given["context"])), "prompt": short_prompt,
        "length": whole(3),
    },
    "11_long_context": {
        "segment": whole(4), **MODEL, "batch": whole(), "steps": whole(25), "long": whole(2), "stride": whole(),
        "seed": SEED, "corpus": corpus(lambda given: max(22_000, 500 * given["segment"], 20 * given["long"])),
    },
    "12_cost": {
        "context": whole(), **MODEL, "batch": whole(of=(4,)), "steps": whole(), "longest": whole(32), "seed": SEED,
        "corpus": corpus(lambda given: max(10_500, 50 * given["context"])),
    },
    "13_side_by_side": {
        "sentence": words(11, 11), "instead": other_word, **MODEL, "batch": whole(), "steps": whole(),
        "longer": whole(), "seed": SEED,
    },
    "14_your_model": {
        "context": whole(), "sentence": letters("context"), "layers": whole(2, 100), "heads": whole(),
        "dim": whole(of=("heads",)), "batch": whole(), "steps": whole(), "seed": SEED,
        "corpus": corpus(lambda given: max(1000, 2 * given["context"])),
    },
}  # fmt: skip
