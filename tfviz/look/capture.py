"""`capture` records attention weights and outputs of modules in a forward pass.

The model needs no changes; `look.tracer` describes how its calls are traced. Afterwards no hooks are left behind.
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
from tfviz.look import caveats
from tfviz.look.captured import Capture
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
    """Capture the attention and the outputs that `model` computes inside the `with`.

    A site is a module's dotted path and refers to its output (the first one, of several). `PATH.input` is the first
    tensor that the module takes, if a glob names it: a star does not include inputs. A module that computes attention
    also has the sites `.pattern` (the weights that multiply the values, before dropout), `.scores` (after scale and
    mask), `.output_heads` (the output of each head before the output projection, [batch, head, query, dim]), `.softmax`
    if the softmax's output differs from the pattern, and, if it is fused, `.query`, `.key` and `.value` (`.query_heads`
    and so on, if a part of the module is called `query`). `.implicit` is the map to which linear attention is
    equivalent: q.k over its sum (Katharopoulos et al. 2020). It is computed only for display, for modules that multiply
    keys and values and sum them over the text before queries are involved. Patterns are [batch, head, query, key],
    whatever their axes are in the model.

    Args:
        model: the model to observe.
        sites: globs, such as `"*.pattern"` or `["decoder.*.cross.pattern", "decoder.0"]`; `*` stands for any
            characters, dots too, `?` for one; `look.blocks` lists the paths of blocks. Weights whose rows do not sum to
            1, such as `relu(scores) / n`, are captured only if their site is named without a star.
        dtype: of stored patterns: float32, float16, or uint8 (255 times the square root; `unpack` reverses it).
        edit: site or glob -> function, whose result replaces the tensor passed to it. A function of two arguments also
            gets the site's name.
        axes: the axes of weights that the model computes itself, for all sites or by glob, in case they are not
            recognized correctly: "b h q k", "(b h) q k", "(b h=8) q k", "b q h k" ...
        grad: keep patterns and outputs in the autograd graph, so that `captured[site].grad` is available after a
            backward pass; fused attention is then computed unfused.
        lazy: store queries, keys, mask and scale of fused attention (in the model's own dtype) and compute any part of
            a pattern when it is indexed, so that texts may have any length. Patterns that a model computes itself are
            stored in `dtype`.
        device: the device that stores what is captured, such as "cpu", so that a GPU's memory holds one layer's at a
            time; None: where the model computed it.

    A capture does not change the model's outputs, gradients or copies. Each thread or task may have a capture of its
    own, which sees only that thread. A warning names what could not be captured (nested tensors), and sites whose
    weights have one axis besides query and key that is not the batch, in a module that does not declare its number of
    heads. Calls without numbers (export, tracing, torch.func) are skipped.

    Raises:
        LookupError: on leaving the context, if a glob matched nothing; the message lists the available sites.
        TypeError: the model failed, since it was called with a list or a string in place of a tensor.
        ValueError: the model failed on a text that is empty, or too long for its positions; it is TorchScript; with
            `grad`, it ran without gradients before a backward pass; an edit returns another shape, or its site is
            inside gradient checkpointing; `axes` does not fit.

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
            f"{type(model).__name__} is scripted or traced (TorchScript): it runs outside Python, where nothing can be "
            "seen; capture the model that it was made of"
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
    """Raise ValueError if options exclude each other."""
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
            raise ValueError(f"{site} is computed to be shown, and by no model: there is nothing to edit")


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
            caveats.check(state)
        elif state.recorder.grad and state.notes.without_grad and "does not require grad" in str(error):
            raise ValueError(caveats.WITHOUT_GRADIENTS) from error
        elif clear := explain(self._model, error):
            raise clear from error

    def __del__(self) -> None:
        if self._tracer in OPEN_TRACERS:  # an interrupt came between the body and `__exit__`, or in it
            self._tracer.close()
