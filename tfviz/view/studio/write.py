"""`view.write`, the studio of a causal language model that continues a prompt, in the page or with a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.eval_mode import eval_mode, model_device
from tfviz.logits import extract_logits
from tfviz.portable.language_model import export_language_model
from tfviz.view.check_numbers import MAX_SAFE_INTEGER
from tfviz.view.documents.studios import WriteDocument
from tfviz.view.figures.formatting import format_count
from tfviz.view.figures.generation import next_tokens
from tfviz.view.page.heads import MAX_PAGE_BYTES
from tfviz.view.page.html import View
from tfviz.view.studio import requirements
from tfviz.view.studio.build import STUDIO_STATE, examples_spec, studio_view
from tfviz.view.studio.static_studio import predict_next, studio_picture

if TYPE_CHECKING:
    from tfviz.view.studio.write_widget import WriteWidget

MAX_WRITTEN_TOKENS = 400  # generated in one run
# what `examples` can set
STATE_KEYS = ("prompt", "temperature", "top_k", "top_p", "seed", "ablated_heads", "layer", "head")


def write(
    model: nn.Module,
    tokenizer: Any,
    prompt: str,
    title: str = "What comes next?",
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    dtype: str = "float16",
    max_bytes: float | None = MAX_PAGE_BYTES,
    kernel: bool = False,
    examples: Mapping[str, Mapping[str, Any]] | None = None,
) -> View | WriteWidget:
    """Explore a language model: type a prompt, see and choose the next token, switch heads off.

    The model is embedded in the page and runs there. The text for a seed equals the result of `generate.text`, up to
    the rounding of the weights.

    Args:
        model: returns logits [batch, position, vocab] for ids [batch, position]. If it has a method `new_cache`, as
            `models.GPT` does, the model computes only the new token at each step.
        tokenizer: one of `tfviz.text`, or a fast tokenizer of transformers, whose special tokens are omitted; with
            `kernel`, any tokenizer, since Python then encodes.
        prompt: the prompt shown first.
        title: the title.
        temperature: initial temperature; see `generate.Sampler`.
        top_k: initial number of tokens to sample from; None: all.
        top_p: initial probability mass of the tokens to sample from, above 0 and up to 1; None: all tokens.
        seed: initial seed, from 0 to 2**53 - 1.
        dtype: storage format of the weights: "float32", "float16", or "int8".
        max_bytes: maximum size of the model in the page as base64, in bytes; None: no limit.
        kernel: whether the model stays in Python and answers while the notebook's kernel runs, for models that are too
            large for a page. Without its kernel, the page shows the heads of the last state.
        examples: experiments shown as buttons above the view: name -> the state that it sets, such as `{"A sonnet":
            {"prompt": "Shall I compare"}}`; the standard examples follow.

    Raises:
        TypeError: `tokenizer` is not a tokenizer that a page can use.
        ValueError: the model cannot be exported (the message gives the reason) or exceeds `max_bytes`; the prompt is
            empty or too long; the tokenizer does not fit the model; an initial value is out of range.
    """
    _check_sampling(temperature, top_k, top_p, seed)
    tokenizer, tokenizer_spec = requirements.read_tokenizer(tokenizer, kernel)
    ids = tokenizer.encode(prompt)
    context = requirements.context_length(model)
    if not 0 < len(ids) <= context:
        remedy = "a shorter prompt" if len(ids) else "a prompt of at least one token"
        raise ValueError(
            f"the prompt has {format_count(len(ids), 'token')}; the model takes 1 to {context}: give {remedy}"
        )
    if not kernel:
        requirements.check_weights(model)
    requirements.check_causal(model, tokenizer)
    document: WriteDocument = {
        "kind": "write", "title": title, "examples": examples_spec(examples, STATE_KEYS),
        "tokenizers": [tokenizer_spec], "context": context, "max_new_tokens": MAX_WRITTEN_TOKENS,
        "state": {
            **STUDIO_STATE, "prompt": prompt, "tree": [], "node": -1, "temperature": temperature, "top_k": top_k or 0,
            "top_p": top_p or 1.0, "seed": seed,
        },
    }  # fmt: skip
    if kernel:
        return _widget(model, tokenizer, document)
    programs = export_language_model(model, dtype)
    requirements.check_logits_width(
        programs["read"](torch.zeros(1, 2, dtype=torch.long))["logits"].shape[-1], tokenizer
    )
    requirements.check_embeddings(model, tokenizer, programs["read"])
    logits = programs["read"](ids[None])["logits"][0, :, : len(tokenizer)]
    if dtype == "int8" and len(ids) > 1:
        document["note"] = _rounding_note(model, ids, logits)
    prediction = predict_next(tokenizer, logits[-1], temperature, top_k, top_p)
    bars = next_tokens(prediction.names, prediction.bars[""], title, prompt)
    static_figure = studio_picture(
        bars, title, model, tokenizer, ids[None], {"layer": 0, "head": 0}, len(ids) - 1, prediction
    )
    return studio_view(document, static_figure, programs, max_bytes)


def _rounding_note(model: nn.Module, ids: Tensor, logits: Tensor) -> str:
    """Return a note that compares the prompt's cross-entropy with 8-bit weights and with the model's own weights."""
    with eval_mode(model):
        outputs = model(ids[None].to(model_device(model)))
    exact = extract_logits(outputs)[0, :, : logits.shape[-1]].float().cpu()
    page, itself = (nn.functional.cross_entropy(each[:-1], ids[1:]).item() for each in (logits, exact))
    return f"With weights of 8 bits the prompt costs {page:.3f} nats a token; with the model's own, {itself:.3f}."


def _widget(model: nn.Module, tokenizer: Any, document: WriteDocument) -> WriteWidget:
    """Return the widget of a studio whose model stays in Python."""
    from tfviz.view.studio.write_widget import WriteWidget

    widget = WriteWidget(model, tokenizer, document)
    requirements.check_logits_width(widget.width, tokenizer)
    requirements.check_embeddings(model, tokenizer, widget.scores)
    return widget


def _check_sampling(temperature: float, top_k: int | None, top_p: float | None, seed: int) -> None:
    checks.at_least(0, temperature=temperature)
    if top_k is not None:
        checks.at_least(1, top_k=top_k)
    if top_p is not None:
        checks.positive_fraction(top_p=top_p)
    checks.between(0, MAX_SAFE_INTEGER, seed=seed)
