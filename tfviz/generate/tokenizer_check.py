"""A check that a model and a tokenizer belong together."""

import warnings
from collections.abc import Sized
from typing import Any


def check_tokenizer(embedding: Any, tokenizer: Any, kind: str = "") -> None:
    """Raise ValueError if an embedding has fewer tokens than a tokenizer; warn if it has more, unless of sources.

    Args:
        embedding: a `torch.nn.Embedding`; anything else is not checked.
        tokenizer: the tokenizer.
        kind: "source " or "target ", for the message.
    """
    tokens = getattr(embedding, "num_embeddings", None)
    if tokens is None or not isinstance(tokenizer, Sized) or tokens == len(tokenizer):
        return
    sizes = f"the model has {tokens} {kind}tokens, the tokenizer {len(tokenizer)}"
    if tokens < len(tokenizer):
        raise ValueError(f"{sizes}; use the tokenizer that the model was trained with")
    if kind != "source ":
        warnings.warn(f"{sizes}; ids beyond those cannot be decoded", stacklevel=4)
