"""Look inside a model: capture its attention, keep it as maps, measure and edit it."""

from tfviz.doors import guard
from tfviz.look import edits, measures
from tfviz.look.ablate import ablate
from tfviz.look.capture import capture
from tfviz.look.kernels import attention
from tfviz.look.map_groups import groups
from tfviz.look.maps import AttentionMaps
from tfviz.look.quantize import pack, unpack
from tfviz.look.result import Capture

__all__ = [
    "AttentionMaps",
    "Capture",
    "ablate",
    "attention",
    "capture",
    "edits",
    "groups",
    "measures",
    "pack",
    "unpack",
]

guard(globals(), __all__)
guard(vars(measures), [name for name in measures.__all__ if name != "SCORES"])
guard(vars(edits), ["zero", "even", "hide", "pin"])
