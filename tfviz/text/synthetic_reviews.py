"""Synthetic film reviews with grades, from a small grammar with negations that a bag of words cannot resolve."""

from dataclasses import dataclass

import numpy

from tfviz.checks import at_least, fits_memory
from tfviz.checks import seed as check_seed
from tfviz.validation import validated

NOUNS = ("plot", "acting", "music", "ending", "dialogue", "pacing", "cast", "photography")
ADJECTIVES = {
    **dict.fromkeys(("awful", "terrible", "dreadful"), -2),
    **dict.fromkeys(("bad", "dull", "weak", "slow"), -1),
    **dict.fromkeys(("good", "fine", "clever", "fresh"), 1),
    **dict.fromkeys(("great", "brilliant", "superb"), 2),
}
INTENSIFIERS = {"very": 2.0, "slightly": 0.5}
# "not bad" is weaker than "good"; "never dull" is fully the opposite of "dull"
NEGATIONS = {"not": -0.5, "never": -1.0}
AGREEING_CONJUNCTIONS, OPPOSING_CONJUNCTIONS = ("and",), ("but", "although")


@dataclass(frozen=True)
class SyntheticReview:
    """A synthetic review with its grade, its label, and the contribution of each word to the grade.

    Attributes:
        words: the words, without white space.
        grade: the sum of the strengths of the clauses, never 0.
        label: 1 if the grade is positive, 0 if it is negative.
        cues: the contribution of each word to the grade; their sum is the grade.
    """

    words: tuple[str, ...]
    grade: float
    label: int
    cues: tuple[float, ...]


@validated
def synthetic_reviews(count: int, *, seed: int = 0) -> list[SyntheticReview]:
    """Draw reviews of 1 to 4 clauses such as "the plot was not very good but the music was great".

    An adjective has a strength of -2, -1, 1 or 2, which its modifiers change. First "very" doubles the strength, or
    "slightly" halves it. Then "not" reverses and halves it, or "never" reverses it. So the strength of "bad" is -1, of
    "not bad" 0.5, of "not very bad" 1. A word's cue is the change of the strength by this word: the cues of "not very
    bad" are 3, -1, -1. The grade is the sum of all strengths; a review of grade 0 is drawn again. "and" joins clauses
    of the same sign, "but" and "although" join clauses of opposite sign.

    >>> review = synthetic_reviews(1, seed=72)[0]
    >>> " ".join(review.words), review.grade, review.label
    ('the cast was not very slow', 1.0, 1)
    >>> review.cues
    (0.0, 0.0, 0.0, 3.0, -1.0, -1.0)
    """
    check_count(count, seed)
    generator = numpy.random.default_rng(seed)
    examples: list[SyntheticReview] = []
    while len(examples) < count:
        review = _draw_review(generator)
        examples += [review] if review.grade else []
    return examples


def check_count(count: int, seed: int) -> None:
    """Check the seed, and that `count` examples of about half a kilobyte each fit into memory."""
    at_least(1, count=count)
    fits_memory(count=count, size_of_one=128)
    check_seed(seed)


def _draw_review(generator: numpy.random.Generator) -> SyntheticReview:
    nouns = generator.permutation(NOUNS)[: generator.integers(1, 5)]
    cued: list[tuple[str, float]] = []
    before = 0.0
    for noun in nouns:
        clause = _draw_clause(str(noun), generator)
        strength = sum(cue for _, cue in clause)
        if cued:
            conjunctions = AGREEING_CONJUNCTIONS if before * strength > 0 else OPPOSING_CONJUNCTIONS
            cued.append((conjunctions[generator.integers(len(conjunctions))], 0.0))
        cued += clause
        before = strength
    words, cues = zip(*cued)
    grade = sum(cues)
    return SyntheticReview(words, grade, int(grade > 0), cues)


def _draw_clause(noun: str, generator: numpy.random.Generator) -> list[tuple[str, float]]:
    """Draw the words of a clause, each with its cue."""
    adjective = list(ADJECTIVES)[generator.integers(len(ADJECTIVES))]
    negation = ["", "", "", "", *NEGATIONS][generator.integers(6)]
    # nobody says "not slightly bad"
    intensifier = ["", "very", "" if negation else "slightly"][generator.integers(3)]
    strength = float(ADJECTIVES[adjective])
    cued = [(adjective, strength)]
    for word, factor in ((intensifier, INTENSIFIERS.get(intensifier)), (negation, NEGATIONS.get(negation))):
        if factor:
            cued.insert(0, (word, strength * factor - strength))
            strength *= factor
    return [("the", 0.0), (noun, 0.0), ("was", 0.0), *cued]
