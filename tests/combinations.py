"""Lists of cases in which every value of each axis occurs, without all combinations of them."""

import itertools


def one_at_a_time(*axes):
    """Each value of each axis among the first values of the others."""
    axes = [list(axis) for axis in axes]
    first = tuple(axis[0] for axis in axes)
    others = [(*first[:at], value, *first[at + 1 :]) for at, axis in enumerate(axes) for value in axis[1:]]
    return [first, *others]


def all_pairs(*axes):
    """Combinations that hold every pair of values of two axes, each chosen for the most pairs that are missing."""
    left = list(itertools.product(*(range(len(list(axis))) for axis in axes)))
    missing, chosen = {pair for row in left for pair in itertools.combinations(enumerate(row), 2)}, []
    while missing:
        best = max(left, key=lambda row: len(missing.intersection(itertools.combinations(enumerate(row), 2))))
        missing.difference_update(itertools.combinations(enumerate(best), 2))
        chosen.append(tuple(list(axis)[at] for axis, at in zip(axes, best)))
    return chosen
