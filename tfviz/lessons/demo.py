"""`tfviz demo`: a page with the small character-level GPT that comes with the package."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tfviz import files, models, text, view

WEIGHTS_FILE = Path(__file__).with_name("demo.safetensors")  # written by benchmarks/demo.py
CONFIG: dict[str, Any] = {"layers": 4, "heads": 4, "dim": 128, "context": 256}
PROMPT = "ROMEO:\nWhat light through yonder window b"
TITLE = "What comes next?"


def page(out: Path, open_browser: bool) -> None:
    """Write the page, and optionally open it in a browser.

    Args:
        out: the path of the page.
        open_browser: whether to open the page.

    Raises:
        OSError: the page cannot be written.
        ValueError: the model's file is damaged.
    """
    print("making a page with a small GPT in it, which takes a few seconds ...")
    model, letters = load()
    view.write(model, letters, PROMPT, TITLE, temperature=0.8, seed=1).save(out)
    size = sum(parameter.numel() for parameter in model.parameters())
    print(f"{out}: a GPT of {size:,} weights, trained on Shakespeare by letters")
    address = out.resolve().as_uri()
    if open_browser and not webbrowser.open(address):
        print(f"no browser could be started from here; open {address} in one")


def save(model: nn.Module, letters: text.CharacterTokenizer, path: Path = WEIGHTS_FILE) -> None:
    """Save a model and the characters of its tokenizer in the safetensors format, with weights in float16."""
    tensors = {name: tensor.half() for name, tensor in model.state_dict().items()}
    with files.atomic(path) as draft:
        files.save_tensors(draft, tensors, {"letters": letters.characters})


def load(path: Path = WEIGHTS_FILE) -> tuple[models.GPT, text.CharacterTokenizer]:
    """Load the model and tokenizer that `save` wrote, with weights in float32.

    Raises:
        ValueError: the file is damaged.
    """
    tensors, metadata = files.load_tensors(path)
    letters = text.CharacterTokenizer(metadata["letters"])
    with torch.device("meta"):
        model = models.GPT(len(letters), **CONFIG)
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, assign=True)
    return model.eval(), letters
