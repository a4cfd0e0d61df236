"""Training, schedules, checkpoints and measures of quality."""

from tfviz.doors import guard
from tfviz.learn import checkpoint, evaluate, losses, schedule
from tfviz.learn.train import Step, adamw, fit

__all__ = ["Step", "adamw", "checkpoint", "evaluate", "fit", "losses", "schedule"]

guard(globals(), __all__, without=("Step",))
