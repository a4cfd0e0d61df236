"""Models that others trained: checkpoints as Hugging Face's transformers writes them, read from a folder on disk."""

import json
import re
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from tfviz.models.bert import BERT
from tfviz.models.gpt import GPT

TANH = partial(nn.GELU, approximate="tanh")
ACTIVATIONS = {"gelu_new": TANH, "gelu_pytorch_tanh": TANH, "gelu": nn.GELU, "relu": nn.ReLU}
BUFFERS = (".attn.bias", ".attn.masked_bias", "embeddings.position_ids")  # masks and counters: nothing learned


class Family(NamedTuple):
    """How a family of checkpoints names what a model here has."""

    kind: str  # its `model_type`
    example: str  # a checkpoint that can be had
    settings: dict[str, Any]  # of `config.json`, and the one value of each that the model here computes
    sizes: tuple[str, ...]  # in `config.json`: vocab, context, layers, heads, dim and the like
    prefix: str  # what names begin with where a head stands on the trunk
    block: str  # what names in block number {} begin with
    names: dict[str, str]  # from modules here to modules there; several there are the rows of one matrix here
    aliases: dict[str, str]  # second names of a tensor, and the first
    heads: tuple[str, ...] = ()  # modules there that a checkpoint may lack
    turned: bool = False  # whether the matrices of blocks stand input first


