"""Checks of the parameters of each lesson, made in its setup: at once, not after minutes of training.

A parameter is of the type that its default has. `COMMON` and `LESSONS` add what a value must be besides; what a
lesson's models and data check themselves before anything is trained needs no second check here.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfviz.suite import notebooks
from tfviz.suite import parameter_checks as checks
from tfviz.suite.parameter_checks import Check, Values, corpus, integer, one_of, words
from tfviz.text.subwords import Subwords


def check(lesson: str, values: Values) -> None:
    """Check all parameters of a lesson.

    Args:
        lesson: the name of a notebook, such as "12_gpt".
        values: the parameters by name, such as `globals()`; what else it holds does not matter.

    Raises:
        LookupError: there is no such lesson, no such corpus, or a parameter has no value.
        TypeError: a value is of another type than the parameter's default.
        ValueError: a value that the lesson cannot use.

    >>> check("01_attention_from_nothing", {"sentence": "a", "dim": 7, "steps": 9, "seed": 1, "trainings": 3})
    Traceback (most recent call last):
    ValueError: dim is 7; it must be a multiple of 6, such as 12
    """
    (path,) = notebooks.find([lesson])
    defaults = notebooks.parameters(path)
    if missing := [name for name in defaults if name not in values]:
        raise LookupError(f"{missing[0]} has no value; run the cell of the parameters first")
    values = {name: values[name] for name in defaults}
    own = {**COMMON, **LESSONS.get(path.stem, {})}
    for name, default in defaults.items():
        notebooks.check_type(name, values[name], default)
        check_value = own.get(name, integer() if type(default) is int else None)
        if check_value:
            check_value(name, values[name], values)


def known(vocab: Subwords, **texts: str) -> None:
    """Check that each word of these texts is a token of the vocabulary; a model reads all others alike, as [UNK].

    Raises:
        ValueError: names the text and the word.
    """
    for name, value in texts.items():
        checks.check_words(name, value, vocab.tokenizer.get_vocab())


def begins(titles: Sequence[str], **texts: str) -> None:
    """Check that each of these texts is the beginning of at least one of the titles.

    Raises:
        ValueError: names the text.
    """
    for name, value in texts.items():
        if not any(title.startswith(value) for title in titles):
            raise ValueError(f"{name} is {value!r}; no title begins so; there are {', '.join(titles[:3])}, ...")


LAYERS = integer(most=100)
COMMON: dict[str, Check] = {
    "layers": LAYERS, "blocks": LAYERS, "rounds": LAYERS, "dim": integer(multiple_of=(2, "heads")),
    "dropout": checks.fraction, "seed": integer(0, 10**9), "trainings": integer(most=9),
}  # fmt: skip
TRANSLATION: dict[str, Check] = {"task": one_of("numbers", "dates", "multi30k"), "sentence": checks.task_sentence}
LESSONS: dict[str, dict[str, Check]] = {
    "01_attention_from_nothing": {"sentence": words(most=12), "dim": integer(multiple_of=(6,))},
    "02_recommender": {
        "ratings": one_of("made", "movielens"), "dim": integer(2), "splits": integer(2, 9), "film": words(),
    },
    "03_masks": {
        "sentence": words(), "letters": integer(2, 26), "context": integer(2), "people": integer(4, 1000),
        "dim": integer(multiple_of=(4,)),
    },
    "04_positions": {"context": integer(multiple_of=(4,)), "corpus": corpus(1000, 50)},
    "05_recurrent": {
        "between": words(0), "hidden": integer(multiple_of=(4,)), "steps": integer(2), "longest": checks.power_of_two,
        "corpus": corpus(1000), "prompt": checks.prompt,
    },
    "06_alignment": {
        "longest": integer(4, 1000), "hidden": integer(4, multiple_of=(2,)),
        "languages": checks.some_of("en", "de", "fr", "zh"), "new_dates": integer(9), "date": checks.date,
        "trainings": integer(2, 9),
    },
    "07_transformer": TRANSLATION,
    "08_training_it": {
        "steps": integer(2), "short": integer(2), "dim": integer(multiple_of=(4, "heads")), "few": integer(most=100),
    },
    "09_decoding_and_cost": TRANSLATION,
    "10_classifier": {"reviews": one_of("made", "imdb"), "sentence": words()},
    "11_bert": {"pieces": corpus(1000), "sentence": checks.gap},
    "12_gpt": {"context": integer(4), "corpus": corpus(21_000, 100), "prompt": checks.prompt},
    "13_long_context": {
        "context": integer(multiple_of=(4,)), "dim": integer(multiple_of=(4, "heads")), "drills": integer(20),
        "corpus": corpus(21_000, 100),
    },
    "14_cost": {"batch": integer(multiple_of=(4,)), "longest": integer(64), "corpus": corpus(10_500, 50)},
    "15_side_by_side": {"sentence": words(11, 11), "instead": checks.other_word},
    "16_your_model": {"sentence": words(3, 20), "corpus": corpus(20_000)},
}  # fmt: skip
