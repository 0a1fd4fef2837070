"""Live statistics: what each process of a session has dispatched so far.

The interposer writes one `.live` file a process and this module maps it; nothing is sent, no lock is taken,
and either side may die at any time. A reader copies the rows that exist and never sees a counter go back.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerncap.core.code import layout
from kerncap.core.code.layout import ClockKind, KernelKind, ProcessState
from kerncap.core.code.names import id_text
from kerncap.core.device.cuda_libraries import kind_of

OVERFLOW_NAME = "(kernels beyond the table)"
_KINDS = {kind.value: kind.name.lower() for kind in KernelKind}
_CHANGING = (
    "calls",
    "timed",
    "total_ns",
    "min_ns",
    "max_ns",
    "last_ns",
    "last_seen_ns",
    "grid",
    "block",
    "last_dynamic_lds",
    "slowest",
    "tuning",
)
_Fixed = tuple[
    str, str, str, str, int, int, int, int, str, int
]  # the first fields of KernelStats, up to device_index: they never change
_GROWING = ("calls", "timed", "tuning", "total_ns", "max_ns", "last_seen_ns", "histogram")


def _text(value: bytes) -> str:
    return value.split(b"\0", 1)[0].decode("utf-8", "replace")


@dataclass(slots=True)
class KernelStats:
    """One kernel's figures, of one process or summed over several. Times are in ns of the device's clock."""

    id: str
    name: str  # demangled
    symbol: str  # mangled, without ".kd"
    kind: str
    vgprs: int
    sgprs: int
    lds_bytes: int
    scratch_bytes: int
    code_hash: str
    device_index: int
    calls: int
    timed: int
    total_ns: int  # of the timed ones; of all calls where `estimated`
    min_ns: int  # 0 while nothing is timed; least, most and histogram are of the timed ones
    max_ns: int
    last_ns: int
    grid: tuple[int, int, int]  # of the last dispatch, in work-items
    block: tuple[int, int, int]
    dynamic_lds_bytes: int
    last_seen_ns: int
    histogram: NDArray[np.uint32] = field(repr=False, compare=False)  # (64,): [i] counts 2**i .. 2**(i+1) ns
    slowest_dispatch: int = 0  # which dispatch of its process took max_ns, from 1; 0: not known
    estimated: bool = False  # total_ns is the mean of the timed dispatches times calls (`_is_estimated`)
    tuning: int = 0  # of the calls: made by an autotuner, to time a candidate

    @property
    def mean_ns(self) -> float:
        """Mean of the timed dispatches; 0 where none is."""
        if self.estimated:
            return self.total_ns / self.calls
        return self.total_ns / self.timed if self.timed else 0.0


@dataclass(slots=True)
class ProcessStats:
    """One process of the session at one moment."""

    pid: int
    parent_pid: int
    executable: str
    runtime: str
    devices: list[str]
    message: str
    simulated: bool
    exited: bool
    started_ns: int  # CLOCK_REALTIME
    dispatches: int
    timed: int
    rejected: int
    lost: int
    pending: int
    own_ns: int
    kernels: list[KernelStats]
    allocated: int = 0  # bytes that the program has from the runtime
    sampling: bool = False  # whether it has stopped timing every dispatch: some then are counted only


@dataclass(slots=True)
class Snapshot:
    """All processes of a session at one moment."""

    processes: list[ProcessStats]

    @property
    def kernels(self) -> list[KernelStats]:
        """Kernels summed over processes by id, most total time first, then most calls."""
        return sorted(self.unordered, key=lambda k: (-k.total_ns, -k.calls, k.name, k.id))

    @property
    def unordered(self) -> list[KernelStats]:
        """Kernels summed over processes by id, in any order."""
        return merge_kernels(kernel for process in self.processes for kernel in process.kernels)

    def total(self, counter: str) -> int:
        """The sum over processes of `dispatches`, `timed`, `rejected`, `lost`, `pending` or `own_ns`."""
        return sum(getattr(process, counter) for process in self.processes)

    @property
    def simulated(self) -> bool:
        """Whether any process's clock counts simulated cycles."""
        return any(process.simulated for process in self.processes)

    @property
    def sampling(self) -> bool:
        """Whether any process has stopped timing every dispatch."""
        return any(process.sampling for process in self.processes)


