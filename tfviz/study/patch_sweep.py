"""`Sweep`: the change of a metric in many runs, each with one patched activation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.look.capture import capture
from tfviz.look.recorder import matches
from tfviz.shapes import Bool
from tfviz.study.block_replay import BlockReplay
from tfviz.study.inputs import Inputs, attention_mask_at
from tfviz.study.last_position import LastPosition
from tfviz.study.metrics import Metric, evaluate_metric, evaluate_metric_with_gradient, reads_last, text_axis
from tfviz.study.padding import check_position, warning_of_shifted_positions
from tfviz.study.partial_results import PartialResults
from tfviz.study.patch_sources import Means, replacement
from tfviz.study.patch_targets import Each, HeadSelection, PatchTarget, PatchTargets, check_heads, heads_at
from tfviz.study.sites import ActivationSite, activation_sites, module_path, single_invocations, site_axis
from tfviz.study.table import Table
from tfviz.study.token_logits import TokenLogits

POSITIONS_PER_RUN = {"cpu": 1024}  # device -> positions of all texts in a run, if `batch_size` is None
DEFAULT_POSITIONS_PER_RUN = 16_384  # on other devices, which need large batches


class Sweep:
    """The change of a metric in many runs, in each of which one activation is replaced.

    Args:
        model: the model, in eval mode.
        inputs: "clean" and, if needed, "corrupt" -> the prompt.
        metric: the metric, as for `patch`.
        heads_by_glob: glob -> the heads that are patched; None: all heads.
        source: the kind of replacement, as for `patch`, or "custom" for those of `means`.
        seed: the seed of the choice of other texts.
        each: the unit that is patched, as for `patch`.
        positions: the positions that are patched, as for `patch`.
        tokens: labels of the positions, as for `patch`.
        means: site -> custom activation.
        frozen: globs of sites whose activations in the unpatched run are stored in `base_activations`, together with
            those of the patched sites; None: nothing is stored.

    Attributes:
        base: the prompt of the run into which activations are patched: "corrupt" if they come from the clean run.
        sites: the sites that are patched, all with the same positions and heads.
        heads: site -> the heads that are patched; None: all heads.
        patch_targets: the unit that is patched, which finds a target's index in an activation.
        targets: the targets of each site, (head, position), which are patched one at a time.
        axes: the axes of the table, without the text.
        sources: site -> the activation that replaces its own, [batch, (head,) position, dim].
        activation_differences: site -> `sources` less the base run's activation, for `estimate`; else empty.
        baselines: "clean" and "corrupt" -> the metric of a run without a patch, [] or [text].
        unpatched: the metric of the base run without a patch, [] or [text]; one of `baselines`.
        base_activations: site -> activation in the base run without a patch; empty if `frozen` is None.
        replay: skips the blocks before the patched site, whose outputs in the base run it stores.
        last_position, token_logits: compute of each run only what the metric reads, if it reads so little.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: dict[str, Inputs],
        metric: Metric,
        heads_by_glob: HeadSelection,
        source: str,
        seed: int,
        each: Each | None,
        positions: Sequence[int] | None,
        tokens: Sequence[str] | None,
        means: Means | None = None,
        frozen: Sequence[str] | None = None,
    ) -> None:
        self.model, self.metric = model, metric
        base_name = "corrupt" if source in ("clean", "gradient") else "clean"
        self.base = inputs[base_name]
        self.replay = BlockReplay(model, self.base)
        self.baselines: dict[str, Tensor] = {}
        logits, stored = self._run(base_name, self.base, [*heads_by_glob, *(frozen or ())])
        self.base_activations = {} if frozen is None else stored
        base = _matching(stored, list(heads_by_glob))
        self._set_sites(base, heads_by_glob)
        self.set_targets(each, positions, tokens)  # raises errors before the other run
        others = {name: prompt for name, prompt in inputs.items() if name != base_name}
        activations = {base_name: base, **self._run_others(others, source, list(heads_by_glob))}
        self.baselines = {name: self.baselines[name] for name in inputs}
        self.unpatched = self.baselines[base_name]
        self.sources = {
            site.name: replacement(site.name, activations, source, seed, means or {}, self._real_tokens(site))
            for site in self.sites
        }
        patched = self.sources if source == "gradient" else {}
        self.activation_differences = {name: activation - base[name] for name, activation in patched.items()}
        self._plan_partial_forwards(logits, is_sweep=source != "gradient" and frozen is None)

    def _set_sites(self, activations: dict[str, Tensor], heads_by_glob: HeadSelection) -> None:
        """Set the sites and the heads that are patched there.

        Raises:
            ValueError: an activation cannot be patched, or has no such heads.
        """
        self.sites = activation_sites(activations, self.base.size)
        self.heads = {site.name: heads_at(site.name, heads_by_glob) for site in self.sites}
        for site, heads in self.heads.items():
            check_heads(site, heads, activations[site])

    def _run_others(self, prompts: dict[str, Inputs], source: str, globs: list[str]) -> dict[str, dict[str, Tensor]]:
        """Run the model on the other prompts, and return those activations, prompt -> site, that are put elsewhere."""
        activations = {}
        for name, prompt in prompts.items():
            is_source = name == source or (source, name) == ("gradient", "clean")
            _, stored = self._run(name, prompt, globs if is_source else [])
            activations[name] = _matching(stored, globs)
        return activations

    def _run(self, name: str, prompt: Inputs, globs: list[str]) -> tuple[Tensor, dict[str, Tensor]]:
        """Run the model on a prompt without a patch; store the metric, and return the logits and activations."""
        with (
            self.replay.observe(prompt is self.base, keep_inputs=False),
            warning_of_shifted_positions(self.model, prompt),
            capture(self.model, globs) as captured,
        ):
            logits = prompt.logits(self.model)
        self.baselines[name] = evaluate_metric(self.metric, logits).detach().float().cpu()
        check_position(self.metric, prompt, logits)
        return logits, single_invocations(captured)

    def _plan_partial_forwards(self, logits: Tensor, is_sweep: bool) -> None:
        """Set the partial forwards of patched runs, after tests on the unpatched run with these logits."""
        heads = [module_path(site.name) for site in self.sites if site.heads is not None]
        is_tried = is_sweep and reads_last(self.metric) and len(heads) == len(self.sites)
        self.last_position = LastPosition(self.replay, heads if is_tried else [], logits)
        self.token_logits = TokenLogits(self.replay, self.metric, logits, is_sweep)

    def _real_tokens(self, site: ActivationSite) -> Bool[Tensor, "batch position"]:
        return attention_mask_at(self.base, site.name, site.positions)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values: [patch], or [patch, text] if the metric is one number for each text."""
        return len(self.sites) * len(self.targets), *self.unpatched.shape

    @property
    def unpatched_metrics(self) -> dict[str, Any]:
        """The `baselines` as numbers and lists, which JSON can represent."""
        return {name: value.tolist() for name, value in self.baselines.items()}

    def table(self, values: Tensor, unit: str, title: str, notes: dict[str, Any]) -> Table:
        """Return the values of all patches as a table; the metric of the unpatched runs is appended to its notes."""
        axes = {**text_axis(self.unpatched), **self.axes}
        notes |= self.unpatched_metrics
        return Table(values.movedim(0, -1).reshape([len(labels) for labels in axes.values()]), axes, unit, title, notes)

    @property
    def texts_per_run(self) -> int:
        """The default number of texts in one run, which depends on the device; at least those of the prompt."""
        positions = POSITIONS_PER_RUN.get(self.base.tensors[0].device.type, DEFAULT_POSITIONS_PER_RUN)
        return max(self.base.size, positions // self.sites[0].positions)

    def set_targets(self, each: Each | None, positions: Sequence[int] | None, tokens: Sequence[str] | None) -> None:
        """Set the targets and the axes, once the sites are known.

        Raises:
            ValueError: the sites have no heads, and `each` is not "position"; `positions` are empty or out of range;
                the numbers of tokens and positions differ.
        """
        self.patch_targets = PatchTargets.from_site(self.sites[0], each, positions)
        self.targets = self.patch_targets.among(list(self.heads.values()))
        name, labels = site_axis([site.name for site in self.sites])
        self.axes: dict[str, Sequence[str]] = {name: labels, **self.patch_targets.axes(self.targets, tokens)}

    def measure(self, texts: int, results: PartialResults, progress: bool) -> Tensor:
        """Return the change of the metric by each patch, [patch, (text)], site by site.

        Args:
            texts: the number of texts in one run.
            results: the values that are already computed, to which others are added.
            progress: whether to show a progress bar.
        """
        from tqdm import tqdm

        times, count = max(1, texts // self.base.size), len(self.targets)
        with tqdm(total=count * len(self.sites), unit="patch", disable=not progress, mininterval=0.5) as bar:
            try:
                for index, site in enumerate(self.sites):
                    missing = results.missing(index * count, (index + 1) * count)
                    bar.update(count - len(missing))
                    for first in range(0, len(missing), times):
                        chunk = missing[first : first + times]
                        results.add(chunk, self.run_patches(site, [self.targets[at - index * count] for at in chunk]))
                        bar.update(len(chunk))
            finally:
                results.write()
        return results.values

    def run_patches(self, site: ActivationSite, targets: list[PatchTarget]) -> Tensor:
        """Return the change of the metric by each patch, [target, (text)]; NaN for heads that were not chosen."""
        heads = self.heads[site.name]
        chosen = [number for number, (head, _) in enumerate(targets) if heads is None or head in heads]
        values = torch.full((len(targets), *self.unpatched.shape), torch.nan)
        if chosen:
            values[chosen] = self.patch_effects(site, [targets[number] for number in chosen]).to(values)
        return values

    def patch_effects(self, site: ActivationSite, targets: list[PatchTarget]) -> Tensor:
        """Return the change of the metric by each target, [target, (text)], from one run of repeated texts."""
        times, edit = len(targets), {site.name: lambda tensor: self.patched(tensor, site, targets)}
        with (
            self.replay.skipping(self.replay.before(module_path(site.name)), times),
            self.last_position.applied(),
            self.token_logits.applied(),
            capture(self.model, [], edit=edit),
        ):
            logits = self.base.repeat(times).logits(self.model)
        return self.metric_deltas(logits)

    def patched(self, tensor: Tensor, site: ActivationSite, targets: list[PatchTarget]) -> Tensor:
        """Return an activation of the repeated texts, with one target replaced in each repetition."""
        edited, source, size = tensor.clone(), self.sources[site.name], self.base.size
        for number, target in enumerate(targets):
            index = self.patch_targets.index(target)
            edited[number * size : (number + 1) * size][index] = source[index].to(tensor)
        return edited

    def metric_deltas(self, logits: Tensor) -> Tensor:
        """Return the metric of each repetition of the texts less that without patches, [repetition, (text)]."""
        values = [evaluate_metric(self.metric, part) for part in logits.split(self.base.size)]
        return torch.stack(values).float().cpu() - self.unpatched

    def estimate(self) -> Tensor:
        """Return the estimated change of the metric by each patch, [patch, (text)], from one backward pass.

        Raises:
            ValueError: no gradient of the metric reaches the sites.
        """
        kept: dict[str, Tensor] = {}

        def keep(tensor: Tensor, site: str) -> Tensor:
            kept[site] = tensor * 1 if tensor.requires_grad else tensor.detach().requires_grad_()
            return kept[site] * 1  # a copy, since a model may add to it in place

        with torch.enable_grad(), capture(self.model, [], edit={site.name: keep for site in self.sites}):
            value = evaluate_metric_with_gradient("metric", self.metric, self.base.logits(self.model))
            summed = value.sum()
        gradients = torch.autograd.grad(summed, list(kept.values()), allow_unused=True)
        if all(gradient is None for gradient in gradients):
            raise ValueError(
                f"no gradient of the metric reaches {next(iter(kept))}: the model computes something after it that "
                f"has no gradient (such as the quantized layers of quantize_dynamic); take source='clean'"
            )
        values = []
        for site, gradient in zip(kept, gradients):
            difference = self.activation_differences[site].to(kept[site])
            share = torch.zeros_like(difference) if gradient is None else gradient * difference
            values += [self._target_sum(share, site, target) for target in self.targets]
        of_texts = torch.stack(values).cpu()
        return of_texts if value.dim() else of_texts.sum(1)

    def _target_sum(self, share: Tensor, site: str, target: PatchTarget) -> Tensor:
        """Return the estimated change by one target for each text, [text]; NaN for a head that was not chosen."""
        heads = self.heads[site]
        is_chosen = heads is None or target[0] in heads
        summed = share[self.patch_targets.index(target)].flatten(1).sum(1)
        return summed if is_chosen else torch.full_like(summed, torch.nan)


def _matching(activations: dict[str, Tensor], globs: Sequence[str]) -> dict[str, Tensor]:
    """Return the activations of the sites that a glob matches."""
    return {site: activations[site] for site in activations if any(matches(site, glob) for glob in globs)}
