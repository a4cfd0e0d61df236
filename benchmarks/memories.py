"""The task of `systems.py` that asks what a memory is worth: Transformer-XL against GPT, segment by segment."""

from functools import partial
from typing import Any

import torch
from rows import Learned, Row, Rows, Task, Trial
from torch import Tensor, nn
from torch.nn import functional

from tfviz import learn, models, text

CONTEXT, BATCH = 64, 16
STEPS = {"Shakespeare": 2000, "IMDb text": 4000}
REMEMBERED = (64, 256, 640)  # tokens that a trained Transformer-XL keeps when it is measured
STRETCH = 32  # tokens by which contexts are made longer, and 12 such
HARD, WORTH = 0.1, 0.01  # of Dai et al. 2019, appendix C: the share of hardest tokens, and the least relative gain
POSITIONS = 2000  # tokens that are predicted from contexts of every length


class Documents:
    """`text.Streams` over documents that follow one another in a new order in each epoch, by chance."""

    def __init__(self, rows: list[Tensor], length: int, batch: int, seed: int):
        self.rows, self.size, self.seed = rows, (length, batch), seed
        self.epoch, self.streams = 0, self._of(0)

    def __getitem__(self, step: int) -> tuple[Tensor, ...]:
        epoch, index = divmod(step, len(self.streams))
        if epoch != self.epoch:
            self.epoch, self.streams = epoch, self._of(epoch)
        return self.streams[index]

    def _of(self, epoch: int) -> text.Streams:
        draw = torch.Generator().manual_seed(text.batches.step_seed(self.seed, epoch))
        order = torch.randperm(len(self.rows), generator=draw).tolist()
        return text.Streams(torch.cat([self.rows[row] for row in order]), *self.size)


class Forgetting:
    """The batches of a Transformer-XL for a model without a memory: same pieces, same order."""

    def __init__(self, streams: Any):
        self.streams = streams

    def __getitem__(self, step: int) -> tuple[Tensor, ...]:
        return self.streams[step][:2]


def texts(quick: bool) -> dict[str, tuple[int, list[Tensor], Tensor, float]]:
    """Of each text the size of its vocabulary, documents to train on, tokens to measure on, bytes a token there."""
    plays = text.corpora.load("shakespeare")
    letters = text.CharacterTokenizer.from_text(plays)
    train, held = (letters.encode(part) for part in text.corpora.split(plays))
    reviews = text.datasets.reviews("train").texts[: 60 if quick else 20_000]
    tokenizer = text.train_bpe(reviews[:5000], 400 if quick else 4000)
    rows = tokenizer.encode_batch(reviews)
    cut = int(0.95 * len(rows))
    unseen = torch.cat(rows[cut:])
    width = sum(len(one.encode()) for one in reviews[cut:]) / len(unseen)
    most = 2000 if quick else 100_000
    return {
        "Shakespeare": (len(letters), [train], held[:most], 1.0),  # every letter of it is one byte
        "IMDb text": (len(tokenizer), rows[:cut], unseen[:most], width),
    }


