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
from tfviz.study.patch_targets import Each, HeadSelection, Sites, heads_by_glob
from tfviz.study.patching import check_prompts, check_words, prompts, warn_of_constant
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
    by: str = "corrupt",
    each: Each | None = None,
    positions: Sequence[int] | None = None,
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
        metric: logits [batch, position, vocab] -> one number, or one for each text.
        receivers: globs of the sites at which the change arrives, such as `"transformer.h.9.attn.query"`, or glob ->
            head or heads; None: the output itself. A head is a number, or its label in a table, as `Table.top` gives
            it; of globs that match the same site the first counts.
        senders: globs of the sites whose effect is measured one by one, or glob -> head or heads.
        frozen: globs of the sites that keep their activations. Add the feed-forward networks, `"*.mlp"`, for the path
            through the residual stream only.
        by: "corrupt": senders of the corrupt run in the clean one; "clean": the other way round.
        each: the unit that is patched, as for `patch`.
        positions: those that are patched, as for `patch`.
        words: words of the positions, as labels of the table.
        batch_size: number of texts in one run of the model, patches times prompts.
        progress: show a bar.

    Returns:
        A table as that of `patch`; 0 for senders after all receivers, NaN for heads of a layer that are no senders. Its
        notes have the `senders` and `receivers` with their heads, None for all.

    Raises:
        LookupError: no site matches.
        ValueError: as for `patch`; there is no such head; senders or receivers are empty.

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
    checks.one_of(OTHER_RUN, by=by)
    if batch_size is not None:
        checks.at_least(1, batch_size=batch_size)
    check_words(words)
    sending = heads_by_glob("senders", senders)
    receiving = {} if receivers is None else heads_by_glob("receivers", receivers)
    model = uncompiled(model)
    inputs = prompts(model, metric, clean, corrupt)
    check_prompts(inputs, "clean")
    held = [frozen] if isinstance(frozen, str) else list(frozen)
    with eval_mode(model):
        sweep = PathSweep(model, inputs, metric, sending, by, held, receiving, each, positions, words)
        texts = batch_size or sweep.texts_at_once
        results = PartialResults(None, sweep.shape, "")
        values = sweep.measure(texts, results, progress)
    warn_of_constant(values, inputs, sweep.baselines)
    starting = "" if senders == "*.output_heads" else f" of {_listing(sending)}"
    arriving = f" by way of {_listing(receiving)}" if receiving else ", on the direct path"
    return sweep.table(
        values,
        unit_of(metric),
        f"Change when the {by} run's activations{starting} are put into the {OTHER_RUN[by]} run{arriving}",
        {
            "model": type(model).__name__,
            "by": by,
            "senders": sweep.heads,
            "receivers": sweep.receivers or None,
        },
    )


def _listing(sites: HeadSelection) -> str:
    """Return sites with their heads, for a title.

    >>> _listing({"h.1.attn.query": [0, 2], "h.2.attn.query": [1], "h.3.attn.query": None})
    'h.1.attn.query (heads 0, 2), h.2.attn.query (head 1), h.3.attn.query'
    """
    shown = {
        site: "" if heads is None else f" (head{'s' if len(heads) > 1 else ''} {', '.join(map(str, heads))})"
        for site, heads in sites.items()
    }
    return ", ".join(f"{site}{heads}" for site, heads in shown.items())
