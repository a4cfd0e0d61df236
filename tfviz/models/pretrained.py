"""Models that others trained: checkpoints as Hugging Face's transformers writes them, read from a folder on disk."""

import re
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.models import checkpoint_files
from tfviz.models.bert import BERT
from tfviz.models.checkpoint_names import GPT2, ORIGINAL_BERT, Family
from tfviz.models.gpt import GPT

TANH = partial(nn.GELU, approximate="tanh")
ACTIVATIONS = {"gelu_new": TANH, "gelu_pytorch_tanh": TANH, "gelu": nn.GELU, "relu": nn.ReLU}


def gpt2(folder: str | Path) -> GPT:
    """GPT-2 (Radford et al. 2019) from a folder with `config.json` and `model.safetensors`, or shards and their index.

    Its vocabulary is `text.Subwords.load(folder)`, where `tokenizer.json` stands there too. The weights are float32
    whatever the files hold; the model is in eval mode. If it is trained on, the dropout is the config's `resid_pdrop`,
    also of embeddings, and attention weights have none. Heads of other tasks are left out, with a warning. Nothing
    outside the folder is opened, and sizes are compared with what the files hold before a model is built.

    Raises:
        FileNotFoundError: the folder or a file is not there; says how to get one.
        ValueError: the config asks for what `GPT` does not compute; a file is damaged; a tensor is missing, has
            another shape, or has no place in the model: the first that differs is named.
    """
    config = checkpoint_files.config(Path(folder), GPT2)
    vocab, context, layers, heads, dim = (config[size] for size in GPT2.sizes)
    activation, inner = config.get("activation_function", "gelu_new"), config.get("n_inner")
    if activation not in [*ACTIVATIONS]:  # a list, since what a file says may have no hash
        raise ValueError(f"activation_function is {activation!r}; it can be {', '.join(ACTIVATIONS)}")
    if inner not in (None, 4 * dim):
        raise ValueError(f"n_inner is {inner}; the networks of GPT are 4 n_embd = {4 * dim} wide inside")
    parts: dict[str, Any] = {"activation": ACTIVATIONS[activation], "dropout": config["resid_pdrop"]}
    build = partial(GPT, vocab, context=context, layers=layers, heads=heads, dim=dim, **parts)
    return _filled(build, config, Path(folder), GPT2)


def bert(folder: str | Path) -> BERT:
    """BERT (Devlin et al. 2019) from a folder; files, vocabulary and errors as for `gpt2`.

    A checkpoint may lack the pooler and either head, as those of transformers' `BertForMaskedLM` and `BertModel` do:
    they keep fresh initial values, and a warning names them. Of whether sentences follow, the logits are those of
    `Guess`, (no, yes); transformers has (yes, no).
    """
    config = checkpoint_files.config(Path(folder), ORIGINAL_BERT)
    vocab, context, layers, heads, dim, inner = (config[size] for size in ORIGINAL_BERT.sizes)
    parts = {"dropout": config["hidden_dropout_prob"], "epsilon": config["layer_norm_eps"]}
    build = partial(BERT, vocab, context=context, layers=layers, heads=heads, dim=dim, inner=inner, **parts)
    model = _filled(build, config, Path(folder), ORIGINAL_BERT)
    with torch.no_grad():
        for parameter in model.to_follows.parameters():
            parameter.copy_(parameter.flip(0))
    return model


def _filled(build: Callable[[], Any], config: dict[str, Any], folder: Path, family: Family) -> Any:
    """The model, in eval mode, with the weights of the folder."""
    held = checkpoint_files.tensors(folder, family)
    checkpoint_files.fits(config, held, folder, family)
    with torch.device("meta"):  # a sketch, without memory, to compare with what the files hold
        sketch = build()
    absent = tuple(head for head in family.heads if not any(name.startswith(head) for name in held))
    sources = {name: _sources(name, family) for name, _ in sketch.named_parameters()}
    fresh = [name for name in sources if sources[name][0].startswith(absent)]
    wanted = [(sources[name], part) for name, part in _there(sketch, family) if name not in fresh]
    left = _left(wanted, held, folder, {first.partition(".")[0] for first, *_ in sources.values()})
    model = build()
    for name, part in _there(model, family):
        if name not in fresh:
            _copy(sources[name], held, part)
    if fresh:
        warnings.warn(f"{folder} holds no {', '.join(fresh)}: train them before you use them", stacklevel=3)
    if left:
        warnings.warn(f"{', '.join(left)} in {folder} left out: the model has no such head", stacklevel=3)
    return model.eval()


def _there(model: nn.Module, family: Family) -> list[tuple[str, Tensor]]:
    """The parameters by name, the way round that the files have them."""
    turned = [family.turned and name.startswith("blocks.") for name, _ in model.named_parameters()]
    return [(name, p.mT if turn and p.dim() == 2 else p) for turn, (name, p) in zip(turned, model.named_parameters())]


def _left(
    wanted: list[tuple[list[str], Tensor]], held: dict[str, checkpoint_files.Stored], folder: Path, trunk: set[str]
) -> list[str]:
    """The names of what is not wanted; what is wanted must be there, in the shape wanted."""
    left = dict(held)
    for sources, target in wanted:
        for source, rows in zip(sources, target.chunk(len(sources))):
            if source not in held:
                raise ValueError(f"{folder} holds no {source} {list(rows.shape)}, which its config.json asks for")
            shape = left.pop(source).shape
            if shape != list(rows.shape):
                raise ValueError(f"{source} is {shape} in {folder}; its config.json asks for {list(rows.shape)}")
    if odd := [name for name in left if name.partition(".")[0] in trunk]:
        raise ValueError(f"{folder} holds {odd[0]}, for which a model of its config.json has no place")
    return list(left)


@torch.no_grad()
def _copy(sources: list[str], held: dict[str, checkpoint_files.Stored], target: Tensor) -> None:
    """Take each source out of what is stored, into its rows of the target."""
    for source, rows in zip(sources, target.chunk(len(sources))):
        rows.copy_(held[source].read())


def _sources(name: str, family: Family) -> list[str]:
    """What a parameter here is called there, part by part."""
    if name in family.names:
        return [family.names[name]]
    layer, module, kind = re.fullmatch(r"(?:blocks\.(\d+)\.)?(.+)\.(\w+)", name).groups()  # type: ignore[union-attr]
    before = family.block.format(layer) if layer else ""
    return [f"{before}{theirs}.{kind}" for theirs in family.names[module].split()]
