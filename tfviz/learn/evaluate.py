"""How good a model is, in units that can be compared."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import torch
from torch import Tensor, nn

from tfviz import bounds
from tfviz.doors import takes, what
from tfviz.learn.checks import about, check_labels, makes_no_other, parts
from tfviz.learn.losses import Loss, logits_of, next_token

LARGEST = 709.0  # nats; e to a larger power is no float
Link = tuple[int, ...]  # place in the target, place in the source; of several pairs of texts, the pair's number first


@contextmanager
def judged(model: nn.Module) -> Iterator[torch.device]:
    """The model without dropout and gradients while the context lasts; gives its device."""
    bounds.filled(model)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    finally:
        model.train(was_training)


def loss(model: nn.Module, batches: Iterable[Sequence[Tensor]], loss: Loss = next_token) -> float:
    """Mean loss over all that is predicted in `batches`, in nats a token, without dropout."""
    makes_no_other(loss=loss)
    takes("model", "batch", loss=loss)
    total, count = 0.0, 0
    with judged(model) as device:
        for batch in batches:
            moved = tuple(_moved(batch, device))
            with about(model, moved):
                value, number = loss(model, moved)
            total, count = total + value.item(), count + number
    if not count:
        raise ValueError("no batch to measure on, or all its targets are padding")
    if not math.isfinite(total):
        raise FloatingPointError(f"the loss is {total}: the model's weights or the batches hold such numbers")
    return total / count


def accuracy(model: nn.Module, batches: Iterable[Sequence[Tensor]]) -> float:
    """Share of labels that are the likeliest; a batch is (what the model takes ..., labels), one for each logits."""
    right, count = 0, 0
    with judged(model) as device:
        for batch in batches:
            *inputs, labels = parts(_moved(batch, device), "what the model takes", "labels", more=True)
            with about(model, [*inputs, labels]):
                logits = logits_of(model(*inputs))
            if not logits.isfinite().all():
                raise FloatingPointError(
                    "the model's logits are not finite: its weights or the batches hold such numbers"
                )
            check_labels(labels, logits.shape[:-1], logits.shape[-1])
            right += int((logits.argmax(-1) == labels).sum())
            count += labels.numel()
    if not count:
        raise ValueError("no batch to measure on")
    return right / count


def _moved(batch: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    if not (isinstance(batch, tuple | list) and batch and all(isinstance(part, Tensor) for part in batch)):
        raise TypeError(f"a batch is {what(batch)}; give tuples of tensors, such as (inputs, targets), in a list")
    return [part.to(device) for part in batch]


def perplexity(nats: float) -> float:
    """How many equally likely tokens would be as hard to guess between."""
    bounds.between(0, LARGEST, nats=nats)
    return math.exp(nats)


def bits_per_byte(nats: float, tokens: int, bytes: int) -> float:
    """Bits to code one byte of the text: comparable between characters, bytes and sub-words.

    >>> bits_per_byte(math.log(2), tokens=10, bytes=20)
    0.5
    """
    bounds.at_least(0, nats=nats, tokens=tokens)
    bounds.at_least(1, bytes=bytes)
    return nats / math.log(2) * tokens / bytes


def exact(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Share of texts that are the reference, to the letter."""
    _as_many(hypotheses, references)
    return sum(one == other for one, other in zip(hypotheses, references)) / len(references)


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """BLEU from 0 to 100 (Papineni et al. 2002) as sacreBLEU counts it: lower-cased, tokenised by 13a (Post 2018).

    >>> round(bleu(["The cat sat on the mat ."], ["the cat sat on the mat."]))
    100
    """
    from sacrebleu.metrics import BLEU

    _as_many(hypotheses, references)
    return BLEU(lowercase=True, tokenize="13a").corpus_score(list(hypotheses), [list(references)]).score


def bleu_by_length(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str], edges: Sequence[int]
) -> dict[str, tuple[float, int]]:
    """BLEU of the sentences whose sources have fewer words than each edge, and how many they are.

    >>> bleu_by_length(["a b c d", "a"], ["w x y z", "q"], ["w x y z", "q r"], edges=[3])
    {'1-2': (0.0, 1), '3+': (100.0, 1)}
    """
    _as_many(hypotheses, references)
    _as_many(sources, references)
    found, limits = {}, [1, *edges, 10**9]
    if any(low >= high for low, high in pairwise(limits)):
        raise ValueError(f"edges are {list(edges)}; they must rise, from 2 on")
    for low, high in pairwise(limits):
        rows = [row for row, source in enumerate(sources) if low <= max(1, len(source.split())) < high]
        if rows:
            score = bleu([hypotheses[row] for row in rows], [references[row] for row in rows])
            found[f"{low}-{high - 1}" if high < 10**9 else f"{low}+"] = (round(score, 1), len(rows))
    return found


def alignment_error_rate(found: Iterable[Link], sure: Iterable[Link], possible: Iterable[Link] = ()) -> float:
    """1 - (|A and S| + |A and P|) / (|A| + |S|), from 0 to 1 (Och & Ney 2003, section 6.1); what is sure is possible.

    >>> alignment_error_rate([(0, 0), (1, 2)], sure=[(0, 0), (1, 1)])
    0.5
    """
    found, sure = _links("found", found), _links("sure", sure)
    possible = sure | _links("possible", possible)
    if not found and not sure:
        raise ValueError("there is no link to measure on")
    if len({len(link) for link in found | possible}) > 1:
        raise ValueError(
            "some links are of 2 numbers and some of 3; give all with the number of their pair of texts, or none"
        )
    return 1 - (len(found & sure) + len(found & possible)) / (len(found) + len(sure))


def links(pattern: Tensor, gold: Iterable[Link]) -> set[Link]:
    """For each target word that gold aligns, the source word a pattern [target source] gives most weight."""
    bounds.readable(pattern=pattern)
    if pattern.is_complex() or pattern.dtype == torch.bool:
        raise ValueError(f"pattern is {pattern.dtype}; give weights, such as one of a capture")
    if odd := [link for link in _links("gold", gold) if len(link) != 2]:
        raise ValueError(f"gold holds {odd[0]}; links of one text are (place in the target, place in the source)")
    rows = {link[0] for link in _links("gold", gold)}
    if pattern.dim() != 2 or not pattern.shape[1]:
        raise ValueError(f"pattern is {list(pattern.shape)}; it must be [target source], of one text")
    if rows and max(rows) >= len(pattern):
        raise ValueError(f"gold speaks of word {max(rows)}; the pattern has {len(pattern)} target words, from 0 on")
    places = [link[1] for link in _links("gold", gold)]
    if places and max(places) >= pattern.shape[1]:
        raise ValueError(f"gold speaks of source word {max(places)}; the pattern has {pattern.shape[1]}, from 0 on")
    if pattern.isnan().any():
        raise ValueError("pattern holds nan; no source word has most of its weight")
    return {(row, int(pattern[row].argmax())) for row in rows}


def _links(name: str, given: Iterable[Link]) -> set[Link]:
    """Pairs of places, or triples."""
    links = set()
    for link in given:
        whole = isinstance(link, list | tuple) and len(link) in (2, 3) and all(hasattr(x, "__index__") for x in link)
        if not whole or min(link) < 0:
            raise ValueError(f"{name} holds {link!r}; a link is (place in the target, place in the source), from 0 on")
        links.add(tuple(int(place) for place in link))
    return links


def _as_many(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise ValueError("one string where many texts are meant; give a list")
    if len(hypotheses) != len(references) or not references:
        raise ValueError(
            f"there are {len(hypotheses)} texts and {len(references)} references; give as many, at least 1"
        )
