"""Check a capture and its maps: name modules that gave none, gaps and suspicious numbers; warn or raise."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from tfviz.look.capture_state import CaptureState
from tfviz.look.module_paths import is_within
from tfviz.look.nearest_sites import MAX_SITES_LISTED, no_site
from tfviz.look.quantization import dequantize, range_problem
from tfviz.look.recorder import matches

MAX_MODULES_LISTED = 5
ATTENTION_NAME = re.compile(r"attention|attn|multihead", re.IGNORECASE)
ROW_SUM_TOLERANCE = 0.05  # largest distance of a row's sum from 1
QUANTIZED_ROW_SUM_TOLERANCE = 0.3  # the same for weights stored as bytes
MAX_ROWS_CHECKED = 64  # of each head stored as bytes
WITHOUT_GRADIENTS = (
    "grad is True, but the model ran without gradients (torch.no_grad); call it inside torch.enable_grad()"
)


def summary(state: CaptureState) -> str:
    """Return a line on the number of modules that look like attention, the number that gave maps, and their caveats."""
    with_maps = _modules_with_maps(state)
    count = len(with_maps) + len(_modules_without_maps(state, with_maps))
    modules = "1 module looks" if count == 1 else f"{count} modules look"
    return ", ".join([f"{modules} like attention", f"{len(with_maps)} gave maps", *capture_caveats(state)])


def capture_caveats(state: CaptureState) -> list[str]:
    """Return the caveats of a capture, each a clause that starts with the number of sites or modules concerned."""
    diagnostics, invocations = state.diagnostics, state.recorder.invocations
    patterns = [site for site in invocations if matches(site, "*.pattern")]
    repeated = [site for site in patterns if len(invocations[site]) > 1 and site not in state.chunks]
    dropped = [site for site in invocations if site in diagnostics.dropout]
    silent, fast_path = _modules_without_maps(state, _modules_with_maps(state)), diagnostics.fast_path
    counts = {
        "computed more than once": len(repeated),
        "in training mode, and the maps show weights before dropout": len(dropped),
        "interpreted a float mask as PyTorch's fast path does: every nonzero entry is masked": len(fast_path),
        f"returned no weights ({_reason(silent, state)})": len(silent),
        f"with rows that need not sum to 1 ({_joined(diagnostics.unnormalized)})": len(diagnostics.unnormalized),
        f"of channels, not of tokens ({_joined(diagnostics.channels)})": len(diagnostics.channels),
    }
    return [f"{count} {caveat}" for caveat, count in counts.items() if count]


def weights_caveat(layers: Sequence[Any], mask: Tensor | None) -> str:
    """Return the reason why these may not be attention weights, as a clause; "" if they look valid.

    Lazy layers are not examined.

    Args:
        layers: the weights of each layer, [head, query, key].
        mask: True where a query may attend, [layer, head, query, key]; None: unknown.
    """
    known = [(number, layer) for number, layer in enumerate(layers) if isinstance(layer, Tensor) and layer.numel()]
    for number, layer in known:
        if layer.is_floating_point() and (problem := range_problem(layer)):
            return f"layer {number} {problem}"
    uneven = [f"layer {number}" for number, layer in known if not _rows_sum_to_1(layer)]
    if uneven:
        return f"rows do not sum to 1 in {', '.join(uneven)}"
    for number, layer in known if mask is not None else ():
        weights = dequantize(layer)
        if 2 * torch.where(mask[number], 0.0, weights).sum() > weights.sum() > 0:  # type: ignore[index]
            return f"most of layer {number} lies where the mask is False; a mask is True where a query may attend"
    return ""


def _rows_sum_to_1(weights: Tensor) -> bool:
    """Return whether all nonzero rows sum to 1; of weights stored as bytes, only some rows are checked."""
    if weights.is_floating_point():
        sums, tolerance = weights.sum(-1, dtype=torch.float32), ROW_SUM_TOLERANCE
    else:
        sums, tolerance = (
            dequantize(weights[:, :: 1 + weights.shape[1] // MAX_ROWS_CHECKED]).sum(-1),
            QUANTIZED_ROW_SUM_TOLERANCE,
        )
    return not bool(((sums - 1).abs() > tolerance)[sums != 0].any())


def check(state: CaptureState) -> None:
    """Warn about caveats at the end of a capture.

    Raises:
        LookupError: a glob matched nothing.
    """
    stack, diagnostics, recorder = state.stack, state.diagnostics, state.recorder
    channels = diagnostics.channels
    for glob in [*recorder.globs, *recorder.edits]:
        if not any(matches(site, glob) for site in recorder.sites):
            raise LookupError(_no_match(glob, state))
    for glob in state.axes:
        if not any(matches(site, glob) for site in recorder.sites):
            raise LookupError(f"axes: {no_site(glob, list(recorder.sites))}")
    added = [path for path, module in stack.model.named_modules() if id(module) not in stack.paths]
    ambiguous = {site: size for site, size in diagnostics.unclear_axes.items() if size > 1 and size not in stack.sizes}
    unclear = [f"{site} ({size})" for site, size in {**ambiguous, **_batch_mismatches(state)}.items()]
    for caveat, holds in {
        f"{_joined(added)} was added to the model inside the `with` block and is not captured": added,
        WITHOUT_GRADIENTS: recorder.grad and diagnostics.without_grad,
        f"some parts were not captured: {_unseen_parts(state)}": stack.unseen,
        f"weights mix channels, not tokens: {_joined(channels)}; their rows are not queries": channels,
        f"weights that may belong to several heads or windows are shown as texts of a batch: "
        f"{', '.join(unclear[:MAX_SITES_LISTED])}; give their axes, as in capture(model, axes='(b h=8) q k')": (
            unclear and stack.sizes
        ),
    }.items():
        if holds:
            warnings.warn(caveat, stacklevel=3)


def _batch_mismatches(state: CaptureState) -> dict[str, int]:
    """Return the batch size of each pattern's site where it differs from the model's."""
    sizes = state.stack.sizes
    shapes = {site: some[-1][0].shape for site, some in state.recorder.invocations.items() if site.endswith("pattern")}
    return {
        site: shape[0]
        for site, shape in shapes.items()
        if shape[0] > 1 and not {shape[0], shape[0] * shape[1]} & sizes and site not in state.chunks
    }


def _no_match(glob: str, state: CaptureState) -> str:
    """Return the message for a glob that matched nothing, with the reason if it is known."""
    stack, diagnostics, sites = state.stack, state.diagnostics, list(state.recorder.sites)
    if not stack.called:
        if stack.traced:
            why = (
                "inside the `with` block the model was only traced (torch.export, torch.jit, torch.func, fake or meta "
                "tensors), without numbers; call it with real tensors"
            )
        elif stack.called_elsewhere:
            why = (
                "the model was called in another thread, and a capture sees only the thread that opened it: open it "
                "in that thread, or call contextvars.copy_context().run(model, ...) there"
            )
        else:
            why = "the model was not called inside the `with` block; call model(...) there, not model.forward(...)"
        return f"nothing to match {glob!r}: {why}"
    if any(site.rpartition(".")[2] == "pattern" for site in sites) or not matches("any.pattern", glob):
        inputs = [site for path in stack.called if (site := stack.input_site(path)) is not None]
        return no_site(glob, sites, inputs) if sites else f"no site matches {glob!r}; this model has no parts"
    if diagnostics.skipped:
        site = _site_of_skipped("", state)
        more = f" (and {len(diagnostics.skipped) - 1} more modules)" if len(diagnostics.skipped) > 1 else ""
        return f"no site matches {glob!r}; in {site.rpartition('.')[0] or 'the model'}{more}, {_naming_hint(site)}"
    reasons = [f"not visible to a capture: {unseen}"] if (unseen := _unseen_parts(state)) else []
    reasons += (
        [f"a softmax was computed in {_joined(diagnostics.softmaxes)}, but its output was not multiplied with values"]
        if diagnostics.softmaxes
        else []
    )
    return (
        f"no site matches {glob!r}: the model ran, but no attention was seen in it"
        f"{''.join(f'; {reason}' for reason in reasons)}. If it calls its own kernel, register that with "
        f"look.register_attention_kernel(function); the map of linear attention is at '*.implicit'; the other sites "
        f"here are {', '.join(sites[:MAX_SITES_LISTED]) or 'none'}"
    )


def _unseen_parts(state: CaptureState) -> str:
    """Return the parts of a model that cannot be captured, with the reasons."""
    model = state.stack.model
    scripted = [path for path, part in model.named_modules() if isinstance(part, torch.jit.ScriptModule)]
    unseen = [f"{site or 'the model'} ({why})" for site, why in state.stack.unseen.items()]
    unseen += [f"{path} (TorchScript)" for path in scripted[:MAX_SITES_LISTED]]
    unseen += ["an exported graph"] if isinstance(model, torch.fx.GraphModule) else []
    return ", ".join(unseen)


def _modules_with_maps(state: CaptureState) -> list[str]:
    with_maps = state.recorder.sites
    return [site.removesuffix("pattern").removesuffix(".") for site in with_maps if matches(site, "*.pattern")]


def _modules_without_maps(state: CaptureState, with_maps: list[str]) -> list[str]:
    """Return the innermost modules that ran and gave no map although their class is named like attention."""
    modules = state.stack.modules
    named = [path for path in state.stack.called if ATTENTION_NAME.search(type(modules[path]).__name__)]
    inner = [path for path in named if not any(other != path and is_within(other, path) for other in named)]
    return [path for path in inner if not any(is_within(site, path) or is_within(path, site) for site in with_maps)]


def _reason(paths: list[str], state: CaptureState) -> str:
    """Return the modules that gave no maps, with the reason."""
    diagnostics, unseen = state.diagnostics, state.stack.unseen
    known = [f"{path or 'the model'}: {unseen[path]}" for path in paths if path in unseen]
    skipped = [site for path in paths if (site := _site_of_skipped(path, state))]
    if skipped:
        why = _naming_hint(skipped[0])
    elif all(any(is_within(inner, path) for inner in diagnostics.sampled) for path in paths):
        why = "deformable attention, whose weights belong to points in an image, not to keys"
    elif known:
        return ", ".join(known)
    elif any(is_within(inner, path) for path in paths for inner in diagnostics.softmaxes):
        why = "its softmax is not multiplied with values in an operation that PyTorch exposes"
    else:
        why = "no softmax over keys, or a kernel that PyTorch does not expose: see look.register_attention_kernel"
    return f"{_joined(paths)}: {why}"


def _site_of_skipped(path: str, state: CaptureState) -> str:
    """Return the site in a module whose weights were skipped because their rows do not sum to 1; "" if none."""
    module = next((inner for inner in state.diagnostics.skipped if is_within(inner, path)), None)
    return "" if module is None else f"{module}.pattern".removeprefix(".")


def _naming_hint(site: str) -> str:
    return (
        "their rows do not sum to 1, so `*` does not select them; name the site in full: "
        f"capture(model, {site!r}) takes them as they are"
    )


def _joined(paths: Iterable[str]) -> str:
    names = [path or "the model" for path in paths]
    return ", ".join(names[:MAX_MODULES_LISTED]) + (", ..." if len(names) > MAX_MODULES_LISTED else "")
