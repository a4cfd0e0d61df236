"""Small models of any Hugging Face type, with random weights, and something for them to read.

A type's own configuration is made small by the names of its numbers, part by part, in one of a few ways (`SIZINGS`);
of its classes and of the inputs that its signature asks for the first that run together are taken. What no rule
finds stands in `SPECIAL`.
"""

import importlib
import inspect
import itertools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

WEIGHTS = 1e8  # a model with more is not small
IDS = torch.tensor([[5, 6, 7, 8, 9, 10, 11], [1, 1, 1, 7, 8, 9, 12]])
OPEN = (IDS != 1).long()
SIZES: dict[str, Any] = {
    **dict.fromkeys(["vocab_size", "text_vocab_size", "src_vocab_size", "tgt_vocab_size"], 64),
    **dict.fromkeys(["hidden_size", "d_model", "n_embd", "emb_dim", "embedding_size", "projection_dim"], 32),
    **dict.fromkeys(["word_embed_proj_dim", "hidden_dim", "dim", "embed_dim", "output_dim", "decoder_hidden_size"], 32),
    **dict.fromkeys(["intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "n_inner", "d_ff"], 40),
    **dict.fromkeys(["num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"], 4),
    **dict.fromkeys(["encoder_attention_heads", "decoder_attention_heads", "decoder_num_attention_heads"], 4),
    **dict.fromkeys(["num_key_value_heads", "num_kv_heads", "multi_query_group_num"], 2),
    **dict.fromkeys(["head_dim", "v_head_dim"], 8),
    **dict.fromkeys(["qk_rope_head_dim", "qk_nope_head_dim", "rotary_dim"], 4),
    **dict.fromkeys(["q_lora_rank", "kv_lora_rank", "moe_intermediate_size", "shared_expert_intermediate_size"], 16),
    "d_kv": 8,
    "patch_size": 8,
}
COUNTS: dict[str, Any] = {
    **dict.fromkeys(["num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"], 4),
    **dict.fromkeys(["num_experts_per_tok", "moe_topk", "moe_k"], 2),
    **dict.fromkeys(["n_group", "topk_group", "n_shared_experts"], 1),
    **dict.fromkeys(["max_position_embeddings", "n_positions", "max_source_positions", "max_target_positions"], 64),
    **dict.fromkeys(["vocab_size_per_layer_input", "entity_vocab_size", "codebook_size", "type_vocab_size"], 64),
    "vocab_size": 64,
    "image_size": 32,
    "window_size": 4,
    **dict.fromkeys(["num_queries", "two_stage_num_proposals", "num_object_queries"], 5),
}
NONE: dict[str, Any] = {
    **dict.fromkeys(["n_routed_experts", "num_local_experts", "num_experts"], 4),
    **dict.fromkeys(["num_experts_per_tok", "n_shared_experts"], 1),
    **dict.fromkeys(["top_k_experts", "moe_top_k"], 2),
    "moe_intermediate_size": 16,
    "head_dim": 8,
    "num_key_value_heads": 4,
    "vocab_size": 64,
    "mrope_section": [2, 1, 1],
}
RESNET = {
    "model_type": "resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 16, 16, 32],
    "depths": [1, 1, 1, 1],
    "layer_type": "basic",
    "out_features": ["stage2", "stage3", "stage4"],
}
TOKENS = {"pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3, "decoder_start_token_id": 2}
LAYERS = re.compile(r"(num_)?(n_|(en|de)coder_|hidden_|\w+_)?(num_)?layers?|n_layer|depth")
DIMS = re.compile(
    r".*(hidden|dims?$|dim_|_dim|width|channels|intermediate|ffn|embd|rank|d_model|d_ff|d_kv|d_inner|mrope_section|embed|"
    r"size$|sizes$|codebook).*"
)
KEPT = re.compile(
    r".*(image|patch|vocab|kernel|window|stride|position|num_channels|in_channels|shift|pool|crop|seq|"
    r"ratio|type_|block|chunk|layer|head_hidden_layers|num_).*"
)
HEAD_SIZES = ("head_dim", "v_head_dim")
ROTATED = ("qk_rope_head_dim", "qk_nope_head_dim", "rotary_dim")


def by_name(name: str, value: Any, without: tuple[str, ...] = ()) -> Any:
    """The size that a number of this name is to have."""
    return SIZES.get(name) if type(value) is int and name not in without else None


def by_share(name: str, value: Any, part: int = 8) -> Any:
    """A share of each width, as many heads as before: so what must divide what still does."""
    if name == "num_channels" or KEPT.fullmatch(name) or not DIMS.fullmatch(name):
        return None
    if type(value) is int and value >= part:
        return max(value // part, 1)
    if isinstance(value, list | tuple) and value and all(type(one) is int and one >= part for one in value):
        return type(value)(one // part for one in value)
    return None


SIZINGS: dict[str, Callable[[str, Any], Any]] = {
    "names": by_name,
    "names, keys for each head": lambda name, value: 4 if name == "num_key_value_heads" else by_name(name, value),
    "names, own heads": partial(by_name, without=HEAD_SIZES),
    "names, own rotation": partial(by_name, without=(*HEAD_SIZES, *ROTATED)),
    "a 16th": partial(by_share, part=16),
    "an 8th": partial(by_share, part=8),
    "a 4th": partial(by_share, part=4),
    "whole": lambda name, value: None,
}
# type -> what its configuration is given beside, by part
SERIES = {"prediction_length": 4, "context_length": 16, "lags_sequence": [1, 2], "input_size": 1}
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_n_groups": 1}
SPECIAL: dict[str, dict[str, Any]] = {
    **dict.fromkeys(["autoformer", "informer", "time_series_transformer"], SERIES),
    "bailing_hybrid": {"layer_group_size": 2},
    "bamba": {**MAMBA, "attn_layer_indices": [1]},
    "granitemoehybrid": {**MAMBA, "layer_types": ["mamba", "attention"]},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 3},
    "lfm2_moe": {"layer_types": ["full_attention", "conv"]},
    "kimi_linear": {"layer_types": ["linear_attention", "full_attention"]},
    "cohere_compass_text": {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e4}}},
    "cohere_compass": {
        "text_config": {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e4}}}
    },
    "longformer": {"attention_window": 8},
    "led": {"attention_window": 8},
    "big_bird": {"attention_type": "original_full"},
}


