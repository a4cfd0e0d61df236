"""`PathSweep`: a sweep whose patches affect the metric only through chosen later heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from tfviz.look.capture import capture
from tfviz.look.module_paths import is_within
from tfviz.look.recorder import matches
from tfviz.study.inputs import Inputs, repeat_batch
from tfviz.study.metrics import Metric
from tfviz.study.patch_sweep import Sweep
from tfviz.study.patch_targets import Each, HeadSelection, PatchTarget, check_heads, heads_at
from tfviz.study.sites import ActivationSite, module_path


class PathSweep(Sweep):
    """A sweep whose patches affect the metric only through the receivers, or only directly if there are none.

    Args:
        model: the model, in eval mode.
        inputs: "clean" and "corrupt" -> the prompt.
        metric: the metric, as for `patch`.
        senders: glob -> the heads that are patched; None: all heads.
        source: the run from which the activations of the senders are taken, "clean" or "corrupt".
        frozen: globs of sites that keep the activations of the unchanged run, except for receiving heads.
        receivers: glob -> the heads that receive the change; None: all heads.
        each: the unit that is patched, as for `patch`.
        positions: the positions that are patched, as for `patch`.
        tokens: labels of the positions, as for `patch`.

    Attributes:
        receivers: site -> the heads that receive the change; None: all heads.
        frozen: the frozen sites, without those whose heads all receive.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Mapping[str, Inputs],
        metric: Metric,
        senders: HeadSelection,
        source: str,
        frozen: list[str],
        receivers: HeadSelection,
        each: Each | None,
        positions: Sequence[int] | None,
        tokens: Sequence[str] | None,
    ) -> None:
        self._receivers = receivers
        held = [*frozen, *receivers]
        super().__init__(model, dict(inputs), metric, senders, source, 0, each, positions, tokens, frozen=held)
        sites = [site for site in self.base_activations if any(matches(site, glob) for glob in frozen)]
        self.frozen = [site for site in sites if self.receivers.get(site, []) is not None]

    def set_targets(self, each: Each | None, positions: Sequence[int] | None, tokens: Sequence[str] | None) -> None:
        """Set the receiving heads, the targets and the axes.

        Raises:
            ValueError: a site has no such head; otherwise as for `Sweep.set_targets`.
        """
        self.receivers = {
            site: heads_at(site, self._receivers)
            for site in self.base_activations
            if any(matches(site, glob) for glob in self._receivers)
        }
        for site, heads in self.receivers.items():
            check_heads(site, heads, self.base_activations[site])
        super().set_targets(each, positions, tokens)

    def patch_effects(self, site: ActivationSite, targets: list[PatchTarget]) -> Tensor:
        """Return the change of the metric by each patch through the receivers, [target, (text)]."""
        path = module_path(site.name)
        start = self.replay.starts[path]
        receivers = [other for other in self.receivers if other != site.name and self._time(other) > start]
        if self.receivers and not receivers:
            return torch.zeros(len(targets), *self.unpatched.shape)
        times = len(targets)
        edits = {other: self._hold(other, site, targets) for other in {*self.frozen, site.name}}
        with (
            self.replay.skipping(self.replay.before(path), times),
            capture(self.model, receivers, edit=self._outside_skipped(edits, path)) as captured,
        ):
            logits = self.base.repeat(times).logits(self.model)
        if self.receivers:
            first = min(receivers, key=self._time)
            arrived = {receiver: self._receive(receiver, captured[receiver], times) for receiver in receivers}
            blocks = self.replay.before(module_path(first))
            with self.replay.skipping(blocks, times), capture(self.model, [], edit=arrived):
                logits = self.base.repeat(times).logits(self.model)
        return self.metric_deltas(logits)

    def _time(self, site: str) -> int:
        """Return the time of a site in the unchanged run: the end of a module for its output, else its start."""
        path = module_path(site)
        return self.replay.ends[path] if path == site else self.replay.starts[path]

    def _outside_skipped(
        self, edits: dict[str, Callable[[Tensor], Tensor]], path: str
    ) -> dict[str, Callable[[Tensor], Tensor]]:
        """Return the edits of sites that are not inside a block skipped for the module at `path`."""
        skipped = self.replay.before(path)
        return {site: edit for site, edit in edits.items() if not any(is_within(site, block) for block in skipped)}

    def _hold(self, name: str, site: ActivationSite, targets: list[PatchTarget]) -> Callable[[Tensor], Tensor]:
        """Return the edit of the first run: freeze a site, patch it if it is the sender's, and leave receiving heads.

        Receiving heads are computed, so that they receive the change.
        """
        base, receiving = self.base_activations.get(name), self.receivers.get(name)

        def edit(tensor: Tensor) -> Tensor:
            held = tensor if base is None else repeat_batch(base, len(targets)).to(tensor)
            if name == site.name:
                return self.patched(held, site, targets)
            if receiving:
                held[:, receiving] = tensor[:, receiving]
            return held

        return edit

    def _receive(self, site: str, arrived: Tensor, times: int) -> Callable[[Tensor], Tensor]:
        """Return an edit that patches the changed activation of a receiver's heads into the unchanged run."""
        heads = self.receivers[site]

        def edit(tensor: Tensor) -> Tensor:
            if heads is None:
                return arrived.to(tensor)
            edited = tensor.clone()
            edited[:, heads] = arrived[:, heads].to(tensor)
            return edited

        return edit
