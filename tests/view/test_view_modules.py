"""`view.modules`: positions and sizes of the boxes match the model's parameters."""

from itertools import pairwise

import pytest
from torch import nn

from tfviz import models, view
from tfviz.view.module_tree import Box, _boxes, modules


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 5)  # 20
        self.quiet = nn.ReLU()
        self.pair = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 2))  # 42 and 16
        self.own = nn.Parameter(nn.Linear(4, 1).weight.detach())  # 4


def boxes(model, depth=5):
    return list(_boxes(model, "model", 0, {}, depth))


def test_boxes_match_parameter_counts():
    assert boxes(Two()) == [
        Box("model", 0, 0, 82),
        Box("first", 1, 0, 20),
        Box("pair", 1, 20, 58),
        Box("Linear 0", 2, 20, 42),
        Box("Linear 1", 2, 62, 16),
    ]
    assert [box.name for box in boxes(Two(), depth=1)] == ["model", "first", "pair"]


def test_shared_module_is_drawn_once():
    model = Two()
    model.again = nn.Sequential(model.first, nn.Linear(1, 1))
    assert boxes(model)[-2:] == [Box("again", 1, 78, 2), Box("Linear 1", 2, 78, 2)]


@pytest.mark.parametrize("model", [models.GPT(11, dim=12, heads=3), models.Transformer(7, dim=8, heads=2)])
def test_boxes_of_one_level_do_not_overlap(model):
    drawn = boxes(model)
    assert drawn[0].size == sum(p.numel() for p in model.parameters())
    for level in range(5):
        row = [box for box in drawn if box.depth == level]
        for one, following in pairwise(row):
            assert one.left + one.size <= following.left
    (axes,) = view.modules(model).figure().axes
    assert len(axes.patches) == 2 * len(drawn)


def test_legend_states_share_of_each_kind():
    model = nn.Module()
    model.words = nn.Embedding(3, 4)  # 12
    model.attention = nn.Sequential(nn.Linear(4, 4, bias=False))  # 16
    model.attention_norm = nn.LayerNorm(4)  # 8
    model.feed_forward = nn.Sequential(nn.Linear(4, 9, bias=False))  # 36
    model.output = nn.Linear(4, 7, bias=False)  # 28, of no kind
    (legend,) = modules(model).figure().legends
    names = ["attention 16%", "feed-forward 36%", "embeddings 12%", "norms 8%"]
    assert [text.get_text() for text in legend.get_texts()] == names
    assert not modules(Two()).figure().legends


def test_names_that_do_not_fit_are_omitted():
    names = [text.get_text() for text in modules(Two(), "Two").figure().axes[0].texts]
    assert names == ["Two", "100%", "first", "24%", "pair", "71%", "Linear 0", "51%", "Linear 1", "20%"]
    wide = nn.Sequential()
    wide.add_module("a_name_of_some_length", nn.Linear(1, 1, bias=False))
    wide.add_module("rest", nn.Linear(50, 50))
    assert [text.get_text() for text in modules(wide).figure().axes[0].texts] == [
        "Sequential",
        "100%",
        "rest",
        "> 99.9%",
    ]


def test_class_of_numbered_part_gives_way_to_its_number():
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(6, 4, bias=False))  # 1 of 25: 0.36 inches
    names = [text.get_text() for text in modules(model).figure().axes[0].texts]
    assert names == ["Sequential", "100%", "0", "4%", "Linear 1", "96%"]


def test_name_of_narrow_box_is_written_upwards_if_it_fits():
    model = nn.Sequential()
    model.add_module("query", nn.Linear(1, 1, bias=False))
    model.add_module("a_long_name", nn.Linear(1, 1, bias=False))
    model.add_module("rest", nn.Linear(7, 7, bias=False))  # 49 of 51; a box of 0.18 inches for each of the others
    figure = modules(model).figure()
    texts = {text.get_text(): text.get_rotation() for text in figure.axes[0].texts}
    assert texts == {"Sequential": 0, "100%": 0, "query": 90, "rest": 0}  # no share in a row in which one has no room
    figure.draw_without_rendering()
    name, edges = next(text for text in figure.axes[0].texts if text.get_text() == "query"), figure.axes[0].patches[2]
    assert edges.get_window_extent().contains(*name.get_window_extent().min)
    assert edges.get_window_extent().contains(*name.get_window_extent().max)


def test_model_without_parameters_raises():
    with pytest.raises(ValueError, match="ReLU has no parameters"):
        modules(nn.ReLU())
