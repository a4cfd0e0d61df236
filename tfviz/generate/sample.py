"""Text from a language model, token by token."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from tfviz.bounds import at_least, filled, token_ids
from tfviz.bounds import seed as check_seed
from tfviz.doors import what
from tfviz.generate import compiled
from tfviz.generate.fast import FastRows
from tfviz.shapes import Float, Int

COLDEST = 1e-30  # a temperature that float32 logits can still be divided by


@runtime_checkable
class Vocabulary(Protocol):
    """What `text.Characters` and `text.Bytes` have in common."""

    def encode(self, text: str) -> Tensor: ...

    def pieces(self, ids: Iterable[int]) -> Iterator[str]: ...


@runtime_checkable
class LanguageModel(Protocol):
    """What generation asks of a model; `models.GPT` has it."""

    context: int
    training: bool

    def __call__(self, ids: Tensor, cache: Any = ()) -> Tensor: ...

    def new_cache(self) -> Any: ...

    def parameters(self) -> Iterator[Tensor]: ...

    def train(self, mode: bool = True) -> Any: ...


@dataclass(frozen=True)
class Sampler:
    """How the next token is chosen from the logits.

    Args:
        temperature: divides the logits; below 1 the likely becomes likelier, 0 takes the likeliest always, and
            for infinity all are alike.
        top_k: only the `top_k` likeliest tokens (Fan et al. 2018).
        top_p: only the likeliest tokens that together hold `top_p` of the probability (Holtzman et al. 2020).

    >>> Sampler(top_k=2).probabilities(torch.tensor([0.0, 1.0, 1.0])).tolist()
    [0.0, 0.5, 0.5]
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if not (self.temperature == 0 or self.temperature >= COLDEST):
            raise ValueError(f"temperature is {self.temperature}; it must be 0, or at least {COLDEST}")
        if self.top_k is not None:
            at_least(1, top_k=self.top_k)
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p}; it must be above 0 and at most 1")

    def probabilities(self, logits: Float[Tensor, "vocab"]) -> Float[Tensor, "vocab"]:
        """The distribution that is drawn from.

        Raises:
            ValueError: logits of more than one token, or none.
            FloatingPointError: the likeliest logit is not finite.
        """
        _check_logits(logits)
        if not logits.max().isfinite():
            raise FloatingPointError(
                f"the largest of the logits is {logits.max().item()}; there is nothing to draw from"
            )
        return self._probabilities(logits)

    def _probabilities(self, logits: Tensor) -> Tensor:
        if self.temperature == 0:
            return torch.zeros_like(logits).scatter(-1, logits.argmax(-1, keepdim=True), 1.0)
        behind = logits.float() - logits.max()
        logits = (behind / self.temperature).masked_fill(behind == -torch.inf, -torch.inf)  # also where it is infinite
        if self.top_k is not None and self.top_k < len(logits):
            logits = logits.masked_fill(logits < logits.topk(self.top_k).values[-1], -torch.inf)
        probabilities = logits.softmax(-1)
        if self.top_p is not None:
            ordered, order = probabilities.sort(descending=True)
            before = ordered.cumsum(-1) - ordered
            over = order[1:][before[1:] >= self.top_p]  # the likeliest stays, however small top_p is
            probabilities = probabilities.index_fill(-1, over, 0.0)
        return probabilities / probabilities.sum()

    def choose(self, logits: Float[Tensor, "vocab"], draw: torch.Generator | None = None) -> int:
        """One token id: the first at which the sum of the probabilities passes a number drawn between 0 and 1.

        One draw of a float64 for each token, the same on every machine; a page draws the same.
        """
        _check_logits(logits)
        top, likeliest = logits.max(dim=-1)
        if not top.isfinite():
            raise FloatingPointError("the model's logits are not finite; it cannot generate")
        if not isinstance(draw, torch.Generator | None):
            raise TypeError(f"draw is {what(draw)}; give a torch.Generator, or None for PyTorch's own")
        if self.temperature == 0:
            return int(likeliest)
        sums = self._probabilities(logits).cpu().double().cumsum(-1)
        drawn = torch.rand((), dtype=torch.float64, generator=draw) * sums[-1]
        return int(torch.searchsorted(sums, drawn, right=True))


def _check_logits(logits: object) -> None:
    if not isinstance(logits, Tensor) or logits.dim() != 1 or not len(logits):
        found = list(logits.shape) if isinstance(logits, Tensor) else what(logits)
        raise ValueError(f"logits are {found}; give those of one token, [vocab], such as logits[0, -1]")


