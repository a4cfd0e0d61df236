"""Synthetic tasks: their answers, gold alignments and seeds."""

import re
from datetime import date
from itertools import pairwise

import pytest
from babel import Locale
from babel.dates import format_date, format_skeleton
from hypothesis import given, settings
from hypothesis import strategies as st

from tfviz.text import tasks
from tfviz.text.synthetic_reviews import ADJECTIVES, INTENSIFIERS, NEGATIONS
from tfviz.text.tasks import copy, dates, numbers, reverse, sort, synthetic_reviews

quick = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 2**32)
ORDER = {"en": "Mdy", "de": "dMy", "fr": "dMy", "zh": "yMd"}
MADE = {
    **{f"dates {source}-{target}": (dates, source, target) for source in ORDER for target in ("iso", "de", "zh")},
    **{f"numbers {language}": (numbers, language) for language in ("en", "de", "fr", "ja")},
    **{task.__name__: (task,) for task in (copy, reverse, sort, synthetic_reviews)},
}
made = pytest.mark.parametrize("name", MADE)


def make(name, count, seed):
    task, *arguments = MADE[name]
    return task(count, *arguments, seed=seed)


def links(example):
    """The words that each target word belongs to."""
    return [
        [example.source[s] for s in range(len(example.source)) if (t, s) in example.gold]
        for t in range(len(example.target))
    ]


def number_example(number, language):
    return tasks._number_example(number, tasks._spell(language))


def months(language):
    """Number of the month by any of its names, without dots."""
    names = Locale.parse(language).months["format"]
    return {name.rstrip("."): month for form in ("wide", "abbreviated") for month, name in names[form].items()}


def babel_renderings(day, language):
    """All that Babel writes for this day with a four-digit year, without white space."""
    locale = Locale.parse(language)
    texts = [format_date(day, form, language) for form in ("full", "long", "medium", "short")]
    texts += [format_skeleton(skeleton, day, locale=language) for skeleton in locale.datetime_skeletons]
    return {"".join(text.split()) for text in texts if str(day.year) in text}


@made
def test_examples_depend_only_on_the_seed(name):
    with pytest.raises(ValueError, match="count is 0"):
        make(name, 0, seed=0)
    first = make(name, 20, seed=3)
    make(name, 7, seed=5)
    assert make(name, 20, seed=3) == first
    assert make(name, 11, seed=3) == first[:11]
    other = make(name, 20, seed=4)
    assert sum(a == b for a, b in zip(first, other)) < 5


@made
@quick
@given(seed=seeds)
def test_words_have_no_whitespace_and_links_are_in_range(name, seed):
    for example in make(name, 3, seed):
        words = example.words if name == "synthetic_reviews" else example.source + example.target
        assert all(word == "".join(word.split()) != "" for word in words)
        if name != "synthetic_reviews":
            pairs = {(t, s) for t in range(len(example.target)) for s in range(len(example.source))}
            assert example.gold <= pairs


@pytest.mark.parametrize("language", ORDER)
@quick
@given(seed=seeds)
def test_dates_match_babel_and_gold_links_the_fields(language, seed):
    names = months(language)
    for example in dates(3, language, seed=seed):
        date_of_target = date.fromisoformat("".join(example.target))
        assert 1950 <= date_of_target.year <= 2049
        assert "".join(example.source) in babel_renderings(date_of_target, language)
        (year,), dash, (month, *dot), other_dash, (day,) = links(example)
        assert dash == other_dash == []
        assert year == example.target[0]
        assert int(names.get(month, month)) == int(example.target[2])
        assert dot in ([], ["."])
        assert int(day) == int(example.target[4])
        position = {field: min(s for t, s in example.gold if t == row) for row, field in ((0, "y"), (2, "M"), (4, "d"))}
        assert "".join(sorted(position, key=position.get)) == ORDER[language]


@pytest.mark.parametrize("language", ORDER)
def test_dates_cover_the_calendar_and_formats(language):
    drawn = dates(1200, language)
    days = [date.fromisoformat("".join(example.target)) for example in drawn]
    assert {day.month for day in days} == set(range(1, 13))
    assert {day.day for day in days} == set(range(1, 32))
    assert {day.year for day in days} == set(range(1950, 2050))
    shapes = {re.sub(r"\w+", "x", " ".join(example.source)) for example in drawn}
    assert len(shapes) >= 4
    assert any(set(example.source) & set(months(language)) for example in drawn) == (language != "zh")
    weekdays = {name.rstrip(".") for form in Locale.parse(language).days["format"].values() for name in form.values()}
    assert any(set(example.source) & weekdays for example in drawn)


