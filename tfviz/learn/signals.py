"""What ends a training from outside: Ctrl-C, a kernel's stop button, SIGTERM, a closed terminal.

Python handles a signal in its main thread, between any two of its instructions, and Ctrl-C raises there. In the midst
of an optimizer's step that would leave a model half updated.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
ALL = [signal.SIGINT, *ENDING]


@contextmanager
def deferred() -> Iterator[list[int]]:
    """Signals that come while this lasts are handled when it has ended; yields those that came so far."""
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in ALL} if _hears() else {}
    before = {number: handler for number, handler in before.items() if handler is not None}  # Python's own
    over = False

    def note(number: int, frame: FrameType | None) -> None:
        if over:  # a signal came while the handlers were put back
            signal.signal(number, before[number])
            signal.raise_signal(number)
        else:
            came.append(number)

    try:
        for number in before:
            signal.signal(number, note)
        yield came
    finally:
        over = True
        _restore({number: handler for number, handler in before.items() if signal.getsignal(number) is note})
        for number in dict.fromkeys(came):
            signal.raise_signal(number)


@contextmanager
def heeded() -> Iterator[None]:
    """SIGTERM and a closed terminal raise SystemExit, as a closing program does, where they would end it at once."""
    mine = [number for number in ENDING if _hears() and signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in mine:
            signal.signal(number, _leave)
        yield
    finally:
        _restore({number: signal.SIG_DFL for number in mine if signal.getsignal(number) is _leave})


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)  # as a shell counts


def _hears() -> bool:
    return threading.current_thread() is threading.main_thread()


def _restore(handlers: dict) -> None:
    if _hears():
        for number, handler in handlers.items():
            signal.signal(number, handler)
