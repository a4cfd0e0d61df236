"""A check that a model and a vocabulary belong together."""

import warnings
from collections.abc import Sized
from typing import Any


def check_vocabulary(embedding: Any, vocab: Any, kind: str = "") -> None:
    """Raise ValueError if a model's embedding has fewer tokens than a vocabulary; warn if it has more.

    Args:
        embedding: a `torch.nn.Embedding`; anything else is not checked.
        vocab: the vocabulary.
        kind: "source " or "target ", for the message.
    """
    tokens = getattr(embedding, "num_embeddings", None)
    if tokens is None or not isinstance(vocab, Sized) or tokens == len(vocab):
        return
    sizes = f"the model has {tokens} {kind}tokens, the vocabulary {len(vocab)}"
    if tokens < len(vocab):
        raise ValueError(f"{sizes}; use the vocabulary that the model was trained with")
    if kind != "source ":
        warnings.warn(f"{sizes}: what it writes beyond those cannot be read", stacklevel=4)
