"""Waiting for what a child process writes, with a limit, and noticing that somebody has stopped it."""

from __future__ import annotations

import enum
import selectors
import time
from pathlib import Path
from typing import IO

_LOOK_S = 0.5  # how often a process that writes nothing is looked at


class Wait(enum.Enum):
    """How a wait has ended."""

    READY = enum.auto()
    LATE = enum.auto()
    STOPPED = enum.auto()


def wait_readable(stream: IO[bytes], pid: int, deadline: float, stopped_s: float) -> Wait:
    """Waits until `stream` has something, `deadline` (time.monotonic()) is over, or the process that writes
    it has been stopped (SIGSTOP) for `stopped_s`.
    """
    since: float | None = None
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if selector.select(min(left, _LOOK_S)):
                return Wait.READY
            since = (since or time.monotonic()) if _is_stopped(pid) else None
            if since is not None and time.monotonic() - since >= stopped_s:
                return Wait.STOPPED
    return Wait.LATE


def _is_stopped(pid: int) -> bool:
    """Whether the state of a process (proc(5), field 3 of /proc/<pid>/stat) is T."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"
    except (OSError, IndexError):
        return False
