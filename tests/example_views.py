"""Example views of every kind, and labels with difficult characters, for tests of pages."""

import hashlib

import pytest
import torch
from browser import maps

from tfviz import study, view
from tfviz.layers import masks, positions
from tfviz.look import AttentionMaps
from tfviz.look.attention_call import AttentionCall
from tfviz.look.lazy import LazyAttention

ROWS, COLS, NINE = list("abcde"), list("tuvwxyz"), list("ABCDEFGHI")
WORDS = {"cat": (1.0, 2.0), "sat": (2.0, 0.5), "mat": (0.5, 1.5)}
BITE = [
    "</script>", "<img src=x onerror=alert(1)>", "<!--", "'\"`${1}\\", "a\nb", "\0", "\ud800", "שלום", "עולם",
    "👩‍👩‍👧", "漢字", "x" * 1000, "", " ", "\uffff", "=1+1",
]  # fmt: skip


def wide(layers=2, heads=3, **given):
    return maps(layers, heads, query_tokens=ROWS, key_tokens=COLS, **given)


def growing():
    full = maps(2, 3, 9, 9, causal=True, query_tokens=NINE)
    cut = lambda n: AttentionMaps([one[:, :n, :n] for one in full.layers], NINE[:n], mask=full.mask[..., :n, :n])  # noqa: E731
    return {f"step {n}": cut(n) for n in (2, 5, 9)}


def rules(queries=7, keys=9):
    sized = lambda rule: {n: rule(n).dense(queries, keys) for n in range(1, 8)}  # noqa: E731
    return {"causal": masks.causal.dense(queries, keys), "window": sized(masks.window), "dilated": sized(masks.dilated)}


def lab():
    use = {"causal": "all", "window": "any", "dilated": "any"}
    return view.masks(rules(), NINE[:7], key_tokens=list("abcdefghi"), roles=use)


def gates():
    draw = torch.Generator().manual_seed(2)
    tables = {name: torch.rand(5, 4, generator=draw) for name in ("input", "forget")}
    return {**tables, "cell": torch.randn(5, 4, generator=draw).tanh()}


def looked():
    draw = torch.Generator().manual_seed(5)
    return view.image(maps(2, 3, 13, 13, seed=4), torch.rand(60, 80, 3, generator=draw), layer=1)


def effects(layers=2, heads=3):
    """Numbers with signs, one of them missing, of layers and heads."""
    values = torch.randn(layers, heads, generator=torch.Generator().manual_seed(4))
    values[0, 1] = torch.nan
    axes = {"layer": list(map(str, range(layers))), "head": list(map(str, range(heads)))}
    return study.Table(values, axes, "logit", "Change")


def multiplied(queries=5, keys=7):
    """Maps that keep queries and keys: two heads share a key, some cells are masked, others have a bias."""
    draw = torch.Generator().manual_seed(7)
    shapes = ((1, 4, queries, 6), (1, 2, keys, 6))
    query, key = (torch.randn(shape, generator=draw) for shape in shapes)
    bias = -torch.rand(1, 4, queries, keys, generator=draw).masked_fill(~torch.ones(queries, keys).tril(2).bool(), 99)
    layers = [
        LazyAttention.from_call(AttentionCall(query, key, key, mask.masked_fill(mask < -9, -torch.inf), 0.4), 0)
        for mask in (bias, 0 * bias)
    ]
    return AttentionMaps(layers, ROWS[:queries], COLS[:keys])


def lens_table():
    shares = torch.rand(2, 4, 3, generator=torch.Generator().manual_seed(6)).softmax(-1).sort(descending=True).values
    names = [[[f"{BITE[column]}{rank}" for rank in range(3)] for column in range(4)] for _ in range(2)]
    axes = {"layer": ["in", "0"], "position": BITE[:4]}
    ids = torch.arange(3).expand(2, 4, 3)
    return study.LensTable(shares[..., 0], axes, "probability", "Lens", {}, ids, shares, names)


def attention(words, sharpness):
    scores = sharpness * words @ words.T
    shares = scores.softmax(-1)
    return {"scores": scores, "shares": shares, "mixture": shares @ words}


def lesson(**more):
    """Attention among `WORDS`, which are points of a plane, as a lesson has it."""
    drawn = {
        "scores": view.draw.grid("words", "words"),
        "shares": view.draw.grid("words", "words", scale="linear"),
        "mixture": view.draw.arrows("words"),
    }
    return view.interact(attention, words=view.controls.points(WORDS), sharpness=(0.1, 5.0), draw=drawn, **more)


def every_control():
    """One of each control and picture."""

    def function(a, b, c, d, e, f, g):
        plane = torch.stack([e.sin() + b[:, 0], b[:, 1]], -1)
        weights = (plane @ plane.T * a).softmax(-1)[d]
        return {"grid": weights, "bars": c.sum(0), "lines": c, "dots": plane, "arrows": weights @ plane,
                "words": weights[0], "graph": weights, "number": weights.amax() * f + g}  # fmt: skip

    names = ["the", "cat", "sat"]
    drawn = {"grid": view.draw.grid("d", "b"), "lines": view.draw.lines("c", "c"), "dots": view.draw.dots("b"),
             "arrows": view.draw.arrows("d"), "words": view.draw.words("b"),
             "graph": view.draw.graph("b", positions="b"), "number": view.draw.number(title="the most")}  # fmt: skip
    points = dict(zip(names, [(1.0, 2.0), (-2.0, 0.5), (0.5, -1.5)]))
    return view.interact(
        function, a=(0.0, 2.0), b=view.controls.points(points), c=view.controls.cells([[1.0, -2.0], [0.5, 4.0]],
        ["one", "two"]), d=view.controls.order(names), e=view.controls.angle(0.5), f=[1, 2], g=True, draw=drawn,
        title="Everything",
    )  # fmt: skip


KINDS = {
    "heads": lambda: view.heads(maps(2, 3, 6, 6, causal=True)),
    "masks": lab,
    "positions": lambda: view.positions({"sine": positions.sinusoids(torch.arange(9), 6), "other": torch.eye(5, 8)}),
    "gates": lambda: view.gates(gates(), ROWS),
    "compare": lambda: view.compare(wide(), wide(seed=3), names=("before", "after")),
    "steps": lambda: view.steps(growing()),
    "picture": looked,
    "table": lambda: view.table(effects()),
    "lens": lambda: view.table(lens_table()),
    "tokens": lambda: view.tokens(BITE[:6], torch.linspace(-2, 1, 6), "Tokens", unit="nats"),
    "neurons": lambda: view.neurons(multiplied()),
    "scatter": lambda: view.scatter(torch.eye(5, 2).cumsum(1), ROWS, "Points"),
}
every = pytest.mark.parametrize("kind", KINDS)


def several():
    """The bytes of a view of each kind, for another process to agree with."""
    return [hashlib.sha256(make().html().encode()).hexdigest() for make in KINDS.values()]
