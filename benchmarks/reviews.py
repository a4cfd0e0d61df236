"""Tasks of `systems.py` that give labels and ratings: films, reviews, nodes of a graph."""

from copy import deepcopy
from functools import partial

import stretches
import torch
from rows import Learned, Row, Rows, Task, Trial
from torch import Tensor

from tfviz import layers, learn, models, text
from tfviz.text.subwords import CLS

RATINGS = 1024  # in a batch
LABELS = 1000  # to fine-tune on
HELD = 4000  # reviews to train on, of the last films, to choose the rate of fine-tuning
RATES = (3e-4, 1e-3, 3e-3)
DECAYS = (1.0, 2.0, 4.0)  # of a recommender's factors, to choose from
EPOCHS = 3  # of the classifier of IMDb; chosen, as its dropout, on 2,500 reviews held out of those to train on


class Rated:
    """Batches of ratings; every rating comes once in an epoch."""

    def __init__(self, ratings: text.datasets.Ratings, seed: int):
        self.columns = ratings.users, ratings.movies, ratings.values
        self.seed, self.steps = seed, len(ratings.values) // RATINGS

    def __getitem__(self, step: int) -> tuple[Tensor, ...]:
        epoch, index = divmod(step, self.steps)
        draw = torch.Generator().manual_seed(text.batches.step_seed(self.seed, epoch))
        rows = torch.randperm(len(self.columns[0]), generator=draw)[index * RATINGS :][:RATINGS]
        return tuple(column[rows] for column in self.columns)


def rated(trial: Trial, name: str, train: text.datasets.Ratings, decay: float, sizes: tuple[int, int]) -> Learned:
    """Trained on ratings; `decay` pulls the factors to zero, a fifth of it the biases."""
    users, movies = sizes
    model = trial.built(models.Recommender, users, movies, dim=64, mean=float(train.values.mean()))
    biases = [model.user_biases.weight, model.movie_biases.weight]
    factors = [model.user_factors.weight, model.movie_factors.weight]
    groups = [{"params": factors, "weight_decay": decay}, {"params": biases, "weight_decay": decay / 5}]
    how = {
        "lr": 1e-2,
        "optimizer": torch.optim.AdamW(groups, lr=1e-2),
        "loss": learn.losses.squared_error,
        "max_grad_norm": 1e9,
    }
    return trial.learned(name, model, Rated(train, trial.seed), 1000, **how)


def rmse(model: models.Recommender, ratings: text.datasets.Ratings) -> float:
    batch = ratings.users, ratings.movies, ratings.values
    return learn.evaluate.loss(model, [batch], learn.losses.squared_error) ** 0.5


def recommender(trial: Trial) -> Rows:
    """MovieLens small, a seeded split into 90% to train on and 10% to measure on.

    The weight decay is the best of three on a tenth of the ratings to train on.
    """
    train, test = text.datasets.ratings().split(0.9, seed=1)
    sizes = tuple(int(torch.cat(ids).max()) + 1 for ids in ((train.users, test.users), (train.movies, test.movies)))
    part, held = train.split(0.9, seed=2)
    tried = {decay: rmse(rated(trial, f"recommender-held-{decay}", part, decay, sizes).model, held) for decay in DECAYS}
    best = min(tried, key=lambda decay: tried[decay])
    learned = rated(trial, "recommender", train, best, sizes)
    note = "weight decay chosen on held-out training ratings"
    error = f"{rmse(learned.model, test):.4f}"
    yield Row("recommender", "MovieLens small", "test RMSE, stars", error, "<= 0.88", **learned.facts, note=note)


def made_reviews(trial: Trial) -> Rows:
    """Graded reviews with negation: a bag of their words is wrong on a third of them."""
    train, test = (
        text.tasks.synthetic_reviews(50 if trial.quick else many, seed=seed) for many, seed in ((8000, 1), (2000, 2))
    )
    joined = [[" ".join(one.words) for one in part] for part in (train, test)]
    labels = [torch.tensor([one.label for one in part]) for part in (train, test)]
    tokenizer = text.train_whole_words(joined[0])
    train_batches, test_batches = (
        text.Buckets(tokenizer.encode_batch(rows), given, max_tokens=1500, seed=trial.seed)
        for rows, given in zip(joined, labels)
    )
    for pooling in (models.classifier.mean, models.classifier.maximum):
        model = trial.built(models.Classifier, len(tokenizer), dim=64, pooling=pooling)
        how = {"lr": 2e-3, "loss": learn.losses.classification}
        learned = trial.learned(f"made-reviews-{pooling.__name__}", model, train_batches, 1500, **how)
        right = learn.evaluate.accuracy(model, test_batches.in_order())
        yield Row(f"classifier, {pooling.__name__}", "graded reviews", "accuracy", f"{right:.1%}", **learned.facts)


