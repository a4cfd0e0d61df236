"""Views of attention maps, tables, masks and text: interactive pages or widgets, and static pictures."""

from tfviz.validation import validate_public
from tfviz.view import controls, draw
from tfviz.view.analysis_tables import table
from tfviz.view.attention import alignment, compare, groups, head, heads, links, live, steps, words
from tfviz.view.beam_tree import tree
from tfviz.view.bertviz import bertviz
from tfviz.view.curves import curves, lines
from tfviz.view.figures.bar_chart import bar_table, bars
from tfviz.view.figures.palette import theme
from tfviz.view.figures.static_figure import StaticFigure
from tfviz.view.figures.tables import head_table
from tfviz.view.flow import flow
from tfviz.view.image import audio, image
from tfviz.view.interact import interact
from tfviz.view.masks import mask, masks
from tfviz.view.module_tree import modules
from tfviz.view.neurons import neurons
from tfviz.view.page.html import View
from tfviz.view.scatter import planes, scatter
from tfviz.view.studio.classify import classify
from tfviz.view.studio.classify_image import classify_image
from tfviz.view.studio.fill import fill
from tfviz.view.studio.patch import patch
from tfviz.view.studio.translate import translate
from tfviz.view.studio.write import write
from tfviz.view.tables import as_similarities, gates, positions
from tfviz.view.tokens import tokens

__all__ = [
    "StaticFigure",
    "View",
    "alignment",
    "as_similarities",
    "audio",
    "bar_table",
    "bars",
    "bertviz",
    "classify",
    "classify_image",
    "compare",
    "curves",
    "fill",
    "flow",
    "gates",
    "groups",
    "head",
    "head_table",
    "heads",
    "image",
    "interact",
    "lines",
    "links",
    "live",
    "mask",
    "masks",
    "modules",
    "neurons",
    "patch",
    "planes",
    "positions",
    "scatter",
    "steps",
    "table",
    "theme",
    "tokens",
    "translate",
    "tree",
    "words",
    "write",
]  # fmt: skip

validate_public(globals(), __all__)
validate_public(vars(controls), ["angle", "cells", "order", "points", "text"])
__all__ += ["controls", "draw"]  # modules of their own: view.controls.points(...), view.draw.grid(...)