def segments(trial: Trial) -> Rows:
    """Transformer-XL against a GPT of as many weights: the same segments in the same order, as many steps.

    The reviews come in their own order, film after film, and in an order by chance. A GPT may also read pieces from
    random places, which a memory cannot.
    """
    for name, (count, rows, held, width) in texts(trial.quick).items():
        streams: dict[str, Any] = {"in order": text.Streams(torch.cat(rows), CONTEXT, BATCH)}
        if len(rows) > 1:
            streams["shuffled"] = Documents(rows, CONTEXT, BATCH, seed=trial.seed)
        random = text.Windows(torch.cat(rows), CONTEXT, BATCH, seed=trial.seed)
        ordered = {order: Forgetting(given) for order, given in streams.items()}
        row = partial(_row, task=name, width=width)
        gpts = {}
        for order, batches in {"random places": random, **ordered}.items():
            gpt = trial.built(models.GPT, count, context=CONTEXT, dim=132)  # 132: so that it has as many weights
            gpts[order] = learned = trial.learned(f"memories-{name}-GPT-{order}", gpt, batches, STEPS[name])
            loss = learn.evaluate.loss(gpt, text.in_order(held, CONTEXT, BATCH))
            yield row(f"GPT, {order}", loss=loss, learned=learned)
        for order, batches in streams.items():
            xl = trial.built(models.TransformerXL, count, memory=CONTEXT)
            learned = trial.learned(
                f"memories-{name}-XL-{order}", xl, batches, STEPS[name], loss=learn.losses.SegmentRecurrentLoss()
            )
            for memory in REMEMBERED:
                xl.memory = memory
                note = f"memory of {memory} when measured"
                yield row(f"Transformer-XL, {order}, {memory}", loss=carried(xl, held), learned=learned, note=note)
            group = {"GPT": gpts[order], "Transformer-XL": learned}
            for system, reach in reaches({one: of.model for one, of in group.items()}, held, trial.quick).items():
                measure = "relative effective context length, tokens"
                note = f"steps of {STRETCH}; hardest {HARD:.0%}, gain {WORTH:.0%}"
                yield Row(f"{system}, {order}", name, measure, str(reach), **group[system].facts, note=note)


def carried(model: models.TransformerXL, held: Tensor) -> float:
    """Nats a token of one text from its beginning to its end, each segment with the memory of those before."""
    pieces = text.Streams(held, CONTEXT, 1)
    return learn.evaluate.loss(
        model, (pieces[step] for step in range(len(pieces))), learn.losses.SegmentRecurrentLoss()
    )


def _row(system: str, task: str, width: float, loss: float, learned: Learned, note: str = "") -> Row:
    value = f"{learn.evaluate.bits_per_byte(loss, 1, 1) / width:.3f}"
    aim = "below GPT in the same order" if "XL" in system else ""
    return Row(system, task, f"bits/byte, segments of {CONTEXT} tokens", value, aim, **learned.facts, note=note)


@torch.no_grad()
def reaches(group: dict[str, nn.Module], held: Tensor, quick: bool) -> dict[str, int]:
    """Up to which length a longer context still pays each model (Dai et al. 2019, section 4.5 and appendix C).

    The losses of a context are compared with the best that any of the group does with the context before it, on the
    tokens that are hardest for that. GPT is given no more than it was trained on.
    """
    longest = STRETCH * (3 if quick else 12)
    positions = torch.linspace(longest, len(held) - 1, 50 if quick else POSITIONS).long()
    losses = {name: _losses(model, held, positions, longest) for name, model in group.items()}
    found = dict.fromkeys(group, STRETCH)
    for context in range(STRETCH, longest, STRETCH):
        before = torch.stack([of[min(context, max(of))] for of in losses.values()]).amin(0)
        hard = before.topk(max(1, int(HARD * len(positions)))).indices
        for name, of in losses.items():
            after = torch.minimum(before, of[context + STRETCH])[hard] if context + STRETCH in of else before[hard]
            gain = 1 - float(after.sum() / before[hard].sum())
            if gain >= WORTH and found[name] == context:
                found[name] = context + STRETCH
    return found


def _losses(model: nn.Module, held: Tensor, positions: Tensor, longest: int) -> dict[int, Tensor]:
    """By the length of the context, in tokens: nats of the token at each position."""
    model.eval()
    found = {}
    for context in range(STRETCH, min(longest, CONTEXT if isinstance(model, models.GPT) else longest) + 1, STRETCH):
        rows = (held[index[:, None] - torch.arange(context, 0, -1)] for index in positions.split(50))
        logits = torch.cat([model(ids)[:, -1] for ids in rows])
        found[context] = functional.cross_entropy(logits, held[positions], reduction="none")
    return found


TASKS: dict[str, Task] = {"segments": segments}
