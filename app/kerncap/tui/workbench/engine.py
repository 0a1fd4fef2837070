"""The edit loop in a thread of its own; to the screen it only posts messages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.message import Message

from kerncap.core.errors import KerncapError
from kerncap.core.loop import events as loop
from kerncap.core.loop.history import (
    KEPT,
    Contents,
    captured_sources,
    changed_lines,
    iteration_sources,
    line_now,
    present_sources,
    same_sources,
)
from kerncap.core.loop.iterations import Iteration, list_iterations
from kerncap.core.loop.judging import remembered
from kerncap.core.loop.loop_worker import Request
from kerncap.core.loop.session import EditLoop
from kerncap.tui.workbench.configuration import Configuration, read_configuration
from kerncap.tui.workbench.failures import sentence_of
from kerncap.tui.workbench.replay_only import ReplayOnly, has_source, why_none
from kerncap.tui.workbench.turns import InTurn, Turns

if TYPE_CHECKING:
    from kerncap.core.build.compile_file import CompileFile

MakeBench = Callable[[Path, "str | None"], loop.Bench]


def replay_bench(directory: Path, device: str | None) -> loop.Bench:
    """The bench on kerncap-replay."""
    from kerncap.core.loop.bench import ReplayBench

    return ReplayBench(directory, device)


@dataclass(frozen=True)
class Facts:
    """What is known before the first attempt."""

    kernel: str
    symbol: str
    arch: str
    iterations: tuple[Iteration, ...] = ()
    changed: dict[int, tuple[int, int]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    resumed: bool = False  # the source as it stands has been tried already
    definition: tuple[str, int] | None = None  # the file that defines the kernel, and the line it is at now
    judging: str = ""  # with which tolerance and types results are compared; empty: exactly
    replay_only: str = ""  # where there is no source: why, and what can be done
    configuration: Configuration | None = None  # of a Triton kernel


class Opened(Message):
    """The reproducer was read."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self.facts = facts


class Happened(Message):
    """An event of the loop. `changed` are lines against the captured source, where that was counted."""

    def __init__(self, event: loop.Event, changed: tuple[int, int] | None = None) -> None:
        super().__init__()
        self.event = event
        self.changed = changed


class Stopped(Message):
    """The loop ended; `sentence` says why, empty where it was asked to."""

    def __init__(self, sentence: str) -> None:
        super().__init__()
        self.sentence = sentence


