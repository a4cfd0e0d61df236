"""Activation patching, ablation and attribution patching: the change of a metric when an activation is replaced."""

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
from tfviz.study.partial_results import PartialResults
from tfviz.study.patch_sources import CUSTOM_TITLE, TITLES, Means
from tfviz.study.patch_sweep import Sweep
from tfviz.study.patch_targets import Each, Sites, parse_head_selection
from tfviz.study.resumable_file import fingerprint
from tfviz.study.table import Table
from tfviz.validation import check_callable


def patch(
    model: nn.Module,
    clean: Prompt,
    corrupt: Prompt | None = None,
    *,
    metric: Metric,
    sites: Sites | None = None,
    source: str | Means = "clean",
    each: Each | None = None,
    positions: Sequence[int] | None = None,
    tokens: Sequence[str] | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    progress: bool = True,
    resume: str | Path | None = None,
) -> Table:
    """Return the change of a metric when the activation at one target is replaced, for each target in the sites.

    The argument `source` selects the replacement:

    * "clean" (denoising): activations of the clean run are patched into the corrupt run. This shows which activations
      are sufficient for the clean answer.
    * "corrupt" (noising): activations of the corrupt run are patched into the clean run. This shows which activations
      are necessary.
    * "zero", "mean" or "resample" (ablation): zeros, the mean over the batch's tokens at the position, or the
      activations of another text are patched into the clean run.
    * "gradient" (attribution patching, Nanda 2023): "clean" is estimated for all targets from one backward pass, as
      (clean - corrupt) times the gradient.
    * A mapping: its activations are patched into the clean run; `source=study.mean_activations(model, texts)` is mean
      ablation over a data set.

    Args:
        model: the model to run.
        clean: the prompt with the answer in question: ids [batch, position], or a model's arguments by name, as a
            tokenizer returns them.
        corrupt: a prompt with a different answer, of the same shapes, with corresponding tokens at the same positions;
            None if `source` does not need it.
        metric: logits [batch, position, vocab] -> one number, such as `study.logit_difference(right, other)`, or one
            for each text, as with `reduction="none"`.
        sites: globs, as for `look.capture`, of modules whose output is [batch, position, dim], of their `.input` (for
            that of each block, see `look.blocks`), of `.output_heads`, or of `.pattern`, whose positions are queries.
            Or glob -> one or several heads. None: `"*.output_heads"`, or the sites of the mapping `source`.
        source: the kind of replacement, as above; or site -> activation, of a shape that broadcasts.
        each: the unit that is patched: "head" (at all chosen positions), "position" or "head and position"; None:
            "head" for sites with a head axis, else "position".
        positions: the positions that are patched, such as `[-1]` for only the last; None: all.
        tokens: labels of the positions.
        batch_size: the number of texts in one forward pass, patches times prompts; None: about 1,024 positions on a
            CPU, 16,384 on other devices.
        seed: the seed of the random choice of texts for "resample".
        progress: whether to show a progress bar.
        resume: a file to which values are written as they are computed; a call with the same arguments continues from
            it.

    Returns:
        A table [layer or site, head], [layer or site, position] or [layer or site, head, position] of the change of the
        metric; NaN for heads that were not chosen. If the metric is one number for each text, the first axis is the
        text. The notes hold the metric of the runs without a patch, `clean` and `corrupt`.

    Raises:
        LookupError: no site matches.
        TypeError: the metric is neither one number nor one for each text.
        ValueError: the prompts have different shapes or masks; the metric reads padding; a site is not an activation,
            or has several invocations in a run; the sites have different sizes; the mapping `source` has no activation
            of a fitting shape for a site.

    >>> import torch
    >>> from tfviz import models
    >>> gpt, ids = models.GPT(11, layers=2, heads=3, dim=6), torch.tensor([[1, 2, 3], [1, 4, 3]])
    >>> patch(gpt, ids[:1], ids[1:], metric=lambda logits: logits[:, -1, 5].mean(), progress=False).axes
    {'layer': ['0', '1'], 'head': ['0', '1', '2']}
    """
    check_callable("logits", metric=metric)
    check_tokens(tokens)
    if isinstance(source, str):
        checks.one_of(TITLES, source=source)
    elif not source:
        raise ValueError("source is empty; give site -> activation, as study.mean_activations does")
    kind, means = (source, None) if isinstance(source, str) else ("custom", source)
    if sites is None:
        sites = "*.output_heads" if means is None else list(means)
    selection = parse_head_selection("sites", sites)
    if batch_size is not None:
        checks.at_least(1, batch_size=batch_size)
    model = uncompiled(model)
    inputs = prompts(model, metric, clean, corrupt)
    check_prompts(inputs, kind)
    with eval_mode(model):
        sweep = Sweep(model, inputs, metric, selection, kind, seed, each, positions, tokens, means)
        if kind == "gradient":
            values = sweep.estimate()
        else:
            texts = batch_size or sweep.texts_per_run
            shown = [*(value for prompt in inputs.values() for value in prompt.tensors), *(means or {}).values()]
            patched = sweep.targets, sweep.heads, sweep.patch_targets.positions
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
    return sweep.table(values, unit_of(metric), title, {"model": type(model).__name__, "source": kind})


def prompts(model: nn.Module, metric: Metric, clean: Prompt, corrupt: Prompt | None) -> dict[str, Inputs]:
    """Return the inputs of the runs, by name; if the metric reads only the last logits, only these are computed."""
    named = {"clean": clean} if corrupt is None else {"clean": clean, "corrupt": corrupt}
    inputs = {name: Inputs.from_prompt(name, prompt, model) for name, prompt in named.items()}
    return {name: prompt.with_last_logits(model) for name, prompt in inputs.items()} if reads_last(metric) else inputs


def check_prompts(inputs: dict[str, Inputs], source: str) -> None:
    """Raise ValueError if the prompts differ in shape or mask, or do not suit the kind of replacement."""
    clean, corrupt = inputs["clean"], inputs.get("corrupt")
    if source in ("clean", "corrupt", "gradient") and corrupt is None:
        raise ValueError(f"source={source!r} compares two prompts: give corrupt, too; or take source='zero'")
    if corrupt is not None and clean.shapes != corrupt.shapes:
        raise ValueError(
            f"clean is {', '.join(map(str, clean.shapes))} and corrupt {', '.join(map(str, corrupt.shapes))}; give "
            "prompts of the same shapes, that have the same token at each position except where they are meant to "
            "differ"
        )
    if corrupt is not None:
        check_equal_masks(clean, corrupt)
    if source in ("mean", "resample") and clean.size == 1:
        raise ValueError(
            f"source={source!r} takes activations of other texts: give several texts as clean, [batch, position]"
        )


def check_tokens(tokens: Sequence[str] | None) -> None:
    """Raise TypeError if `tokens` is a string, not a list of strings."""
    if isinstance(tokens, str):
        raise TypeError(f"tokens is {tokens!r}, one text; give a list, one token for each position")


def warn_of_constant(values: Tensor, inputs: Mapping[str, Inputs], baselines: Mapping[str, Tensor]) -> None:
    """Warn if no patch changes the metric, unless the clean and corrupt prompts are equal."""
    clean, corrupt = inputs["clean"], inputs.get("corrupt")
    are_equal = corrupt is not None and all(map(torch.equal, clean.tensors, corrupt.tensors))
    value = baselines["clean"]
    is_constant = all(torch.equal(other, value) for other in baselines.values())
    if is_constant and not are_equal and not values.nan_to_num().any():
        warnings.warn(
            f"the metric is {value.mean():.6g} in every run, whatever is patched: does it read the logits?",
            stacklevel=4,
        )
