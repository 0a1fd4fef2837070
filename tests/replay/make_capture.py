"""Writes captures without an interposer: a code object, memory before and after, and the arguments.

The layout is native/snapshot/records.h, written here a second time on purpose: what reads captures is tested
against an independent writer.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import xxhash

ALIGN = 4096
BLOCK = 1 << 20
DEVICE, DEVICE_FINE, HOST, KERNARG, REGISTERED, MANAGED, VMEM, CODE_SEGMENT = range(1, 9)
SAVED, REACHABLE, WRITTEN = 1, 2, 4


def _record(kind: int, fixed: bytes, *strings: str | bytes) -> bytes:
    body = fixed + b"".join(s.encode() if isinstance(s, str) else s for s in strings)
    body += bytes(-len(body) % 8)
    return struct.pack("<II", kind, 8 + len(body)) + body


STRIPE = 32 << 20  # of memory.pre, where it is several files


@dataclass
class Memory:
    """One region: address, its bytes before, and after (None: the dispatch did not change them)."""

    address: int
    before: np.ndarray
    after: np.ndarray | None = None
    kind: int = DEVICE
    code_object: int = 0
    saved: bool = True
    reason: str = ""

    @property
    def bytes_before(self) -> np.ndarray:
        return np.ascontiguousarray(self.before).view(np.uint8).reshape(-1)

    @property
    def bytes_after(self) -> np.ndarray:
        after = self.before if self.after is None else self.after
        return np.ascontiguousarray(after).view(np.uint8).reshape(-1)


@dataclass
class Cuda:
    """A launch on an NVIDIA GPU: grid and cluster in blocks, sizes in bytes."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    parameters: list[tuple[int, int]]
    cluster: tuple[int, int, int] = (0, 0, 0)
    static_shared: int = 0
    dynamic_shared: int = 0
    cooperative: bool = False

    def record(self) -> bytes:
        fixed = struct.pack(
            "<3I3I3I5I4iII",
            *(*self.grid, *self.block, *self.cluster),
            *(self.static_shared, self.dynamic_shared, int(self.cooperative), 32, 0),
            *(-1, -1, -1, -1, len(self.parameters), 0),
        )
        return _record(11, fixed, *(struct.pack("<II", *pair) for pair in self.parameters))


@dataclass
class Spec:
    """All that a capture says."""

    hsaco: bytes
    symbol: str
    grid: tuple[int, int, int]
    workgroup: tuple[int, int, int]
    kernargs: bytes
    memory: list[Memory]
    kernarg_address: int = 0x7E0000000000
    group_segment: int = 0
    private_segment: int = 0
    isa: str = "amdgcn-amd-amdhsa--gfx942"
    name: str = "gfx942"
    demangled: str = ""
    load_base: int = 0x7D0000000000
    files: int = 1  # that memory.pre is dealt out to
    load_bytes: int = 0x10000
    load_delta: int = 0x7D0000000000
    flags: int = 0
    simulated: bool = True
    version: int = 1
    variables: list[tuple[str, int, int]] = field(default_factory=list)  # name, address, bytes
    change_granule: int = 64
    cuda: Cuda | None = None
    # Blocks of memory.pre and memory.post that are not written, and which have their bytes; `filler` is in
    # their place.
    repeats: list[tuple[int, int]] = field(default_factory=list)
    post_repeats: list[tuple[int, int]] = field(default_factory=list)
    filler: int = 0


def _runs(before: np.ndarray, after: np.ndarray, granule: int) -> list[tuple[int, int]]:
    """(offset, size) of the granules that differ, neighbours merged."""
    count = -(-len(before) // granule)
    padded = np.zeros(count * granule, bool)
    padded[: len(before)] = before != after
    hot = padded.reshape(count, granule).any(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], hot.view(np.int8), [0]))))
    return [
        (int(a) * granule, min(int(b) * granule, len(before)) - int(a) * granule)
        for a, b in zip(edges[::2], edges[1::2], strict=True)
    ]


def _checksums(index: int, data: bytes) -> bytes:
    values = [xxhash.xxh64_intdigest(data[i : i + BLOCK]) for i in range(0, len(data), BLOCK)]
    fixed = struct.pack("<IIQ", index, len(values), 0)
    return _record(9, fixed, struct.pack(f"<{len(values)}Q", *values))


def _repeats(index: int, pairs: list[tuple[int, int]]) -> bytes:
    return _record(12, struct.pack("<II", index, len(pairs)), *(struct.pack("<QQ", *pair) for pair in pairs))


