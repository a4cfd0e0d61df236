"""Head ablation: the change of a measure when a head's attention weights are set to zero."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isclose, isfinite

import torch
from torch import Tensor, nn

from tfviz.look.capture import capture
from tfviz.look.edits import ZeroHeads, zero
from tfviz.shapes import Bool, Float
from tfviz.validation import check_callable


def ablate(
    model: nn.Module, measure: Callable[[], float], sites: str = "*.pattern"
) -> dict[str, Float[Tensor, "head"]]:
    """Return the increase of `measure` when each head is ablated, as a tensor [head] for each site.

    Heads are ablated one at a time, so two redundant heads can both appear unimportant (Michel et al. 2019, section
    3.2).

    Args:
        model: the model whose heads are ablated.
        measure: a function without arguments that runs the model and returns a number, such as
            `lambda: learn.evaluate.loss(model, batches)`.
        sites: glob of the patterns to ablate.

    Raises:
        LookupError: no site matches, and the message lists the available sites; or `measure` does not call the model.
        TypeError: `measure` takes arguments, or does not return a number.
        ValueError: a site is not a pattern; `measure` returns NaN or infinity.

    >>> layer = nn.MultiheadAttention(6, 2, batch_first=True)
    >>> x = torch.ones(1, 5, 6)
    >>> {site: worth.shape for site, worth in ablate(layer, lambda: layer(x, x, x)[0].sum().item()).items()}
    {'pattern': torch.Size([2])}
    """
    check_callable(measure=measure)
    counter = _CountHeads()
    with _naming_measure(), capture(model, [], edit={sites: counter}):
        unablated = _check_number(measure())
        repeated = _check_number(measure()) if any(part.training for part in model.modules()) else unablated
    if not isclose(unablated, repeated, rel_tol=1e-3, abs_tol=1e-6):
        warnings.warn(
            f"measure returns {unablated:.4g} and {repeated:.4g} for the same model, so the effect of a head would be "
            f"noise; call model.eval()",
            stacklevel=2,
        )
    others = [site for site in counter.heads if site.rpartition(".")[2] != "pattern"]
    if others:
        raise ValueError(f"{', '.join(others)}: heads are ablated at patterns; give a glob that ends in pattern")
    return {
        site: torch.tensor([_measure_without_head(model, measure, site, head) - unablated for head in range(heads)])
        for site, heads in counter.heads.items()
    }


class _CountHeads(ZeroHeads):
    """An edit that changes nothing and records the number of heads of each site."""

    changes_weights = False  # `ablate` checks the sites itself

    def __init__(self) -> None:
        super().__init__()
        self.heads: dict[str, int] = {}

    def zeroed_mask(self, heads: int, site: str) -> Bool[Tensor, "head"]:
        self.heads[site] = heads
        return torch.zeros(heads, dtype=torch.bool)

    def __call__(self, weights: Tensor, site: str) -> Tensor:  # type: ignore[override]
        self.heads[site] = weights.shape[1] if weights.dim() > 1 else 0
        return weights


@contextmanager
def _naming_measure() -> Iterator[None]:
    """Re-raise the error that the model was not called as an error about `measure`."""
    try:
        yield
    except LookupError as error:
        if "was not called inside the `with` block" not in str(error):
            raise
        raise LookupError("measure does not call the model; it must, each time it is called") from error


def _measure_without_head(model: nn.Module, measure: Callable[[], float], site: str, head: int) -> float:
    with capture(model, [], edit={site: zero(head)}):
        return _check_number(measure())


def _check_number(measured: object) -> float:
    try:
        if isinstance(measured, str | bytes):
            raise TypeError
        number = float(measured)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise TypeError(f"measure returns a {type(measured).__name__}; it must return one number") from error
    if not isfinite(number):
        raise ValueError(f"measure returns {number}; the effect of a head cannot be computed from it")
    return number
