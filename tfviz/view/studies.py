"""Studios for a text that is there: what a classifier says of it, what a masked model puts in its gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from tfviz.portable.program import Program
from tfviz.text import subwords
from tfviz.view.page import passage
from tfviz.view.page.alive import BUDGET
from tfviz.view.page.html import View
from tfviz.view.page.studio import answered, studio
from tfviz.view.still.barred import rows
from tfviz.view.still.picture import Picture

if TYPE_CHECKING:
    from tfviz.view.page.questioned import Draws, Question, Questioned

SHOWN = 8  # guesses in the still picture


def classify(
    model: nn.Module,
    vocab: Any,
    labels: Sequence[str],
    text: str,
    title: str = "Classify",
    *,
    before: int | None = None,
    after: int | None = None,
    weights: str = "float16",
    budget: float = BUDGET,
    kernel: bool = False,
) -> View | Questioned:
    """A classifier to question: type a text, strike out or replace its words, see what each is worth, switch heads off.

    The model travels in the page and computes there.

    Args:
        model: gives logits, batch label, for ids, batch position, as `models.Classifier`.
        vocab: of `tfviz.text`, or a fast tokenizer of transformers; see `write`.
        labels: their names, in the order of the logits; words are shaded by what they do to the first.
        before, after: ids that every text begins and ends with, such as `vocab["[CLS]"]`; see
            `text.add_special_tokens`.
        weights: how they travel: "float32", "float16", or "int8".
        budget: bytes that the model may take in the page.
        kernel: leave the model in Python, which answers while the notebook's kernel lives: for those too large to
            travel. What it leaves in a page is the heads of the last text.

    Raises:
        TypeError: the vocabulary is no text vocabulary of this library.
        ValueError: the model cannot travel (it says why), or is past the budget; the text is empty or too long; not a
            name for each logit.
    """
    if isinstance(labels, str) or len(labels) < 2:
        raise ValueError(f"labels is {labels!r}; give a list of two names or more")
    vocab = subwords.as_vocabulary(vocab)
    described = passage.plain(vocab, kernel)
    frame = {"before": passage.known(vocab, "before", before), "after": passage.known(vocab, "after", after)}
    program = passage.reading(model, vocab, None if kernel else weights)
    context = passage.context_of(program)
    whole = passage.whole(vocab.encode(text), frame, context)
    passage.reads(model, vocab, program)
    logits = program(whole)["logits"]
    if len({*labels}) < len(labels):
        raise ValueError(f"labels are {list(labels)}, where two are alike; give each class a name of its own")
    if logits.shape != (1, len(labels)):
        raise ValueError(
            f"labels has {len(labels)} names, and for one text the model gives numbers of the shape "
            f"{list(logits.shape)}; it must be [1, {len(labels)}]"
        )
    passage.finite(logits)
    told = {"labels": list(labels), "frame": frame, "context": context, "vocabularies": [described]}
    state = {"text": text, "struck": [], "swapped": [], "shade": 0}
    if isinstance(program, Program):
        picture = _verdict(labels, logits, title, text)
        return studio("classify", title, picture, {"read": program}, state, told, budget)

    def draws(question: Question, outputs: Mapping[str, Tensor]) -> Picture:
        return _verdict(labels, outputs["logits"], title, vocab.decode(question[1][0][0]))

    first = {"read": [whole]}
    return answered("classify", title, {"read": program}, first, state, told, draws, passage.axes(vocab), [vocab])


def fill(
    model: nn.Module,
    vocab: Any,
    text: str,
    title: str = "Fill",
    *,
    hidden: int | Sequence[int] | None = None,
    beside: Sequence[Any] | None = None,
    add_special_tokens: bool = True,
    weights: str = "float16",
    budget: float = BUDGET,
    kernel: bool = False,
) -> View | Questioned:
    """A masked language model to question: hide words, see its guesses, put one in, switch heads off.

    Args:
        model: gives logits, batch position vocab, for ids, batch position; or what has them as `.tokens`, as
            `models.BERT`, or as `.logits`.
        vocab: of `tfviz.text`, with `[MASK]`, or a fast tokenizer of transformers that has such a token; see `write`.
        hidden: the words to hide at first, counted from 0 and set apart by white space; None: the one in the middle.
        beside: a model that sees only what stands to the left, such as `models.GPT`, and its vocabulary; behind them
            the id that its texts begin with, if there is one.
        add_special_tokens: texts begin with `[CLS]` and end with `[SEP]`, if the vocabulary has them.
        weights: how they travel: "float32", "float16", or "int8".
        budget: bytes that the models may take in the page.
        kernel: leave the model in Python, which answers while the notebook's kernel lives: for those too large to
            travel. What it leaves in a page is the heads of the last text.

    Raises:
        TypeError: a vocabulary is no text vocabulary of this library.
        ValueError: a model cannot travel (it says why), or they are past the budget; the text is empty or too long; the
            vocabulary has no `[MASK]`; there is no such word.
    """
    vocab = subwords.as_vocabulary(vocab)
    described = passage.plain(vocab, kernel)
    special = described.get("special", {})
    if "mask" not in special:
        raise ValueError("vocab has no [MASK] to hide words with; make it with text.wordpiece, whole_words or bpe")
    places = _places(vocab, text, hidden)
    frame = {key: special.get(name) if add_special_tokens else None for key, name in FRAME.items()}
    kept = None if kernel else weights
    programs: dict[str, Any] = {"read": passage.reading(model, vocab, kept)}
    ids = vocab.encode(text)
    told: dict[str, Any] = {"frame": frame, "vocabularies": [described]}
    told["context"] = passage.context_of(programs["read"])
    whole = passage.whole(ids.index_fill(0, torch.tensor(places), special["mask"]), frame, told["context"])
    passage.reads(model, vocab, programs["read"])
    logits = programs["read"](whole)["logits"]
    if logits.dim() != 3 or logits.shape[:2] != whole.shape:
        raise ValueError(f"the model gives the shape {list(logits.shape)}; it must be {[*whole.shape, len(vocab)]}")
    passage.own(logits.shape[2], vocab)
    passage.fills(model, vocab)
    passage.finite(logits[..., : len(vocab)])
    guesses = {"both sides": logits[0, places[0] + (frame["before"] is not None), : len(vocab)]}
    vocabs = [vocab]
    if beside is not None:
        other, own, first = _beside(beside)
        known = passage.plain(own, kernel)
        own.encode(text)  # it has the text's letters
        if known != described:
            told["vocabularies"].append(known)
            vocabs.append(own)
        programs["beside"] = passage.reading(other, own, kept)
        passage.own(programs["beside"](torch.ones(1, 2, dtype=torch.long))["logits"].shape[-1], own, "its vocabulary")
        passage.reads(other, own, programs["beside"], "its vocabulary")
        told["beside"] = {"vocabulary": len(vocabs) - 1, "before": first}
        told["beside"]["context"] = passage.context_of(programs["beside"])
        left = [*([] if first is None else [first]), *ids[: places[0]].tolist()][-told["beside"]["context"] :]
        if known == described and left:
            guesses["left side"] = programs["beside"](torch.tensor([left]))["logits"][0, -1, : len(vocab)]
            passage.finite(guesses["left side"])
    state = {"text": text, "hidden": places, "put": []}
    if not kernel:
        picture = _guesses(vocab, guesses, text, places[0], title)
        return studio("fill", title, picture, programs, state, told, budget)
    draws = _first_gap(vocab, special["mask"], title)
    return answered("fill", title, programs, {"read": [whole]}, state, told, draws, passage.axes(vocab), vocabs)


FRAME = {"before": "classification", "after": "separator"}


def _places(vocab: Any, text: str, hidden: int | Sequence[int] | None) -> list[int]:
    """The tokens of the words to hide."""
    words = text.split()
    wanted = [len(words) // 2] if hidden is None else [hidden] if isinstance(hidden, int) else list(hidden)
    if not words:
        raise ValueError("the text has no words; give one to hide")
    if not wanted or not all(0 <= number < len(words) for number in wanted):
        raise ValueError(f"hidden is {wanted}; the text has {len(words)} words, from 0: give one or more of them")
    return [place for place, number in enumerate(vocab.spans(text)) if number in wanted]


def _beside(given: Sequence[Any]) -> tuple[nn.Module, Any, int | None]:
    """The other model, its vocabulary, and the id its texts begin with."""
    if not 2 <= len(given) <= 3 or not isinstance(given[0], nn.Module):
        raise ValueError("beside must be a model and its vocabulary, and perhaps the id that its texts begin with")
    model, vocab, first = (*given, None)[:3]
    vocab = subwords.as_vocabulary(vocab)
    return model, vocab, passage.known(vocab, "the id that the texts of beside begin with", first)


def _verdict(labels: Sequence[str], logits: Tensor, title: str, said: str) -> Picture:
    return rows(labels, {"probability": logits[0].float().softmax(-1)}, f"{title}: {_short(said)!r}", top=1.0)


def _first_gap(vocab: Any, mask: int, title: str) -> Draws:
    """What is put in the first gap of the text that was asked about."""

    def draws(question: Question, outputs: Mapping[str, Tensor]) -> Picture:
        ids = question[1][0][0]
        gaps = (ids == mask).nonzero().flatten().tolist()
        shares = outputs["logits"][0, gaps[0] if gaps else 0, : len(vocab)].float().softmax(-1)
        top = shares.topk(min(SHOWN, len(vocab))).indices
        return rows(vocab.words(top), {"both sides": shares[top]}, f"{title}: {_short(vocab.decode(ids))!r}", top=1.0)

    return draws


def _guesses(vocab: Any, guesses: dict[str, Tensor], text: str, place: int, title: str) -> Picture:
    """What is put in the first gap, still."""
    shares = {name: logits.float().softmax(-1) for name, logits in guesses.items()}
    top = sum(shares.values(), torch.zeros(())).topk(min(SHOWN, len(vocab))).indices
    own = vocab.words(vocab.encode(text)[place][None])[0]
    said = f"{title}: in place of {own!r} in {_short(text)!r}"
    return rows(vocab.words(top), {name: share[top] for name, share in shares.items()}, said, top=1.0)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
