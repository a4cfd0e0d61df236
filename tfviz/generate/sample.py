"""Text generation with a language model, token by token."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from tfviz.checks import at_least, positive_fraction, require_weights, token_ids
from tfviz.checks import seed as check_seed
from tfviz.eval_mode import eval_mode_with_grad
from tfviz.generate.hf_model import PretrainedModel, PretrainedTokenizer, as_language_model
from tfviz.generate.onednn import faster_linear
from tfviz.generate.tokenizer_check import check_tokenizer
from tfviz.logits import sampling_probabilities
from tfviz.schema import describe
from tfviz.shapes import Float, Int
from tfviz.text.subwords import as_tokenizer
from tfviz.text.tokenizer import Tokenizer

MIN_TEMPERATURE = 1e-30  # float32 logits can still be divided by it


@runtime_checkable
class LanguageModel(Protocol):
    """The protocol of language models for generation, such as `models.GPT`."""

    context: int
    training: bool

    def __call__(self, ids: Tensor, cache: Any = ()) -> Tensor: ...

    def new_cache(self) -> Any: ...

    def parameters(self) -> Iterator[Tensor]: ...

    def train(self, mode: bool = True) -> Any: ...


@dataclass(frozen=True)
class Sampler:
    """The rule by which the next token is sampled from the logits: temperature, top-k and top-p.

    Args:
        temperature: divisor of the logits. Below 1, likely tokens become likelier; 0 always selects the likeliest
            token; infinity makes all tokens equally likely.
        top_k: sample only from the `top_k` likeliest tokens (Fan et al. 2018); None: from all.
        top_p: sample only from the fewest likeliest tokens whose probabilities sum to at least `top_p` (Holtzman et al.
            2020); None: from all.

    >>> Sampler(top_k=2).probabilities(torch.tensor([0.0, 1.0, 1.0])).tolist()
    [0.0, 0.5, 0.5]
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if not (self.temperature == 0 or self.temperature >= MIN_TEMPERATURE):
            raise ValueError(f"temperature is {self.temperature}; it must be 0, or at least {MIN_TEMPERATURE}")
        if self.top_k is not None:
            at_least(1, top_k=self.top_k)
        if self.top_p is not None:
            positive_fraction(top_p=self.top_p)

    def probabilities(self, logits: Float[Tensor, "vocab"]) -> Float[Tensor, "vocab"]:
        """Return the probabilities with which tokens are sampled, `[vocab]`.

        Raises:
            ValueError: `logits` is not a vector, or is empty.
            FloatingPointError: the largest logit is not finite.
        """
        _check_logits(logits)
        return sampling_probabilities(logits, self.temperature, self.top_k, self.top_p)

    def sample(self, logits: Float[Tensor, "vocab"], generator: torch.Generator | None = None) -> int:
        """Return a sampled token id: the first whose cumulative probability exceeds a random number between 0 and 1.

        One float64 is drawn for each token (none at temperature 0), the same on every machine and in a page.

        Args:
            logits: the logits of one token, `[vocab]`.
            generator: the source of the random number; None: PyTorch's default generator.

        Raises:
            ValueError: `logits` is not a vector, or is empty.
            FloatingPointError: the largest logit is not finite.
        """
        if not isinstance(generator, torch.Generator | None):
            raise TypeError(f"generator is {describe(generator)}; give a torch.Generator, or None for PyTorch's own")
        if self.temperature == 0:
            _check_logits(logits)
            return int(logits.argmax(-1))
        sums = self.probabilities(logits).cpu().double().cumsum(-1)
        drawn = torch.rand((), dtype=torch.float64, generator=generator) * sums[-1]
        return int(torch.searchsorted(sums, drawn, right=True))


GREEDY = Sampler(temperature=0.0)


