"""Activation patching: the change of a metric when one activation is taken from another run."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from tfviz import checks
from tfviz.compiled import uncompiled
from tfviz.eval_mode import eval_mode
from tfviz.study.inputs import Inputs, Prompt
from tfviz.study.metrics import Metric, reads_last, unit_of
from tfviz.study.padding import check_equal_masks
from tfviz.study.partial_results import PartialResults, fingerprint
from tfviz.study.patch_sources import CUSTOM_TITLE, TITLES, Means
from tfviz.study.patch_sweep import Sweep
from tfviz.study.patch_targets import Each, Sites, heads_by_glob
from tfviz.study.table import Table
from tfviz.validation import check_callable


def patch(
    model: nn.Module,
    clean: Prompt,
    corrupt: Prompt | None = None,
    *,
    metric: Metric,
    sites: Sites | None = None,
    by: str | Means = "clean",
    each: Each | None = None,
    positions: Sequence[int] | None = None,
    words: Sequence[str] | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    progress: bool = True,
    resume: str | Path | None = None,
) -> Table:
    """Return the change of a metric when the activation at one target is replaced, for every target in the sites.

    * "clean" (denoising): activations of the clean run are patched into the corrupt run, one at a time. It shows which
      are sufficient for the clean answer.
    * "corrupt" (noising): activations of the corrupt run are patched into the clean run. It shows which are necessary.
    * "zero", "mean" or "resample" (ablation): zeros, the mean over the batch's words at that position, or another
      text's activation are patched into the clean run.
    * "gradient" (attribution patching, Nanda 2023): "clean", estimated for all targets from one backward pass, as
      (clean - corrupt) times the gradient.
    * A mapping: its activations are patched into the clean run; `by=study.mean_activations(model, texts)` is mean
      ablation over a data set.

    Args:
        model: the model to run.
        clean: the prompt with the answer in question: ids [batch, position], or a model's arguments by name, as a
            tokenizer returns them.
        corrupt: a prompt with a different answer, of the same shapes, with the words that matter at the same positions;
            None if `by` does not need it.
        metric: logits [batch, position, vocab] -> one number, such as `study.logit_difference(right, other)`, or one
            for each text, as with `reduction="none"`.
        sites: globs, as for `look.capture`: modules, whose output is [batch, position, dim], their `.input` (that of
            each block by `look.blocks`), `.output_heads`, or `.pattern`, whose positions are queries; or glob -> head
            or heads; None: `"*.output_heads"`, or those of the mapping `by`.
        by: the activation that replaces another, as above; or site -> activation, of a shape that broadcasts.
        each: what is patched at a time; None: "head" (at all positions) for sites with a head axis, else "position".
        positions: the positions that are patched, such as `[-1]` for the last alone; with `each="head"` all of them at
            a time; None: all.
        words: labels of the positions.
        batch_size: rows of one forward pass, patches times prompts; None: about 1,024 positions on a CPU, 16,384 on
            other devices.
        seed: seed of the random choice of texts for 'resample'.
        progress: show a bar.
        resume: a file to which values are written as they are computed; a call with the same arguments continues from
            it.

    Returns:
        A table of site (or layer) x head, x position, or x head x position: the change of the metric, NaN for heads
        that were not chosen; the first axis is
        the text if the metric gives one number for each. Its notes have the metric of both runs, `clean` and `corrupt`.

    Raises:
        LookupError: no site matches.
        TypeError: the metric is neither one number nor one for each text.
        ValueError: the prompts have different shapes or masks; the metric reads padding; a site holds no activations,
            or is computed several times in a run; sites of unlike sizes; a mapping gives none, or one of another shape,
            for a site.

    >>> import torch
    >>> from tfviz import models
    >>> gpt, ids = models.GPT(11, layers=2, heads=3, dim=6), torch.tensor([[1, 2, 3], [1, 4, 3]])
    >>> patch(gpt, ids[:1], ids[1:], metric=lambda logits: logits[:, -1, 5].mean(), progress=False).axes
    {'layer': ['0', '1'], 'head': ['0', '1', '2']}
    """
    check_callable("logits", metric=metric)
    check_words(words)
    if isinstance(by, str):
        checks.one_of(TITLES, by=by)
    elif not by:
        raise ValueError("by is empty; give site -> activation, as study.mean_activations does")
    kind, means = (by, None) if isinstance(by, str) else ("custom", by)
    if sites is None:
        sites = "*.output_heads" if means is None else list(means)
    chosen = heads_by_glob("sites", sites)
    if batch_size is not None:
        checks.at_least(1, batch_size=batch_size)
    model = uncompiled(model)
    inputs = prompts(model, metric, clean, corrupt)
    check_prompts(inputs, kind)
    with eval_mode(model):
        sweep = Sweep(model, inputs, metric, chosen, kind, seed, each, positions, words, means)
        if kind == "gradient":
            values = sweep.estimate()
        else:
            texts = batch_size or sweep.texts_at_once
            shown = [*(value for prompt in inputs.values() for value in prompt.tensors), *(means or {}).values()]
            patched = sweep.targets, sweep.heads, sweep.units.positions
            results = PartialResults(
                resume,
                sweep.shape,
                ""
                if resume is None
                else fingerprint(model, *shown, sweep.sites, kind, *patched, seed, sweep.unpatched_metrics),
            )
            values = sweep.measure(texts, results, progress)
    warn_of_constant(values, inputs, sweep.baselines)
    title = CUSTOM_TITLE if kind == "custom" else TITLES[kind]
    return sweep.table(values, unit_of(metric), title, {"model": type(model).__name__, "by": kind})


def prompts(model: nn.Module, metric: Metric, clean: Prompt, corrupt: Prompt | None) -> dict[str, Inputs]:
    """Return the inputs of both runs by name, with only the last position's logits if the metric reads no others."""
    named = {"clean": clean} if corrupt is None else {"clean": clean, "corrupt": corrupt}
    inputs = {name: Inputs.from_prompt(name, prompt, model) for name, prompt in named.items()}
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
        check_equal_masks(clean, corrupt)
    if by in ("mean", "resample") and clean.size == 1:
        raise ValueError(f"by={by!r} takes activations of other texts: give clean more than one, [batch, position]")


def check_words(words: Sequence[str] | None) -> None:
    """Raise TypeError if words are one text."""
    if isinstance(words, str):
        raise TypeError(f"words is {words!r}, one text; give a list, one word for each position")


def warn_of_constant(values: Tensor, inputs: Mapping[str, Inputs], baselines: Mapping[str, Tensor]) -> None:
    """Warn if no patch changed the metric at all, unless clean and corrupt are the same prompt, as in a test."""
    clean, corrupt = inputs["clean"], inputs.get("corrupt")
    are_equal = corrupt is not None and all(map(torch.equal, clean.tensors, corrupt.tensors))
    value = baselines["clean"]
    is_constant = all(torch.equal(other, value) for other in baselines.values())
    if is_constant and not are_equal and not values.nan_to_num().any():
        warnings.warn(
            f"the metric is {value.mean():.6g} in every run, whatever is patched: does it read the logits?",
            stacklevel=4,
        )
