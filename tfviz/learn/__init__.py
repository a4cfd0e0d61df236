"""Training: the loop, losses, optimizers, schedules, checkpoints and evaluation."""

from tfviz.learn import checkpoint, evaluate, losses, memory, schedule
from tfviz.learn.fit import Step, fit
from tfviz.learn.optimizers import adamw, muon
from tfviz.validation import validate_public

__all__ = ["Step", "adamw", "checkpoint", "evaluate", "fit", "losses", "memory", "muon", "schedule"]

validate_public(globals(), __all__, exclude=("Step",))
validate_public(vars(checkpoint), ["save", "list_checkpoints", "load", "as_folder"])
validate_public(vars(evaluate), ["loss", "accuracy", "perplexity", "bits_per_byte", "exact_match", "bleu"])
validate_public(vars(evaluate), ["alignment_error_rate", "argmax_alignment"])
validate_public(vars(schedule), ["cosine", "inverse_square_root", "linear"])
validate_public(vars(losses), ["adversarial", "translation"])  # the others are called at each step
