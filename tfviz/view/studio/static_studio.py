"""The static picture of a studio whose model is in the page: the text, all heads and the prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.eval_mode import eval_mode, weights_device
from tfviz.logits import sampling_probabilities
from tfviz.look import AttentionMaps, capture
from tfviz.shapes import Float
from tfviz.view.figures.selection import check_head
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.figures.text_studio import Prediction, StudioPicture
from tfviz.view.studio.strongest_head import HeadState

MAX_TOKENS = 128  # of a text whose heads are drawn
MAX_STATIC_TOKENS = 9  # of which next-token probabilities are drawn
MIN_BARS, TINY = 3, 0.001  # bars that are always drawn; a probability that is written as less than 0.1%


@torch.no_grad()
def text_maps(model: nn.Module, ids: Tensor, tokens: Sequence[str]) -> AttentionMaps | None:
    """Return the attention maps of one text; None if the text is long, or the layers have no maps of one shape.

    Args:
        model: takes ids [1, position].
        ids: the text, [1, position].
        tokens: a label for each position.
    """
    if ids.shape[1] > MAX_TOKENS:
        return None
    with eval_mode(model), capture(model, "*.pattern") as captured:
        model(ids.to(weights_device(model)))
    try:
        maps = AttentionMaps.from_capture(captured, query_tokens=tokens, invocations="last")
    except (LookupError, ValueError):
        return None
    return maps if maps.shape[2:] == (len(tokens), len(tokens)) else None


def token_texts(tokenizer: Any, ids: Tensor) -> list[str]:
    """Return the decoded text of each token, or its label if that text is empty."""
    return [
        tokenizer.decode(ids[position : position + 1]) or word for position, word in enumerate(tokenizer.tokens(ids))
    ]


def studio_picture(
    bars: StaticFigure,
    title: str,
    model: nn.Module,
    tokenizer: Any,
    ids: Tensor,
    chosen: HeadState,
    row: int | None,
    prediction: Prediction,
) -> StaticFigure:
    """Return a picture of the text, the heads and the prediction; `bars` if `text_maps` returns None.

    Args:
        bars: the picture of the prediction alone, whose summary is kept.
        title: the title.
        model: takes ids [1, position].
        tokenizer: gives a label and a text for each id.
        ids: the text, [1, position].
        chosen: the head whose weights shade the text.
        row: index of the query whose weights are shown; None: the mean over queries.
        prediction: what the model predicts.
    """
    maps = text_maps(model, ids, tokenizer.tokens(ids[0]))
    if maps is None:
        return bars
    check_head(maps, chosen["layer"], chosen["head"])
    probabilities = torch.stack(
        [*prediction.bars.values(), *([] if prediction.unfiltered is None else [prediction.unfiltered])]
    ).amax(0)
    kept = [
        position
        for position, probability in enumerate(probabilities.tolist())
        if position < MIN_BARS or probability >= TINY
    ]
    drawn = replace(
        prediction,
        names=[prediction.names[position] for position in kept],
        bars={name: bar[kept] for name, bar in prediction.bars.items()},
        unfiltered=None if prediction.unfiltered is None else prediction.unfiltered[kept],
    )
    text = token_texts(tokenizer, ids[0])
    static_figure = StudioPicture(title, maps, chosen["layer"], chosen["head"], row, text, drawn)
    return StaticFigure(static_figure.draw, bars.summary)


def predict_next(
    tokenizer: Any, logits: Float[Tensor, " vocab"], temperature: float, top_k: int | None, top_p: float | None
) -> Prediction:
    """Return the likeliest next tokens, with their probabilities before and after top-k and top-p.

    Args:
        tokenizer: gives a label for each id.
        logits: the logits of the next token.
        temperature: the temperature of sampling.
        top_k: number of tokens to keep; None: all.
        top_p: probability mass to keep; None: all.

    Raises:
        ValueError: the logits are not finite.
    """
    if not logits.max().isfinite():
        raise ValueError("the model's logits are not finite; check its weights")
    unfiltered = sampling_probabilities(logits, temperature)
    filtered = sampling_probabilities(logits, temperature, top_k, top_p)
    top = logits.sort(descending=True, stable=True).indices[:MAX_STATIC_TOKENS]
    filters = {"top-k": top_k, "top-p": top_p}
    names = [
        f"temperature {temperature:g}",
        *(f"{name} {value:g}" for name, value in filters.items() if value is not None),
    ]
    before = unfiltered[top] if len(names) > 1 else None
    tokens = tokenizer.tokens(top)
    unit = "letter" if all(len(token) == 1 for token in tokens) else "token"  # as in the page
    return Prediction(f"The next {unit}", tokens, {"": filtered[top]}, ", ".join(names), before)
