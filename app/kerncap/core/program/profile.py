"""Ranking a program's kernels by the time they take on the device."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kerncap.core.code.names import short_ids
from kerncap.core.code.telling import Described, told_apart
from kerncap.core.device.devices import Device, full_environment, resolve_device
from kerncap.core.device.runtimes import RuntimeWatch, no_dispatch_reason
from kerncap.core.errors import WorkloadError
from kerncap.core.files import check_writable_target, write_json
from kerncap.core.interrupts import interruptible, settle
from kerncap.core.program.control import Session, process_start
from kerncap.core.program.device_words import CUDA, words_of_devices
from kerncap.core.program.live import KernelStats, LiveReader, ProcessStats, Snapshot
from kerncap.core.program.workload import Command, Workload, check_seconds, parse_command
from kerncap.core.triton.triton_choice import configurations
from kerncap.core.units import many, were

SCHEMA = "kerncap-profile/1"


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One kernel's line of a profile. Times are in ns of the device's clock (simulated where the
    device is); they are 0 where nothing of it was timed (`timed`), and null in the document.
    """

    id: str
    short_id: str
    name: str
    symbol: str
    kind: str
    calls: int
    timed: int
    total_ns: int
    mean_ns: float
    min_ns: int
    max_ns: int
    percent: float  # of the total time of all kernels; of calls where nothing is timed
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    vgprs: int
    sgprs: int
    lds_bytes: int
    scratch_bytes: int
    device_index: int
    code_hash: str  # of its code object: kernels of one name may be of several
    estimated: bool  # total_ns is mean_ns times calls: only a sample of the dispatches was timed
    configuration: str | None = None  # what Triton compiled it with
    mark: str | None = None  # for lists: what tells it from others of its name

    def to_json(self) -> dict[str, Any]:
        """The JSON document of this line."""
        document = {slot: getattr(self, slot) for slot in self.__slots__ if slot != "mark"}
        document["mean_ns"] = round(self.mean_ns, 3)
        if not self.timed:
            document |= dict.fromkeys(("total_ns", "mean_ns", "min_ns", "max_ns"))
        document["percent"] = round(self.percent, 4)
        document["grid"], document["block"] = list(self.grid), list(self.block)
        return document


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """One process that used a GPU."""

    pid: int
    parent_pid: int
    executable: str
    runtime: str
    devices: list[str]
    dispatches: int
    timed: int
    rejected: int
    lost: int
    pending: int
    interposer_s: float
    message: str
    kernels: list[KernelReport]
    sampling: bool  # it has stopped timing every dispatch

    def to_json(self) -> dict[str, Any]:
        """The JSON document of this process."""
        document: dict[str, Any] = {slot: getattr(self, slot) for slot in self.__slots__}
        document["interposer_s"] = round(self.interposer_s, 6)
        document["kernels"] = [kernel.to_json() for kernel in self.kernels]
        return document


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """What a program dispatched, kernels of all its processes summed, most time first."""

    device: str
    clock: str  # "gpu" or "simulated"
    command: list[str]
    exit_code: int
    signal: str | None
    timed_out: bool
    wall_s: float
    dispatches: int
    timed: int
    rejected: int
    lost: int
    pending: int
    interposer_s: float
    kernels: list[KernelReport]
    processes: list[ProcessReport]
    runtimes: list[str]
    warnings: list[str] = field(default_factory=list)
    sampling: bool = False  # some process has stopped timing every dispatch
    schema: str = SCHEMA

    @property
    def percent_of(self) -> str:
        """What `percent` of the kernels is of: time, or calls where nothing was timed."""
        return "time" if any(kernel.total_ns for kernel in self.kernels) else "calls"

    def to_json(self, top: int | None = None) -> dict[str, Any]:
        """The JSON document of `kerncap profile`; with `top`, of the first kernels alone (`kernels_total`
        says how many).
        """
        document: dict[str, Any] = {"schema": self.schema}
        document.update({slot: getattr(self, slot) for slot in self.__slots__ if slot != "schema"})
        document["wall_s"] = round(self.wall_s, 6)
        document["interposer_s"] = round(self.interposer_s, 6)
        document["kernels_total"] = len(self.kernels)
        document["percent_of"] = self.percent_of
        document["kernels"] = [kernel.to_json() for kernel in self.kernels[:top]]
        document["processes"] = [process.to_json() for process in self.processes]
        return document


