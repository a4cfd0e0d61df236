"""What a head is worth: take it away and see."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isclose, isfinite

import torch
from torch import Tensor, nn

from tfviz.doors import takes
from tfviz.look.capture import capture
from tfviz.look.edits import ZeroHeads, zero
from tfviz.shapes import Bool, Float


def ablate(
    model: nn.Module, measure: Callable[[], float], sites: str = "*.pattern"
) -> dict[str, Float[Tensor, "head"]]:
    """For each head of each site, how much more `measure` gives while the head gives nothing.

    A head of fused attention is taken away by its output; no map is made of it. Each is measured alone: two heads that
    do the same can both seem worthless (Michel et al. 2019, section 3.2). The model stays as it is.

    Args:
        measure: runs the model and returns a number, such as `lambda: learn.evaluate.loss(model, batches)`.
        sites: glob of the patterns to take away, in the order of the computation.

    Raises:
        LookupError: no site matches; lists what there is.
        TypeError: `measure` asks for arguments, or gives no number.
        ValueError: a site is no pattern; `measure` gives NaN or infinity.

    >>> layer = nn.MultiheadAttention(6, 2, batch_first=True)
    >>> x = torch.ones(1, 5, 6)
    >>> {site: worth.shape for site, worth in ablate(layer, lambda: layer(x, x, x)[0].sum().item()).items()}
    {'pattern': torch.Size([2])}
    """
    takes(measure=measure)
    counted = _Counted()
    with _asked(), capture(model, [], edit={sites: counted}):
        whole = _number(measure())
        again = _number(measure()) if any(part.training for part in model.modules()) else whole
    if not isclose(whole, again, rel_tol=1e-3, abs_tol=1e-6):
        warnings.warn(
            f"measure gives {whole:.4g} and {again:.4g} of the same model, so what a head is worth is noise: call "
            "model.eval()",
            stacklevel=2,
        )
    wrong = [site for site in counted.heads if site.rpartition(".")[2] != "pattern"]
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: heads are taken away at patterns; give a glob that ends in pattern")
    return {
        site: torch.tensor([_alone(model, measure, site, head) - whole for head in range(heads)])
        for site, heads in counted.heads.items()
    }


class _Counted(ZeroHeads):
    """Takes nothing away; learns which sites there are, and how many heads each has."""

    of_weights = False  # `ablate` tells of other sites itself

    def __init__(self) -> None:
        self.heads: dict[str, int] = {}

    def off(self, heads: int, site: str) -> Bool[Tensor, "head"]:
        self.heads[site] = heads
        return torch.zeros(heads, dtype=torch.bool)

    def __call__(self, weights: Tensor, site: str) -> Tensor:  # type: ignore[override]
        self.heads[site] = weights.shape[1] if weights.dim() > 1 else 0
        return weights


@contextmanager
def _asked() -> Iterator[None]:
    """A measure that does not call the model is told as that."""
    try:
        yield
    except LookupError as error:
        if "was not called inside the with" not in str(error):
            raise
        raise LookupError("measure does not call the model; it must, each time it is asked") from error


def _alone(model: nn.Module, measure: Callable[[], float], site: str, head: int) -> float:
    with capture(model, [], edit={site: zero(head)}):
        return _number(measure())


def _number(measured: object) -> float:
    try:
        if isinstance(measured, str | bytes):
            raise TypeError
        number = float(measured)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise TypeError(f"measure gives a {type(measured).__name__}; it must give one number") from error
    if not isfinite(number):
        raise ValueError(f"measure gives {number}; what a head is worth cannot be told from it")
    return number
