"""`tfviz demo`: one page with a small GPT that the package brings along, to type into."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tfviz import files, models, text, view

KEPT = Path(__file__).with_name("demo.safetensors")  # made by benchmarks/demo.py
SHAPE: dict[str, Any] = {"layers": 4, "heads": 4, "dim": 128, "context": 256}
PROMPT = "ROMEO:\nWhat light "
TITLE = "A small GPT: type, choose a letter, switch a head off"


def page(out: Path, opened: bool, say: Callable[[str], object]) -> Path:
    """Write the page, and open it in the browser if asked.

    Raises:
        OSError: it cannot be written there.
        ValueError: the model's file is damaged.
    """
    say("making a page with a small GPT in it, which takes a few seconds ...")
    model, letters = load()
    made = view.write(model, letters, PROMPT, TITLE, temperature=0.8, seed=1).save(out)
    say(f"{out}: a GPT of {sum(p.numel() for p in model.parameters()):,} weights that has read Shakespeare by letters")
    if opened and not webbrowser.open(out.resolve().as_uri()):
        say("no browser was found; open the file in one")
    return Path(made)


def keep(model: nn.Module, letters: text.Characters, path: Path = KEPT) -> None:
    """The model as the package brings it along: weights in float16, and its letters."""
    tensors = {name: tensor.half() for name, tensor in model.state_dict().items()}
    with files.atomic(path) as draft:
        files.save_tensors(draft, tensors, {"letters": letters.characters})


def load(path: Path = KEPT) -> tuple[models.GPT, text.Characters]:
    """What `keep` wrote."""
    tensors, said = files.load_tensors(path)
    if said.keys() != {"letters"} or not said["letters"]:
        raise ValueError(f"{path} holds no model of the demo, which has weights and its letters")
    letters = text.Characters(said["letters"])
    with torch.device("meta"):
        model = models.GPT(len(letters), **SHAPE)
    try:
        model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, assign=True)
    except RuntimeError as error:
        raise ValueError(f"{path} holds other weights than the demo's model has: {error}") from error
    return model.eval(), letters
