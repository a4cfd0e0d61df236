"""`view.table` and `view.tokens`: documents, scales and input checks."""

import numpy
import pytest
import torch
from example_views import effects, lens_table

from tfviz import study, view


def floats(shown, panel):
    offset, length = panel["data"]
    return numpy.frombuffer(shown.data[offset : offset + length], numpy.float32).reshape(len(panel["rows"]), -1)


def test_table_with_signed_values_has_diverging_scale():
    table = effects()
    shown = view.table(table)
    (tab,) = shown.document["tabs"]
    (panel,) = tab["panels"]
    assert (panel["scale"], panel["axes"], panel["numbered"]) == ("diverging", ["layer", "head"], True)
    assert panel["limit"] == pytest.approx(table.values.nan_to_num().abs().max().item())
    assert shown.document["title"] == "Change, in logit"
    assert "2 layers x 3 heads: from" in repr(shown)


def test_table_scale_ends_at_one_for_shares_else_at_maximum():
    scale = {}
    for unit, largest in (("share of attention", 0.4), ("probability", 0.4), ("nats", 0.4), ("share", 1.5)):
        values = torch.tensor([[0.1, largest]])
        (tab,) = view.table(study.Table(values, {"layer": ["0"], "head": ["0", "1"]}, unit)).document["tabs"]
        scale[unit, largest] = round(tab["panels"][0]["limit"], 4)
    assert scale == {
        ("share of attention", 0.4): 1, ("probability", 0.4): 1, ("nats", 0.4): 0.4, ("share", 1.5): 1.5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "unit", "scale", "note"),
    [
        ([0.5, 2.0], "logit", "diverging", "orange: above 0, blue: below 0"),
        ([-0.5, -2.0], "logit", "diverging", "orange: above 0, blue: below 0"),
        ([-0.5, 2.0], "", "diverging", "orange: above 0, blue: below 0"),
        ([0.5, 0.9], "share", "diverging", "orange: above 0, blue: below 0"),
        ([0.5, 0.009], "logit", "diverging", "orange: above 0, blue: below 0"),
        ([2.0, 0.009], "logit", "diverging", "orange: above 0, blue: below 0; ·: nearer to 0 than 0.01"),
        ([2.0, 0.0], "logit", "diverging", "orange: above 0, blue: below 0"),
        ([0.93, 0.004], "logit", "diverging", "orange: above 0, blue: below 0; ·: nearer to 0 than 0.005"),
        ([0.82, 0.004], "logit", "diverging", "orange: above 0, blue: below 0; ·: nearer to 0 than 0.005"),
        ([17.0, 0.004], "logit", "diverging", "orange: above 0, blue: below 0; ·: nearer to 0 than 0.09"),
        ([0.5, 0.9], "share of attention", "linear", None),
        ([0.5, 0.004], "probability", "linear", "·: nearer to 0 than 0.005"),
    ],
)
def test_a_hue_means_one_sign_whatever_signs_the_table_has(values, unit, scale, note):
    table = study.Table(torch.tensor([values]), {"layer": ["0"], "head": ["0", "1"]}, unit)
    shown = view.table(table)
    (tab,) = shown.document["tabs"]
    assert tab["panels"][0]["scale"] == scale
    assert tab.get("note") == note
    figure = shown.figure()
    assert (figure.get_supxlabel() or None) == note


@pytest.mark.parametrize(("label", "rotation"), [("a/␣", 0), ("four", 90)])
def test_short_labels_of_columns_stand_upright_above_numbers(label, rotation):
    table = study.Table(torch.tensor([[0.5, -2.0]]), {"layer": ["0"], "position": ["a", label]})
    (axes,) = view.table(table).figure().axes
    assert {tick.get_rotation() for tick in axes.get_xticklabels()} == {rotation}


def test_table_shows_one_axis_as_column_and_three_as_sheets():
    column = view.table(study.Table(torch.tensor([1.0, -3.0]), {"part": ["a", "b"]}, "logit"))
    (panel,) = column.document["tabs"][0]["panels"]
    assert (panel["rows"], panel["columns"]) == (["a", "b"], ["logit"])
    values = torch.arange(12.0).view(2, 3, 2)
    axes = {"layer": ["0", "1"], "head": list("abc"), "position": ["x", "y"]}
    tabs = view.table(study.Table(values, axes, "logit", "t")).document["tabs"]
    assert [tab["name"] for tab in tabs] == ["layer 0", "layer 1"]
    assert {tab["panels"][0]["limit"] for tab in tabs} == {11.0}


