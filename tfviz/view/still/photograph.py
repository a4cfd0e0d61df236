"""A picture that a model looked at: read, and drawn with weights over it."""

from __future__ import annotations

import base64
import io
import math
from pathlib import Path
from typing import Any

import matplotlib
import numpy
import torch
from matplotlib.colors import to_rgb
from PIL import Image, ImageOps
from torch import Tensor

from tfviz.bounds import readable
from tfviz.files import expand_user
from tfviz.view.still.palette import ramp

SIDE = 640  # pixels of the longer side, of what travels in a page
SMALL = 96  # pixels: less than that keeps every one of them
PALE, STRONG = 0.55, 0.88  # as in the page
HATCH = 8  # pixels between two lines


def read(picture: Any) -> Image.Image:
    """A picture from a path, PIL, or numbers: [height, width], [height, width, 3] or [3, height, width].

    Whole numbers go from 0 to 255, others from 0 to 1; what lies beyond, as after a model's normalisation, is stretched
    from its least to its greatest.

    Raises:
        ValueError: it cannot be read, or its shape is none of a picture.
        FileNotFoundError: no such file.
    """
    if isinstance(picture, str | Path):
        path = expand_user(picture)
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}; give the path of a picture, or the picture itself")
        try:
            with path.open("rb") as file, Image.open(file) as opened:
                picture = ImageOps.exif_transpose(opened).convert("RGBA")
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            raise ValueError(f"{picture} cannot be read as a picture: {error}") from error
    if isinstance(picture, Image.Image) and picture.mode[0] in "IF":  # more than 8 bits, which PIL would cut off
        picture = _stretched(torch.from_numpy(numpy.asarray(picture).astype(numpy.float32))).numpy()
    if not isinstance(picture, Image.Image):
        picture = Image.fromarray(_bytes(picture))
    if not picture.width or not picture.height:
        raise ValueError("the picture has no pixels")
    flat = Image.new("RGB", picture.size, "white")
    seen = picture.convert("RGBA")
    flat.paste(seen, mask=seen.getchannel("A"))
    return flat


def spectrogram(given: Any) -> Image.Image:
    """Sound, [frequency, time], as a picture: the lowest frequency at the bottom, at most four times as wide as high.

    Raises:
        ValueError: it has another shape.
    """
    values = _tensor(given)
    if values.dim() != 2 or not values.numel():
        raise ValueError(f"spectrogram has the shape {list(values.shape)}; it is [frequency, time]")
    drawn = Image.fromarray(_stretched(values.float()).flip(0).numpy())
    wide = min(drawn.width, 2 * SIDE)
    return drawn.resize((wide, max(min(drawn.height, SIDE), wide // 4)), Image.Resampling.BILINEAR).convert("RGB")


def _bytes(given: Any) -> numpy.ndarray:
    """Numbers as bytes, [height, width, 3]."""
    values = _tensor(given)
    shape = list(values.shape)
    if values.dim() == 4 and len(values) == 1:
        values = values[0]
    if values.dim() == 3 and values.shape[0] in (1, 3) and values.shape[2] not in (1, 3):
        values = values.permute(1, 2, 0)
    if values.dim() == 2:
        values = values[..., None]
    if values.dim() != 3 or values.shape[2] not in (1, 3) or not values.numel():
        raise ValueError(
            f"picture has the shape {shape}; it can be [height, width], [height, width, 3] or [3, height, width]"
        )
    if values.dtype != torch.uint8:
        values = _ranged(values.float())
    return values.expand(-1, -1, 3).numpy()


def _tensor(given: Any) -> Tensor:
    if isinstance(given, Tensor):
        readable(picture=given)
    try:
        made = torch.as_tensor(given).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"a {type(given).__name__} is no picture: give a path, a PIL image, an array or a tensor"
        ) from error
    if made.is_complex():
        raise ValueError("the picture holds complex numbers; give .abs() of them")
    return made


def _ranged(values: Tensor) -> Tensor:
    """Numbers as bytes: from 0 to 1, or whole ones to 255, as they are; others from the least to the greatest."""
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:
        return (values * 255).round().to(torch.uint8)
    whole = low >= 0 and high <= 255 and bool((values == values.round()).all())
    return values.to(torch.uint8) if whole else _stretched(values)


def _stretched(values: Tensor) -> Tensor:
    low, high = float(values.min()), float(values.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError("the picture holds numbers that are not finite")
    return ((values - low) / ((high - low) or 1) * 255).round().to(torch.uint8)


def told(picture: Image.Image) -> dict[str, Any]:
    """As a page takes it: small enough to travel, with nothing in it but pixels."""
    shown = picture.copy()
    shown.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    kind = "png" if max(shown.size) <= SMALL else "jpeg"
    shown.save(stream, kind.upper(), **({"quality": 88} if kind == "jpeg" else {"optimize": True}))
    src = f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode()}"
    return {"src": src, "width": picture.width, "height": picture.height}


def tinted(picture: Image.Image, shares: numpy.ndarray, allowed: numpy.ndarray, pixels: int) -> numpy.ndarray:
    """The picture pale and grey, with ink where shares (0 to 1, [down, across]) are large: [height, width, 3].

    What is not allowed is hatched.

    Args:
        pixels: of the longer side.
    """
    page, ink = (numpy.array(ramp()(end)[:3]) for end in (0, ramp().N - 1))
    scale = pixels / max(picture.size)
    wide, tall = (max(1, round(side * scale)) for side in picture.size)
    grey = numpy.asarray(picture.convert("L").resize((wide, tall), Image.Resampling.LANCZOS)) / 255
    rows = numpy.arange(tall) * shares.shape[0] // tall
    cols = numpy.arange(wide) * shares.shape[1] // wide
    under = page + PALE * (grey[..., None] - page)
    shown = under + STRONG * shares[rows][:, cols, None] * (ink - under)
    stripes = (numpy.arange(tall)[:, None] + numpy.arange(wide)) % HATCH == 0
    shown[stripes & ~allowed[rows][:, cols]] = to_rgb(matplotlib.rcParams["hatch.color"])
    return shown
