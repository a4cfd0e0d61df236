"""What the rows of `systems.py` share: a row's numbers, training with checkpoints, where runs are kept."""

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from common import RESULTS, machine
from torch import nn

from tfviz import learn

RUNS = Path(os.environ.get("TFVIZ_RUNS", "runs/systems"))
STORE = RESULTS / "systems.json"
QUICK_STEPS = 4


@dataclass(frozen=True)
class Row:
    """One measured number.

    Attributes:
        aim: what it should be, as text; empty where nothing is asked.
        seconds: of training, all models of the row together.
    """

    system: str
    task: str
    measure: str
    value: str
    aim: str = ""
    steps: int = 0
    parameters: int = 0
    seconds: float = 0.0
    seed: int = 1
    note: str = ""
    date: str = ""
    machine: str = ""


@dataclass(frozen=True)
class Learned:
    """A trained model, and how it came about in `facts`, which a `Row` takes."""

    model: nn.Module
    facts: dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """How a task is run.

    Attributes:
        quick: at tiny sizes, to see that it runs; nothing is kept.
        seed: of first weights, order of batches and dropout; texts and how they are split stay the same.
    """

    quick: bool = False
    seed: int = 1

    def built(self, make: Callable[..., nn.Module], *args: Any, **parts: Any) -> nn.Module:
        """A model whose first weights depend on the seed alone."""
        torch.manual_seed(self.seed)
        return make(*args, **parts)

    def learned(self, name: str, model: nn.Module, batches: Any, steps: int, **how: Any) -> Learned:
        """Trained by `learn.fit`, from where an earlier run of this name and seed was stopped."""
        steps, folder = (QUICK_STEPS, None) if self.quick else (steps, RUNS / f"seed-{self.seed}" / name)
        how |= {"seed": self.seed, "checkpoint_dir": folder, "progress": not self.quick, "device": "cpu"}
        past = list(learn.fit(model, batches, steps, **how))
        tokens = [batches[step.step][0].numel() for step in past]
        facts = {
            "steps": steps,
            "parameters": sum(p.numel() for p in model.parameters()),
            "seconds": sum(many / step.tokens_per_second for many, step in zip(tokens, past)),
            "seed": self.seed,
        }
        return Learned(model, facts)


Rows = Iterator[Row]
Task = Callable[[Trial], Rows]


def keep(rows: list[Row]) -> None:
    """Put rows into the store, in place of earlier ones of the same system, task, measure and seed."""
    now, here = datetime.now(UTC).strftime("%Y-%m-%d"), machine()
    store = {_key(row): row for row in stored()}
    for row in rows:
        store[_key(row)] = Row(**asdict(row) | {"date": now, "machine": here})
    STORE.write_text(json.dumps([asdict(row) for row in store.values()], indent=1) + "\n", encoding="utf-8")


def _key(row: Row) -> tuple[str, str, str, int]:
    return row.system, row.task, row.measure, row.seed


def stored() -> list[Row]:
    """The rows measured so far."""
    return [Row(**row) for row in json.loads(STORE.read_text(encoding="utf-8"))] if STORE.is_file() else []


class Clock:
    """Seconds that this process computed for, whatever else the machine did."""

    def __init__(self) -> None:
        self.started = time.process_time()

    def __call__(self) -> float:
        return time.process_time() - self.started
