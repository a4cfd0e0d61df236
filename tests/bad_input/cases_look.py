"""Cases of invalid attention maps, map files and captures."""

import re

SETUP = """
import os, pickle, torch
from pathlib import Path
from torch import nn
from tfviz import files, look, models
from tfviz.look import AttentionMaps, capture
maps = AttentionMaps(torch.eye(3).expand(2, 4, 3, 3), query_tokens=["a", "b", "c"])
gpt = models.GPT(11, context=7, layers=2, heads=2, dim=4)
meta = torch.ones(2, 3, device="meta")
with torch.device("meta"):
    sketch = models.GPT(11, context=7, layers=2, heads=2, dim=4)
ids = torch.tensor([[1, 2, 3]])
def seen(model=gpt, inputs=ids, *given, **more):
    with capture(model, *given, **more) as seen:
        model(inputs)
    return seen
def copied(): return pickle.loads(pickle.dumps(seen()))
outputs = [torch.ones(1, 4, 3, 3) / 3] * 2
"""
CASES = [
    ("AttentionMaps((None, None))", r"weights\[0\] is None: under sdpa .*use look\.capture"),
    ("AttentionMaps(torch.ones(1, 2, 3, 3, device='meta'))", r"weights\[0\] is a tensor on the meta device"),
    ("AttentionMaps(torch.ones(1, 2, 3, 3).to_sparse())", r"weights\[0\] is a tensor torch\.sparse_coo"),
    ("AttentionMaps(torch.ones(1, 2, 3, 3).to(torch.float8_e4m3fn))", r"weights are torch\.float8_e4m3fn"),
    ("look.measures.mean_distance(torch.ones(3))", r"weights are \[3\]; give queries and keys"),
    ("look.groups(seen(), query_tokens={'blcoks*': 'abc'})", r"no group matches 'blcoks\*'; there are: blocks\."),
    ("look.groups(seen(), key_tokens={'blocks*': 'abc', 'x': 'abc'})", "key_tokens: no group matches 'x'"),
    ("list(look.groups(seen(), query_tokens={'blocks*': 'abc'}))", r"= \['blocks\.\*\.attention'\]"),
    ("gpt(torch.rand(1, 3))", 'ids of tokens are torch.float32'),
    ("AttentionMaps(outputs)", r"weights have a batch axis .*\[layer\[0\] for layer in weights\]"),
    ("AttentionMaps(torch.ones(4, 3, 3))", "weights must be layer head query key"),
    ("AttentionMaps([])", "there are no weights"),
    ("AttentionMaps([torch.ones(2, 3, 3), torch.ones(2, 3, 4)])", "choose sites whose maps have the same shape"),
    ("AttentionMaps(torch.ones(1, 2, 3, 3, dtype=torch.int8))", r"weights are torch\.int8; give numbers from 0 to 1"),
    ("AttentionMaps(torch.ones(1, 1, 2, 2), query_tokens=['a'])", "query_tokens has 1 labels, the maps have 2 queries"),
    ("AttentionMaps(torch.ones(1, 1, 2, 2), query_tokens=['a', None])", "label 1 is None; give a string or a number"),
    ("AttentionMaps(torch.ones(1, 1, 2, 2), query_tokens=[b'a', b'\\xff']).query_tokens",
     r"= \['a', '\\\\xff'\]|\['a', "),
    ("AttentionMaps(torch.ones(1, 1, 2, 2), mask=torch.ones(3, 3))", r"a mask of shape \[3, 3\] does not fit"),
    ("AttentionMaps(torch.ones(1, 1, 2, 2), mask=torch.full((2, 2), -1e9))", "a mask is True where a query may attend"),
    ("AttentionMaps(torch.ones(1, 1, 2, 2), sites=['a', 'b'])", "sites has 2 labels, the maps have 1 layers"),
    (
        "AttentionMaps(torch.ones(1, 1, 2, 2), provenance={'a': torch.ones(2)}).save('x')",
        "provenance.a is a tensor of shape .2.; it must be a number, a text",
    ),
    ("maps[2, 0]", "layer is 2; the maps have 2, from 0 to 1"),
    ("maps[0, 9]", "head is 9; the maps have 4"),
    ("maps[-1, -1].shape", r"= \[3, 3\]"),
    ("maps[0, 1, 2]", r"= \[0\., 0\., 1\.\]|= tensor\(\[0\., 0\., 1\.\]"),
    ("maps[0, :2]", "head is a slice; give one number"),
    ("maps.max_pool(0, 4)", "head is 4; the maps have 4"),
    ("maps.max_pool(0, 1, pool_size=0)", "pool_size is 0; it must be at least 1"),
    ("maps.allowed(5, 0)", "layer is 5; the maps have 2"),
    ("maps[torch.tensor(1), torch.tensor(2)].shape", r"= \[3, 3\]"),
    ("maps.as_uint8(0, 0, 10**12)", r"= tensor\(\[\[255\]\]"),
    ("maps.as_uint8(0, 0, 0)", "pool_size is 0; it must be at least 1"),
    ("AttentionMaps(torch.full((1, 1, 2, 2), torch.nan)).as_uint8(0, 0)", "holds NaN; is there a query"),
    ("AttentionMaps(torch.full((1, 1, 2, 2), 3.0)).as_uint8(0, 0)", "are these scores, before their softmax"),
    ("AttentionMaps.load('none')", "there is no file none"),
    ("AttentionMaps.load('.')", "there is no file"),
    ("os.mkfifo('pipe'); AttentionMaps.load('pipe')", "there is no file pipe"),
    ("open('x', 'w').write('no'); AttentionMaps.load('x')", "x is damaged, or not a safetensors file"),
    ("files.save_tensors('x', {'a': torch.ones(2)}); AttentionMaps.load('x')", "holds no attention maps"),
    ("p = maps.save('x'); os.truncate(p, 900); AttentionMaps.load(p)", "x is damaged"),
    ("maps.save('a/b/c.maps'); it = AttentionMaps.load('a/b/c.maps')", "= 2 layers x 4 heads"),
    ("os.environ['HOME'] = os.getcwd(); maps.save('~/x'); it = os.path.isfile('x')", "= True"),
    ("AttentionMaps.from_capture(seen(), batch=1)", "batch is 1; the capture holds a batch of 1"),
    ("AttentionMaps.from_capture(seen(), sites='decoder.*')", r"no pattern of 'decoder\.\*' was captured"),
    ("AttentionMaps.from_capture(seen(), query_tokens='ab')", "query_tokens has 2 labels, the maps have 3 queries"),
    ("seen(gpt, ids, '*.patern')", r"no site matches '\*\.patern'; this model has 2 that end in \.pattern: blocks"),
    ("seen(gpt, ids, 'layers.1.input')", r"that end in \.input, the nearest are: blocks\.1\.input"),
    ("seen(gpt, ids, '*.inptu')", r"that end in \.input, the nearest are: "),
    ("seen(gpt, ids, 'layers.1.out_proj')", r"this model has 2 that end in \.out_proj: blocks\.1\.attention\.out"),
    ("seen(gpt, ids, 'layers.1.feed')", r"the nearest are: blocks\.1\.feed_forward"),
    *(
        (f"seen(gpt, ids, 'blocks.1.{hook}')", f"of TransformerLens is {ours} here, with paths of the model's own")
        for hook, ours in (
            ("hook_resid_pre", r"BLOCK\.input"),
            ("resid_post", "BLOCK"),
            ("attn.z", r"ATTENTION\.output_heads"),
            ("attn.hook_attn_scores", r"ATTENTION\.scores"),
        )
    ),
    *(
        (f"seen()[{site}]", rf"a site is {said}; give its name, a string, such as 'blocks\.0\.attention\.pattern'")
        for site, said in (("0", "0"), ("'pattern', 0", r"\('pattern', 0\)"), ("None", "None"))
    ),
    ("seen(gpt, ids[:1], edit={'blocks.0': look.edits.mean()})", "the batch has one text, whose mean is itself"),
    ("seen(gpt, ids, '')", "no site matches ''"),
    ("seen(edit={'blocks.9*': torch.zeros_like})", r"no site matches 'blocks\.9\*'"),
    ("seen(axes={'blcoks.*': 'b h q k'})", r"axes: no site matches 'blcoks\.\*'"),
    ("seen(dtype=torch.float64)", "dtype is torch.float64"),
    ("capture(gpt, dtype=torch.uint8, grad=True)", "grad=True stores tensors unchanged"),
    ("capture(gpt, lazy=True, grad=True)", "leave out dtype=torch.float32, lazy=True and device=None"),
    ("capture(gpt, device='cpu', grad=True)", "lazy=False and device=cpu"),
    ("AttentionMaps.from_capture(seen(lazy=True))[0, 0, 3]", "query is 3; the maps have 3"),
    ("AttentionMaps.from_capture(seen(lazy=True)).max_pool(0, 6)", "head is 6; the maps have 2"),
    (
        "look.register_attention_kernel(lambda q, k, v, n, causal=0: q, cu_seqlens=('n', 'n'))",
        "axes is 'b n h d'; packed texts",
    ),
    ("look.register_attention_kernel(len)", "give a plain Python function"),
    ("look.register_attention_kernel(lambda q, k, v, causal=0: q, axes='n d')", "axes is 'n d'; it can be one of"),
    (
        "look.register_attention_kernel(lambda q, k, v, causal=0: q, cu_seqlens=('n', 'n'), axes='n h d')",
        "has no argument 'n'",
    ),
    ("seen(edit={'blocks.0': lambda x: None})", "the edit of blocks.0 returned NoneType"),
    ("seen(nn.Linear(3, 2), torch.ones(3))", "the model ran, but no attention was seen in it"),
    *(
        (f"{seen}()['{site}']", rf"'{re.escape(site)}' was not captured: name it, as in sites=\['{re.escape(site)}'\]")
        for seen in ("seen", "copied")
        for site in ("blocks.0.attention", "blocks.0", "blocks.1.input", "blocks.0.attention.query", "norm")
    ),
    *(
        (f"{seen}()['{site}']", rf"no site matches '{re.escape(site)}'; .*this model.*: {near}")
        for seen in ("seen", "copied")
        for site, near in (
            ("blocks.7", r"blocks\.\d"),
            ("block.0.attention.out_proj", r"blocks\.0\.attention\.out_proj"),
        )
    ),
    ("copied()['blocks.0.attention.patern']", r"no site matches .*; this model has 2 that end in \.pattern: blocks"),
    ("it = look.capture(gpt).__enter__(); it['blocks.0']", "no site 'blocks.0' yet: the model has not been called"),
    *(
        (
            f"with {both}: gpt(ids).sum().backward()",
            r"the model ran without gradients \(torch\.no_grad\).*; call it inside torch\.enable_grad\(\)",
        )
        for both in (
            "torch.no_grad(), look.capture(gpt, grad=True) as it",
            "look.capture(gpt, grad=True) as it, torch.no_grad()",
            "torch.set_grad_enabled(False), look.capture(gpt, grad=True) as it",
            "torch.inference_mode(), look.capture(gpt, grad=True) as it",
        )
    ),
    *(
        (f"maps.save('{name}')", f"{name}: maps are written as safetensors; give a name")
        for name in ("x.csv", "x.pt", "x.json", "folder/x.npz")
    ),
    ("seen(sketch, ids.to('meta'))", "the model was only traced .*without numbers"),
    ("look.quantize(torch.tensor([2.0]))", "below 0, above 1, or NaN"),
    ("look.quantize(meta)", "weights is a tensor on the meta device, whose numbers cannot be read; give a dense one"),
    ("look.measures.entropy(meta)", "weights is a tensor on the meta device"),
    ("look.measures.mean_distance(meta)", "weights is a tensor on the meta device"),
    ("look.ablate(gpt, nn.Linear(2, 2))", "measure is a Linear; it must take nothing, but: missing a required"),
    ("look.ablate(gpt, lambda: 1.0)", "measure does not call the model"),
    ("look.ablate(gpt, lambda: float(gpt(ids).mean()), 'blocks.*.scores')", "heads are ablated at patterns"),
    ('look.measures.head_scores(maps, [])', "kinds is empty; there are: current, previous"),
    ("look.measures.head_scores(maps, ['fisrt'])", r"'fisrt'"),
    ("seen(gpt, ids, edit={'*.scores': look.edits.zero(0)})", "scores: a score of zero is not a weight of zero"),
    ('look.edits.zero(0)([[0.5, 0.5]])', "weights are a list"),
    ("look.groups(seen(), ['only', 'two'])", "query_tokens has 2 labels, but no group has that many"),
    ("look.measures.head_scores(AttentionMaps(torch.eye(3)[None, None], 'abc', 'xyz'))", "of cross-attention"),
    ("os.mkfifo('pipe'); maps.save('pipe')", "pipe cannot be written: it is not a file"),
    ("with capture(gpt) as it: it['blocks.0.attention.pattern']", "yet: the model has not been called"),
    ('maps.max_pool(0, 0, pool_size=10**12).tolist()', '= \\[\\[1\\.0\\]\\]'),
    ('maps[0, 0, 1.0:2.0]', 'query start is 1.0; give an integer'),
    ("maps[0, 0, :, 'a':]", "key start is 'a'; give an integer"),
    ('maps.max_pool(0, 0, queries=slice(0, 2.5))', 'query stop is 2.5; give an integer'),
    ('look.register_attention_kernel(lambda q, k, v: q)', "has no argument 'causal'; it has q, k, v; give causal=None"),
    ('look.ablate(gpt, lambda: [gpt(ids), 10**400][1])', 'measure returns a int; it must return one number'),
    ('look.dequantize(torch.tensor([1, 2]))', 'weights are torch\\.int64; give numbers of a float type, or uint8'),
    ("seen(axes='b q h k')", "PyTorch's own attention has queries and keys on its last two axes"),
    ("seen(axes='b h k q')", "PyTorch's own attention has queries and keys on its last two axes"),
    ("look.measures.head_scores(AttentionMaps(torch.randn(1, 2, 3, 3) - 9, 'abc'))", 'weights hold -'),
    ("look.measures.head_scores(AttentionMaps(torch.ones(1, 2, 3, 3) * torch.nan, 'abc'))", 'hold NaN'),
    ('look.measures.total_variation(AttentionMaps(torch.ones(1, 2, 3, 3) * torch.nan), maps)', 'shapes differ'),
    ("look.measures.value_weighted_norms(torch.full((1, 3, 3), torch.nan), torch.ones(1, 3, 2))", "NaN or infinity"),
    ('look.measures.relevance(torch.ones(1, 1, 3, 3) * torch.nan, torch.ones(1, 1, 3, 3))', 'hold NaN'),
    ('look.measures.relevance(torch.full((1, 1, 3, 3), 0.3), torch.ones(1, 1, 3, 3) * torch.inf)', 'gradients hold'),
    ('look.measures.mean_distance(torch.full((2, 5), 0.2))', 'distance is defined for square maps, not \\(2, 5\\)'),
    ("seen(edit={'*.pattern': lambda weights: weights.to('meta')})", 'returned a tensor on meta; it must stay on cpu'),
    ('AttentionMaps(torch.full((1, 1, 3000, 3000), 1 / 3000)).shape', '= \\(1, 1, 3000, 3000\\)'),
    ('AttentionMaps.over_time(seen(), text_index=99)', 'text_index is 99; the capture holds 1 text'),
    ('AttentionMaps.over_time(seen(), text_index=-1).shape', '= \\(2, 2, 3, 3\\)'),
    ("AttentionMaps(torch.ones(1, 2, 3, 3), mask=meta > 0)", "mask is a tensor on the meta device"),
    ("look.measures.head_scores(maps, 'previous')", "kinds is 'previous'; give a list, such as \\['previous'\\]"),
    ("capture(gpt, edit={'*': lambda one, two, three: one})", 'the edit <lambda> takes 3 arguments'),
    ("capture(gpt, edit={'*': lambda: None})", 'the edit <lambda> takes 0 arguments'),
    ("capture(gpt, device='gpu9')", "device is 'gpu9', which is not available here"),
    ("capture(gpt, lazy='gpu9')", "lazy is 'gpu9'; give bool"),
    ("capture(gpt, lazy=True, device='gpu9')", "device is 'gpu9', which is not available here"),
    ('AttentionMaps(torch.eye(3, dtype=torch.uint8)[None, None]).caveat', '= rows do not sum to 1 in layer 0'),
    ('AttentionMaps(look.quantize(torch.full((1, 1, 3, 3), 1 / 3))).caveat', '= $'),
    (
        'look.edits.uniform()(torch.ones(1, 1, 3, 3).long())',
        r'weights are torch\.int64',
    ),
    ('look.edits.hide([(0, 0)])(maps)', 'weights are an AttentionMaps .*; an edit takes a tensor'),
    ('look.edits.pin([(0, 0)], 0.5)([[1.0]])', 'weights are a list; an edit takes a tensor'),
    (
        "look.measures.total_variation(AttentionMaps(maps.weights, 'abc'), AttentionMaps(maps.weights, 'xyz'))",
        "the tokens differ: \\['a', 'b', 'c'\\] and",
    ),
    (
        'look.measures.mean_distance(AttentionMaps(torch.eye(4)[None, None, 2:]))',
        'distance is not defined where 2 queries attend to 4 keys',
    ),
    ("look.measures.mean_distance(AttentionMaps(torch.eye(4)[None, None, 2:], 'cd', 'abcd')).item()", '= 0.0'),
    (
        'look.measures.entropy(AttentionMaps(maps.weights, mask=torch.zeros(3, 3) > 0))',
        'every position of these maps is padding',
    ),
    ("seen().assembled('blocks.0.attention.pattern', 9)", 'batch is 9; the capture holds a batch of 1'),
    ("AttentionMaps(maps.weights, [['a'], ['b'], ['c']])", "label 0 is \\['a'\\]; give a string or a number"),
    ('seen(sketch, meta.long())', 'inside the `with` block the model was only traced'),
    (
        "AttentionMaps(type('FakeTensor', (torch.Tensor,), {})(torch.ones(1, 1, 3, 3)))",
        'weights\\[0\\] is a fake tensor',
    ),
    (
        'look.external_kernels.packed_mask(torch.tensor([0, 4]), torch.tensor([0, 6, 4, 9]), -1, -1, 4, 9)',
        'texts of the keys begin at \\[0, 6, 4, 9\\]; they must rise',
    ),
    (
        'look.external_kernels.packed_mask(torch.tensor([0, 4]), torch.tensor([0, 12]), -1, -1, 4, 9)',
        'texts of the keys begin at \\[0, 12\\]; they must rise from 0 to at most 9',
    ),
]  # fmt: skip