def kernel_reports(
    kernels: Sequence[KernelStats], described: Mapping[str, Described] | None = None
) -> list[KernelReport]:
    """Adds shares, short ids and what tells them apart to merged figures, in the order given."""
    known = described or {}
    marks = told_apart(kernels, known)
    total_ns = sum(kernel.total_ns for kernel in kernels)
    total_calls = sum(kernel.calls for kernel in kernels)
    short = short_ids(kernel.id for kernel in kernels)
    reports = []
    for kernel in kernels:
        share = kernel.total_ns / total_ns if total_ns else kernel.calls / total_calls if total_calls else 0.0
        reports.append(
            KernelReport(
                id=kernel.id,
                short_id=short[kernel.id],
                name=kernel.name,
                symbol=kernel.symbol,
                kind=kernel.kind,
                calls=kernel.calls,
                timed=kernel.timed,
                total_ns=kernel.total_ns,
                mean_ns=kernel.mean_ns,
                min_ns=kernel.min_ns,
                max_ns=kernel.max_ns,
                percent=100.0 * share,
                grid=kernel.grid,
                block=kernel.block,
                vgprs=kernel.vgprs,
                sgprs=kernel.sgprs,
                lds_bytes=kernel.lds_bytes,
                scratch_bytes=kernel.scratch_bytes,
                device_index=kernel.device_index,
                code_hash=kernel.code_hash,
                estimated=kernel.estimated,
                configuration=known[kernel.id].text or None if kernel.id in known else None,
                mark=marks.get(kernel.id),
            )
        )
    return reports


def _unread(process: ProcessStats) -> int:
    """How many of an ended process's times nobody read: it did not come to the interposer's exit handler.

    0 for one that times a sample, since it was not to read them all.
    """
    if process.exited or process.sampling:
        return 0
    return max(0, process.dispatches - process.timed - process.lost - process.rejected)


def _unaccounted(process: ProcessStats, ended_and_timed: bool) -> int:
    """Seen, and in none of the other counts: there are none where all is as it should be. Of a process that
    times a sample only those that are in too many counts show.
    """
    pending = 0 if ended_and_timed and not process.exited else process.pending
    left = process.dispatches - process.timed - process.lost - process.rejected - pending
    if ended_and_timed:
        left -= _unread(process)
    return min(left, 0) if process.sampling else left


def _in_flight(process: ProcessStats) -> int:
    """Of a process that runs: what it has dispatched and not yet counted otherwise. One that times nothing or
    a sample only says what it waits for itself.
    """
    if process.sampling or not process.timed:
        return process.pending
    return max(0, process.dispatches - process.timed - process.lost - process.rejected)


def _running_warning(running: Sequence[ProcessStats]) -> str:
    flying = sum(map(_in_flight, running))
    text = f"{many(len(running), 'process')} still {'runs' if len(running) == 1 else 'run'}"
    return text + (f"; {many(flying, 'dispatch')} are in flight" if flying else "")


