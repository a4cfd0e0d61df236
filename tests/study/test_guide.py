"""The guide to analyses, and the page for those who come from TransformerLens: every block runs on a small GPT-2."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from tfviz.text import bpe

transformers = pytest.importorskip("transformers")
distributed = pytest.importorskip("distributed")
connect = distributed.Client.__init__
DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "from-transformerlens.md"
TEXT = (  # of which every word becomes one token
    "When Mary and John went to the store, John gave a drink to Mary. When Tom and Anna went to the park, Anna gave a "
    "ball to Tom. When John and Mary went, Mary gave; when Anna and Tom went, Tom gave a drink to John and Anna. "
)


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def small_tokenizer():
    named = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "bos", "eos")}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=bpe([TEXT * 20], 400).tokenizer, **named)


def small_gpt2():
    torch.manual_seed(0)
    sizes = {"vocab_size": len(small_tokenizer()), "n_positions": 64, "n_embd": 24, "n_layer": 2, "n_head": 3}
    config = transformers.GPT2Config(**sizes, bos_token_id=1, eos_token_id=2, pad_token_id=0)
    model = transformers.GPT2LMHeadModel(config)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


@pytest.fixture
def names(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", lambda *_, **__: small_gpt2())
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda *_, **__: small_tokenizer())
    local = {"n_workers": 1, "processes": False, "dashboard_address": ":0"}
    monkeypatch.setattr(distributed.Client, "__init__", lambda client, **_: connect(client, **local))
    yield {}
    torch.set_grad_enabled(True)


@pytest.mark.filterwarnings("ignore::UserWarning:bertviz")
@pytest.mark.parametrize("page", [PAGE, DOCS / "studying.md"], ids=lambda page: page.stem)
def test_every_block_runs(names, page):
    for number, block in enumerate(blocks(page)):
        exec(compile(block, f"block {number}", "exec"), names)


def test_analyses_are_numbered_and_enough():
    numbers = [int(number) for number in re.findall(r"\*\*(\d+)\. ", PAGE.read_text(encoding="utf-8"))]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 40