GPT2 = Family(
    kind="gpt2", example="openai-community/gpt2", prefix="transformer.", block="h.{}.", turned=True,
    settings={"layer_norm_epsilon": 1e-5, "scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False},
    sizes=("vocab_size", "n_positions", "n_layer", "n_head", "n_embd"),
    names={
        "tokens": "wte", "positions.vectors": "wpe", "norm": "ln_f",
        "attention_norm": "ln_1", "attention.in_proj": "attn.c_attn", "attention.out_proj": "attn.c_proj",
        "feed_forward_norm": "ln_2", "feed_forward.0": "mlp.c_fc", "feed_forward.2": "mlp.c_proj",
    },
    aliases={"lm_head.weight": "wte.weight"},
)  # fmt: skip
ORIGINAL_BERT = Family(
    kind="bert", example="google-bert/bert-base-uncased", prefix="bert.", block="encoder.layer.{}.",
    settings={
        "hidden_act": "gelu", "position_embedding_type": "absolute", "type_vocab_size": 2, "pad_token_id": 0,
        "is_decoder": False, "add_cross_attention": False,
    },
    sizes=(
        "vocab_size", "max_position_embeddings", "num_hidden_layers", "num_attention_heads", "hidden_size",
        "intermediate_size",
    ),
    names={
        "tokens": "embeddings.word_embeddings", "segments": "embeddings.token_type_embeddings",
        "positions.vectors": "embeddings.position_embeddings", "norm": "embeddings.LayerNorm",
        "attention.in_proj": "attention.self.query attention.self.key attention.self.value",
        "attention.out_proj": "attention.output.dense", "attention_norm": "attention.output.LayerNorm",
        "feed_forward.0": "intermediate.dense", "feed_forward.2": "output.dense",
        "feed_forward_norm": "output.LayerNorm",
        "pooler": "pooler.dense", "to_follows": "cls.seq_relationship", "word_bias": "cls.predictions.bias",
        "to_word": "cls.predictions.transform.dense", "word_norm": "cls.predictions.transform.LayerNorm",
    },
    aliases={
        "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    heads=("pooler.", "cls.predictions.", "cls.seq_relationship."),
)  # fmt: skip


def gpt2(folder: str | Path) -> GPT:
    """GPT-2 (Radford et al. 2019) from a folder with `config.json` and `model.safetensors`, or shards and their index.

    Its vocabulary is `text.Subwords.load(folder)`, where `tokenizer.json` stands there too. The weights are float32
    whatever the files hold; the model is in eval mode. If it is trained on, the dropout is the config's `resid_pdrop`,
    also of embeddings, and attention weights have none. Heads of other tasks are left out, with a warning.

    Raises:
        FileNotFoundError: the folder or a file is not there; says how to get one.
        ValueError: the config asks for what `GPT` does not compute; a file is damaged; a tensor is missing, has
            another shape, or has no place in the model: the first that differs is named.
    """
    config = _config(Path(folder), GPT2)
    vocab, context, layers, heads, dim = (config[size] for size in GPT2.sizes)
    activation, inner = config.get("activation_function", "gelu_new"), config.get("n_inner")
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation_function is {activation!r}; it can be {', '.join(ACTIVATIONS)}")
    if inner not in (None, 4 * dim):
        raise ValueError(f"n_inner is {inner}; the networks of GPT are 4 n_embd = {4 * dim} wide inside")
    parts: dict[str, Any] = {"activation": ACTIVATIONS[activation], "dropout": config.get("resid_pdrop", 0.1)}
    model = GPT(vocab, context=context, layers=layers, heads=heads, dim=dim, **parts)
    _fill(model, Path(folder), GPT2)
    return model.eval()


def bert(folder: str | Path) -> BERT:
    """BERT (Devlin et al. 2019) from a folder; files, vocabulary and errors as for `gpt2`.

    A checkpoint may lack the pooler and either head, as those of transformers' `BertForMaskedLM` and `BertModel` do:
    they keep fresh initial values, and a warning names them. Of whether sentences follow, the logits are those of
    `Guess`, (no, yes); transformers has (yes, no).
    """
    config = _config(Path(folder), ORIGINAL_BERT)
    vocab, context, layers, heads, dim, inner = (config[size] for size in ORIGINAL_BERT.sizes)
    parts = {"dropout": config.get("hidden_dropout_prob", 0.1), "epsilon": config.get("layer_norm_eps", 1e-12)}
    model = BERT(vocab, context=context, layers=layers, heads=heads, dim=dim, inner=inner, **parts)
    _fill(model, Path(folder), ORIGINAL_BERT)
    with torch.no_grad():
        for parameter in model.to_follows.parameters():
            parameter.copy_(parameter.flip(0))
    return model.eval()


def _fill(model: nn.Module, folder: Path, family: Family) -> None:
    stored = _stored(folder, family)
    absent = tuple(head for head in family.heads if not any(name.startswith(head) for name in stored))
    sources = {name: _sources(name, family) for name, _ in model.named_parameters()}
    fresh = [name for name in sources if sources[name][0].startswith(absent)]
    for name, parameter in model.named_parameters():
        if name not in fresh:
            turned = family.turned and name.startswith("blocks.") and parameter.dim() == 2
            _copy(sources[name], stored, parameter.mT if turned else parameter, folder)
    trunk = {first.partition(".")[0] for first, *_ in sources.values()}
    if odd := [name for name in stored if name.partition(".")[0] in trunk]:
        raise ValueError(f"{folder} holds {odd[0]}, for which a model of its config.json has no place")
    if fresh:
        warnings.warn(f"{folder} holds no {', '.join(fresh)}: train them before you use them", stacklevel=3)
    if stored:
        warnings.warn(f"{', '.join(stored)} in {folder} left out: the model has no such head", stacklevel=3)


@torch.no_grad()
def _copy(sources: list[str], stored: dict[str, Callable[[], Tensor]], target: Tensor, folder: Path) -> None:
    """Take each source out of what is stored, into its rows of the target."""
    for source, rows in zip(sources, target.chunk(len(sources))):
        if source not in stored:
            raise ValueError(f"{folder} holds no {source} {list(rows.shape)}, which its config.json asks for")
        there = stored.pop(source)()
        if there.shape != rows.shape:
            raise ValueError(
                f"{source} is {list(there.shape)} in {folder}; its config.json asks for {list(rows.shape)}"
            )
        rows.copy_(there)


def _sources(name: str, family: Family) -> list[str]:
    """What a parameter here is called there, part by part."""
    if name in family.names:
        return [family.names[name]]
    layer, module, kind = re.fullmatch(r"(?:blocks\.(\d+)\.)?(.+)\.(\w+)", name).groups()  # type: ignore[union-attr]
    before = family.block.format(layer) if layer else ""
    return [f"{before}{theirs}.{kind}" for theirs in family.names[module].split()]


def _stored(folder: Path, family: Family) -> dict[str, Callable[[], Tensor]]:
    """What reads each tensor, by its name without prefix and in today's spelling; of several names only the first."""
    stored: dict[str, Callable[[], Tensor]] = {}
    for path in _files(folder, family):
        try:
            file = safe_open(path, framework="pt")
        except SafetensorError as error:
            raise ValueError(f"{path} is damaged, or only a pointer to a large file: {error}; get it again") from error
        for name in file.keys():  # noqa: SIM118 (not a dictionary)
            plain = name.removeprefix(family.prefix)
            plain = plain.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
            if not plain.endswith(BUFFERS):
                stored[plain] = partial(file.get_tensor, name)
    for alias, name in family.aliases.items():
        other = stored.pop(alias, None)
        if other and not torch.equal(stored.setdefault(name, other)(), other()):
            raise ValueError(f"{alias} and {name} differ in {folder}; here they are one tensor (tied embeddings)")
    return stored


def _files(folder: Path, family: Family) -> list[Path]:
    """The one file, or the shards that the index names."""
    index, names = folder / "model.safetensors.index.json", ["model.safetensors"]
    if index.is_file() and not (folder / names[0]).is_file():
        names = sorted(set(_json(index, "weight_map").values()))
    return [_there(folder / name, family) for name in names]


def _there(file: Path, family: Family) -> Path:
    if not file.is_file():
        folder = file.parent
        there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        raise FileNotFoundError(
            f"there is no {file.name} in {folder}, which holds {', '.join(there) or 'nothing'}; get one with: "
            f"hf download {family.example} config.json model.safetensors tokenizer.json --local-dir {folder}"
        )
    return file


def _config(folder: Path, family: Family) -> dict[str, Any]:
    file = _there(folder / "config.json", family)
    config = _json(file)
    for name, value in {"model_type": family.kind, **family.settings}.items():
        if config.get(name, value) != value:
            only = f"of {family.kind} checkpoints only those with {value!r} can be read"
            raise ValueError(f"{name} is {config[name]!r} in {file}; {only}")
    for name in family.sizes:
        if not isinstance(config.get(name), int) or config[name] < 1:
            raise ValueError(f"{name} is {config.get(name)!r} in {file}; it must be a whole number, at least 1")
    return config


def _json(file: Path, *keys: str) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        for key in keys:
            content = content[key]
        return dict(content)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{file} is not what transformers writes: {error!r}; get it again") from error
