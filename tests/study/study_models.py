"""Models of other libraries for the tests of studies: small, with random but repeatable weights, and their inputs."""

import sys
from functools import partial
from typing import NamedTuple

import pytest
import small_models
import torch
from torch import nn

from tfviz import models
from tfviz.study import patch_sweep

transformers = pytest.importorskip("transformers")
VOCAB_SIZE = 13
TEXTS = 3
IDS = torch.tensor([[3, 5, 8, 2, 9, 4], [3, 7, 8, 1, 9, 10], [6, 5, 1, 2, 12, 4]])
OTHER = torch.tensor([[3, 5, 11, 2, 9, 4], [3, 2, 8, 1, 9, 10], [6, 5, 1, 7, 12, 4]])
MASK = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0]])
DATA = torch.randint(0, VOCAB_SIZE, (11, 5), generator=torch.Generator().manual_seed(4))
SMALL = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 10}
gpt = partial(small_models.gpt, VOCAB_SIZE, std=0.3, dim=12, context=8)


def config(name, **more):
    return getattr(transformers, f"{name}Config")(vocab_size=VOCAB_SIZE, **more)


def build(kind, settings, dtype=torch.float32):
    """A model with weights large enough for every part to matter."""
    torch.manual_seed(3)
    model = (getattr(transformers, kind)(settings()) if isinstance(kind, str) else kind()).eval()
    for name, parameter in model.named_parameters():
        is_norm = "norm" in name.lower() or "ln_" in name
        nn.init.normal_(parameter, mean=1.0 if is_norm and name.endswith("weight") else 0.0, std=0.3)
    return model.to(dtype)


