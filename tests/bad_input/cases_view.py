"""Cases of invalid arguments of views."""

SETUP = """
import os
import types
from pathlib import Path
import numpy, torch
from torch import nn
from tfviz import view
from tfviz.look import AttentionMaps
from tfviz.view.page.live_widget import LiveView
nan, inf = float("nan"), float("inf")
maps = AttentionMaps(torch.eye(3).expand(2, 4, 3, 3), query_tokens=["a", "b", "c"])
eye, ones = torch.eye(3), torch.ones(3, 3, dtype=torch.bool)
def weights(value): return AttentionMaps(torch.full((1, 1, 2, 2), value))
def size(picture):
    png = picture._png("light")
    return int.from_bytes(png[16:20]) < 3000 and int.from_bytes(png[20:24]) < 3000
def bars(**series): return view.bars(["a", "b"], series, "t")
def rows(limit=None, **series): return view.bar_table(["a", "b"], series, "t", limit=limit)
def lines(xs, ys, **more): return view.lines({"one": (xs, ys)}, x="x", y="y", title="t", **more)
def told(question):
    live, sent = LiveView(maps), []
    live.send = lambda answer, buffers=None: sent.append(answer)
    live._on_message(live, question, [])
    return sent[0]
def beam(ids, width=2): return types.SimpleNamespace(
    sequences=torch.tensor([[ids] * width]), parents=torch.zeros(1, width, dtype=torch.long),
    ended=torch.zeros(1, width, dtype=torch.bool), scores=torch.zeros(1, width))
def home(): os.environ["HOME"] = os.getcwd()
step = lambda loss: types.SimpleNamespace(step=1, loss=loss)
"""
LIST = r"list\(generate\.beam\.steps"
CASES = [
    # bars and rows
    ("bars(one=[1, nan])", r"'one' holds nan \(first at 1\); give finite numbers"),
    ("bars(one=torch.tensor([1j, 2]))", r"'one' holds complex numbers; give \.real"),
    ("bars(one=torch.ones(2, 1))", r"'one' must be 2 numbers, one for each name"),
    ("bars(one=torch.ones(2, requires_grad=True))", "= highest probability: one: 'a' 1"),
    ("bars(one=torch.ones(2, dtype=torch.bfloat16))", "= highest"),
    ("bars()", "nothing to draw: give names"),
    ("view.bars([], {'one': []}, 't')", "nothing to draw: give names"),
    ("view.bars(['a'] * 20_000, {'one': torch.ones(20_000)}, 't')", "20,000 names, and a picture has room for 400"),
    ("view.bars(['a'], {str(i): [1] for i in range(999)}, 't')", "999 series, and a picture has room for 24"),
    ("size(view.bars(['a'], {'one': [1]}, 'x' * 10_000))", "= True"),
    ("size(view.bars(['a'], {'x' * 10_000: [1]}, 't', y='y' * 10_000))", "= True"),
    ("size(rows(one=[1, -1]))", "= True"),
    ("view.bar_table(['a'], {'one': [1]}, 't', grey=['b'])", "nothing called 'b' to draw in grey; there are a"),
    ("view.bar_table(['a'], {'one': [1]}, 't', gap_before=['b'])", "there is nothing called 'b' to draw in a group"),
    ("view.bar_table(['a'], {'one': [1]}, 't', baseline='b')", "there is nothing called 'b' to draw in a shade"),
    ("view.bar_table(['a'], {'one': [1]}, 't', references={'half': {'two': 1.0}})", "'half' is for \\['two'\\]"),
    ("view.bar_table(['a'], {'one': [1]}, 't', references={'half': nan})", "'references' holds nan"),
    ("view.bars(['a'], {'one': [1]}, 't', grey=['b'])", "there is nothing called 'b' to draw in grey"),
    ("rows(0, one=[1, 2])", "limit is 0(?:[.]0)?; it must be a finite number above 0"),
    ("rows(nan, one=[1, 2])", "limit is nan"),
    ("rows(1, one=[1, 2])", "'one' goes up to 2, past the end of the scale: limit is 1"),
    ("rows(one=[0, 0])._png('light')[:4]", "= PNG"),
    ("size(view.bar_table(['a' * 10_000], {'one': [1]}, 't'))", "= True"),
    # lines and curves
    ("lines([0, 1], [nan, nan])", "'one' holds nan"),
    ("lines([0, 1], [1, inf])", "'one' holds inf"),
    ("lines([0, nan], [1, 2])", "'one' holds nan"),
    ("lines([0, 1, 2], [1, nan, 2])", "= one 2"),
    ("lines([], [])", "each line needs points"),
    ("lines([1, 2], [-1, 1], yscale='log')", "yscale is 'log', which needs numbers above 0; 'one' has others"),
    ("lines([1, 2], [0, 0], yscale='log')", "yscale is 'log'"),
    ("lines([1, 2], [0, 1], yscale='log').figure().axes[0].get_legend().texts[0].get_text()", "= one .0 where"),
    ("lines([0, 2], [1, 1], xscale='log')", "xscale is 'log'"),
    ("lines([1, 2], [1, 2], xscale='lug')", r"Axes\.set does not take .*lug"),
    ("lines([1, 2], [1, 2], xskale='log')", r"Axes\.set does not take .*xskale"),
    ("view.lines({}, x='x', y='y', title='t')", "nothing to draw"),
    ("lines([1], [1], dashed=['two'])", "no line 'two' to draw dashed"),
    ("lines([1, 2], torch.zeros(2, 3))", r"as many xs as ys; got \{'one': \(2, 3\)\}"),
    ("lines([1, 2], torch.zeros(1, 2, 2))", "nothing to draw|one axis, or"),
    ("bars(one=torch.zeros(2, 3))", "'one' must be 2 numbers, one for each name"),
    ("size(rows(one=torch.tensor([[0.5, 0.5], [-0.1, 0.5]])))", "= True"),
    ("rows(1.0, one=torch.tensor([[0.5, 0.5], [1.5, 0.5]]))", "goes up to 1.5, past the end"),
    ("view.lines({str(i): ([1], [1]) for i in range(999)}, x='x', y='y', title='t')", "999 lines"),
    ("view.curves([])", r"no steps to draw; give list\(learn\.fit"),
    ("view.curves(torch.ones(3))", r"history\[0\] has no step and loss"),
    ("view.curves([step(nan)] * 3)", "'history' holds nan"),
    ("view.curves([step(1.0), step(inf)])", r"'history' holds inf \(first at 1\)"),
    ("view.curves([step(1.0)], references={'half': nan})", "'references' holds nan"),
    ("view.curves([step(1.0)], validation=[])", "validation has no points; give pairs"),
    # heads
    ("view.heads(AttentionMaps(torch.ones(200, 200, 1, 1)))", "there are 40,000 heads, and .* give some of the layers"),
    ("view.heads(AttentionMaps(torch.ones(60, 2, 1, 1)))", r"= \(24 layers × 2 heads of them are drawn\)"),
    ("size(view.head(maps, 0, 0, 'x' * 10_000))", "= True"),
    ("view.heads(maps, names=['one'])", "ValueError: .*names has 1 names, the maps have 4 heads"),
    ("view.heads(maps, max_bytes=0)", "max_bytes is 0(?:[.]0)?; it is a number of bytes above 0"),
    ("view.heads(maps, max_bytes=-1)", "ValueError: .*max_bytes is -1"),
    ("view.heads(maps, max_bytes=nan)", "max_bytes is nan"),
    ("view.heads(maps, max_bytes=1)", "fit into max_bytes=1"),
    *((f"view.heads(weights({value}))", says) for value, says in (
        ("nan", "holds NaN; is there a query"), ("inf", "lie between 0 and 1"), ("1.5", "from 1.5 to 1.5"),
        ("-3.0", "are these scores, before their softmax"))),
    *((f"view.{name}(maps, {at}, 0)", rf"IndexError: .*layer is {at}; the maps have 2 layers, from 0 to 1")
      for name in ("head", "links", "words") for at in (-1, 2, 10**9)),
    *((f"view.{call}", rf"IndexError: .*head is {at}; the maps have 4 heads, from 0 to 3") for call, at in (
        ("head(maps, 0, 4)", 4), ("head(maps, 0, -1)", -1), ("words(maps, 0, 4)", 4))),
    ("view.links(maps, 0, [])", "ValueError: .*heads is empty: name at least one"),
    ("view.links(maps, 0, [0, 9])", "head is 9"),
    ("view.links(maps, min_weight=nan)", "ValueError: .*min_weight is nan; weights lie between 0 and 1"),
    ("view.links(maps, min_weight=-0.5)", "min_weight is -0.5"),
    ("view.words(maps, 0, 0, -1)", "query is -1; the maps have 3 queries"),
    ("view.words(maps, 0, 0, 3)", "query is 3"),
    ("view.links(maps, 0, 'ab')", "heads is one integer, or a list of them"),
    ("view.links(maps, 0, torch.ones(2, 2))", "heads is one integer, or a list of them"),
    ("view.links(maps, 0, torch.tensor(1))", "= Layer 0, head 1"),
    # several captures
    ("view.compare(maps, maps, names=('x', 'x'))", "ValueError: .*both captures are called 'x'; give them two names"),
    ("view.compare(maps, maps, 2)", "layer is 2"),
    ("view.steps({})", "there is no step"),
    ("view.head_table({'one': torch.rand(2, 3)}, outlined=[(2, 0)])", "there is no head 2.0 to outline"),
    ("view.head_table({'one': torch.rand(2, 3)}, outlined={(0, 3): 'a'})", "there is no head 0.3 to outline"),
    ("view.steps({'one': maps}, 0, 7)", "head is 7"),
    ("view.steps({'one': maps}, static_steps=['two'])", "there is no step 'two' to draw; there are one"),
    ("view.steps({'one': maps}, outlined=[99])", r"outlined \(99, 0\) lies outside a map of"),
    ("view.heads(maps, outlined=[(0, 99)])", r"outlined \(0, 99\) lies outside a map of"),
    ("view.head(maps, 0, 0, outlined=[-1])", r"outlined \(-1, 0\) lies outside a map of"),
    ("view.groups()", "ValueError: .*no captures.*name each, as in view.groups"),
    ("size(view.groups(**{'x' * 10_000: weights(1.0), 'y' * 10_000: weights(1.0)}))", "= True"),
    # alignment
    *((f"view.alignment(maps, {gold})", says) for gold, says in (
        ("['01']", "gold"), ("[(0.7, 1.2)]", "gold"), ("iter(['01'])", "pairs of numbers"),
        ("iter([(0.7, 1.2)])", "pairs of numbers"), ("iter([(0, 1, 2)])", "pairs of numbers"),
        ("[(0, 3)]", r"IndexError: .*gold cell \(0, 3\) lies outside a map of 3 queries x 3 keys"),
        ("[(-1, 0)]", "outside a map"))),
    ("view.alignment(maps, numpy.array([[0, 1]]).tolist())", "= 1 gold cells"),
    # tables
    ("view.masks({})", "ValueError: .*tables must be of one shape.*got none"),
    ("view.masks({'one': ones, 'two': ones[:2]})", r"ValueError: .*tables must be of one shape.*\(2, 3\), \(3, 3\)"),
    ("view.masks({'one': torch.ones(2, 3, 5, 5)})", r"ValueError: .*\[2, 3, 5, 5\]"),
    ("view.masks({'one': eye * nan})", "a mask is True where a query may attend"),
    ("view.masks({'one': {}})", "ValueError: the mask 'one' has no tables"),
    ("view.masks({'one': ones}, roles={'two': 'all'})", r"LookupError: roles\['two'\] is 'all'.*masks one"),
    ("view.masks({'one': ones}, roles={'one': 'maybe'})", "LookupError: .*must be all, any, not or off"),
    ("view.masks({'one': ones}, ['a'])", "ValueError: query_tokens has 1 labels, the tables have 3 queries"),
    ("view.masks({'one': torch.ones(5000, 5000, dtype=torch.bool)})", "25,000,000 cells, and a picture has room for"),
    ("size(view.masks({'x' * 10_000: ones, 'y' * 10_000: ones}, title='t' * 10_000))", "= True"),
    ("AttentionMaps(maps.weights, mask=torch.full((3, 3), -inf))", "ValueError: .*give mask == 0"),
    ("view.masks({'one': torch.full((3, 3), -inf)})", "ValueError: .*give mask == 0"),
    ("view.mask(torch.tensor([[0.0, -inf]]))", "for a mask that is added to the scores, give mask == 0"),
    ("view.mask(torch.ones(0, 3))", r"at least one of each; this one has the shape \[0, 3\]"),
    ("view.mask(torch.ones(3))", r"a mask is query key.*\[3\]"),
    ("view.positions({})", "ValueError: .*no tables: give one, or several by name"),
    ("view.positions(eye * 1j)", "'positions' holds complex numbers"),
    ("view.positions(eye * nan)", r"ValueError: 'positions' holds nan \(first at \[0, 0\]\)"),
    ("view.positions(torch.ones(3))", r"ValueError: positions has the shape \[3\]; a table is position dim"),
    ("view.positions(eye, trained_length=0)", "trained_length is 0; it is a number of positions, at least 1"),
    ("view.positions(eye, trained_length=-1)", "ValueError: .*trained_length is -1"),
    ("view.positions(torch.ones(20_000, 4))", r"400,000,000 cells.*such as positions\[:1000\]"),
    ("view.positions(eye.to('meta'))", "'positions' is a tensor on the meta device, which holds no numbers"),
    ("view.positions(eye.to_sparse())", "= 3 positions x 3 dimensions"),
    ("view.mask(eye.to('meta'))", "meta device"),
    ("view.as_similarities(torch.ones(2, 3))", "a square matrix .position, position.; these have the shape .2, 3."),
    ("view.as_similarities(torch.rand(3))", "ValueError: .*position, position"),
    ("view.as_similarities(eye.log())", "'table' holds -inf"),
    ("view.gates({})", "ValueError: .*tables must be of one shape"),
    ("view.gates({'one': eye / 0})", "'one' holds"),
    ("view.gates({'one': eye * 1j})", "'one' holds complex numbers"),
    ("view.gates({'one': eye}, ['a'])", "ValueError: tokens has 1 labels, the tables have 3 steps"),
    ("view.gates({'one': torch.rand(0, 4)})", "ValueError: .*size 0"),
    ("view.tokens(['a'], [0.5, 1.0])", "tokens has 1 labels, the numbers have 2 tokens"),
    ("view.gates({str(i): eye for i in range(99)})", "99 tables, and a picture has room for 24"),
    ("view.head_table({})", "columns must be tables layer head, all of one size; got none"),
    ("view.head_table({'one': eye, 'two': eye[:2]})", "all of one size"),
    ("view.head_table({'one': eye + 1})", "shares lie between 0 and 1; these go from 1 to 2"),
    ("view.head_table({'one': torch.ones(200, 200)})", "40,000 heads.*give fewer layers"),
    # points, trees, modules
    ("view.scatter(torch.ones(3, 3), ['a'] * 3, 't')", r"points has the shape \[3, 3\]; it must be \[point, 2\]"),
    ("view.scatter(torch.ones(0, 2), [], 't')", "at least one point"),
    ("view.scatter(torch.ones(2, 2) * nan, ['a', 'b'], 't')", "'points' holds nan"),
    ("view.scatter(torch.ones(2, 2), ['a'], 't')", "1 names for 2 points; give one for each point"),
    (
        "view.planes({'one': torch.ones(1, 2)}, ['a'], 't', axes={'two': ('x', 'y')})",
        "axes names 'two', which is not one of the panels one",
    ),
    ("view.scatter(torch.zeros(1, 2), ['a' * 10_000], 't')._png('light')[:4]", "= PNG"),
    ("view.flow(lambda x: x + 1, torch.ones(2))", "source code of <lambda> is not available; give a function"),
    ("view.flow(nn.functional.normalize)", "missing 1 required positional argument: 'input'"),
    ("repr(view.flow(nn.functional.normalize, torch.ones(2, 3))).split()[-1]", "= 'denom'$"),
    (
        "view.flow(nn.functional.normalize, torch.ones(2, 3), mark=['x'])",
        "mark names 'x'; the values are input, denom",
    ),
    (
        "view.flow(nn.functional.normalize, torch.ones(2, 3), omit=['x'])",
        "omit names 'x'; the values are input, denom",
    ),
    ("view.tree([], ['a'])", f"no steps to draw; give {LIST}"),
    ("view.tree([beam([0, 1])], ['a', 'b'], batch_index=1)", "batch_index is 1; the batch has 1 texts"),
    ("view.tree([beam([0, 1])], ['a'])", "there are 1 tokens, and the texts hold the id 1; give a token for each id"),
    ("view.tree([beam([0, 1], 2000)], ['a', 'b'])", "2,000 nodes, and a picture has room for 1,500"),
    ("view.modules(nn.Linear(2, 3), depth=-1)", "depth is -1; it is a number of levels"),
    ("size(view.modules(nn.Linear(2, 3), 'x' * 10_000))", "= True"),
    # bertviz
    ("view.bertviz(weights(1.5))", "goes from 1.5 to 1.5, where weights lie between 0 and 1: are these scores"),
    ("view.bertviz(AttentionMaps((torch.ones(1, 1, 2, 2) * 255).byte()))", "= bertviz's head view"),
    # saving
    *((f"maps_view = view.heads(maps); maps_view.save({path})", says) for path, says in (
        ("'x.gif'", r"cannot write 'x\.gif': a picture is saved as \.png, \.svg or \.html"),
        ("'x'", r"\.png, \.svg or \.html"),
        ("''", r"\.png, \.svg or \.html"), ("'x.html', style='blue'", "style is 'blue'; it can be 'light' or 'dark'"),
        ("'x.png', style='blue'", "style is 'blue'"), ("'x\\0.png'", "give the path of a file that can be written"))),
    ("Path('x.png').mkdir(); bars(one=[1, 2]).save('x.png')", "cannot write x.png; give the path of a file"),
    ("Path('x').touch(); bars(one=[1, 2]).save('x/y.png')", "cannot write x/y.png; give the path of a file"),
    ("home(); it = bars(one=[1, 2]).save('~/x.png').parent == Path.home()", "= True"),
    ("bars(one=[1, 2]).figure('blue')", "'blue'"),
    ("with view.theme('blue'): pass", "theme is 'blue'; it can be 'light' or 'dark'$"),
    ("view.theme('drak')", "theme is 'drak'; it can be 'light' or 'dark'; did you mean 'dark'[?]$"),
    ("view.theme('Light')", "did you mean 'light'[?]$"), ("view.theme(3)", "name is 3; give str"),
    ("bars(one=[1, 2]).save('x.png', style=3)", "style is 3; it can be 'light' or 'dark'$"),
    ("bars(one=[1, 2]).figure('drak')", "did you mean 'dark'[?]$"),
    ("view.View(bars(one=[1, 2]), {})", "(the document|described) has the kind None; it can be heads"),
    # with a kernel
    ("view.live(maps, layer=2)", "layer is 2; there are 2, counted from 0"),
    ("view.live(maps, layer=-1)", "view.live: layer is -1; give an integer from 0 on"),
    ("view.live(maps, mode='circle')", "view.live: mode is 'circle'; give sheet, head, links or words"),
    ("view.live(maps, min_weight=2.0)", "view.live: min_weight is 2(?:[.]0)?; give a number from 0 to 1"),
    ("view.live(maps, merge_subwords='yes')", "view.live: merge_subwords is 'yes'; give True or False"),
    ("view.live(maps, layer=numpy.int64(1)).layer", "= 1"),
    ("view.live(maps, locked_rows=[-1])", r"ValueError: view.live: .*locked_rows is \[-1\]; give a list of places"),
    ("view.live(maps, colour='red')", "TypeError: .*no such choice: colour; there are: mode, part, layer"),
    ("view.live(maps, arrange='compare')", "ValueError: .*arrange is 'compare' with 1 captures"),
    ("view.live(maps, selected_heads=[1, 2])", r"ValueError: .*selected_heads is \[1, 2\]; give a list"),
    ("view.live(maps, arrange='circle')", "arrange is 'circle' with 1 captures; it can be 'choose'"),
    ("view.live({})", "ValueError: .*arrange is 'choose' with 0 captures"),
    ("view.live(maps, max_bytes=0)", "max_bytes is 0"),
    *((f"told({{'id': 1, 'part': 0, 'layer': {layer}, 'head': 0}})", rf"= .*LookupError: layer is {says}; there are 2")
      for layer, says in (("-1", "-1"), ("10**9", "1000000000"), ("'1'", ".*1.*"), ("True", "True"), ("1.0", "1.0"))),
    ("told({'id': 1, 'part': 0, 'head': 0})", "= layer is None; there are 2"),
    ("told({'id': 1, 'part': -1, 'layer': 0, 'head': 0})", "= part is -1; there are 1"),
    ("told([])", "= part is None"),
    ("told({'id': 7, 'part': 0, 'layer': 0, 'head': 0})", "= {'id': 7}"),
    ('view.image(maps, torch.rand(3, 8, 8) + 0j)', 'the picture holds complex numbers'),
    ("view.image(maps, torch.rand(3, 8, 8).to('meta'))", 'image is a tensor on the meta device'),
    (
        "view.image(AttentionMaps(torch.full((1, 1, 5, 5), 0.2)), torch.rand(3, 8, 8), prefix_labels=['a', 'b'])",
        'prefix_labels has 2 labels, and 1 token precedes the first patch',
    ),
]  # fmt: skip
