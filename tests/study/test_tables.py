"""`Table` and metrics, compared with hand-computed values."""

import sys
from types import SimpleNamespace

import pytest
import torch

from tfviz import study
from tfviz.study import Table


def table(values=((0.5, -1.0, 2.0), (float("nan"), 0.0, -3.0)), **more):
    return Table(torch.tensor(values), {"layer": ["a", "b"], "head": ["0", "1", "x"]}, **more)


def test_table_is_indexed_by_labels():
    found = table()
    assert found["b", "x"] == -3
    assert found["a"].tolist() == [0.5, -1, 2]
    assert found["a", 1] == -1
    with pytest.raises(LookupError, match=r"layer has no 'c'; it has a, b"):
        found["c"]
    with pytest.raises(LookupError, match=r"there are 3 labels; give one for each of: layer, head"):
        found["a", "0", "0"]
    with pytest.raises(ValueError, match=r"values are \[2\], and the labels of a are \[3\]"):
        Table(torch.ones(2), {"a": ["x", "y", "z"]})


def test_top_sorts_by_magnitude_and_skips_nan():
    assert table().top(3) == [(("b", "x"), -3.0), (("a", "x"), 2.0), (("a", "1"), -1.0)]
    assert len(table().top(100)) == 5
    found = Table(torch.tensor([1.0, -torch.inf]), {"a": ["x", "y"]})
    assert found.top(1) == [(("y",), -torch.inf)]
    with pytest.raises(ValueError, match="count is 0"):
        table().top(0)


@pytest.mark.parametrize(
    ("largest", "expected"),
    [(None, [-3.0, 2.0, -1.0]), (True, [2.0, 0.5, 0.0]), (False, [-3.0, -1.0, 0.0])],
)
def test_top_sorts_by_magnitude_or_from_either_end(largest, expected):
    assert [value for _, value in table().top(3, largest)] == expected
    ends = Table(torch.tensor([torch.inf, -torch.inf, torch.nan, 1.0]), {"a": ["w", "x", "y", "z"]})
    order = {None: ["w", "x", "z"], True: ["w", "z", "x"], False: ["x", "z", "w"]}[largest]
    assert [label for (label,), _ in ends.top(9, largest)] == order


WORDS = ["to", "be", "or", "not", "to", "2", "to"]


def test_repeated_label_raises():
    found = Table(torch.arange(14.0).view(2, 7), {"layer": ["in", "0"], "position": WORDS})
    assert found["0", "be"] == 8
    with pytest.raises(LookupError, match="position has 'to' at the places 0, 4 and 6; give the number of one of them"):
        found["0", "to"]
    with pytest.raises(LookupError, match="position has 'to' at"):
        found["in", "to"]


def test_integer_index_is_a_position():
    found = Table(torch.arange(14.0).view(2, 7), {"layer": ["in", "0"], "position": WORDS})
    assert [found["0", label] for label in (0, 4, 6, -1, -7)] == [7, 11, 13, 13, 7]
    assert found[1].tolist() == list(range(7, 14))
    assert found["0", "2"] == 12
    with pytest.raises(
        LookupError, match="layer: 0 is the place of 'in', and the label of place 1; give a label, 'in'"
    ):
        found[0]
    with pytest.raises(LookupError, match="position: 2 is the place of 'or', and the label of place 5"):
        found["0", 2]
    with pytest.raises(LookupError, match="position has no '7'"):
        found["0", 7]
    assert Table(torch.tensor([1.0, 2.0]), {"layer": ["9", "10"]})[10] == 2  # no place, so a label
    assert Table(torch.tensor([1.0, 2.0, 3.0]), {"word": ["1", "1", "a"]})[1] == 2


def test_relative_to_returns_shares():
    found = table(unit="logit", notes={"source": "zero"}).relative_to(-4.0)
    assert found["b", "x"] == 0.75
    assert found.unit == "share"
    assert found.notes == {"source": "zero", "whole": -4.0}
    for whole in (0.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="there are no shares of it"):
            table().relative_to(whole)


def test_relative_to_accepts_one_whole_per_text():
    values = torch.tensor([[2.0, 4.0, 6.0], [9.0, 3.0, 6.0]])
    each = Table(values, {"text": ["0", "1"], "head": ["0", "1", "2"]}, "nats")
    for whole in ([2.0, 3.0], torch.tensor([2.0, 3.0]), (2, 3)):
        shares = each.relative_to(whole)
        assert shares.values.tolist() == [[1, 2, 3], [3, 1, 2]]
        assert shares.notes["whole"] == [2, 3]
    assert each.relative_to(2).values.tolist() == [[1, 2, 3], [4.5, 1.5, 3]]


def test_slices_keep_axes():
    assert table()["a", :].tolist() == [0.5, -1, 2]
    assert table()[:, "x"].tolist() == [2, -3]
    assert table()[0:1].tolist() == table().values[:1].tolist()


def test_difference_of_tables():
    one = table(((0.5, -1.0, 2.0), (1.0, 0.0, -3.0)))
    other = Table(one.values + 2, one.axes, one.unit, "other")
    found = one - other
    assert (found.values == -2).all()
    assert (found.axes, found.unit, found.title) == (one.axes, one.unit, one.title)
    with pytest.raises(TypeError):
        one - 1