def _warnings(snapshot: Snapshot, ended_and_timed: bool, running: Container[int]) -> list[str]:
    """`running`: the ids of the processes that run on; their figures are on their way."""
    warnings = []
    seen, timed = snapshot.total("dispatches"), snapshot.total("timed")
    lost, rejected = snapshot.total("lost"), snapshot.total("rejected")
    ended = [process for process in snapshot.processes if process.pid not in running]
    pending = sum(process.pending for process in ended)
    if lost:
        warnings.append(
            f"{many(lost, 'dispatch')} {were(lost)} never seen to end, or had no row: that time is not in "
            "the table"
        )
    if rejected:
        warnings.append(f"{many(rejected, 'dispatch')} had no believable timestamps: counted, and not timed")
    if ended_and_timed:
        for process in snapshot.processes:
            unread = _unread(process)
            if unread:
                told = (
                    "the time of its last dispatch was not read, it is counted and not timed"
                    if unread == 1
                    else f"the times of its last {unread} dispatches were not read, they are counted and not "
                    "timed"
                )
                warnings.append(f"process {process.pid} ended by _exit, abort, exec or a signal: {told}")
        pending = sum(process.pending for process in snapshot.processes if process.exited)
    if pending:
        warnings.append(f"{many(pending, 'dispatch')} {were(pending)} still in flight when the program ended")
    unexplained = sum(_unaccounted(process, ended_and_timed) for process in ended)
    if unexplained and timed:
        are = "is" if unexplained == 1 else "are"
        warnings.append(
            f"{many(seen, 'dispatch')} {were(seen)} seen and {timed} timed; "
            f"{unexplained} {are} unaccounted for"
        )
    counted = sum(kernel.calls for kernel in snapshot.kernels)
    if counted != seen and len(ended) == len(snapshot.processes):
        warnings.append(
            f"{many(seen, 'dispatch')} {were(seen)} seen, and the kernels' calls add up to {counted}"
        )
    for process in snapshot.processes:
        if process.message:
            warnings.append(f"process {process.pid}: {process.message}")
    return warnings


def build_report(
    snapshot: Snapshot,
    *,
    device: str,
    command: Sequence[str],
    exit_code: int,
    signal: str | None = None,
    timed_out: bool = False,
    wall_s: float = 0.0,
    runtimes: Sequence[str] = (),
    warnings: Sequence[str] = (),
    ended_and_timed: bool = False,
    described: Mapping[str, Described] | None = None,
    running: Container[int] = (),
) -> ProfileReport:
    """A report from the figures of one moment.

    `ended_and_timed`: no process of them runs any more, and all dispatches were to be timed. `described`: how
    kernels were compiled, by id. `running`: the ids of processes that run on.
    """
    processes = [
        ProcessReport(
            pid=process.pid,
            parent_pid=process.parent_pid,
            executable=process.executable,
            runtime=process.runtime,
            devices=process.devices,
            dispatches=process.dispatches,
            timed=process.timed,
            rejected=process.rejected,
            lost=process.lost,
            pending=process.pending,
            interposer_s=process.own_ns / 1e9,
            message=process.message,
            kernels=kernel_reports(
                sorted(process.kernels, key=lambda k: (-k.total_ns, -k.calls, k.name)), described
            ),
            sampling=process.sampling,
        )
        for process in snapshot.processes
    ]
    return ProfileReport(
        device=device,
        clock="simulated" if snapshot.simulated or device.startswith("sim") else "gpu",
        command=list(command),
        exit_code=exit_code,
        signal=signal,
        timed_out=timed_out,
        wall_s=wall_s,
        dispatches=snapshot.total("dispatches"),
        timed=snapshot.total("timed"),
        rejected=snapshot.total("rejected"),
        lost=snapshot.total("lost"),
        pending=snapshot.total("pending"),
        interposer_s=snapshot.total("own_ns") / 1e9,
        kernels=kernel_reports(snapshot.kernels, described),
        processes=processes,
        runtimes=list(runtimes),
        warnings=[*warnings, *_warnings(snapshot, ended_and_timed, running)],
        sampling=snapshot.sampling,
    )


