"""The names below a line chart: static pictures and pages choose the same."""

import pytest

from tfviz.view.figures.ticks import ticks

pytest_plugins = ["node"]
CASES = [
    ([f"{place / 2}" for place in range(41)], 8, ["0", "5", "10", "15", "20"]),
    ([str(place + 1) for place in range(60)], 7, ["10", "20", "30", "40", "50", "60"]),
    ([f"{place / 8:.3f}" for place in range(9)], 4, ["0.000", "0.500", "1.000"]),
    (["2015", "2016", "2017"], 9, ["2015", "2016", "2017"]),
    (["a", "b", "c", "d"], 9, ["a", "b", "c", "d"]),
    ([f"w{place}" for place in range(12)], 4, ["w0", "w5", "w10"]),
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
    assert all(names[place].startswith(name) for place, name in found.items())


def test_page_chooses_the_same(node):
    node.load("interact/ticks")
    for names, most, expected in CASES:
        assert [name for _, name in node.evaluate("([names, most]) => ticks(names, most)", [names, most])] == expected
