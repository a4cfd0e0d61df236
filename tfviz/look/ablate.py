"""What a head is worth: take it away and see."""

from collections.abc import Callable
from functools import partial
from math import isfinite

import torch
from torch import Tensor, nn

from tfviz.doors import takes
from tfviz.look.capture import capture
from tfviz.shapes import Float


def ablate(
    model: nn.Module, measure: Callable[[], float], sites: str = "*.pattern"
) -> dict[str, Float[Tensor, "head"]]:
    """For each head of each site, how much more `measure` gives while the head gives nothing.

    Each is measured alone: two heads that do the same can both seem worthless (Michel et al. 2019, section 3.2). The
    model stays as it is.

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
    with capture(model, sites, dtype=torch.uint8) as seen:  # the smallest: only the shapes are wanted
        whole = _number(measure())
    wrong = [site for site in seen if site.rpartition(".")[2] != "pattern"]
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: heads are taken away at patterns; give a glob that ends in pattern")
    return {
        site: torch.tensor([_alone(model, measure, site, head) - whole for head in range(pattern.shape[1])])
        for site, pattern in seen.items()
    }


def _alone(model: nn.Module, measure: Callable[[], float], site: str, head: int) -> float:
    with capture(model, [], edit={site: partial(_emptied, head)}):
        return _number(measure())


def _number(measured: object) -> float:
    try:
        number = float(measured)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"measure gives a {type(measured).__name__}; it must give one number") from error
    if not isfinite(number):
        raise ValueError(f"measure gives {number}; what a head is worth cannot be told from it")
    return number


def _emptied(head: int, pattern: Float[Tensor, "batch head query key"]) -> Float[Tensor, "batch head query key"]:
    return pattern.index_fill(1, torch.tensor(head, device=pattern.device), 0.0)
