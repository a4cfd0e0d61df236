"""The static picture of a studio whose model is in the page: the text, all heads and the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tfviz.eval_mode import eval_mode
from tfviz.look import AttentionMaps, capture
from tfviz.view.figures.picture import Picture
from tfviz.view.figures.selection import check_head
from tfviz.view.figures.studio import StudioPicture
from tfviz.view.studio.strongest_head import HeadState

MAX_TOKENS = 128  # of a text whose heads are drawn
MIN_BARS, TINY = 3, 0.001  # bars that are always drawn; a probability that is written as less than 0.1 %


@torch.no_grad()
def text_maps(model: nn.Module, ids: Tensor, words: Sequence[str]) -> AttentionMaps | None:
    """Return the heads of a model that reads one text; None where they have no common map, or the text is long.

    Args:
        model: takes ids.
        ids: [1, position].
        words: a word for each position.
    """
    if ids.shape[1] > MAX_TOKENS:
        return None
    with eval_mode(model), capture(model, "*.pattern") as captured:
        model(ids.to(next(model.parameters()).device))
    try:
        maps = AttentionMaps.from_capture(captured, query_tokens=words, invocations="last")
    except (LookupError, ValueError):
        return None
    return maps if maps.weights.shape[2:] == (len(words), len(words)) else None


def token_texts(tokenizer: Any, ids: Tensor) -> list[str]:
    """Return the text of each token, and for one without a text its word."""
    return [
        tokenizer.decode(ids[position : position + 1]) or word for position, word in enumerate(tokenizer.tokens(ids))
    ]


@dataclass(frozen=True)
class Answer:
    """What the model says.

    Attributes:
        question: what it answers.
        names: words or labels.
        bars: title -> a probability for each name.
        settings: how they are computed, such as "temperature 0.8".
        unfiltered: the probabilities before top-k or top-p, for each name; None: all tokens are kept.
        effects: what each token adds to the first name, in log-odds; None: not measured.
    """

    question: str
    names: Sequence[str]
    bars: Mapping[str, Tensor]
    settings: str = ""
    unfiltered: Tensor | None = None
    effects: Tensor | None = None


def with_heads(
    bars: Picture,
    title: str,
    model: nn.Module,
    tokenizer: Any,
    ids: Tensor,
    chosen: HeadState,
    row: int | None,
    answer: Answer,
) -> Picture:
    """Return a picture of the text, the heads and the answer; where the heads have no common map, of the answer alone.

    Args:
        bars: the picture of the answer alone, whose summary both have.
        title: the title.
        model: takes ids.
        tokenizer: has a word for each id.
        ids: the text, [1, position].
        chosen: the head that shades the text.
        row: the position that looks; None: the mean of all.
        answer: what the model says.
    """
    maps = text_maps(model, ids, tokenizer.tokens(ids[0]))
    if maps is None:
        return bars
    check_head(maps, chosen["layer"], chosen["head"])
    shares = torch.stack([*answer.bars.values(), *([] if answer.unfiltered is None else [answer.unfiltered])]).amax(0)
    kept = [position for position, share in enumerate(shares.tolist()) if position < MIN_BARS or share >= TINY]
    names, bars_kept = (
        [answer.names[position] for position in kept],
        {name: bar[kept] for name, bar in answer.bars.items()},
    )
    text = token_texts(tokenizer, ids[0])
    unfiltered = None if answer.unfiltered is None else answer.unfiltered[kept]
    head = chosen["layer"], chosen["head"]
    picture = StudioPicture(
        title, maps, *head, row, text, names, bars_kept, answer.question,
        settings=answer.settings, unfiltered=unfiltered, effects=answer.effects, answer=answer.names[0],
    )  # fmt: skip
    return Picture(picture.draw, bars.summary)
