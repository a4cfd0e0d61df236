"""A translator to question: the model itself travels and searches in a page with no kernel, or a kernel answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from tfviz import bounds
from tfviz.doors import what
from tfviz.portable.encoder_decoder import encode_and_decode, export_encoder_decoder
from tfviz.portable.program import Program
from tfviz.text import subwords
from tfviz.view.page import passage
from tfviz.view.page.alive import BUDGET
from tfviz.view.page.here import Here, positions
from tfviz.view.page.html import View
from tfviz.view.page.studio import answered, studio
from tfviz.view.still.barred import rows
from tfviz.view.still.picture import Picture, cut
from tfviz.view.still.translated import translated

if TYPE_CHECKING:
    from tfviz.view.page.questioned import Asked, Draws, Question, Questioned, Words

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
    kernel: bool = False,
) -> View | Questioned:
    """An encoder-decoder to question: type a sentence, watch the search, force another word, switch heads off.

    The model travels in the page and computes there. The text found is the one that `generate.translate` finds with the
    same width, alpha and length, as far as the weights are kept exactly.

    Args:
        model: has `encode` and `decode`, as `models.Transformer`.
        vocabs: of `tfviz.text`: one for both languages, or two, of the source and of the target. The target's
            begins texts with `[BOS]` and ends them with `[EOS]`. Fast tokenizers of transformers as in `write`.
        width, alpha: where the knobs stand at first: texts kept at a time, 1 to 8, and the exponent of the length
            penalty, 0 to 2; see `generate.beam.steps`.
        length: the most tokens of a translation, its end token included.
        after: the token at the end of each source, as in training; None for no such token.
        weights: how they travel: "float32", "float16", or "int8".
        budget: bytes that the model may take in the page.
        kernel: leave the model in Python, which answers while the notebook's kernel lives: for those too large to
            travel. What it leaves in a page is the cross-attention of the last text.

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
    _translator(model)
    begin, end = (_special(target, token, "the target's vocabulary") for token in ("[BOS]", "[EOS]"))
    last = [] if after is None else [_special(source, after, "the source's vocabulary")]
    ids = torch.tensor([*source.encode(sentence).tolist(), *last])
    programs: dict[str, Any] = _here(model, source, target) if kernel else dict(export_encoder_decoder(model, weights))
    _check(programs, source, target)
    longest, written = (_longest(programs[name], axis) for name, axis in (("encode", "source"), ("decode", "target")))
    if not 0 < len(ids) <= (longest or len(ids)):
        raise ValueError(f"the sentence has {len(ids)} tokens; the model takes 1 to {longest}: give another")
    most = min(length, written or length)
    never = sorted({PAD, begin} - {end})
    own = [source] if source is target else [source, target]
    more: dict[str, Any] = {"vocabularies": [passage.plain(one, kernel) for one in own], "most": most}
    more |= {"begin": begin, "end": end, "never": never, "after": last, "longest": longest, "widest": WIDEST}
    more |= {"axes": ["written", "read"], "strongest": STRONGEST}
    state: dict[str, Any] = {"sentence": sentence, "width": width, "alpha": alpha, "prefix": [], "steps": most}
    state |= {"node": None, "tried": []}
    if not kernel:
        found = _greedy(programs, ids, begin, end, never, min(most, STILL), len(target))
        words = target.words(torch.tensor([token for token, _ in found]))
        shares, about = [share for _, share in found], f"{title}: {cut(sentence, 40)!r}"
        read = _read(programs, ids, [begin, *(token for token, _ in found[:-1])])
        picture = translated(words, shares, source.words(ids), read, about)
        return studio("translate", title, picture, programs, state, more, budget)
    memory = programs["encode"](ids[None])
    first = {"encode": [ids[None]], "decode": [torch.tensor([[begin]]), memory["states"], memory["words"]]}
    draws, words = _last(target, never, title), _cross(source, target)
    return answered("translate", title, programs, first, state, more, draws, words, own)


def _last(target: Any, never: Sequence[int], title: str) -> Draws:
    """The likeliest word at each place of the text that was asked about."""

    def draws(question: Question, outputs: Mapping[str, Tensor]) -> Picture:
        shares = (
            outputs["logits"][0, :, : len(target)]
            .float()
            .softmax(-1)
            .index_fill(-1, torch.tensor(never, dtype=torch.long), 0)
        )
        words = target.words(shares.argmax(-1))
        about = f"{title}: {cut(target.decode(question[1][0][0]), 40)!r}"
        return rows(words, {"probability of the likeliest word": shares.amax(-1)}, about, top=1.0)

    return draws


