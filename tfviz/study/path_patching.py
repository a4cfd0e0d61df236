"""Path patching: the effect of a head on a metric only through chosen later heads, or directly on the output."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.compiled import uncompiled
from tfviz.eval_mode import eval_mode
from tfviz.look.capture import capture
from tfviz.look.module_paths import is_within
from tfviz.look.recorder import matches
from tfviz.study.inputs import Inputs, Prompt, repeat_batch
from tfviz.study.metrics import Metric, unit_of
from tfviz.study.partial_results import PartialResults
from tfviz.study.patching import Each, Place, Sweep, check_prompts, prompts
from tfviz.study.sites import ActivationSite, module_path
from tfviz.study.table import Table
from tfviz.validation import check_callable

Sites = str | Sequence[str] | Mapping[str, int | Collection[int] | None]  # or site -> head or heads; None for all
Heads = dict[str, list[int] | None]  # site or glob -> heads; None: all of them
OTHER_RUN = {"clean": "corrupt", "corrupt": "clean"}


def patch_path(
    model: nn.Module,
    clean: Prompt,
    corrupt: Prompt,
    *,
    metric: Metric,
    receivers: Sites | None = None,
    senders: Sites = "*.output_heads",
    frozen: str | Sequence[str] = "*.output_heads",
    by: str = "corrupt",
    each: Each | None = None,
    words: Sequence[str] | None = None,
    batch_size: int | None = None,
    progress: bool = True,
) -> Table:
    """Return the change of a metric by each sender through the receivers only (Wang et al. 2023, section 3.1).

    Each sender takes its activation from the other run while all other frozen sites keep theirs, so the change spreads
    only along the direct path: the residual stream and unfrozen sites (feed-forward networks). The changed inputs of
    the receivers are then put into an unchanged run, whose metric is returned.

    Args:
        model: a model with heads that `look.capture` finds.
        clean: the prompt of the clean run, as for `patch`.
        corrupt: the prompt of the corrupt run, of the same shapes.
        metric: logits -> one number.
        receivers: sites at which the change arrives, such as `"transformer.h.9.attn.query"`, or site -> head or heads;
            None: the output itself.
        senders: globs of the sites whose effect is measured one by one, or glob -> head or heads.
        frozen: globs of the sites that keep their activations. Add the feed-forward networks, `"*.mlp"`, for the path
            through the residual stream only.
        by: "corrupt": senders of the corrupt run in the clean one; "clean": the other way round.
        each: the unit that is patched, as for `patch`.
        words: words of the positions, as labels of the table.
        batch_size: number of texts in one run of the model, patches times prompts.
        progress: show a bar.

    Returns:
        A table as that of `patch`; 0 for senders after all receivers, NaN for heads of a layer that are no senders. Its
        notes have the `senders` and `receivers` with their heads, None for all.

    Raises:
        LookupError: no site matches.
        ValueError: as for `patch`; there is no such head.

    >>> from tfviz import models
    >>> gpt, ids = models.GPT(11, layers=2, heads=3, dim=6), torch.tensor([[1, 2, 3], [1, 4, 3]])
    >>> query = {"blocks.1.attention.query": 2}
    >>> metric = lambda logits: logits[:, -1, 5].mean()
    >>> found = patch_path(gpt, ids[:1], ids[1:], metric=metric, receivers=query, progress=False)
    >>> found.values[1].tolist()
    [0.0, 0.0, 0.0]
    """
    check_callable("logits", metric=metric)
    checks.one_of(OTHER_RUN, by=by)
    if batch_size is not None:
        checks.at_least(1, batch_size=batch_size)
    model = uncompiled(model)
    inputs = prompts(model, metric, clean, corrupt)
    check_prompts(inputs, "clean")
    held = [frozen] if isinstance(frozen, str) else list(frozen)
    with eval_mode(model):
        sweep = PathSweep(model, inputs, metric, _heads_of(senders), by, held, _heads_of(receivers or {}))
        axes, places = sweep.axes(each, words), sweep.places(each)
        texts = batch_size or sweep.texts_at_once
        results = PartialResults(None, len(sweep.sites) * len(places), "")
        values = sweep.measure(places, texts, results, progress)
    starting = "" if senders == "*.output_heads" else f" of {_listing(_heads_of(senders))}"
    arriving = f" by way of {_listing(sweep.receivers)}" if receivers else ", on the direct path"
    return Table(
        values.reshape([len(labels) for labels in axes.values()]),
        axes,
        unit_of(metric),
        f"The {by} run's activations{starting} in the {OTHER_RUN[by]} run{arriving}",
        {
            "model": type(model).__name__,
            "by": by,
            "senders": sweep.senders,
            "receivers": sweep.receivers or None,
            **sweep.baselines,
        },
    )


class PathSweep(Sweep):
    """A sweep whose patches affect the metric only through the receivers.

    Args:
        senders: glob -> the heads that are patched; None: all of them.
        frozen: globs of sites that keep the activations of the unchanged run.
        receivers: site -> its heads; None: all of them.

    Attributes:
        senders: site -> the heads that are patched; None: all of them.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Mapping[str, Inputs],
        metric: Metric,
        senders: Heads,
        by: str,
        frozen: list[str],
        receivers: Heads,
    ) -> None:
        super().__init__(model, dict(inputs), metric, list(senders), by, 0, frozen=[*frozen, *receivers])
        self.senders = {
            site.name: next(heads for glob, heads in senders.items() if matches(site.name, glob)) for site in self.sites
        }
        for site, heads in self.senders.items():
            _check_heads(site, heads, self.sources[site])
        self.receivers = receivers
        held = [site for site in self.base_activations if any(matches(site, glob) for glob in (*frozen, *receivers))]
        self.frozen = [site for site in held if site not in self.receivers or site in self.sources]
        for site, heads in self.receivers.items():
            _check_heads(site, heads, self.base_activations[site])

    def places(self, each: Each | None) -> list[Place]:
        """Return the places of each site that are patched one at a time: those of heads that send in any site."""
        places, chosen = super().places(each), list(self.senders.values())
        if each == "position" and any(heads is not None for heads in chosen):
            raise ValueError("each is 'position', and senders name heads: take 'head', or 'head and position'")
        if None in chosen:
            return places
        return [place for place in places if any(place[0] in heads for heads in chosen if heads is not None)]

    def run_patches(self, site: ActivationSite, places: list[Place]) -> Tensor:
        """Return the change of the metric by each patch, through the receivers; NaN for heads that are no senders."""
        heads = self.senders[site.name]
        sent = [number for number, (head, _) in enumerate(places) if heads is None or head in heads]
        values = torch.full((len(places),), torch.nan)
        if sent:
            values[sent] = self._changes(site, [places[number] for number in sent]).to(values)
        return values

    def _changes(self, site: ActivationSite, places: list[Place]) -> Tensor:
        """Return the change of the metric by each patch, through the receivers."""
        path = module_path(site.name)
        ends = [end for end in self.receivers if self._time(end) > self.replay.starts[path]]
        if self.receivers and not ends:
            return torch.zeros(len(places))
        times = len(places)
        edits = {other: self._held(other, site, places) for other in {*self.frozen, site.name}}
        with (
            self.replay.skipping(self.replay.before(path), times),
            capture(self.model, ends, edit=self._live(edits, path)) as seen,
        ):
            logits = self.base.repeat(times).logits(self.model)
        if self.receivers:
            first = min(ends, key=self._time)
            arrived = {end: self._arriving(end, seen[end], times) for end in ends}
            blocks = self.replay.before(module_path(first))
            with self.replay.skipping(blocks, times), capture(self.model, [], edit=arrived):
                logits = self.base.repeat(times).logits(self.model)
        return self.metric_changes(logits)

    def _time(self, site: str) -> int:
        """Return the time of a site: the start of its module or, for an output, the end."""
        path = module_path(site)
        return self.replay.ends[path] if path == site else self.replay.starts[path]

    def _live(self, edits: dict[str, Callable[[Tensor], Tensor]], path: str) -> dict[str, Callable[[Tensor], Tensor]]:
        """Return the edits of sites outside of skipped blocks."""
        skipped = self.replay.before(path)
        return {site: edit for site, edit in edits.items() if not any(is_within(site, block) for block in skipped)}

    def _held(self, name: str, site: ActivationSite, places: list[Place]) -> Callable[[Tensor], Tensor]:
        """Return an edit that keeps a site as in the unchanged run, except for the sender's patched places."""
        base = self.base_activations.get(name)

        def hold(tensor: Tensor) -> Tensor:
            held = tensor if base is None else repeat_batch(base, len(places)).to(tensor)
            return self.pasted(held, site, places) if name == site.name else held

        return hold

    def _arriving(self, site: str, arrived: Tensor, times: int) -> Callable[[Tensor], Tensor]:
        """Return an edit that puts the changed input of a receiver's heads into the unchanged run."""
        heads = self.receivers[site]

        def put(tensor: Tensor) -> Tensor:
            if heads is None:
                return arrived.to(tensor)
            edited = tensor.clone()
            edited[:, heads] = arrived[:, heads].to(tensor)
            return edited

        return put


