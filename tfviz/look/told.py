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
    several = [site for site in several if site not in watch.pieces]  # blocks of one text
    found = [f"{len(several)} fired more than once"] if several else []
    dropped = [site for site in watch.kept if site in watch.dropped]
    found += [f"{len(dropped)} in training, under dropout, which the maps leave out"] if dropped else []
    fast = list(getattr(watch, "fast", {}))
    if fast:
        found.append(f"{len(fast)} read a mask of numbers as PyTorch's fast path does, which forbids what is not 0")
    found += [f"{len(silent)} gave none ({_some(silent, watch)})"] if silent else []
    if watch.unnormalized:
        found.append(
            f"{len(watch.unnormalized)} with rows that need not add up to 1 ({_listed([*watch.unnormalized])})"
        )
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
    uneven = [site for path in paths if (site := _unnormalized(path, watch))]
    if uneven:
        return f"{_listed(paths)}: {_as_named(uneven[0])}"
    if all(any(_within(inner, path) for inner in watch.sampled) for path in paths):
        return f"{_listed(paths)}: deformable attention, whose weights are of points in a picture, not of keys"
    called = [path for path in paths if any(_within(inner, path) for inner in watch.softmaxes)]
    why = "no softmax over keys, or a kernel that PyTorch does not show: see look.attention"
    if called:
        why = "its softmax met no values in a product that PyTorch shows"
    return ", ".join(known) or f"{_listed(paths)}: {why}"


def _unnormalized(path: str, watch: Written) -> str:
    """The site in a module where weights met values whose rows do not add up to 1; empty: there is none."""
    found = next((inner for inner in watch.skipped if _within(inner, path)), None)
    return "" if found is None else f"{found}.pattern".removeprefix(".")


def _as_named(site: str) -> str:
    return (
        "weights met values, but their rows do not add up to 1, so that a star does not mean them: "
        f"capture(model, {site!r}) takes them as they are"
    )


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
    for glob in watch.axes:
        if not any(matches(site, glob) for site in watch.fired):
            raise LookupError(f"axes: {missing(glob, list(watch.fired))}")
    added = [path for path, module in watch.model.named_modules() if id(module) not in watch.paths]
    if added:
        warnings.warn(f"{_listed(added)} came into the model inside the with, and was not seen", stacklevel=4)
    if watch.grad and watch.ungraded:
        warnings.warn("grad=True, and the model ran without gradients (torch.no_grad): there are none", stacklevel=4)
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
    if not watch.called and watch.traced:
        return (
            f"nothing to match {glob!r}: inside the with the model was only traced (torch.export, torch.jit, fake "
            "or meta tensors), where no numbers flow; call it with tensors that hold some"
        )
    if not watch.called and watch.elsewhere:
        return (
            f"nothing to match {glob!r}: the model was called in another thread, and a capture sees only its own and "
            "those that a forward starts: open it in that thread, or call contextvars.copy_context().run(model, ...) "
            "there"
        )
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
    if watch.skipped:
        site = _unnormalized("", watch)
        more = f" (and {len(watch.skipped) - 1} more modules)" if len(watch.skipped) > 1 else ""
        return f"no site matches {glob!r}; in {site.rpartition('.')[0] or 'the model'}{more}, {_as_named(site)}"
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
    if not sites:
        return f"there is no site {glob!r} yet: the model has not been called inside the with"
    kinds = {site.rpartition(".")[2] for site in sites}
    near = get_close_matches(glob.rpartition(".")[2], kinds, n=1) or (["pattern"] if "pattern" in kinds else kinds)
    listed = [site for site in sites if site.rpartition(".")[2] in near]
    more = f", and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    return f"no site matches {glob!r}; this model has {len(listed)}: {', '.join(listed[:LISTED])}{more}"
