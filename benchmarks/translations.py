"""Tasks of `systems.py` that turn one text into another: dates, numbers, captions."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from rows import Row, Rows, Task, Trial
from torch import Tensor, nn

from tfviz import generate, layers, learn, look, models, text
from tfviz.text.subwords import BOS, EOS
from tfviz.text.tasks import Example

SMALL = {"dim": 64, "dropout": 0.1}
MODELS = {  # system -> how it is made for the made tasks
    "RNN encoder-decoder": partial(models.Seq2Seq, hidden=128, cell=layers.RNN, **SMALL),
    "LSTM encoder-decoder": partial(models.Seq2Seq, hidden=128, **SMALL),
    "Bahdanau attention, additive": partial(models.Seq2Seq, hidden=128, attention=layers.AdditiveAttention, **SMALL),
    "Bahdanau attention, dot": partial(models.Seq2Seq, hidden=128, attention=layers.DotAttention, **SMALL),
    "encoder-decoder Transformer": partial(models.Transformer, layers=2, heads=4, **SMALL),
}
LANGUAGES = ("en", "de", "fr", "zh")
EDGES = (8, 12, 16, 20)


def adam(model: nn.Module, rate: float) -> torch.optim.Optimizer:
    """Adam as Vaswani et al. 2017 have it, section 5.3."""
    return torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98), eps=1e-9, fused=True)


def as_before(model: nn.Module, rate: float) -> dict[str, Any]:
    """By that Adam and a cosine, as recurrent models are trained here."""
    return {"optimizer": adam(model, rate), "schedule": learn.schedule.cosine(400)}


def columns(
    tokenizer: text.SubwordTokenizer, sources: Sequence[str], targets: Sequence[str], after: int | None = EOS
) -> tuple[list[Tensor], list[Tensor]]:
    add = text.add_special_tokens
    return add(tokenizer.encode_batch(sources), eos=after), add(tokenizer.encode_batch(targets), bos=BOS)


def sentences(examples: Sequence[Example]) -> tuple[list[str], list[str]]:
    return [" ".join(one.source) for one in examples], [" ".join(one.target) for one in examples]


def made(task: str, count: int, seed: int) -> list[Example]:
    """Dates of four languages and numbers of three, as many of each."""
    if task == "dates":
        return [one for source in LANGUAGES for one in text.tasks.dates(count, source, "iso", seed=seed)]
    return [one for language in LANGUAGES[:3] for one in text.tasks.numbers(count, language, seed=seed)]


def made_task(task: str, trial: Trial) -> Rows:
    """Exact answers and alignment errors on examples that were not trained on.

    Sources have no end token: a recurrent encoder carries what it has read there, and is then looked at there.
    """
    examples = made(task, 50 if trial.quick else 10_000, seed=1)
    seen = {one.source for one in examples}
    held = [one for one in made(task, 5 if trial.quick else 300, seed=2) if one.source not in seen]
    sources, targets = sentences(examples)
    tokenizer = text.train_whole_words(sources + targets)
    batches = text.Buckets(*columns(tokenizer, sources, targets, None), max_tokens=1500, seed=trial.seed)
    for system, make in MODELS.items():
        model = trial.built(make, len(tokenizer))
        how = {"lr": 2e-3, "optimizer": adam(model, 2e-3), "loss": learn.losses.translation(0.1)}
        learned = trial.learned(f"{task}-{system}", model, batches, 2000, **how)
        found = generate.translate(model, sentences(held)[0], tokenizer, num_beams=1, max_new_tokens=30, eos=None)
        right = learn.evaluate.exact_match(found, sentences(held)[1])
        aim = ">= 99%" if task == "dates" and "Transformer" in system else ""
        yield Row(system, task, "exact", f"{right:.1%}", aim, **learned.facts, note=f"{len(held)} unseen")
        if "Bahdanau" in system or "Transformer" in system:
            rates = alignment_errors(model, tokenizer, held)
            best = min(rates, key=lambda site: rates[site])
            aim = "<= 5%" if task == "dates" and "Bahdanau" in system else ""
            note = best if len(rates) > 1 else ""
            yield Row(system, task, "alignment error rate", f"{rates[best]:.1%}", aim, **learned.facts, note=note)


def alignment_errors(
    model: nn.Module, tokenizer: text.SubwordTokenizer, examples: Sequence[Example]
) -> dict[str, float]:
    """For each site of attention between the texts, the error of its strongest links, heads averaged.

    A gold link is sure where its target word has no other, else possible.
    """
    model.eval()
    glob = "attention.pattern" if isinstance(model, models.Seq2Seq) else "*.cross.pattern"
    found: dict[str, list[tuple[int, int, int]]] = {}
    gold = [(number, *link) for number, example in enumerate(examples) for link in example.gold]
    links = Counter((number, target) for number, target, _ in gold)
    sure = [link for link in gold if links[link[:2]] == 1]
    rows = zip(*columns(tokenizer, *sentences(examples), None))
    for number, (example, (source, target)) in enumerate(zip(examples, rows)):
        with torch.no_grad(), look.capture(model, glob) as seen:
            model(source[None], target[None, :-1])
        for site in seen:
            pattern = torch.cat(seen.over_time(site), dim=2)[0].mean(0)
            best = learn.evaluate.argmax_alignment(pattern, example.gold)
            found.setdefault(site, []).extend((number, *link) for link in best)
    return {site: learn.evaluate.alignment_error_rate(best, sure, gold) for site, best in found.items()}


CAPTIONS = {  # system -> its model, its top learning rate and how it is trained beside what `fit` does by itself
    "LSTM encoder-decoder": (partial(models.Seq2Seq, dim=128, hidden=256, dropout=0.3), 2e-3, as_before),
    "Bahdanau attention, additive": (
        partial(models.Seq2Seq, dim=128, hidden=256, dropout=0.3, attention=layers.AdditiveAttention),
        2e-3,
        as_before,
    ),
    "encoder-decoder Transformer": (
        partial(models.Transformer, layers=4, heads=4, dim=128, inner=256, dropout=0.3),
        5e-3,
        lambda model, rate: {"schedule": learn.schedule.linear(400)},
    ),
}


def captions(source: str, target: str, systems: dict[str, int], trial: Trial) -> Rows:
    """Multi30k: BLEU on test_2016_flickr, lower-cased, 13a, by a beam of 5; and by length of the source.

    `systems` maps each to its steps of training.
    """
    pairs = {split: text.datasets.pairs(source, target, split) for split in ("train", "test_2016_flickr")}
    train, (asked, answers) = pairs["train"], pairs["test_2016_flickr"]
    if trial.quick:
        train, asked, answers = (train[0][:300], train[1][:300]), asked[:20], answers[:20]
    tokenizer = text.train_bpe(train[0] + train[1], 600 if trial.quick else 6000, lower=True)
    batches = text.Buckets(*columns(tokenizer, *train), max_tokens=2048, seed=trial.seed)
    for system, steps in systems.items():
        make, rate, how = CAPTIONS[system]
        model = trial.built(make, len(tokenizer))
        given = how(model, rate) | {"lr": rate, "loss": learn.losses.translation(0.1)}
        task = f"Multi30k {source}-{target}"
        learned = trial.learned(f"{task}-{system}", model, batches, steps, **given)
        found = generate.translate(
            model, asked, tokenizer, max_new_tokens=8 if trial.quick else 60, progress=not trial.quick
        )
        aim = ">= 41" if (source, target) == ("en", "de") and "Transformer" in system else ""
        yield Row(system, task, "sacreBLEU", f"{learn.evaluate.bleu(found, answers):.1f}", aim, **learned.facts)
        by_length = bleu_by_length(asked, found, answers)
        shown = "; ".join(f"{words} words: {score} ({many})" for words, (score, many) in by_length.items())
        yield Row(system, task, "BLEU by length", shown, **learned.facts)


def bleu_by_length(sources: list[str], hypotheses: list[str], references: list[str]) -> dict[str, tuple[float, int]]:
    """BLEU of the sentences whose sources have fewer words than each of `EDGES`, and how many they are."""
    scores = {}
    for low, high in pairwise([1, *EDGES, 10**9]):
        rows = [row for row, source in enumerate(sources) if low <= max(1, len(source.split())) < high]
        if rows:
            score = learn.evaluate.bleu([hypotheses[row] for row in rows], [references[row] for row in rows])
            scores[f"{low}-{high - 1}" if high < 10**9 else f"{low}+"] = (round(score, 1), len(rows))
    return scores


RECURRENT, TRANSFORMER = list(CAPTIONS)[:-1], list(CAPTIONS)[-1]
TASKS: dict[str, Task] = {
    "dates": partial(made_task, "dates"),
    "numbers": partial(made_task, "numbers"),
    "en-de": partial(captions, "en", "de", {TRANSFORMER: 10_800}),
    "en-de-recurrent": partial(captions, "en", "de", dict.fromkeys(RECURRENT, 3000)),
    "de-en": partial(captions, "de", "en", {TRANSFORMER: 3000}),
    "en-fr": partial(captions, "en", "fr", {TRANSFORMER: 4000}),
}
