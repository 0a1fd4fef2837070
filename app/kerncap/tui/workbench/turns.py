"""One thing at a time on the device: an attempt's steps and the candidates' runs would disturb each other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kerncap.core.errors import KerncapError
from kerncap.core.session import Bench, Timing, Validation

_LOOK_S = 0.05


class Turns:
    """Who may use the device. `with turns.taken(given_up):` waits for the turn."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @contextmanager
    def taken(self, given_up: threading.Event) -> Iterator[None]:
        """Raises KerncapError where `given_up` is set before the turn comes."""
        while not self._lock.acquire(timeout=_LOOK_S):
            if given_up.is_set():
                raise KerncapError("Given up.")
        try:
            yield
        finally:
            self._lock.release()


class InTurn:
    """A bench whose steps wait for their turn."""

    def __init__(self, bench: Bench, turns: Turns) -> None:
        self._bench = bench
        self._turns = turns
        self._given_up = threading.Event()

    def prepare(self) -> None:
        """As the bench does."""
        with self._turns.taken(self._step()):
            self._bench.prepare()

    def time(self, hsaco: Path) -> Timing:
        """As the bench does."""
        with self._turns.taken(self._step()):
            return self._bench.time(hsaco)

    def validate(self, hsaco: Path, mode: str = "default") -> Validation:
        """As the bench does."""
        with self._turns.taken(self._step()):
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