def test_table_without_axes_holds_one_number():
    found = Table(torch.tensor(2.5), {}, "nats")
    assert repr(found) == "one number, in nats: from 2.5 to 2.5"
    assert found[()] == 2.5
    assert found.top(3) == [((), 2.5)]


@pytest.mark.parametrize("axes", [{}, {"a": ["x", "y", "z"]}, {"a": ["x"], "b": ["1", "2", "ü/\n"], "c": ["p"]}])
def test_table_round_trips(axes, tmp_path):
    values = torch.arange(1.0, 4.0).view([len(labels) for labels in axes.values()]) if axes else torch.tensor(1.5)
    found = Table(values, axes, "nats", "a title", {"whole": 0.1, "deep": {"list": [1, None, "x"]}})
    path = found.save(tmp_path / "folder" / "table.safetensors")
    again = Table.load(path)
    assert torch.equal(again.values, values)
    assert (again.axes, again.unit, again.title, again.notes) == (found.axes, found.unit, found.title, found.notes)


def test_table_rejects_invalid_notes_and_files(tmp_path):
    from tfviz.files import save_tensors

    path = tmp_path / "table"
    with pytest.raises(ValueError, match=r"notes\.a is a tensor"):
        table(notes={"a": torch.ones(1)}).save(path)
    assert not path.exists()
    good = {"format": "tfviz.Table/1", "title": '""', "unit": '""', "axes": '{"a": ["x", "y"]}', "notes": "{}"}
    for changed, says in (
        ({"format": "other"}, "holds no table"),
        ({"axes": "{"}, "axes is not JSON"),
        ({"axes": '{"a": [1, 2]}'}, r"metadata\.axes\.a\[0\] is 1"),
        ({"axes": '{"a": ["x"]}'}, r"values are \[2\]"),
        ({"notes": "[]"}, "metadata.notes"),
        ({"title": None}, "metadata has no 'title'"),
    ):
        metadata = {name: value for name, value in {**good, **changed}.items() if value is not None}
        save_tensors(path, {"values": torch.ones(2)}, metadata)
        with pytest.raises(ValueError, match=says):
            Table.load(path)
    save_tensors(path, {"values": torch.ones(2), "more": torch.ones(1)}, good)
    with pytest.raises(ValueError, match="it holds the tensors"):
        Table.load(path)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ValueError, match="table"):
        Table.load(path)
    with pytest.raises(FileNotFoundError):
        Table.load(tmp_path / "none")


def test_to_pandas_keeps_names_and_labels(monkeypatch):
    """By a stand-in that keeps what it is given; the library itself is not needed here."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        table().to_pandas()
    stand_in = SimpleNamespace(
        Index=lambda labels, name: (name, list(labels)),
        Series=lambda values, index, name: ("series", values.tolist(), index, name),
        DataFrame=lambda values, index, columns: ("frame", values.tolist(), index, columns),
        MultiIndex=SimpleNamespace(from_product=lambda labels, names: (names, [list(some) for some in labels])),
    )
    monkeypatch.setitem(sys.modules, "pandas", stand_in)
    line = Table(torch.tensor([1.0, 2.0]), {"a": ["x", "y"]}, "nats").to_pandas()
    assert line == ("series", [1.0, 2.0], ("a", ["x", "y"]), "nats")
    flat = Table(torch.tensor([[1.0, 2.0]]), {"a": ["x"], "b": ["p", "q"]}).to_pandas()
    assert flat == ("frame", [[1.0, 2.0]], ("a", ["x"]), ("b", ["p", "q"]))
    deep = Table(torch.arange(4.0).view(2, 1, 2), {"a": ["x", "y"], "b": ["p"], "c": ["u", "v"]}).to_pandas()
    assert deep == ("frame", [[0.0, 1.0], [2.0, 3.0]], (["a", "b"], [["x", "y"], ["p"]]), ("c", ["u", "v"]))
    with pytest.raises(ValueError, match="one number without axes"):
        Table(torch.tensor(1.0), {}).to_pandas()


def test_metrics_match_reference_and_reject_invalid_tokens():
    logits = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(1))
    assert study.logit(2)(logits) == pytest.approx(logits[:, -1, 2].mean().item())
    assert study.logit([1, 0, 4], 2)(logits) == pytest.approx(
        (logits[0, 2, 1] + logits[1, 2, 0] + logits[2, 2, 4]).item() / 3
    )
    assert study.logit_difference(torch.tensor([1, 0, 4]), 3)(logits) == pytest.approx(
        (logits[0, -1, 1] + logits[1, -1, 0] + logits[2, -1, 4] - logits[:, -1, 3].sum()).item() / 3, abs=1e-6
    )
    assert study.log_probability(2, 0)(logits) == pytest.approx(logits[:, 0].softmax(-1)[:, 2].log().mean().item())
    assert study.logit(2)(logits[:, 0]) == pytest.approx(logits[:, 0, 2].mean().item())
    for metric, says in (
        (study.logit(5), "token is 5; there are 5, counted from 0"),
        (study.logit(-1), "token is -1"),
        (study.logit(1, 4), "position is 4; there are 4"),
        (study.logit([1, 2]), "there are 2 tokens for 3 texts"),
    ):
        with pytest.raises(ValueError, match=says):
            metric(logits)
