"""The README's first script runs as it stands, and so do the guide's four first tries, on small models."""

import re
from pathlib import Path

import pytest
import torch

from tfviz import look, view
from tfviz.text import bpe
from tfviz.view import View

transformers = pytest.importorskip("transformers")
README = Path(__file__).parents[2] / "README.md"
GUIDE = README.with_name("docs") / "own.md"
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 32, "hidden_size": 24}
PROMPT = "the red house by the sea. " * 200


def tries():
    """The lines of each, behind its comment."""
    block = re.search(r"<!-- tries -->\n```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)[1]
    _, *found = block.split("\n\n")
    return {one.split("\n")[0]: one.strip().split("\n")[1:] for one in found}


class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)

    def forward(self, x):
        return (self.query(x) @ self.key(x).transpose(-2, -1) / 6**0.5).softmax(-1) @ x


def tokenizer():
    named = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "bos", "eos")}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=bpe([PROMPT], 300).tokenizer, **named)


@pytest.fixture
def stands_in(monkeypatch):
    """Small random models under the names of large trained ones."""
    vocab = {"vocab_size": len(tokenizer()), "pad_token_id": 0}
    t5 = {"d_model": 24, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 3, "decoder_start_token_id": 0}
    llama = transformers.LlamaConfig(**vocab, **SIZES, num_key_value_heads=2, max_position_embeddings=8192)
    made = {
        "AutoTokenizer": tokenizer,
        "AutoModelForCausalLM": lambda: transformers.LlamaForCausalLM(llama).eval(),
        "AutoModelForSeq2SeqLM": lambda: transformers.T5ForConditionalGeneration(transformers.T5Config(**vocab, **t5)),
        "AutoModel": lambda: transformers.ViTModel(transformers.ViTConfig(image_size=32, patch_size=8, **SIZES)).eval(),
        "AutoImageProcessor": lambda: transformers.ViTImageProcessor(size={"height": 32, "width": 32}),
    }
    for name, make in made.items():
        monkeypatch.setattr(getattr(transformers, name), "from_pretrained", lambda *_, make=make, **__: make())


def test_the_first_script_needs_nothing_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = re.search(r"<!-- paste -->\n```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[1]
    exec(compile(script, "README.md", "exec"), {"__name__": "pasted"})
    page = (tmp_path / "heads.html").read_text(encoding="utf-8")
    assert "4 layers × 4 heads" in page


def test_there_are_four_of_at_most_five_lines():
    assert len(tries()) == 4
    assert all(0 < len(lines) <= 5 for lines in tries().values())


@pytest.mark.parametrize("name", tries())
def test_a_first_try(stands_in, name):
    names = {kind: getattr(transformers, kind) for kind in dir(transformers) if kind.startswith("Auto")}
    given = {"look": look, "view": view, "prompt": PROMPT, "picture": torch.randint(0, 255, (3, 40, 60)).byte()}
    given |= {"module": Own(), "vectors": torch.randn(1, 5, 6), "names": list("abcde"), **names}
    *before, last = tries()[name]
    torch.manual_seed(0)
    exec("\n".join(before), given)
    shown = eval(last, given)
    assert isinstance(shown, View)
    assert shown.data
    rows = [part["rows"] for part in shown.document["parts"]]
    assert {"# a Llama": lambda: len(rows[0]) > 900, "# a vision": lambda: rows[0][0] == "cls",
            "# an encod": lambda: rows[0] == shown.document["parts"][2]["cols"] != rows[2],
            "# a module": lambda: rows == [list("abcde")]}[name[:10].rstrip()]()  # fmt: skip
