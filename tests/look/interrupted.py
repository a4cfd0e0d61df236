"""Interrupts a capture at every n-th line, prints whatever is left behind, and prints `whole` at the end.

Runs in a process of its own, without runtime type checks, so that only lines of tfviz and of PyTorch are interrupted.
"""

import contextlib
import sys
import threading
import warnings

import torch
from torch import overrides
from torch.nn.modules import module as modules
from torch.overrides import _get_current_function_mode_stack

from tfviz.look import capture
from tfviz.models import GPT

MODEL, IDS = GPT(11, context=9, layers=2, heads=2, dim=8), torch.tensor([[3, 1, 4, 1, 5]])
SWAPPING = {contextlib.__file__, overrides.__file__}


class Stop(BaseException):
    pass


def run_interrupted(at):
    """Whether there was a line number `at`, and whether it is PyTorch's own, which takes modes off for a moment there
    and puts them back later than any `with` ends.
    """
    count, torchs_own = 0, False

    def trace(frame, event, arg):
        nonlocal count, torchs_own
        count += 1
        if count == at:
            torchs_own = frame.f_code.co_filename in SWAPPING
            raise Stop
        return trace

    sys.settrace(trace)
    try:
        with capture(MODEL):
            MODEL(IDS)
    except Stop:
        return True, torchs_own
    finally:
        sys.settrace(None)
    return count >= at, torchs_own


def leftovers():
    hooks = *modules._global_forward_hooks, *modules._global_forward_pre_hooks
    return [*_get_current_function_mode_stack(), *hooks]


def main(step):
    with capture(MODEL):  # what is imported at the first use may put warnings aside
        MODEL(IDS)
    start, filters, number, modes_of_torch = threading.Thread.start, list(warnings.filters), 1, 0
    while True:
        there, torchs_own = run_interrupted(number)
        if not there:
            break
        if leftovers():
            modes_of_torch += 1
            if not torchs_own:
                print("left at", number, leftovers())
        with capture(MODEL) as seen:
            MODEL(IDS)
        if leftovers() or len(seen) != 2:
            print("the next capture left at", number, leftovers())
        number += step
    if threading.Thread.start is not start or list(warnings.filters) != filters:
        print("settings of the process are others")
    print("whole", number // step, modes_of_torch)


if __name__ == "__main__":
    main(int(sys.argv[1]))
