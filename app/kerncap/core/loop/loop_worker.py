"""The thread of the edit loop that runs attempts: the newest save first, and what a person asks for between.

A save in the middle gives up the attempt under way; a request for one step waits for it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Protocol

# A step on the device that was given up is ended by force after so long.
PATIENCE_S = 2.0


@dataclass(frozen=True)
class Request:
    """A step to do again: "replay" or "validate" (with `mode`), of the attempt `number` (0: the newest)."""

    step: str
    mode: str = "default"
    number: int = 0


class Attempts(Protocol):
    """What makes the attempts: the edit loop (session.EditLoop)."""

    @property
    def stopping(self) -> bool:
        """Whether it is to end."""

    def begin(self) -> bool:
        """Before an attempt; False: there is to be none any more."""

    def digest(self) -> str:
        """Of the source as it stands."""

    def attempt_or_say(self, files: tuple[str, ...], noticed: float) -> None:
        """One attempt, after these files were saved; time.perf_counter() was `noticed` then."""

    def repeat(self, request: Request) -> None:
        """A step again."""

    def give_up(self) -> None:
        """Ends the attempt under way."""

    def stop(self) -> None:
        """Ends the loop."""


class AttemptWorker(threading.Thread):
    """Runs attempts one after the other. `error` is what ended it, if that was not `stop`.

    Without a `first` attempt, `tried` is the digest of the source that needs none.
    """

    def __init__(self, loop: Attempts, first: bool, tried: str) -> None:
        super().__init__(name="kerncap-edit-loop", daemon=True)
        self.error: BaseException | None = None
        self._loop = loop
        self._changed = threading.Condition()
        self._pending: dict[str, None] | None = {} if first else None
        self._forced = first
        self._requests: deque[Request] = deque()
        self._noticed = time.perf_counter()
        self._last = "" if first else tried

    def saved(self, files: list[str]) -> None:
        """A save was noticed; one that changed nothing is none."""
        with self._changed:
            changed = self._loop.digest() != self._last
            if self._pending is None and not changed:
                return
            if not self._pending:  # also where an attempt was asked for before: it counts from the save
                self._noticed = time.perf_counter()
            self._pending = {**(self._pending or {}), **dict.fromkeys(files)}
            if changed:
                self._loop.give_up()
            self._changed.notify()

    def build(self) -> None:
        """An attempt with the source as it stands, changed or not."""
        with self._changed:
            if self._pending is None:
                self._pending, self._noticed = {}, time.perf_counter()
            self._forced = True
            self._changed.notify()

    def ask(self, request: Request) -> None:
        """A step to do again; asked twice, done once."""
        with self._changed:
            if request not in self._requests:
                self._requests.append(request)
            self._changed.notify()

    def forget(self) -> None:
        """Nothing that was asked for is done."""
        with self._changed:
            self._requests.clear()
            self._pending, self._forced = None, False

    def run(self) -> None:
        try:
            while self._turn():
                pass
        except BaseException as error:  # handed to the thread that called EditLoop.run()
            self.error = error
            self._loop.stop()

    def _turn(self) -> bool:
        loop = self._loop
        with self._changed:
            while self._pending is None and not self._requests:
                if loop.stopping:
                    return False
                self._changed.wait(0.2)
            if not loop.begin():
                return False
            if self._pending is None:
                request = self._requests.popleft()
            else:
                request = None
                files, noticed = tuple(self._pending), self._noticed
                digest, forced = loop.digest(), self._forced
                self._pending, self._forced = None, False
                if digest == self._last and not forced:
                    return True  # saved without a change
                self._last = digest
        if request is not None:
            loop.repeat(request)
        else:
            loop.attempt_or_say(files, noticed)
        return not loop.stopping
