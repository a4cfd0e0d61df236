"""`view.fill`, the studio of a masked language model: its predictions for the masked tokens of a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from tfviz.logits import extract_logits
from tfviz.view.documents.studio_base import SpecialTokens
from tfviz.view.documents.studios import FillDocument
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.figures.text_studio import Prediction
from tfviz.view.page.heads import MAX_PAGE_BYTES
from tfviz.view.page.html import View
from tfviz.view.studio import requirements
from tfviz.view.studio.build import STUDIO_STATE, examples_spec, probability_picture, studio_view, studio_widget
from tfviz.view.studio.static_studio import studio_picture
from tfviz.view.studio.strongest_head import strongest_head

if TYPE_CHECKING:
    from tfviz.view.studio.widget import DrawStatic, ModelWidget, Request

MAX_STATIC_GUESSES = 8  # in the static picture
# what `examples` can set
STATE_KEYS = ("text", "masked", "filled", "ablated_heads", "layer", "head")


def fill(
    model: nn.Module,
    tokenizer: Any,
    text: str,
    title: str = "Which word is hidden?",
    *,
    masked: int | Sequence[int] | None = None,
    compare_with: Sequence[Any] | None = None,
    add_special_tokens: bool = True,
    dtype: str = "float16",
    max_bytes: float | None = MAX_PAGE_BYTES,
    kernel: bool = False,
    examples: Mapping[str, Mapping[str, Any]] | None = None,
) -> View | ModelWidget:
    """Explore a masked language model: mask words, see its predictions, insert one, switch heads off.

    Args:
        model: returns logits [batch, position, vocab] for ids [batch, position], or an object that has them as
            `.logits`, as `models.BERT` and the masked language models of Hugging Face do.
        tokenizer: one of `tfviz.text` with `[MASK]`, or a fast tokenizer of transformers with a mask token; see
            `write`.
        text: the text shown first.
        title: the title.
        masked: index or indices of the words masked first, where white space separates words; None: the middle word.
        compare_with: a causal model, such as `models.GPT`, its tokenizer and, optionally, the id that begins its texts.
        add_special_tokens: whether texts begin with `[CLS]` and end with `[SEP]`, if the tokenizer has them.
        dtype: storage format of the weights: "float32", "float16", or "int8".
        max_bytes: maximum size of the model in the page as base64, in bytes; None: no limit.
        kernel: whether the model stays in Python and answers while the notebook's kernel runs, for models that are too
            large for a page. Without its kernel, the page shows the heads of the last text.
        examples: experiments shown as buttons above the view: name -> the state that it sets, such as
            `{"Another gap": {"text": "the cat sat on the mat", "masked": [4]}}`.

    Raises:
        TypeError: a page cannot encode with an object such as `tokenizer`.
        ValueError: a model cannot be exported (the message gives the reason), or the models exceed `max_bytes`; the
            text is empty or too long; the tokenizer has no `[MASK]`; `masked` is not a word of the text.
    """
    tokenizer, tokenizer_spec = requirements.read_tokenizer(tokenizer, kernel)
    special = tokenizer_spec.get("special", {})
    if "mask" not in special:
        raise ValueError(
            "tokenizer has no [MASK] to mask words with; train one with text.train_wordpiece or text.train_bpe"
        )
    positions = _masked_positions(tokenizer, text, masked)
    added = special if add_special_tokens else {}
    special_tokens: SpecialTokens = {"prefix_id": added.get("cls"), "suffix_id": added.get("sep")}
    stored = None if kernel else dtype
    ids = tokenizer.encode(text)
    program, context, masked_ids, raw_logits = requirements.run_first_text(
        model, tokenizer, ids.index_fill(0, torch.tensor(positions), special["mask"]), special_tokens, stored
    )
    logits = _checked_logits(model, tokenizer, raw_logits, masked_ids)
    gap = positions[0] + (special_tokens["prefix_id"] is not None)
    opened = strongest_head(model, masked_ids, lambda returned: extract_logits(returned)[0, gap, : len(tokenizer)])
    document: FillDocument = {
        "kind": "fill", "title": title, "examples": examples_spec(examples, STATE_KEYS),
        "tokenizers": [tokenizer_spec], "special_tokens": special_tokens,
        "context": context, "state": {**STUDIO_STATE, **opened, "text": text, "masked": positions, "filled": []},
    }  # fmt: skip
    tokenizers, programs, guesses = [tokenizer], {"read": program}, {"both sides": logits[0, gap]}
    if compare_with is not None:
        other = _Comparison.from_parts(compare_with, text, stored)
        programs["comparison"] = other.program
        if is_shared := other.tokenizer_spec == tokenizer_spec:
            guesses |= other.guess(ids[: positions[0]].tolist())
        else:
            document["tokenizers"].append(other.tokenizer_spec)
            tokenizers.append(other.tokenizer)
        number = 0 if is_shared else 1
        document["compare_with"] = {"tokenizer": number, "prefix_id": other.prefix_id, "context": other.context}
    if not kernel:
        hidden_word = tokenizer.tokens(ids[positions[0]][None])[0]
        bars = _guesses(tokenizer, guesses, title, text, f"in place of {hidden_word!r} in ")
        prediction = Prediction("What it guesses", *_likeliest(tokenizer, guesses))
        static_figure = studio_picture(bars, title, model, tokenizer, masked_ids, opened, gap, prediction)
        return studio_view(document, static_figure, programs, max_bytes)
    draw_static, axis_tokens = _draw_first_gap(tokenizer, special["mask"], title), requirements.text_axes(tokenizer)
    return studio_widget(document, programs, {"read": [masked_ids]}, draw_static, axis_tokens, tokenizers)


def _checked_logits(model: nn.Module, tokenizer: Any, logits: Tensor, ids: Tensor) -> Tensor:
    """Return the logits of a text, [batch, position], for the tokens of the vocabulary, [batch, position, vocab].

    Raises:
        ValueError: the model is not a masked language model, its logits are not finite, or they do not fit the
            tokenizer.
    """
    if logits.dim() != 3 or logits.shape[:2] != ids.shape:
        raise ValueError(
            f"the model returns logits of shape {list(logits.shape)}; they must be {[*ids.shape, len(tokenizer)]}"
        )
    requirements.check_logits_width(logits.shape[2], tokenizer)
    requirements.check_bidirectional(model, tokenizer)
    requirements.check_finite(logits[..., : len(tokenizer)])
    return logits[..., : len(tokenizer)]


def _masked_positions(tokenizer: Any, text: str, masked: int | Sequence[int] | None) -> list[int]:
    """Return the positions of all tokens of the words to mask."""
    tokens = text.split()
    wanted = [len(tokens) // 2] if masked is None else [masked] if isinstance(masked, int) else list(masked)
    if not tokens:
        raise ValueError("the text has no words; give one to mask")
    if not wanted or not all(0 <= number < len(tokens) for number in wanted):
        raise ValueError(f"masked is {wanted}; the text has {len(tokens)} words, from 0: give one or more of them")
    return [position for position, number in enumerate(tokenizer.word_ids(text)) if number in wanted]


class _Comparison(NamedTuple):
    """A causal model for comparison, which predicts a masked token from the tokens before it.

    Attributes:
        tokenizer: its tokenizer.
        tokenizer_spec: its tokenizer as plain values for the page.
        program: the model as a program.
        prefix_id: the id that begins its texts; None: no such id.
        context: its maximum number of tokens.
    """

    tokenizer: Any
    tokenizer_spec: Any
    program: Any
    prefix_id: int | None
    context: int

    @classmethod
    def from_parts(cls, parts: Sequence[Any], text: str, dtype: str | None) -> _Comparison:
        """Return the comparison with a model, its tokenizer and, optionally, the id that begins its texts.

        Args:
            parts: model, tokenizer and, optionally, first id.
            text: a text that the tokenizer must be able to encode.
            dtype: storage format of the exported weights; None: the model stays in Python.

        Raises:
            ValueError: `parts` holds anything else, the tokenizer does not fit the model, or it cannot encode the text.
        """
        if not 2 <= len(parts) <= 3 or not isinstance(parts[0], nn.Module):
            raise ValueError(
                "compare_with must be a model, its tokenizer, and perhaps the id that its texts begin with"
            )
        model, tokenizer, first = (*parts, None)[:3]
        tokenizer, tokenizer_spec = requirements.read_tokenizer(tokenizer, dtype is None)
        before = requirements.check_id(tokenizer, "the id that the texts of compare_with begin with", first)
        tokenizer.encode(text)  # raises an error if it cannot encode the text
        program = requirements.text_program(model, tokenizer, dtype)
        width = program(torch.ones(1, 2, dtype=torch.long))["logits"].shape[-1]
        requirements.check_logits_width(width, tokenizer, "its tokenizer")
        requirements.check_embeddings(model, tokenizer, program, "its tokenizer")
        return cls(tokenizer, tokenizer_spec, program, before, requirements.context_length(program))

    def guess(self, left: list[int]) -> dict[str, Tensor]:
        """Return the logits of the token after these ids, [vocab], as {"left side": logits}; {} if there are no ids."""
        ids = [*([] if self.prefix_id is None else [self.prefix_id]), *left][-self.context :]
        if not ids:
            return {}
        logits = self.program(torch.tensor([ids]))["logits"][0, -1, : len(self.tokenizer)]
        requirements.check_finite(logits)
        return {"left side": logits}


def _draw_first_gap(tokenizer: Any, mask: int, title: str) -> DrawStatic:
    """Return a function that draws the predictions for the first masked token of a request's text."""

    def draw_static(request: Request, outputs: Mapping[str, Tensor]) -> StaticFigure:
        ids = request.inputs[0][0]
        gaps = (ids == mask).nonzero().flatten().tolist()
        logits = outputs["logits"][0, gaps[0] if gaps else 0, : len(tokenizer)]
        return _guesses(tokenizer, {"both sides": logits}, title, tokenizer.decode(ids))

    return draw_static


def _guesses(tokenizer: Any, guesses: Mapping[str, Tensor], title: str, text: str, where: str = "") -> StaticFigure:
    """Draw the likeliest tokens at a masked position as bars, from each model's logits, [vocab]."""
    names, probabilities = _likeliest(tokenizer, guesses)
    return probability_picture(names, probabilities, title, text, where)


def _likeliest(tokenizer: Any, guesses: Mapping[str, Tensor]) -> tuple[list[str], dict[str, Tensor]]:
    """Return the tokens of the highest probability, summed over models, and each model's probabilities, [token]."""
    probabilities = {name: logits.float().softmax(-1) for name, logits in guesses.items()}
    top = sum(probabilities.values(), torch.zeros(())).topk(min(MAX_STATIC_GUESSES, len(tokenizer))).indices
    return tokenizer.tokens(top), {name: probability[top] for name, probability in probabilities.items()}
