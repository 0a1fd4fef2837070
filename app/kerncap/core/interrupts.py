"""Ctrl-C and the signals that end a process: one exception at most, and none in the middle of a last step.

The handlers run in the main thread; elsewhere nothing here has an effect.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from kerncap.core.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def signal_name(number: int) -> str:
    """SIGSEGV for 11, and so on."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class _State:
    """Of the outermost `interruptible` block."""

    depth = 0
    raised = False  # one interruption is under way: what follows is the clean-up
    settled = False  # the work is done: it is too late to be interrupted
    deferring = False
    waiting = 0  # the signal that came meanwhile
    number = 0  # the signal that interrupted


def _handler(number: int, frame: FrameType | None) -> None:
    if _State.deferring:
        _State.waiting = _State.waiting or number
    elif not _State.raised and not _State.settled:
        _State.raised, _State.number = True, number
        raise Interrupted(f"interrupted by {signal_name(number)}")


def settle(done: bool = True) -> None:
    """From now on the interruptible block is not interrupted any more: its result is about to be put in
    place. With `done` false it can be again, because that failed.
    """
    if threading.current_thread() is threading.main_thread():
        _State.settled = done


def interrupted_by() -> int:
    """The signal that interrupted the last interruptible block, also where what it raised was replaced by
    something else; 0 for none.
    """
    return _State.number


@contextmanager
def deferred() -> Iterator[None]:
    """An interruption that comes inside is raised at the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _State.deferring = True
    try:
        yield
    finally:
        _State.deferring = False
        number, _State.waiting = _State.waiting, 0
        if number:
            _handler(number, None)


def interruption(error: BaseException | None) -> Interrupted | None:
    """The Interrupted that `error` is, or came of: Python makes a RuntimeError of one in some places."""
    seen = 0
    while error is not None and seen < 20:
        if isinstance(error, Interrupted):
            return error
        error, seen = error.__cause__ or error.__context__, seen + 1
    return None


@contextmanager
def interruptible(*, last: bool = False) -> Iterator[None]:
    """Turns SIGINT, SIGTERM and SIGHUP into Interrupted for the time of the block, in the main thread.

    Only the first one counts: what follows is the clean-up, which has limits of its own. With `last` the
    process is about to end after the block, and they stay ignored until it is gone: its exit code tells what
    became of the work. (Ignored, since Python gives handlers of its own back while it ends.)
    """
    if threading.current_thread() is not threading.main_thread() or _State.depth:
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    unraisable = sys.unraisablehook

    def again(lost: Any) -> None:
        # Raised where nothing can be, in a destructor for instance, it is dropped: it has to come once more.
        if isinstance(lost.exc_value, Interrupted):
            _State.raised = False
            timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))
            timer.daemon = True
            timer.start()
        else:
            unraisable(lost)

    _State.depth, _State.raised, _State.settled, _State.number = 1, False, False, 0
    try:
        sys.unraisablehook = again
        for number in _SIGNALS:
            if before[number] is not signal.SIG_IGN:  # under nohup, SIGHUP stays ignored
                signal.signal(number, _handler)
        yield
    finally:
        _State.settled = True
        for number, old in before.items():
            if old is not None:  # None: set from outside of Python
                signal.signal(number, signal.SIG_IGN if last else old)
        sys.unraisablehook = unraisable
        _State.depth = 0
