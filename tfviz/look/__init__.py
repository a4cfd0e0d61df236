"""Looking inside: capture, maps, measures."""

from tfviz.doors import guard
from tfviz.look import edits, measures
from tfviz.look.ablate import ablate
from tfviz.look.capture import Seen, capture
from tfviz.look.grouping import groups
from tfviz.look.kept import pack, unpack
from tfviz.look.kernels import attention
from tfviz.look.maps import AttentionMaps

__all__ = ["AttentionMaps", "Seen", "ablate", "attention", "capture", "edits", "groups", "measures", "pack", "unpack"]

guard(globals(), __all__)
guard(vars(measures), ["entropy", "distance", "change", "rollout", "relevance", "carried", "types", "strongest"])
guard(vars(edits), ["zero", "even", "hide", "pin"])