class Engine:
    """Runs the loop. Its methods return at once, and may be called from the event loop."""

    def __init__(
        self,
        directory: Path,
        device: str | None,
        post: Callable[[Message], object],
        *,
        make_bench: MakeBench = replay_bench,
        poll_ms: int | None = None,
        limit_s: float = 600.0,
    ) -> None:
        self.directory = directory
        self._device = device
        self._post = post
        self._make_bench = make_bench
        self._poll_ms = poll_ms
        self._limit_s = limit_s
        self._loop: EditLoop | ReplayOnly | None = None
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._watching = True
        self._repeats = False  # what is under way is a step of a kept attempt
        self.turns = Turns()

    @property
    def alive(self) -> bool:
        """Whether the loop runs."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, *, first: bool = True) -> None:
        """Opens the reproducer and runs the loop. Nothing where it runs already."""
        if self.alive or self._closed.is_set():
            return
        self._thread = threading.Thread(
            target=self._run, args=(first,), name="kerncap-workbench", daemon=True
        )
        self._thread.start()

    def _run(self, first: bool) -> None:
        sentence = ""
        try:
            bench = InTurn(self._make_bench(self.directory, self._device), self.turns)
            with self._made(bench) as self._loop:
                facts = read_facts(self.directory)
                self._post(Opened(facts))
                self._loop.watching = self._watching
                if not self._closed.is_set():
                    self._loop.run(first=first and not facts.resumed)
        except Exception as error:  # a mistake of ours must not take the screen with it
            sentence = sentence_of(error, self.directory, "The loop")
        finally:
            self._loop = None
            self.turns.under_way(False)
        self._post(Stopped("" if self._closed.is_set() else sentence))

    def _made(self, bench: loop.Bench) -> EditLoop | ReplayOnly:
        if not has_source(self.directory):
            return ReplayOnly(self.directory, bench, self._tell)
        return EditLoop(
            self.directory, bench, self._tell, poll_ms=self._poll_ms, compile_timeout_s=self._limit_s
        )

    def _tell(self, event: loop.Event) -> None:
        match event:
            case loop.Saved() | loop.Repeating():
                self._repeats = isinstance(event, loop.Repeating)
                self.turns.under_way(True)
            case loop.Finished() | loop.Superseded():
                self.turns.under_way(False)
            case loop.Failed(step=step) if step == "keep" or self._repeats:
                self.turns.under_way(False)
        changed = None
        if isinstance(event, (loop.Finished, loop.Superseded)) and event.iteration is not None:
            changed = _changed(self.directory, event.iteration) if has_source(self.directory) else None
        self._post(Happened(event, changed))

    def build(self) -> None:
        """An attempt with the source as it stands; starts the loop where it has ended."""
        if self._loop is not None:
            self._loop.build()
        else:
            self.start()

    def ask(self, step: str, mode: str = "default", number: int = 0) -> None:
        """One step of a kept attempt again."""
        if self._loop is not None:
            self._loop.ask(Request(step, mode, number))

    def cancel(self) -> None:
        """Gives up what is under way."""
        if self._loop is not None:
            self._loop.cancel()

    def watch(self, on: bool) -> None:
        """Whether a save starts an attempt."""
        self._watching = on
        if self._loop is not None:
            self._loop.watching = on

    def close(self) -> None:
        """Ends the loop and the replayer; within two seconds or so. May be called twice."""
        self._closed.set()
        if self._loop is not None:
            self._loop.close()


def read_facts(directory: Path) -> Facts:
    """Kernel and attempts of a reproducer. Raises KerncapError where it is none."""
    from kerncap.core.build.compile_file import CompileFile
    from kerncap.core.loop.captures import open_capture

    problems: list[str] = []
    opened = open_capture(directory)
    dispatch, arch = opened.capture.dispatch, opened.capture.device.name
    kernel = dispatch.demangled or dispatch.symbol
    configuration = read_configuration(directory)
    if not has_source(directory):
        judging = _judging(directory, problems)
        why = why_none(opened.manifest)
        return Facts(
            kernel,
            dispatch.symbol,
            arch,
            problems=tuple(problems),
            judging=judging,
            replay_only=why,
            configuration=configuration,
        )
    plan = CompileFile.read(directory)
    iterations = list_iterations(directory, problems)
    baseline = captured_sources(directory)
    present = present_sources(directory)
    changed: dict[int, tuple[int, int]] = {}
    resumed = False
    for iteration in iterations:
        try:
            sources = iteration_sources(iteration)
        except KerncapError:
            continue
        changed[iteration.number] = changed_lines(baseline, sources)
        if iteration is iterations[-1] and iteration.outcome not in ("superseded", KEPT, "error"):
            resumed = same_sources(sources, present)
    judging = _judging(directory, problems)
    return Facts(
        kernel,
        plan.symbol,
        arch,
        tuple(iterations),
        changed,
        tuple(problems),
        resumed,
        _definition(opened.manifest, plan, baseline, present),
        judging,
        configuration=configuration,
    )


def _judging(directory: Path, problems: list[str]) -> str:
    try:
        return remembered(directory).text
    except KerncapError as error:
        problems.append(error.message)
        return ""


def _definition(
    manifest: Mapping[str, Any], plan: CompileFile, captured: Contents, present: Contents
) -> tuple[str, int] | None:
    """Where the kernel is defined, in the sources as they stand."""
    from kerncap.core.extract.reproducer_info import defined_at

    source = manifest.get("source")
    found = defined_at(str(source.get("definition")), plan.sources) if isinstance(source, dict) else None
    if found is None:
        return None
    name, line = found
    return name, line_now(captured.get(name, b""), present.get(name, b""), line)


def _changed(directory: Path, iteration: Iteration) -> tuple[int, int] | None:
    try:
        return changed_lines(captured_sources(directory), iteration_sources(iteration))
    except (KerncapError, OSError):
        return None
