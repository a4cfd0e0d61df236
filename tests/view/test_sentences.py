"""What an instrument says: numbers by hand, in Python and, in a page, by the same rules."""

import math

import pytest
import torch

from tfviz import view
from tfviz.view.figures.legends import scale_legends
from tfviz.view.figures.sentences import sentences, stack_answer, stated_cells
from tfviz.view.result_spec import Drawing, ResultPanel
from tfviz.view.spec import Scale

pytest_plugins = ["node"]
SHARES = torch.tensor([[0.5, 0.125, 0.375], [0.125, 0.25, 0.625], [0.0, 0.25, 0.75]])
WORDS = ("the", "cat", "sat")
NBSP = "\N{NO-BREAK SPACE}"


def panel(kind, values, rows=(), columns=(), title="", **more):
    drawing = Drawing(kind, title, rows, columns, **more)
    return ResultPanel(drawing, torch.as_tensor(values, dtype=torch.float32), Scale("linear"))


CASES = {
    "shares": (
        panel("grid", SHARES, WORDS, WORDS, "weights"),
        "Weights: “cat” gives most to “sat” (63%), then to itself (25%).",
    ),
    "shares between others": (
        panel("grid", SHARES, WORDS, ("le", "chat", "assis")),
        "“sat” gives most to “assis” (75%), then to “chat” (25%).",
    ),
    "no second": (
        panel(
            "grid",
            [[0.5, -math.inf], [-math.inf, -math.inf]],
            ("p", "q"),
            ("it rains", "fog"),
            sentence="Best: {col}, {value}. Next: {second}, {second_value}. And so on.",
        ),
        "Best: “it rains”, 0.5. And so on.",
    ),
    "no second in the only sentence": (
        panel("grid", [[0.5, -math.inf]], ("p",), ("a", "b"), sentence="{col}, then {second}."),
        "“a”, then none.",
    ),
    "equal words": (
        panel(
            "grid", [[0.5, 0.0, 0.5], [0.25, 0.5, 0.25], [0.5, 0.0, 0.5]], ("the", "cat", "the"), ("the", "cat", "the")
        ),
        "“cat” gives most to itself (50%), then to “the” (25%).",
    ),
    "an identity": (panel("grid", torch.eye(2), ("a", "b"), ("a", "b")), "1 in 2 of 4 cells."),
    "yes and no": (
        panel("grid", torch.eye(3)[:2], ("a", "b"), (), "mask", ends=("may not", "may look")),
        "Mask: may look in 2 of 6 cells.",
    ),
    "numbers": (
        panel("grid", [[1.0, 2], [3, 20]], ("a", "b"), ("x", "y"), "table"),
        "Table: largest for “b” and “y” (20).",
    ),
    "named axes": (
        panel("grid", [[1.0, 2], [3, 20]], ("a", "b"), ("x", "y"), axes=("query", "key")),
        "Largest for query “b” and key “y” (20).",
    ),
    "below 0": (panel("grid", [[1.0, -4], [3, 2]], ("a", "b"), ("x", "y")), "Strongest for “a” and “y” (−4)."),
    "ties": (panel("grid", [[1.0, 2], [2, 0]], title="ways"), "Ways: 2 at most, in 2 of 4 cells."),
    "hatched": (panel("grid", [[3.0, -math.inf], [3, 3]]), "3 in 3 of 4 cells."),
    "bars": (
        panel("bars", [1.0, 3, 2], WORDS, title="size", unit="GB"),
        f"Size: largest for “cat” (3{NBSP}GB), then “sat” (2{NBSP}GB).",
    ),
    "names of two words": (
        panel("bars", [1.0, 3], ("output projection", "feed-forward layers")),
        "Largest for “feed-forward layers” (3), then “output projection” (1).",
    ),
    "spaces at the ends of words": (
        panel("bars", [1.0, 3], ("be ", " to be")),
        "Largest for “␣to␣be” (3), then “be␣” (1).",
    ),
    "counted bars": (
        panel("bars", [1.0, -3, -2], ("a", "b", "c"), expected=(1.0, 1.0, -1.0), sentence="{count} of {of}."),
        "2 of 3.",
    ),
    "even bars": (panel("bars", [1.0, 1], title="flat"), "Flat: 1 everywhere."),
    "one bar": (panel("bars", [1.0, math.nan], ("c", "d")), "1 in 1 of 2 cells."),
    "lines": (
        panel("lines", [[1.0, 5, 2], [0, 1, 4]], ("as it is", "new"), ("0", "1", "2")),
        "Highest for “as it is” at 1 (5).",
    ),
    "a line": (panel("lines", [1.0, 2, 5], (), ("x", "y", "z"), "loss"), "Loss: highest at “z” (5)."),
    "a stack": (
        panel("stack", [20.0, 60], ("weights", "Adam's averages"), unit="GB"),
        f"The largest part is “Adam's averages”, 60{NBSP}GB of 80{NBSP}GB (75%).",
    ),
    "a stack with a budget": (
        panel("stack", [20.0, 60.4], ("weights", "Adam's averages"), "memory", unit="GB", budget=80),
        f"No: 80.4 of 80{NBSP}GB. The largest part is “Adam's averages”, 60{NBSP}GB (75%).",
    ),
    "a number": (panel("number", 3.0), ""),
    "points": (panel("dots", [[1.0, 2]]), ""),
    "nothing finite": (panel("grid", [[math.nan]]), ""),
    "the author's": (
        panel(
            "grid",
            SHARES,
            WORDS,
            WORDS,
            sentence="{row} looks most at {col} ({percent}), then at {second} ({second_percent}).",
        ),
        "“cat” looks most at “sat” (63%), then at itself (25%).",
    ),
    "counted": (
        panel("grid", [[1.0, 0], [1, 1]], sentence="{count} of {of} pairs may look."),
        "3 of 4 pairs may look.",
    ),
    "line ends": (panel("lines", [[1.0, 5], [0, 4]], sentence="{last} and {last_of_second}"), "5 and 4"),
    "a number in words": (panel("number", 0.25, sentence="{value} is {percent}"), "0.25 is 25%"),
}


