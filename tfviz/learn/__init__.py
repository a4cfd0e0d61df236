"""Training, schedules, checkpoints and measures of quality."""

from tfviz.learn import checkpoint, evaluate, schedule
from tfviz.learn.train import Step, adamw, fit

__all__ = ["Step", "adamw", "checkpoint", "evaluate", "fit", "schedule"]
