"""A translator to question, in a page with no kernel: the model itself travels and searches there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tfviz import bounds
from tfviz.doors import what
from tfviz.portable.program import Program
from tfviz.portable.translation import translation
from tfviz.text import subwords
from tfviz.view.page.alive import BUDGET
from tfviz.view.page.html import View
from tfviz.view.page.studio import studio
from tfviz.view.still.picture import Picture, cut
from tfviz.view.still.plots import rows

WIDEST = 8  # texts kept at a time
STRONGEST = 2.0  # length penalty
STILL = 24  # words of the still picture
PAD = 0


def translate(
    model: nn.Module,
    vocabs: Any,
    sentence: str,
    title: str = "Translate",
    *,
    width: int = 4,
    alpha: float = 0.6,
    length: int = 100,
    after: str | None = "[EOS]",
    weights: str = "float16",
    budget: float = BUDGET,
) -> View:
    """An encoder-decoder to question: type a sentence, watch the search, force another word, switch heads off.

    The model travels in the page and computes there. The text found is the one that `generate.translate` finds with the
    same width, alpha and length, as far as the weights are kept exactly.

    Args:
        model: has `encode` and `decode`, as `models.Transformer`.
        vocabs: of `tfviz.text`: one for both languages, or two, of the source and of the target. The target's
            begins texts with `[BOS]` and ends them with `[EOS]`.
        width, alpha: where the knobs stand at first: texts kept at a time, 1 to 8, and the exponent of the length
            penalty, 0 to 2; see `generate.beam.steps`.
        length: the most tokens of a translation, its end token included.
        after: the token at the end of each source, as in training; None for no such token.
        weights: how they travel: "float32", "float16", or "int8".
        budget: bytes that the model may take in the page.

    Raises:
        TypeError: a vocabulary that cannot travel, or has no tokens for beginning and end.
        ValueError: the model cannot travel (it says why), or is past the budget; a knob out of range; the sentence
            is too long, or empty with nothing after it; not one or two vocabularies, or not the model's; its
            logits are not finite.
    """
    bounds.between(1, WIDEST, width=width)
    bounds.between(0, STRONGEST, alpha=alpha)
    bounds.at_least(1, length=length)
    source, target = _pair(vocabs)
    begin, end = target["[BOS]"], target["[EOS]"]
    last = [] if after is None else [source[after]]
    ids = torch.tensor([*source.encode(sentence).tolist(), *last])
    programs = translation(model, weights)
    _check(programs, source, target)
    longest = programs["encode"].described["lengths"]["source"][1]
    if not 0 < len(ids) <= (longest or len(ids)):
        raise ValueError(f"the sentence has {len(ids)} tokens; the model takes 1 to {longest}: give another")
    most = min(length, programs["decode"].described["lengths"]["target"][1] or length)
    never = sorted({PAD, begin} - {end})
    more = {
        "vocabularies": [one.described() for one in ([source] if source is target else [source, target])],
        "most": most,
    }
    more |= {"begin": begin, "end": end, "never": never, "after": last, "longest": longest, "widest": WIDEST}
    more |= {"axes": ["written", "read"], "strongest": STRONGEST}
    state: dict[str, Any] = {
        "sentence": sentence,
        "width": width,
        "alpha": alpha,
        "prefix": [],
        "steps": most,
        "node": None,
    }
    state |= {"tried": []}
    picture = _still(_greedy(programs, ids, begin, end, never, min(most, STILL)), target, title, sentence)
    return studio("translate", title, picture, programs, state, more, budget)


def _pair(vocabs: Any) -> tuple[Any, Any]:
    """The vocabulary of the source and that of the target."""
    given = [subwords.own(one) for one in (vocabs if isinstance(vocabs, list | tuple) else [vocabs])]
    if len(given) not in (1, 2):
        raise ValueError(f"there are {len(given)} vocabularies; give one for both languages, or two")
    for one in given:
        if not (hasattr(one, "described") and hasattr(one, "__getitem__")):
            raise TypeError(f"vocabs has {what(one)}; give vocabularies such as text.whole_words or text.bpe make")
    return given[0], given[-1]


def _check(programs: dict[str, Program], source: Any, target: Any) -> None:
    """Whether the vocabularies can be the model's own."""
    try:
        memory = programs["encode"](torch.tensor([[len(source) - 1]]))
    except (IndexError, RuntimeError) as error:
        raise ValueError(f"the model reads fewer than the {len(source)} tokens of the source's vocabulary") from error
    logits = programs["decode"](torch.ones(1, 1, dtype=torch.long), memory["states"], memory["words"])["logits"]
    if logits.shape[-1] != len(target):
        raise ValueError(
            f"the model chooses among {logits.shape[-1]} tokens, the target's vocabulary has {len(target)}: give the "
            "model's own"
        )
    if not logits.isfinite().all():
        raise ValueError("the model's logits are not finite: it has nothing to translate with")


def _greedy(
    programs: dict[str, Program], ids: Tensor, begin: int, end: int, never: Sequence[int], most: int
) -> list[tuple[int, float]]:
    """The likeliest token at each step, and its probability, for the still picture."""
    memory = programs["encode"](ids[None])
    text, shares = [begin], list[float]()
    while len(shares) < most and (not shares or text[-1] != end):
        logits = programs["decode"](torch.tensor([text]), memory["states"], memory["words"])["logits"][0, -1]
        share = logits.float().softmax(-1).index_fill(-1, torch.tensor(never, dtype=torch.long), 0)
        text.append(int(share.argmax()))
        shares.append(float(share.max()))
    return list(zip(text[1:], shares))


def _still(written: Sequence[tuple[int, float]], vocab: Any, title: str, sentence: str) -> Picture:
    words = vocab.words(torch.tensor([token for token, _ in written]))
    about = f"{title}: {cut(sentence, 40)!r}"
    return rows(words, {"probability of the likeliest word": [share for _, share in written]}, about, top=1.0)
