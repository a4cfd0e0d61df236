"""Activation patching: the change of a metric when one activation is taken from another run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.compiled import uncompiled
from tfviz.eval_mode import eval_mode
from tfviz.look.capture import capture
from tfviz.look.recorder import matches
from tfviz.study.block_replay import BlockReplay
from tfviz.study.inputs import Inputs, Prompt
from tfviz.study.last_position import LastPosition
from tfviz.study.metrics import Metric, measure, measure_with_gradient, reads_last, unit_of
from tfviz.study.padding import check_masks, check_position, warning_of_shifted_positions
from tfviz.study.partial_results import PartialResults, fingerprint
from tfviz.study.patch_sources import CUSTOM_TITLE, TITLES, Means, source
from tfviz.study.sites import ActivationSite, activation_sites, module_path, once_each, site_axis
from tfviz.study.table import Table
from tfviz.study.token_logits import TokenLogits
from tfviz.validation import check_callable

Each = Literal["head", "position", "head and position"]
Place = tuple[int | None, int | None]  # head and position; None for all
POSITIONS_PER_RUN = {"cpu": 1024}  # of all texts of one run, where `batch_size` is not given, by device
DEFAULT_POSITIONS_PER_RUN = 16_384  # on other devices, which large batches keep busy


def patch(
    model: nn.Module,
    clean: Prompt,
    corrupt: Prompt | None = None,
    *,
    metric: Metric,
    sites: str | Sequence[str] | None = None,
    by: str | Means = "clean",
    each: Each | None = None,
    words: Sequence[str] | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    progress: bool = True,
    resume: str | Path | None = None,
) -> Table:
    """Return the change of a metric when the activation at one place is replaced, for every place of the sites.

    * "clean" (denoising): activations of the clean run are patched into the corrupt run, one at a time. It shows which
      are sufficient for the clean answer.
    * "corrupt" (noising): activations of the corrupt run are patched into the clean run. It shows which are necessary.
    * "zero", "mean" or "resample" (ablation): zeros, the mean over the batch, or another text's activation are patched
      into the clean run.
    * "gradient" (attribution patching, Nanda 2023): "clean", estimated for all places from one backward pass, as
      (clean - corrupt) times the gradient.
    * A mapping: its activations are patched into the clean run; `by=study.mean_activations(model, texts)` is mean
      ablation over a data set.

    Args:
        model: the model to run.
        clean: the prompt with the answer in question: ids [batch, position], or a model's arguments by name, as a
            tokenizer returns them.
        corrupt: a prompt with a different answer, of the same shapes, with the words that matter at the same positions;
            None if `by` does not need it.
        metric: logits [batch, position, vocab] -> one number, such as `study.logit_difference(right, other)`.
        sites: globs, as for `look.capture`: modules, whose output is [batch, position, dim], their `.input` (that of
            each block by `look.blocks`), `.output_heads`, or `.pattern`, whose positions are queries; None:
            `"*.output_heads"`, or those of the mapping.
        by: the activation that replaces another, as above; or site -> activation, of a shape that broadcasts.
        each: what is patched at a time; None: "head" (at all positions) for sites with a head axis, else "position".
        words: labels of the positions.
        batch_size: rows of one forward pass, patches times prompts; None: about 1,024 positions on a CPU, 16,384 on
            other devices.
        seed: seed of the random choice of texts for 'resample'.
        progress: show a bar.
        resume: a file to which values are written as they are computed; a call with the same arguments continues from
            it.

    Returns:
        A table of site (or layer) x head, x position, or x head x position: the change of the metric. Its notes have
        the metric of both runs, `clean` and `corrupt`.

    Raises:
        LookupError: no site matches.
        TypeError: the metric is not one number.
        ValueError: the prompts have different shapes or masks; the metric reads padding; a site holds no activations,
            or is computed several times in a run; sites of unlike sizes; a mapping gives none, or one of another shape,
            for a site.

    >>> from tfviz import models
    >>> gpt, ids = models.GPT(11, layers=2, heads=3, dim=6), torch.tensor([[1, 2, 3], [1, 4, 3]])
    >>> patch(gpt, ids[:1], ids[1:], metric=lambda logits: logits[:, -1, 5].mean(), progress=False).axes
    {'layer': ['0', '1'], 'head': ['0', '1', '2']}
    """
    check_callable("logits", metric=metric)
    if isinstance(by, str):
        checks.one_of(TITLES, by=by)
    kind, means = (by, None) if isinstance(by, str) else ("custom", by)
    if sites is None:
        sites = "*.output_heads" if means is None else list(means)
    if not sites:
        raise ValueError("sites is empty; name some, such as '*.output_heads'")
    if batch_size is not None:
        checks.at_least(1, batch_size=batch_size)
    model = uncompiled(model)
    inputs = prompts(model, metric, clean, corrupt)
    check_prompts(inputs, kind)
    with eval_mode(model):
        sweep = Sweep(model, inputs, metric, [sites] if isinstance(sites, str) else list(sites), kind, seed, means)
        axes, places = sweep.axes(each, words), sweep.places(each)
        if kind == "gradient":
            values = sweep.estimate(places)
        else:
            texts = batch_size or sweep.texts_at_once
            shown = [*(value for prompt in inputs.values() for value in prompt.tensors), *(means or {}).values()]
            results = PartialResults(
                resume,
                len(sweep.sites) * len(places),
                "" if resume is None else fingerprint(model, *shown, sweep.sites, kind, places, seed, sweep.baselines),
            )
            values = sweep.measure(places, texts, results, progress)
    notes = {"model": type(model).__name__, "by": kind, **sweep.baselines}
    title = CUSTOM_TITLE if kind == "custom" else TITLES[kind]
    return Table(values.reshape([len(labels) for labels in axes.values()]), axes, unit_of(metric), title, notes)


def prompts(model: nn.Module, metric: Metric, clean: Prompt, corrupt: Prompt | None) -> dict[str, Inputs]:
    """Return the inputs of both runs by name, with only the last position's logits if the metric reads no others."""
    named = {"clean": clean} if corrupt is None else {"clean": clean, "corrupt": corrupt}
    inputs = {name: Inputs.of(name, prompt, model) for name, prompt in named.items()}
    return {name: prompt.with_last_logits(model) for name, prompt in inputs.items()} if reads_last(metric) else inputs


