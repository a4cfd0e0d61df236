"""`view.tree` draws a beam search: the best path, dropped texts and finished texts."""

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
    sequences: Tensor
    scores: Tensor
    parents: Tensor
    ended: Tensor


def beam(sequences, scores, parents, ended):
    return Beam(torch.tensor([sequences]), torch.tensor([scores]), torch.tensor([parents]), torch.tensor([ended]))


BEAMS = [
    beam([[1, 3], [1, 4], [1, 5]], [-1.0, -1.5, -2.0], [0, 0, 0], [False, False, False]),
    beam([[1, 4, 3], [1, 3, 2], [1, 3, 5]], [-2.0, -2.25, -2.5], [1, 0, 0], [False, True, False]),
    beam([[1, 3, 2, 0], [1, 4, 3, 2], [1, 4, 3, 3]], [-2.25, -3.0, -4.0], [1, 0, 0], [True, True, False]),
]


def drawn_tree(picture):
    """Tokens with their places, and lines as (start row, end row, style, strong)."""
    (axes,) = picture.figure().axes
    texts = [text for text in axes.texts if text.get_text()[0] not in "−0123456789×" and text.get_position()[1] >= 0]
    tokens = {(*text.get_position(), text.get_text()) for text in texts}
    lines = set()
    for patch in axes.patches:
        (_, start), *_, (end, last) = patch.get_path().vertices
        lines.add((round(end), int(start), int(last), patch.get_linestyle(), patch.get_linewidth() > 1))
    return tokens, lines


def test_best_path_is_bold_and_finished_text_is_dotted():
    tokens, lines = drawn_tree(tree(BEAMS, WORDS))
    assert tokens == {(0, 0, "a"), (0, 1, "b"), (0, 2, "c"), (1, 0, "a"), (1, 1, "end"), (1, 2, "c"),
                      (2, 1, "end"), (2, 2, "a")}  # fmt: skip
    assert lines == {
        (0, 0, 0, "-", True), (0, 0, 1, "-", False), (0, 0, 2, "-", False),
        (1, 1, 0, "-", False), (1, 0, 1, "-", True), (1, 0, 2, "-", False),
        (2, 1, 0, ":", True), (2, 0, 1, "-", False), (2, 0, 2, "-", False),
    }  # fmt: skip


def test_dropped_texts_have_crosses():
    (axes,) = tree(BEAMS, WORDS).figure().axes
    crosses = {text.get_position() for text in axes.texts if text.get_text() == "×"}
    assert crosses == {(0.32, 2), (1.32, 2)}  # nothing continues them; what ends or is last is not dropped


def test_columns_are_numbered_and_finished_text_ends_in_dot():
    (axes,) = tree(BEAMS, WORDS).figure().axes
    headings = [(text.get_position()[0], text.get_text()) for text in axes.texts if text.get_position()[1] < 0]
    assert headings == [(0, "word 1"), (1, "word 2"), (2, "word 3")]
    dots = [(*line.get_xdata(), *line.get_ydata()) for line in axes.lines]
    assert dots == [(-0.75, 0), (2.3, 0)]  # the root, and the end of the text that was complete a step before


def test_summary_names_best_text():
    assert repr(tree(BEAMS, WORDS)) == "Beam search\nof 3 texts at each step the best is: a end (−2.25)"


def test_summary_leaves_out_padding_whatever_its_id():
    """In a Marian model 0 is the end, and padding another id."""
    ids = torch.tensor([5, 1, 0, 3, 4, 2])
    beams = [Beam(ids[beam.sequences], beam.scores, beam.parents, beam.ended) for beam in BEAMS]
    assert "is: a end (" in repr(tree(beams, ["end", "begin", "c", "a", "b", "_"]))


def test_impossible_text_is_not_drawn():
    only = beam([[1, 3], [1, 0]], [-1.0, -torch.inf], [0, 0], [False, False])
    tokens, lines = drawn_tree(view.tree([only], WORDS))
    assert tokens == {(0, 0, "a")}
    assert len(lines) == 1


def test_token_with_math_markup_is_accepted():
    odd = [*WORDS[:3], "$x^2$", "b", "c"]
    with matplotlib.rc_context({"text.usetex": False}):
        assert tree(BEAMS, odd).figure()


def test_empty_steps_raise():
    with pytest.raises(ValueError, match="no steps to draw"):
        tree([], WORDS)
