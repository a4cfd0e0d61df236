"""Maps, files of maps, capture: values that cannot be."""

SETUP = """
import os, torch
from pathlib import Path
from torch import nn
from tfviz import look, models, sealed
from tfviz.look import AttentionMaps, capture
maps = AttentionMaps(torch.eye(3).expand(2, 4, 3, 3), rows=["a", "b", "c"])
gpt = models.GPT(11, context=7, layers=2, heads=2, dim=4)
meta = torch.ones(2, 3, device="meta")
with torch.device("meta"):
    sketch = models.GPT(11, context=7, layers=2, heads=2, dim=4)
ids = torch.tensor([[1, 2, 3]])
def seen(model=gpt, inputs=ids, *given, **more):
    with capture(model, *given, **more) as seen:
        model(inputs)
    return seen
def flipped(path, bit):
    damaged = bytearray(Path(path).read_bytes())
    damaged[bit // 8] ^= 1 << bit % 8
    Path(path).write_bytes(damaged)
outputs = [torch.ones(1, 4, 3, 3) / 3] * 2
"""
CASES = [
    ("AttentionMaps(outputs)", r"weights have a batch axis .*\[layer\[0\] for layer in weights\]"),
    ("AttentionMaps(torch.ones(2, 1, 4, 3, 3))", "have a batch axis"),
    ("AttentionMaps(torch.ones(4, 3, 3))", "weights must be layer head query key"),
    ("AttentionMaps([])", "there are no weights"),
    ("AttentionMaps([torch.ones(2, 3, 3), torch.ones(2, 3, 4)])", "choose sites whose maps are alike"),
    ("AttentionMaps(torch.ones(1, 2, 3, 3, dtype=torch.int8))", r"weights are torch\.int8; give numbers from 0 to 1"),
    ("AttentionMaps(torch.ones(1, 2, 3, 3, dtype=torch.bool))", r"weights are torch\.bool"),
    ("AttentionMaps(torch.ones(1, 2, 3, 3, dtype=torch.complex64))", r"weights are torch\.complex64"),
    ("AttentionMaps(torch.ones(1, 1, 2, 2), rows=['a'])", "rows has 1 words, the maps have 2 queries"),
    ("AttentionMaps(torch.ones(1, 1, 2, 2), rows=['a', None])", "word 1 is None; give a string or a number"),
    ("AttentionMaps(torch.ones(1, 1, 2, 2), rows=[b'a', b'\\xff']).rows", r"= \['a', '\\\\xff'\]|\['a', "),
    ("AttentionMaps(torch.ones(1, 1, 2, 3), rows='ab', cols='ab')", "cols has 2 words, the maps have 3 keys"),
    ("AttentionMaps(torch.ones(1, 1, 2, 2), mask=torch.ones(3, 3))", r"a mask of shape \[3, 3\] does not fit"),
    ("AttentionMaps(torch.ones(1, 1, 2, 2), mask=torch.full((2, 2), -1e9))", "a mask is True where a query may look"),
    ("AttentionMaps(torch.ones(1, 1, 2, 2), sites=['a', 'b'])", "sites has 2 words, the maps have 1 layers"),
    ("AttentionMaps(torch.ones(1, 1, 2, 2), provenance={'a': torch.ones(2)}).save('x')", "provenance can hold text"),
    ("maps[2, 0]", "layer is 2; the maps have 2, from 0 to 1"),
    ("maps[0, 9]", "head is 9; the maps have 4"),
    ("maps[-3]", "layer is -3"),
    ("maps[-1, -1].shape", r"= \[3, 3\]"),
    ("maps[torch.zeros(2, 3)]", r"where is a tensor of shape \[2, 3\]; give a whole number or a list"),
    ("maps[0, 1, 2]", r"= \[0\., 0\., 1\.\]|= tensor\(\[0\., 0\., 1\.\]"),
    ("maps[0, 1, 3]", "query is 3; the maps have 3"),
    ("maps[0, 1, 2, 1.5]", r"where\[3\] is 1\.5; give a whole number or a slice"),
    ("maps[0, :2]", "head is a slice; give one number"),
    ("maps.tile(0, 4)", "head is 4; the maps have 4"),
    ("maps.tile(0, 1, block=0)", "block is 0; it must be at least 1"),
    ("maps.tile(0, 1, 5)", "rows is 5; give a slice"),
    ("maps.allowed(5, 0)", "layer is 5; the maps have 2"),
    ("maps[torch.tensor(1), torch.tensor(2)].shape", r"= \[3, 3\]"),
    ("maps.packed(0, 0, 10**12)", r"= tensor\(\[\[255\]\]"),
    ("maps.packed(0, 0, 0)", "block is 0; it must be at least 1"),
    ("AttentionMaps(torch.full((1, 1, 2, 2), torch.nan)).packed(0, 0)", "holds NaN: a softmax over nothing"),
    ("AttentionMaps(torch.full((1, 1, 2, 2), 3.0)).packed(0, 0)", "are these scores, before their softmax"),
    ("AttentionMaps.load('none')", "there is no file none"),
    ("AttentionMaps.load('.')", "there is no file"),
    ("os.mkfifo('pipe'); AttentionMaps.load('pipe')", "there is no file pipe"),
    ("open('x', 'w').write('no'); AttentionMaps.load('x')", "x is damaged, or no safetensors file"),
    ("sealed.save('x', {'a': torch.ones(2)}); AttentionMaps.load('x')", "holds no attention maps"),
    *(
        (f"p = maps.save('x'); flipped(p, 8 * os.path.getsize(p) * {part} // 9 + 3); AttentionMaps.load(p)", "^x ")
        for part in (4, 6, 8)
    ),
    ("p = maps.save('x'); os.truncate(p, 900); AttentionMaps.load(p)", "x is damaged"),
    ("maps.save('a/b/c.maps'); it = AttentionMaps.load('a/b/c.maps')", "= 2 layers x 4 heads"),
    ("os.environ['HOME'] = os.getcwd(); maps.save('~/x'); it = os.path.isfile('x')", "= True"),
    ("AttentionMaps.of({'a.pattern': torch.ones(1)})", r"seen is a dictionary; give what a capture sees: with look"),
    ("AttentionMaps.of(outputs)", "seen is a list; give what a capture sees"),
    ("AttentionMaps.of(seen(), batch=1)", "batch is 1; the capture holds a batch of 1"),
    ("AttentionMaps.of(seen(), sites='decoder.*')", r"no pattern of 'decoder\.\*' was captured"),
    ("AttentionMaps.of(seen(), rows='ab')", "rows has 2 words, the maps have 3 queries"),
    ("seen(gpt, ids, '*.patern')", r"no site matches '\*\.patern'; this model has 2: blocks\.0\.attention\.pattern"),
    ("seen(gpt, ids, '')", "no site matches ''"),
    ("seen(dtype=torch.float64)", "patterns can be kept as torch.float32"),
    ("seen(edit={'blocks.0': lambda x: None})", "the edit of blocks.0 returned NoneType"),
    ("seen(edit={'blocks.9': lambda x: x})", "no site matches 'blocks.9'"),
    ("seen(nn.Linear(3, 2), torch.ones(3))", "was called, but nothing met values in a product over keys"),
    ("seen()[0]", r"look\.Seen\.firings: site is 0; give a string"),
    ("seen().allowed(None)", "site is None; give a string"),
    ("maps.allowed([None], 0)", "layer is a list; give a whole number"),
    ("seen()['blocks.0.attention']", "no site matches 'blocks.0.attention'; this model has 2"),
    ("seen(sketch, ids.to('meta'))", "query is a tensor on the meta device, whose numbers cannot be read"),
    ("look.pack(torch.tensor([2.0]))", "below 0, above 1, or NaN"),
    ("look.pack(meta)", "weights is a tensor on the meta device, whose numbers cannot be read; give a dense one"),
    ("look.measures.entropy(meta)", "weights is a tensor on the meta device"),
    ("look.measures.distance(meta)", "weights is a tensor on the meta device"),
    ("look.measures.rollout(torch.ones(1, 3, 3).to_sparse())", r"weights is a tensor torch\.sparse_coo, whose numbers"),
    ("look.ablate(gpt, nn.Linear(2, 2))", "measure is a Linear; it must take nothing, but: missing a required"),
    ("look.ablate(gpt, nn.Linear)", r"measure is the class Linear; give a function, or an instance, Linear\(\.\.\.\)"),
    ("look.ablate(gpt, lambda: 1.0)", "the model was not called inside the with"),
    ("look.ablate(gpt, lambda: float(gpt(ids).mean()), 'blocks.*.scores')", "heads are taken away at patterns"),
]  # fmt: skip
