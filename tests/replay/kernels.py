"""Kernels for the replay tests: compiled once, captured by running them in a replayer of their own."""

from __future__ import annotations

import functools
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from make_capture import Memory, Spec

from kerncap.core.scratch import scratch

KERNELS = Path(__file__).resolve().parent.parent / "kernels"


def _zig(*args: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ziglang", *args], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@functools.cache
def _place() -> tempfile.TemporaryDirectory[str]:
    """Removed at the end of the process; the next one removes it where that was killed."""
    return scratch("test")


@functools.cache
def compile_source(source: str, arch: str = "gfx942", flags: tuple[str, ...] = ("-O2",)) -> Path:
    """The code object of a source text that may include device.h."""
    directory = Path(tempfile.mkdtemp(dir=_place().name))
    unit, assembly, obj, out = (directory / f"k{kind}" for kind in (".hip", ".s", ".o", ".hsaco"))
    unit.write_text('#include "device.h"\n' + source)
    _zig(
        *("clang", "-x", "hip", "--cuda-device-only", f"--offload-arch={arch}", "-nogpulib", "-nogpuinc"),
        *("-std=c++20", "-Wno-unused-command-line-argument", f"-I{KERNELS}", *flags),
        *("-S", str(unit), "-o", str(assembly)),
    )
    _zig("clang", "-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", "-c", str(assembly), "-o", str(obj))
    _zig("ld.lld", "-shared", str(obj), "-o", str(out))
    return out


def arguments(*values: object) -> bytes:
    """Kernel arguments at their natural alignment: numpy scalars, or an int for an address."""
    out = bytearray()
    for value in values:
        raw = struct.pack("<Q", value) if isinstance(value, int) else np.asarray(value).tobytes()
        out += bytes(-len(out) % len(raw)) + raw
    return bytes(out)


def with_implicit(explicit: bytes, grid: tuple[int, int, int], workgroup: tuple[int, int, int]) -> bytes:
    """Explicit arguments and the 256 bytes of implicit ones (AMDGPUUsage, code object v5)."""
    implicit = bytearray(256)
    counts = [g // w for g, w in zip(grid, workgroup, strict=True)]
    struct.pack_into("<III", implicit, 0, *counts)
    struct.pack_into("<HHH", implicit, 12, *workgroup)
    struct.pack_into("<HHH", implicit, 18, *(g % w for g, w in zip(grid, workgroup, strict=True)))
    struct.pack_into("<H", implicit, 64, 1)
    return explicit + bytes(-len(explicit) % 8) + bytes(implicit)


def spec(
    hsaco: Path,
    symbol: str,
    memory: list[Memory],
    explicit: bytes,
    *,
    items: int = 256,
    workgroup: int = 64,
    **more: object,
) -> Spec:
    """A capture of one dispatch with a one-dimensional grid."""
    grid, block = (items, 1, 1), (workgroup, 1, 1)
    return Spec(hsaco.read_bytes(), symbol, grid, block, with_implicit(explicit, grid, block), memory, **more)
