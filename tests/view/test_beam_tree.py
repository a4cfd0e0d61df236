"""The beam as a tree: the way of the text that won, what was dropped, what had ended."""

from dataclasses import dataclass

import matplotlib
import pytest
import torch
from torch import Tensor

from tfviz import view
from tfviz.view.beam_tree import tree

WORDS = ["_", "begin", "end", "a", "b", "c"]


@dataclass
class Beam:
    texts: Tensor
    scores: Tensor
    parents: Tensor
    ended: Tensor


def beam(texts, scores, parents, ended):
    return Beam(torch.tensor([texts]), torch.tensor([scores]), torch.tensor([parents]), torch.tensor([ended]))


BEAMS = [
    beam([[1, 3], [1, 4], [1, 5]], [-1.0, -1.5, -2.0], [0, 0, 0], [False, False, False]),
    beam([[1, 4, 3], [1, 3, 2], [1, 3, 5]], [-2.0, -2.25, -2.5], [1, 0, 0], [False, True, False]),
    beam([[1, 3, 2, 0], [1, 4, 3, 2], [1, 4, 3, 3]], [-2.25, -3.0, -4.0], [1, 0, 0], [True, True, False]),
]


def drawn(picture):
    """Tokens with their places, and lines as (start row, end row, style, strong)."""
    (axes,) = picture.figure().axes
    tokens = {(*text.get_position(), text.get_text()) for text in axes.texts if text.get_text()[0] not in "−0123456789"}
    lines = set()
    for patch in axes.patches:
        (_, start), *_, (end, last) = patch.get_path().vertices
        lines.add((round(end), int(start), int(last), patch.get_linestyle(), patch.get_linewidth() > 1))
    return tokens, lines


def test_the_way_of_the_best_is_strong_and_what_had_ended_is_dotted():
    tokens, lines = drawn(tree(BEAMS, WORDS))
    assert tokens == {(0, 0, "a"), (0, 1, "b"), (0, 2, "c"), (1, 0, "a"), (1, 1, "end"), (1, 2, "c"),
                      (2, 1, "end"), (2, 2, "a")}  # fmt: skip
    assert lines == {
        (0, 0, 0, "-", True), (0, 0, 1, "-", False), (0, 0, 2, "-", False),
        (1, 1, 0, "-", False), (1, 0, 1, "-", True), (1, 0, 2, "-", False),
        (2, 1, 0, ":", True), (2, 0, 1, "-", False), (2, 0, 2, "-", False),
    }  # fmt: skip


def test_it_says_what_won():
    assert repr(tree(BEAMS, WORDS)) == "Beam search\nof 3 texts at each step the best is: a end (−2.25)"


def test_a_text_that_is_impossible_is_not_drawn():
    only = beam([[1, 3], [1, 0]], [-1.0, -torch.inf], [0, 0], [False, False])
    tokens, lines = drawn(view.tree([only], WORDS))
    assert tokens == {(0, 0, "a")}
    assert len(lines) == 1


def test_formulas_stay_text():
    odd = [*WORDS[:3], "$x^2$", "b", "c"]
    with matplotlib.rc_context({"text.usetex": False}):
        assert tree(BEAMS, odd).figure()


def test_no_steps_are_refused():
    with pytest.raises(ValueError, match="no steps to draw"):
        tree([], WORDS)
