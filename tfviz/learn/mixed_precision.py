"""Mixed precision: the default precision of a device, and the loss scale of float16."""

from __future__ import annotations

import math
import os

import torch

LAUNCH_PRECISIONS = {"no": None, "bf16": "bfloat16", "fp16": "float16"}
# As in GradScaler, for a mean loss; the interval is in steps.
INITIAL_LOSS_SCALE, MIN_LOSS_SCALE, LOSS_SCALE_GROWTH_INTERVAL = 2.0**16, 2.0**-16, 2000


class LossScale:
    """The factor of a float16 loss, which keeps small gradients from becoming 0, as in `torch.amp.GradScaler`.

    It is halved when gradients overflow, and doubled after 2000 steps without overflow (Micikevicius et al. 2018,
    "Mixed precision training", section 3.2).
    """

    def __init__(self) -> None:
        self.value = 0.0  # 0: not yet set
        self.steps = 0  # steps since the last change
        self.overflowed = False

    def start(self, predictions: int) -> None:
        """Set the initial value, so that the mean loss over about `predictions` terms is scaled by about 65536."""
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
    """Return the precision set by `accelerate launch --mixed_precision`, or None.

    Raises:
        ValueError: `fit` does not support this precision.
    """
    precision = os.environ.get("ACCELERATE_MIXED_PRECISION", "no").lower()
    if precision not in LAUNCH_PRECISIONS:
        known = ", ".join(LAUNCH_PRECISIONS)
        raise ValueError(f"accelerate was launched with --mixed_precision {precision}; fit supports: {known}")
    return LAUNCH_PRECISIONS[precision]


def default_precision(device: torch.device) -> str:
    """Return bfloat16 for a CUDA GPU that computes in it, float16 for one that would emulate it, float32 elsewhere."""
    if device.type != "cuda":
        return "float32"
    with torch.cuda.device(device):
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
