"""Driving `kerncap-replay`, the resident process that holds a capture's memory (native/replay/protocol.h).

A kernel that faults or never ends takes the process with it: `KernelFault` and `KernelTimeout` say so, and
the next request starts a fresh one, with the variants and the written set it had.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from kerncap.core.capture.records import Capture
from kerncap.core.device.cuda_toolkit import find_cupti
from kerncap.core.device.devices import SIM_READY, Device, named_device, real_arches
from kerncap.core.device.sim_settings import check_settings
from kerncap.core.errors import (
    DeviceError,
)
from kerncap.core.native import REPLAYER, REPLAYER_CUDA, SIM_RUNTIME, native_path
from kerncap.core.program.limits import MOST_SECONDS
from kerncap.core.replay.faults import fault_text
from kerncap.core.replay.launch import Launch, captured_launch, emptied_launch
from kerncap.core.replay.replayer_process import ReplayerProcess
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
    range_list,
    taken,
)
from kerncap.core.scratch import scratch

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
    named = named_device(wanted or None)
    if named is not None:
        return named
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
        self._scratch = scratch("replay")
        self._allowed: list[Variant] = []
        self.process = ReplayerProcess(
            Path(self._scratch.name) / "stderr", limit_s, _PROFILER_SECONDS if under else 1.0
        )
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
        if self.process.running:
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
            environment.setdefault(
                "KERNCAP_SIM_MAX_SECONDS", str(min(int(self.limit_s) + 60, int(MOST_SECONDS)))
            )
        command = [*self._under, str(native_path(program)), str(self.capture.path), "--runtime", runtime]
        if self.device.index is not None:
            command += ["--device", str(self.device.index)]
        if not self._track_writes:
            command.append("--no-write-tracking")
        if not self._timestamps:
            command.append("--no-timestamps")
        self.generation += 1
        self.greeting = self.process.start(command, environment, self.start_limit_s)
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
        self.process.stop()

    def kill(self) -> None:
        """Ends the process at once, from any thread: a request under way raises DeviceError."""
        self.process.kill()

    def close(self) -> None:
        """Ends the process and removes what it has written."""
        self.stop()
        self._scratch.cleanup()

    def request(self, command: str, *arguments: object, limit_s: float | None = None) -> Reply:
        """Sends one command and waits for its answer, at most `limit_s` seconds (default 600)."""
        self.start()
        return self.process.request(command, *arguments, limit_s=limit_s or 600.0)

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