def profile(
    command: Sequence[str] | Command,
    *,
    device: str | Device | None = None,
    timeout: float | None = None,
    output: str | os.PathLike[str] | None = None,
    timing: bool = True,
    directory: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
    on_update: Callable[[Snapshot, float], None] | None = None,
    update_interval: float = 0.5,
) -> ProfileReport:
    """Runs `command` and reports which kernels it dispatched and how long they took.

    `device`: a name (`kerncap.core.device.devices`) or None for KERNCAP_DEVICE or `auto`. `timeout`: seconds
    after which the program is ended. `output`: a file for the JSON document. `timing=False` counts and does
    not time. `stdout`, `stderr`: file descriptors for the program (None: this process's).
    `on_update(snapshot, seconds)` is called every `update_interval` seconds while the program runs.

    A program that fails is reported as any other: see `exit_code`. Raises UsageError where it cannot be
    started, DeviceError where the device cannot be used, WorkloadError where there was no room for what was
    to be counted, Interrupted on ctrl-C (nothing of the program is left).
    """
    parsed = command if isinstance(command, Command) else parse_command(command)
    used = device if isinstance(device, Device) else resolve_device(device)
    check_seconds("timeout", timeout)
    if output is not None:
        check_writable_target(Path(output))
    with interruptible(), Session.create(timing=timing) as session, LiveReader(session.directory) as reader:
        watch = RuntimeWatch(session.directory)
        variables = full_environment(used, session.directory, environment)
        with Workload(
            parsed, variables, directory=directory, stdout=stdout, stderr=stderr, session=session.directory
        ) as workload:
            next_update = update_interval

            def tick() -> None:
                nonlocal next_update
                watch.look(workload.descendants)
                elapsed = time.monotonic() - workload.started
                if on_update is not None and elapsed >= next_update:
                    next_update = elapsed + update_interval
                    on_update(reader.snapshot(), elapsed)

            ended = workload.wait(timeout=timeout, tick=tick, interval=0.02)
            wall_s = time.monotonic() - workload.started
            timed_out = ended is None
            if ended is None:
                ended = workload.end()
            left = len(workload.descendants())
            snapshot = reader.snapshot()
            extra = []
            if timed_out:
                extra.append(f"the program was ended after {timeout:g} s (--timeout)")
            if left:
                extra.append(
                    f"{many(left, 'process')} that the program started still "
                    f"{'runs: what it does' if left == 1 else 'run: what they do'} from now on is not counted"
                )
            unwatched = session.unwatched
            if unwatched and not snapshot.processes:
                raise WorkloadError(unwatched)
            if unwatched:
                extra.append(unwatched)
            elif not snapshot.total("dispatches"):
                extra.append(
                    "no dispatch was seen. " + no_dispatch_reason(workload.program, watch, used.kind)
                )
            report = build_report(
                snapshot,
                device=used.name,
                command=parsed.arguments,
                exit_code=ended.exit_code if ended else 137,
                signal=ended.signal if ended else "SIGKILL",
                timed_out=timed_out,
                wall_s=wall_s,
                runtimes=watch.runtimes(),
                warnings=extra,
                ended_and_timed=timing and not left,
                described=configurations(session.directory),
                running={process.pid for process in _running(snapshot)} if left else (),
            )
        if output is not None:
            settle()
            write_json(Path(output), report.to_json())
    return report


def _running(snapshot: Snapshot) -> list[ProcessStats]:
    return [p for p in snapshot.processes if process_start(p.pid) is not None and not p.exited]


def _device_name(snapshot: Snapshot, made_for: str) -> str:
    """What programs of a session run on: what it was made for, unless they ran on something else."""
    lines = [line for process in snapshot.processes for line in process.devices]
    if snapshot.simulated:
        kind = "sim"
    elif snapshot.processes or not made_for:
        kind = "cuda" if words_of_devices(lines) is CUDA else "rocm"
    else:
        return made_for
    if made_for.split(":")[0] == kind:
        return made_for
    arch = next((line.split("\t")[1] for line in lines if "\t" in line), "")
    return f"sim:{arch}" if kind == "sim" and arch else kind


def profile_session(directory: str | os.PathLike[str]) -> ProfileReport:
    """What programs have recorded so far in a session made with `kerncap env --session`.

    Programs may still run. Raises UsageError where `directory` is no session, WorkloadError where there was
    no room for what was to be counted.
    """
    where = Path(directory)
    with Session.open(where) as session, LiveReader(where) as reader:
        snapshot = reader.snapshot()
        described = configurations(where)
        made_for = session.device
        unwatched = session.unwatched
    running = _running(snapshot)
    warnings = [_running_warning(running)] if running else []
    if unwatched and not snapshot.processes:
        raise WorkloadError(unwatched)
    if unwatched:
        warnings.append(unwatched)
    elif not snapshot.processes:
        warnings.append(f"no program has used a GPU with this session yet ({where})")
    return build_report(
        snapshot,
        device=_device_name(snapshot, made_for),
        command=[],
        exit_code=0,
        warnings=warnings,
        described=described,
        running={process.pid for process in running},
    )
