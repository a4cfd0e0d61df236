"""A view of a text with a number for each token, such as an attribution, a loss or an activation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from tfviz.look.map_arguments import axis_labels
from tfviz.shapes import Float
from tfviz.view.check_numbers import check_at_most, check_finite, check_positive
from tfviz.view.documents.charts import TokensDocument
from tfviz.view.figures.text import shaded_text
from tfviz.view.page.blobs import BlobStore
from tfviz.view.page.html import View
from tfviz.view.spec import Scale

MAX_TOKENS = 20_000


def tokens(
    tokens: Sequence[Any],
    numbers: Float[Tensor, "token"] | Sequence[float],
    title: str = "Tokens",
    *,
    unit: str = "",
    limit: float | None = None,
) -> View:
    """Show running text, each token shaded by its number, in two hues (blue and orange) if a number is negative.

    Args:
        tokens: the text of each token; other values are converted to strings.
        numbers: a number for each token, such as its loss, an attribution, or the activation of a neuron.
        title: the title above the text.
        unit: the unit of the numbers, such as "nats".
        limit: the end of the scale; None: the largest absolute number.

    Raises:
        ValueError: there are no numbers, or too many; they are not finite; there are not as many tokens as numbers.

    >>> print(tokens(["to", " be"], [0.5, -2.0], "Loss", unit="nats"))
    Loss
    2 tokens; strongest: ' be' −2, 'to' 0.5 nats
    """
    values = check_finite("numbers", numbers).float()
    if values.dim() != 1 or not len(values):
        raise ValueError(f"numbers are {list(values.shape)}; give one for each token")
    check_at_most(len(values), MAX_TOKENS, "tokens", "give a part of the text")
    check_positive("limit", limit)
    labels = axis_labels(tokens, len(values), "tokens", "tokens", "numbers")
    largest = limit or float(values.abs().max()) or 1.0
    scale = Scale("diverging" if bool((values < 0).any()) else "linear", largest)
    blobs = BlobStore()
    document: TokensDocument = {
        "kind": "tokens", "title": title, "tokens": labels, "data": blobs.add(values.numpy().tobytes()),
        "scale": scale.kind, "limit": scale.limit, "unit": unit, "state": {"token": int(values.abs().argmax())},
    }  # fmt: skip
    return View(shaded_text(labels, values.numpy(), scale, title, unit), document, blobs.data)
