"""Small models of the package transformers with random but repeatable weights."""

import pytest
import torch
from torch import nn

transformers = pytest.importorskip("transformers")
HIDDEN = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
SETTINGS = {  # how the name of a class begins -> its config
    "GPT2": {"n_positions": 16, "n_embd": 24, "n_layer": 2, "n_head": 4, "bos_token_id": 1, "eos_token_id": 2},
    "Llama": {"num_key_value_heads": 2, "max_position_embeddings": 32, **HIDDEN},
    "Mistral": {"num_key_value_heads": 2, "max_position_embeddings": 32, **HIDDEN},
    "Bert": {"max_position_embeddings": 16, **HIDDEN},
    "T5": {"d_model": 24, "d_kv": 5, "d_ff": 32, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0},
    "ViT": {"image_size": 8, "patch_size": 4, **HIDDEN},
}


def small_model(kind, *, vocab_size=11, seed=0, std=None, **settings):
    """A model by the name of its class, in eval mode; `std` is that of its weights, else they are drawn as usual."""
    family = next(name for name in SETTINGS if kind.startswith(name))
    config = getattr(transformers, f"{family}Config")(
        **({} if family == "ViT" else {"vocab_size": vocab_size}), **{**SETTINGS[family], **settings}
    )
    torch.manual_seed(seed)
    model = getattr(transformers, kind)(config).eval()
    if std is not None:
        torch.manual_seed(seed)
        for parameter in model.parameters():
            nn.init.normal_(parameter, std=std)
    return model