def merge_kernels(kernels: Iterable[KernelStats]) -> list[KernelStats]:
    """Sums figures of the same kernel id, in the order in which they come; the last-seen process gives grid,
    block and last time. The figures given are not changed.
    """
    merged: dict[str, KernelStats] = {}
    copied: set[str] = set()
    for kernel in kernels:
        seen = merged.get(kernel.id)
        if seen is None:
            merged[kernel.id] = kernel
            continue
        if kernel.id not in copied:
            copied.add(kernel.id)
            seen = merged[kernel.id] = replace(seen)
        if kernel.timed:
            seen.min_ns = min(seen.min_ns, kernel.min_ns) if seen.timed else kernel.min_ns
        if kernel.max_ns > seen.max_ns:
            seen.max_ns, seen.slowest_dispatch = kernel.max_ns, kernel.slowest_dispatch
        _add_totals(seen, kernel)
        seen.histogram = seen.histogram + kernel.histogram
        if kernel.last_seen_ns >= seen.last_seen_ns:
            seen.last_seen_ns, seen.last_ns = kernel.last_seen_ns, kernel.last_ns
            seen.grid, seen.block = kernel.grid, kernel.block
            seen.dynamic_lds_bytes = kernel.dynamic_lds_bytes
    return list(merged.values())


def _add_totals(seen: KernelStats, kernel: KernelStats) -> None:
    """Sums calls, timed ones and times. Where either total is an estimate, the sum is one over all calls."""
    if not (seen.estimated or kernel.estimated):
        seen.total_ns += kernel.total_ns
    else:
        known = [k for k in (seen, kernel) if k.timed]
        total = sum(k.mean_ns * k.calls for k in known)
        seen.total_ns = round(total * (seen.calls + kernel.calls) / sum(k.calls for k in known))
        seen.estimated = True
    seen.calls += kernel.calls
    seen.timed += kernel.timed
    seen.tuning += kernel.tuning


# What is lost, rejected or still under way of a program that times every dispatch is no sample, and neither
# are the few that one that has begun to sample did not time of a kernel.
_MEASURED_SHARE = 0.99


