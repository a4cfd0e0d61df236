"""Pictures for a dark page: white paper becomes dark, ink bright, and hues stay."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

PAPER = 0.07  # brightness of what was white
LUMINANCE = np.array([0.213, 0.715, 0.072])  # of red, green, blue


def darken(png: bytes) -> bytes:
    """Return a PNG as CSS draws it with `filter: invert(93%) hue-rotate(180deg)` (Filter Effects 1, section 6).

    Raises:
        OSError: this is no picture.
    """
    picture: Image.Image = Image.open(io.BytesIO(png))
    if picture.mode == "P":  # a palette stays one, which keeps the file small
        picture.putpalette(_filter(np.array(picture.getpalette()).reshape(-1, 3)).tobytes())
    else:
        picture = Image.fromarray(_filter(np.array(picture.convert("RGB"))))
    dark = io.BytesIO()
    picture.save(dark, "PNG", optimize=True)
    return dark.getvalue()


def _filter(colours: np.ndarray) -> np.ndarray:
    inverted = colours / 255 * (2 * PAPER - 1) + 1 - PAPER
    rotated = 2 * (inverted @ LUMINANCE)[..., None] - inverted  # half a turn around the greys
    return (255 * rotated.clip(0, 1)).round().astype(np.uint8)
