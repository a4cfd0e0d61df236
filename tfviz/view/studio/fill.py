"""The studio of a masked language model: its predictions for the gaps of a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from tfviz.logits import extract_logits
from tfviz.text import subwords
from tfviz.view.documents.studio_base import SpecialTokens
from tfviz.view.documents.studios import FillDocument
from tfviz.view.page.heads import MAX_PAGE_BYTES
from tfviz.view.page.html import View
from tfviz.view.still.bar_chart import rows
from tfviz.view.still.picture import Picture, shorten, subtitled
from tfviz.view.studio import requirements
from tfviz.view.studio.build import STUDIO_STATE, studio_view, studio_widget, tries_spec
from tfviz.view.studio.strongest_head import strongest_head

if TYPE_CHECKING:
    from tfviz.view.studio.widget import DrawStatic, ModelWidget, Request

MAX_STATIC_GUESSES = 8  # in the static picture
# what `tries` can set
STATE_KEYS = ("text", "masked", "filled", "off", "layer", "head")


def fill(
    model: nn.Module,
    vocab: Any,
    text: str,
    title: str = "Which word is hidden?",
    *,
    masked: int | Sequence[int] | None = None,
    compare_with: Sequence[Any] | None = None,
    add_special_tokens: bool = True,
    weights: str = "float16",
    budget: float | None = MAX_PAGE_BYTES,
    kernel: bool = False,
    tries: Mapping[str, Mapping[str, Any]] | None = None,
) -> View | ModelWidget:
    """Explore a masked language model: mask words, see its predictions, insert one, switch heads off.

    Args:
        model: returns logits [batch, position, vocab] for ids [batch, position], or an object that has them as
            `.logits`, such as those of `models.BERT` and of Hugging Face.
        vocab: a vocabulary of `tfviz.text` with `[MASK]`, or a fast tokenizer of transformers with a mask token; see
            `write`.
        text: the text shown first.
        title: the title.
        masked: indices of the words masked at first, separated by white space; None: the word in the middle.
        compare_with: a causal model, such as `models.GPT`, its vocabulary and, if there is one, the id with
            which its texts begin.
        add_special_tokens: whether texts begin with `[CLS]` and end with `[SEP]`, if the vocabulary has them.
        weights: as for `write`.
        budget: as for `write`.
        kernel: as for `write`; without its kernel a page has the heads of the last text.
        tries: as for `write`, such as `{"Another gap": {"text": "the cat sat on the mat", "masked": [4]}}`.

    Raises:
        TypeError: a vocabulary is not a text vocabulary of this library.
        ValueError: a model cannot be exported (the message gives the reason), or the models exceed the budget; the text
            is empty or too long; the vocabulary has no `[MASK]`; `masked` is not a word of the text.
    """
    vocab = subwords.as_vocabulary(vocab)
    vocabulary = requirements.vocabulary_document(vocab, kernel)
    special = vocabulary.get("special", {})
    if "mask" not in special:
        raise ValueError("vocab has no [MASK] to mask words with; make it with text.wordpiece, whole_words or bpe")
    places = _masked_places(vocab, text, masked)
    special_tokens: SpecialTokens = {"before": None, "after": None}
    if add_special_tokens:
        special_tokens = {"before": special.get("classification"), "after": special.get("separator")}
    stored = None if kernel else weights
    programs: dict[str, Any] = {"read": requirements.text_program(model, vocab, stored)}
    ids = vocab.encode(text)
    context = requirements.context_length(programs["read"])
    masked_ids = ids.index_fill(0, torch.tensor(places), special["mask"])
    masked_ids = requirements.frame_text(masked_ids, special_tokens, context)
    requirements.check_embeddings(model, vocab, programs["read"])
    logits = programs["read"](masked_ids)["logits"]
    if logits.dim() != 3 or logits.shape[:2] != masked_ids.shape:
        raise ValueError(
            f"the model gives the shape {list(logits.shape)}; it must be {[*masked_ids.shape, len(vocab)]}"
        )
    requirements.check_logits_width(logits.shape[2], vocab)
    requirements.check_bidirectional(model, vocab)
    requirements.check_finite(logits[..., : len(vocab)])
    gap = places[0] + (special_tokens["before"] is not None)
    opened = strongest_head(model, masked_ids, lambda returned: extract_logits(returned)[0, gap, : len(vocab)])
    guesses = {"both sides": logits[0, gap, : len(vocab)]}
    document: FillDocument = {
        "kind": "fill", "title": title, "tries": tries_spec(tries, STATE_KEYS),
        "vocabularies": [vocabulary], "special_tokens": special_tokens,
        "context": context, "state": {**STUDIO_STATE, **opened, "text": text, "masked": places, "filled": []},
    }  # fmt: skip
    vocabs = [vocab]
    if compare_with is not None:
        other, own, first = _comparison(compare_with)
        other_vocabulary = requirements.vocabulary_document(own, kernel)
        own.encode(text)  # it has the text's letters
        if other_vocabulary != vocabulary:
            document["vocabularies"].append(other_vocabulary)
            vocabs.append(own)
        program = programs["comparison"] = requirements.text_program(other, own, stored)
        width = program(torch.ones(1, 2, dtype=torch.long))["logits"].shape[-1]
        requirements.check_logits_width(width, own, "its vocabulary")
        requirements.check_embeddings(other, own, program, "its vocabulary")
        context = requirements.context_length(program)
        document["compare_with"] = {"vocabulary": len(vocabs) - 1, "before": first, "context": context}
        left = [*([] if first is None else [first]), *ids[: places[0]].tolist()][-context:]
        if other_vocabulary == vocabulary and left:
            guesses["left side"] = program(torch.tensor([left]))["logits"][0, -1, : len(vocab)]
            requirements.check_finite(guesses["left side"])
    if not kernel:
        return studio_view(document, _guesses(vocab, guesses, text, places[0], title), programs, budget)
    draw_static, axis_words = _draw_first_gap(vocab, special["mask"], title), requirements.text_axes(vocab)
    return studio_widget(document, programs, {"read": [masked_ids]}, draw_static, axis_words, vocabs)


def _masked_places(vocab: Any, text: str, masked: int | Sequence[int] | None) -> list[int]:
    """Return the positions of the tokens of the words to mask."""
    words = text.split()
    wanted = [len(words) // 2] if masked is None else [masked] if isinstance(masked, int) else list(masked)
    if not words:
        raise ValueError("the text has no words; give one to mask")
    if not wanted or not all(0 <= number < len(words) for number in wanted):
        raise ValueError(f"masked is {wanted}; the text has {len(words)} words, from 0: give one or more of them")
    return [place for place, number in enumerate(vocab.spans(text)) if number in wanted]


def _comparison(parts: Sequence[Any]) -> tuple[nn.Module, Any, int | None]:
    """Return the other model, its vocabulary, and the id with which its texts begin."""
    if not 2 <= len(parts) <= 3 or not isinstance(parts[0], nn.Module):
        raise ValueError("compare_with must be a model, its vocabulary, and perhaps the id that its texts begin with")
    model, vocab, first = (*parts, None)[:3]
    vocab = subwords.as_vocabulary(vocab)
    return model, vocab, requirements.check_id(vocab, "the id that the texts of compare_with begin with", first)


def _draw_first_gap(vocab: Any, mask: int, title: str) -> DrawStatic:
    """Return a function that pictures the guesses for the first gap in a request's text."""

    def draw_static(request: Request, outputs: Mapping[str, Tensor]) -> Picture:
        ids = request.inputs[0][0]
        gaps = (ids == mask).nonzero().flatten().tolist()
        shares = outputs["logits"][0, gaps[0] if gaps else 0, : len(vocab)].float().softmax(-1)
        top = shares.topk(min(MAX_STATIC_GUESSES, len(vocab))).indices
        return rows(
            vocab.words(top),
            {"both sides": shares[top]},
            subtitled(title, repr(shorten(vocab.decode(ids), 40))),
            top=1.0,
        )

    return draw_static


def _guesses(vocab: Any, guesses: dict[str, Tensor], text: str, place: int, title: str) -> Picture:
    """Draw the guesses for the first gap."""
    shares = {name: logits.float().softmax(-1) for name, logits in guesses.items()}
    top = sum(shares.values(), torch.zeros(())).topk(min(MAX_STATIC_GUESSES, len(vocab))).indices
    own = vocab.words(vocab.encode(text)[place][None])[0]
    heading = subtitled(title, f"in place of {own!r} in {shorten(text, 40)!r}")
    return rows(vocab.words(top), {name: share[top] for name, share in shares.items()}, heading, top=1.0)
