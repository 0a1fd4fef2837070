"""Driving `kerncap-replay`, the resident process that holds a capture's memory (native/replay/protocol.h).

A kernel that faults or never ends takes the process with it: `KernelFault` and `KernelTimeout` say so, and
the next request starts a fresh one, with the variants and the written set it had.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from kerncap.core.capture.records import Capture
from kerncap.core.device.cuda_toolkit import find_cupti
from kerncap.core.device.devices import SIM_READY, Device, parse_device, real_arches
from kerncap.core.device.sim_settings import check_settings
from kerncap.core.errors import (
    DamagedCaptureError,
    DeviceError,
    InconclusiveError,
    UsageError,
    WorkloadError,
    no_room_in,
)
from kerncap.core.native import REPLAYER, REPLAYER_CUDA, SIM_RUNTIME, native_path
from kerncap.core.replay.faults import fault_text
from kerncap.core.replay.launch import Launch, captured_launch, emptied_launch
from kerncap.core.replay.replies import (
    DATA_LIMIT,
    NO_DATA,
    RUN_DTYPE,
    SCOPES,
    TIMES,
    Differences,
    KernelFault,
    KernelTimeout,
    RangeList,
    Reply,
    Variant,
    escape,
    range_list,
    taken,
    unescape,
)
from kerncap.core.scratch import scratch
from kerncap.core.waiting import Wait, wait_readable

__all__ = [
    "DATA_LIMIT",
    "NO_DATA",
    "RUN_DTYPE",
    "Differences",
    "KernelFault",
    "KernelTimeout",
    "RangeList",
    "Replayer",
    "Reply",
    "Variant",
    "device_for",
]

# A kernel that waits for a value that was altered never ends: it gets so many times what it took before.
_PATIENCE, _LEAST_LIMIT_S = 50.0, 5.0
_GRACE_SECONDS = 30.0
_PROFILER_SECONDS = 120.0  # to write what it counted
# No kernel sends these: somebody ended the replayer, which says nothing of a variant.
_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT})
_ROCM_LIBRARY = "libhsa-runtime64.so.1"
_CUDA_LIBRARY = "libcuda.so.1"
# Of a program that is watched, which the replayer is not.
_NOT_PASSED_ON = frozenset(
    {"LD_PRELOAD", "KERNCAP_SESSION", "KERNCAP_SIM", "HSA_TOOLS_LIB", "CUDA_INJECTION64_PATH"}
)


def device_for(capture: Capture, wanted: str | Device | None = None) -> Device:
    """Where to replay: `wanted`, else KERNCAP_DEVICE, else the sort of device that was captured.

    Raises DeviceError where a capture of real hardware has neither that GPU here nor a simulator for it.
    """
    if isinstance(wanted, Device):
        return wanted
    text = wanted or os.environ.get("KERNCAP_DEVICE")
    if text and text != "auto":
        return parse_device(text)
    kind, arch = capture.device_kind, capture.device.name
    if kind == "cuda" or (kind == "rocm" and arch in real_arches("rocm")):
        return Device(kind, arch)
    return Device("sim", arch)


class Replayer:
    """One capture on one device. Use as a context manager, or call `close`.

    `limit_s` is the limit of one dispatch. `track_writes` False treats a simulated device as hardware, which
    does not tell what a dispatch stores to, `timestamps` False as one whose dispatches have none. `under` is
    the beginning of a command that runs the replayer under it, such as a profiler.
    """

    def __init__(
        self,
        capture: Capture,
        device: str | Device | None = None,
        *,
        limit_s: float = 60.0,
        start_limit_s: float = 600.0,
        track_writes: bool = True,
        timestamps: bool = True,
        under: Sequence[str] = (),
    ) -> None:
        self.capture = capture
        self._under = list(under)
        self.device = device_for(capture, device)
        self.limit_s = limit_s
        self.start_limit_s = start_limit_s
        self._track_writes = track_writes
        self._timestamps = timestamps
        self._captured: Variant | None = None
        self._emptied: Variant | None = None
        self.greeting = Reply()
        self.generation = 0
        self.reference = (0, 0)  # the process that holds what `keep` kept last, and how often it was called
        self._process: subprocess.Popen[bytes] | None = None
        self._pending = bytearray()
        self._scratch = scratch("replay")
        self._allowed: list[Variant] = []
        self._errors = Path(self._scratch.name) / "stderr"
        self._restoring = False

    def __enter__(self) -> Replayer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- the process ------------------------------------------------------------------------

    @property
    def simulated(self) -> bool:
        return self.device.simulated

    @property
    def tracks_writes(self) -> bool:
        """Whether the device says which bytes a dispatch stores to."""
        self.start()
        return self.greeting.values.get("tracks_writes") == "1"

    @property
    def changed_bytes(self) -> int:
        """How many bytes the application's run gave another value."""
        self.start()
        told = self.greeting.values.get("changed_bytes")
        return self.capture.changed_bytes() if told is None else int(told)

    def _check_simulated(self) -> None:
        """Raises DeviceError where another GPU is simulated than the captured one."""
        captured = self.capture.device.name
        if captured in (self.device.arch, ""):
            return
        other = f"--device sim:{captured}" if captured in SIM_READY else "a real one"
        told = os.environ.get("KERNCAP_DEVICE")
        why = f" (KERNCAP_DEVICE is {told})" if told == self.device.name else ""
        raise DeviceError(
            f"the capture is of {captured}, and {self.device.name}{why} simulates another GPU: {other} can "
            "run it"
        )

    def start(self) -> None:
        """Starts the process, if there is none, and waits until the memory is in place."""
        if self._process is not None:
            return
        environment = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
        program, runtime = REPLAYER, _ROCM_LIBRARY
        if (self.device.kind == "cuda") != (self.capture.cuda_launch is not None):
            raise DeviceError(
                f"device {self.device.name} cannot replay a capture of {self.capture.device.name}"
            )
        if self.device.kind == "cuda":
            program, runtime = REPLAYER_CUDA, _CUDA_LIBRARY
            cupti = find_cupti()
            if cupti is not None:
                environment.setdefault("KERNCAP_CUPTI", cupti)
            if self._under:
                environment["KERNCAP_CUDA_TIMER"] = "event"  # CUPTI is the profiler's
        elif self.device.kind == "sim":
            self._check_simulated()
            check_settings(environment)
            runtime = str(native_path(SIM_RUNTIME))
            environment["KERNCAP_SIM"] = str(self.device.arch)
            # Above the replayer's own limit, which is the one that is reported.
            environment.setdefault("KERNCAP_SIM_MAX_SECONDS", str(int(self.limit_s) + 60))
        command = [*self._under, str(native_path(program)), str(self.capture.path), "--runtime", runtime]
        if self.device.index is not None:
            command += ["--device", str(self.device.index)]
        if not self._track_writes:
            command.append("--no-write-tracking")
        if not self._timestamps:
            command.append("--no-timestamps")
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                start_new_session=True,
                umask=0o077,  # what it writes is a program's memory
            )
        self._pending.clear()
        self.generation += 1
        self.greeting = self._read_reply(self.start_limit_s)
        self._recover()

    def _recover(self) -> None:
        """Gives a fresh process the written set that the last one had."""
        if not self._allowed or self._restoring:
            return
        self._restoring = True
        try:
            for variant in list(self._allowed):
                self.run(variant, track=True)
                self.request("allow", self._number(variant))
        finally:
            self._restoring = False

    def stop(self) -> None:
        """Ends the process; the next request starts another."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            process.wait(_PROFILER_SECONDS if self._under else 1.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """Ends the process at once, from any thread: a request under way raises DeviceError."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """Ends the process and removes what it has written."""
        self.stop()
        self._scratch.cleanup()

    def stderr_tail(self, limit: int = 4000) -> str:
        """The last of what the process wrote on stderr."""
        try:
            return self._errors.read_bytes()[-limit:].decode("utf-8", "replace").strip()
        except OSError:
            return ""

    # ---- the protocol -----------------------------------------------------------------------

    def request(self, command: str, *arguments: object, limit_s: float | None = None) -> Reply:
        """Sends one command and waits for its answer, at most `limit_s` seconds (default 600)."""
        self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        line = " ".join([command, *(escape(str(argument)) for argument in arguments)])
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            self._died(command)
        return self._read_reply(limit_s or 600.0, command)

    def _read_reply(self, limit_s: float, command: str = "start") -> Reply:
        reply = Reply()
        deadline = time.monotonic() + limit_s
        while True:
            words = self._read_line(deadline, command).split(" ")
            kind = words[0]
            if kind == "note":
                reply.notes.append((words[1], unescape(words[2])))
            elif kind == "data":
                reply.data[words[1]] = self._read_bytes(int(words[2]), deadline, command)
            elif kind == "ok":
                for word in words[1:]:
                    key, _, value = word.partition("=")
                    if key:
                        reply.values[key] = unescape(value)
                return reply
            elif kind == "error":
                self._raise(words[1], int(words[2], 16), unescape(words[3]), started=command != "start")
            else:
                self.stop()
                raise DeviceError(f"kerncap-replay answered {command} with {kind!r}; see {self._errors}")

    def _raise(self, kind: str, address: int, text: str, *, started: bool) -> None:
        if kind in ("fault", "timeout", "internal", "damaged") or not started:
            told = self.stderr_tail()
            self.stop()
        if kind == "fault":
            known = not told or text.splitlines()[0].removeprefix("kerncap: ") in told
            message = text if known else f"{text}\n{told}"
            raise KernelFault(message, address)
        if kind == "timeout":
            raise KernelTimeout(f"{text}, its limit (--timeout)")
        if kind == "usage":
            raise InconclusiveError(text) if "calls back into the host" in text else UsageError(text)
        if kind == "damaged":
            raise DamagedCaptureError(f"{text}; the capture is damaged, extract it again")
        if no_room_in(text):
            raise WorkloadError(text)
        raise DeviceError(
            text if kind != "collision" else f"{text}: the capture cannot be replayed in this process"
        )

    def _died(self, command: str) -> None:
        process = self._process
        status = process.poll() if process is not None else None
        told = self.stderr_tail()
        self.stop()
        if status is not None and -status in _FROM_OUTSIDE:
            raise DeviceError(
                f"kerncap-replay was ended from outside ({signal.Signals(-status).name}) during '{command}', "
                "by someone or for want of memory. The next run starts it again."
            )
        how = f"signal {-status}" if status is not None and status < 0 else f"status {status}"
        ended = KernelFault if command != "start" else DeviceError  # no kernel has run by then
        raise ended(f"kerncap-replay ended with {how} during '{command}'" + (f":\n{told}" if told else ""))

    def _fill(self, deadline: float, command: str) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        ended = wait_readable(self._process.stdout, self._process.pid, deadline, self.limit_s)
        if ended is not Wait.READY:
            self._process.kill()
            self.stop()
        if ended is Wait.STOPPED:
            raise DeviceError(
                f"kerncap-replay was stopped from outside (SIGSTOP) for {self.limit_s:g} s during "
                f"'{command}', and was ended. The next run starts it again."
            )
        if ended is Wait.LATE:
            raise KernelTimeout(f"kerncap-replay did not answer '{command}' in time; it was ended")
        chunk = os.read(self._process.stdout.fileno(), 1 << 20)
        if not chunk:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            self._died(command)
        self._pending += chunk

    def _read_line(self, deadline: float, command: str) -> str:
        while True:
            end = self._pending.find(b"\n")
            if end >= 0:
                line = bytes(self._pending[:end])
                del self._pending[: end + 1]
                return line.decode("utf-8", "replace")
            self._fill(deadline, command)

    def _read_bytes(self, size: int, deadline: float, command: str) -> bytes:
        while len(self._pending) < size:
            self._fill(deadline, command)
        data = bytes(self._pending[:size])
        del self._pending[:size]
        return data

    # ---- what is asked ----------------------------------------------------------------------

    def _number(self, variant: Variant) -> int:
        self.start()
        if variant.generation != self.generation:
            launch = variant.launch
            if launch.path is None:
                variant.number = self.request("empty").integer("variant")
            else:
                kernargs = launch.kernargs_with_queue(self.greeting.integer("queue"))
                reply = self.request(
                    "load",
                    launch.path,
                    launch.symbol,
                    launch.private_bytes,
                    launch.group_bytes,
                    kernargs.hex(),
                    *launch.shape_words,
                )
                variant.number = reply.integer("variant")
                variant.base = reply.integer("base")
                variant.unmatched = tuple(reply.noted("unmatched"))
                variant.unmatched_bytes = reply.integer("unmatched_bytes")
                variant.guessed = reply.integer("guessed_pointers")
            variant.generation = self.generation
        return variant.number

    def load(self, launch: Launch) -> Variant:
        """Loads a code object. UsageError: it cannot be loaded, or its kernel does not fit the dispatch."""
        variant = Variant(launch)
        self._number(variant)
        return variant

    def captured(self) -> Variant:
        """The captured kernel. It is loaded once: only the first copy lies where it was captured."""
        if self._captured is None:
            self._captured = self.load(captured_launch(self.capture))
        return self._captured

    def emptied(self) -> Variant:
        """The captured kernel, emptied: it stores nothing, and takes what launching takes.

        Raises UsageError where its code cannot be found.
        """
        if self._emptied is None:
            self._emptied = self.load(emptied_launch(self.capture))
        return self._emptied

    def run(
        self,
        variant: Variant,
        count: int = 1,
        *,
        cache: str = "warm",
        batch: int = 1,
        track: bool = False,
        restore: bool = True,
        limit_s: float | None = None,
        clock: str = "dispatch",
    ) -> npt.NDArray[np.int64]:
        """Runs a variant; (start, end) of each dispatch in ns, shape (count*batch, 2).

        `clock`: "dispatch" for the dispatch's own timestamps, "system" for the system clock around it. The
        memory that was written is put back before each of the `count` runs, unless `restore` is False.
        Raises KernelFault, KernelTimeout.
        """
        number = self._number(variant)
        limit = limit_s or self.limit_s
        words = (
            number,
            count,
            cache,
            batch,
            "track" if track else "time",
            "restore" if restore else "over",
            limit,
        )
        try:
            reply = self.request("run", *words, limit_s=limit * (count * batch + 1) + _GRACE_SECONDS)
        except KernelFault as error:
            told = fault_text(error.message, self.capture, variant.launch)
            raise KernelFault(told, error.address) from None
        times = np.frombuffer(reply.data["times" if clock == "dispatch" else "events"], TIMES)
        return np.stack([times["start"], times["end"]], axis=1).astype(np.int64)

    def patience(self, run_s: float) -> float:
        """The limit, in seconds, of a run over altered memory of a kernel that takes `run_s` without."""
        return min(self.limit_s, max(_LEAST_LIMIT_S, _PATIENCE * run_s))

    def restore(self, *, full: bool = False) -> None:
        """Puts the memory back; `full`: whatever is known of what was written."""
        self.request("restore", "full" if full else "changed")

    def allow(self, variant: Variant) -> None:
        """Adds what the variant stored to in its last tracked run to the written set."""
        self.request("allow", self._number(variant))
        if variant not in self._allowed:
            self._allowed.append(variant)

    def written_set(self, variant: Variant) -> tuple[RangeList, int]:
        """The written set, and how many of its bytes the application's run left with the value they had."""
        reply = self.request("set", self._number(variant))
        return range_list(reply), reply.integer("silent")

    def ranges(self, which: str, variant: Variant) -> RangeList:
        """What the variant stored to in its last tracked run: `written`; of that, what is `outside` of the
        written set; or what of the set is `missing` from it.
        """
        return range_list(self.request(which, self._number(variant)))

    def compare(
        self,
        variant: Variant,
        *,
        against: str = "application",
        scope: str = "written",
        data_limit: int = DATA_LIMIT,
    ) -> Differences:
        """Compares memory as it is with what the application left, or with the reference that was kept."""
        path = Path(self._scratch.name) / "differences"
        number = self._number(variant)
        reply = self.request("compare", against, scope, number, path, data_limit)
        return Differences(
            np.frombuffer(reply.data["runs"], RUN_DTYPE),
            taken(path),
            reply.integer("compared"),
            reply.integer("different"),
            float(reply.values["seconds"]),
            {
                int(row["region"]): int(row["bytes"])
                for row in np.frombuffer(reply.data.get("compared", b""), SCOPES)
            },
        )

    def poison(self, where: str, granule: int, *, everything: bool = False) -> int:
        """Alters the silent bytes of `written` or of a region, or all its bytes; how many."""
        which = "all" if everything else "silent"
        return self.request("poison", where, granule, which).integer("bytes")

    def code_pointers(self, what: str, variant: Variant) -> int:
        """Has words that point into the captured code object point nowhere (`alter`), or those that still do
        so put `back`; how many. 0 for `alter`: that cannot be done.
        """
        return self.request("pointers", what, self._number(variant)).integer("words")

    def keep(self, where: str, variant: Variant) -> int:
        """Makes the present content of `written`, `changed` or a region, and of the variant's variables, the
        reference.
        """
        number = self._number(variant)
        self.reference = (self.generation, self.reference[1] + 1)
        return self.request("keep", where, number).integer("bytes")

    def dump(self, directory: Path) -> list[str]:
        """Writes the regions that were written to; the files' names."""
        return self.request("dump", directory).data["files"].decode().splitlines()
