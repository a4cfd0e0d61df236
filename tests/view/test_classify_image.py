"""`view.classify_image` without a browser: documents, programs, patch grids and input checks."""

import numpy
import pytest
import torch
from PIL import Image
from small_models import ViT, vit, without_patches
from small_models import vit_pixels as pixels
from torch import nn
from widgets import ask_widget

from tfviz import look, view
from tfviz.view.studio.image_requirements import patched_pixels
from tfviz.view.studio.strongest_head import strongest_head

LABELS = ["cat", "dog", "sea"]
SITES = ["blocks.0.attention", "blocks.1.attention"]


def image_studio(**given):
    return view.classify_image(**{"model": vit(), "pixels": pixels(), "labels": LABELS, "dtype": "float32", **given})


def test_document_contains_prediction_and_patch_grid():
    shares = vit()(pixels()[None])[0].softmax(-1)
    best = int(shares.argmax())
    shown = image_studio()
    assert shown.summary == f"What does it see? 3 × 4 patches\nhighest probability: {LABELS[best]!r} {shares[best]:.3g}"
    described = shown.document
    assert described["kind"] == "classify-image"
    assert described["patches"] == {"first": 1, "rows": 3, "columns": 4, "upward": False}
    assert described["tokens"][:3] == ["cls", "(0,0)", "(0,1)"]
    assert len(described["tokens"]) == 13
    state = {key: described["state"][key] for key in ("hidden_patches", "label", "shade", "ablated_heads")}
    assert state == {"hidden_patches": [], "label": best, "shade": "attention", "ablated_heads": []}
    assert shown.html() == image_studio().html()


@pytest.mark.parametrize("hidden", [[], [0], [11], [1, 5, 6], list(range(12))])
def test_program_matches_model_with_hidden_patches(hidden):
    patched = patched_pixels(vit(), pixels()[None], None)
    mask = torch.zeros(12, dtype=torch.bool)
    mask[hidden] = True
    torch.testing.assert_close(patched.without(mask), without_patches(pixels(), hidden)[None])
    live = image_studio(kernel=True)
    outputs = live._programs["read"](mask)["logits"]
    torch.testing.assert_close(outputs, vit()(without_patches(pixels(), hidden)[None]).detach(), rtol=0, atol=1e-5)


def test_pixels_are_stored_exactly_with_weights():
    stored = image_studio().document["programs"]["read"]["weights"]
    (own,) = (weight for weight in stored if weight["shape"] == [1, 3, 6, 8])
    start, length = own["byte_range"]
    sent = numpy.frombuffer(image_studio().data[start : start + length], numpy.float32).reshape(3, 6, 8)
    assert (sent == pixels().numpy()).all()


@pytest.mark.parametrize(("extra", "first"), [(1, 1), (2, 2), (5, 5)])
def test_tokens_before_patches_are_detected(extra, first):
    described = image_studio(model=vit(extra=extra)).document
    assert (described["patches"]["first"], described["patches"]["columns"]) == (first, 4)


def test_square_patches_are_preferred_to_square_grid():
    """16 x 4 pixels in 16 patches: 8 x 2 squares of 2 pixels, not 4 x 4 of 4 x 1."""

    class Tall(ViT):
        def __init__(self):
            super().__init__()
            self.positions = nn.Parameter(torch.randn(1, 17, 12))

    described = view.classify_image(Tall(), torch.randn(3, 16, 4), LABELS).document
    assert [described["patches"][side] for side in ("first", "rows", "columns")] == [1, 8, 2]


def test_hugging_face_vit_is_supported():
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        image_size=32, patch_size=8, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=16,
        num_labels=3,
    )  # fmt: skip
    model, batch = transformers.ViTForImageClassification(config).eval(), torch.randn(1, 3, 32, 32)
    shown = view.classify_image(model, batch, LABELS, dtype="float32")
    assert shown.document["patches"] == {"first": 1, "rows": 4, "columns": 4, "upward": False}
    share = model(batch).logits.softmax(-1)
    assert shown.summary.endswith(f"{LABELS[int(share.argmax())]!r} {share.max():.3g}")


def test_figure_picture_shows_image_and_sorted_probabilities():
    figure = image_studio(image=Image.new("RGB", (800, 600), "red")).figure()
    left, right = figure.axes
    assert tuple(left.images[0].get_array()[0, 0]) == (255, 0, 0)
    shares = vit()(pixels()[None])[0].softmax(-1).sort(descending=True)
    assert [label.get_text() for label in right.get_yticklabels()] == [LABELS[i] for i in shares.indices]
    numpy.testing.assert_allclose([bar.get_width() for bar in right.patches], shares.values.detach(), atol=1e-5)


def test_kernel_matches_model_and_saves_static_view():
    live = image_studio(kernel=True)
    hidden = [int(patch in (2, 7)) for patch in range(12)]
    off = [{"site": f"{SITES[1]}.pattern", "head": 2, "kind": "zero"}]
    content, buffers = ask_widget(live, run="read", inputs=[["hidden", [12], hidden]], ablated_heads=off, capture=True)
    assert "error" not in content, content
    with torch.no_grad(), look.capture(vit(), "*.pattern", edit={off[0]["site"]: look.edits.zero(2)}):
        expected = vit()(without_patches(pixels(), [2, 7])[None])[0]
    torch.testing.assert_close(
        torch.frombuffer(bytearray(buffers[0]), dtype=torch.float32), expected, rtol=0, atol=1e-5
    )
    left = live.view()
    assert "without 2 patches" in left.summary
    assert left.document["parts"][0]["rows"][:2] == ["cls", "(0,0)"]
    assert "a model in Python computed this" in left.document["note"]


def test_model_without_patch_grid_raises():
    class Odd(ViT):
        def __init__(self):
            super().__init__()
            self.positions = nn.Parameter(torch.randn(1, 11, 12))

        def forward(self, image):
            patches = self.embed(image).flatten(2).mT[:, :10]
            x = torch.cat([self.extra, patches], 1) + self.positions
            return self.head(self.blocks[0](x)[:, 0])

    with pytest.raises(ValueError, match="its 11 tokens fit no grid of 6 × 8 pixels; give grid="):
        image_studio(model=Odd())


class Mixing(torch.nn.Module):
    """Attention of two heads with fixed patterns."""

    def __init__(self, *scores, gain):
        super().__init__()
        self.scores, self.gain = torch.stack(scores)[None], torch.tensor(gain)[:, None, None]

    def forward(self, x):
        values = x[:, None].expand(-1, 2, -1, -1) * self.gain
        return x + (self.scores.softmax(-1) @ values).sum(1)


@pytest.mark.parametrize(("score", "expected"), [(0, {"layer": 0, "head": 1}), (9, {"layer": 1, "head": 0})])
def test_picture_opens_on_head_that_does_not_look_evenly(score, expected):
    """The head that changes most looks evenly; it opens only if no other head looks at something."""
    even, sharp = torch.zeros(12, 12), score * torch.eye(12)
    model = torch.nn.Sequential(
        Mixing(even, even, gain=[0.1, 3.0]), Mixing(sharp, even, gain=[0.2, 0.3]), torch.nn.Linear(5, 4)
    )
    x = torch.randn(1, 12, 5, generator=torch.Generator().manual_seed(0))
    assert strongest_head(model.eval(), x, lambda logits: logits[0, 0]) == expected
