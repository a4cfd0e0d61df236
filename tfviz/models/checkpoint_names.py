"""How checkpoints of others name what the models here have."""

from typing import Any, NamedTuple


class Family(NamedTuple):
    """How a family of checkpoints names what a model here has."""

    kind: str  # its `model_type`
    example: str  # a checkpoint that can be had
    settings: dict[str, Any]  # of `config.json`, and the one value of each that the model here computes
    sizes: tuple[str, ...]  # in `config.json`: vocab, context, layers, heads, dim and the like
    numbers: dict[str, tuple[float, float]]  # in `config.json`: what each is unless it is said, and what it is below
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
    numbers={"resid_pdrop": (0.1, 1)},
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
    numbers={"hidden_dropout_prob": (0.1, 1), "layer_norm_eps": (1e-12, 1)},
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