def check_prompts(inputs: dict[str, Inputs], by: str) -> None:
    """Raise ValueError if the prompts do not suit each other, or the kind of patch."""
    clean, corrupt = inputs["clean"], inputs.get("corrupt")
    if by in ("clean", "corrupt", "gradient") and corrupt is None:
        raise ValueError(f"by={by!r} compares two prompts: give corrupt, too; or take by='zero'")
    if corrupt is not None and clean.shapes != corrupt.shapes:
        raise ValueError(
            f"clean is {', '.join(map(str, clean.shapes))} and corrupt {', '.join(map(str, corrupt.shapes))}; give "
            "prompts of the same shapes, in which the same word stands at the same position but for those that differ"
        )
    if corrupt is not None:
        check_masks(clean, corrupt)
    if by in ("mean", "resample") and clean.size == 1:
        raise ValueError(f"by={by!r} takes activations of other texts: give clean more than one, [batch, position]")


class Sweep:
    """A metric of many runs, in each of which one activation is replaced.

    Args:
        frozen: globs of sites whose activations in the unpatched run are kept, beside those that are patched; None:
            none are.

    Attributes:
        sites: the sites that are patched.
        baselines: "clean" and "corrupt" -> the metric of a run without a patch.
        base_activations: site -> activations in the unpatched run, if they are kept.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: dict[str, Inputs],
        metric: Metric,
        globs: list[str],
        by: str,
        seed: int,
        means: Means | None = None,
        frozen: Sequence[str] | None = None,
    ) -> None:
        self.model, self.metric = model, metric
        unpatched = "corrupt" if by in ("clean", "gradient") else "clean"
        self.base = inputs[unpatched]
        self.replay = BlockReplay(model, self.base)
        self.baselines: dict[str, float] = {}
        self.base_activations: dict[str, Tensor] = {}
        activations = {}
        for name, prompt in inputs.items():
            is_base = prompt is self.base
            is_needed = name == by or (by, name) == ("gradient", "clean") or is_base
            wanted = [*(globs if is_needed else ()), *((frozen or ()) if is_base else ())]
            with (
                self.replay.observe(is_base, keep_inputs=False),
                warning_of_shifted_positions(model, prompt),
                capture(model, wanted) as seen,
            ):
                logits = prompt.logits(model)
            self.baselines[name] = measure(metric, logits).item()
            check_position(metric, prompt, logits)
            kept = once_each(seen)
            if is_base:
                base_logits = logits
                self.base_activations = {} if frozen is None else kept
            activations[name] = {site: kept[site] for site in kept if any(matches(site, glob) for glob in globs)}
        base = activations[unpatched]
        self.sites = activation_sites(base, self.base.size)
        self.sources = {site.name: source(site.name, activations, by, seed, means or {}) for site in self.sites}
        self.changes = {name: self.sources[name] - base[name] for name in self.sources} if by == "gradient" else {}
        self.unpatched = self.baselines[unpatched]
        heads = [module_path(site.name) for site in self.sites if site.heads is not None]
        is_sweep = by != "gradient" and frozen is None
        is_tried = is_sweep and reads_last(metric) and len(heads) == len(self.sites)
        self.last = LastPosition(self.replay, self.base, heads if is_tried else [], base_logits)
        self.tokens = TokenLogits(self.replay, self.base, metric, base_logits, is_sweep)

    @property
    def texts_at_once(self) -> int:
        """The number of texts in one run: enough to keep the device busy, with little memory."""
        positions = POSITIONS_PER_RUN.get(self.base.tensors[0].device.type, DEFAULT_POSITIONS_PER_RUN)
        return max(self.base.size, positions // self.sites[0].positions)

    def places(self, each: Each | None) -> list[Place]:
        """Return the places of each site that are patched one at a time."""
        heads, positions = self.sites[0].heads, self.sites[0].positions
        each = each or ("position" if heads is None else "head")
        if heads is None and each != "position":
            raise ValueError(f"each is {each!r}, and {self.sites[0].name} has no heads; name '*.output_heads'")
        return list(
            product(
                range(heads) if heads is not None and each != "position" else [None],
                [None] if each == "head" else range(positions),
            )
        )

    def axes(self, each: Each | None, words: Sequence[str] | None) -> dict[str, Sequence[str]]:
        """Return the axes of the table.

        Raises:
            ValueError: there are more or fewer words than positions.
        """
        heads, positions = zip(*self.places(each))
        name, labels = site_axis([site.name for site in self.sites])
        axes: dict[str, Sequence[str]] = {name: labels}
        if None not in heads:
            axes["head"] = [str(head) for head in dict.fromkeys(heads)]
        if None not in positions:
            count = len(set(positions))
            if words is not None and len(words) != count:
                raise ValueError(f"there are {len(words)} words and {count} positions; give one word for each")
            axes["position"] = [str(position) for position in range(count)] if words is None else list(words)
        return axes

    def measure(self, places: list[Place], texts: int, results: PartialResults, progress: bool) -> Tensor:
        """Return the change of the metric by each patch, site by site; `texts` are run at a time."""
        from tqdm import tqdm

        times, count = max(1, texts // self.base.size), len(places)
        with tqdm(total=count * len(self.sites), unit="patch", disable=not progress, mininterval=0.5) as bar:
            try:
                for number, site in enumerate(self.sites):
                    missing = results.missing(number * count, (number + 1) * count)
                    bar.update(count - len(missing))
                    for first in range(0, len(missing), times):
                        chunk = missing[first : first + times]
                        results.add(chunk, self.run_patches(site, [places[at - number * count] for at in chunk]))
                        bar.update(len(chunk))
            finally:
                results.write()
        return results.values

    def run_patches(self, site: ActivationSite, places: list[Place]) -> Tensor:
        """Return the change of the metric by each patch; the model runs once, on a copy of the texts for each."""
        times, edit = len(places), {site.name: lambda tensor: self.pasted(tensor, site, places)}
        with (
            self.replay.skipping(self.replay.before(module_path(site.name)), times),
            self.last.alone(),
            self.tokens.alone(),
            capture(self.model, [], edit=edit),
        ):
            logits = self.base.repeat(times).logits(self.model)
        return self.metric_changes(logits)

    def pasted(self, tensor: Tensor, site: ActivationSite, places: list[Place]) -> Tensor:
        """Return an activation of the repeated texts with the source at one place in each repetition."""
        edited, source, size = tensor.clone(), self.sources[site.name], self.base.size
        for number, place in enumerate(places):
            index = place_index(site, place)
            edited[number * size : (number + 1) * size][index] = source[index].to(tensor)
        return edited

    def metric_changes(self, logits: Tensor) -> Tensor:
        """Return the change of the metric in each repetition of the texts."""
        values = [measure(self.metric, part) for part in logits.split(self.base.size)]
        return torch.stack(values).cpu() - self.unpatched

    def estimate(self, places: list[Place]) -> Tensor:
        """Return the estimated change of the metric by each patch, from one backward pass."""
        kept: dict[str, Tensor] = {}

        def keep(tensor: Tensor, site: str) -> Tensor:
            kept[site] = tensor * 1 if tensor.requires_grad else tensor.detach().requires_grad_()
            return kept[site] * 1  # a copy, since a model may add to it in place

        with torch.enable_grad(), capture(self.model, [], edit={site.name: keep for site in self.sites}):
            value = measure_with_gradient("metric", self.metric, self.base.logits(self.model))
        gradients = torch.autograd.grad(value, list(kept.values()), allow_unused=True)
        if all(gradient is None for gradient in gradients):
            raise ValueError(
                f"no gradient of the metric reaches {next(iter(kept))}: what the model computes after it (quantized "
                "layers, such as quantize_dynamic makes) has none; take by='clean'"
            )
        values = []
        for site, gradient in zip(kept, gradients):
            share = torch.zeros_like(kept[site]) if gradient is None else gradient * self.changes[site].to(gradient)
            values += [share[place_index(self.sites[0], place)].sum() for place in places]
        return torch.stack(values).cpu()


def place_index(site: ActivationSite, place: Place) -> tuple[Any, ...]:
    """Return the index of a place in an activation of the site."""
    head, position = (slice(None) if part is None else part for part in place)
    return (slice(None), position) if site.heads is None else (slice(None), head, position)
