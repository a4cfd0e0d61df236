"""Replacement activations for patching: from another run, zeros, means, other texts, or a mapping."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from tfviz.look.activation_edits import check_unambiguous_broadcast
from tfviz.shapes import Bool, Float
from tfviz.study.inputs import marked_like

Means = Mapping[str, Tensor]  # site -> custom activation
TITLES = {
    "clean": "Change when the clean run's activations are put into the corrupt run",
    "corrupt": "Change when the corrupt run's activations are put into the clean run",
    "zero": "Change when zeros are put into the clean run",
    "mean": "Change when means over the batch are put into the clean run",
    "resample": "Change when other texts' activations are put into the clean run",
    "gradient": "Change when the clean run's activations are put into the corrupt run, estimated by gradient",
}
CUSTOM_TITLE = "Change when other activations are put into the clean run"


def replacement(
    site: str,
    activations: dict[str, dict[str, Tensor]],
    source: str,
    seed: int,
    means: Means,
    tokens: Bool[Tensor, "batch position"],
) -> Tensor:
    """Return the activation that replaces a site's own, [batch, (head,) position, dim].

    For "gradient" this is the clean activation, as for "clean": nothing is run with it, but `Sweep.estimate` multiplies
    its difference from the corrupt run's with the gradient.

    Args:
        site: the name of the site.
        activations: "clean" and "corrupt" -> site -> [batch, (head,) position, dim].
        source: the kind of replacement, as for `patch`, or "custom" for those of `means`.
        seed: the seed of the choice of other texts.
        means: site -> custom activation.
        tokens: [batch, position], True at tokens; means leave out padding.

    Raises:
        ValueError: `source` is "resample", and a text has padding; `means` has no activation of a fitting shape.
    """
    if source in ("clean", "corrupt"):
        return activations[source][site]
    clean = activations["clean"][site]
    if source == "custom":
        return _custom_replacement(site, means, clean)
    if source == "zero":
        return clean.new_zeros(()).expand(clean.shape)
    if source == "mean":
        return _mean_of_tokens(clean, tokens)
    if source == "resample":
        if not bool(tokens.all()):
            raise ValueError(
                f"source='resample' would put activations of padding in place of tokens at {site}: give texts of "
                f"equally many tokens, or take source='mean', which leaves padding out"
            )
        shift = int(torch.randint(1, len(clean), (), generator=torch.Generator().manual_seed(seed)))
        return clean.roll(shift, 0)
    return clean  # "gradient"


def _mean_of_tokens(
    activation: Float[Tensor, "batch *head position dim"], tokens: Bool[Tensor, "batch position"]
) -> Float[Tensor, "batch *head position dim"]:
    """Return the mean over the texts at each position, without padding; where all is padding, the activation itself."""
    marks = marked_like(activation, tokens)
    counts = marks.sum(0, keepdim=True)
    sums = torch.where(marks, activation.float(), 0.0).sum(0, keepdim=True)
    return torch.where(counts > 0, sums / counts.clamp(min=1), activation.float()).to(activation.dtype)


def _custom_replacement(site: str, means: Means, like: Tensor) -> Tensor:
    """Return a custom activation for a site, broadcast to the shape of the site's own.

    Raises:
        ValueError: the mapping has none for the site; its shape does not broadcast, or does so in two ways.
    """
    if site not in means:
        raise ValueError(f"source has no activation for {site}; it has {', '.join(list(means)[:6]) or 'nothing'}")
    check_unambiguous_broadcast("source", means[site], like)
    try:
        return means[site].to(like).expand(like.shape)
    except RuntimeError as error:
        raise ValueError(
            f"source gives {list(means[site].shape)} for {site}, which is {list(like.shape)}; give a tensor that "
            f"broadcasts to it"
        ) from error