def test_lens_table_contains_tokens_and_probabilities():
    lens = lens_table()
    (panel,) = view.table(lens).document["tabs"][0]["panels"]
    assert panel["texts"] == [[tokens[0] for tokens in row] for row in lens.tokens]
    assert panel["details"][1][2][0][0] == lens.tokens[1][2][0]
    assert panel["details"][1][2][2][1] == pytest.approx(lens.probabilities[1, 2, 2].item())
    assert "numbered" not in panel


@pytest.mark.parametrize(
    ("values", "axes", "message"),
    [
        (torch.tensor(1.0), {}, "one to three axes"),
        (torch.zeros(0, 2), {"layer": [], "head": ["0", "1"]}, "one to three axes"),
        (torch.zeros(1, 1, 1, 1), {name: ["0"] for name in "abcd"}, "one to three axes"),
        (torch.zeros(30, 1, 1), {"a": list(map(str, range(30))), "b": ["0"], "c": ["0"]}, "tabs"),
    ],
)
def test_table_rejects_unsupported_axes(values, axes, message):
    with pytest.raises(ValueError, match=message):
        view.table(study.Table(values, axes))


def test_table_of_nan_has_no_number_summary():
    shown = view.table(study.Table(torch.full((1, 2), torch.nan), {"layer": ["0"], "head": ["0", "1"]}))
    assert "no number" in repr(shown)


def test_tokens_share_one_scale():
    shown = view.tokens(["a", "b"], torch.tensor([0.25, -2.0]), unit="nats")
    document = shown.document
    assert (document["scale"], document["limit"], document["state"]) == ("diverging", 2.0, {"token": 1})
    assert view.tokens(["a"], [0.0]).document["limit"] == 1.0
    assert view.tokens([7], [3.0], limit=4.0).document["tokens"] == ["7"]


@pytest.mark.parametrize(
    ("words", "numbers", "message"),
    [
        (["a"], [1.0, 2.0], "1 labels, the numbers have 2 tokens"),
        ([], [], "one for each token"),
        (["a"], [float("nan")], "holds nan"),
        (["a"] * 20_001, torch.ones(20_001), "tokens"),
    ],
)
def test_tokens_reject_invalid_input(words, numbers, message):
    with pytest.raises(ValueError, match=message):
        view.tokens(words, numbers)


def test_small_tables_of_several_texts_show_their_numbers():
    values = torch.arange(18.0).reshape(3, 3, 2) - 9
    table = study.Table(
        values, {"text": ["0", "1", "2"], "layer": ["0", "1", "2"], "head": ["0", "1"]}, "nats", "Change"
    )
    figure = view.table(table).figure()
    figure.canvas.draw()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["text 0", "text 1", "text 2"]
    for axes, numbers in zip(figure.axes, values.int().tolist()):
        assert [text.get_text() for text in axes.texts] == [
            f"{n}".replace("-", "−") or "0" for row in numbers for n in row
        ]
        assert [label.get_text() for label in axes.get_yticklabels()] == ["0", "1", "2"]
    assert [axes.get_ylabel() for axes in figure.axes] == ["layer", "", ""]


def test_many_cells_of_several_texts_share_colour_bars():
    values = torch.randn(3, 12, 12, generator=torch.Generator().manual_seed(1))
    numbered = [str(i) for i in range(12)]
    table = study.Table(values, {"text": ["0", "1", "2"], "layer": numbered, "head": numbered}, "nats", "Change")
    assert not any(axes.texts for axes in view.table(table).figure().axes)


def test_single_column_has_its_name_upright_and_paths_uncut():
    paths = ["transformer.h.0.attention.output", "blocks.0.feed_forward"]
    (axes,) = (
        view.table(study.Table(torch.tensor([0.5, -1.0]), {"part": paths}, "logit difference", "Parts")).figure().axes
    )
    assert [label.get_text() for label in axes.get_yticklabels()] == paths
    assert [(label.get_text(), label.get_rotation()) for label in axes.get_xticklabels()] == [
        ("logit\N{NO-BREAK SPACE}difference", 0.0)
    ]