def _cross(source: Any, target: Any) -> Words:
    """The words of the cross-attention: what is written, and what comes next; what is read."""

    def words(asked: Asked) -> dict[str, tuple[list[str], list[str]]]:
        return {"cross": ([*target.words(asked["decode"][0][0][1:]), "…"], source.words(asked["encode"][0][0]))}

    return words


def _here(model: nn.Module, source: Any, target: Any) -> dict[str, Here]:
    """Both programs, where the model is."""
    encode, decode, _ = encode_and_decode(model)
    inputs: dict[str, str | int] = {"target": len(target), "states": "float32", "words": "bool"}
    return {"encode": Here(model, encode, {"source": len(source)}), "decode": Here(model, decode, inputs)}


def _longest(program: Program | Here, axis: str) -> int | None:
    """The most tokens of a text."""
    return positions(program.model) if isinstance(program, Here) else program.spec["lengths"][axis][1]


def _pair(vocabs: Any) -> tuple[Any, Any]:
    """The vocabulary of the source and that of the target."""
    given = [subwords.as_vocabulary(one) for one in (vocabs if isinstance(vocabs, list | tuple) else [vocabs])]
    if len(given) not in (1, 2):
        raise ValueError(f"there are {len(given)} vocabularies; give one for both languages, or two")
    for one in given:
        if not (hasattr(one, "to_spec") and hasattr(one, "__getitem__")):
            raise TypeError(f"vocabs has {what(one)}; give vocabularies such as text.whole_words or text.bpe make")
    return given[0], given[-1]


def _translator(model: nn.Module) -> None:
    """Refuse what is no encoder-decoder as this studio takes it.

    Raises:
        ValueError: it has no `encode` and `decode`, or is quantized.
    """
    if not all(callable(getattr(model, name, None)) for name in ("encode", "decode")):
        raise ValueError(
            f"{type(model).__name__} has no encode and decode: give a model whose encode(source ids) gives a named "
            "tuple of states and words, and whose decode(target ids, memory) gives logits, as models.Transformer; look "
            "at maps of an encoder-decoder of transformers with view.sources or view.live"
        )
    passage.exact(model)


def _special(vocab: Any, token: str, name: str) -> int:
    """The id of a token that a translation cannot do without.

    Raises:
        ValueError: there is no such token.
    """
    try:
        return vocab[token]
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{name} has no token {token}: texts begin with [BOS] and end with [EOS], as in those that "
            "text.whole_words and text.bpe make; of a tokenizer of others, say which tokens do so with "
            'text.Subwords(tokenizer, {"begin": "<s>", "end": "</s>"})'
        ) from error


def _check(programs: Mapping[str, Any], source: Any, target: Any) -> None:
    """Whether the vocabularies can be the model's own."""
    try:
        memory = programs["encode"](torch.tensor([[len(source) - 1]]))
    except (ValueError, IndexError) as error:
        raise ValueError(
            f"the model reads fewer than the {len(source):,} tokens of the source's vocabulary: give the model's own"
        ) from error
    logits = programs["decode"](torch.ones(1, 1, dtype=torch.long), memory["states"], memory["words"])["logits"]
    passage.own(logits.shape[-1], target, "the target's vocabulary")
    if not logits[..., : len(target)].isfinite().all():
        raise ValueError("the model's logits are not finite: it has nothing to translate with")


def _greedy(
    programs: dict[str, Program], ids: Tensor, begin: int, end: int, never: Sequence[int], most: int, size: int
) -> list[tuple[int, float]]:
    """The likeliest of `size` tokens at each step, and its probability, for the still picture."""
    memory = programs["encode"](ids[None])
    text, shares = [begin], list[float]()
    while len(shares) < most and (not shares or text[-1] != end):
        logits = programs["decode"](torch.tensor([text]), memory["states"], memory["words"])["logits"][0, -1, :size]
        share = logits.float().softmax(-1).index_fill(-1, torch.tensor(never, dtype=torch.long), 0)
        text.append(int(share.argmax()))
        shares.append(float(share.max()))
    return list(zip(text[1:], shares))


def _read(programs: dict[str, Program], ids: Tensor, text: Sequence[int]) -> Tensor:
    """Where the decoder looks in the source, the mean of all its heads: [written, read]."""
    seen: list[Tensor] = []

    def keep(pattern: Tensor) -> Tensor:
        if pattern.shape[-1] == len(ids):
            seen.append(pattern[0].mean(0))
        return pattern

    memory, decode = programs["encode"](ids[None]), programs["decode"]
    sites = [site for site in decode.sites if "cross" in site] or decode.sites
    decode(torch.tensor([list(text)]), memory["states"], memory["words"], edit=dict.fromkeys(sites, keep))
    return torch.stack(seen).mean(0)
