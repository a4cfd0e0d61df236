"""`view.classify`, the studio of a text classifier: its prediction, and the contribution of each word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from tfviz.eval_mode import eval_mode, weights_device
from tfviz.logits import extract_logits
from tfviz.view.documents.studio_base import SpecialTokens
from tfviz.view.documents.studios import ClassifyDocument
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.figures.text_studio import Prediction
from tfviz.view.page.heads import MAX_PAGE_BYTES
from tfviz.view.page.html import View
from tfviz.view.studio import requirements
from tfviz.view.studio.build import STUDIO_STATE, examples_spec, probability_picture, studio_view, studio_widget
from tfviz.view.studio.check_labels import check_label_logits, check_labels
from tfviz.view.studio.static_studio import MAX_TOKENS, studio_picture
from tfviz.view.studio.strongest_head import strongest_head

if TYPE_CHECKING:
    from tfviz.view.studio.widget import ModelWidget, Request
MAX_STATIC_LABELS = 8  # in the static picture
PREDICTED_LABEL = -3  # instead of the index of a label; the scripts know also -1 (none) and -2 (the chosen head)
# what `examples` can set
STATE_KEYS = ("text", "deleted", "replaced", "label", "ablated_heads", "layer", "head")


def classify(
    model: nn.Module,
    tokenizer: Any,
    labels: Sequence[str],
    text: str,
    title: str = "Which words make it say so?",
    *,
    bos: int | None = None,
    eos: int | None = None,
    dtype: str = "float16",
    max_bytes: float | None = MAX_PAGE_BYTES,
    kernel: bool = False,
    examples: Mapping[str, Mapping[str, Any]] | None = None,
    head: tuple[int, int] | None = None,
) -> View | ModelWidget:
    """Explore a classifier: type a text, replace words, see each word's contribution, switch heads off.

    The model is embedded in the page and runs there.

    Args:
        model: returns logits [batch, label] for ids [batch, position], as `models.Classifier` does, or an object that
            has them as `.logits`.
        tokenizer: one of `tfviz.text`, or a fast tokenizer of transformers; see `write`.
        labels: names of the labels, in the order of the logits. Words are shaded by their contribution to the predicted
            label.
        text: the text shown first.
        title: the title.
        bos: the id that every text begins with, such as `tokenizer["[CLS]"]`; see `text.add_special_tokens`.
        eos: the id that every text ends with.
        dtype: storage format of the weights: "float32", "float16", or "int8".
        max_bytes: maximum size of the model in the page as base64, in bytes; None: no limit.
        kernel: whether the model stays in Python and answers while the notebook's kernel runs, for models that are too
            large for a page. Without its kernel, the page shows the heads of the last text.
        examples: experiments shown as buttons above the view: name -> the state that it sets, such as
            `{"Not bad": {"text": "the plot was not bad"}}`.
        head: (layer, head) that is selected first; None: the head whose ablation changes the probabilities most.

    Raises:
        TypeError: a page cannot encode with an object such as `tokenizer`.
        ValueError: the model cannot be exported (the message gives the reason) or exceeds `max_bytes`; the text is
            empty or too long; labels and logits differ in number.
    """
    check_labels(labels)
    tokenizer, tokenizer_spec = requirements.read_tokenizer(tokenizer, kernel)
    special_tokens: SpecialTokens = {
        "prefix_id": requirements.check_id(tokenizer, "bos", bos),
        "suffix_id": requirements.check_id(tokenizer, "eos", eos),
    }
    program, context, ids, logits = requirements.run_first_text(
        model, tokenizer, tokenizer.encode(text), special_tokens, None if kernel else dtype
    )
    check_label_logits(labels, logits, "text")
    opened = strongest_head(model, ids, extract_logits) if head is None else {"layer": head[0], "head": head[1]}
    document: ClassifyDocument = {
        "kind": "classify", "title": title, "examples": examples_spec(examples, STATE_KEYS),
        "tokenizers": [tokenizer_spec], "labels": list(labels), "context": context,
        "special_tokens": special_tokens,
        "state": {**STUDIO_STATE, **opened, "text": text, "deleted": [], "replaced": [], "label": PREDICTED_LABEL},
    }  # fmt: skip
    if not kernel:
        bars = _probabilities(labels, logits, title, text)
        probabilities = logits[0].float().softmax(-1)
        order = probabilities.argsort(descending=True)[:MAX_STATIC_LABELS]
        subject = 1 if len(labels) == 2 else int(order[0])  # as in the page: of two labels the second
        effects = _effects(model, ids, special_tokens, subject)
        names, bars_of = [labels[label] for label in order.tolist()], {"": probabilities[order]}
        prediction = Prediction("What it says", names, bars_of, effects=effects, subject=labels[subject])
        static_figure = studio_picture(bars, title, model, tokenizer, ids, opened, None, prediction)
        return studio_view(document, static_figure, {"read": program}, max_bytes)

    def draw_static(request: Request, outputs: Mapping[str, Tensor]) -> StaticFigure:
        return _probabilities(labels, outputs["logits"], title, tokenizer.decode(request.inputs[0][0]))

    axis_tokens = requirements.text_axes(tokenizer)
    return studio_widget(document, {"read": program}, {"read": [ids]}, draw_static, axis_tokens, [tokenizer])


@torch.no_grad()
def _effects(model: nn.Module, ids: Tensor, special: SpecialTokens, label: int) -> Tensor | None:
    """Return the decrease in a label's log-odds when each token is deleted, [position]; None if it cannot be drawn."""
    first, last = int(special["prefix_id"] is not None), ids.shape[1] - int(special["suffix_id"] is not None)
    if ids.shape[1] > MAX_TOKENS or last - first < 2:
        return None

    def log_odds(text: Tensor) -> Tensor:
        logits = extract_logits(model(text.to(weights_device(model))))[0].float().cpu()
        return logits[label] - logits[torch.arange(len(logits)) != label].logsumexp(0)

    effects = torch.zeros(ids.shape[1])
    with eval_mode(model):
        whole = log_odds(ids)
        for position in range(first, last):
            effects[position] = whole - log_odds(torch.cat([ids[:, :position], ids[:, position + 1 :]], 1))
    return effects if bool(effects.isfinite().all()) else None


def _probabilities(labels: Sequence[str], logits: Tensor, title: str, text: str) -> StaticFigure:
    return probability_picture(labels, {"probability": logits[0].float().softmax(-1)}, title, text)
