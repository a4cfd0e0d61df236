"""What the parameters of each lesson may be, looked at in its setup: at once, not after minutes of training.

`check("12_gpt", globals())` tells the first that does not fit, in one sentence. `RULES` has a rule for every parameter
of every lesson. What a lesson's models and data look at themselves before anything is trained (a width that this
machine has no memory for) needs no second rule here.
"""

from collections.abc import Sequence

from tfviz import bounds
from tfviz.doors import what
from tfviz.suite.rules import (
    Given,
    Rule,
    any_words,
    choice,
    corpus,
    familiar,
    gap,
    number,
    of_dates,
    of_task,
    other_word,
    power,
    prompt,
    short_prompt,
    some_of,
    whole,
    words,
)
from tfviz.text.subwords import Subwords


def check(lesson: str, given: Given) -> None:
    """Look at all parameters of a lesson.

    Args:
        given: their values by name, such as `globals()`; what else it holds does not matter.

    Raises:
        LookupError: there is no such lesson, no such corpus, or a parameter without a value.
        TypeError: a value is of another kind than the parameter.
        ValueError: a value that the lesson cannot use.

    >>> check("01_attention_from_nothing", {"sentence": "a", "dim": 7, "steps": 9, "seed": 1, "trainings": 3})
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
    """Every word of these texts is a token of the vocabulary; a model would read all others alike, as [UNK]."""
    for name, value in given.items():
        familiar(name, value, vocab.tokenizer.get_vocab())


def begins(titles: Sequence[str], **given: str) -> None:
    """Each of these texts is how at least one of the titles begins."""
    for name, value in given.items():
        if not any(title.startswith(value) for title in titles):
            raise ValueError(f"{name} is {what(value)}; no title begins so; there are {', '.join(titles[:3])}, ...")


LAYERS, WIDE = whole(1, 100), whole(of=(2, "heads"))
SEED = whole(0, 10**9)
MODEL = {"layers": LAYERS, "heads": whole(), "dim": WIDE}
RULES: dict[str, dict[str, Rule]] = {
    "01_attention_from_nothing": {
        "sentence": words(most=12), "dim": whole(of=(6,)), "steps": whole(), "seed": SEED, "trainings": whole(most=9),
    },
    "02_recommender": {
        "ratings": choice("made", "movielens"), "dim": whole(2), "steps": whole(), "seed": SEED,
        "trainings": whole(most=9), "splits": whole(2, 9), "film": words(),
    },
    "03_masks": {
        "sentence": words(), "letters": whole(2, 26), "context": whole(2), "people": whole(4, 1000), "rounds": LAYERS,
        "dim": whole(of=(4,)), "steps": whole(), "trainings": whole(most=9), "seed": SEED,
    },
    "04_positions": {
        "context": whole(of=(4,)), **MODEL, "batch": whole(), "steps": whole(), "drills": whole(),
        "trainings": whole(most=9), "seed": SEED, "corpus": corpus(lambda given: max(1000, 50 * given["context"])),
    },
    "05_recurrent": {
        "between": any_words, "hidden": whole(of=(4,)), "steps": whole(2), "longest": power, "reading": whole(),
        "trainings": whole(most=9), "seed": SEED, "corpus": corpus(lambda given: 1000),
        "prompt": prompt, "length": whole(),
    },
    "06_alignment": {
        "longest": whole(4, 1000), "hidden": whole(4, of=(2,)), "steps": whole(), "date_steps": whole(),
        "languages": some_of("en", "de", "fr", "zh"), "new_dates": whole(9), "date": of_dates,
        "trainings": whole(2, 9), "seed": SEED,
    },
    "07_transformer": {
        "task": choice("numbers", "dates", "multi30k"), "sentence": of_task, "steps": whole(), "blocks": LAYERS,
        "heads": whole(), "dim": whole(of=(2, "heads")), "dropout": number(bounds.share), "short": whole(),
        "trainings": whole(most=9), "seed": SEED,
    },
    "08_training_it": {
        "steps": whole(2), "short": whole(2), "blocks": LAYERS, "heads": whole(), "dim": whole(of=(4, "heads")),
        "few": whole(most=100), "trainings": whole(most=9), "seed": SEED,
    },
    "09_decoding_and_cost": {
        "task": choice("numbers", "dates", "multi30k"), "sentence": of_task, "steps": whole(), "blocks": LAYERS,
        "heads": whole(), "dim": whole(of=(2, "heads")), "dropout": number(bounds.share), "short": whole(),
        "trainings": whole(most=9), "seed": SEED,
    },
    "10_classifier": {
        "reviews": choice("made", "imdb"), **MODEL, "steps": whole(), "trainings": whole(most=9), "epochs": whole(),
        "seed": SEED, "sentence": words(),
    },
    "11_bert": {
        "pieces": corpus(lambda given: 1000), **MODEL, "steps": whole(), "tuning": whole(), "labels": whole(),
        "trainings": whole(most=9), "seed": SEED, "sentence": gap,
    },
    "12_gpt": {
        "context": whole(4), **MODEL, "batch": whole(), "steps": whole(), "seed": SEED,
        "corpus": corpus(lambda given: max(21_000, 100 * given["context"])), "prompt": short_prompt,
        "drills": whole(),
    },
    "13_long_context": {
        "context": whole(of=(4,)), **MODEL, "dim": whole(of=(4, "heads")), "steps": whole(), "drills": whole(20),
        "trainings": whole(most=9), "seed": SEED, "corpus": corpus(lambda given: max(21_000, 100 * given["context"])),
    },
    "14_cost": {
        "context": whole(), **MODEL, "batch": whole(of=(4,)), "steps": whole(), "trainings": whole(most=9),
        "longest": whole(64), "seed": SEED,
        "corpus": corpus(lambda given: max(10_500, 50 * given["context"])),
    },
    "15_side_by_side": {
        "sentence": words(11, 11), "instead": other_word, **MODEL, "batch": whole(), "steps": whole(),
        "longer": whole(), "trainings": whole(most=9), "seed": SEED,
    },
    "16_your_model": {
        "checkpoint": any_words, "sentence": words(3, 20), "corpus": corpus(lambda given: 20_000),
        "steps": whole(), "batch": whole(), "trainings": whole(most=9), "drills": whole(), "seed": SEED,
    },
}  # fmt: skip
