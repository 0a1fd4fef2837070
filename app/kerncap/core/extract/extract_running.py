"""Extraction from programs that run already, through the control block of their session."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kerncap.core.code.layout import CaptureState, MemoryMode
from kerncap.core.code.names import is_id, matching, nearest, too_short_an_id
from kerncap.core.device.devices import Device
from kerncap.core.errors import UsageError, WorkloadError
from kerncap.core.extract.capture_run import (
    CAPTURE_LIMIT_S,
    STAGES,
    OnProgress,
    Progress,
    ambiguous_error,
    kernel_lines,
)
from kerncap.core.extract.extract import ExtractResult, check_replayer, check_request, finish
from kerncap.core.extract.placing import own_place, place_for
from kerncap.core.interrupts import interruptible
from kerncap.core.loop.captures import check_output, transaction
from kerncap.core.program.control import (
    MOST_DISPATCHES,
    CaptureRequest,
    CaptureStatus,
    Session,
    process_start,
)
from kerncap.core.program.live import KernelStats, LiveReader
from kerncap.core.program.workload import Command
from kerncap.core.triton import triton_choice, triton_record
from kerncap.core.units import by, times

_POLL_S = 0.02
_CANCEL_LIMIT_S = 10.0


def extract_running(
    kernel: str,
    session: Session | str | os.PathLike[str],
    *,
    dispatch: int = 0,
    grid: tuple[int, int, int] | None = None,
    only_pid: int = 0,
    device: Device | None = None,
    command: Command | None = None,
    source_dir: str | os.PathLike[str] | None = None,
    defines: Sequence[str] = (),
    output: str | os.PathLike[str] | None = None,
    language: str = "auto",
    memory: str = "reachable",
    timeout: float | None = None,
    force: bool = False,
    on_progress: OnProgress | None = None,
) -> ExtractResult:
    """Captures a dispatch of `kernel` in a program of `session` that runs already, and lets it run on.

    `session`: an open Session, or the directory of one (`kerncap env --session`). `dispatch`: 0 for the next
    one, or the N-th of the kernel in its process. `only_pid`: 0 for any process of the session. `timeout`:
    seconds to wait for the dispatch and its capture. The rest is as in `kerncap.extract`, and so are the
    errors.
    """
    if not 0 <= dispatch <= MOST_DISPATCHES:
        raise UsageError(f"dispatch {dispatch}: 0 is the next one, and dispatches are counted from 1")
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
    if device is not None:
        check_replayer(device.kind)
    opened = session if isinstance(session, Session) else Session.open(Path(session))
    try:
        with (
            interruptible(),
            transaction(target, force=force) as (partial, commit),
            LiveReader(opened.directory) as reader,
        ):
            pattern, exact = kernel, False
            found = matching(kernel, reader.snapshot().kernels)
            if len(found) > 1:
                chosen = triton_choice.chosen_kernel(opened.directory, (k.id for k in found))
                if chosen is None:
                    known = triton_choice.configurations(opened.directory)
                    raise ambiguous_error(kernel, found, known)
                found = [k for k in found if k.id == chosen]
            if found and output is None:  # its name is known: refused, or not, before it is captured
                check_output(place_for(kernel if is_id(kernel) else found[0].symbol), force)
            if found:
                by_id = is_id(kernel) and found[0].id.startswith(kernel.lower())
                # By the id the launches by which an autotuner timed the kernel would count.
                by_symbol = dispatch > 0 and found[0].tuning > 0 and not by_id
                pattern, exact = found[0].symbol if by_symbol else found[0].id, True
            request = CaptureRequest(
                pattern=pattern,
                output=partial / "capture",
                nth=dispatch,
                exact=exact,
                memory=MemoryMode.ALL if memory == "all" else MemoryMode.REACHABLE,
                exit_after=False,
                timeout_s=min(CAPTURE_LIMIT_S, timeout or CAPTURE_LIMIT_S),
                grid=grid or (0, 0, 0),
                only_pid=only_pid,
            )
            opened.request_capture(request)
            try:
                status = _wait(opened, reader, kernel, request, timeout, on_progress)
            except BaseException:
                _cancel(opened)
                raise
            triton_record.keep(opened.directory, partial / "capture")
            result = finish(
                partial,
                device=device,
                command=command,
                source_dir=source_dir,
                defines=defines,
                language=language,
                snapshot_s=status.saved_ns / 1e9,
                on_progress=on_progress,
            )
            choice = triton_choice.note(partial / "capture", kernel, result.id, result.dispatch)
            if output is None:
                target = own_place(
                    target, kernel, result.demangled or result.symbol, result.symbol, force=force
                )
            kept = commit(target)
    finally:
        if opened is not session:
            opened.close()
    warnings = [*([choice] if choice else []), *result.warnings, *([kept] if kept else [])]
    return replace(result, output=os.fspath(target), warnings=warnings)


def _wait(
    session: Session,
    reader: LiveReader,
    kernel: str,
    request: CaptureRequest,
    timeout: float | None,
    on_progress: OnProgress | None,
) -> CaptureStatus:
    started = time.monotonic()
    while True:
        status = session.status()
        elapsed = time.monotonic() - started
        if on_progress is not None:
            on_progress(
                Progress(STAGES.get(status.state, "waiting"), status.bytes_done, status.bytes_total, elapsed)
            )
        if status.state == CaptureState.DONE:
            return status
        if status.state in (CaptureState.FAILED, CaptureState.CANCELLED):
            raise WorkloadError(f"{kernel} was not captured: {status.message or 'no reason given'}")
        if status.state == CaptureState.AMBIGUOUS:
            names = "\n".join(f"  {line}" for line in status.message.splitlines())
            raise UsageError(
                f"{kernel} fits several kernels of the loaded code; name one by its id:\n{names}"
            )
        if status.state.busy and status.owner_pid and process_start(status.owner_pid) is None:
            if session.status().state.busy:
                raise WorkloadError(
                    f"process {status.owner_pid} ended in the middle of the capture of {kernel}"
                )
            continue
        processes = reader.snapshot().processes
        if processes and all(process_start(process.pid) is None for process in processes):
            if session.status().state in (CaptureState.IDLE, CaptureState.ARMED):
                raise WorkloadError(_not_again(kernel, request, reader.snapshot().kernels))
            continue
        if timeout is not None and elapsed > timeout:
            launched = reader.snapshot().kernels
            raise WorkloadError(
                f"{kernel} was not captured within {timeout:g} s. {_launched(kernel, session, launched)}"
            )
        time.sleep(_POLL_S)


def _not_again(kernel: str, request: CaptureRequest, launched: Sequence[KernelStats]) -> str:
    """Why there will be no capture: all programs have ended."""
    calls = sum(found.calls for found in matching(kernel, launched))
    wanted = f" as dispatch {request.nth}" if request.nth else ""
    wanted += f" with the grid {by(request.grid)}" if any(request.grid) else ""
    often = f"again{wanted} ({times(calls)} in all)" if calls else "at all"
    return (
        f"every program of the session has ended, and {kernel} was not launched {often}; "
        "another run of the program can be captured"
    )


def _launched(kernel: str, session: Session, launched: Sequence[KernelStats]) -> str:
    if not launched:
        return f"No program has launched a kernel with this session yet ({session.directory})."
    near = kernel_lines(nearest(kernel, launched), launched)
    return f"{too_short_an_id(kernel, launched)} Launched were, the nearest names first:\n{near}".lstrip()


def _cancel(session: Session) -> None:
    """Takes the request back, and waits until no process writes to the capture any more."""
    if session.status().state.final:
        return
    session.cancel()
    limit = time.monotonic() + _CANCEL_LIMIT_S
    while session.status().state.busy and time.monotonic() < limit:
        owner = session.status().owner_pid
        if owner and process_start(owner) is None:
            return
        time.sleep(_POLL_S)