@dataclass(frozen=True)
class Recipe:
    """How a type was made small: a way of sizing, layers, a class, and which of its inputs."""

    kind: str
    sizing: str
    layers: int
    of: str
    given: int = 0


def kinds() -> list[str]:
    return sorted(kind for kind in CONFIG_MAPPING_NAMES if kind.islower() or "_" in kind)


def writers() -> set[str]:
    return set(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def sizes(config: Any, size: Callable[[str, Any], Any], layers: int, more: dict[str, Any]) -> dict[str, Any]:
    """What to make a configuration small with, and its parts."""
    given: dict[str, Any] = {}
    for name, value in {**getattr(type(config), "__dict__", {}), **vars(config)}.items():
        if name.startswith("_") or isinstance(getattr(type(config), name, None), property):
            continue
        if type(value) is int and LAYERS.fullmatch(name) and value > layers:
            given[name] = layers
        elif name in ("depths", "layers", "num_blocks") and _ints(value):
            given[name] = type(value)(min(one, 2) for one in value)
        elif name in COUNTS and type(value) is int:
            given[name] = min(COUNTS[name], value)
        elif name in TOKENS and (value is None or type(value) is int):
            given[name] = TOKENS[name]
        elif value is None and name in NONE:
            given[name] = NONE[name]
        elif name == "rope_parameters" and isinstance(value, dict) and "rope_type" in value:
            given[name] = {**value, "mrope_section": [2, 1, 1]}
        elif name == "mrope_section":
            given[name] = [2, 1, 1]
        elif name == "per_layer_config":
            given[name] = {}
        elif (small := size(name, value)) is not None:
            given[name] = small
    if getattr(config, "use_timm_backbone", False) or "timm" in str(getattr(config, "backbone_config", "")):
        given |= {
            "use_timm_backbone": False,
            "use_pretrained_backbone": False,
            "backbone": None,
            "backbone_config": RESNET,
        }
    given |= {name: value for name, value in more.items() if not isinstance(value, dict)}
    if hasattr(config, "is_decoder"):
        given["is_decoder"] = config.model_type in writers() and not getattr(config, "is_encoder_decoder", False)
    if _ints(getattr(config, "depths", 0)) and "window_size" in given:
        given["patch_size"] = 2  # positions enough for windows in each stage
    heads = next((one for name in ("num_heads", "num_attention_heads") if _ints(one := getattr(config, name, 0))), None)
    if heads and type(getattr(config, "embed_dim", None)) is int:  # of the first stage
        given["embed_dim"] = 8 * heads[0]
    for part in getattr(config, "sub_configs", None) or {}:
        inner = getattr(config, part, None)
        if inner is not None and "timm" not in inner.model_type:
            given[part] = {"model_type": inner.model_type, **sizes(inner, size, layers, more.get(part, {}))}
    return given


def _ints(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(type(one) is int for one in value)


def config(recipe: Recipe, **more: Any) -> Any:
    default = transformers.AutoConfig.for_model(recipe.kind)
    more = {**SPECIAL.get(recipe.kind, {}), **more}
    return transformers.AutoConfig.for_model(recipe.kind, **sizes(default, SIZINGS[recipe.sizing], recipe.layers, more))


def build(recipe: Recipe, how: str, **more: Any) -> nn.Module:
    """The model of a recipe, each time with the same weights.

    Raises:
        ValueError: it is not small.
    """
    made, of = config(recipe, **more), _class(recipe)
    made._attn_implementation = how
    with torch.device("meta"):
        count = sum(weight.numel() for weight in of._from_config(made).parameters())
    if count > WEIGHTS:
        raise ValueError(f"it has {count:,} weights, which is not small")
    torch.manual_seed(0)
    return alive(of._from_config(made, attn_implementation=how).eval())


def alive(model: nn.Module) -> nn.Module:
    """Weights large enough for heads that differ: those of a new model look at all words alike."""
    for weight in model.parameters():
        if weight.dim() > 1 and weight.numel() and weight.is_floating_point():
            wide = math.prod(weight.shape[1:]) ** -0.5
            spread = float(weight.detach().std())
            if 0 < spread < wide:
                weight.data.mul_(wide / spread)
    return model


def classes(kind: str) -> list[str]:
    """The classes of a type: those that write and the bare model first."""
    module = _module(kind)
    wanted = type(transformers.AutoConfig.for_model(kind))
    found = [
        name
        for name, one in vars(module).items()
        if inspect.isclass(one)
        and issubclass(one, transformers.PreTrainedModel)
        and one.__module__ == module.__name__
        and getattr(one, "config_class", None) is wanted
        and not name.endswith("PreTrainedModel")
    ]
    both = getattr(wanted(), "is_encoder_decoder", False)
    main = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(kind) if kind in writers() and not both else None
    bare = modeling_auto.MODEL_MAPPING_NAMES.get(kind)
    bare = bare if isinstance(bare, tuple) else (bare,)
    return sorted(found, key=lambda name: (name != main, name not in bare, "Model" not in name, found.index(name)))


def _module(kind: str) -> Any:
    config = type(transformers.AutoConfig.for_model(kind)).__module__
    folder, _, name = config.rpartition(".")
    return importlib.import_module(f"{folder}.{name.replace('configuration', 'modeling')}")


def _class(recipe: Recipe) -> Any:
    return getattr(_module(recipe.kind), recipe.of)


def inputs(model: nn.Module) -> Iterator[dict[str, Any]]:
    """What the model may take: texts, pictures or sounds, in the order of how likely it is."""
    takes = inspect.signature(model.forward).parameters
    needed = [name for name, one in takes.items() if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    main = getattr(model, "main_input_name", "input_ids")
    main = main if main in takes else "input_ids" if "input_ids" in takes else ""
    wanted = dict.fromkeys([*needed, *([main] if main else [])])
    for rich in (False, True):
        names = list(wanted)
        if rich:
            names += [name for name in RICH if name in takes and name not in wanted]
        ways = [[(name, value) for value in MAKERS[name](model)] if name in MAKERS else [] for name in names]
        ways = [way for way in ways if way]
        for chosen in itertools.product(*ways):
            given = dict(chosen)
            yield {**given, **_beside(model, takes, given)}


RICH = ("pixel_values", "input_features", "input_values", "input_ids", "decoder_input_ids", "decoder_input_values")


def _beside(model: nn.Module, takes: Any, given: dict[str, Any]) -> dict[str, Any]:
    """What belongs to what is given already."""
    more: dict[str, Any] = {}
    if "input_ids" in given:
        if "attention_mask" in takes and "attention_mask" not in given:
            more["attention_mask"] = OPEN
        if "position_ids" in takes and type(model).__name__.endswith("ForCausalLM"):
            more["position_ids"] = (OPEN.cumsum(1) - 1).clamp(min=0)
        if "bbox" in takes:
            more["bbox"] = _boxes(model)[0]
    if "decoder_input_ids" in takes and getattr(model.config, "is_encoder_decoder", True):
        more["decoder_input_ids"] = IDS[:, 2:] + 1
    return {name: value for name, value in more.items() if name not in given}


def _random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def _stated(model: nn.Module, name: str, default: Any) -> Any:
    """A number of the configuration, or of one of its parts."""
    for one in (
        model.config,
        *(getattr(model.config, part, None) for part in getattr(model.config, "sub_configs", ())),
    ):
        if (value := getattr(one, name, None)) is not None:
            return value
    return default


def _side(model: nn.Module) -> int:
    size = _stated(model, "image_size", 32)
    size = size if isinstance(size, int) else size[0] if isinstance(size, list | tuple) else 32
    return min(size, 256)


def _width(model: nn.Module) -> int:
    return _stated(model, "hidden_size", 0) or _stated(model, "d_model", 24)


def _pictures(model: nn.Module) -> list[Tensor]:
    channels, side, patch = _stated(model, "num_channels", 3), _side(model), _stated(model, "patch_size", 8)
    patch = patch if isinstance(patch, int) else patch[0]
    frames = _stated(model, "num_frames", 4)
    times = _stated(model, "temporal_patch_size", 2)
    stated = _stated(model, "image_size", side)
    both = tuple(stated) if isinstance(stated, list | tuple) and len(stated) == 2 else (side, side)
    sides = dict.fromkeys([side, 32, 64, 128, 224])
    flat = _random(32, channels * times * patch * patch)
    lines = [_random(2, 16, channels * patch * patch), _random(2, 16, channels * times * patch * patch)]
    return [
        _random(2, channels, *both),
        *(_random(2, channels, one, one) for one in sides if (one, one) != both),
        _random(2, 1, channels, *both),
        *(_random(2, frames, channels, one, one) for one in (side, 32)),
        *(_random(2, channels, frames, one, one) for one in (side,)),
        flat,
        *lines,
        _random(32, channels * patch * patch),
    ]


def _features(model: nn.Module) -> list[Tensor]:
    mels = _stated(model, "num_mel_bins", None) or _stated(model, "input_feat_per_channel", None) or 80
    long = 2 * _stated(model, "max_source_positions", 32)
    wide = _stated(model, "feature_size", _stated(model, "input_dim", mels))
    return [
        _random(2, mels, long),
        _random(2, mels, 64),
        _random(2, 64, mels),
        _random(2, long, mels),
        _random(2, 64, wide),
        _random(2, 1, 64, mels),
    ]


def _sounds(model: nn.Module) -> list[Tensor]:
    length, mels = _stated(model, "max_length", 1024), _stated(model, "num_mel_bins", 128)
    return [_random(2, 4000), _random(2, 1, 4000), _random(2, length, mels), _random(2, 64, mels)]


def _states(model: nn.Module) -> list[Tensor]:
    width, patch = _width(model), _stated(model, "patch_size", 8)
    patch = patch if isinstance(patch, int) else patch[0]
    channels, times = _stated(model, "in_channels", 3), _stated(model, "temporal_patch_size", 2)
    return [_random(2, 7, width), _random(32, channels * times * patch * patch), _random(32, 3 * patch * patch)]


def _boxes(model: nn.Module) -> list[Tensor]:
    corners = torch.arange(7)[None, :, None].expand(2, 7, 4) * 3
    return [corners + torch.tensor([0, 1, 2, 4])]


def _grids(model: nn.Module) -> list[Tensor]:
    return [torch.tensor([[1, 4, 4], [1, 4, 4]]), torch.tensor([[4, 4], [4, 4]])]


def _past(model: nn.Module) -> int:
    lags = _stated(model, "lags_sequence", [0])
    return _stated(model, "context_length", 32) + (max(lags) if isinstance(lags, list) else 0)


def _series(model: nn.Module) -> list[Tensor]:
    channels = _stated(model, "num_input_channels", 1)
    return [_random(2, _past(model)), _random(2, _past(model), channels), _random(2, 64)]


MAKERS: dict[str, Callable[[nn.Module], list[Any]]] = {
    "input_ids": lambda model: [IDS],
    "decoder_input_ids": lambda model: [IDS[:, 2:] + 1],
    "attention_mask": lambda model: [OPEN, torch.ones(2, 64, dtype=torch.long), None],
    "inputs_embeds": lambda model: [_random(2, 7, _width(model))],
    "hidden_states": _states,
    "pixel_values": _pictures,
    "pixel_values_videos": _pictures,
    "flattened_patches": lambda model: [_random(2, 16, 2 + 3 * 64)],
    "input_features": _features,
    "input_values": _sounds,
    "bbox": _boxes,
    "grid_thw": _grids,
    "image_grid_thw": _grids,
    "spatial_shapes": lambda model: [torch.tensor([[4, 4], [4, 4]])],
    "query_embeds": lambda model: [_random(2, 4, _width(model))],
    "image": _pictures,
    "mask": lambda model: [torch.ones(2, 64, dtype=torch.bool)],
    "input_features_mask": lambda model: [torch.ones(2, 64, dtype=torch.long)],
    "input_features_attention_mask": lambda model: [torch.ones(2, 64, dtype=torch.long)],
    "padding_mask": lambda model: [torch.ones(2, 64, dtype=torch.bool)],
    "pixel_position_ids": lambda model: [
        torch.stack([torch.arange(16) // 4, torch.arange(16) % 4], -1).expand(2, -1, -1)
    ],
    "image_position_ids": lambda model: [
        torch.stack([torch.arange(16) // 4, torch.arange(16) % 4], -1).expand(2, -1, -1)
    ],
    "past_values": _series,
    "past_time_features": lambda model: [_random(2, _past(model), _stated(model, "num_time_features", 0) or 1)],
    "past_observed_mask": lambda model: [torch.ones(2, _past(model))],
    "future_values": lambda model: [_random(2, _stated(model, "prediction_length", 4) or 4)],
    "future_time_features": lambda model: [
        _random(2, _stated(model, "prediction_length", 4) or 4, _stated(model, "num_time_features", 0) or 1)
    ],
    "encoder_hidden_states": lambda model: [
        _random(2, 5, _stated(model, "cross_attention_hidden_size", _width(model)))
    ],
    "pixel_attention_mask": lambda model: [torch.ones(2, 16, dtype=torch.long), torch.ones(2, 32, 32)],
}
