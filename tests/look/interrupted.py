"""Interrupts a capture at one line after the other, and prints what is left each time: nothing, and `whole` in the end.

In a process of its own, where no types are checked: only lines of tfviz and of PyTorch are met.
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


def interrupted(at):
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


def left():
    hooks = *modules._global_forward_hooks, *modules._global_forward_pre_hooks
    return [*_get_current_function_mode_stack(), *hooks]


def main(step):
    with capture(MODEL):  # what is imported at the first use may put warnings aside
        MODEL(IDS)
    start, filters, number, modes_of_torch = threading.Thread.start, list(warnings.filters), 1, 0
    while True:
        there, torchs_own = interrupted(number)
        if not there:
            break
        if left():
            modes_of_torch += 1
            if not torchs_own:
                print("left at", number, left())
        with capture(MODEL) as seen:
            MODEL(IDS)
        if left() or len(seen) != 2:
            print("the next capture left at", number, left())
        number += step
    if threading.Thread.start is not start or list(warnings.filters) != filters:
        print("settings of the process are others")
    print("whole", number // step, modes_of_torch)


if __name__ == "__main__":
    main(int(sys.argv[1]))
