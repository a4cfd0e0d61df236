"""Images and spectrograms: conversion from files and tensors, and tints of attention weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy
import torch
from matplotlib.colors import to_rgb
from PIL import Image, ImageOps
from torch import Tensor

from tfviz.checks import materialized
from tfviz.files import expand_user
from tfviz.view.figures.palette import sequential_colormap

MAX_SIDE = 640  # pixels of the longer side in a page
# Opacity of the image, and of the colour at the largest weight, as in `js/base/source-image.js`.
PICTURE_SHARE, MAX_INK_SHARE = 0.7, 0.75
HATCH_PIXELS = 8  # between two lines


def read_image(image: Any) -> Image.Image:
    """Read an RGB image from a path, a PIL image, or numbers.

    Numbers are [height, width], [height, width, 3] or [3, height, width]: integers from 0 to 255, or floats from 0 to
    1. Numbers outside these ranges, such as pixels normalized for a model, are rescaled from their minimum and maximum.
    Transparent pixels are blended with white.

    Raises:
        TypeError: `image` is neither a path, a PIL image nor numbers.
        ValueError: the image cannot be read, has no pixels, or has another shape.
        FileNotFoundError: there is no such file.
    """
    if isinstance(image, str | Path):
        image = _open(expand_user(image))
    if isinstance(image, Image.Image) and image.mode[0] in "IF":  # more than 8 bits, which PIL would cut off
        image = Image.fromarray(_stretch(torch.from_numpy(numpy.asarray(image).astype(numpy.float32))).numpy())
    if not isinstance(image, Image.Image):
        image = Image.fromarray(_rgb_bytes(_to_tensor(image)))
    if not image.width or not image.height:
        raise ValueError("the picture has no pixels")
    opaque = Image.new("RGBA", image.size, "white")
    opaque.alpha_composite(image.convert("RGBA"))
    return opaque.convert("RGB")


def spectrogram_image(spectrogram: Any) -> Image.Image:
    """Return a grey RGB image of a spectrogram, [frequency, time], with the lowest frequency at the bottom.

    It is at most four times as wide as high.

    Raises:
        ValueError: the spectrogram does not have two axes, is empty, or has numbers that are not finite.
    """
    values = _to_tensor(spectrogram)
    if values.dim() != 2 or not values.numel():
        raise ValueError(f"spectrogram has the shape {list(values.shape)}; it is [frequency, time]")
    drawn = Image.fromarray(_stretch(values.float()).flip(0).numpy())
    width = min(drawn.width, 2 * MAX_SIDE)
    height = max(min(drawn.height, MAX_SIDE), width // 4)
    return drawn.resize((width, height), Image.Resampling.BILINEAR).convert("RGB")


def _open(path: Path) -> Image.Image:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; give the path of a picture, or the picture itself")
    try:
        with path.open("rb") as file, Image.open(file) as opened:
            return ImageOps.exif_transpose(opened).convert("RGBA")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(f"{path} cannot be read as a picture: {error}") from error


def _to_tensor(numbers: Any) -> Tensor:
    if isinstance(numbers, Tensor):
        materialized(image=numbers)
    try:
        tensor = torch.as_tensor(numbers).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        kind = type(numbers).__name__
        raise TypeError(f"a {kind} is not a picture: give a path, a PIL image, an array or a tensor") from error
    if tensor.is_complex():
        raise ValueError("the picture holds complex numbers; give .abs() of them")
    return tensor


def _rgb_bytes(values: Tensor) -> numpy.ndarray:
    """Convert the pixels of an image in any supported layout to bytes, [height, width, 3]."""
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
        values = values.float()
        low, high = float(values.min()), float(values.max())
        if low >= 0 and high <= 1:
            values = (values * 255).round()
        elif not (low >= 0 and high <= 255 and bool((values == values.round()).all())):
            values = _stretch(values)
    return values.to(torch.uint8).expand(-1, -1, 3).numpy()


def _stretch(values: Tensor) -> Tensor:
    if not values.isfinite().all():
        raise ValueError("the picture holds numbers that are not finite")
    low, high = float(values.min()), float(values.max())
    return ((values - low) / ((high - low) or 1) * 255).round().to(torch.uint8)


def tinted(image: Image.Image, shares: numpy.ndarray, allowed: numpy.ndarray, pixels: int) -> numpy.ndarray:
    """Return a pale grey image, coloured where shares are large and hatched where masked, [height, width, 3].

    Args:
        image: the image.
        shares: strength of the colour for each patch, [row, column], from 0 to 1.
        allowed: [row, column], False for masked patches.
        pixels: the number of pixels along the longer side of the result.
    """
    paper, ink = (numpy.array(sequential_colormap()(end)[:3]) for end in (0, sequential_colormap().N - 1))
    scale = pixels / max(image.size)
    width, height = (max(1, round(side * scale)) for side in image.size)
    grey = numpy.asarray(image.convert("L").resize((width, height), Image.Resampling.LANCZOS)) / 255
    rows = numpy.arange(height) * shares.shape[0] // height
    columns = numpy.arange(width) * shares.shape[1] // width
    pale = paper + PICTURE_SHARE * (grey[..., None] - paper)
    drawn = pale + MAX_INK_SHARE * shares[rows][:, columns, None] * (ink - pale)
    stripes = (numpy.arange(height)[:, None] + numpy.arange(width)) % HATCH_PIXELS == 0
    drawn[stripes & ~allowed[rows][:, columns]] = to_rgb(matplotlib.rcParams["hatch.color"])
    return drawn
