"""Evaluation of models: loss, accuracy, perplexity, bits per byte, exact match, BLEU and alignment error rate."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.eval_mode import eval_mode as unchecked_eval_mode
from tfviz.extras import extra
from tfviz.hugging_face import shifts_labels
from tfviz.learn.batch import Batch, check_batch, map_tensors
from tfviz.learn.batch_checks import check_labelled, check_labels, note_inputs, unpack
from tfviz.learn.losses import HF_IGNORE_INDEX, Loss, default_loss
from tfviz.learn.state_tensors import unwrap
from tfviz.logits import extract_logits
from tfviz.validation import check_callable

__all__ = [
    "accuracy",
    "alignment_error_rate",
    "argmax_alignment",
    "bits_per_byte",
    "bleu",
    "eval_mode",
    "exact_match",
    "loss",
    "perplexity",
]

MAX_NATS = 709.0  # exp(709) is close to the largest float
Link = tuple[int, ...]  # (target position, source position), after the index of the pair if there are several texts


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[torch.device]:
    """Disable dropout and gradients inside the context; yield the model's device."""
    checks.require_weights(model)
    with unchecked_eval_mode(model) as device:
        yield device


def loss(model: nn.Module, batches: Iterable[Batch], loss: Loss = default_loss) -> float:
    """Return the mean loss over all predictions in `batches`, in eval mode; for language models, in nats per token.

    Args:
        model: the model to evaluate.
        batches: tuples of tensors, or mappings of the model's arguments, such as the batches of a `DataLoader`.
        loss: the loss, as in `fit`; by default `losses.next_token` for tuples, and `losses.model_loss` for mappings.

    Raises:
        ValueError: the batches contain nothing to predict.
        FloatingPointError: the loss is not finite.
    """
    check_callable("model", "batch", loss=loss)
    total, count = 0.0, 0.0
    with eval_mode(model) as device:
        for batch in batches:
            batch = _to_device(batch, device)
            with note_inputs(model, batch):
                batch_total, batch_count = loss(model, batch)
            number = batch_count.item() if isinstance(batch_count, Tensor) else batch_count
            total, count = total + batch_total.item(), count + number
    if not count:
        raise ValueError("there is no batch to evaluate, or all targets are padding")
    if not math.isfinite(total):
        raise FloatingPointError(f"the loss is {total}: the model's weights or the batches hold NaN or infinity")
    return total / count


def accuracy(model: nn.Module, batches: Iterable[Batch]) -> float:
    """Return the share of labels to which the model gives its largest logit.

    A batch is (model inputs ..., labels `[batch]`), or a mapping of the model's arguments with `labels`, one for each
    row or for each token. In a mapping, labels of -100 do not count, and the logits of a causal language model are
    compared with the label one position later.

    Raises:
        ValueError: there are no labels to count, or a mapping has no `labels`.
        FloatingPointError: a logit is not finite.
    """
    correct, count = 0, 0
    with eval_mode(model) as device:
        for batch in batches:
            logits, labels, is_counted = _logits_and_labels(model, _to_device(batch, device))
            if not logits.isfinite().all():
                raise FloatingPointError("the model's logits are not finite; check its weights and the batches")
            check_labels(labels.masked_fill(~is_counted, 0), logits.shape[:-1], logits.shape[-1])
            correct += int(((logits.argmax(-1) == labels) & is_counted).sum())
            count += int(is_counted.sum())
    if not count:
        raise ValueError("there is no batch to evaluate, or every label is -100")
    return correct / count


