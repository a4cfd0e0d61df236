"""A training that stands at some step, and what is kept of it."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

import torch
from torch import Tensor, nn

from tfviz import files
from tfviz.learn import checkpoint, fingerprint, history, signals
from tfviz.learn.history import Step
from tfviz.learn.plan import drawn
from tfviz.learn.schedule import Schedule, share
from tfviz.learn.trainer import Trainer
from tfviz.text.batches import step_seed
from tfviz.text.buckets import Batches


class Run:
    """The steps of a training, past and to come.

    The model is always that of the last whole step, or else `half` is true. So whatever ends the run may keep it.

    Args:
        plan: what another run must share to have the same losses; its `steps` and `seed` are used here.
        folder: for checkpoints, one every `every` steps.
    """

    def __init__(
        self,
        trainer: Trainer,
        batches: Batches,
        schedule: Schedule,
        plan: fingerprint.Plain,
        folder: Path | None,
        every: int,
    ):
        self.trainer, self.batches, self.schedule = trainer, batches, schedule
        self.plan, self.folder, self.every = plan, folder, every
        self.history: list[Step] = []
        self.kept = 0  # steps that the newest checkpoint holds
        self.half = False  # an optimizer's step has begun and not ended
        self.before: dict[str, Tensor] | None = None  # buffers, from the beginning of a step until it is whole
        self.asked: list[int] = []  # signals that wait until all processes have heard of them
        self.stopped = False
        self.process = os.getpid()

    def steps(self, progress: bool) -> Generator[Step]:
        """Past steps, then new ones; however it ends, what stands after the last whole step is kept."""
        from tqdm import tqdm

        with ExitStack() as stack:
            stack.callback(_put_modes_back, [(module, module.training) for module in self.trainer.model.modules()])
            stack.callback(self.trainer.give_back)
            stack.enter_context(self._held())
            if self.folder and self.trainer.several:
                self.asked = stack.enter_context(signals.deferred())
            elif self.folder:
                stack.enter_context(signals.heeded())
            self._resume()
            yield from list(self.history)
            shown, total = progress and self.trainer.is_main, self.plan["steps"]
            bar = stack.enter_context(
                tqdm(total=total, initial=len(self.history), unit="step", disable=not shown, mininterval=0.5)
            )
            try:
                while len(self.history) < total and not self.stopped:
                    step = self._step()
                    bar.set_postfix_str(f"loss {step.loss:.3f} nats", refresh=False)
                    bar.update()
                    if self.folder and ((step.step + 1) % self.every == 0 or step.step + 1 == total or self.stopped):
                        self._save()
                    yield step
            except GeneratorExit:  # the loop was left between two steps
                if lost := self._leave():
                    warnings.warn(lost, stacklevel=1)
                raise
            except BaseException as error:
                error.add_note(self._leave(alone=True) or self._where())
                raise
            if self.stopped and not self.asked:
                raise SystemExit(f"another process was asked to end: {self._where()}")

    def _step(self) -> Step:
        """The next step, whose chance is its own: that of the caller goes on where it stood."""
        with _apart():
            return self._taken()

    def _taken(self) -> Step:
        number, started = len(self.history), time.perf_counter()
        torch.manual_seed(step_seed(self.plan["seed"], number))
        part = share(self.schedule, number, self.plan["steps"])
        rate = part * max(self.trainer.rates)
        batch = self._first() if number == 0 and self.folder else drawn(self.batches, number)
        self.before = self.trainer.buffers()
        try:
            found = self.trainer.measure(batch, bool(self.asked))
        except FloatingPointError as error:
            self._leave()
            raise FloatingPointError(self._refused(error, batch, number, rate)) from None
        with signals.deferred():
            self.half = True
            self.trainer.take(part)
            speed = found.tokens / (time.perf_counter() - started)
            self.history.append(Step(number, found.loss, rate, speed))
            self.half, self.before, self.stopped = False, None, found.stop
        return self.history[-1]

    def _first(self) -> tuple[Tensor, ...]:
        """The first batch; with it, the plan is complete. What drawing a batch changes is no part of the plan."""
        before = fingerprint.of_object(self.batches)
        batch = drawn(self.batches, 0)
        after = fingerprint.of_object(self.batches)
        same = {name: value for name, value in before.items() if after.get(name, value) == value}
        self.plan |= fingerprint.under("batches", same)
        self.plan |= fingerprint.under("batches[0]", fingerprint.of_object(batch))
        return batch

    def _complete(self) -> None:
        """Draw the first batch again, for the plan; where it is never the same, it can tell nothing."""
        for _ in range(2):
            earlier = dict(self.plan)
            with _apart():
                torch.manual_seed(step_seed(self.plan["seed"], 0))
                self._first()
        if differs := fingerprint.difference(earlier, self.plan):
            warnings.warn(f"{differs[0]} is another one each time: losses will not be those of one run", stacklevel=2)
            self.plan = {name: value for name, value in self.plan.items() if not name.startswith("batches")}

    def _held(self) -> AbstractContextManager[None]:
        """The folder, for this run alone. One that is finished is only read, by as many as like."""
        if not self.folder or not self.trainer.is_main:
            return nullcontext()
        newest = checkpoint.saved(self.folder)[-1:]
        done = newest and newest[0].name == checkpoint.NAME.format(self.plan["steps"])
        return nullcontext() if done else files.alone(self.folder)

    def _resume(self) -> None:
        if self.folder and self.trainer.several:  # the first process may still be writing
            self.trainer.accelerator.wait_for_everyone()
        if not self.folder or not checkpoint.saved(self.folder):
            return
        found = checkpoint.opened(self.folder, self.trainer.model, self.trainer.plain_optimizer)
        self._compare(found)
        found.fill(self.trainer.model, self.trainer.plain_optimizer)
        self.history = history.of(found.state["history"])
        self.kept = len(self.history)

    def _compare(self, found: checkpoint.Opened) -> None:
        """The checkpoint is of this run, and whole."""
        plan, columns = found.state.get("plan"), found.state.get("history")
        if not isinstance(plan, dict) or not isinstance(columns, list):
            raise ValueError(f"{found.path} is of no run: `checkpoint.save` wrote it; give another folder")
        self._complete()
        if differs := fingerprint.difference(plan, self.plan):
            name, there, here = differs
            raise ValueError(
                f"{self.folder} holds a run with {name} {there}, this one asks for {here}; "
                "give it another folder, or delete that one"
            )
        step, lengths = found.state["step"], [len(column) for column in columns]
        if not history.is_whole(lengths, step):
            raise ValueError(f"{found.path} has a history of {lengths} numbers for {step} steps; delete it")

    def _save(self) -> None:
        with signals.deferred():
            self._write()
        self.trainer.accelerator.wait_for_everyone()

    def _write(self) -> None:
        assert self.folder
        step, optimizer, columns = len(self.history), self.trainer.plain_optimizer, history.columns(self.history)
        checkpoint.save(self.folder, self.trainer.model, optimizer, step=step, history=columns, plan=self.plan)
        self.kept = step

    def _leave(self, alone: bool = False) -> str:
        """Keep what stands after the last whole step; says if that could not be.

        Args:
            alone: the other processes may stand elsewhere, and will not help to put shards together.
        """
        if os.getpid() != self.process:  # a copy of it, in a process that was forked off
            return ""
        with signals.deferred():
            if self.before is not None and not self.half:
                self.trainer.put_back(self.before)
                self.before = None
            if not self.folder or self.half or self.kept == len(self.history) or (alone and self.trainer.sharded):
                return ""
            try:
                self._write()
            except (OSError, RuntimeError, FloatingPointError) as error:
                return f"steps {self.kept} to {len(self.history) - 1} could not be kept: {error}"
        return ""

    def _where(self) -> str:
        """Where a run that ended early can go on."""
        newest = checkpoint.saved(self.folder)[-1:] if self.folder else []
        stands = f"the same call goes on from {newest[0]}" if newest else "no checkpoint was written"
        return stands if not self.half else f"the model is half of step {len(self.history)}; {stands}"

    def _refused(self, error: FloatingPointError, batch: tuple[Tensor, ...], step: int, rate: float) -> str:
        last = checkpoint.saved(self.folder)[-1:] if self.folder else []
        kept = f"the last good checkpoint is {last[0]}" if last else "no checkpoint had been written"
        whole = all(part.isfinite().all() for part in batch)
        advice = "take a lower rate, more warm-up or a smaller clip" if whole else f"batches[{step}] holds such numbers"
        return f"{error} at step {step}, learning rate {rate:.2g}: the step was not taken, {kept}; {advice}"


def _put_modes_back(modes: Sequence[tuple[nn.Module, bool]]) -> None:
    """The parts of a model in training or eval mode, as they were given."""
    for module, training in modes:
        module.training = training


def _apart() -> AbstractContextManager[None]:
    """Chance that is seeded in here leaves the caller's where it stood."""
    return torch.random.fork_rng([torch.cuda.current_device()] if torch.cuda.is_available() else [])
