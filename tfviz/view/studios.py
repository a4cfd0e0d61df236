"""Studios: a trained model to question, in a page with no kernel. The model itself travels and computes there."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from tfviz.portable.language import language
from tfviz.view.page.alive import BUDGET
from tfviz.view.page.html import View
from tfviz.view.page.studio import studio
from tfviz.view.plots import rows
from tfviz.view.still.picture import Picture

SHOWN = 12  # next tokens in the still picture
WRITTEN = 400  # tokens that a run writes at most


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
        ValueError: the model cannot travel (it says why), or is past the budget; the prompt is empty or too long.
    """
    ids = vocab.encode(prompt)
    context = int(getattr(model, "context", 0) or _positions(model) or 1024)
    if not 0 < len(ids) <= context:
        raise ValueError(f"the prompt has {len(ids)} tokens; the model takes 1 to {context}: give a shorter prompt")
    programs = language(model, weights)
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


def _positions(model: nn.Module) -> int | None:
    """How many positions a Hugging Face model says it has."""
    return getattr(getattr(model, "config", None), "max_position_embeddings", None)
