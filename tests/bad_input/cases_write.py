"""Cases of invalid arguments of `view.write`."""

SETUP = """
import torch
from torch import nn
from tfviz import view
from tfviz.models import GPT
from tfviz.text import ByteTokenizer, CharacterTokenizer
nan, inf = float("nan"), float("inf")
tokenizer = CharacterTokenizer("abc")
model = GPT(3, context=8, layers=1, heads=1, dim=4)
def write(**more): return view.write(**{"model": model, "tokenizer": tokenizer, "prompt": "ab", **more})
def sick():
    made = GPT(3, context=8, layers=1, heads=1, dim=4)
    made.norm.weight.data.fill_(nan)
    return made
def told(**question):
    live, sent = write(kernel=True), []
    live.send = lambda answer, buffers=None: sent.append(answer)
    live._on_message(live, {"id": 1, **question}, [])
    return sent[0]["error"]
def asks(ids, shape=None, **more): return told(run="read", inputs=[["ids", shape or [1, len(ids)], ids]], **more)
class Peeks(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(3, 3)
    def forward(self, ids):
        made = self.tokens(ids)
        return made if made[0, 0].sum() > 0 else -made
"""
CASES = [
    ("write(model=Peeks())", "cannot be exported"),
    ("write(model=sick())", "the model's logits are not finite; check its weights"),
    ("write(tokenizer='abc')", "tokenizer is 'abc', which a page cannot encode with: give one of tfviz.text"),
    ("write(tokenizer=None)", "tokenizer is None, which a page cannot encode with"),
    (
        "write(tokenizer=ByteTokenizer())",
        "the model has logits for 3 tokens, the tokenizer has 256; pass the model's own",
    ),
    ("write(tokenizer=CharacterTokenizer('ab'))", "the model has logits for 3 tokens, the tokenizer has 2"),
    ("write(prompt='')", "the prompt has 0 tokens; the model takes 1 to 8"),
    ("write(prompt='a' * 9)", "the prompt has 9 tokens; the model takes 1 to 8: give a shorter prompt"),
    ("write(prompt='ad')", "character 'd' .U.0064. at place 1 is not among the 3"),
    ("write(temperature=-1)", "temperature is -1(?:[.]0)?; it must be at least 0"),
    ("write(temperature=nan)", "temperature is nan"),
    ("write(temperature=inf)", "temperature is inf; it must be finite"),
    ("write(top_k=0)", "top_k is 0; it must be at least 1"),
    ("write(top_p=0)", "top_p is 0(?:[.]0)?; it must be above 0 and at most 1"),
    ("write(top_p=1.1)", "top_p is 1.1; it must be above 0"),
    ("write(top_p=nan)", "top_p is nan"),
    ("write(seed=-1)", "seed is -1; it must be from 0 to 9007199254740991"),
    ("write(seed=2**53)", "seed is 9007199254740992"),
    ("write(dtype='int4')", "dtype is 'int4'; it can be 'float32', 'float16', 'int8'"),
    ("write(max_bytes=10)", "the model takes .* bytes in a page, max_bytes is 10: keep its weights"),
    (
        "write(kernel=True, tokenizer=CharacterTokenizer('ab'), prompt='b')",
        "the model has logits for 3 tokens, the tokenizer has 2",
    ),
    ("asks([])", "= the inputs are .*; give ids, numbers from 0 to 2, with their shapes"),
    ("asks([3])", "= the inputs are .*; give ids, numbers from 0 to 2"),
    ("asks([True])", "= the inputs are"),
    ("asks([0], shape=[2, 5])", "= the inputs are"),
    ("told(run='read', inputs='ab')", "= the inputs are 'ab'; give ids"),
    ("told(run='read')", "= the inputs are None"),
    ("told(run='write')", "= KeyError"),
    ("told()", "= KeyError"),
    ("asks([1], ablated_heads=[{'site': 'nowhere', 'head': 0}])", "= nowhere"),
    (
        "asks([1], ablated_heads=[{'site': 'blocks.0.attention.pattern', 'head': 9}])",
        "= there is no head 9; there are 1",
    ),
    ("write(top_k=99).document['state']['top_k']", "= 99"),
    ("write(prompt='c').document['state']['prompt']", "= c"),
    (
        "write(model=GPT(3, context=8, layers=1, heads=1, dim=4).half())",
        "float16, and a page computes in float32: give model",
    ),
]
