"""The ways to get every attention map of a GPT-2: each a function from a size to a call giving (output, maps)."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from common import Run
from torch import Tensor, nn

from tfviz import look, models

SEED = 0


@dataclass(frozen=True)
class Size:
    layers: int = 12
    heads: int = 12
    dim: int = 768
    vocab_size: int = 50257
    tokens: int = 1024

    @classmethod
    def of(cls, quick: bool) -> "Size":
        return cls(layers=2, heads=2, dim=64, vocab_size=500, tokens=128) if quick else cls()


@cache
def ids(size: Size) -> Tensor:
    return torch.randint(size.vocab_size, (1, size.tokens), generator=torch.Generator().manual_seed(SEED))


@cache
def hugging(size: Size, attention: str = "sdpa") -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(SEED)
    shape = {"n_layer": size.layers, "n_head": size.heads, "n_embd": size.dim, "n_positions": size.tokens}
    special = {"bos_token_id": None, "eos_token_id": None, "use_cache": False}
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=size.vocab_size, attn_implementation=attention, **shape, **special)
    ).eval()


@cache
def gpt(size: Size) -> nn.Module:
    torch.manual_seed(SEED)
    shape = {"layers": size.layers, "heads": size.heads, "dim": size.dim, "context": size.tokens}
    return models.GPT(size.vocab_size, **shape).eval()


@cache
def lens(size: Size) -> nn.Module:
    """TransformerLens 4 wraps the Hugging Face model; before, it had its own, of the same shape."""
    try:
        from transformer_lens import HookedTransformer, HookedTransformerConfig
    except ImportError:
        from transformer_lens.model_bridge.sources import build_bridge_from_module

        own = copy.deepcopy(hugging(size, "eager"))
        return build_bridge_from_module(own, "GPT2LMHeadModel", hf_config=own.config)
    shape = {"n_layers": size.layers, "n_heads": size.heads, "d_model": size.dim, "d_head": size.dim // size.heads}
    config = HookedTransformerConfig(**shape, n_ctx=size.tokens, d_vocab=size.vocab_size, act_fn="gelu_new", seed=SEED)
    return HookedTransformer(config).eval()


@cache
def sight(size: Size, attention: str) -> Any:
    """nnsight wraps a copy of the Hugging Face model, since it rewrites a forward to look into it."""
    from nnsight import NNsight

    return NNsight(copy.deepcopy(hugging(size, attention)))


def plain(model: Callable, size: Size) -> Run:
    there, x = model(size), ids(size)
    return lambda: (there(x), [])


def lazily(model: Callable, size: Size) -> Run:
    there, x = model(size), ids(size)

    def run() -> tuple:
        with look.capture(there, "*.pattern", lazy=True) as seen:
            output = there(x)
        return output, seen

    return run


def captured(model: Callable, dtype: torch.dtype, size: Size) -> Run:
    there, x = model(size), ids(size)

    def run() -> tuple:
        with look.capture(there, "*.pattern", dtype=dtype) as seen:
            output = there(x)
        return output, list(seen.values())

    return run


def eager(size: Size) -> Run:
    there, x = hugging(size, "eager"), ids(size)

    def run() -> tuple:
        output = there(x, output_attentions=True)
        return output, output.attentions

    return run


def lens_cache(size: Size) -> Run:
    there, x = lens(size), ids(size)

    def run() -> tuple:
        output, kept = there.run_with_cache(x, names_filter=lambda name: name.endswith("hook_pattern"))
        return output, list(kept.values())

    return run


def torchlens_softmax(size: Size) -> Run:
    """The softmax of each layer of the eager model."""
    import torchlens

    there, x = hugging(size, "eager"), ids(size)

    def run() -> tuple:
        output, kept = torchlens.record(there, x, save=torchlens.func("softmax"), return_output=True)
        return output, [record.ram_payload for record in kept]

    return run


def torchlens_pattern(size: Size) -> Run:
    """The `pattern` facet of each attention of the fused model, which TorchLens makes again from queries and keys."""
    import torchlens

    there, x = hugging(size), ids(size)
    names = [f"transformer.h.{layer}.attn" for layer in range(size.layers)]
    fused = torchlens.func("scaled_dot_product_attention")

    def run() -> tuple:
        trace = torchlens.trace(there, x, save=fused, reconstruction_ready=True)
        return trace, [trace.modules[name].facets["pattern"] for name in names]

    return run


def nnsight_eager(size: Size) -> Run:
    """The weights that each attention of the eager model gives, as nnsight's page on attention patterns has it."""
    import nnsight

    there, x = sight(size, "eager"), ids(size)

    def run() -> tuple:
        with there.trace(x):
            maps = nnsight.save([])
            for block in there.transformer.h:
                maps.append(block.attn.source.attention_interface_1.output[1])
            output = nnsight.save(there.output)
        return output, maps

    return run


def nnsight_fused(size: Size) -> Run:
    """What goes into each fused call; scale, mask and softmax by hand, since nnsight's pages ask for eager."""
    import nnsight

    there, x = sight(size, "sdpa"), ids(size)
    later = torch.ones(size.tokens, size.tokens, dtype=torch.bool).triu(1)

    def run() -> tuple:
        with there.trace(x):
            maps = nnsight.save([])
            for block in there.transformer.h:
                inner = block.attn.source.attention_interface_1.source
                (queries, keys, _), options = inner.torch_nn_functional_scaled_dot_product_attention_0.inputs
                scores = queries * options["scale"] @ keys.mT
                maps.append(scores.masked_fill_(later, -torch.inf).softmax(-1))
            output = nnsight.save(there.output)
        return output, maps

    return run
