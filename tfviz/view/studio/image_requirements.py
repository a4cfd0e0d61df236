"""Check that a vision model and its pixels suit a studio, and export a program that takes the hidden patches."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tfviz.checks import materialized
from tfviz.eval_mode import eval_mode, weights_device
from tfviz.logits import extract_logits
from tfviz.look import Capture, capture
from tfviz.portable.export import export
from tfviz.portable.program import Program
from tfviz.shapes import Bool, Float
from tfviz.view.patch_grid import EXTRA_TOKEN_COUNTS, PatchGrid, Shape, find_grid
from tfviz.view.studio.local_program import LocalProgram
from tfviz.view.studio.requirements import check_weights


@dataclass(frozen=True)
class PatchedPixels:
    """The preprocessed pixels of one picture, and the grid of its patches.

    Attributes:
        pixels: one picture as a batch.
        grid: the patches among the model's tokens.
        layers: number of attention layers.
    """

    pixels: Float[Tensor, "1 channel height width"]
    grid: PatchGrid
    layers: int

    @property
    def count(self) -> int:
        return self.grid.rows * self.grid.columns

    def without(self, hidden: Bool[Tensor, " patch"]) -> Float[Tensor, "1 channel height width"]:
        """Return the pixels with each hidden patch filled with the mean of each channel over the picture."""
        height, width = self.pixels.shape[2:]
        rows, columns = self.grid.rows, self.grid.columns
        down, across = height // rows, width // columns
        cells = hidden.reshape(rows, 1, columns, 1).expand(rows, down, columns, across)
        mean = self.pixels.mean((2, 3), keepdim=True)
        return torch.where(cells.reshape(1, 1, height, width), mean, self.pixels)


def check_pixels(pixels: Tensor) -> Tensor:
    """Return one picture as a batch, [1, channel, height, width].

    Raises:
        ValueError: `pixels` is not one picture of finite floating-point numbers.
    """
    materialized(pixels=pixels)
    shape = list(pixels.shape)
    batch = pixels[None] if pixels.dim() == 3 else pixels
    if batch.dim() != 4 or len(batch) != 1 or not batch.numel():
        raise ValueError(
            f"pixels has the shape {shape}; give one picture, [channel, height, width], as the model takes"
        )
    if not batch.is_floating_point():
        raise ValueError(f"pixels are {pixels.dtype}; give floats, normalised as the model takes them")
    if not bool(batch.isfinite().all()):
        raise ValueError("pixels holds numbers that are not finite; look for NaN in the picture")
    return batch.detach()


def patched_pixels(model: nn.Module, pixels: Tensor, shape: Shape | None) -> PatchedPixels:
    """Return the pixels with the patch grid inferred from the model's attention.

    Args:
        model: the model.
        pixels: [1, channel, height, width].
        shape: rows and columns of patches; None: those of square patches.

    Raises:
        ValueError: the model cannot process the picture, or its patches cannot be found.
    """
    pixels = pixels.to(weights_device(model))
    height, width = pixels.shape[2:]
    captured = _captured(model, pixels)
    tokens = _token_count(type(model).__name__, captured)
    words = [str(token) for token in range(tokens)]
    grid = find_grid(words, (height, width), shape or _square_patches(tokens, height, width))
    fits = grid is not None and shape in (None, (grid.rows, grid.columns))
    if grid is None or not fits or height % grid.rows or width % grid.columns:
        cells = "no grid" if shape is None else f"no {shape[0]} × {shape[1]} patches"
        raise ValueError(
            f"the patches of {type(model).__name__} cannot be found: its {tokens} tokens fit {cells} of "
            f"{height} × {width} pixels; give grid=(rows, columns)"
        )
    return PatchedPixels(pixels, grid, len(captured))


def _captured(model: nn.Module, pixels: Tensor) -> Capture:
    """Return a capture of the model's attention to the pixels.

    Raises:
        ValueError: the model cannot process the pixels, or has no attention.
    """
    name = type(model).__name__
    try:
        with eval_mode(model), capture(model, "*.pattern") as captured:
            model(pixels)
    except LookupError as error:
        raise ValueError(
            f"the patches of {name} cannot be found, since no attention was captured in it; give a vision transformer"
        ) from error
    except Exception as error:  # a call by the user would raise the same
        raise ValueError(f"{name} cannot read pixels of the shape {list(pixels.shape)}: {error}") from error
    return captured


def _token_count(name: str, captured: Capture) -> int:
    """Return the number of tokens, which is the same for the queries and keys of all layers.

    Raises:
        ValueError: a pattern is not [1, head, token, token], or layers differ in their number of tokens.
    """
    shapes = dict.fromkeys(tuple(captured[site].shape) for site in captured)
    sizes = {shape[-2:] for shape in shapes}
    tokens = next(iter(sizes))[0]
    if sizes != {(tokens, tokens)} or any(len(shape) != 4 or shape[0] != 1 for shape in shapes):
        raise ValueError(
            f"the patches of {name} cannot be found: its attention has the shapes {', '.join(map(str, shapes))}; "
            f"give a model in which every patch attends to every patch, (1, head, token, token) in all layers"
        )
    return tokens


def _square_patches(tokens: int, height: int, width: int) -> Shape | None:
    """Return the rows and columns of a grid of square patches; None if no such grid fits the number of tokens."""
    for extra in EXTRA_TOKEN_COUNTS:
        rows, columns = (round(math.sqrt((tokens - extra) * side)) for side in (height / width, width / height))
        if rows * columns == tokens - extra > 0 and rows * width == columns * height:
            return rows, columns
    return None


def image_program(model: nn.Module, patched: PatchedPixels, dtype: str | None) -> Program | LocalProgram:
    """Return a program that computes logits, [1, label], from the hidden patches, a boolean for each.

    Args:
        model: the model.
        patched: the pixels and their patches.
        dtype: storage format of the exported weights; None: the model stays in Python.

    Raises:
        ValueError: the model returns no logits, or cannot be exported.
    """

    def read(hidden: Tensor) -> dict[str, Tensor]:
        return {"logits": extract_logits(model(patched.without(hidden)))}

    if dtype is None:
        return LocalProgram(model, read, {"hidden": "bool"})
    check_weights(model)
    none = torch.zeros(patched.count, dtype=torch.bool, device=patched.pixels.device)
    return export(read, none, dtype=dtype)
