"""A static picture of every kind, for tests that apply to all of them.

PYTEST_DONT_REWRITE: test modules import from it.
"""

import torch
from browser import maps
from example_views import COLS, ROWS, effects, gates, growing, lens_table, looked, multiplied, rules, wide

from tfviz import models, text, view
from tfviz.generate.beam import Beam
from tfviz.layers import positions
from tfviz.learn import Step

SMALL = text.CharacterTokenizer("abcdefg")


def drawing():
    """Every kind of drawing of a result."""
    table = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])
    results = {
        "share": table,
        "signed": table - 0.5,
        "bars": table[0] - 0.3,
        "lines": table,
        "arrows": 3 * table[:, :2],
        "dots": table[:, :2],
        "words": table[1],
        "graph": table[:, :2],
        "number": torch.tensor(1987),
        "stack": table[0],
    }
    draw = {
        name: getattr(view.draw, name)() for name in ("bars", "lines", "arrows", "dots", "words", "graph", "number")
    }
    draw["stack"] = view.draw.stack(["one", "two", "three"], budget=2, unit="GB")
    return view.interact(lambda x: {name: x * one for name, one in results.items()}, x=(0, 2), draw=draw, title="All")


def weigh(x, w):
    scores = x @ w
    return scores.softmax(-1)


def searched():
    texts = torch.tensor([[[2, 3, 4, 0], [2, 4, 5, 6]]])
    sums, ended = torch.tensor([[-1.0, -2.5]]), torch.tensor([[True, False]])
    one, none = torch.ones(1, 2, dtype=torch.long), torch.zeros(1, 2, dtype=torch.bool)
    first = Beam(texts[:, :, :2], sums / 2, none, one, 0 * one, 0.6)
    return [first, Beam(texts[:, :, :3], sums, ended, 2 * one, torch.tensor([[0, 1]]), 0.6)]


def writer():
    torch.manual_seed(0)
    return view.write(models.GPT(7, context=8, layers=1, heads=2, dim=8), SMALL, "abc")


def points():
    return torch.eye(5, 2).cumsum(1)


STILLS = {
    "heads": lambda: view.heads(maps(2, 3, 6, 6, causal=True)),
    "many heads": lambda: view.heads(maps(5, 13, 2, 3)),
    "head": lambda: view.head(wide(), 1, 2),
    "large head": lambda: view.head(maps(1, 1, 13, 17, causal=False), 0, 0),
    "links": lambda: view.links(wide(), 1, [0, 2]),
    "words": lambda: view.words(wide(), 1, 2, 3),
    "alignment": lambda: view.alignment(wide(1, 1), [(0, 2), (4, 6)]),
    "compare": lambda: view.compare(wide(), wide(seed=3), names=("before", "after")),
    "steps": lambda: view.steps(growing()),
    "sources": lambda: view.groups(encoder=wide(1, 2), cross=maps(1, 2, 5, 7)),
    "image": looked,
    "audio": lambda: view.audio(maps(1, 2, 5, 6), torch.rand(8, 60, generator=torch.Generator().manual_seed(1))),
    "mask": lambda: view.mask(torch.ones(5, 7).tril().bool()),
    "masks": lambda: view.masks(rules()),
    "position table": lambda: view.positions(positions.sinusoids(torch.arange(9), 6)),
    "positions": lambda: view.positions({"sine": positions.sinusoids(torch.arange(9), 6), "other": torch.eye(5, 8)}),
    "similarity": lambda: view.positions({"bias": view.as_similarities(torch.arange(25.0).reshape(5, 5) - 9)}),
    "gates": lambda: view.gates(gates(), ROWS),
    "table": lambda: view.table(effects()),
    "lens": lambda: view.table(lens_table()),
    "neurons": lambda: view.neurons(multiplied()),
    "tokens": lambda: view.tokens(["to", " be", "\n", "or"], [0.5, -2.0, 0.0, 1.0], unit="nats"),
    "curves": lambda: view.curves([Step(n, 3 / (n + 1), 0.1, 9.0) for n in range(7)], held_out=[(3, 1.2), (6, 1.1)]),
    "lines": lambda: view.lines(
        {"a": ([1, 2], [-3.0, 1.0]), "b": ([1, 3], torch.tensor([[2.0, 2.0], [1.0, 3.0]]))},
        x="x",
        y="y",
        title="Lines",
        references={"chance": 0.5},
        shaded={"seen": (1.0, 2.0)},
    ),
    "lines apart": lambda: view.lines(
        {"a": ([1, 10, 100], [3e5, 1e5, 20.0]), "b": ([1, 30, 100], [2.0, 2.0, 5.0])},
        x="x",
        y="y",
        title="Lines",
        in_panels=True,
        xscale="log",
        yscale="log",
    ),
    "bars": lambda: view.bars(
        list("abc"), {"one": [0.1, 0.2, 0.7], "two": [0.0, 1.0, 0.5]}, "t", references={"r": 0.3}
    ),
    "rows": lambda: view.bar_table(list("abc"), {"one": [0.1, 0.2, 0.7], "two": [0, 12345.678, 0.00012]}, "t"),
    "shares": lambda: view.head_table({"one": torch.tensor([[0.1, 0.5, 1.0]]), "two": torch.zeros(1, 3)}),
    "scatter": lambda: view.scatter(points(), ROWS, "Points", groups=["x", "", "y", "x", "y"], mark=["b"]),
    "planes": lambda: view.planes({"one": points(), "two": -points()}, ROWS, "Planes", mark=["b"], paths=[[0, 1, 2]]),
    "tree": lambda: view.tree(searched(), COLS),
    "flow": lambda: view.flow(weigh, torch.ones(3, 5), torch.ones(5, 2)),
    "modules": lambda: view.modules(models.GPT(7, context=8, layers=2, heads=2, dim=8)),
    "interact": drawing,
    "write": writer,
}
