"""`capture`: a context manager that records attention weights and module outputs in a forward pass.

The model needs no changes; `look.tracer` describes how its calls are traced. No hooks remain after the context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

from tfviz import checks
from tfviz.apply_edit import Edit, takes_site
from tfviz.compiled import uncompiled
from tfviz.look import capture_checks
from tfviz.look.capture_result import Capture
from tfviz.look.error_hints import explain
from tfviz.look.lazy import LazyStore
from tfviz.look.tracer import OPEN_TRACERS, AttentionTracer


def capture(
    model: nn.Module,
    sites: str | Sequence[str] = "*.pattern",
    dtype: torch.dtype = torch.float32,
    edit: Mapping[str, Edit] | None = None,
    axes: str | Mapping[str, str] | None = None,
    grad: bool = False,
    lazy: bool = False,
    device: str | torch.device | None = None,
) -> AbstractContextManager[Capture]:
    """Return a context manager that records the attention and the module outputs that `model` computes inside it.

    A site is the dotted path of a module and holds its output (the first one, if there are several). `PATH.input` holds
    the module's first tensor argument; it is recorded only if a glob ends in `input`. A module that computes attention
    also has these sites:

    * `.pattern`: the weights that multiply the values, before dropout, [batch, head, query, key] in any model;
    * `.scores`: the scores after scale and mask, [batch, head, query, key];
    * `.output_heads`: the output of each head before the output projection, [batch, head, query, dim];
    * `.softmax`: the output of the softmax, if it differs from the pattern;
    * `.query`, `.key`, `.value`: the inputs of a fused kernel (`.query_heads` and so on, if the module has a submodule
      called `query`);
    * `.implicit`: the map to which linear attention is equivalent, q.k divided by its sum over keys (Katharopoulos et
      al. 2020). It is computed only for display, in modules that multiply keys with values and sum over the text before
      they apply the queries.

    Args:
        model: the model to observe.
        sites: globs, such as `"*.pattern"` or `["decoder.*.cross.pattern", "decoder.0"]`; `*` matches any characters,
            dots too, `?` matches one; `look.blocks` lists the paths of blocks. Weights whose rows do not sum to 1, such
            as `relu(scores) / n`, are captured only if their site is named in full.
        dtype: dtype of stored patterns: float32, float16, or uint8 (255 times the square root; `dequantize` reverses
            it).
        edit: site or glob -> function that takes the tensor and returns its replacement. A function of two arguments
            also receives the name of the site.
        axes: the axes of weights that the model computes itself, if they are not recognized correctly: "b h q k",
            "(b h) q k", "(b h=8) q k", "b q h k" and so on; a string for all sites, or a string for each glob.
        grad: keep patterns and outputs in the autograd graph, so that `captured[site].grad` is available after a
            backward pass. Fused attention is then computed without its kernel.
        lazy: store queries, keys, mask and scale of fused attention (in the model's own dtype), and compute any part of
            a pattern when it is indexed, so that texts may have any length. Patterns that a model computes itself are
            stored in `dtype`.
        device: the device on which captured tensors are stored, such as "cpu", so that a GPU holds the map of one layer
            at a time; None: the device on which the model computed them.

    A capture without edits does not change the model's outputs, gradients or copies. Each thread or task may open a
    capture of its own, which records only the calls in that thread or task. Calls on tensors without values (export,
    tracing, torch.func) are skipped.

    A warning lists what could not be captured, such as nested tensors. It also lists sites whose head axis is
    ambiguous: the weights have one axis besides query and key, which is not the batch, and no module declares the
    number of heads.

    Raises:
        LookupError: on leaving the context, if a glob matched nothing; the message lists the available sites.
        TypeError: the model failed because it was called with a list or a string instead of a tensor.
        ValueError: the model failed on a text that is empty, or too long for its positions; the model is TorchScript;
            with `grad`, it ran without gradients before a backward pass; an edit returns another shape, or its site is
            inside gradient checkpointing; `axes` does not fit; options exclude each other.

    >>> layer = nn.MultiheadAttention(6, 2, batch_first=True)
    >>> x = torch.randn(3, 5, 6)
    >>> with capture(layer) as captured:
    ...     _ = layer(x, x, x)
    >>> captured["pattern"].shape
    torch.Size([3, 2, 5, 5])
    """
    edits = dict(edit or {})
    _check_options(dtype, edits, grad, lazy, device)
    original = uncompiled(model)
    if isinstance(original, torch.jit.ScriptModule):
        raise ValueError(
            f"{type(model).__name__} is scripted or traced (TorchScript): it runs outside Python, where nothing can "
            f"be captured; capture the original model"
        )
    tracer = AttentionTracer(
        original,
        [sites] if isinstance(sites, str) else list(sites),
        dtype,
        edits,
        {"*": axes} if isinstance(axes, str) else dict(axes or {}),
        grad,
        LazyStore(device) if lazy else None,
        None if device is None else torch.device(device),
    )
    return _OpenCapture(original, tracer, Capture(tracer, type(model).__name__))


def _check_options(
    dtype: torch.dtype, edits: Mapping[str, Edit], grad: bool, lazy: bool, device: str | torch.device | None
) -> None:
    """Raise ValueError if an option is invalid, or excludes another."""
    if dtype not in (torch.float32, torch.float16, torch.uint8):
        raise ValueError(f"dtype is {dtype}; patterns can be stored as torch.float32, torch.float16 or torch.uint8")
    if grad and (dtype != torch.float32 or lazy or device is not None):
        options = f"dtype={dtype}, lazy={lazy} and device={device}"
        raise ValueError(f"grad=True stores tensors unchanged: leave out {options}")
    if device is not None:
        checks.device(device=device)
    for site, function in edits.items():
        takes_site(function)
        if site.rpartition(".")[2] == "implicit":
            raise ValueError(f"{site} is computed only for display, so it cannot be edited")


class _OpenCapture(AbstractContextManager[Capture]):
    """Context manager of a capture; removes its tracer even if it is interrupted."""

    def __init__(self, model: nn.Module, tracer: AttentionTracer, captured: Capture) -> None:
        self._model, self._tracer, self._seen = model, tracer, captured

    def __enter__(self) -> Capture:
        try:
            self._tracer.open()
        except BaseException:
            self._tracer.close()
            raise
        return self._seen

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: Any) -> None:
        try:
            self._tracer.close()
        except BaseException:  # an interrupt; a second one is unlikely
            self._tracer.close()
            raise
        state = self._tracer.state
        if error is None:
            capture_checks.check(state)
        elif state.recorder.grad and state.diagnostics.without_grad and "does not require grad" in str(error):
            raise ValueError(capture_checks.WITHOUT_GRADIENTS) from error
        elif clear := explain(self._model, error):
            raise clear from error

    def __del__(self) -> None:
        if self._tracer in OPEN_TRACERS:  # an interrupt came between the body and `__exit__`, or in it
            self._tracer.close()
