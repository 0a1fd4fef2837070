"""Running a program until one dispatch of a kernel is captured, or saying why none was."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kerncap.core.code.layout import CaptureState, MemoryMode
from kerncap.core.code.names import is_id, matching, nearest, one_line, short_ids, too_short_an_id
from kerncap.core.code.telling import Described, code_marks
from kerncap.core.device.devices import Device, full_environment
from kerncap.core.device.runtimes import RuntimeWatch, no_dispatch_reason
from kerncap.core.errors import UsageError, WorkloadError, shortage_in
from kerncap.core.program.control import CaptureRequest, CaptureStatus, Session, process_start
from kerncap.core.program.device_words import words_of_devices
from kerncap.core.program.live import KernelStats, LiveReader, Snapshot, merge_kernels
from kerncap.core.program.workload import Command, Ended, Workload
from kerncap.core.triton import triton_choice, triton_record
from kerncap.core.units import by, many, times

CAPTURE_LIMIT_S = 600.0  # for the queues to drain, and for the dispatch itself; a simulated one may be slow
_EXIT_GRACE_S = 5.0
STAGES = {
    CaptureState.IDLE: "waiting",
    CaptureState.ARMED: "waiting",
    CaptureState.DRAINING: "draining",
    CaptureState.SAVING: "saving",
    CaptureState.RUNNING: "running",
    CaptureState.SAVING_CHANGES: "saving changes",
    CaptureState.DONE: "saved",
}


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an extraction is. `bytes_total` is 0 while nothing is being saved."""

    stage: str
    bytes_done: int = 0
    bytes_total: int = 0
    seconds: float = 0.0  # since the saving began, or since the start of the stage
    dispatches: int = 0  # seen so far


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run of the program with a capture armed in it."""

    pattern: str
    command: Command
    device: Device
    output: Path  # the capture's directory, which does not exist yet
    exact: bool = False
    nth: int = 1
    memory: MemoryMode = MemoryMode.REACHABLE
    grid: tuple[int, int, int] = (0, 0, 0)
    keep_running: bool = False
    timeout: float | None = None
    directory: str | os.PathLike[str] | None = None
    environment: Mapping[str, str] | None = None
    stdin: int | None = None
    stdout: int | None = None
    stderr: int | None = None


# What became of the program: kerncap ended it once the capture was on disk, or at its time limit; it ran to
# its own end; or it runs on.
PROGRAM_ENDS = ("ended", "timed-out", "exited", "running")


@dataclass(frozen=True, slots=True)
class Captured:
    """The capture is on disk."""

    snapshot_s: float
    pid: int
    program: str  # what became of it: one of PROGRAM_ENDS
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """The pattern fits several loaded kernels, or none by the interposer's rules; these were launched.

    `configurations` is what Triton compiled them with, by id; `chosen` the id of an autotuner's choice.
    """

    launched: tuple[KernelStats, ...]
    configurations: Mapping[str, Described] = field(default_factory=dict)
    chosen: str | None = None


def kernel_lines(
    kernels: Sequence[KernelStats],
    of: Sequence[KernelStats] | None = None,
    configurations: Mapping[str, Described] | None = None,
) -> str:
    """Kernels for a person: id, calls, total time, name, and what of Triton's configurations it has. Ids are
    short, yet unique among `of`.
    """
    short = short_ids(kernel.id for kernel in (of or kernels))
    known = configurations or {}
    marks = code_marks(of or kernels)
    lines = []
    for kernel in kernels:
        total = f"{'~' * kernel.estimated}{kernel.total_ns / 1e6:.3f}"
        name = one_line(kernel.name, 160) + (f"  ({marks[kernel.id]})" if kernel.id in marks else "")
        if kernel.id in known and known[kernel.id].text:
            name += f": {one_line(known[kernel.id].text, 160)}"
        lines.append(f"  {short[kernel.id]:<8} {kernel.calls:>9} calls {total:>12} ms  {name}")
    return "\n".join(lines)


def kernel_details(kernels: Sequence[KernelStats]) -> list[dict[str, object]]:
    """The same for the error document of --json."""
    return [
        {"id": k.id, "name": k.name, "symbol": k.symbol, "calls": k.calls, "total_ns": k.total_ns}
        for k in kernels
    ]


def run(request: RunRequest, on_progress: OnProgress | None = None) -> Captured | Ambiguous:
    """Starts the program with the capture armed, and waits until it is complete.

    On return nothing of the program runs. Raises WorkloadError where the program fails, ends, or reaches the
    time limit before the capture is complete, or the capture itself fails; nothing is left of it then.
    """
    capture = CaptureRequest(
        pattern=request.pattern,
        output=request.output,
        nth=request.nth,
        exact=request.exact,
        memory=request.memory,
        exit_after=not request.keep_running,
        timeout_s=min(CAPTURE_LIMIT_S, request.timeout or CAPTURE_LIMIT_S),
        grid=request.grid,
    )
    with Session.create() as session, LiveReader(session.directory) as reader:
        session.request_capture(capture)
        variables = full_environment(request.device, session.directory, request.environment)
        with Workload(
            request.command,
            variables,
            directory=request.directory,
            stdin=request.stdin,
            stdout=request.stdout,
            stderr=request.stderr,
            session=session.directory,
        ) as workload:
            outcome = _Run(request, session, reader, workload, on_progress).wait()
            if isinstance(outcome, Captured):
                triton_record.keep(session.directory, request.output)
                return outcome
            return replace(
                outcome,
                configurations=triton_choice.configurations(session.directory),
                chosen=triton_choice.chosen_kernel(session.directory, (k.id for k in outcome.launched)),
            )


class _Run:
    def __init__(
        self,
        request: RunRequest,
        session: Session,
        reader: LiveReader,
        workload: Workload,
        on_progress: OnProgress | None,
    ) -> None:
        self.request = request
        self.session = session
        self.reader = reader
        self.workload = workload
        self.on_progress = on_progress
        self.watch = RuntimeWatch(session.directory)
        self._shown = 0.0

    def wait(self) -> Captured | Ambiguous:
        settled: list[CaptureStatus] = []

        def tick() -> bool:
            self.watch.look(self.workload.descendants)
            status = self.session.status()
            self._show(status)
            if status.state in (CaptureState.DONE, CaptureState.FAILED, CaptureState.CANCELLED):
                settled.append(status)
                return True
            if status.state.busy and status.owner_pid and process_start(status.owner_pid) is None:
                # Read again: it may have finished and ended between the two looks.
                status = self.session.status()
                if status.state.busy:
                    raise self._died(status)
            return False

        ended = self.workload.wait(timeout=self.request.timeout, tick=tick, interval=0.02)
        status = settled[0] if settled else self.session.status()
        if status.state == CaptureState.DONE:
            return self._captured(status)
        if status.state in (CaptureState.FAILED, CaptureState.CANCELLED):
            self.workload.end()
            short = shortage_in(status.message)
            raise WorkloadError(
                f"{self.request.pattern} was not captured: {status.message or 'no reason given'}"
                + (f": {short}" if short else "")
            )
        if ended is None:
            self.workload.end()
            raise WorkloadError(
                f"{self.request.pattern} was not captured within {self.request.timeout:g} s "
                "(--timeout); the program was "
                f"ended.{self._launched()}",
                **self._details(),
            )
        return self._not_captured(status, ended)

    def _show(self, status: CaptureStatus) -> None:
        if self.on_progress is None:
            return
        now = time.monotonic()
        if now - self._shown < 0.1 and not status.state.final:
            return
        self._shown = now
        busy = status.state.busy or status.state == CaptureState.DONE
        since = status.started_ns / 1e9 if busy and status.started_ns else self.workload.started
        dispatches = 0 if busy else self.reader.snapshot().total("dispatches")
        self.on_progress(
            Progress(
                STAGES.get(status.state, "waiting"),
                status.bytes_done if busy else 0,
                status.bytes_total if busy else 0,
                max(0.0, now - since),
                dispatches,
            )
        )

    def _captured(self, status: CaptureStatus) -> Captured:
        warnings = []
        program = "ended"
        if self.request.keep_running:
            left = None
            if self.request.timeout is not None:
                left = max(0.0, self.request.timeout - (time.monotonic() - self.workload.started))
            ended = self.workload.wait(timeout=left, interval=0.05)
            program = "timed-out" if ended is None else "exited"
            if ended is None:
                warnings.append(f"the program was ended after {self.request.timeout:g} s (--timeout)")
            elif not ended.ok:
                warnings.append(f"after the capture the program failed: {ended.text()}")
        else:
            # The captured process ends itself; whoever waits for it is given a moment to do so.
            self.workload.wait(
                timeout=_EXIT_GRACE_S, tick=lambda: not self.workload.descendants(), interval=0.02
            )
        self.workload.end()
        return Captured(status.saved_ns / 1e9, status.owner_pid, program, tuple(warnings))

    def _died(self, status: CaptureStatus) -> WorkloadError:
        ended = self.workload.poll() or self.workload.sleep(0.2)
        how = f" ({ended.text()})" if ended else ""
        if status.state == CaptureState.RUNNING:
            nth = self.request.nth
            other = (
                f"--dispatch {nth - 1} captures the one before it, which ended"
                if nth > 1
                else "one that ends can be captured: another one (--dispatch, --grid), or of another run"
            )
            return WorkloadError(
                f"process {status.owner_pid} ended{how} while the captured dispatch of "
                f"{self.request.pattern} ran: the kernel itself ended it, or ran beyond a limit. Nothing is "
                "kept, not the memory before it either, since a capture has what the kernel wrote as well; "
                f"{other}"
            )
        return WorkloadError(
            f"process {status.owner_pid} ended{how} in the middle of the capture of "
            f"{self.request.pattern}, while "
            f"{STAGES.get(status.state, 'capturing')}; nothing is kept of it"
        )

    def _launched(self) -> str:
        kernels = self.reader.snapshot().kernels
        if not kernels:
            unwatched = self.session.unwatched
            return " No dispatch was seen. " + (
                f"{unwatched[0].upper()}{unwatched[1:]}."
                if unwatched
                else no_dispatch_reason(self.workload.program, self.watch, self.request.device.kind)
            )
        near = nearest(self.request.pattern, kernels)
        more = f"\n  and {len(kernels) - len(near)} more" if len(kernels) > len(near) else ""
        short = too_short_an_id(self.request.pattern, kernels)
        return f"{short} Launched were, the nearest names first:\n{kernel_lines(near, kernels)}{more}"

    def _details(self) -> dict[str, object]:
        kernels = self.reader.snapshot().kernels
        return {
            "launched": kernel_details(nearest(self.request.pattern, kernels, limit=50)),
            "runtimes": self.watch.runtimes(),
        }

    def _not_captured(self, status: CaptureStatus, ended: Ended) -> Ambiguous:
        pattern = self.request.pattern
        if status.state.busy:
            raise self._died(status)
        if not ended.ok:
            raise WorkloadError(
                f"the program failed ({ended.text()}) before {pattern} was captured.{self._launched()}",
                workload_exit_code=ended.exit_code,
                **self._details(),
            )
        snapshot = self.reader.snapshot()
        kernels = snapshot.kernels
        found = matching(pattern, kernels)
        if found and status.state == CaptureState.AMBIGUOUS:
            return Ambiguous(tuple(found))
        if found:
            self._check_number(found, snapshot)
        if found and any(self.request.grid):
            items = words_of_devices(line for process in snapshot.processes for line in process.devices).items
            raise WorkloadError(
                f"{one_line(found[0].name, 160)} was launched, but never with the grid "
                f"{by(self.request.grid)} ({items}, --grid); its last dispatch had "
                f"{by(found[0].grid)}",
                **self._details(),
            )
        if found and not self.request.exact:
            return Ambiguous(tuple(found))
        runtimes = self.watch.runtimes()
        loaded = f" Runtimes that were loaded: {', '.join(runtimes)}." if runtimes and kernels else ""
        why = f": {status.message.splitlines()[0]}" if status.message else ""
        verb = "was launched, but not captured" if found else "was never launched"
        raise WorkloadError(f"{pattern} {verb}{why}.{loaded}{self._launched()}", **self._details())

    def _check_number(self, found: Sequence[KernelStats], snapshot: Snapshot) -> None:
        """Raises WorkloadError where no process launched the kernel as often as --dispatch says: by a name
        the launches with which an autotuner times its candidates do not count, by an id all do.
        """
        pattern, nth = self.request.pattern, self.request.nth
        by_id = is_id(pattern) and found[0].id.startswith(pattern.lower())
        ids = {kernel.id for kernel in found}
        counts = [
            (kernel.calls - (0 if by_id else kernel.tuning), kernel)
            for process in snapshot.processes
            for kernel in merge_kernels(process.kernels)
            if kernel.id in ids
        ]
        most, kernel = max(counts, key=lambda pair: pair[0])
        if most >= max(nth, 1):
            return
        told = f"{one_line(kernel.name, 160)} was launched {times(most)}"
        if not by_id and kernel.tuning:
            tuning = sum(k.tuning for k in found)
            told += f", not counting the {many(tuning, 'launch')} by which its autotuner timed the candidates"
            if most == 0:
                told = (
                    f"{one_line(kernel.name, 160)} was launched only by its autotuner, to time the "
                    "candidates; its id captures one of those launches"
                )
        raise WorkloadError(f"{told}; dispatch {nth} was asked for (--dispatch)", **self._details())


def ambiguous_error(
    pattern: str, kernels: Sequence[KernelStats], configurations: Mapping[str, Described] | None = None
) -> UsageError:
    """The error for a pattern that fits several launched kernels."""
    lines = kernel_lines(kernels, configurations=configurations)
    return UsageError(
        f"{pattern} fits {many(len(kernels), 'kernel')}; name one by its id:\n{lines}",
        candidates=kernel_details(kernels),
    )
