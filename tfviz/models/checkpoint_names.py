"""Settings and tensor names of Hugging Face's checkpoints of GPT-2 and BERT, mapped to those of our models."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Family:
    """The settings and tensor names of a family of checkpoints.

    Attributes:
        model_type: value of `model_type` in `config.json`.
        example: a checkpoint of the family on the Hugging Face Hub.
        required: settings of `config.json`, each with the only value that our model supports.
        sizes: settings that are positive integers: vocab_size, context, layers, heads, dim and others.
        fractions: settings that are numbers from 0 to below 1, with their defaults.
        prefix: prefix of the tensor names in checkpoints of a model with a head.
        block: prefix of the tensor names in block {}.
        names: our module names, mapped to names in the checkpoint; several names, separated by spaces, are stacked as
            the rows of our matrix.
        aliases: second names of tied tensors, mapped to their first names.
        optional: prefixes of the tensors that a checkpoint may lack.
        transposed: whether the matrices of blocks are stored as `[in, out]`.
    """

    model_type: str
    example: str
    required: dict[str, Any]
    sizes: tuple[str, ...]
    fractions: dict[str, float]
    prefix: str
    block: str
    names: dict[str, str]
    aliases: dict[str, str]
    optional: tuple[str, ...] = ()
    transposed: bool = False


GPT2 = Family(
    model_type="gpt2", example="openai-community/gpt2", prefix="transformer.", block="h.{}.", transposed=True,
    required={"layer_norm_epsilon": 1e-5, "scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False},
    sizes=("vocab_size", "n_positions", "n_layer", "n_head", "n_embd"),
    fractions={"resid_pdrop": 0.1},
    names={
        "tokens": "wte", "positions.vectors": "wpe", "norm": "ln_f",
        "attention_norm": "ln_1", "attention.in_proj": "attn.c_attn", "attention.out_proj": "attn.c_proj",
        "feed_forward_norm": "ln_2", "feed_forward.0": "mlp.c_fc", "feed_forward.2": "mlp.c_proj",
    },
    aliases={"lm_head.weight": "wte.weight"},
)  # fmt: skip
BERT = Family(
    model_type="bert", example="google-bert/bert-base-uncased", prefix="bert.", block="encoder.layer.{}.",
    required={
        "hidden_act": "gelu", "position_embedding_type": "absolute", "type_vocab_size": 2, "pad_token_id": 0,
        "is_decoder": False, "add_cross_attention": False,
    },
    sizes=(
        "vocab_size", "max_position_embeddings", "num_hidden_layers", "num_attention_heads", "hidden_size",
        "intermediate_size",
    ),
    fractions={"hidden_dropout_prob": 0.1, "layer_norm_eps": 1e-12},
    names={
        "tokens": "embeddings.word_embeddings", "segments": "embeddings.token_type_embeddings",
        "positions.vectors": "embeddings.position_embeddings", "norm": "embeddings.LayerNorm",
        "attention.in_proj": "attention.self.query attention.self.key attention.self.value",
        "attention.out_proj": "attention.output.dense", "attention_norm": "attention.output.LayerNorm",
        "feed_forward.0": "intermediate.dense", "feed_forward.2": "output.dense",
        "feed_forward_norm": "output.LayerNorm",
        "pooler": "pooler.dense", "next_sentence_head": "cls.seq_relationship", "mlm_bias": "cls.predictions.bias",
        "mlm_dense": "cls.predictions.transform.dense", "mlm_norm": "cls.predictions.transform.LayerNorm",
    },
    aliases={
        "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    optional=("pooler.", "cls.predictions.", "cls.seq_relationship."),
)  # fmt: skip