def ids(
    model: LanguageModel | PretrainedModel,
    prompt: Int[Tensor, "position"],
    max_new_tokens: int,
    sampler: Sampler = Sampler(),
    *,
    seed: int = 0,
    cache: bool = True,
) -> Iterator[int]:
    """Continue `prompt` by up to `max_new_tokens` tokens, and yield the id of each as soon as it is sampled.

    When the context is full, the older half of the text is dropped and the rest is computed again. A model of tfviz is
    called as `model(ids, cache)`, and has `context` and `new_cache()`. A causal model of Hugging Face is called with
    its `past_key_values`; its context is the number of positions in its configuration. Its text ends early at an end
    token of its `generation_config`, whose other settings are ignored.

    Args:
        model: a language model of tfviz, or a causal model of Hugging Face, such as `GPT2LMHeadModel`.
        prompt: the ids of the text to continue, `[position]`.
        max_new_tokens: the maximum number of tokens to generate.
        sampler: how the next token is chosen.
        seed: the seed of the random numbers.
        cache: whether to store keys and values, so that a step computes one position instead of the whole text. The
            result is the same.

    Raises:
        ValueError: the prompt is empty, longer than the context, or more than one text; `max_new_tokens` is negative.
    """
    at_least(0, max_new_tokens=max_new_tokens)
    check_seed(seed)
    require_weights(model)
    language_model = as_language_model(model)
    context = language_model.context
    if prompt.dim() != 1:
        raise ValueError(f"the prompt is {list(prompt.shape)}; give the ids of one text, one axis, such as prompt[0]")
    if not 0 < len(prompt) <= context:
        what = "is empty" if len(prompt) == 0 else f"has {len(prompt)} tokens, the model's context is {context}"
        raise ValueError(f"the prompt {what}; give 1 to {context} tokens, such as prompt[-{context}:]")
    token_ids(prompt=prompt)
    return _generate(language_model, prompt.tolist(), max_new_tokens, sampler, seed, cache)


def _generate(
    model: LanguageModel, sequence: list[int], max_new_tokens: int, sampler: Sampler, seed: int, cache: bool
) -> Iterator[int]:
    generator, ends = torch.Generator().manual_seed(seed), getattr(model, "eos_token_ids", ())
    weight_bytes = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    with eval_mode_with_grad(model) as device:
        unread, next_logits = sequence, _logits_function(model, cache)
        for _ in range(max_new_tokens):
            if len(sequence) > model.context:
                unread = sequence = sequence[-max(1, model.context // 2) :]
                next_logits = _logits_function(model, cache)
            with torch.inference_mode(), faster_linear(weight_bytes, device):
                logits = next_logits(torch.tensor([unread if cache else sequence], device=device))
                token = sampler.sample(logits, generator)
            unread = [token]
            sequence.append(token)
            yield token
            if token in ends:
                break


def _logits_function(model: LanguageModel, cache: bool) -> Callable[[Tensor], Tensor]:
    """Return a function from the new ids (without a cache, from all ids) to the logits after the last one."""
    if not cache:
        return lambda text: model(text)[0, -1]
    keys_and_values = model.new_cache()
    return lambda unread: model(unread, keys_and_values)[0, -1]


def stream(
    model: LanguageModel | PretrainedModel,
    tokenizer: Tokenizer | PretrainedTokenizer,
    prompt: str,
    max_new_tokens: int,
    sampler: Sampler = Sampler(),
    *,
    seed: int = 0,
) -> Iterator[str]:
    """Yield the text that continues `prompt`, piece by piece; a multi-byte character is yielded when it is complete.

    Args:
        model: a language model of tfviz, or a causal model of Hugging Face.
        tokenizer: a tokenizer of `tfviz.text`, or a fast tokenizer of transformers, which adds its special tokens to
            the prompt, and whose special tokens are not part of the continuation.
        prompt: the text to continue.
        max_new_tokens: the maximum number of tokens to generate.
        sampler: how each token is chosen.
        seed: the seed of the random numbers.
    """
    if isinstance(tokenizer, PretrainedTokenizer):
        encoded = torch.tensor(tokenizer(prompt)["input_ids"], dtype=torch.long)
        special = {*tokenizer.all_special_ids}
        return as_tokenizer(tokenizer).decode_stream(
            token for token in ids(model, encoded, max_new_tokens, sampler, seed=seed) if token not in special
        )
    check_tokenizer(getattr(model, "tokens", None), tokenizer)
    return tokenizer.decode_stream(ids(model, tokenizer.encode(prompt), max_new_tokens, sampler, seed=seed))


def text(
    model: LanguageModel | PretrainedModel,
    tokenizer: Tokenizer | PretrainedTokenizer,
    prompt: str,
    max_new_tokens: int,
    sampler: Sampler = Sampler(),
    *,
    seed: int = 0,
) -> str:
    """Return `prompt` with its continuation by up to `max_new_tokens` tokens; the arguments are those of `stream`."""
    return prompt + "".join(stream(model, tokenizer, prompt, max_new_tokens, sampler, seed=seed))


def _check_logits(logits: object) -> None:
    if not isinstance(logits, Tensor) or logits.dim() != 1 or not len(logits):
        size = list(logits.shape) if isinstance(logits, Tensor) else describe(logits)
        raise ValueError(f"logits are {size}; give those of one token, [vocab], such as logits[0, -1]")
    if not logits.max().isfinite():
        raise FloatingPointError(
            f"the logits are not finite, the largest is {logits.max().item()}; check the model's weights"
        )
