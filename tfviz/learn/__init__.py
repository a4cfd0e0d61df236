"""Training, schedules, checkpoints and measures of quality."""

from tfviz.doors import guard
from tfviz.learn import checkpoint, evaluate, losses, schedule
from tfviz.learn.optimizers import adamw, muon
from tfviz.learn.train import Step, fit

__all__ = ["Step", "adamw", "checkpoint", "evaluate", "fit", "losses", "muon", "schedule"]

guard(globals(), __all__, without=("Step",))
guard(vars(checkpoint), ["save", "list_checkpoints", "load", "as_folder"])
guard(vars(evaluate), ["loss", "accuracy", "perplexity", "bits_per_byte", "exact_match", "bleu", "bleu_by_length"])
guard(vars(evaluate), ["alignment_error_rate", "links"])
guard(vars(schedule), ["cosine", "inverse_square_root", "linear"])
guard(vars(losses), ["adversarial", "translation", "scheduled_sampling"])  # the others are called at each step
