"""What a capture has to say: what it saw, what it may have missed, and why a glob met nothing."""

from __future__ import annotations

import re
import warnings
from difflib import get_close_matches

import torch

from tfviz.look.sites import matches
from tfviz.look.written import Written

LISTED = 40  # sites in a message
NAMED = 5  # modules in a line
ATTENTION = re.compile(r"attention|attn|multihead", re.IGNORECASE)


def line(watch: Written) -> str:
    """One line: how many modules are attention or look like it, how many gave maps, what is to be known of them."""
    fired = [site.removesuffix("pattern").removesuffix(".") for site in watch.fired if matches(site, "*.pattern")]
    count = len(fired) + len(_silent(watch, fired))
    parts = [f"{_count(count, 'module')} look{'s' * (count == 1)} like attention", f"{len(fired)} gave maps"]
    return ", ".join([*parts, *doubts(watch, fired)])


def doubts(watch: Written, fired: list[str] | None = None) -> list[str]:
    """What is to be known of what a capture saw."""
    if fired is None:
        fired = [site.removesuffix("pattern").removesuffix(".") for site in watch.fired if matches(site, "*.pattern")]
    silent = _silent(watch, fired)
    several = [site for site, firings in watch.kept.items() if matches(site, "*.pattern") and len(firings) > 1]
    found = [f"{len(several)} fired more than once"] if several else []
    found += [f"{len(silent)} gave none ({_some(silent, watch)})"] if silent else []
    found += (
        [f"{len(watch.channels)} of channels, not of words ({_listed(list(watch.channels))})"] if watch.channels else []
    )
    return found


def _silent(watch: Written, fired: list[str]) -> list[str]:
    """The innermost modules that are called as attention is, and gave no map."""
    named = [path for path in watch.ran if ATTENTION.search(type(watch.parts[path]).__name__)]
    inner = [path for path in named if not any(other != path and _within(other, path) for other in named)]
    return [path for path in inner if not any(_within(site, path) or _within(path, site) for site in fired)]


def _within(path: str, whole: str) -> bool:
    return path == whole or path.startswith(f"{whole}.") or not whole


def _some(paths: list[str], watch: Written) -> str:
    """Paths, and what may hide what is in them."""
    known = [f"{path or 'the model'}: {watch.unseen[path]}" for path in paths if path in watch.unseen]
    called = [path for path in paths if any(_within(inner, path) for inner in watch.softmaxes)]
    why = "no softmax over keys, or a kernel that PyTorch does not show: see look.attention"
    if called:
        why = "its softmax met no values in a product that PyTorch shows"
    return ", ".join(known) or f"{_listed(paths)}: {why}"


def _listed(paths: list[str]) -> str:
    return ", ".join(path or "the model" for path in paths[:NAMED]) + (", ..." if len(paths) > NAMED else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def check(watch: Written, folded: dict[str, int]) -> None:
    """What is said at the end of a capture.

    Args:
        folded: sites whose batch is not the model's, and their batch.

    Raises:
        LookupError: a glob met nothing.
    """
    for glob in [*watch.globs, *watch.edit]:
        if not any(matches(site, glob) for site in watch.fired):
            raise LookupError(_nothing(glob, watch))
    hidden = [f"{site} ({why})" for site, why in watch.unseen.items()]
    if hidden:
        warnings.warn(f"not all could be seen: {', '.join(hidden)}", stacklevel=4)
    if watch.channels:
        warnings.warn(
            f"these weights mix channels, not words: {_listed(list(watch.channels))}; their rows are no queries",
            stacklevel=4,
        )
    alone = {site: size for site, size in watch.alone.items() if size > 1 and size not in watch.sizes}
    doubtful = [f"{site} ({size})" for site, size in {**alone, **folded}.items()]
    if doubtful and watch.sizes:
        warnings.warn(
            f"weights that may be of several heads or windows are shown as texts of a batch: "
            f"{', '.join(doubtful[:LISTED])}; say what their axes are, as in capture(model, axes='(b h=8) q k')",
            stacklevel=4,
        )


def _nothing(glob: str, watch: Written) -> str:
    """Why a glob met nothing, as far as it is known."""
    if not watch.called:
        return (
            f"nothing to match {glob!r}: the model was not called inside the with; call model(...) there "
            "(model.forward(...), called directly, tells nobody)"
        )
    seen = list(watch.fired)
    if any(site.rpartition(".")[2] == "pattern" for site in seen) or not matches("any.pattern", glob):
        return missing(glob, seen) if seen else f"no site matches {glob!r}; this model has none: it has no parts"
    scripted = [path for path, part in watch.model.named_modules() if isinstance(part, torch.jit.ScriptModule)]
    hidden = [f"{site or 'the model'} ({why})" for site, why in watch.unseen.items()]
    hidden += [f"{path} (TorchScript)" for path in scripted[:LISTED]]
    hidden += ["an exported graph"] if isinstance(watch.model, torch.fx.GraphModule) else []
    told = f"; hidden from view: {', '.join(hidden)}" if hidden else ""
    alone = [path or "the model" for path in watch.softmaxes]
    told += f"; a softmax was called in {', '.join(alone[:NAMED])}, but met no values" if alone else ""
    return (
        f"no site matches {glob!r}: the model was called, but nothing met values in a product over keys, nor was "
        "there an attention that PyTorch shows (kernels of others are none, unless look.attention knows them; what "
        f"linear attention comes to is '*.implicit'){told}; "
        f"its other sites are {', '.join(seen[:LISTED]) or 'none'}"
    )


def missing(glob: str, sites: list[str]) -> str:
    """A message that says which sites there are, those of the kind that was probably meant first."""
    kinds = {site.rpartition(".")[2] for site in sites}
    near = get_close_matches(glob.rpartition(".")[2], kinds, n=1) or (["pattern"] if "pattern" in kinds else kinds)
    listed = [site for site in sites if site.rpartition(".")[2] in near]
    more = f", and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    return f"no site matches {glob!r}; this model has {len(listed)}: {', '.join(listed[:LISTED])}{more}"
