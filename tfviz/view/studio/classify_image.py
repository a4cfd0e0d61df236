"""`view.classify_image`, the studio of a vision transformer: its prediction, and the effect of patches and heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from PIL import Image
from torch import Tensor, nn

from tfviz.checks import at_least
from tfviz.logits import extract_logits
from tfviz.portable.program import Program
from tfviz.view.documents.studios import ClassifyImageDocument
from tfviz.view.figures.classified_image import classified_image
from tfviz.view.figures.images import read_image
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.page.heads import MAX_PAGE_BYTES
from tfviz.view.page.html import View
from tfviz.view.page.images import image_spec, patches_spec
from tfviz.view.studio.build import STUDIO_STATE, examples_spec, studio_view, studio_widget
from tfviz.view.studio.check_labels import check_label_logits, check_labels
from tfviz.view.studio.image_requirements import check_pixels, image_program, patched_pixels
from tfviz.view.studio.strongest_head import strongest_head

if TYPE_CHECKING:
    from tfviz.view.studio.widget import ModelWidget, Request
# what `examples` can set
STATE_KEYS = ("hidden_patches", "label", "shade", "ablated_heads", "layer", "head")
ASPECT_TOLERANCE = 0.02  # relative difference of two aspect ratios that count as equal


def classify_image(
    model: nn.Module,
    pixels: Tensor,
    labels: Sequence[str],
    title: str = "What does it see?",
    *,
    image: Any = None,
    grid: tuple[int, int] | None = None,
    dtype: str = "float16",
    max_bytes: float | None = MAX_PAGE_BYTES,
    kernel: bool = False,
    examples: Mapping[str, Mapping[str, Any]] | None = None,
) -> View | ModelWidget:
    """Explore a vision transformer: hide patches, see where heads look, switch heads off.

    The model is embedded in the page with the picture, and runs there. An example with Hugging Face:

        pixels = processor(photo, return_tensors="pt").pixel_values
        view.classify_image(model, pixels, list(model.config.id2label.values()), image=photo)

    Args:
        model: returns logits [batch, label] for pixels [batch, channel, height, width], or an object that has them as
            `.logits`; all of its patches attend to each other, as in `ViTForImageClassification`, with or without a
            class token and registers.
        pixels: one preprocessed picture, [channel, height, width] or [1, channel, height, width]. A hidden patch is
            filled with the mean of each channel over the picture.
        labels: names of the labels, in the order of the logits.
        title: the title.
        image: the picture to draw, cropped in the same way; None: the pixels, rescaled. See `view.image`.
        grid: rows and columns of patches; None: those of square patches.
        dtype: storage format of weights and pixels: "float32", "float16", or "int8".
        max_bytes: maximum size of model and pixels in the page as base64, in bytes; None: no limit.
        kernel: whether the model stays in Python and answers while the notebook's kernel runs, for models that are too
            large for a page. Without its kernel, the page shows the heads of the last request.
        examples: experiments shown as buttons above the view: name -> the state that it sets, such as
            `{"No sky": {"hidden_patches": [0, 1, 2, 3]}}`; the standard examples follow.

    Raises:
        TypeError: `image` is not a picture.
        ValueError: the model cannot process the pixels; its patches cannot be found; it cannot be exported (the message
            gives the reason) or exceeds `max_bytes`; labels and logits differ in number.
    """
    check_labels(labels)
    if grid is not None:
        at_least(1, **{"grid[0]": grid[0], "grid[1]": grid[1]})
    patched = patched_pixels(model, check_pixels(pixels), grid)
    drawn = _drawn_image(image, patched.pixels)
    program = image_program(model, patched, None if kernel else dtype)
    none = torch.zeros(patched.count, dtype=torch.bool)
    logits = program(none)["logits"]
    check_label_logits(labels, logits, "picture")
    opened = strongest_head(model, patched.pixels, extract_logits)
    names = [str(token) for token in range(patched.grid.patches.stop)]
    tokens = patched.grid.token_names(names, ())
    document: ClassifyImageDocument = {
        "kind": "classify-image", "title": title, "examples": examples_spec(examples, STATE_KEYS), "tokenizers": [],
        "labels": list(labels), "image": image_spec(drawn), "patches": patches_spec(patched.grid), "tokens": tokens,
        "state": {
            **STUDIO_STATE, **opened, "hidden_patches": [], "label": int(logits.argmax()),
            "shade": "attention",
        },
    }  # fmt: skip

    def static_figure(hidden: Tensor, logits: Tensor) -> StaticFigure:
        probabilities = logits[0].float().softmax(-1)
        return classified_image(drawn, patched.grid, hidden, labels, probabilities, title)

    if isinstance(program, Program):
        return studio_view(document, static_figure(none, logits), {"read": program}, max_bytes)

    def draw_static(request: Request, outputs: Mapping[str, Tensor]) -> StaticFigure:
        return static_figure(request.inputs[0], outputs["logits"])

    return studio_widget(
        document, {"read": program}, {"read": [none]}, draw_static, lambda _: {"": (tokens, tokens)}, []
    )


def _drawn_image(image: Any, pixels: Tensor) -> Image.Image:
    """Return the picture to draw; the pixels as a picture if `image` is None.

    Raises:
        ValueError: the aspect ratio of the picture differs from that of the pixels.
    """
    drawn = read_image(pixels[0] if image is None else image)
    height, width = pixels.shape[2:]
    if abs(drawn.width * height / (drawn.height * width) - 1) > ASPECT_TOLERANCE:
        raise ValueError(
            f"image is {drawn.width} × {drawn.height}, and the model's pixels {width} × {height} (width × height); "
            "give it cropped as these are"
        )
    return drawn
