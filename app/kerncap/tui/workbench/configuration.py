"""A Triton kernel's configurations in the workbench: what is pinned, what the autotuner tried, and the run of
this capture under each of them, in a thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from textual.message import Message

from kerncap.core.build.triton_pinned import Pinned, read_pinned
from kerncap.core.errors import UsageError
from kerncap.core.loop.candidates import CandidateResult, Source, as_recorded, candidates
from kerncap.core.triton import triton_record
from kerncap.core.triton.triton_record import Candidate
from kerncap.tui.workbench.failures import sentence_of
from kerncap.tui.workbench.turns import Turns


@dataclass(frozen=True)
class Tried:
    """A candidate with its values by name, and what is known of it."""

    values: dict[str, str]
    result: CandidateResult
    recorded: CandidateResult  # without any replay


@dataclass(frozen=True)
class Configuration:
    """What the pane shows. `none`: why there are no candidates. `running`: which one is under way."""

    pinned: Pinned
    tried: tuple[Tried, ...] = ()
    tuned: bool = False  # whether the autotuner had chosen when the capture was made
    cached: bool = False  # its choice came from a cache
    none: str = ""
    running: int | None = None
    problem: str = ""  # why a run ended before its time
    source: Source | None = None  # what the replays are of
    saved_since: bool = False  # it is another by now

    @property
    def count(self) -> str:
        """Which one is under way, where there is little room."""
        return "" if self.running is None else f"{self.running + 1}/{len(self.tried)}"

    @property
    def now(self) -> str:
        """What is under way, in a few words; empty where nothing is."""
        return "" if self.running is None else f"configuration {self.running + 1} of {len(self.tried)}"

    def with_result(self, row: CandidateResult) -> Configuration:
        """The one under way has come to its end; the next begins."""
        at = self.running or 0
        tried = tuple(replace(t, result=row) if i == at else t for i, t in enumerate(self.tried))
        return replace(self, tried=tried, running=min(at + 1, len(tried) - 1))


def read_configuration(directory: Path) -> Configuration | None:
    """Of a reproducer; None where its kernel is none of Triton's. Raises DamagedCaptureError."""
    pinned = read_pinned(directory)
    if pinned is None:
        return None
    record = triton_record.read(directory / "capture")
    assert record is not None
    if record.reason is not None:
        return Configuration(pinned, none=f"It cannot be rebuilt: {record.reason}")
    try:
        rows = as_recorded(directory)
    except UsageError as error:
        return Configuration(pinned, none=error.message.partition(": ")[2] or error.message)
    found: list[Candidate] = record.candidates
    tried = tuple(Tried({**c.constexprs, **c.options}, row, row) for c, row in zip(found, rows, strict=True))
    return Configuration(pinned, tried, bool(record.row.get("tuned")), record.cached)


class Ran(Message):
    """One candidate has been replayed, or could not be."""

    def __init__(self, row: CandidateResult) -> None:
        super().__init__()
        self.row = row


class Took(Message):
    """A run has taken its source."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source


class RanAll(Message):
    """The last one has; `problem` says why there are no more."""

    def __init__(self, problem: str = "") -> None:
        super().__init__()
        self.problem = problem


@dataclass
class CandidatesRun:
    """Compiles, times and compares the kernel under each candidate. Its methods return at once."""

    directory: Path
    device: str | None
    turns: Turns
    post: Callable[[Message], object]
    given_up: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Begins."""
        threading.Thread(target=self._run, name="kerncap-candidates", daemon=True).start()

    def cancel(self) -> None:
        """No more are begun; the one under way comes to its end, or its compiler is ended."""
        self.given_up.set()

    def _run(self) -> None:
        problem = ""
        try:
            found = candidates(
                self.directory,
                device=self.device,
                on_source=self._took,
                on_result=self._ran,
                cancel=self.given_up,
                turn=lambda: self.turns.taken(self.given_up),
            )
            if found.failure is not None:
                problem = found.failure.message
        except Exception as error:  # a mistake of ours must not take the screen with it
            problem = sentence_of(error, self.directory, "The run")
        self.post(RanAll("Given up." if self.given_up.is_set() else problem))

    def _took(self, source: Source) -> None:
        self.post(Took(source))

    def _ran(self, row: CandidateResult) -> None:
        if not self.given_up.is_set():
            self.post(Ran(row))
