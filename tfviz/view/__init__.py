"""Pictures: `AttentionMaps` or numbers in, a picture out."""

from tfviz.view.figures import head, heads, mask
from tfviz.view.palette import theme
from tfviz.view.picture import Picture
from tfviz.view.plots import bars, curves, lines, positions, shares

__all__ = ["Picture", "bars", "curves", "head", "heads", "lines", "mask", "positions", "shares", "theme"]
