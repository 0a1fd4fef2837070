"""What the workbench knows: attempts as rows, the one under way, which is best. No widget is known here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kerncap.core.loop import events as loop
from kerncap.core.loop.iterations import Iteration
from kerncap.core.loop.judging import Judging

PASSED = ("IDENTICAL", "WITHIN_TOLERANCE", "NONDETERMINISTIC_OK")
_WORDS = {"build-failed": "does not build", "superseded": "given up", "error": "error", "kept": "kept"}


@dataclass(frozen=True)
class Row:
    """One attempt in figures. Seconds of the steps; ns of the device's clock; None: not known."""

    number: int
    verdict: str  # a verdict, or what became of it
    passed: bool = False
    changed: tuple[int, int] | None = None  # added and removed lines against the captured source
    build_s: float | None = None
    replay_s: float | None = None
    validate_s: float | None = None
    median_ns: float | None = None
    interval_ns: tuple[float, float] | None = None
    baseline_ns: float | None = None
    speed: str = ""  # FASTER, SLOWER, SAME, UNCLEAR; of a right result
    mode: str = "default"
    judged: str = ""  # with which tolerance and types; empty: exactly
    simulated: bool = False

    @property
    def speedup(self) -> float | None:
        """Against the captured kernel of the same attempt; over 1 is faster. None for a wrong result."""
        if not self.passed or not self.median_ns or self.baseline_ns is None:
            return None
        return self.baseline_ns / self.median_ns


@dataclass(frozen=True)
class Attempt:
    """The one under way. `began` is when the present step began, by the screen's clock."""

    number: int
    step: str
    began: float
    files: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    built: bool = False
    repeat: bool = False


def row_of(iteration: Iteration, changed: tuple[int, int] | None = None) -> Row:
    """An attempt's record as a row. Whatever is missing in the record is None."""
    document = iteration.document
    seconds = _mapping(document.get("seconds"))
    timing = _mapping(document.get("timing"))
    validation = _mapping(document.get("validation"))
    outcome = iteration.outcome
    verdict = str(validation.get("verdict") or "")
    if outcome in _WORDS:
        verdict = _WORDS[outcome]
    elif not verdict:
        verdict = outcome or "?"
    passed = outcome == "passed" and verdict in PASSED
    return Row(
        iteration.number,
        verdict,
        passed,
        changed,
        _number(seconds.get("build")),
        _number(seconds.get("replay")),
        _number(seconds.get("validate")),
        _number(timing.get("variant_median_ns")),
        _interval(timing.get("variant_ci95_ns")),
        _number(timing.get("baseline_median_ns")),
        str(timing.get("speed") or "") if passed else "",
        str(validation.get("mode") or "default"),
        judged_with(validation),
        "simulated" in str(timing.get("timer") or ""),
    )


def judged_with(validation: Mapping[str, Any]) -> str:
    """The tolerance and the types that a verdict went by, as text; empty: none, exactly."""
    found = _mapping(validation.get("judging"))
    try:
        dtypes = tuple((str(where), str(name)) for where, name in found["dtypes"].items())
        return Judging(float(found["atol"]), float(found["rtol"]), int(found["ulp"]), dtypes).text
    except (KeyError, TypeError, ValueError, AttributeError):
        return ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _interval(value: Any) -> tuple[float, float] | None:
    if not isinstance(value, list) or len(value) != 2:
        return None
    low, high = map(_number, value)
    return None if low is None or high is None else (low, high)


class Model:
    """The state of one workbench. `apply` takes the loop's events in their order."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.iterations: dict[int, Iteration] = {}
        self.attempt: Attempt | None = None
        self.ready = False
        self.watched: tuple[str, ...] = ()

    def load(self, iterations: list[Iteration], changed: Mapping[int, tuple[int, int]]) -> None:
        """Attempts of earlier sessions."""
        for iteration in iterations:
            self.put(iteration, changed.get(iteration.number))

    def put(self, iteration: Iteration, changed: tuple[int, int] | None) -> None:
        """A complete attempt, new or written anew."""
        before = self.rows.get(iteration.number)
        if changed is None and before is not None:
            changed = before.changed
        self.iterations[iteration.number] = iteration
        self.rows[iteration.number] = row_of(iteration, changed)

    @property
    def numbers(self) -> list[int]:
        """Attempts in their order."""
        return sorted(self.rows)

    @property
    def best(self) -> Row | None:
        """The fastest whose result is right. None where none is: a wrong result has no speedup."""
        valid = [r for r in self.rows.values() if r.passed and r.median_ns is not None]
        # Against the captured kernel where both know it: the machine may differ from session to session.
        return min(valid, key=lambda r: (-(r.speedup or 0.0), r.number), default=None)

    def against_best(self, row: Row) -> float | None:
        """Best's time by this one's, over 1 is faster; None where it cannot be said."""
        best = self.best
        if best is None or best.speedup is None or row.speedup is None:
            return None
        return row.speedup / best.speedup

    def apply(self, event: loop.Event, now: float) -> None:
        """One event of the loop; `now` by the screen's clock."""
        attempt = self.attempt
        match event:
            case loop.Watching(files=files):
                self.ready, self.watched = True, files
            case loop.Saved(number=number, files=files):
                self.attempt = Attempt(number, "build", now, files)
            case loop.Repeating(number=number, step=step):
                self.attempt = Attempt(number, step, now, repeat=True)
            case loop.Built(seconds=seconds) if attempt:
                self.attempt = replace(
                    attempt,
                    step="replay",
                    began=now,
                    built=True,
                    seconds={**attempt.seconds, "build": seconds},
                )
            case loop.Timed(seconds=seconds) if attempt:
                step = "done" if attempt.repeat else "validate"
                self.attempt = replace(
                    attempt, step=step, began=now, seconds={**attempt.seconds, "replay": seconds}
                )
            case loop.Superseded(iteration=iteration):
                self.attempt = None
                if iteration is not None:
                    self.put(iteration, None)
            case loop.Failed(step=step) if step in ("keep",) or (attempt and attempt.repeat):
                self.attempt = None
            case loop.Finished(iteration=iteration) if iteration is not None:
                self.attempt = None
                self.put(iteration, None)
