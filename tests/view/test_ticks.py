"""The names below a line chart, and the numbers beside colours: static pictures and pages choose the same."""

import pytest

from tfviz.view.figures.ticks import ticks
from tfviz.view.spec import Scale

pytest_plugins = ["node"]
CASES = [
    ([f"{index / 2}" for index in range(41)], 8, ["0", "5", "10", "15", "20"]),
    ([str(index + 1) for index in range(60)], 7, ["10", "20", "30", "40", "50", "60"]),
    ([f"{index / 8:.3f}" for index in range(9)], 4, ["0.000", "0.500", "1.000"]),
    (["2015", "2016", "2017"], 9, ["2015", "2016", "2017"]),
    (["a", "b", "c", "d"], 9, ["a", "b", "c", "d"]),
    ([f"w{index}" for index in range(12)], 4, ["w0", "w5", "w10"]),
    (["1", "2", "4", "8", "16"], 9, ["1", "2", "4", "8", "16"]),
    (["3", "2", "1"], 9, ["3", "2", "1"]),
    (["", "1", "2"], 9, ["", "1", "2"]),
    (["one"], 3, ["one"]),
    (["7"], 3, ["7"]),
]


@pytest.mark.parametrize(("names", "most", "expected"), CASES)
def test_names_stand_at_round_numbers(names, most, expected):
    found = ticks(names, most)
    assert list(found.values()) == expected
    assert all(names[index].startswith(name) for index, name in found.items())


def test_page_chooses_the_same(node):
    node.load("interact/ticks")
    for names, most, _ in CASES:
        found = node.evaluate("([names, most]) => ticks(names, most)", [names, most])
        assert dict(found) == ticks(names, most)


SCALES = [
    ("sqrt", 1.0, [0.0, 0.01, 0.1, 0.25, 0.5, 1.0]),
    ("sqrt", 0.55, [0.0, 0.005, 0.05, 0.1, 0.2, 0.55]),  # 0.0055, 0.055, 0.1375 and 0.275 downwards
    ("sqrt", 0.2, [0.0, 0.002, 0.02, 0.05, 0.1, 0.2]),
    ("linear", 1.0, [0.0, 0.25, 0.5, 0.75, 1.0]),
    ("linear", 37.0, [0.0, 10.0, 20.0, 30.0, 37.0]),
    ("linear", 12.0, [0.0, 5.0, 10.0, 12.0]),
    ("linear", 0.004, [0.0, 0.001, 0.002, 0.003, 0.004]),
    ("linear", 0.0021, [0.0, 0.001, 0.0021]),  # 0.002 would touch the end
    ("sqrt", 0.999999, [0.0, 0.01, 0.1, 0.2, 0.5, 0.999999]),  # nearly 1
    ("linear", 0.0, [0.0]),
    ("sqrt", 0.0, [0.0]),
    ("sqrt", 1e-9, [0.0, 1e-11, 1e-10, 2e-10, 5e-10, 1e-9]),
    ("diverging", 0.55, [-0.55, -0.4, -0.2, 0.0, 0.2, 0.4, 0.55]),
    ("diverging-sqrt", 12.0, [-12.0, -5.0, -2.0, -0.5, 0.0, 0.5, 2.0, 5.0, 12.0]),
    ("diverging-sqrt", 1.0, [-1.0, -0.5, -0.25, -0.05, 0.0, 0.05, 0.25, 0.5, 1.0]),
]


@pytest.mark.parametrize(("kind", "limit", "expected"), SCALES)
def test_scale_ticks_are_round_in_both_languages(node, kind, limit, expected):
    assert Scale(kind, limit).ticks == pytest.approx(expected)
    node.load("base/grid")
    found = node.evaluate("([kind, limit]) => scaleTicks(kind, limit)", [kind, limit])
    assert found == pytest.approx(expected)