class ResidualModel(nn.Module):
    """A pre-norm model whose blocks add to the stream in one of several ways; with "shared", one block runs twice."""

    def __init__(self, how, blocks=2):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB_SIZE, 12)
        made = [ResidualBlock(how) for _ in range(blocks)]
        self.blocks = nn.ModuleList([made[0], made[0]] if how == "shared" else made)
        self.norm = nn.LayerNorm(12, bias=how != "checkpoint")
        self.head = nn.Linear(12, VOCAB_SIZE)

    def forward(self, ids):
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class ResidualBlock(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how = how
        self.attention = nn.MultiheadAttention(12, 3, batch_first=True)
        self.before = nn.ModuleList(nn.LayerNorm(12) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(12, 5), nn.GELU(), nn.Linear(5, 12))

    def attended(self, x):
        normed = self.before[0](x)
        return self.attention(normed, normed, normed)[0]

    def added(self, x):
        if self.how == "in place":
            x += self.attended(x)
            x += self.mlp(self.before[1](x))
            return x
        if self.how == "into parts":  # the stream is added in place to what the parts return
            attended = self.attended(x)
            attended += x
            output = self.mlp(self.before[1](attended))
            output += attended
            return output
        if self.how == "add_":
            x = x.add_(self.attended(x))
            return torch.add(x, self.mlp(self.before[1](x)))
        if self.how == "scaled":
            x = x + 0.5 * self.attended(x)
            return x + self.mlp(self.before[1](x)) / 2
        x = x + self.attended(x)
        return self.mlp(self.before[1](x)) + x

    def forward(self, x):
        if self.how == "checkpoint":
            return torch.utils.checkpoint.checkpoint(self.added, x, use_reentrant=False)
        return self.added(x)


def residual_model(how):
    torch.manual_seed(4)
    model = ResidualModel(how).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


class Family(NamedTuple):
    """A kind of model.

    Attributes:
        kind, settings: the class, or a function that makes the model; its config.
        site: globs -> for each, the template of the module whose input is the outputs of heads, joined.
        heads: how many there are.
        module: a glob of modules to patch.
    """

    kind: object
    settings: object
    sites: dict
    heads: int
    module: str


FAMILIES = {
    "GPT-2": Family(
        "GPT2LMHeadModel", partial(config, "GPT2", n_positions=8, n_embd=24, n_layer=2, n_head=4, n_inner=10),
        {"*.output_heads": "transformer.h.{}.attn.c_proj"}, 4, "transformer.h.*.mlp",
    ),
    "Llama": Family(
        "LlamaForCausalLM", partial(config, "Llama", num_key_value_heads=2, max_position_embeddings=8, **SMALL),
        {"*.output_heads": "model.layers.{}.self_attn.o_proj"}, 4, "model.layers.?",
    ),
    "BERT": Family(
        "BertForMaskedLM", partial(config, "Bert", max_position_embeddings=8, **SMALL),
        {"*.output_heads": "bert.encoder.layer.{}.attention.output.dense"}, 4, "bert.encoder.layer.?.output",
    ),
    "T5": Family(
        "T5ForConditionalGeneration",
        partial(config, "T5", d_model=24, d_kv=5, d_ff=10, num_layers=2, num_heads=4, decoder_start_token_id=0),
        {
            "encoder.*.output_heads": "encoder.block.{}.layer.0.SelfAttention.o",
            "decoder.*.SelfAttention.output_heads": "decoder.block.{}.layer.0.SelfAttention.o",
            "decoder.*.EncDecAttention.output_heads": "decoder.block.{}.layer.1.EncDecAttention.o",
        }, 4, "encoder.block.?.layer.1",
    ),
    "ViT": Family(
        "ViTForImageClassification",
        lambda: transformers.ViTConfig(image_size=8, patch_size=4, num_labels=7, **SMALL),
        {"*.output_heads": "vit.layers.{}.attention.o_proj"}, 4, "vit.layers.?.mlp",
    ),
    "GPT": Family(
        lambda: models.GPT(VOCAB_SIZE, layers=2, heads=4, dim=24, context=8), None,
        {"*.output_heads": "blocks.{}.attention.out_proj"}, 4, "blocks.*.feed_forward",
    ),
}  # fmt: skip


def family(name, dtype=torch.float32):
    return build(FAMILIES[name].kind, FAMILIES[name].settings, dtype), FAMILIES[name]


def prompts(name, padded=False, dtype=torch.float32):
    """A clean and a corrupt prompt of three texts, as the model takes them."""
    if name == "ViT":
        pixels = torch.randn(2, TEXTS, 3, 8, 8, generator=torch.Generator().manual_seed(1)).to(dtype)
        return {"pixel_values": pixels[0]}, {"pixel_values": pixels[1]}
    if name == "GPT":
        return IDS, OTHER
    clean, corrupt = {"input_ids": IDS}, {"input_ids": OTHER}
    more = {"attention_mask": MASK} if padded else {}
    if name == "T5":
        more["decoder_input_ids"] = torch.tensor([[0, 5, 8, 2], [0, 9, 8, 1], [0, 4, 1, 2]])
    return clean | more, corrupt | more


def call(model, prompt):
    """Logits, in float32."""
    output = model(**prompt) if isinstance(prompt, dict) else model(prompt)
    return (output if isinstance(output, torch.Tensor) else output.logits).float()


class Shortcut:
    """A shortcut of patching, which `function` of the module of `kind` chooses."""

    def __init__(self, monkeypatch, kind, function, nothing):
        self.monkeypatch, self.made = monkeypatch, []
        self.off = (sys.modules[kind.__module__], function, lambda *_: nothing)
        made = self.made

        class Noted(kind):
            def __init__(self, *given):
                super().__init__(*given)
                made.append(self)

        monkeypatch.setattr(patch_sweep, kind.__name__, Noted)

    @property
    def paths(self):
        """The modules that it took last."""
        return self.made[-1].paths

    def compared(self, run):
        """Return the modules that it takes, and what `run` returns with it and without it."""
        found, paths = run(), self.paths
        with self.monkeypatch.context() as changed:
            changed.setattr(*self.off)
            expected = run()
        assert self.paths == []
        return paths, found, expected


def first(output):
    return output[0] if isinstance(output, tuple | list) else output


def score(logits):
    """No linear function of the logits, of all texts and of more than one position."""
    logs = logits.log_softmax(-1)
    if logits.dim() == 2:
        return logs[:, 2].sum() + 0.3 * logits[1, 4]
    return logs[:, -1, 5].sum() + 0.3 * logits[1, 0, 3] - logs[2, 2, 1]


def run(model, prompt, hooked=None, change=None, at="input"):
    """Logits, where one module's input or output passes through a function."""
    if hooked is None:
        return call(model, prompt)
    module = model.get_submodule(hooked)
    if at == "input":
        handle = module.register_forward_pre_hook(lambda _, args: (change(args[0]), *args[1:]))
    else:

        def hook(_, __, output):
            changed = change(first(output))
            return (changed, *output[1:]) if isinstance(output, tuple) else changed

        handle = module.register_forward_hook(hook)
    try:
        return call(model, prompt)
    finally:
        handle.remove()


def recorded(model, prompt, module, at):
    kept = []
    run(model, prompt, module, lambda tensor: kept.append(tensor.detach().clone()) or tensor, at)
    return kept[0]


def cut(tensor, heads, head, position):
    """The part of [batch, position, heads * dim] that is one head's, one position's, or both."""
    parts = tensor.unflatten(-1, (heads or 1, -1))
    return parts[:, slice(None) if position is None else position, slice(None) if head is None else head]
