"""Training in bfloat16 or float16: which precision a device computes in, and the factor of a float16 loss."""

from __future__ import annotations

import math
import os

import torch

LAUNCH_PRECISIONS = {"no": None, "bf16": "bfloat16", "fp16": "float16"}
# As in GradScaler, for a mean loss; the interval is in steps.
INITIAL_LOSS_SCALE, MIN_LOSS_SCALE, LOSS_SCALE_GROWTH_INTERVAL = 2.0**16, 2.0**-16, 2000


class LossScale:
    """The factor of the loss in float16, so that small gradients do not become 0, as in `torch.amp.GradScaler`.

    It is halved when gradients overflow, and doubled after 2000 steps in which none did (Micikevicius et al. 2018,
    "Mixed precision training", section 3.2).
    """

    def __init__(self) -> None:
        self.value = 0.0  # 0: not yet set
        self.steps = 0  # steps since the last change
        self.overflowed = False

    def start(self, predictions: int) -> None:
        """Set the first value, from about how many predictions the loss is a sum of: their mean is scaled by 65536."""
        self.value = self.value or 2.0 ** math.floor(math.log2(max(1.0, INITIAL_LOSS_SCALE / predictions)))

    def update(self, is_finite: bool) -> bool:
        """Adjust the scale after a step; return whether it is still at least MIN_LOSS_SCALE."""
        self.overflowed, self.steps = not is_finite, self.steps + 1 if is_finite else 0
        if self.overflowed:
            self.value /= 2
        elif self.steps == LOSS_SCALE_GROWTH_INTERVAL:
            self.value, self.steps = self.value * 2, 0
        return self.value >= MIN_LOSS_SCALE


def launch_precision() -> str | None:
    """Return the precision of `accelerate launch --mixed_precision`, if one was given.

    Raises:
        ValueError: it was launched with a setting that `fit` does not support.
    """
    precision = os.environ.get("ACCELERATE_MIXED_PRECISION", "no").lower()
    if precision not in LAUNCH_PRECISIONS:
        known = ", ".join(LAUNCH_PRECISIONS)
        raise ValueError(f"accelerate was launched with --mixed_precision {precision}; fit can do: {known}")
    return LAUNCH_PRECISIONS[precision]


def default_precision(device: torch.device) -> str:
    """Return bfloat16 for a CUDA GPU that computes in it, float16 for one that would imitate it, float32 elsewhere."""
    if device.type != "cuda":
        return "float32"
    with torch.cuda.device(device):
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
