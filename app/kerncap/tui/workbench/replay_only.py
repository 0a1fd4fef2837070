"""The loop of a reproducer without source: the captured kernel itself is timed and compared, when asked to.

To the screen it is as the edit loop: it says what happens in the same events. Nothing is kept on disk.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from kerncap.core.build.compile_file import NAME
from kerncap.core.capture.reading import read_capture
from kerncap.core.errors import KerncapError
from kerncap.core.loop import events as loop
from kerncap.core.loop.iterations import Iteration
from kerncap.core.loop.loop_worker import Request

STEPS = ("replay", "validate")


def has_source(directory: Path) -> bool:
    """Whether there is something to rebuild; also where `directory` is none, which opening it then says."""
    return (directory / NAME).exists() or not directory.is_dir()


def why_none(manifest: Mapping[str, Any]) -> str:
    """Why there is nothing to edit, in a sentence, and what can be done."""
    source = manifest.get("source")
    source = source if isinstance(source, dict) else {}
    if source.get("variant"):
        reason = f"{NAME}, which says how it is compiled, is gone."
    else:
        reason = str(source.get("reason") or "No source was found when it was extracted.")
    return f"Replay only, there is no source to edit: {reason} p times the captured kernel, v compares it."


class ReplayOnly:
    """Times and compares the captured kernel. A context manager; `run` blocks, the rest is for any thread."""

    def __init__(self, directory: Path, bench: loop.Bench, on_event: loop.OnEvent) -> None:
        self.directory = directory
        self.bench = bench
        self.watching = False  # nothing is
        self._code = read_capture(directory).code_path()
        self._emit = on_event
        self._asked: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._given_up = threading.Event()
        self._stop = threading.Event()
        self._runs: dict[int, Iteration] = {}

    def __enter__(self) -> ReplayOnly:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def build(self) -> None:
        """There is nothing to build: another run, as `ask`."""
        self.ask(Request("replay"))

    def ask(self, request: Request) -> None:
        """Another run ("replay"), or the comparison of one again ("validate")."""
        self._asked.put(request)

    def cancel(self) -> None:
        """Gives up the run under way."""
        self._given_up.set()
        self.bench.interrupt()

    def close(self) -> None:
        """Makes `run` return, and ends the replayer."""
        self._stop.set()
        self._given_up.set()
        self._asked.put(None)
        self.bench.close()

    def run(self, *, first: bool = True) -> None:
        """Serves requests until `close()`, after a `first` run. Raises what preparing the replayer raises."""
        started = time.perf_counter()
        self.bench.prepare()
        self._emit(loop.Watching(0, time.perf_counter() - started))
        if first:
            self.build()
        while (request := self._asked.get()) is not None and not self._stop.is_set():
            self._given_up.clear()
            number = request.number or max(self._runs, default=0)
            if request.step == "replay" or number not in self._runs:  # of before the loop was started again
                self._round(max(self._runs, default=0) + 1, STEPS, request.mode, {})
            else:
                known = {n: v for n, v in self._runs[number].document.items() if n != "error"}
                self._round(number, ("validate",), request.mode, known)

    def _round(self, number: int, steps: tuple[str, ...], mode: str, known: Mapping[str, Any]) -> None:
        started = time.perf_counter()
        document: dict[str, Any] = {**known, "seconds": dict(known.get("seconds", {})), "outcome": "error"}
        for step in steps:
            self._emit(loop.Repeating(number, 0.0, step))
            begun = time.perf_counter()
            try:
                self._step(step, mode, document)
            except KerncapError as error:
                if self._given_up.is_set():
                    self._emit(loop.Superseded(number, time.perf_counter() - started))
                    return
                document["error"] = {"step": step, "message": error.message}
                break
            finally:
                document["seconds"][step] = time.perf_counter() - begun
        document["seconds"]["total"] = time.perf_counter() - started
        self._runs[number] = Iteration(number, self.directory, document)
        self._emit(loop.Finished(number, time.perf_counter() - started, self._runs[number]))

    def _step(self, step: str, mode: str, document: dict[str, Any]) -> None:
        if step == "replay":
            document["timing"] = self.bench.time(self._code).to_json()
            return
        compare: Callable[..., loop.Validation] = self.bench.validate
        validation = compare(self._code) if mode == "default" else compare(self._code, mode)
        document["validation"] = validation.to_json()
        document["outcome"] = "passed" if validation.passed else "failed"
