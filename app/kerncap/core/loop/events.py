"""What the edit loop says of itself, and what it asks of the bench that runs variants.

Events come from the thread that runs the loop; `kerncap watch` prints them, the terminal UI draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from kerncap.core.loop.iterations import Iteration


@dataclass(frozen=True)
class Timing:
    """The captured kernel and the variant, run in turn. Samples are ns of the device's clock; `document` is
    for JSON.

    `speed` is FASTER, SLOWER, SAME or UNCLEAR; `ratio` is baseline median by variant median (over 1: faster).
    """

    baseline_ns: tuple[float, ...]
    variant_ns: tuple[float, ...]
    baseline_median_ns: float
    variant_median_ns: float
    ratio: float
    speed: str
    timer: str
    document: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def to_json(self) -> dict[str, Any]:
        """`timing` of an attempt's record."""
        return dict(self.document) | {
            "baseline_ns": list(self.baseline_ns),
            "variant_ns": list(self.variant_ns),
            "baseline_median_ns": self.baseline_median_ns,
            "variant_median_ns": self.variant_median_ns,
            "speedup": self.ratio,
            "speed": self.speed,
            "timer": self.timer,
        }


@dataclass(frozen=True)
class Validation:
    """The verdict (IDENTICAL, WITHIN_TOLERANCE, NONDETERMINISTIC_OK, FAIL, INCONCLUSIVE), and why."""

    verdict: str
    summary: str
    document: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def passed(self) -> bool:
        """Whether the variant's result counts as right."""
        return self.verdict in ("IDENTICAL", "WITHIN_TOLERANCE", "NONDETERMINISTIC_OK")

    def to_json(self) -> dict[str, Any]:
        """`validation` of an attempt's record."""
        return dict(self.document) | {"verdict": self.verdict, "summary": self.summary}


class Bench(Protocol):
    """Runs variants of one capture; resident between attempts."""

    def prepare(self) -> None:
        """Start what is needed, so that the first attempt does not pay for it."""

    def time(self, hsaco: Path) -> Timing:
        """The variant against the captured kernel. Raises KerncapError where it faults or never ends."""

    def validate(self, hsaco: Path, mode: str = "default") -> Validation:
        """The variant's writes against the application's; `mode` is default or strict."""

    def interrupt(self) -> None:
        """Make the step under way raise KerncapError soon. From any thread; nothing where none is."""

    def close(self) -> None:
        """End what was started. May be called at any time, also from another thread."""


@dataclass(frozen=True)
class Event:
    """Something happened in attempt `number` (0: before the first). `seconds` is how long that step took."""

    number: int
    seconds: float


@dataclass(frozen=True)
class Watching(Event):
    """The loop is ready. `files` are what it looks at; `device` where it runs."""

    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Saved(Event):
    """An attempt begins, since these files changed; `seconds` is from the notice to the start."""

    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Built(Event):
    """The variant compiles. `steps` are seconds by part; `warnings` the compiler's text."""

    object: Path = Path()
    warnings: str = ""
    steps: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BuildFailed(Event):
    """The variant does not compile: the compiler's text, with the copies' names, and the sentence for it."""

    message: str = ""
    output: str = ""


@dataclass(frozen=True)
class Timed(Event):
    """The variant was timed. A speedup counts only once it is validated."""

    timing: Timing | None = None


@dataclass(frozen=True)
class Validated(Event):
    """The variant's result was compared."""

    validation: Validation | None = None


FIT = "fit"  # the step after the compile: whether the captured launch can be given to what it made


@dataclass(frozen=True)
class Failed(Event):
    """A step ended in an error: a fault, a timeout, a device that is gone."""

    step: str = ""
    message: str = ""


@dataclass(frozen=True)
class Repeating(Event):
    """One step ("replay" or "validate") of a kept attempt begins again, since it was asked for."""

    step: str = ""


@dataclass(frozen=True)
class Superseded(Event):
    """The source was saved again in the middle, or a person gave it up: this attempt counts for nothing.

    `iteration` is what is kept of it; None where only a step was done again.
    """

    iteration: Iteration | None = None


@dataclass(frozen=True)
class Finished(Event):
    """The attempt is complete and kept; `seconds` is from the save's notice to the verdict."""

    iteration: Iteration | None = None


OnEvent = Callable[[Event], None]
