"""Extraction: one dispatch of a program, with its memory, code and source, as a reproducer on disk."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kerncap.core.capture import manifest, records
from kerncap.core.capture.reading import read_capture
from kerncap.core.capture.records import Capture
from kerncap.core.code.layout import MemoryMode
from kerncap.core.code.names import base_name, one_line
from kerncap.core.device.devices import Device, resolve_device
from kerncap.core.errors import (
    FailError,
    InconclusiveError,
    KerncapError,
    UsageError,
    WorkloadError,
    unwritable,
)
from kerncap.core.extract.capture_run import (
    Ambiguous,
    Captured,
    OnProgress,
    Progress,
    RunRequest,
    ambiguous_error,
    run,
)
from kerncap.core.extract.first_replay import FirstReplay
from kerncap.core.extract.placing import own_place, place_for
from kerncap.core.files import check_directory, fsync_tree
from kerncap.core.interrupts import interruptible
from kerncap.core.loop.captures import check_output, disk_bytes, free_bytes, transaction
from kerncap.core.native import REPLAYER, REPLAYER_CUDA, native_path
from kerncap.core.program.control import MOST_DISPATCHES
from kerncap.core.program.workload import Command, check_seconds, parse_command
from kerncap.core.triton import triton_choice
from kerncap.core.units import many, size, were

if TYPE_CHECKING:
    from kerncap.core.extract.reproducer_info import ReproducerInfo

SCHEMA = "kerncap-extract/1"
LANGUAGE_CHOICES = ("auto", "hip", "cuda", "none")
_LEAST_FREE = 16_000_000
_DEFINE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\([^()]*\))?(=.*)?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ExtractResult:
    """A reproducer on disk. Sizes are bytes, times seconds."""

    output: str
    kernel: str
    symbol: str
    id: str
    dispatch: int
    device: str
    arch: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    regions: int
    bytes: int
    bytes_on_disk: int
    changed_bytes: int
    snapshot_s: float
    source: ReproducerInfo
    baseline: dict[str, Any]
    program: str = "running"  # what became of it: one of capture_run.PROGRAM_ENDS
    warnings: list[str] = field(default_factory=list)
    demangled: str = ""
    schema: str = SCHEMA

    def to_json(self) -> dict[str, Any]:
        """The JSON document of `kerncap extract`."""
        document: dict[str, Any] = {"schema": self.schema}
        document.update({slot: getattr(self, slot) for slot in self.__slots__ if slot != "schema"})
        document["grid"], document["block"] = list(self.grid), list(self.block)
        document["snapshot_s"] = round(self.snapshot_s, 6)
        document["source"] = self.source.to_json()
        return document


def _notify(on_progress: OnProgress | None, stage: str) -> None:
    if on_progress is not None:
        on_progress(Progress(stage))


def check_request(
    kernel: str,
    *,
    output: str | os.PathLike[str] | None,
    force: bool,
    source_dir: str | os.PathLike[str] | None,
    defines: Sequence[str],
    language: str,
    memory: str,
    timeout: float | None,
) -> Path:
    """Refuses what cannot work before a program is run or disturbed; returns where the reproducer goes.

    Raises UsageError naming the option, WorkloadError where the disk is full.
    """
    if not kernel.strip():
        raise UsageError("the kernel's name is empty")
    if language not in LANGUAGE_CHOICES:
        raise UsageError(
            f"language {language!r} is not supported; it is one of {', '.join(LANGUAGE_CHOICES)}"
        )
    if memory not in ("reachable", "all"):
        raise UsageError(f"memory {memory!r} is neither reachable nor all")
    check_seconds("timeout", timeout)
    if source_dir is not None:
        check_directory(source_dir, "source directory")
    for define in defines:
        if not _DEFINE.match(define):
            raise UsageError(f"-D {define!r} is no NAME or NAME=VALUE")
    target = Path(output) if output is not None else place_for(kernel)
    check_output(target, force)
    free = free_bytes(target.absolute())
    if free < _LEAST_FREE:
        raise WorkloadError(
            f"{target}: {size(free)} are free there, and no capture is begun with less than "
            f"{size(_LEAST_FREE)}; make room, or name another place with -o"
        )
    return target


def check_replayer(kind: str) -> None:
    """Raises DeviceError where what replays on a kind of device is not built."""
    native_path(REPLAYER_CUDA if kind == "cuda" else REPLAYER)


def finish(
    partial: Path,
    *,
    device: Device | None = None,
    command: Command | None = None,
    source_dir: str | os.PathLike[str] | None = None,
    defines: Sequence[str] = (),
    language: str = "auto",
    snapshot_s: float = 0.0,
    on_progress: OnProgress | None = None,
) -> ExtractResult:
    """Turns `partial`/capture, as the interposer left it, into a reproducer: checks it, adds the manifest,
    the source and the build files, and replays the captured kernel against the program's own result.

    `partial` stays where it is, with everything flushed; `output` of the result is to be set by whoever
    renames it. `device` is None where only the capture knows. Raises DamagedCaptureError where what
    was written does not verify.
    """
    where = partial / "capture"
    _notify(on_progress, "checking")
    capture = read_capture(where)
    capture.verify_code()
    if device is None:
        device = Device(capture.device_kind, capture.device.name)
    more: dict[str, Any] = {
        "snapshot_s": round(snapshot_s, 6),
        "command": list(command.arguments) if command else None,
        "device_name": device.name,
    }
    document = manifest.build(capture, **more)
    manifest.write(where, document)

    _notify(on_progress, "source")
    with FirstReplay(capture, device) as first:
        try:
            source = _write_reproducer(partial, capture, source_dir, defines, language, on_progress)
        except OSError as error:
            raise unwritable(error.filename2 or error.filename or partial, error) from error
        _notify(on_progress, "replaying")
        first.verify()
        baseline = _baseline(first)

    _notify(on_progress, "writing")  # the last point at which the caller can still give up
    document.update(source=source.to_json(), baseline=baseline, state=manifest.COMPLETE)
    manifest.write(where, document)
    fsync_tree(partial)
    warnings = list(source.notes)
    if not document["memory"]["changed_bytes"]:
        warnings.append(
            "the dispatch changed no byte of what was saved: what it wrote was there already, and another "
            "one (--dispatch N) tells more"
        )
    if capture.dispatch.flags & records.DispatchFlags.NEEDS_LISTENER:
        warnings.append(
            "the kernel prints or allocates on the device: it needs a listener that replay may not have"
        )
    unsaved = [region for region in capture.regions if not region.saved and region.reason]
    if unsaved:
        warnings.append(
            f"{many(len(unsaved), 'region')} {were(len(unsaved))} not saved; the first, "
            f"0x{unsaved[0].address:x} ({unsaved[0].bytes} bytes): {unsaved[0].reason}"
        )
    return ExtractResult(
        output=str(partial),
        kernel=base_name(capture.dispatch.demangled or capture.dispatch.symbol),
        demangled=capture.dispatch.demangled or capture.dispatch.symbol,
        symbol=capture.dispatch.symbol,
        id=document["kernel"]["id"],
        dispatch=capture.dispatch.nth_of_kernel,
        device=device.name,
        arch=capture.device.name,
        grid=capture.dispatch.grid,
        block=capture.dispatch.workgroup,
        regions=document["memory"]["regions"],
        bytes=capture.pre_bytes,
        bytes_on_disk=disk_bytes(partial),
        changed_bytes=document["memory"]["changed_bytes"],
        snapshot_s=snapshot_s,
        source=source,
        baseline=baseline,
        warnings=warnings,
    )


def _write_reproducer(
    partial: Path,
    capture: Capture,
    source_dir: str | os.PathLike[str] | None,
    defines: Sequence[str],
    language: str,
    on_progress: OnProgress | None,
) -> ReproducerInfo:
    # Settled: write_reproducer(capture, out, source_dir=, defines=, language=, progress=).
    from kerncap.core.extract.reproducer import write_reproducer

    return write_reproducer(
        capture.path,
        partial,
        source_dir=Path(source_dir) if source_dir is not None else None,
        defines=defines,
        language=language,
        progress=lambda text: _notify(on_progress, text),
    )


def _baseline(first: FirstReplay) -> dict[str, Any]:
    """The captured kernel's own replay against what the program's run wrote."""
    return first.baseline()


def extract(
    kernel: str,
    command: Sequence[str] | Command = (),
    *,
    cmd: str | None = None,
    device: str | Device | None = None,
    dispatch: int = 1,
    grid: tuple[int, int, int] | None = None,
    source_dir: str | os.PathLike[str] | None = None,
    defines: Sequence[str] = (),
    output: str | os.PathLike[str] | None = None,
    language: str = "auto",
    memory: str = "reachable",
    keep_running: bool = False,
    timeout: float | None = None,
    force: bool = False,
    directory: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
    on_progress: OnProgress | None = None,
) -> ExtractResult:
    """Runs the program, captures one dispatch of `kernel`, and writes a reproducer.

    `kernel`: an id, a mangled or demangled name, or a part of one that fits one kernel. `command`: the
    program as an argument list, or `cmd`: as one string. `dispatch`: which dispatch of the kernel in its
    process, from 1. `grid`: only dispatches with this grid (work-items). `output`: default ./isolated/KERNEL,
    by the kernel's own name, or KERNEL-2 and so on where that is another kernel's; refused where it exists,
    unless `force`. `memory`: "reachable" or "all". `timeout`: seconds for the program's run. `stdin`,
    `stdout`, `stderr`: file descriptors for the program. The program is ended once the capture is on disk,
    unless `keep_running`. What `on_progress` raises ends the extraction.

    Raises UsageError (also for a name that fits several launched kernels), DeviceError, WorkloadError,
    DamagedCaptureError, Interrupted; nothing that looks like a capture is left then.
    """
    parsed = command if isinstance(command, Command) else parse_command(command, cmd)
    if not 1 <= dispatch <= MOST_DISPATCHES:
        raise UsageError(f"--dispatch {dispatch}: dispatches are counted from 1")
    target = check_request(
        kernel,
        output=output,
        force=force,
        source_dir=source_dir,
        defines=defines,
        language=language,
        memory=memory,
        timeout=timeout,
    )
    used = device if isinstance(device, Device) else resolve_device(device)
    check_replayer(used.kind)

    with interruptible(), transaction(target, force=force) as (partial, commit):
        request = RunRequest(
            pattern=kernel,
            command=parsed,
            device=used,
            output=partial / "capture",
            nth=dispatch,
            memory=MemoryMode.ALL if memory == "all" else MemoryMode.REACHABLE,
            grid=grid or (0, 0, 0),
            keep_running=keep_running,
            timeout=timeout,
            directory=directory,
            environment=environment,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )
        warnings: list[str] = []
        outcome = run(request, on_progress)
        if isinstance(outcome, Ambiguous):
            only = next((k for k in outcome.launched if k.id == outcome.chosen), outcome.launched[0])
            if len(outcome.launched) != 1 and only.id != outcome.chosen:
                raise ambiguous_error(kernel, outcome.launched, outcome.configurations)
            why = "the autotuner chose" if only.id == outcome.chosen else "one was launched:"
            warnings.append(
                f"of the kernels that {kernel} fits, {why} {only.id} {one_line(only.name, 160)}; "
                "the program was run again for it"
            )
            _notify(on_progress, "running again")
            # By its id the launches by which the autotuner timed it would count, by its name they do not.
            again = only.symbol if only.id == outcome.chosen and only.tuning else only.id
            outcome = run(replace(request, pattern=again, exact=True), on_progress)
        if isinstance(outcome, Ambiguous) and len(outcome.launched) > 1:
            raise ambiguous_error(kernel, outcome.launched, outcome.configurations)
        if not isinstance(outcome, Captured):
            raise WorkloadError(f"{kernel} was launched, but not captured")
        result = finish(
            partial,
            device=used,
            command=parsed,
            source_dir=source_dir,
            defines=defines,
            language=language,
            snapshot_s=outcome.snapshot_s,
            on_progress=on_progress,
        )
        choice = triton_choice.note(partial / "capture", kernel, result.id, result.dispatch, keep_running)
        if output is None:
            target = own_place(target, kernel, result.demangled or result.symbol, result.symbol, force=force)
        kept = commit(target)
    return replace(
        result,
        output=os.fspath(target),
        program=outcome.program,
        warnings=[
            *warnings,
            *([choice] if choice else []),
            *outcome.warnings,
            *result.warnings,
            *([kept] if kept else []),
        ],
    )


def baseline_error(result: ExtractResult) -> KerncapError | None:
    """What to say, and to exit with, where the captured kernel did not reproduce the program's own result."""
    verdict = result.baseline.get("verdict")
    if verdict in ("IDENTICAL", "WITHIN_TOLERANCE", "NONDETERMINISTIC_OK"):
        return None
    if verdict == "FAIL":
        return FailError(
            f"{result.output}: replaying the captured kernel does not give what the program's own run wrote; "
            f"`kerncap validate {shlex.quote(result.output)}` shows where"
        )
    return InconclusiveError(
        f"{result.output}: the replay of the captured kernel proves nothing: "
        f"{result.baseline.get('reason', verdict)}"
    )