def _write_sparse(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        for at in range(0, len(data), BLOCK):
            if any(block := data[at : at + BLOCK]):
                file.seek(at)
                file.write(block)
        file.truncate(len(data))


def packet(spec: Spec) -> bytes:
    dims = 3 if spec.grid[2] > 1 else 2 if spec.grid[1] > 1 else 1
    return struct.pack(
        "<HHHHHHIIIIIQQQQ",
        (2 | 1 << 8 | 2 << 9 | 2 << 11),
        dims,
        *spec.workgroup,
        0,
        *spec.grid,
        spec.private_segment,
        spec.group_segment,
        spec.load_base + 0x40,
        spec.kernarg_address,
        0,
        0,
    )


def write(directory: Path, spec: Spec) -> Path:
    """Writes the capture `spec` to `directory` (made here) and returns it."""
    (directory / "code").mkdir(parents=True)
    content = xxhash.xxh64_intdigest(spec.hsaco)
    (directory / "code" / f"{content:016x}.hsaco").write_bytes(spec.hsaco)

    pre, post = bytearray(), bytearray()
    regions, changes = [], []
    for ident, memory in enumerate(sorted(spec.memory, key=lambda m: m.address), 1):
        before, after = memory.bytes_before, memory.bytes_after
        assert len(before) == len(after), "before and after must have the same size"
        flags, offset = REACHABLE, 0
        if memory.saved:
            pre += bytes(-len(pre) % ALIGN)
            offset = len(pre)
            pre += before.tobytes()
            flags |= SAVED
            runs = _runs(before, after, spec.change_granule)
            flags |= WRITTEN if runs else 0
            for start, size in runs:
                fixed = struct.pack("<IIQQQ", ident, 0, memory.address + start, size, len(post))
                changes.append(_record(8, fixed))
                post += after[start : start + size].tobytes()
        fixed = struct.pack(
            "<IIQQQIIII",
            *(ident, memory.kind, memory.address, len(before), offset),
            *(flags, memory.code_object, 0, len(memory.reason.encode())),
        )
        regions.append(_record(7, fixed, memory.reason))

    uri = f"memory://1#offset=0x1000&size={len(spec.hsaco)}"
    demangled = spec.demangled or spec.symbol
    records = [
        _record(1, struct.pack("<QIIII", 1, 42, 8, 4, 5), "/bin/app", "/tmp", "sim 1"),
        _record(
            2,
            struct.pack(
                "<IIIIQQIIII",
                *(0, 304, 64, 65536, 1 << 28, 100_000_000, int(spec.simulated)),
                *(len(spec.isa), len(spec.name), 3),
            ),
            spec.isa,
            spec.name,
            "SIM",
        ),
        _record(
            3,
            packet(spec)
            + struct.pack(
                "<7QII2Q4I",
                *(7, 1, 1, 0, 1000, 2000, spec.load_base + 0x40, 1, spec.flags),
                *(sum(len(m.bytes_before) for m in spec.memory), 1 << 30, 0),
                *(len(spec.symbol.encode()), len(demangled.encode()), 0),
            ),
            spec.symbol,
            demangled,
        ),
        _record(4, struct.pack("<QQ", spec.kernarg_address, len(spec.kernargs)), spec.kernargs),
        _record(
            5,
            struct.pack(
                "<IIQQQQq",
                *(1, len(uri), content, len(spec.hsaco)),
                *(spec.load_base, spec.load_bytes, spec.load_delta),
            ),
            uri,
        ),
        *([spec.cuda.record()] if spec.cuda else []),
        *(
            _record(6, struct.pack("<IIQQ", 1, len(name.encode()), address, size), name)
            for name, address, size in spec.variables
        ),
        *regions,
        *changes,
        *([_checksums(0, bytes(pre))] if pre else []),
        *([_checksums(1, bytes(post))] if post else []),
        *([_repeats(0, spec.repeats)] if spec.repeats else []),
        *([_repeats(1, spec.post_repeats)] if spec.post_repeats else []),
        _record(10, b""),
    ]
    body = b"".join(records)
    header = struct.pack(
        "<8sIIQQQQQII",
        *(b"KCAPTURE", spec.version, 64, 64 + len(body), len(pre), len(post), len(records)),
        *(xxhash.xxh64_intdigest(body), spec.files, 0),
    )
    for memory, repeats in ((pre, spec.repeats), (post, spec.post_repeats)):
        for block, _ in repeats:
            place = slice(block * BLOCK, (block + 1) * BLOCK)
            memory[place] = bytes([spec.filler]) * len(memory[place])
    parts = [b""] * spec.files
    for number, at in enumerate(range(0, len(pre), STRIPE if spec.files > 1 else len(pre))):
        parts[number % spec.files] += pre[at : at + (STRIPE if spec.files > 1 else len(pre))]
    for number, part in enumerate(parts):
        name = directory / ("memory.pre" + (f".{number}" if number else ""))
        _write_sparse(name, part) if spec.repeats else name.write_bytes(part)
    name = directory / "memory.post"
    _write_sparse(name, post) if spec.post_repeats else name.write_bytes(post)
    (directory / "capture.bin").write_bytes(header + body)
    return directory
