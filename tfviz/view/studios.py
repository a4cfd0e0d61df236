"""Studios: a trained model to question, in a page with no kernel. The model itself travels and computes there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from tfviz import bounds
from tfviz.portable.language_model import export_language_model
from tfviz.text import subwords
from tfviz.view.page import passage
from tfviz.view.page.alive import BUDGET, STATE
from tfviz.view.page.here import positions
from tfviz.view.page.html import View
from tfviz.view.page.studio import studio
from tfviz.view.still.formatting import counted
from tfviz.view.still.likeliest import likeliest

if TYPE_CHECKING:
    from tfviz.view.page.writing import Writing

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
    kernel: bool = False,
) -> View | Writing:
    """A language model to question: type a prompt, see and choose the next token, switch heads off.

    The model travels in the page and computes there. The text it writes for a seed is the one that `generate.text`
    writes, as far as the weights are kept exactly.

    Args:
        model: gives logits, batch position vocab, for ids, batch position; with `new_cache()`, as `models.GPT`, a
            token is written without reading all again.
        vocab: of `tfviz.text`, or a fast tokenizer of transformers, of which special tokens are left out; with `kernel`
            of any kind, since Python encodes what a page cannot.
        temperature, top_k, top_p, seed: where the knobs stand at first; see `generate.Sampler`.
        weights: how they travel: "float32", "float16", or "int8".
        budget: bytes that the model may take in the page.
        kernel: leave the model in Python, which answers while the notebook's kernel lives: for those too large to
            travel. What it leaves in a page is the last state's heads.

    Raises:
        TypeError: a vocabulary of another kind.
        ValueError: the model cannot travel (it says why), or is past the budget; the prompt is empty or too long; the
            vocabulary is not the model's; a knob cannot stand there.
    """
    _check(temperature, top_k, top_p, seed)
    vocab = subwords.as_vocabulary(vocab)
    described = passage.plain(vocab, kernel)
    ids = vocab.encode(prompt)
    context = positions(model) or 1024
    if not 0 < len(ids) <= context:
        remedy = "a shorter prompt" if len(ids) else "a text of one token at least for it to go on from"
        raise ValueError(f"the prompt has {counted(len(ids), 'token')}; the model takes 1 to {context}: give {remedy}")
    if not kernel:
        passage.exact(model)
    passage.writes(model, vocab)
    state = {"prompt": prompt, "seed": seed, "temperature": temperature, "topK": top_k or 0, "topP": top_p or 1.0}
    state |= {"tree": [], "at": -1}
    more = {"context": context, "most": WRITTEN, "vocabularies": [described]}
    if kernel:
        return _asking(model, vocab, title, more, state)
    programs = export_language_model(model, weights)
    passage.own(programs["read"](torch.zeros(1, 2, dtype=torch.long))["logits"].shape[-1], vocab)
    passage.reads(model, vocab, programs["read"])
    logits = programs["read"](ids[None])["logits"][0, -1, : len(vocab)]
    return studio("write", title, likeliest(vocab, logits, title, prompt), programs, state, more, budget)


def _asking(model: nn.Module, vocab: Any, title: str, more: dict[str, Any], state: dict[str, Any]) -> Writing:
    """The studio whose model stays here."""
    from tfviz.view.page.writing import Writing

    told = {"kind": "write", "title": title, "parts": [], "masks": [], "note": ""}
    made = Writing(model, vocab, {**told, **more, "state": {**STATE, "off": [], **state}})
    passage.own(made.width, vocab)
    passage.reads(model, vocab, made.scores)
    return made


def _check(temperature: float, top_k: int | None, top_p: float | None, seed: int) -> None:
    """Where the knobs can stand."""
    bounds.at_least(0, temperature=temperature)
    if top_k is not None:
        bounds.at_least(1, top_k=top_k)
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p is {top_p}; it must be above 0 and at most 1")
    bounds.between(0, LARGEST, seed=seed)
