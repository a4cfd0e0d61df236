"""Cases of invalid arguments of `view.translate`."""

SETUP = """
import torch
from torch import nn
from tfviz import view
from tfviz.layers import positions
from tfviz.models import GPT, Seq2Seq, Transformer
from tfviz.models.transformer import EncoderOutput
from tfviz.text import ByteTokenizer, CharacterTokenizer, train_bpe, train_whole_words
nan, inf = float("nan"), float("inf")
tokenizer, larger = train_whole_words(["a b c"]), train_whole_words(["a b c d e"])
def made(**more): return Transformer(len(tokenizer), **{"context": 8, "layers": 1, "heads": 1, "dim": 4, **more})
def translate(**more): return view.translate(**{"model": made(), "tokenizers": tokenizer, "sentence": "a b", **more})
def sick():
    model = made()
    model.decoder_norm.weight.data.fill_(nan)
    return model
class Bare(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(9, 4)
    def encode(self, source): return self.tokens(source)
    def decode(self, target, memory): return self.tokens(target)
class Peeks(Transformer):
    def encode(self, source): return super().encode(source if source.sum() > 3 else -source)
"""
CASES = [
    ("translate(model=lambda ids: ids)", "model is the function"),
    ("translate(model=GPT(9, layers=1, heads=1, dim=4))", "GPT has no encode and decode: give a model whose encode"),
    ("translate(model=Bare())", "encode of Bare does not return a named tuple of states and attention_mask"),
    ("translate(model=Seq2Seq(10, dim=4, hidden=4))", "Seq2Seq reads and writes token by token in a loop"),
    ("translate(model=Peeks(10, context=8, layers=1, heads=1, dim=4))", "cannot be exported"),
    ("translate(model=sick())", "the model's logits are not finite; check its weights"),
    ("translate(tokenizers='abc')", "tokenizers has 'abc'; give tokenizers such as those of text.train_bpe"),
    ("translate(tokenizers=[])", "there are 0 tokenizers; give one for both languages, or two"),
    ("translate(tokenizers=[tokenizer, ByteTokenizer()])", "tokenizers has .*; give tokenizers such as those of text"),
    ("translate(tokenizers=larger)", "the model reads fewer than the 12 tokens of the source's tokenizer"),
    ("translate(tokenizers=[tokenizer, larger])", "the model has logits for 10 tokens, the target's tokenizer has 12"),
    ("translate(sentence='a ' * 8)", "the sentence has 9 tokens; the model takes 1 to 8: give another"),
    ("translate(sentence='', eos=None)", "the sentence has 0 tokens"),
    ("translate(sentence='').document['source_eos_ids']", r"= \[3\]"),
    ("translate(sentence='\\ud800')", "lone surrogate"),
    ("translate(eos='[FIN]')", r"the source's tokenizer has no token \[FIN\]"),
    ("translate(num_beams=0)", "num_beams is 0; it must be from 1 to 8"),
    ("translate(num_beams=9)", "num_beams is 9; it must be from 1 to 8"),
    ("translate(length_penalty=-1)", "length_penalty is -1"),
    ("translate(max_new_tokens=0)", "max_new_tokens is 0; it must be at least 1"),
    ("translate(dtype='float8')", "dtype is \'float8'"),
    ("translate(max_bytes=100)", "the model takes .* bytes in a page, max_bytes is 100: keep its weights as"),
]  # fmt: skip
