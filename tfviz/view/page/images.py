"""Encode pictures as data URLs, and patch grids as plain values, for documents."""

from __future__ import annotations

import base64
import io

from PIL import Image

from tfviz.view.documents.heads import ImageSpec, Patches
from tfviz.view.figures.images import MAX_SIDE
from tfviz.view.patch_grid import PatchGrid

MAX_LOSSLESS_SIDE = 96  # pixels of the longer side, up to which pictures are stored without loss


def image_spec(image: Image.Image) -> ImageSpec:
    """Return a picture as a data URL, downsized to `MAX_SIDE` pixels and without metadata, and its original size."""
    small = image.copy()
    small.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    kind, options = ("png", {"optimize": True}) if max(small.size) <= MAX_LOSSLESS_SIDE else ("jpeg", {"quality": 88})
    small.save(stream, kind, **options)
    src = f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode()}"
    return {"src": src, "width": image.width, "height": image.height}


def patches_spec(grid: PatchGrid) -> Patches:
    """Return a patch grid as plain values for a document."""
    return {"first": grid.first, "rows": grid.rows, "columns": grid.columns, "upward": grid.upward}
