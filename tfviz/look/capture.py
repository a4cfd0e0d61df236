"""Watch a forward pass: attention weights, scores, queries, keys, values and the output of any module.

A model knows nothing of this. While the `with` lasts, hooks tell which module is running, and a
`TorchFunctionMode` sees the attention calls it makes (`look.watch`). A fused kernel still computes the output; its
weights are recomputed beside it, only for the sites asked for. Afterwards nothing is left behind.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

import torch
from torch import Tensor, nn

from tfviz.doors import door
from tfviz.look.join import Firing
from tfviz.look.sites import Edit, matches
from tfviz.look.watch import Watch

LISTED = 40  # sites in an error message


class Seen(Mapping[str, Tensor]):
    """What was captured: site -> tensor, in the order of the computation.

    Where a site fired several times, as it does during generation, `seen[site]` is the last firing and
    `over_time(site)` has all of them.
    """

    def __init__(self, watch: Watch, model: str) -> None:
        self._watch, self.model = watch, model

    def __getitem__(self, site: str) -> Tensor:
        return self.over_time(site)[-1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._watch.kept)

    def __len__(self) -> int:
        return len(self._watch.kept)

    def __repr__(self) -> str:
        shapes = (f"  {site}: {' x '.join(map(str, tensor.shape))}" for site, tensor in self.items())
        return "\n".join([f"{len(self)} sites of {self.model}", *shapes])

    def over_time(self, site: str) -> list[Tensor]:
        """Every firing of a site, first to last; of patterns `AttentionMaps.over_time` makes one map."""
        return [tensor for tensor, _ in self.firings(site)]

    def allowed(self, site: str) -> Tensor | None:
        """For a pattern: True where the last firing's queries might look; None where they might look everywhere."""
        return self.firings(site)[-1][1]

    @door
    def firings(self, site: str) -> list[Firing]:
        """Every firing of a site, first to last, each with where the queries of a pattern might look."""
        if site not in self._watch.kept:
            raise KeyError(_missing(site, list(self)))
        return self._watch.kept[site]


@contextmanager
def capture(
    model: nn.Module,
    sites: str | Sequence[str] = "*.pattern",
    dtype: torch.dtype = torch.float32,
    edit: Mapping[str, Edit] | None = None,
) -> Iterator[Seen]:
    """Capture what `model` computes inside the `with`.

    A site is a module's dotted path and stands for its output. Below a module that computes attention stand
    `.pattern` (the weights, before dropout), `.scores` (after scale and mask), `.query`, `.key` and `.value`; the
    last three only where the attention is fused, since only then do they meet in one call.

    Args:
        sites: globs, such as `"*.pattern"` or `["decoder.*.cross.pattern", "decoder.0"]`.
        dtype: how patterns are kept: float32, float16, or uint8 (255 times the square root; `unpack` reverses it).
        edit: site or glob -> function; what it returns flows on in place of the tensor it is given.

    What the model gives, its gradients and its copies are what they are without; threads and tasks may each have a
    capture of their own. What could not be seen (nested tensors) is told by a warning.

    Raises:
        LookupError: at the end, if a glob matched nothing; lists the sites there are.
        ValueError: the model is TorchScript; an edit returns another shape, or lies under gradient checkpointing.

    >>> layer = nn.MultiheadAttention(6, 2, batch_first=True)
    >>> x = torch.randn(3, 5, 6)
    >>> with capture(layer) as seen:
    ...     _ = layer(x, x, x)
    >>> seen["pattern"].shape
    torch.Size([3, 2, 5, 5])
    """
    if dtype not in (torch.float32, torch.float16, torch.uint8):
        raise ValueError(f"dtype is {dtype}; patterns can be kept as torch.float32, torch.float16 or torch.uint8")
    plain = getattr(model, "_orig_mod", model)
    if isinstance(plain, torch.jit.ScriptModule):
        raise ValueError(
            f"{type(model).__name__} is scripted or traced (TorchScript): it runs outside Python, where nothing can be "
            "seen; capture the model that it was made of"
        )
    watch = Watch(plain, [sites] if isinstance(sites, str) else list(sites), dtype, dict(edit or {}))
    with watch.hooks():
        yield Seen(watch, type(model).__name__)
    for glob in [*watch.globs, *watch.edit]:
        if not any(matches(site, glob) for site in watch.fired):
            raise LookupError(_nothing(glob, watch))
    hidden = [f"{site} ({why})" for site, why in watch.unseen.items()]
    if hidden:
        warnings.warn(f"not all could be seen: {', '.join(hidden)}", stacklevel=3)


def _nothing(glob: str, watch: Watch) -> str:
    """Why a glob met nothing, as far as it is known."""
    if not watch.called:
        return (
            f"nothing to match {glob!r}: the model was not called inside the with; call model(...) there "
            "(model.forward(...), called directly, tells nobody)"
        )
    seen = list(watch.fired)
    if any(site.rpartition(".")[2] == "pattern" for site in seen) or not matches("any.pattern", glob):
        return _missing(glob, seen) if seen else f"no site matches {glob!r}; this model has none: it has no parts"
    scripted = [path for path, part in watch.model.named_modules() if isinstance(part, torch.jit.ScriptModule)]
    hidden = [f"{site or 'the model'} ({why})" for site, why in watch.unseen.items()]
    hidden += [f"{path} (TorchScript)" for path in scripted[:LISTED]]
    hidden += ["an exported graph"] if isinstance(watch.model, torch.fx.GraphModule) else []
    told = f"; hidden from view: {', '.join(hidden)}" if hidden else ""
    return (
        f"no site matches {glob!r}: the model was called, but none of its modules called a softmax over keys or an "
        f"attention that PyTorch shows{told}; its other sites are {', '.join(seen[:LISTED]) or 'none'}"
    )


def _missing(glob: str, sites: list[str]) -> str:
    """A message that says which sites there are, those of the kind that was probably meant first."""
    kinds = {site.rpartition(".")[2] for site in sites}
    near = get_close_matches(glob.rpartition(".")[2], kinds, n=1) or (["pattern"] if "pattern" in kinds else kinds)
    listed = [site for site in sites if site.rpartition(".")[2] in near]
    more = f", and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    return f"no site matches {glob!r}; this model has {len(listed)}: {', '.join(listed[:LISTED])}{more}"