def spoken(text):
    return text.replace(NBSP, " ")


@pytest.mark.parametrize("name", CASES)
def test_a_sentence_says_what_the_numbers_are(name):
    shown, expected = CASES[name]
    assert spoken(sentences([shown])) == spoken(expected)


def test_a_page_says_the_same(node):
    node.load("interact/sentences")
    script = """([cells, given]) => {
        const named = { inf: Infinity, "-inf": -Infinity, nan: NaN };
        const data = Float32Array.from(cells, (cell) => named[cell] ?? Number(cell));
        const contents = [{ ...given, tensor: { shape: given.shape, dtype: "float32", data } }];
        return [sentences(contents), statedCells(contents)[0]]; }"""
    for name, (shown, expected) in CASES.items():
        cells = [str(number) for number in shown.values.flatten().tolist()]
        given = {
            "kind": shown.drawing.kind, "title": shown.drawing.title, "shape": list(shown.values.shape),
            "rows": list(shown.drawing.rows), "columns": list(shown.drawing.columns), "axes": shown.drawing.axes,
            "ends": shown.drawing.ends, "unit": shown.drawing.unit, "sentence": shown.drawing.sentence,
        }  # fmt: skip
        given |= {} if shown.drawing.budget is None else {"budget": shown.drawing.budget}
        given |= {"expected": list(shown.drawing.expected)} if shown.drawing.expected else {}
        found, cell = node.evaluate(script, [cells, given])
        assert (cell and tuple(cell)) == stated_cells([shown])[0], name
        assert spoken(found).translate({0x2068: None, 0x2069: None}) == spoken(expected), name