DAY = date(2021, 3, 5)
BY_HAND = [
    ("en", "EEEE, MMMM d, y", "Friday , March 5 , 2021", {(0, 5), (2, 2), (4, 3)}),
    ("en", "M/d/y", "3 / 5 / 2021", {(0, 4), (2, 0), (4, 2)}),
    ("de", "d. MMMM y", "5 . März 2021", {(0, 3), (2, 2), (4, 0)}),
    ("de", "dd.MM.y", "05 . 03 . 2021", {(0, 4), (2, 2), (4, 0)}),
    ("fr", "EEEE d MMMM y", "vendredi 5 mars 2021", {(0, 3), (2, 2), (4, 1)}),
    ("zh", "y年M月d日EEEE", "2021 年 3 月 5 日 星期五", {(0, 0), (2, 2), (4, 4)}),
]


@pytest.mark.parametrize(("language", "pattern", "source", "gold"), BY_HAND)
def test_dates_match_hand_written_examples(language, pattern, source, gold):
    example = tasks._align(
        tasks._date_words(DAY, pattern, language), tasks._date_words(DAY, tasks.ISO_DATE_FORMAT, "en")
    )
    assert " ".join(example.source) == source
    assert example.target == ("2021", "-", "03", "-", "05")
    assert example.gold == gold


def test_abbreviation_dots_align_with_their_month():
    read = tasks._date_words(date(2021, 1, 5), "d MMM y", "fr")
    assert read == [("d", "5"), ("M", "janv"), ("M", "."), ("y", "2021")]
    example = tasks._align(read, tasks._date_words(date(2021, 1, 5), "d. MMM y", "de"))
    assert example.target == ("5", ".", "Jan", ".", "2021")
    assert example.gold == {(0, 0), (2, 1), (2, 2), (3, 1), (3, 2), (4, 3)}


@pytest.mark.parametrize(("target", "separators"), [("en", {","}), ("de", {"."}), ("fr", set()), ("zh", set("年月日"))])
@pytest.mark.parametrize("source", ORDER)
def test_date_targets_match_babel(source, target, separators):
    iso = {example.source: date.fromisoformat("".join(example.target)) for example in dates(50, source)}
    for example in dates(50, source, target):
        expected = format_date(iso[example.source], "long", target)
        assert "".join(example.target) == "".join(expected.split())
        assert {word for word, linked in zip(example.target, links(example)) if not linked} == separators


SPOKEN = [
    ("en", 0, "zero", [""]),
    ("en", 13, "thirteen", ["thirteen", "thirteen"]),
    ("en", 342, "three hundred and forty two", ["three hundred and", "forty", "two"]),
    ("en", 1005, "one thousand and five", ["one thousand and", "", "", "and five"]),
    ("en", 303, "three hundred and three", ["three hundred and", "", "and three"]),
    ("en", 12000, "twelve thousand", ["twelve", "twelve", "", "", ""]),
    ("en", 42312, "forty two thousand three hundred and twelve", ["forty", "two", "three hundred", "twelve", "twelve"]),
    ("de", 1, "eins", ["eins"]),
    ("de", 17, "siebzehn", ["siebzehn", "siebzehn"]),
    ("de", 21, "ein und zwanzig", ["und zwanzig", "ein und"]),
    ("de", 942, "neun hundert zwei und vierzig", ["neun hundert", "und vierzig", "zwei und"]),
    ("de", 1005, "ein tausend fünf", ["ein tausend", "", "", "fünf"]),
    ("fr", 21, "vingt et un", ["vingt et", "et un"]),
    ("fr", 70, "soixante dix", ["soixante dix", ""]),
    ("fr", 71, "soixante et onze", ["soixante et onze", "et onze"]),
    ("fr", 84, "quatre vingt quatre", ["quatre vingt", "quatre"]),
    ("fr", 97, "quatre vingt dix sept", ["quatre vingt dix", "sept"]),
    ("fr", 280, "deux cent quatre vingts", ["deux cent", "quatre vingts", ""]),
    ("fr", 1005, "mille cinq", ["mille", "", "", "cinq"]),
    ("ja", 342, "三 百 四 十 二", ["三 百", "四 十", "二"]),
    ("ja", 12005, "一 万 二 千 五", ["一 万", "二 千", "", "", "五"]),
]


@pytest.mark.parametrize(("language", "number", "source", "expected"), SPOKEN)
def test_numbers_match_hand_written_examples(language, number, source, expected):
    example = number_example(number, language)
    assert " ".join(example.source) == source
    assert "".join(example.target) == str(number)
    assert [" ".join(words) for words in links(example)] == expected


