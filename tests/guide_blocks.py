"""Python blocks of the guide and the README, run alone; small random models under the names of large trained ones.

PYTEST_DONT_REWRITE: test modules name this as their plugin, and import from it.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import nn

from tfviz.text import train_bpe

distributed = pytest.importorskip("distributed")
transformers = pytest.importorskip("transformers")
CLONE = Path(__file__).parents[1]
PAGES = [CLONE / "README.md", *sorted((CLONE / "docs").glob("*.md"))]
BLOCK = re.compile(r"(?:<!-- (?P<mark>[^>]*) -->\n)?```python\n(?P<code>.*?)```", re.DOTALL)
TEXT = (  # of which every word becomes one token
    "When Mary and John went to the store, John gave a drink to Mary. When Tom and Anna went to the park, Anna gave a "
    "ball to Tom. When John and Mary went, Mary gave; when Anna and Tom went, Tom gave a drink to John and Anna. "
)
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 32, "hidden_size": 24}


def blocks(page):
    """Return mark (as in `<!-- setup -->`, or empty) and code of each Python block of a page."""
    return [(found["mark"] or "", found["code"]) for found in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def run(code, setup=""):
    """Run a block after the page's setup, in a new namespace; return the value of a last line that is an expression."""
    names = {"__name__": "__main__"}
    exec(compile(setup, "setup", "exec"), names)
    file = Path("block.py").absolute()  # `view.flow` reads the source of a function
    file.write_text(code, encoding="utf-8")
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, file, "exec"), names)
    return last and eval(compile(ast.Expression(last.value), file, "eval"), names)


@cache
def words():
    return train_bpe([(TEXT + "the red house by the sea. ") * 20], 400).backend_tokenizer.to_str()


def tokenizer(name=""):
    """A tokenizer of a few words; that of GPT-2 has no token for padding, as the real one has none."""
    from tokenizers import Tokenizer

    kinds = ("unk", "bos", "eos") if "gpt2" in name else ("pad", "unk", "bos", "eos")
    named = {f"{kind}_token": f"[{kind.upper()}]" for kind in kinds}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(words()), **named)


def gpt2():
    torch.manual_seed(0)
    sizes = {"vocab_size": len(tokenizer()), "n_positions": 64, "n_embd": 24, "n_layer": 12, "n_head": 3}
    config = transformers.GPT2Config(**sizes, bos_token_id=1, eos_token_id=2)
    model = transformers.GPT2LMHeadModel(config)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def llama():
    vocab = {"vocab_size": len(tokenizer()), "pad_token_id": 0}
    config = transformers.LlamaConfig(**vocab, **SIZES, num_key_value_heads=2, max_position_embeddings=8192)
    return transformers.LlamaForCausalLM(config).eval()


def t5():
    sizes = {"d_model": 24, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 3, "decoder_start_token_id": 0}
    config = transformers.T5Config(vocab_size=len(tokenizer()), pad_token_id=0, **sizes)
    return transformers.T5ForConditionalGeneration(config)


def vit():
    return transformers.ViTModel(transformers.ViTConfig(image_size=32, patch_size=8, **SIZES)).eval()


@pytest.fixture
def stand_ins(monkeypatch, tmp_path):
    """An empty folder to work in, and small models under the names of the Hub."""
    monkeypatch.chdir(tmp_path)
    made = {
        "AutoTokenizer": tokenizer,
        "AutoModelForCausalLM": lambda name: gpt2() if "gpt2" in name else llama(),
        "AutoModelForSeq2SeqLM": lambda name: t5(),
        "AutoModel": lambda name: vit(),
        "AutoImageProcessor": lambda name: transformers.ViTImageProcessor(size={"height": 32, "width": 32}),
    }
    for kind, make in made.items():
        monkeypatch.setattr(getattr(transformers, kind), "from_pretrained", lambda name, make=make: make(name))
    connect, local = distributed.Client.__init__, {"n_workers": 1, "processes": False, "dashboard_address": ":0"}
    monkeypatch.setattr(distributed.Client, "__init__", lambda client, **_: connect(client, **local))
    torch.manual_seed(0)
    yield tmp_path
    torch.set_grad_enabled(True)
