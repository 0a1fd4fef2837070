"""One thing at a time on the device: an attempt's steps and the candidates' runs would disturb each other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kerncap.core.errors import KerncapError
from kerncap.core.loop.events import Bench, Timing, Validation

_LOOK_S = 0.05


class Turns:
    """Who may use the device. No candidate begins while an attempt is under way."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken = False
        self._attempt = False

    def under_way(self, attempt: bool) -> None:
        """Whether there is an attempt from now on: also its compile is better not disturbed."""
        with self._changed:
            self._attempt = attempt
            self._changed.notify_all()

    @contextmanager
    def taken(self, given_up: threading.Event, *, of_attempt: bool = False) -> Iterator[None]:
        """Waits for the turn. Raises KerncapError where `given_up` is set before it comes."""
        with self._changed:
            while self._taken or (self._attempt and not of_attempt):
                if given_up.is_set():
                    raise KerncapError("Given up.")
                self._changed.wait(_LOOK_S)
            self._taken = True
        try:
            yield
        finally:
            with self._changed:
                self._taken = False
                self._changed.notify_all()


class InTurn:
    """A bench whose steps wait for their turn."""

    def __init__(self, bench: Bench, turns: Turns) -> None:
        self._bench = bench
        self._turns = turns
        self._given_up = threading.Event()

    def prepare(self) -> None:
        """As the bench does."""
        with self._turns.taken(self._step(), of_attempt=True):
            self._bench.prepare()

    def time(self, hsaco: Path) -> Timing:
        """As the bench does."""
        with self._turns.taken(self._step(), of_attempt=True):
            return self._bench.time(hsaco)

    def validate(self, hsaco: Path, mode: str = "default") -> Validation:
        """As the bench does."""
        with self._turns.taken(self._step(), of_attempt=True):
            return self._bench.validate(hsaco, mode)

    def _step(self) -> threading.Event:
        self._given_up = threading.Event()
        return self._given_up

    def interrupt(self) -> None:
        """The step under way, or waiting, raises KerncapError."""
        self._given_up.set()
        self._bench.interrupt()

    def close(self) -> None:
        """As the bench does."""
        self._given_up.set()
        self._bench.close()