def test_german_numbers_match_num2words():
    from num2words import num2words

    for example in numbers(300, "de"):
        assert "".join(example.source) == num2words(int("".join(example.target)), lang="de")


def test_numbers_have_uniform_lengths_below_the_limit():
    lengths = [len(example.target) for example in numbers(1200)]
    assert {length: 150 < lengths.count(length) < 250 for length in lengths} == dict.fromkeys(range(1, 7), True)
    small = {"".join(example.target) for example in numbers(400, below=12)}
    assert small == {str(number) for number in range(12)}
    assert {example.target for example in numbers(5, below=1)} == {("0",)}


@pytest.mark.parametrize("task", [copy, reverse, sort])
@quick
@given(seeds, st.integers(1, 4), st.integers(0, 5), st.integers(1, 26))
def test_letter_tasks_permute_their_source(task, seed, low, more, vocab_size):
    for example in task(4, (low, low + more), vocab_size, seed=seed):
        size = len(example.source)
        assert low <= size <= low + more
        assert set(example.source) <= set("abcdefghijklmnopqrstuvwxyz"[:vocab_size])
        source_of = dict(example.gold)
        assert len(example.gold) == size
        assert sorted(source_of) == sorted(source_of.values()) == list(range(size))
        assert example.target == tuple(example.source[source_of[t]] for t in range(size))
        if task is copy:
            assert example.target == example.source
        elif task is reverse:
            assert all(t + s == size - 1 for t, s in example.gold)
        else:
            assert list(example.target) == sorted(example.source)
            equal = [(t, u) for t, u in pairwise(range(size)) if example.target[t] == example.target[u]]
            assert all(source_of[t] < source_of[u] for t, u in equal)


def test_copy_covers_all_lengths_and_letters():
    drawn = copy(300, (2, 5), vocab_size=7)
    assert {len(example.source) for example in drawn} == {2, 3, 4, 5}
    assert {letter for example in drawn for letter in example.source} == set("abcdefg")


def strength(clause):
    """From the right: the adjective, then what turns or scales it."""
    *before, adjective = clause
    value = ADJECTIVES[adjective]
    for word in reversed(before):
        value *= {"very": 2, "slightly": 1 / 2, "not": -1 / 2, "never": -1}[word]
    return value


def clauses(review):
    """The words after "was" of each clause, and the conjunctions between them."""
    parts = re.split(r" ?\b(and|but|although)\b ?", " ".join(review.words))
    return [part.split("was ")[1].split() for part in parts[::2]], parts[1::2]


@quick
@given(seeds)
def test_review_grade_is_the_sum_of_clauses_and_of_cues(seed):
    telling = {*ADJECTIVES, *INTENSIFIERS, *NEGATIONS}
    for review in synthetic_reviews(5, seed=seed):
        for word, cue in zip(review.words, review.cues, strict=True):
            assert cue == ADJECTIVES.get(word, cue)
            assert (cue != 0) == (word in telling)
        said, joints = clauses(review)
        strengths = [strength(clause) for clause in said]
        assert 1 <= len(said) <= 4
        assert review.grade == sum(strengths) == sum(review.cues) != 0
        assert review.label == (review.grade > 0)
        agree = [left * right > 0 for left, right in pairwise(strengths)]
        assert [joint == "and" for joint in joints] == agree


PHRASES = {
    "bad": (-1,),
    "not bad": (1.5, -1),
    "not good": (-1.5, 1),
    "never dull": (2, -1),
    "very great": (2, 2),
    "slightly awful": (1, -2),
    "not very bad": (3, -1, -1),
    "never very good": (-4, 1, 1),
}


def test_review_phrases_match_hand_written_cues():
    found = {}
    for review in synthetic_reviews(4000):
        cues = " ".join(f"{word}:{cue}" for word, cue in zip(review.words, review.cues))
        for clause in re.split(r" (?:and|but|although):0.0 ", cues):
            words, values = zip(*(pair.split(":") for pair in clause.split()[3:]))
            found[" ".join(words)] = tuple(map(float, values))
    assert {phrase: found[phrase] for phrase in PHRASES} == PHRASES
    assert not any(re.match("(not|never) slightly", phrase) for phrase in found)


def test_bag_of_words_errs_only_on_modified_words():
    drawn = synthetic_reviews(2000)
    wrong = []
    for review in drawn:
        total = sum(ADJECTIVES.get(word, 0) for word in review.words)
        if (total > 0) != review.label:
            wrong.append(review)
    assert 0.1 < len(wrong) / len(drawn) < 0.5
    assert all({*INTENSIFIERS, *NEGATIONS} & set(review.words) for review in wrong)
    assert 0.4 < sum(review.label for review in drawn) / len(drawn) < 0.6