def _with_estimates(rows: NDArray[np.void]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Totals of rows of a process that times a sample, and which of them are estimates: those of kernels of
    which less than 99 % of the dispatches are timed, and at least one is.
    """
    calls, timed = rows["calls"], rows["timed"]
    estimated = (timed > 0) & (timed < calls * _MEASURED_SHARE)
    means = rows["total_ns"] / np.maximum(timed, 1)
    return np.where(estimated, np.rint(means * calls).astype(np.uint64), rows["total_ns"]), estimated


class LiveFile:
    """One process's statistics file, mapped for reading. OSError where it cannot be opened, or is no file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Not blocking, since what lies there may be a pipe.
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.close(self._fd)
            raise OSError(errno.EINVAL, "not a file", str(path))
        self._map: mmap.mmap | None = None
        self._fixed: dict[int, _Fixed] = {}
        self._last: NDArray[np.void] | None = None
        self._sizes: dict[str, tuple[bytes, list[tuple[int, int, int]]]] = {}

    def close(self) -> None:
        """Unmaps the file; safe to call twice."""
        if self._map is not None:
            self._map.close()
            self._map = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _remap(self) -> mmap.mmap | None:
        size = os.fstat(self._fd).st_size
        if size < layout.ROWS_OFFSET:
            return None
        if self._map is None or len(self._map) < size:
            if self._map is not None:
                self._map.close()
            self._map = mmap.mmap(self._fd, size, prot=mmap.PROT_READ)
        return self._map

    def read(self) -> ProcessStats | None:
        """The figures now; None while the file is being made or is not ours to read (another version)."""
        mapped = self._remap()
        if mapped is None:
            return None
        header = np.frombuffer(mapped, layout.LIVE_HEADER, 1)[0].copy()
        if header["magic"] != layout.LIVE_MAGIC or int(header["version"]) != layout.VERSION:
            return None
        if int(header["row_bytes"]) != layout.ROW_BYTES:
            return None
        count = min(int(header["row_count"]), layout.MAX_ROWS - 1)
        available = (min(len(mapped), layout.NAMES_OFFSET) - layout.ROWS_OFFSET) // layout.ROW_BYTES
        count = min(count, available - 1)
        if count < 0:
            rows = np.empty(0, layout.ROW)
        else:
            rows = np.frombuffer(mapped, layout.ROW, count + 1, layout.ROWS_OFFSET).copy()
        self._keep_monotonic(rows)
        return ProcessStats(
            pid=int(header["pid"]),
            parent_pid=int(header["parent_pid"]),
            executable=_text(bytes(header["executable"])),
            runtime=_text(bytes(header["runtime"])),
            devices=[line for line in _text(bytes(header["devices"])).splitlines() if line],
            message=_text(bytes(header["message"])),
            simulated=int(header["clock"]) == ClockKind.SIMULATED,
            exited=int(header["state"]) == ProcessState.EXITED,
            started_ns=int(header["start_realtime_ns"]),
            dispatches=int(header["dispatches"]),
            timed=int(header["timed"]),
            rejected=int(header["rejected"]),
            lost=int(header["lost"]),
            pending=int(header["pending"]),
            own_ns=int(header["own_ns"]),
            kernels=self._kernels(rows, mapped, bool(header["sampling"])),
            allocated=int(header["allocated"]),
            sampling=bool(header["sampling"]),
        )

    def _keep_monotonic(self, rows: NDArray[np.void]) -> None:
        # A copy is not atomic; a counter read earlier in this copy than in the last one must not step back.
        if self._last is not None:
            n = min(len(rows), len(self._last))
            for name in _GROWING:
                np.maximum(rows[name][:n], self._last[name][:n], out=rows[name][:n])
        np.minimum(rows["timed"], rows["calls"], out=rows["timed"])
        self._last = rows

    def _kernels(self, rows: NDArray[np.void], mapped: mmap.mmap, sampling: bool) -> list[KernelStats]:
        used = np.flatnonzero(rows["calls"])
        live = rows[used]
        # Whole columns to Python numbers at once: a thousand kernels, ten times a second, on a slow machine.
        columns = [[] if name in ("grid", "block") else live[name].tolist() for name in _CHANGING]
        for name in ("grid", "block"):
            columns[_CHANGING.index(name)] = self._tuples(name, live[name])
        estimated = [False] * len(used)
        if sampling:
            totals, marks = _with_estimates(live)
            columns[_CHANGING.index("total_ns")], estimated = totals.tolist(), marks.tolist()
        every = zip(used.tolist(), live["histogram"], estimated, *columns, strict=True)
        kernels = []
        for (
            index,
            histogram,
            estimate,
            calls,
            timed,
            total,
            least,
            most,
            last,
            seen,
            grid,
            block,
            lds,
            slowest,
            tuning,
        ) in every:
            fixed = self._fixed.get(index) or self._read_fixed(index, rows[index], mapped)
            kernels.append(
                KernelStats(
                    *fixed,
                    calls,
                    timed,
                    total,
                    least if timed else 0,
                    most if timed else 0,
                    last,
                    grid,
                    block,
                    lds,
                    seen,
                    histogram,
                    slowest,
                    estimate,
                    tuning,
                )
            )
        return kernels

    def _tuples(self, name: str, sizes: NDArray[Any]) -> list[tuple[int, int, int]]:
        """Grids or blocks as tuples: those of the look before where none is another."""
        raw = sizes.tobytes()
        known = self._sizes.get(name)
        if known is None or known[0] != raw:
            known = self._sizes[name] = raw, list(map(tuple, sizes.tolist()))
        return known[1]

    def _read_fixed(self, index: int, row: np.void, mapped: mmap.mmap) -> _Fixed:
        ident = id_text(int(row["id"]))
        kind = _KINDS.get(int(row["kind"]), "unknown")
        vgprs, sgprs, lds, scratch = (
            int(row[name]) for name in ("vgprs", "sgprs", "lds_bytes", "scratch_bytes")
        )
        code, device = id_text(int(row["code_hash"])), int(row["device"])
        symbol: str | None = OVERFLOW_NAME
        name: str | None = OVERFLOW_NAME
        if index > 0:
            symbol = self._string(mapped, int(row["name_offset"]), int(row["name_length"]))
            name = self._string(mapped, int(row["demangled_offset"]), int(row["demangled_length"]))
        if symbol is None or name is None:
            unnamed = f"(kernel {ident})"  # not within what is mapped yet: the next read maps more
            return ident, unnamed, unnamed, kind, vgprs, sgprs, lds, scratch, code, device
        kind = kind_of(kind, symbol, name)
        fixed = (ident, name or symbol, symbol, kind, vgprs, sgprs, lds, scratch, code, device)
        self._fixed[index] = fixed
        return fixed

    @staticmethod
    def _string(mapped: mmap.mmap, offset: int, length: int) -> str | None:
        begin = layout.NAMES_OFFSET + offset
        if length > layout.MAX_NAME_BYTES or begin + length > len(mapped):
            return None
        return mapped[begin : begin + length].decode("utf-8", "replace")


class LiveReader:
    """All statistics files of one session directory; new processes are found as they appear."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        self._files: dict[str, LiveFile] = {}

    def __enter__(self) -> LiveReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unmaps everything."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def snapshot(self) -> Snapshot:
        """The figures of every process now, in the order in which the processes started."""
        try:
            names = [entry.name for entry in os.scandir(self.directory) if entry.name.endswith(".live")]
        except OSError:
            names = []
        for name in names:
            if name not in self._files:
                try:
                    self._files[name] = LiveFile(self.directory / name)
                except OSError:
                    continue
        processes = [stats for file in self._files.values() if (stats := file.read()) is not None]
        processes.sort(key=lambda process: (process.started_ns, process.pid))
        return Snapshot(processes)
