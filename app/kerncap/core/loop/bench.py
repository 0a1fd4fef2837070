"""The edit loop's bench: one resident replayer that times and validates variants of a capture."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kerncap.core.capture.reading import read_capture
from kerncap.core.errors import KerncapError
from kerncap.core.judge.validate import Validator
from kerncap.core.loop.events import Timing, Validation
from kerncap.core.loop.judging import remembered
from kerncap.core.replay.replay import load, race
from kerncap.core.replay.replayer import Replayer

# Each variant stays loaded in the replayer; after so many a fresh process takes over.
_MOST_VARIANTS = 200


class ReplayBench:
    """`events.Bench` on kerncap-replay. The captured kernel's own runs are made once, in `prepare`.

    `time_limit_s` bounds the samples of one attempt, `limit_s` one dispatch. Results are judged as the
    reproducer remembers it (core/loop/judging.py), also where that changes meanwhile.
    """

    def __init__(
        self,
        directory: Path,
        device: str | None = None,
        *,
        time_limit_s: float = 10.0,
        limit_s: float = 60.0,
    ) -> None:
        self._directory = directory
        self._device = device
        self._time_limit_s = time_limit_s
        self._limit_s = limit_s
        self._replayer: Replayer | None = None
        self._validator: Validator | None = None
        self._declared: dict[int | str, str] = {}
        self._loaded = 0
        self._closed = threading.Event()

    def prepare(self) -> None:
        """Puts the memory in place and replays the captured kernel; raises what they raise."""
        if self._validator is not None:
            return
        with self._stopped_is_an_error():
            declared = remembered(self._directory).declared
            if self._replayer is None:
                capture = read_capture(self._directory)
                self._replayer = Replayer(capture, self._device, limit_s=self._limit_s)
            self._validator = self._new_validator(self._replayer, declared)

    def _new_validator(self, replayer: Replayer, declared: dict[int | str, str]) -> Validator:
        """With the captured kernel's own runs, which are told apart by the types that memory has."""
        validator = Validator(replayer.capture, replayer=replayer, dtypes=declared)
        validator.baseline()
        self._declared = declared
        return validator

    def time(self, hsaco: Path) -> Timing:
        """Both kernels in turn, in blocks of A B B A (core/replay/timing.py)."""
        replayer, validator = self._ready()
        with self._stopped_is_an_error():
            baseline = validator.baseline().variant
            found = race(replayer, baseline, load(replayer, hsaco), time_limit_s=self._time_limit_s)
            return Timing(
                tuple(float(v) for v in found.baseline.samples_ns),
                tuple(float(v) for v in found.variant.samples_ns),
                found.baseline.median_ns,
                found.variant.median_ns,
                found.speedup,
                found.verdict.value,
                found.timer,
                found.to_json(),
            )

    def validate(self, hsaco: Path, mode: str = "default") -> Validation:
        """What the variant writes against what the application wrote; strict: every captured byte.

        The document says how it was judged (`judging`).
        """
        replayer, validator = self._ready()
        with self._stopped_is_an_error():
            judging = remembered(self._directory)
            if judging.declared != self._declared:
                self._validator = validator = self._new_validator(replayer, judging.declared)
            result = validator.validate(hsaco, mode, judging.tolerance)
            summary = result.reason or f"{result.compared_bytes} bytes compared, none differs"
            if judging.text:
                summary += f" (judged with {judging.text})"
            return Validation(result.verdict, summary, result.to_json() | {"judging": judging.to_json()})

    def interrupt(self) -> None:
        """Ends the replayer under the running step, which then raises KerncapError; the next one starts it
        again.
        """
        if self._replayer is not None:
            self._replayer.kill()

    def close(self) -> None:
        """Ends the replayer, also under a running step, which then raises KerncapError."""
        self._closed.set()
        if self._replayer is not None:
            self._replayer.kill()
            self._replayer.close()

    def _ready(self) -> tuple[Replayer, Validator]:
        if self._replayer is not None:
            self._replayer.process.reap()  # ended while idle: that is not this step's failure
        self.prepare()
        assert self._replayer is not None
        assert self._validator is not None
        self._loaded += 1
        if self._loaded > _MOST_VARIANTS:
            self._loaded = 0
            self._replayer.stop()
        return self._replayer, self._validator

    @contextmanager
    def _stopped_is_an_error(self) -> Iterator[None]:
        try:
            yield
        except KerncapError:
            raise
        except Exception as error:
            if self._closed.is_set():  # whatever broke, it broke because the replayer was taken away
                raise KerncapError("The replayer was stopped.") from error
            raise