def _heads_of(sites: Sites) -> Heads:
    """Return site or glob -> its heads; None: all of them."""
    if not isinstance(sites, Mapping):
        return dict.fromkeys([sites] if isinstance(sites, str) else sites)
    return {
        site: heads if heads is None else [heads] if isinstance(heads, int) else list(heads)
        for site, heads in sites.items()
    }


def _listing(sites: Heads) -> str:
    """Return sites with their heads, for a title.

    >>> _listing({"h.1.attn.query": [0, 2], "h.2.attn.query": [1], "h.3.attn.query": None})
    'h.1.attn.query (heads 0, 2), h.2.attn.query (head 1), h.3.attn.query'
    """
    shown = {
        site: "" if heads is None else f" (head{'s' if len(heads) > 1 else ''} {', '.join(map(str, heads))})"
        for site, heads in sites.items()
    }
    return ", ".join(f"{site}{heads}" for site, heads in shown.items())


def _check_heads(site: str, heads: list[int] | None, activation: Tensor) -> None:
    """Raise ValueError unless a site has these heads."""
    if heads is None:
        return
    if activation.dim() != 4:
        raise ValueError(f"{site} is {list(activation.shape)}, without heads; name its site alone")
    for head in heads:
        if not 0 <= head < activation.shape[1]:
            raise ValueError(f"{site} has no head {head}; it has {activation.shape[1]}, counted from 0")
