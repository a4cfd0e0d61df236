"""Pretrained GPT-2 and BERT, loaded from checkpoint folders of Hugging Face's transformers."""

import re
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.models import checkpoint_files, checkpoint_names
from tfviz.models.bert import BERT
from tfviz.models.checkpoint_names import Family
from tfviz.models.gpt import GPT

__all__ = ["bert", "gpt2"]

TANH_GELU = partial(nn.GELU, approximate="tanh")
ACTIVATIONS = {"gelu_new": TANH_GELU, "gelu_pytorch_tanh": TANH_GELU, "gelu": nn.GELU, "relu": nn.ReLU}


def gpt2(folder: str | Path) -> GPT:
    """Load GPT-2 (Radford et al. 2019) from a folder with `config.json` and `model.safetensors`.

    If the folder also has a `tokenizer.json`, `text.SubwordTokenizer.load(folder)` reads the tokenizer. The weights are
    converted to float32, and the model is in eval mode. In further training, the dropout of embeddings and branches is
    the config's `resid_pdrop`; attention weights have no dropout. Heads of other tasks are ignored, with a warning. No
    file outside the folder is opened, and sizes are compared with the tensors before a model is built.

    Raises:
        FileNotFoundError: the folder or a file does not exist; the message says how to get it.
        ValueError: the config has a setting that `GPT` does not support; a file is damaged; a tensor is missing, has
            another shape, or is not part of the model; the message names the first.
    """
    names = checkpoint_names.GPT2
    config = checkpoint_files.read_config(Path(folder), names)
    vocab_size, context, layers, heads, dim = (config[size] for size in names.sizes)
    activation, inner = config.get("activation_function", "gelu_new"), config.get("n_inner")
    if activation not in [*ACTIVATIONS]:  # a list, since the value in the file may be unhashable
        raise ValueError(f"activation_function is {activation!r}; it can be {', '.join(ACTIVATIONS)}")
    if inner not in (None, 4 * dim):
        raise ValueError(f"n_inner is {inner}; it must be 4 n_embd, {4 * dim}")
    parts: dict[str, Any] = {"activation": ACTIVATIONS[activation], "dropout": config["resid_pdrop"]}
    build = partial(GPT, vocab_size, context=context, layers=layers, heads=heads, dim=dim, **parts)
    return _load(build, config, Path(folder), names)


def bert(folder: str | Path) -> BERT:
    """Load BERT (Devlin et al. 2019) from a folder; files, tokenizer and errors are as for `gpt2`.

    A checkpoint may lack the pooler and either head, as checkpoints of transformers' `BertForMaskedLM` and `BertModel`
    do. These parts keep their random initial values, and a warning names them. The next-sentence logits are (no, yes),
    as in `BERTOutput`; in transformers they are (yes, no).
    """
    names = checkpoint_names.BERT
    config = checkpoint_files.read_config(Path(folder), names)
    vocab_size, context, layers, heads, dim, inner = (config[size] for size in names.sizes)
    parts = {"dropout": config["hidden_dropout_prob"], "epsilon": config["layer_norm_eps"]}
    build = partial(BERT, vocab_size, context=context, layers=layers, heads=heads, dim=dim, inner=inner, **parts)
    model = _load(build, config, Path(folder), names)
    with torch.no_grad():
        for parameter in model.next_sentence_head.parameters():
            parameter.copy_(parameter.flip(0))
    return model


@torch.no_grad()
def _load(build: Callable[[], Any], config: dict[str, Any], folder: Path, family: Family) -> Any:
    """Build the model and copy the weights of the folder into it, part by part; return it in eval mode."""
    tensors = checkpoint_files.read_tensors(folder, family)
    checkpoint_files.check_sizes(config, tensors, folder, family)
    absent = tuple(start for start in family.optional if not any(name.startswith(start) for name in tensors))
    model, fresh = build(), []
    trunk = {family.block.partition(".")[0], *(name.partition(".")[0] for name in family.names.values())}
    for name, parameter in model.named_parameters():
        sources = _sources(name, family)
        if sources[0].startswith(absent):
            fresh.append(name)
            continue
        transposed = family.transposed and name.startswith("blocks.") and parameter.dim() == 2
        for source, rows in zip(sources, (parameter.mT if transposed else parameter).chunk(len(sources))):
            rows.copy_(_take(source, rows, tensors, folder))
    if misplaced := [name for name in tensors if name.partition(".")[0] in trunk]:
        raise ValueError(f"{folder} holds {misplaced[0]}, which a model of its config.json does not have")
    if fresh:
        warnings.warn(f"{folder} holds no {', '.join(fresh)}: train them before you use them", stacklevel=3)
    if tensors:
        warnings.warn(f"{', '.join(tensors)} in {folder} left out: the model has no such head", stacklevel=3)
    return model.eval()


def _take(name: str, target: Tensor, tensors: dict[str, Tensor], folder: Path) -> Tensor:
    """Remove a tensor from `tensors` and return it, after checking that it has the shape of `target`."""
    if name not in tensors:
        raise ValueError(f"{folder} holds no {name} {list(target.shape)}, which its config.json asks for")
    tensor = tensors.pop(name)
    if tensor.shape != target.shape:
        raise ValueError(f"{name} is {list(tensor.shape)} in {folder}; its config.json asks for {list(target.shape)}")
    return tensor


def _sources(name: str, family: Family) -> list[str]:
    """Return the checkpoint's names for one of our parameters: one, or several whose tensors are stacked in it."""
    if name in family.names:
        return [family.names[name]]
    layer, module, kind = re.fullmatch(r"(?:blocks\.(\d+)\.)?(.+)\.(\w+)", name).groups()  # type: ignore[union-attr]
    start = family.block.format(layer) if layer else ""
    return [f"{start}{source}.{kind}" for source in family.names[module].split()]