GREEDY = Sampler(temperature=0.0)


def ids(
    model: LanguageModel,
    prompt: Int[Tensor, "position"],
    count: int,
    sampler: Sampler = Sampler(),
    *,
    seed: int = 0,
    cache: bool = True,
) -> Iterator[int]:
    """Continue `prompt` by `count` tokens, yielding each as soon as it is chosen.

    The model is called as `model(ids, cache)` and has `context` and `new_cache()`. When its context is full, the
    older half of the text is forgotten and the rest is read again.

    Args:
        cache: keep keys and values, so that a step computes one position and not the whole text again. The text is
            the same either way.

    Raises:
        ValueError: the prompt is empty, longer than the context, or more than one text; count is negative.
    """
    at_least(0, count=count)
    check_seed(seed)
    filled(model)
    if prompt.dim() != 1:
        raise ValueError(f"the prompt is {list(prompt.shape)}; give the ids of one text, one axis, such as prompt[0]")
    if not 0 < len(prompt) <= model.context:
        what = "is empty" if len(prompt) == 0 else f"has {len(prompt)} tokens, the model's context is {model.context}"
        raise ValueError(f"the prompt {what}; give 1 to {model.context} tokens, such as prompt[-{model.context}:]")
    token_ids(prompt=prompt)
    return _ids(model, prompt, count, sampler, seed, cache)


def _ids(model: LanguageModel, prompt: Tensor, count: int, sampler: Sampler, seed: int, cache: bool) -> Iterator[int]:
    draw = torch.Generator().manual_seed(seed)
    was_training, fast, device = model.training, _fast_rows(model), next(model.parameters()).device
    model.train(False)
    written = 0
    try:
        fresh, seen = prompt.tolist(), prompt.tolist()
        read = _reader(model, cache)
        for _ in range(count):
            if len(seen) > model.context:
                compiled.wrote(model, written)
                fresh = seen = seen[-max(1, model.context // 2) :]
                written = 0
                read = _reader(model, cache)
            with torch.inference_mode(), fast:
                logits = read(torch.tensor([fresh if cache else seen], device=device))
                chosen = sampler.choose(logits, draw)
            fresh, written = [chosen], written + 1
            seen.append(chosen)
            yield chosen
    finally:
        model.train(was_training)
        compiled.wrote(model, written)


def _reader(model: LanguageModel, cache: bool) -> Callable[[Tensor], Tensor]:
    """From new tokens, or without a cache from all of them, to the logits after the last."""
    if not cache:
        return lambda seen: model(seen)[0, -1]
    if reader := compiled.reader(model):
        return reader
    kept = model.new_cache()
    return lambda fresh: model(fresh, kept)[0, -1]


def stream(
    model: LanguageModel,
    vocab: Vocabulary,
    prompt: str,
    count: int,
    sampler: Sampler = Sampler(),
    *,
    seed: int = 0,
) -> Iterator[str]:
    """The continuation of `prompt`, piece by piece; characters of several bytes come when they are whole."""
    check_vocabulary(getattr(model, "tokens", None), vocab)
    return vocab.pieces(ids(model, vocab.encode(prompt), count, sampler, seed=seed))


def check_vocabulary(table: Any, vocab: Any, of: str = "") -> None:
    """A model's embeddings, where it tells of them as models here do, have every token of a vocabulary.

    More of them are told by a warning: they cannot be read.

    Raises:
        ValueError: there are fewer.
    """
    tokens = getattr(table, "num_embeddings", None)
    if tokens is not None and isinstance(vocab, Sized) and tokens < len(vocab):
        raise ValueError(
            f"the model has {tokens} {of}tokens, the vocabulary {len(vocab)}; was it built for another one?"
        )
    if tokens is not None and isinstance(vocab, Sized) and tokens > len(vocab) and of != "source ":
        said = f"the model has {tokens} {of}tokens, the vocabulary {len(vocab)}"
        warnings.warn(f"{said}: what it writes beyond those cannot be read", stacklevel=4)


def text(
    model: LanguageModel,
    vocab: Vocabulary,
    prompt: str,
    count: int,
    sampler: Sampler = Sampler(),
    *,
    seed: int = 0,
) -> str:
    """`prompt` and its continuation by `count` tokens."""
    return prompt + "".join(stream(model, vocab, prompt, count, sampler, seed=seed))


def _fast_rows(model: LanguageModel) -> AbstractContextManager:
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    return FastRows() if FastRows.helps(weights, next(model.parameters()).device) else nullcontext()