def cut(rows: list[Tensor], length: int) -> list[Tensor]:
    """Of long texts a quarter from the beginning and the rest from the end, where reviews say what they mean."""
    head = length // 4
    return [row if len(row) <= length else torch.cat((row[:head], row[head - length :])) for row in rows]


def imdb(trial: Trial) -> Rows:
    """All 25,000 reviews to train on, all 25,000 to measure on."""
    train, test = (text.datasets.reviews(split) for split in ("train", "test"))
    few = slice(0, 60) if trial.quick else slice(None)
    tokenizer = text.train_whole_words(train.texts[few], 30_000, lower=True)
    rows = [cut(tokenizer.encode_batch(part.texts[few]), 800) for part in (train, test)]
    batches = text.Buckets(rows[0], train.labels[few], max_tokens=12_000, seed=trial.seed)
    parts = {"context": 800, "layers": 1, "dim": 64, "dropout": 0.4, "positions": layers.positions.PositionEncoding}
    model = trial.built(models.Classifier, len(tokenizer), embedding=layers.BigramEmbedding, **parts)
    how = {"lr": 2e-3, "loss": learn.losses.adversarial(), "schedule": learn.schedule.cosine(100)}
    unsure = text.TokenDropout(batches, 0.3, seed=trial.seed)
    learned = trial.learned("imdb", model, unsure, EPOCHS * len(batches), **how)
    right = learn.evaluate.accuracy(model, text.Buckets(rows[1], test.labels[few], max_tokens=20_000).in_order())
    yield Row("classifier", "IMDb", "accuracy on the test reviews", f"{right:.2%}", ">= 91%", **learned.facts)


def bert(trial: Trial) -> Rows:
    """Guess words of the reviews and tell which stretches belong together, then learn from 1,000 labels.

    Beside it the same model from fresh weights, on the labels alone. Each has the rate that is the best of `RATES` on
    reviews to train on that are not among the 1,000.
    """
    train, test = (text.datasets.reviews(split) for split in ("train", "test"))
    few = slice(0, 60) if trial.quick else slice(None)
    tokenizer = text.train_wordpiece(train.texts[few], 400 if trial.quick else 8000)
    ids = [tokenizer.encode_batch(part.texts[few]) for part in (train, test)]
    rows = [text.add_special_tokens(cut(part, 191), CLS, None) for part in ids]
    parts = {"positions": layers.positions.Rotary, "residual": layers.pre_norm}
    make = partial(stretches.Averaged, len(tokenizer), context=192, **parts)
    hidden = text.MaskedTokens(stretches.Stretches(ids[0], trial.seed), len(tokenizer), seed=trial.seed)
    how = {"lr": 3e-3, "loss": stretches.words_and_stretches}
    first = trial.learned("bert", trial.built(make), hidden, 4000, **how)
    labels, last = train.labels[few], len(rows[0])
    given = text.Buckets(rows[0][:LABELS], labels[:LABELS], max_tokens=6000, seed=trial.seed)
    chosen = text.Buckets(rows[0][last - HELD :], labels[last - HELD :], max_tokens=12_000)
    asked = text.Buckets(rows[1], test.labels[few], max_tokens=12_000)
    for name, body in (("labels alone", trial.built(make)), ("after pre-training", first.model)):
        best, right = None, -1.0
        for rate in RATES[:1] if trial.quick else RATES:
            model = models.BERTClassifier(deepcopy(body))
            tried = trial.learned(f"bert-{name}-{rate}", model, given, 8 * len(given), lr=rate,
                            loss=learn.losses.classification)  # fmt: skip
            held = learn.evaluate.accuracy(model, chosen.in_order())
            if held > right:
                best, right = tried, held
        right = learn.evaluate.accuracy(best.model, asked.in_order())
        before = first.facts["seconds"] if body is first.model else 0.0
        facts = best.facts | {"seconds": before + best.facts["seconds"]}
        aim = ">= 2 points above labels alone" if body is first.model else ""
        yield Row(f"BERT, {name}", f"IMDb, {LABELS:,} labels", "accuracy", f"{right:.2%}", aim, **facts)


TASKS: dict[str, Task] = {"recommender": recommender, "graded-reviews": made_reviews, "imdb": imdb, "bert": bert}