@pytest.mark.parametrize(
    ("shown", "cell"),
    [
        (panel("grid", [[0.1, 2.0, 0.3], [0.4, -3.0, 0.6]]), (1, 1)),  # the strongest, whatever its sign
        (panel("bars", [1.0, 5, 2]), (1, 0)),
        (panel("lines", [[1.0, 5, 2], [0, 4, 9]]), (1, 2)),
        (panel("lines", [1.0, 5, 2]), (0, 1)),
        (panel("grid", [[1.0, 1.0], [0.5, 0.2]]), None),  # two are largest
        (panel("bars", [math.nan, math.nan]), None),
        (panel("bars", [1.0, math.nan, -2.0]), (0, 0)),
        (panel("words", [1.0, 2.0]), None),  # shaded already
        (panel("bars", [1.0, 2.0], sentence="{of} of them"), None),
        (panel("bars", [1.0, 2.0], sentence="{row}"), (1, 0)),
    ],
)
def test_the_number_that_the_sentence_names_is_marked(shown, cell):
    assert stated_cells([shown]) == [cell]


def test_only_results_that_the_sentence_is_about_are_marked():
    bars, spoken_of = panel("bars", [1.0, 2]), panel("lines", [3.0, 4], sentence="{value}")
    assert stated_cells([bars, spoken_of]) == [None, (0, 1)]
    assert stated_cells([bars] * 3) == [(1, 0), (1, 0), None]


def test_an_authors_sentences_take_the_place_of_those_made_and_each_is_said_once():
    told = panel("bars", [1.0, 2], ("a", "b"), sentence="{row} wins.")
    assert sentences([panel("bars", [3.0, 4]), told, told]) == "“b” wins."
    made = [panel("bars", [1.0, 2], ("a", "b"), title=title) for title in ("x", "y", "z")]
    assert sentences(made) == "X: largest for “b” (2), then “a” (1). Y: largest for “b” (2), then “a” (1)."


@pytest.mark.parametrize(
    ("total", "budget", "expected"),
    [
        (144.4, 80, f"No: 144 of 80{NBSP}GB"),
        (79.6, 80, f"Yes: 79.6 of 80{NBSP}GB"),
        (80.3, 80, f"No: 80.3 of 80{NBSP}GB"),
        (80, 80, f"Yes: 80 of 80{NBSP}GB"),
        (12.5, None, f"13{NBSP}GB"),
    ],
)
def test_a_stack_answers_whether_its_sum_fits(total, budget, expected):
    parts = [total / 2, total / 2, -7, math.nan]  # neither of the last two is drawn
    assert stack_answer(panel("stack", parts, unit="GB", budget=budget)) == expected
    assert stack_answer(panel("stack", [total / 2, total / 2], unit="GB", budget=budget)) == expected


def test_a_key_names_the_ends_of_a_scale_once():
    ends, hatched = ("no way", "most ways"), "nothing arrives"
    ways = [panel("grid", [[1.0, -math.inf], [n, 0]], ends=ends, hatched=hatched) for n in (1, 1, 2)]
    key, *others = scale_legends(ways)
    assert (key.ends, key.hatched, others) == (((0.0, "0: no way"), (1.0, "1: most ways")), hatched, [])
    binary = scale_legends([panel("grid", torch.eye(2), ends=("may not look", "may look"))])
    assert (key.is_ramp, binary[0].is_ramp) == (True, False)
    assert binary[0].ends == ((0.0, "may not look"), (1.0, "may look"))
    assert scale_legends([panel("grid", torch.eye(2))]) == []


def test_results_of_one_drawing_share_a_scale():
    def tables(x):
        return {"one": x * torch.ones(2, 2), "two": 5 * x * torch.ones(2, 2), "own": 9 * x * torch.ones(2, 2)}

    grid = view.draw.grid(["a", "b"], ["c", "d"])
    shown = view.interact(tables, x=(0.0, 2.0), draw={"one": grid, "two": grid})
    assert [panel.get("shared") for panel in shown.document["panels"]] == ["one", "one", None]


@pytest.mark.parametrize(("kind", "says"), [("grid", "{best}"), ("number", "{row}"), ("bars", "{col}")])
def test_a_sentence_with_a_name_that_there_is_not_is_told(kind, says):
    with pytest.raises(ValueError, match=r"sentence has \{.*\}; .* can have \{"):
        getattr(view.draw, kind)(sentence=says)
