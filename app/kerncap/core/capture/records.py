"""What a capture holds: the records of `capture.bin` and the memory files beside it (layout:
native/snapshot/records.h).

`reading.read_capture` makes one of a directory. `Capture.verify()` hashes the contents of `memory.pre`,
`memory.post` and `code/` as well. All addresses and sizes are in bytes.
"""

from __future__ import annotations

import enum
import os
import struct
from bisect import bisect_right
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xxhash

from kerncap.core.device.memory_files import BLOCK_BYTES, Bytes, MemoryFiles
from kerncap.core.errors import DAMAGED, DamagedCaptureError, unreadable

MAGIC = b"KCAPTURE"
VERSION = 1
REGION_ALIGN = 4096
CHECKSUM_BLOCK = BLOCK_BYTES
_BLOCKS_AT_ONCE = 64

PACKET = struct.Struct("<HHHHHHIIIIIQQQQ")  # hsa_kernel_dispatch_packet_t

CHANGE_DTYPE = np.dtype(
    [
        ("type", "<u4"),
        ("record_bytes", "<u4"),
        ("region", "<u4"),
        ("reserved", "<u4"),
        ("address", "<u8"),
        ("bytes", "<u8"),
        ("post_offset", "<u8"),
    ]
)

Changes = npt.NDArray[np.void]


class RecordType(enum.IntEnum):
    PROCESS = 1
    DEVICE = 2
    DISPATCH = 3
    KERNARG = 4
    CODE_OBJECT = 5
    VARIABLE = 6
    REGION = 7
    CHANGE = 8
    CHECKSUMS = 9
    END = 10
    CUDA_LAUNCH = 11
    REPEATS = 12


class RegionKind(enum.IntEnum):
    """What sort of memory a region is."""

    DEVICE = 1
    DEVICE_FINE = 2
    HOST = 3
    KERNARG = 4
    REGISTERED = 5
    MANAGED = 6
    VMEM = 7
    CODE_SEGMENT = 8


class RegionFlags(enum.IntFlag):
    SAVED = 1
    REACHABLE = 2
    WRITTEN = 4


class DispatchFlags(enum.IntFlag):
    NEEDS_LISTENER = 1
    COOPERATIVE = 2
    GRAPH = 4


@dataclass(frozen=True)
class Process:
    realtime_ns: int
    pid: int
    executable: str
    directory: str
    runtime: str


@dataclass(frozen=True)
class Device:
    index: int
    compute_units: int
    wavefront: int
    lds_bytes: int
    cache_bytes: int
    clock_hz: int
    simulated: bool
    isa: str
    name: str
    product: str


@dataclass(frozen=True)
class Dispatch:
    """The captured dispatch. Grid and workgroup are in work-items."""

    packet: bytes
    kernel_id: int
    nth_of_kernel: int
    nth_overall: int
    queue_id: int
    start_ns: int
    end_ns: int
    descriptor_address: int
    code_object: int
    flags: DispatchFlags
    reachable_bytes: int
    allocated_bytes: int
    memory_mode: int
    symbol: str
    demangled: str

    @cached_property
    def _fields(self) -> tuple[int, ...]:
        return PACKET.unpack(self.packet)

    @property
    def workgroup(self) -> tuple[int, int, int]:
        return self._fields[2], self._fields[3], self._fields[4]

    @property
    def grid(self) -> tuple[int, int, int]:
        return self._fields[6], self._fields[7], self._fields[8]

    @property
    def dimensions(self) -> int:
        return self._fields[1] & 3

    @property
    def private_segment_size(self) -> int:
        return self._fields[9]

    @property
    def group_segment_size(self) -> int:
        """LDS a workgroup, static and dynamic."""
        return self._fields[10]

    @property
    def kernarg_address(self) -> int:
        return self._fields[12]


@dataclass(frozen=True)
class CudaLaunch:
    """How a kernel was launched on a CUDA device. Sizes are bytes; -1: the driver does not tell."""

    grid: tuple[int, int, int]  # in blocks
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]  # in blocks; all 0: none
    static_shared: int
    dynamic_shared: int
    cooperative: bool
    registers: int
    local_bytes: int
    max_dynamic_shared: int
    shared_carveout: int
    non_portable_cluster: int
    cluster_policy: int
    parameters: tuple[tuple[int, int], ...]  # (offset, size) in the kernargs
    attributes: tuple[tuple[int, bytes], ...]  # CUlaunchAttribute: id and value


@dataclass(frozen=True)
class Kernarg:
    address: int
    data: bytes


@dataclass(frozen=True)
class CodeObject:
    id: int
    uri: str
    content_hash: int
    content_bytes: int
    load_base: int
    load_bytes: int
    load_delta: int

    @property
    def file_name(self) -> str:
        return f"{self.content_hash:016x}.hsaco"


