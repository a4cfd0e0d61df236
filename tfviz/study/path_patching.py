"""Path patching: the effect of a head on a metric only through chosen later heads, or directly on the output."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from tfviz import checks
from tfviz.compiled import uncompiled
from tfviz.eval_mode import eval_mode
from tfviz.study.inputs import Prompt
from tfviz.study.metrics import Metric, unit_of
from tfviz.study.partial_results import PartialResults
from tfviz.study.patch_targets import Each, HeadSelection, Sites, parse_head_selection
from tfviz.study.patching import check_prompts, check_tokens, prompts, warn_of_constant
from tfviz.study.path_sweep import PathSweep
from tfviz.study.table import Table
from tfviz.validation import check_callable

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
    source: str = "corrupt",
    each: Each | None = None,
    positions: Sequence[int] | None = None,
    tokens: Sequence[str] | None = None,
    batch_size: int | None = None,
    progress: bool = True,
) -> Table:
    """Return the change of a metric by each sender only through the receivers (Wang et al. 2023, section 3.1).

    In a first run, the activation of one sender is taken from the other prompt while all frozen sites keep their
    activations. So the change reaches the receivers only through the residual stream and sites that are not frozen
    (feed-forward networks). In a second run, the changed activations of the receivers are patched into the unchanged
    model, and its metric is read.

    Args:
        model: a model with heads that `look.capture` finds.
        clean: the prompt of the clean run, as for `patch`.
        corrupt: the prompt of the corrupt run, of the same shapes.
        metric: logits [batch, position, vocab] -> one number, or one for each text.
        receivers: globs of the sites that receive the change, such as `"transformer.h.9.attn.query"`, or glob -> one or
            several heads; None: the model's output. A head is a number, or its label in a table, as `Table.top`
            returns it. If several globs match a site, the first applies.
        senders: globs of the sites whose effects are measured one by one, or glob -> one or several heads.
        frozen: globs of the sites that keep their activations. Add the feed-forward networks, such as `"*.mlp"`, for
            the path through the residual stream only.
        source: "corrupt": activations of senders in the corrupt run are patched into the clean run; "clean": the
            reverse.
        each: the unit that is patched, as for `patch`.
        positions: the positions that are patched, as for `patch`.
        tokens: labels of the positions.
        batch_size: the number of texts in one run of the model, patches times prompts; None: as for `patch`.
        progress: whether to show a progress bar.

    Returns:
        A table as for `patch`: 0 for senders after all receivers, NaN for heads that are not senders. The notes hold
        the `senders` and `receivers` with their heads, None for all heads.

    Raises:
        LookupError: no site matches.
        TypeError: the metric is neither one number nor one for each text.
        ValueError: as for `patch`; there is no such head; `senders` or `receivers` is empty.

    >>> import torch
    >>> from tfviz import models
    >>> gpt, ids = models.GPT(11, layers=2, heads=3, dim=6), torch.tensor([[1, 2, 3], [1, 4, 3]])
    >>> query = {"blocks.1.attention.query": 2}
    >>> metric = lambda logits: logits[:, -1, 5].mean()
    >>> found = patch_path(gpt, ids[:1], ids[1:], metric=metric, receivers=query, progress=False)
    >>> found.values[1].tolist()
    [0.0, 0.0, 0.0]
    """
    check_callable("logits", metric=metric)
    checks.one_of(OTHER_RUN, source=source)
    if batch_size is not None:
        checks.at_least(1, batch_size=batch_size)
    check_tokens(tokens)
    sending = parse_head_selection("senders", senders)
    receiving = {} if receivers is None else parse_head_selection("receivers", receivers)
    model = uncompiled(model)
    inputs = prompts(model, metric, clean, corrupt)
    check_prompts(inputs, "clean")
    held = [frozen] if isinstance(frozen, str) else list(frozen)
    with eval_mode(model):
        sweep = PathSweep(model, inputs, metric, sending, source, held, receiving, each, positions, tokens)
        texts = batch_size or sweep.texts_per_run
        results = PartialResults(None, sweep.shape, "")
        values = sweep.measure(texts, results, progress)
    warn_of_constant(values, inputs, sweep.baselines)
    starting = "" if senders == "*.output_heads" else f" of {_listing(sending)}"
    arriving = f" by way of {_listing(receiving)}" if receiving else ", on the direct path"
    return sweep.table(
        values,
        unit_of(metric),
        f"Change when the {source} run's activations{starting} are put into the {OTHER_RUN[source]} run{arriving}",
        {
            "model": type(model).__name__,
            "source": source,
            "senders": sweep.heads,
            "receivers": sweep.receivers or None,
        },
    )


def _listing(sites: HeadSelection) -> str:
    """Return the sites with their heads as text, for a title.

    >>> _listing({"h.1.attn.query": [0, 2], "h.2.attn.query": [1], "h.3.attn.query": None})
    'h.1.attn.query (heads 0, 2), h.2.attn.query (head 1), h.3.attn.query'
    """
    shown = {
        site: "" if heads is None else f" (head{'s' if len(heads) > 1 else ''} {', '.join(map(str, heads))})"
        for site, heads in sites.items()
    }
    return ", ".join(f"{site}{heads}" for site, heads in shown.items())
