"""Look inside a model: capture its attention, keep it as maps, measure and edit it."""

from tfviz.look import edits, measures
from tfviz.look.ablate import ablate
from tfviz.look.capture import capture
from tfviz.look.kernels import attention
from tfviz.look.map_groups import groups
from tfviz.look.maps import AttentionMaps
from tfviz.look.quantize import pack, unpack
from tfviz.look.result import Capture
from tfviz.validation import validate_public

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

validate_public(globals(), __all__)
validate_public(vars(measures), [name for name in measures.__all__ if name != "SCORES"])
validate_public(vars(edits), ["zero", "even", "hide", "pin"])
