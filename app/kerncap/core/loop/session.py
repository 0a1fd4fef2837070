"""The edit loop: at every save, rebuild, time against the captured kernel, validate, and say so in events.

Headless: `EditLoop` yields nothing to a terminal. It calls `on_event` with the dataclasses of
events.py. The replayer stays up
between attempts, so that an attempt costs a compile, some runs and a comparison.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from kerncap.core.build.compile_file import CompileFile
from kerncap.core.build.recompile import MisfitError, recompile
from kerncap.core.build.toolchain import CompileError
from kerncap.core.errors import KerncapError, ShortageError, UsageError, WorkloadError
from kerncap.core.judge.counting import counted
from kerncap.core.loop.events import (
    FIT,
    Bench,
    BuildFailed,
    Built,
    Event,
    Failed,
    Finished,
    OnEvent,
    Repeating,
    Saved,
    Superseded,
    Timed,
    Validated,
    Validation,
    Watching,
)
from kerncap.core.loop.iterations import OBJECT, Iteration, Keeper, find_iteration
from kerncap.core.loop.loop_worker import PATIENCE_S, AttemptWorker, Request
from kerncap.core.loop.watching import Sources
from kerncap.core.replay.replayer import KernelFault, KernelTimeout
from kerncap.core.triton.triton_launch import LAUNCH

_MOST_TORN = 20  # attempts in a row whose source was saved during the compile


class EditLoop:
    """The edit loop of one reproducer. A context manager; `run` blocks, `attempt` does one round.

    `keep` writes DIR/iterations. `stop()` may be called from any thread or signal handler: `run` returns
    after the step that is under way, whose compile is ended.
    """

    def __init__(
        self,
        directory: Path | str,
        bench: Bench,
        on_event: OnEvent,
        *,
        keep: bool = True,
        poll_ms: int | None = None,
        compile_timeout_s: float = 600.0,
    ) -> None:
        self.directory = Path(os.path.abspath(directory))
        self.plan = CompileFile.read(self.directory)
        self.bench = bench
        self._on_event = on_event
        self._sources = Sources(self.directory)
        self._opened = self._sources.digest()
        self._source = self._sources.state()
        self._torn: list[str] = []  # saved while the compiler read them
        self._keeper = Keeper(self.directory) if keep else None
        self._poll_ms = poll_ms
        self._compile_timeout_s = compile_timeout_s
        self._stop = threading.Event()
        self._cancel = threading.Event()
        self._number = 0
        self._worker: AttemptWorker | None = None
        self._watching = True
        self._step_began: float | None = None

    def __enter__(self) -> EditLoop:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def stop(self) -> None:
        """Make `run` return soon."""
        self._stop.set()
        self._cancel.set()

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    @property
    def watching(self) -> bool:
        """Whether a save starts an attempt. Set from any thread; a missed save is caught up with."""
        return self._watching

    @watching.setter
    def watching(self, on: bool) -> None:
        self._watching = on
        if on and self._worker is not None:
            self._worker.saved([])

    def digest(self) -> str:
        """Of the sources; changes when any content does."""
        return self._sources.digest()

    def build(self) -> None:
        """Ask for an attempt with the source as it stands, while `run` runs. From any thread."""
        if self._worker is not None:
            self._worker.build()

    def ask(self, request: Request) -> None:
        """Ask for one step to be done again, while `run` runs. From any thread."""
        if self._worker is not None:
            self._worker.ask(request)

    def cancel(self) -> None:
        """Give up the attempt or the step under way at once, and what was asked for. From any thread."""
        if self._worker is not None:
            self._worker.forget()
        self.give_up()
        if self._step_began is not None:
            self.bench.interrupt()

    def give_up(self) -> None:
        """The attempt under way no longer counts; a compile ends at once, a step on the device soon."""
        self._cancel.set()

    def begin(self) -> bool:
        """Before an attempt: what was given up before is over. False where the loop is to stop."""
        self._cancel.clear()
        if self._stop.is_set():  # also where stop() comes between these lines
            self._cancel.set()
        return not self._stop.is_set()

    def close(self) -> None:
        """Stop, and end the replayer."""
        self.stop()
        self.bench.close()

    def run(self, *, first: bool = True) -> None:
        """Watch until `stop()`. With `first`, the source as it stands is the first attempt; without, the one
        that was there when the loop was made needs none.

        Raises what preparing the replayer raises; an attempt's own errors are events.
        """
        started = time.perf_counter()
        self.bench.prepare()
        names = tuple(str(p.relative_to(self.directory)) for p in self._sources.paths)
        self._emit(Watching(0, time.perf_counter() - started, names))
        self._worker = worker = AttemptWorker(self, first, self._opened)
        worker.start()
        begun = False
        try:
            for changed in self._sources.changes(self._stop, poll_ms=self._poll_ms):
                if worker.error is not None:
                    break
                # Once it watches, it catches up with what was saved while it began.
                if (changed or not begun) and self._watching:
                    worker.saved(changed)
                begun = True
                began = self._step_began
                if self._cancel.is_set() and began is not None and time.monotonic() - began > PATIENCE_S:
                    self.bench.interrupt()  # a variant that never ends does not hold up the next one
        finally:
            self.stop()
            worker.join()
        if worker.error is not None:
            raise worker.error

    def attempt(self, files: tuple[str, ...] = (), noticed: float | None = None) -> Iteration | None:
        """One round over the source as it is now: build, time, validate. None where it was superseded or
        stopped. Where a file is saved during the compile, that attempt is superseded and another one made.

        `noticed` is when the save was seen (time.perf_counter); errors of the variant are events, not
        exceptions.
        """
        noticed = time.perf_counter() if noticed is None else noticed
        for _ in range(_MOST_TORN):
            kept = self._round(files, noticed)
            if kept is not None or not self._torn or self._cancel.is_set():
                return kept
            if self._worker is not None:  # tries again, and knows that the save that comes to it is this one
                self._worker.saved(self._torn)
                self._worker.build()
                return None
        return None

    def _round(self, files: tuple[str, ...], noticed: float) -> Iteration | None:
        begun = time.perf_counter()
        self._torn = []
        self._source = self._sources.state()
        if self._keeper:
            self._number, folder = self._keeper.open(self._source.contents)
            target = folder / OBJECT
        else:
            self._number, folder = self._number + 1, self.directory
            target = self.directory / ".variant.hsaco"
        number = self._number
        self._emit(Saved(number, begun - noticed, files))
        document: dict[str, Any] = {"files": list(files), "seconds": {}}
        outcome = self._steps(number, target, document)
        _settle(document, outcome or "superseded")
        total = time.perf_counter() - noticed
        document["seconds"]["total"] = total
        kept = None
        if self._keeper:
            kept = self._keeper.close(number, folder, document)
        else:
            target.unlink(missing_ok=True)
            Path(f"{target}{LAUNCH}").unlink(missing_ok=True)
        kept = kept or Iteration(number, folder, document)
        if outcome is None:
            self._emit(Superseded(number, total, kept))
            return None
        self._emit(Finished(number, total, kept))
        return kept

    def attempt_or_say(self, files: tuple[str, ...], noticed: float) -> None:
        """`attempt`; where it cannot be kept (a full disk), that is an event, and the loop goes on."""
        try:
            self.attempt(files, noticed)
        except KerncapError as error:
            self._emit(Failed(self._number, time.perf_counter() - noticed, "keep", error.message))

    def repeat(self, request: Request) -> None:
        """Time or validate a kept attempt's object again; its record is written anew."""
        started = time.perf_counter()
        number = request.number or self._number
        try:
            kept = find_iteration(self.directory, number)
            target = kept.directory / OBJECT
            if not target.is_file():
                raise UsageError(f"Attempt {kept.number} has no object: it does not build.")
            number = kept.number
            self._emit(Repeating(number, 0.0, request.step))
            document = {name: value for name, value in kept.document.items() if name != "error"}
            outcome = None
            if request.step == "replay":
                outcome = self._time(number, target, document)
            if outcome is None and request.step == "replay" and "validation" in document:
                outcome = document["outcome"]
            elif outcome is None:  # also after a replay of an attempt that had no verdict yet
                outcome = self._validate(number, target, document, request.mode)
            if self._cancel.is_set():
                self._emit(Superseded(number, time.perf_counter() - started))
                return
            if outcome == "error":
                return  # it says nothing of the attempt: what was known of it holds
            _settle(document, outcome or "superseded")
            if self._keeper:
                kept = self._keeper.close(number, kept.directory, document)
            self._emit(Finished(number, time.perf_counter() - started, kept))
        except KerncapError as error:
            self._emit(Failed(number, time.perf_counter() - started, request.step, error.message))

    def _steps(self, number: int, target: Path, document: dict[str, Any]) -> str | None:
        """Build, time and validate; the outcome, or None where a newer save or stop() came between."""
        outcome = self._build(number, target, document)
        # The compiler reads the files themselves: what it made must be of the source that is kept with it.
        self._torn = self._sources.state().saved_since(self._source)
        if self._torn:
            return None
        if outcome is not None or self._cancel.is_set():
            return None if self._cancel.is_set() else outcome
        for step in (self._time, self._validate):
            outcome = step(number, target, document)
            if self._cancel.is_set():
                return None
            if outcome is not None:
                return outcome
        return None

    def _build(self, number: int, target: Path, document: dict[str, Any]) -> str | None:
        started = time.perf_counter()
        try:
            made = recompile(self.directory, target, timeout_s=self._compile_timeout_s, cancel=self._cancel)
        except (WorkloadError, ShortageError) as error:  # a full disk says nothing of the source
            return self._failed(number, "build", started, error, document)
        except MisfitError as error:  # it compiled
            return self._failed(number, FIT, started, error, document)
        except KerncapError as error:
            if self._cancel.is_set():
                return None
            seconds = time.perf_counter() - started
            output = error.output if isinstance(error, CompileError) else ""
            document["seconds"]["build"] = seconds
            document["build"] = {"message": error.message, "output": output}
            self._emit(BuildFailed(number, seconds, error.message, output))
            return "build-failed"
        seconds = time.perf_counter() - started
        document["seconds"]["build"] = seconds
        document["build"] = {"warnings": made.warnings, "steps": made.seconds, "compiler": made.compiler}
        self._emit(Built(number, seconds, made.object, made.warnings, made.seconds))
        return None

    def _time(self, number: int, target: Path, document: dict[str, Any]) -> str | None:
        started = time.perf_counter()
        try:
            with self._on_device():
                timing = self.bench.time(target)
        except (KernelFault, KernelTimeout) as error:
            # The variant's own doing, on the captured memory: that is a verdict, not an error of the tool.
            self._failed(number, "replay", started, error, document)
            validation = Validation("FAIL", error.message)
            document["validation"] = {"verdict": validation.verdict, "summary": validation.summary}
            if not self._cancel.is_set():
                self._emit(Validated(number, time.perf_counter() - started, validation))
            return "failed"
        except KerncapError as error:
            return self._failed(number, "replay", started, error, document)
        seconds = time.perf_counter() - started
        document["seconds"]["replay"] = seconds
        document["timing"] = timing.to_json()
        self._emit(Timed(number, seconds, timing))
        return None

    def _validate(
        self, number: int, target: Path, document: dict[str, Any], mode: str = "default"
    ) -> str | None:
        started = time.perf_counter()
        try:
            with self._on_device():
                if mode == "default":
                    validation = self.bench.validate(target)
                else:
                    validation = self.bench.validate(target, mode)
        except KerncapError as error:
            return self._failed(number, "validate", started, error, document)
        seconds = time.perf_counter() - started
        document["seconds"]["validate"] = seconds
        document["validation"] = validation.to_json()
        self._emit(Validated(number, seconds, validation))
        return "passed" if validation.passed else "failed"

    @contextmanager
    def _on_device(self) -> Iterator[None]:
        self._step_began = time.monotonic()
        try:
            yield
        finally:
            self._step_began = None

    def _failed(
        self, number: int, step: str, started: float, error: KerncapError, document: dict[str, Any]
    ) -> str | None:
        if self._cancel.is_set():
            return None
        seconds = time.perf_counter() - started
        document["seconds"][step] = seconds
        document["error"] = {"step": step, "message": error.message, "exit_code": error.exit_code}
        self._emit(Failed(number, seconds, step, error.message))
        return "error"

    def _emit(self, event: Event) -> None:
        self._on_event(event)


def _settle(document: dict[str, Any], outcome: str) -> None:
    """Writes down what became of an attempt; only one that passed has a speedup."""
    document["outcome"] = outcome
    if "timing" in document:
        document["timing"] = counted(document["timing"], outcome == "passed")


def open_loop(
    directory: Path | str,
    on_event: OnEvent,
    *,
    device: str | None = None,
    limit_s: float = 60.0,
    **options: Any,
) -> EditLoop:
    """An edit loop on the real replayer. `limit_s` is of one dispatch; `options` go to EditLoop. Raises
    UsageError where there is no variant.
    """
    path = Path(os.path.abspath(directory))
    if not path.is_dir():
        raise UsageError(f"{directory} is no directory: name a reproducer, as `kerncap extract` writes it.")
    CompileFile.read(path)
    from kerncap.core.loop.bench import ReplayBench

    return EditLoop(path, ReplayBench(path, device=device, limit_s=limit_s), on_event, **options)
