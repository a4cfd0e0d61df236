"""Checks of static pictures, and maps to draw, that tests of several kinds of pictures share."""

import base64
import io
import logging

import torch

from tfviz.look import AttentionMaps
from tfviz.view.figures import palette

NASTY = [
    "漢字", "👩‍👧", "שלום", "$x_$ $", "a\nb\tc", "", " ", "\ud800", "</script>", "x" * 99, "\n", "\\frac{", "%s{0}",
    "\x7f", "\u200b",
]  # fmt: skip
SHAPES = [(1, 1, 1, 1), (1, 1, 1, 7), (2, 2, 40, 2), (1, 12, 3, 3), (1, 1, 450, 450)]


def maps(layers=2, heads=3, queries=5, keys=7, seed=1, causal=False, **given):
    scores = torch.randn(layers, heads, queries, keys, generator=torch.Generator().manual_seed(seed)) * 2
    mask = torch.ones(queries, keys, dtype=torch.bool).tril() if causal else None
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    return AttentionMaps(scores.softmax(-1), mask=mask, **given)


def sound(make, caplog, path):
    """A picture in pixels and in words, without a word in the log; the same each time; as large in the dark.

    That the same figure gives the same PNG is known from `test_view`; the SVG says that it is the same.
    """
    first, again = make(), make()
    data, _ = first._repr_mimebundle_()
    assert data["text/plain"] == repr(first) == first.summary
    assert len(first.summary.splitlines()) == 2
    light, dark = base64.b64decode(data["image/png"]), first._png("dark")
    assert first.save(path / "first.svg").read_bytes() == again.save(path / "again.svg").read_bytes()
    assert light != dark
    assert light[16:24] == dark[16:24]
    assert warnings(caplog) == []


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def draws(picture, caplog, *kinds):
    """Draws, as a small PNG at least, without a word in the log; no side is absurd."""
    caplog.clear()
    with palette.theme():
        figure = picture.figure()
        for kind in ("png", *kinds):
            figure.savefig(io.BytesIO(), format=kind, dpi=50)
        box = figure.get_tightbbox()
    assert warnings(caplog) == []
    assert 0.25 < box.width < 50
    assert 0.25 < box.height < 50


def panels(figure):
    """The axes with a heatmap, without the colourbars."""
    return [axes for axes in figure.axes if axes.images]
