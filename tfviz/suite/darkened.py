"""Pictures for a dark page: paper becomes dark, ink bright, and each hue stays what it is."""

from __future__ import annotations

import io

import numpy as np

LEAST = 0.07  # of white: how bright the paper is then
LUMA = np.array([0.213, 0.715, 0.072])  # red, green, blue


def darkened(png: bytes) -> bytes:
    """A PNG as `filter: invert(93%) hue-rotate(180deg)` of CSS draws it (Filter Effects 1, sections 6 and 7).

    Raises:
        ValueError: this is no picture.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        picture: Image.Image = Image.open(io.BytesIO(png))
        picture.load()
    except (UnidentifiedImageError, OSError) as error:
        raise ValueError(f"no picture: {error}") from error
    if picture.mode == "P":  # few colours, of which each is turned once
        picture.putpalette(_turned(np.array(picture.getpalette()).reshape(-1, 3)).tobytes())
    else:
        picture = Image.fromarray(_turned(np.array(picture.convert("RGB"))))
    made = io.BytesIO()
    picture.save(made, "PNG", optimize=True)
    return made.getvalue()


def _turned(colours: np.ndarray) -> np.ndarray:
    inverted = colours / 255 * (2 * LEAST - 1) + 1 - LEAST
    turned = 2 * (inverted @ LUMA)[..., None] - inverted  # a half turn about the greys
    return (255 * turned.clip(0, 1)).round().astype(np.uint8)