@dataclass(frozen=True)
class Variable:
    code_object: int
    name: str
    address: int
    bytes: int


@dataclass(frozen=True)
class Region:
    id: int
    kind: RegionKind
    address: int
    bytes: int
    pre_offset: int
    flags: RegionFlags
    code_object: int
    pool_flags: int
    reason: str  # why it is not saved; empty if it is

    @property
    def end(self) -> int:
        return self.address + self.bytes

    @property
    def saved(self) -> bool:
        return bool(self.flags & RegionFlags.SAVED)


@dataclass
class Capture:
    """A capture directory, read."""

    path: Path
    process: Process
    devices: list[Device]
    dispatch: Dispatch
    kernarg: Kernarg
    code_objects: list[CodeObject]
    variables: list[Variable]
    regions: list[Region]  # by address
    changes: Changes  # dtype CHANGE_DTYPE, by address
    pre_bytes: int
    post_bytes: int
    checksums: dict[int, npt.NDArray[np.uint64]]  # 0: memory.pre, 1: memory.post
    _starts: list[int] = field(default_factory=list, repr=False)
    cuda_launch: CudaLaunch | None = None  # of a capture from a CUDA device
    pre_files: int = 1  # how many files memory.pre is
    # Of each memory file, as `checksums`: block -> the one that has its bytes.
    repeats: Mapping[int, Mapping[int, int]] = field(default_factory=lambda: {0: {}, 1: {}})

    @property
    def device(self) -> Device:
        """The device that ran the dispatch."""
        return self.devices[0]

    @property
    def device_kind(self) -> str:
        """ "cuda", "rocm" or "sim"."""
        if self.cuda_launch is not None:
            return "cuda"
        return "sim" if self.device.simulated else "rocm"

    @property
    def code_object(self) -> CodeObject:
        """The one that holds the captured kernel."""
        return next(c for c in self.code_objects if c.id == self.dispatch.code_object)

    def code_path(self, code: CodeObject | None = None) -> Path:
        """The file of a code object (the captured kernel's by default)."""
        return self.path / "code" / (code or self.code_object).file_name

    @property
    def memory_files(self) -> tuple[MemoryFiles, MemoryFiles]:
        """Memory before the dispatch, and what the dispatch changed."""
        return (
            MemoryFiles(self.path / "memory.pre", self.pre_bytes, self.pre_files, self.repeats[0]),
            MemoryFiles(self.path / "memory.post", self.post_bytes, 1, self.repeats[1]),
        )

    @cached_property
    def _pre(self) -> Bytes:
        return self.memory_files[0].map()

    @cached_property
    def _post(self) -> Bytes:
        return self.memory_files[1].map()

    def region_at(self, address: int) -> Region | None:
        """The region that holds `address`."""
        i = bisect_right(self._starts, address) - 1
        if i >= 0 and address < self.regions[i].end:
            return self.regions[i]
        return None

    def nearest_region(self, address: int) -> tuple[Region, int] | None:
        """The nearest region and the distance to it (0: inside)."""
        i = bisect_right(self._starts, address) - 1
        near = [r for r in self.regions[max(i, 0) : i + 2]]
        if not near:
            return None
        return min(
            ((r, max(r.address - address, address - (r.end - 1), 0)) for r in near), key=lambda pair: pair[1]
        )

    def before(self, address: int, size: int) -> Bytes:
        """Copies bytes as they were before the dispatch. KeyError if they were not saved."""
        region = self.region_at(address)
        if region is None or not region.saved or address + size > region.end:
            raise KeyError(f"0x{address:x}+{size}: not in a saved region")
        start = region.pre_offset + address - region.address
        return np.array(self._pre[start : start + size])

    def after(self, address: int, size: int) -> Bytes:
        """Copies bytes as they were after it: those before, with the changes laid over them."""
        data = self.before(address, size)
        starts = self.changes["address"]
        first = int(np.searchsorted(starts, address, side="right")) - 1
        for change in self.changes[max(first, 0) :]:
            begin, end = int(change["address"]), int(change["address"]) + int(change["bytes"])
            if begin >= address + size:
                break
            lo, hi = max(begin, address), min(end, address + size)
            if lo < hi:
                source = int(change["post_offset"]) + lo - begin
                data[lo - address : hi - address] = self._post[source : source + hi - lo]
        return data

    def changed_bytes(self) -> int:
        """How many bytes differ between before and after."""
        return self._changed_bytes

    @cached_property
    def _changed_bytes(self) -> int:
        if len(self.changes) == 0:
            return 0
        by_id = sorted(self.regions, key=lambda r: r.id)
        where = np.searchsorted([r.id for r in by_id], self.changes["region"])
        shift = np.array([r.pre_offset - r.address for r in by_id], np.int64)
        before = self.changes["address"].astype(np.int64) + shift[where]
        after, sizes = self.changes["post_offset"].astype(np.int64), self.changes["bytes"].astype(np.int64)
        total, start, ends = 0, 0, np.cumsum(sizes)
        while start < len(sizes):  # at most about 16 MiB of small changes at a time; a large one as it is
            done = int(ends[start - 1]) if start else 0
            stop = max(int(np.searchsorted(ends, done + (1 << 24), side="right")), start + 1)
            if stop == start + 1:
                a, b, n = int(before[start]), int(after[start]), int(sizes[start])
                total += int(np.count_nonzero(self._pre[a : a + n] != self._post[b : b + n]))
            else:
                total += self._differing(before[start:stop], after[start:stop], sizes[start:stop])
            start = stop
        return total

    def _differing(
        self, before: npt.NDArray[np.int64], after: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
    ) -> int:
        """How many bytes differ in many small ranges: of words of 8 bytes where all are aligned so, which is
        eight times as fast.
        """
        pre, post, word = self._pre, self._post, 1
        if not int(np.bitwise_or.reduce(before | after | sizes)) % 8:
            word = 8
            pre, post = (data[: len(data) // 8 * 8].view(np.uint64) for data in (pre, post))  # type: ignore[assignment]
            before, after, sizes = before // 8, after // 8, sizes // 8
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        a, b = pre[np.repeat(before, sizes) + within], post[np.repeat(after, sizes) + within]
        return int(np.count_nonzero((a ^ b).view(np.uint8) if word == 8 else a != b))

    def verify(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Hashes memory.pre, memory.post and code/. `progress(done, total)` in bytes.

        Raises DamagedCaptureError with the file and the offset of the first block that differs.
        """
        done, total = 0, self.pre_bytes + self.post_bytes
        # xxhash lets other threads run while it hashes, and the pages of large files are mapped side by side.
        with ThreadPoolExecutor(max_workers=min(16, os.cpu_count() or 1)) as pool:
            for index, (files, data) in enumerate(
                zip(self.memory_files, (self._pre, self._post), strict=True)
            ):
                sums = self.checksums[index]
                firsts = range(0, len(sums), _BLOCKS_AT_ONCE)
                for first, bad in zip(firsts, pool.map(_Hashing(data, sums), firsts), strict=True):
                    if bad is not None:
                        pool.shutdown(wait=False, cancel_futures=True)
                        begin = bad * CHECKSUM_BLOCK
                        length = min(CHECKSUM_BLOCK, len(data) - begin)
                        name, offset = files.place(begin)
                        raise DamagedCaptureError(
                            f"{self.path / name}: the block of {length} bytes at offset {offset} does not "
                            f"have the checksum it was written with{DAMAGED}",
                            file=name,
                            offset=offset,
                        )
                    done += min(_BLOCKS_AT_ONCE * CHECKSUM_BLOCK, len(data) - first * CHECKSUM_BLOCK)
                    if progress is not None:
                        progress(done, total)
        self.verify_code()

    def verify_code(self) -> None:
        """Hashes code/. Raises DamagedCaptureError."""
        for code in self.code_objects:
            self.read_code(code)

    def read_code(self, code: CodeObject | None = None) -> bytes:
        """The bytes of a code object (the captured kernel's by default), checked against their hash."""
        code = code or self.code_object
        path = self.code_path(code)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise unreadable(path, error, DamagedCaptureError, DAMAGED, file=str(path), offset=0) from error
        if len(content) != code.content_bytes or xxhash.xxh64_intdigest(content) != code.content_hash:
            had = f"{code.content_bytes} bytes, not the {len(content)} that are there"
            if len(content) == code.content_bytes:
                had = "other bytes than those that are there"
            raise DamagedCaptureError(
                f"{path}: what was captured had {had}{DAMAGED}",
                file=str(path),
                offset=0,
            )
        return content


@dataclass(frozen=True)
class _Hashing:
    """Hashes _BLOCKS_AT_ONCE blocks of a file from the given one on: the first that is not as it was, or
    None.
    """

    data: Bytes
    sums: npt.NDArray[np.uint64]

    def __call__(self, first: int) -> int | None:
        for block in range(first, min(first + _BLOCKS_AT_ONCE, len(self.sums))):
            begin = block * CHECKSUM_BLOCK
            if xxhash.xxh64_intdigest(self.data[begin : begin + CHECKSUM_BLOCK].data) != int(
                self.sums[block]
            ):
                return block
        return None
