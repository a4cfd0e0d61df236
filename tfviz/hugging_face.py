"""Recognize Hugging Face transformers models by their attributes, without importing the library."""

from typing import Any

import torch

NEXT_TOKEN_SUFFIXES = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")  # of class names


def is_hugging_face(model: Any) -> bool:
    """Return whether a model is a transformers model, or wraps one as `peft` does."""
    return hasattr(model, "main_input_name") and hasattr(model, "config")


def is_encoder_decoder(model: Any) -> bool:
    """Return whether a transformers model is an encoder-decoder."""
    return bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))


def shifts_labels(model: Any) -> bool:
    """Return whether the loss of a transformers model compares the logits at a position with the next label."""
    kind = getattr(model, "loss_type", None) or type(model).__name__
    return is_hugging_face(model) and str(kind).endswith(NEXT_TOKEN_SUFFIXES) and not is_encoder_decoder(model)


def dispatched_device(model: Any) -> torch.device | None:
    """Return the device of the inputs of a model placed by `device_map`; None for any other model."""
    if getattr(model, "hf_device_map", None) is None:
        return None
    return next((parameter.device for parameter in model.parameters() if not parameter.is_meta), None)
