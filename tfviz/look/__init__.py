"""Looking inside: capture, maps, measures."""

from tfviz.doors import guard
from tfviz.look import measures
from tfviz.look.ablate import ablate
from tfviz.look.capture import Seen, capture
from tfviz.look.maps import AttentionMaps
from tfviz.look.recompute import pack, unpack

__all__ = ["AttentionMaps", "Seen", "ablate", "capture", "measures", "pack", "unpack"]

guard(globals(), __all__)
guard(vars(measures), ["entropy", "distance", "rollout", "carried", "types", "strongest"])
