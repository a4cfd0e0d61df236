"""Adapters that give models of transformers the interface of `models.GPT` or of `models.Transformer`.

Generation continues from `past_key_values`: the keys and values, or other states, of the previous steps.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import Tensor, nn

from tfviz.hugging_face import is_encoder_decoder, is_hugging_face
from tfviz.text.subwords import PAD


@runtime_checkable
class PretrainedModel(Protocol):
    """The protocol of models of transformers, such as `GPT2LMHeadModel`."""

    config: Any
    main_input_name: str

    def get_input_embeddings(self) -> Any: ...


@runtime_checkable
class PretrainedTokenizer(Protocol):
    """The protocol of fast tokenizers of transformers."""

    backend_tokenizer: Any
    all_special_ids: Any

    def __call__(self, text: str) -> Any: ...


class HFCache:
    """The cache of generation: the `past_key_values` that the model returned, or None before the first call."""

    def __init__(self) -> None:
        self.states: Any = None

    def reorder(self, rows: Tensor) -> None:
        """Reorder the cache: row i continues from row `rows[i]`."""
        if self.states is not None:
            self.states.reorder_cache(rows)


class CausalModel(nn.Module):
    """A causal language model of transformers, with the interface of `models.GPT`.

    Attributes:
        context: the maximum number of positions, from its configuration; unlimited if it names none.
        eos_token_ids: the ids of the end tokens in its `generation_config`.
    """

    def __init__(self, model: Any):
        super().__init__()
        self.model = model
        config = model.config.get_text_config()
        self.context = int(getattr(config, "max_position_embeddings", None) or sys.maxsize)
        self.eos_token_ids = _end_tokens(model)

    def new_cache(self) -> HFCache:
        return HFCache()

    def forward(self, ids: Tensor, cache: Any = (), mask: Tensor | None = None) -> Tensor:
        """Return the logits after each token of `ids`; `mask` is 1 at tokens and 0 at padding, which is on the left."""
        if not isinstance(cache, HFCache):
            return self.model(input_ids=_checked(self.model, ids), use_cache=False).logits
        if cache.states is None:
            ids = _checked(self.model, ids)
        named = {} if mask is None else self._padding(mask, ids.shape[1])
        output = self.model(input_ids=ids, past_key_values=cache.states, use_cache=True, **named)
        cache.states = getattr(output, "past_key_values", None)
        if cache.states is None:
            name = type(self.model).__name__
            raise ValueError(f"{name} keeps no past_key_values; take generate.ids(..., cache=False)")
        return output.logits

    def _padding(self, mask: Tensor, new: int) -> dict[str, Tensor]:
        """Return the arguments for padding: the mask and, if the model takes them, position ids that skip padding."""
        if "position_ids" not in inspect.signature(self.model.forward).parameters:
            return {"attention_mask": mask}
        return {"attention_mask": mask, "position_ids": (mask.cumsum(-1) - 1).clamp(min=0)[:, -new:]}


class HFEncoderOutput(NamedTuple):
    """The encoder's output of a model of transformers, and a mask that is 0 at padding."""

    states: Tensor
    attention_mask: Tensor


class EncoderDecoderModel(nn.Module):
    """An encoder-decoder of transformers, such as T5, with the interface of `models.Transformer`.

    Attributes:
        pad_token_id: the id of the padding token, from its configuration; 0 if it names none.
    """

    def __init__(self, model: Any):
        super().__init__()
        self.model = model
        padding = getattr(model.config, "pad_token_id", None)
        self.pad_token_id: int = PAD if padding is None else padding

    def encode(self, source: Tensor) -> HFEncoderOutput:
        mask = (source != self.pad_token_id).long()
        encoder = self.model.get_encoder()
        return HFEncoderOutput(
            encoder(input_ids=_checked(self.model, source), attention_mask=mask).last_hidden_state, mask
        )

    def new_cache(self, length: int) -> list[HFCache]:
        return [HFCache()]

    def decode(self, target: Tensor, memory: HFEncoderOutput, cache: list[HFCache]) -> Tensor:
        width, past = len(target) // len(memory.attention_mask), cache[0]
        states, mask = (part.repeat_interleave(width, dim=0) for part in memory)
        output = self.model(
            encoder_outputs=(states,), attention_mask=mask, decoder_input_ids=target, past_key_values=past.states,
            use_cache=True,
        )  # fmt: skip
        past.states = output.past_key_values
        return output.logits


def as_language_model(model: Any) -> Any:
    """Return a causal model of transformers as `CausalModel`, and any other model unchanged.

    Raises:
        ValueError: the model is an encoder-decoder, or has no head for logits.
    """
    if not is_hugging_face(model):
        return model
    _check_head(model)
    if is_encoder_decoder(model):
        raise ValueError(f"{type(model).__name__} is an encoder-decoder; use generate.beam.search")
    return CausalModel(model)


def as_encoder_decoder(model: Any) -> Any:
    """Return an encoder-decoder of transformers as `EncoderDecoderModel`, and any other model unchanged.

    Raises:
        ValueError: the model has no encoder, or no head for logits.
    """
    if not is_hugging_face(model):
        return model
    _check_head(model)
    if not is_encoder_decoder(model):
        raise ValueError(
            f"{type(model).__name__} is a decoder without a source; use generate.ids, or the model's own "
            "generate(num_beams=5)"
        )
    return EncoderDecoderModel(model)


def _check_head(model: Any) -> None:
    if model.get_output_embeddings() is None:
        raise ValueError(
            f"{type(model).__name__} has no head that computes logits of tokens; give a model with its head, such as "
            "GPT2LMHeadModel instead of GPT2Model"
        )


def _checked(model: Any, ids: Tensor) -> Tensor:
    """Return ids after checking that the model has them, since PyTorch's own error names neither id nor limit.

    Raises:
        ValueError: an id is not one of the model's tokens.
    """
    tokens = getattr(model.get_input_embeddings(), "num_embeddings", None)
    if tokens is not None and ids.numel() and (largest := int(ids.max())) >= tokens:
        raise ValueError(f"id {largest} is not one of the model's {tokens} tokens, numbered from 0 to {tokens - 1}")
    return ids


def _end_tokens(model: Any) -> frozenset[int]:
    end = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    return frozenset() if end is None else frozenset(end if isinstance(end, list | tuple) else [end])
