"""Studios: a trained model to question, in a page with no kernel. The model itself travels and computes there."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tfviz import bounds
from tfviz.doors import what
from tfviz.portable.language import language
from tfviz.view.page.alive import BUDGET
from tfviz.view.page.html import View
from tfviz.view.page.studio import studio
from tfviz.view.plots import rows
from tfviz.view.still.picture import Picture

SHOWN = 12  # next tokens in the still picture
WRITTEN = 400  # tokens that a run writes at most
LARGEST = 2**53 - 1  # the seeds that a page can tell apart


def write(
    model: nn.Module,
    vocab: Any,
    prompt: str,
    title: str = "Write",
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    weights: str = "float16",
    budget: float = BUDGET,
) -> View:
    """A language model to question: type a prompt, see and choose the next token, switch heads off.

    The model travels in the page and computes there. The text it writes for a seed is the one that `generate.text`
    writes, as far as the weights are kept exactly.

    Args:
        model: gives logits, batch position vocab, for ids, batch position; with `new_cache()`, as `models.GPT`, a
            token is written without reading all again.
        vocab: of `tfviz.text`.
        temperature, top_k, top_p, seed: where the knobs stand at first; see `generate.Sampler`.
        weights: how they travel: "float32", "float16", or "int8".
        budget: bytes that the model may take in the page.

    Raises:
        TypeError: a vocabulary that cannot travel.
        ValueError: the model cannot travel (it says why), or is past the budget; the prompt is empty or too long; the
            vocabulary is not the model's; a knob cannot stand there.
    """
    _check(temperature, top_k, top_p, seed)
    if not hasattr(vocab, "described"):
        raise TypeError(f"vocab is {what(vocab)}, which a page cannot encode with: give a vocabulary of tfviz.text")
    ids = vocab.encode(prompt)
    context = int(getattr(model, "context", 0) or _positions(model) or 1024)
    if not 0 < len(ids) <= context:
        raise ValueError(f"the prompt has {len(ids)} tokens; the model takes 1 to {context}: give a shorter prompt")
    programs = language(model, weights)
    width = programs["read"](torch.zeros(1, 1, dtype=torch.long))["logits"].shape[-1]
    if width != len(vocab):
        raise ValueError(
            f"the model chooses among {width} tokens, the vocabulary has {len(vocab)}: give the model's own"
        )
    logits = programs["read"](ids[None])["logits"][0, -1]
    state = {"prompt": prompt, "seed": seed, "temperature": temperature, "topK": top_k or 0, "topP": top_p or 1.0}
    state |= {"tree": [], "at": -1}
    more = {"context": context, "most": WRITTEN, "vocabularies": [vocab.described()]}
    return studio("write", title, _likeliest(vocab, logits, title, prompt), programs, state, more, budget)


def _likeliest(vocab: Any, logits: Tensor, title: str, prompt: str) -> Picture:
    """The next tokens, still."""
    shares = logits.float().softmax(-1)
    top = shares.topk(min(SHOWN, len(shares)))
    last = prompt if len(prompt) <= 40 else f"…{prompt[-39:]}"
    return rows(
        vocab.words(top.indices), {"probability": top.values}, f"{title}: the next token after {last!r}", top=1.0
    )


def _check(temperature: float, top_k: int | None, top_p: float | None, seed: int) -> None:
    """Where the knobs can stand."""
    bounds.at_least(0, temperature=temperature)
    if top_k is not None:
        bounds.at_least(1, top_k=top_k)
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p is {top_p}; it must be above 0 and at most 1")
    bounds.between(0, LARGEST, seed=seed)


def _positions(model: nn.Module) -> int | None:
    """How many positions a Hugging Face model says it has."""
    return getattr(getattr(model, "config", None), "max_position_embeddings", None)
