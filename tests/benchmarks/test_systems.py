"""Every task of `benchmarks/systems.py` at quick size, on small corpora in the layouts of the originals."""

import csv
import gzip
import importlib
import random
import re
import sys
from pathlib import Path

import pytest

from tfviz import text

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TASKS = {
    "induction": 5, "characters": 11, "equal-time": 2, "six-minutes": 1, "segments": 20, "sparse": 4, "dates": 8,
    "numbers": 8, "en-de": 2, "en-de-recurrent": 4, "de-en": 2, "en-fr": 2, "recommender": 1, "graded-reviews": 2,
    "imdb": 1, "bert": 2,
}  # the rows of each  # fmt: skip


def reviews(folder):
    for split, seed in (("train", 1), ("test", 2)):
        counts = {0: 0, 1: 0}
        for one in text.tasks.synthetic_reviews(120, seed=seed):
            path = folder / "aclImdb" / split / ("neg", "pos")[one.label]
            path.mkdir(parents=True, exist_ok=True)
            (path / f"{counts[one.label]}_{(1, 10)[one.label]}.txt").write_text(
                " ".join(one.words * 9), encoding="utf-8"
            )
            counts[one.label] += 1


def captions(folder):
    folder.mkdir()
    for split, many in (("train", 310), ("val", 5), ("test_2016_flickr", 25)):
        for language in ("en", "de", "fr"):
            lines = [" ".join(one.source) for one in text.tasks.numbers(many, language, seed=many)]
            (folder / f"{split}.{language}.gz").write_bytes(gzip.compress("".join(f"{s}\n" for s in lines).encode()))


def ratings(folder):
    folder.mkdir()
    draw = random.Random(1)
    with (
        open(folder / "movies.csv", "w", newline="", encoding="utf-8") as movies,
        open(folder / "ratings.csv", "w", newline="", encoding="utf-8") as rated,
    ):
        csv.writer(movies).writerows([["movieId", "title", "genres"], *([n, f"Film {n}", "Drama"] for n in range(40))])
        rows = [[user, n, draw.randrange(1, 11) / 2, 0] for user in range(60) for n in draw.sample(range(40), 30)]
        csv.writer(rated).writerows([["userId", "movieId", "rating", "timestamp"], *rows])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "shakespeare").mkdir()
    (folder / "shakespeare" / "input.txt").write_text(text.corpora.load("pydoc")[:60_000], encoding="utf-8")
    reviews(folder / "imdb")
    captions(folder / "multi30k")
    ratings(folder / "movielens")
    return folder


@pytest.fixture
def systems(data, monkeypatch):
    monkeypatch.setenv("TFVIZ_DATA", str(data))
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    yield importlib.import_module("systems")
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(BENCHMARKS)):
            del sys.modules[name]


def test_every_task_has_an_expected_row_count(systems):
    assert set(systems.TASKS) == set(TASKS)


@pytest.mark.parametrize("task", TASKS)
def test_task_returns_expected_rows(systems, task):
    stored = systems.stored()
    rows = list(systems.TASKS[task](systems.Trial(quick=True)))
    assert len(rows) == TASKS[task]
    assert len({(row.system, row.task, row.measure) for row in rows}) == len(rows)  # none would replace another
    for row in rows:
        assert re.search(r"\d", row.value), row
        assert not re.search(r"\b(nan|inf)\b", row.value), row
    assert systems.table(rows).count("\n") == len(rows) + 1
    assert systems.stored() == stored  # quick numbers are not kept


def test_seeds_are_stored_separately_and_shown_as_median(systems, monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules["rows"], "STORE", tmp_path / "systems.json")
    made = [systems.Row("GPT", "plays", "exact", value, steps=9, seconds=seconds, seed=seed)
            for seed, value, seconds in ((3, "9.5%", 30.0), (1, "10.0%", 10.0), (2, "8.0%", 80.0))]  # fmt: skip
    systems.keep(made)
    systems.keep([systems.Row("GPT", "plays", "by length", "7 words: 1", seed=1)])
    systems.keep([systems.Row("GPT", "plays", "exact", "11.0%", steps=9, seconds=20.0, seed=1)])  # of seed 1 again
    assert len(systems.stored()) == 4
    lines = systems.table(systems.stored()).splitlines()
    assert len(lines) == 4  # the head, and a line for each measure
    assert "| 9.5% (11.0%, 8.0%, 9.5%) | 9 | 0 | 30 | 1, 2, 3 |" in lines[2]
    assert "| 7 words: 1 |" in lines[3]
    two = [row for row in systems.stored() if row.seed < 3]
    assert "| 11.0%, 8.0% | 9 | 0 | 50 | 1, 2 |" in systems.table(two)  # two have no middle one