def _logits_and_labels(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Return the logits of a batch, their labels, and whether each label counts."""
    if isinstance(batch, Mapping):
        labels = check_labelled(batch)
        with note_inputs(model, batch):
            logits = extract_logits(model(**batch))
        if shifts_labels(unwrap(model)):
            logits, labels = logits[..., :-1, :], labels[..., 1:]
        labels = labels.to(logits.device)
        return logits, labels, labels != HF_IGNORE_INDEX
    *inputs, labels = unpack(batch, "model inputs", "labels", variadic=True)
    with note_inputs(model, batch):
        logits = extract_logits(model(*inputs))
    labels = labels.to(logits.device)
    return logits, labels, torch.ones_like(labels, dtype=torch.bool)


def perplexity(nats: float) -> float:
    """Return the perplexity exp(nats): the number of equally likely tokens that would be as hard to predict."""
    checks.between(0, MAX_NATS, nats=nats)
    return math.exp(nats)


def bits_per_byte(nats: float, tokens: int, bytes: int) -> float:
    """Return the loss in bits per byte of text, which can be compared between tokenizers.

    Args:
        nats: the mean loss, in nats per token.
        tokens: number of tokens in the text.
        bytes: number of bytes in the text.

    >>> bits_per_byte(math.log(2), tokens=10, bytes=20)
    0.5
    """
    checks.at_least(0, nats=nats, tokens=tokens)
    checks.at_least(1, bytes=bytes)
    return nats / math.log(2) * tokens / bytes


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Return the share of hypotheses that are equal to their references."""
    _check_pairs(hypotheses, references)
    return sum(hypothesis == reference for hypothesis, reference in zip(hypotheses, references)) / len(references)


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Return corpus BLEU, 0 to 100 (Papineni et al. 2002), by sacreBLEU (Post 2018), lower-cased and tokenized by 13a.

    >>> round(bleu(["The cat sat on the mat ."], ["the cat sat on the mat."]))
    100
    """
    with extra("lessons"):
        from sacrebleu.metrics import BLEU

    _check_pairs(hypotheses, references)
    return BLEU(lowercase=True, tokenize="13a").corpus_score(list(hypotheses), [list(references)]).score


def alignment_error_rate(found: Iterable[Link], sure: Iterable[Link], possible: Iterable[Link] = ()) -> float:
    """Return the alignment error rate, 0 to 1; `sure` links also count as possible (Och & Ney 2003, section 6.1).

    Raises:
        ValueError: there are no links, or links of two positions are mixed with links of three.

    >>> alignment_error_rate([(0, 0), (1, 2)], sure=[(0, 0), (1, 1)])
    0.5
    """
    found, sure, possible = (_link_set(*link) for link in (("found", found), ("sure", sure), ("possible", possible)))
    possible |= sure
    if not found and not sure:
        raise ValueError("there are no links to measure")
    if len({len(link) for link in found | possible}) > 1:
        raise ValueError(
            "some links have 2 numbers and some have 3; give the index of the pair in every link, or in none"
        )
    return 1 - (len(found & sure) + len(found & possible)) / (len(found) + len(sure))


def argmax_alignment(pattern: Tensor, gold: Iterable[Link]) -> set[Link]:
    """Return a link for each target word in `gold`, to the source word with the largest attention weight.

    Args:
        pattern: attention probabilities, `[target, source]`.
        gold: the gold links of this text, of which only the target positions are used.

    Raises:
        ValueError: `pattern` is not a real [target, source] matrix without NaN, or a gold link lies outside it.
    """
    checks.materialized(pattern=pattern)
    if pattern.is_complex() or pattern.dtype == torch.bool or pattern.isnan().any():
        raise ValueError(f"pattern is {pattern.dtype} or holds NaN; give attention weights, such as a captured pattern")
    if pattern.dim() != 2 or not pattern.shape[1]:
        raise ValueError(f"pattern is {list(pattern.shape)}; it must be [target source], of one text")
    rows = set()
    for link in _link_set("gold", gold):
        if len(link) != 2 or link[0] >= pattern.shape[0] or link[1] >= pattern.shape[1]:
            raise ValueError(f"gold holds {link}; give (target, source) within the pattern's {list(pattern.shape)}")
        rows.add(link[0])
    return {(row, int(pattern[row].argmax())) for row in rows}


def _to_device(batch: Batch, device: torch.device) -> Batch:
    return map_tensors(check_batch(batch, "a batch"), lambda part: part.to(device))


def _link_set(name: str, links: Iterable[Link]) -> set[Link]:
    """Return links as tuples of two or three ints, after checking them."""
    links = list(links)
    for link in links:
        integers = isinstance(link, list | tuple) and all(hasattr(index, "__index__") for index in link)
        if not integers or len(link) not in (2, 3) or min(link) < 0:
            raise ValueError(f"{name} holds {link!r}; a link is (target position, source position), from 0 on")
    return {tuple(int(index) for index in link) for link in links}


def _check_pairs(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise ValueError("hypotheses and references are lists of texts, not one string; give lists")
    if len(hypotheses) != len(references) or not references:
        raise ValueError(
            f"there are {len(hypotheses)} texts, {len(references)} references; give one reference for "
            f"each text, and at least one text"
        )
