"""Cases of invalid arguments of `view.classify` and `view.fill`."""

SETUP = """
import torch
from torch import nn
from tfviz import view
from tfviz.models import BERT, GPT, Classifier
from tfviz.text import ByteTokenizer, train_whole_words
nan, inf = float("nan"), float("inf")
tokenizer = train_whole_words(["a b c"])
small = {"layers": 1, "heads": 1, "dim": 4}
def reader(classes=2): return Classifier(len(tokenizer), classes, context=4, **small)
def bert(): return BERT(len(tokenizer), context=6, **small)
def gpt(): return GPT(len(tokenizer), context=6, **small)
def sick(model):
    next(p for p in model.parameters() if p.dim() == 1).data.fill_(nan)
    return model
given = {"tokenizer": tokenizer, "text": "a b"}
def classify(**more): return view.classify(**{"model": reader(), "labels": ["no", "yes"], **given, **more})
def fill(**more): return view.fill(**{"model": bert(), **given, **more})
class Peeks(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 2)
    def forward(self, ids): return self.table(ids).sum(1) if ids.sum() > 3 else self.table(ids)[:, 0]
"""
CASES = [
    ("classify(model=Peeks())", "cannot be exported"),
    ("classify(model=nn.Flatten())", "Flatten has no weights"),
    ("classify(model=sick(reader()))", "the model's logits are not finite"),
    ("classify(model=gpt())", r"\[1, 2, 10\], as a language model does; give a model that returns \[1, 2\]"),
    ("classify(model=reader(3))", r"labels has 2 names, and .* the shape \[1, 3\]; it must be \[1, 2\]"),
    ("classify(tokenizer='abc')", "tokenizer is 'abc', which a page cannot encode with: give one of tfviz"),
    ("classify(tokenizer=None)", "tokenizer is None, which a page cannot encode with"),
    ("classify(labels='ab')", "labels is 'ab'"),
    ("classify(labels=[])", r"labels is \[\]; give a list of two names or more"),
    ("classify(text='')", "the text has 0 tokens; the model takes 1 to 4"),
    ("classify(text='a b c a b')", "the text has 5 tokens; the model takes 1 to 4: give another one"),
    ("classify(text='a b c', bos=4, eos=5)", "the text has 3 tokens; the model takes 1 to 2"),
    ("classify(text='\\ud800')", "lone surrogate"),
    ("classify(text='a', bos=10)", "bos is 10, and the ids of this tokenizer go from 0 to 9"),
    ("classify(text='a', eos=-1)", "eos is -1, and the ids"),
    ("classify(dtype='float8')", "dtype is \'float8'"),
    ("classify(max_bytes=100)", "the model takes .* bytes in a page, max_bytes is 100"),
    ("classify(labels=['</script>', '\\0\\u202e'], text='c zz', eos=1)", "= highest probability"),
    ("fill(model=reader())", r"the model returns logits of shape \[1, 2\]; they must be \[1, 4, 10\]"),
    ("fill(model=Peeks())", "cannot be exported"),
    ("fill(model=sick(bert()))", "the model's logits are not finite"),
    ("fill(tokenizer=ByteTokenizer())", r"tokenizer has no \[MASK\] to mask words with"),
    ("fill(tokenizer=3)", "tokenizer is 3, which a page cannot encode with"),
    ("fill(text='')", "the text has no words; give one to mask"),
    ("fill(text=' ')", "the text has no words"),
    ("fill(text='a b c a b')", "the text has 5 tokens; the model takes 1 to 4"),
    ("fill(text='a b c a b c', add_special_tokens=False)", "= in place of 'a' in 'a b c a b c'"),
    ("fill(masked=2)", r"masked is \[2\]; the text has 2 words, from 0"),
    ("fill(masked=-1)", r"masked is \[-1\]"),
    ("fill(masked=[])", r"masked is \[\]"),
    ("fill(masked=[0, 5])", r"masked is \[0, 5\]"),
    ("fill(compare_with=[gpt()])", "compare_with must be a model, its tokenizer"),
    ("fill(compare_with=(tokenizer, gpt()))", "compare_with must be a model, its tokenizer"),
    ("fill(compare_with=(gpt(), 'abc'))", "tokenizer is 'abc', which a page cannot encode with"),
    ("fill(compare_with=(gpt(), tokenizer, 10))", "the id that the texts of compare_with begin with is 10"),
    ("fill(compare_with=(gpt(), tokenizer, 'x'))", "the id that the texts of compare_with begin with is 'x'"),
    ("fill(compare_with=(sick(gpt()), tokenizer, 4))", "the model's logits are not finite"),
    ("fill(max_bytes=100)", "the model takes .* bytes in a page, max_bytes is 100"),
    ('fill(model=gpt())', 'GPT reads from left to right and does not see the tokens after a masked word'),
    ("view.write(nn.Linear(2, 2), tokenizer, 'a b')", 'Linear cannot be called with ids of tokens'),
    ('view.controls.angle(90)', 'start is 90(?:[.]0)?; it is in radians: math\\.radians\\(90\\)'),
    ("classify(labels=['a', 'a'])", 'labels are .*, with a duplicate'),
]  # fmt: skip
