"""Cases of invalid arguments of `view.patch`."""

SETUP = """
import torch
from torch import nn
from tfviz import view
from tfviz.models import BERT, GPT
from tfviz.text import ByteTokenizer, CharacterTokenizer, train_whole_words
nan = float("nan")
tokenizer = CharacterTokenizer("abc")
model = GPT(3, context=8, layers=2, heads=2, dim=4)
given = {"model": model, "tokenizer": tokenizer, "clean": "abc", "corrupt": "aac"}
def patch(**more): return view.patch(**{**given, **more})
def sick():
    made = GPT(3, context=8, layers=1, heads=1, dim=4)
    made.norm.weight.data.fill_(nan)
    return made
class Peeks(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(3, 3)
        self.blocks = nn.ModuleList([nn.Identity()])
    def forward(self, ids): return self.blocks[0](self.tokens(ids))
class Torch(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.out = nn.Embedding(3, 4), nn.Linear(4, 3)
        self.layers = nn.ModuleList([nn.MultiheadAttention(4, 2, batch_first=True)])
    def forward(self, ids):
        x = self.tokens(ids)
        mask = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(1)
        return self.out(self.layers[0](x, x, x, attn_mask=mask)[0])
class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = GPT(3, context=8, layers=1, heads=1, dim=4)
    def forward(self, ids):
        out = self.inner(ids)
        return out if out[0, 0].sum() > -1e9 else -out
"""
CASES = [
    ("patch(clean='')", "clean has 0 tokens; the model takes 1 to 8"),
    ("patch(corrupt='a' * 9)", "corrupt has 9 tokens; the model takes 1 to 8"),
    (
        "patch(corrupt='ab')",
        r"clean has 3 tokens and corrupt 2: \['a', 'b', 'c'\] and \['a', 'b'\]; give texts of equally",
    ),
    ("patch(clean='abd')", "character 'd' .U.0064. at place 2 is not among the 3"),
    ("patch(answers=['a'])", r"answers are \['a'\]; give two, of the clean and of the corrupt text"),
    ("patch(answers='ab')", "answers (?:is|are) 'ab'; give"),
    (
        "patch(answers=['a', 'bc'])",
        r"the answer of corrupt, 'bc', has 2 tokens: \['b', 'c'\]; give a text of one token",
    ),
    ("patch(answers=['', 'b'])", "the answer of clean, '', has 0 tokens"),
    ("patch(answers=['a', 'z'])", "character 'z' .U.007A. at place 0 is not among the 3"),
    ("patch(answers=['a', 'a'])", "both answers are 'a'; give two that differ"),
    ("patch(answers=[0, 3])", "the answer of corrupt is 3; the ids go from 0 to 2"),
    ("patch(answers=[-1, 0])", "answers is -1; it must be at least 0"),
    ("patch(tokenizer='abc')", "tokenizer is 'abc', which a page cannot encode with: give one of tfviz.text"),
    (
        "patch(tokenizer=CharacterTokenizer('ab'), corrupt='aab', clean='bbb')",
        "the model has logits for 3 tokens, .* has 2",
    ),
    ("patch(model=sick())", "the model's logits are not finite"),
    ("patch(model=nn.Flatten())", "Flatten has no weights; give a model that was trained"),
    ("patch(model=BERT(3, context=8, layers=1, heads=1, dim=4))", "does not write from left to right"),
    ("patch(model=nn.Embedding(3, 3))", "Embedding cannot be patched in a page: no site matches"),
    ("patch(model=Peeks())", "Peeks cannot be patched in a page"),
    (
        "patch(model=Torch())",
        "heads of layers.0 do not pass, .*, through a projection that is a module; use study.patch",
    ),
    ("patch(model=Steps())", "cannot be exported"),
    ("patch(model=GPT(3, context=8, layers=1, heads=1, dim=4).half())", "float16, and a page computes in float32"),
    ("patch(model=GPT(3, context=8, layers=1, heads=1, dim=4).to('meta'))", "on the meta device"),
    ("patch(dtype='int4')", "dtype is 'int4'; it can be 'float32', 'float16', 'int8'"),
    ("patch(max_bytes=10)", "the model takes .* bytes in a page, max_bytes is 10: keep its weights"),
    (
        "patch(examples={'x': {'prompt': 'a'}})",
        r"examples\['x'\] sets prompt; it can set clean, clean_answer_id, corrupt, corrupt_answer_id",
    ),
    ("patch(clean='a', corrupt='b').document['state']['clean']", "= a"),
    ("patch(answers=['c', 0]).document['state']['clean_answer_id']", "= 2"),
]
