"""Compiles the kernels of tests/kernels for a simulated GPU and for the host (the oracle)."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

KERNELS = Path(__file__).resolve().parent.parent / "kernels"
# What can be simulated; the first is what everything is tried on.
ARCHES = ("gfx942", "gfx90a")
_KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\(\d+\)\s+)?(\w+)\(")
# Both sides fuse a*b+c alike, within an expression, so that results can be compared bit for bit.
_CONTRACT = "-ffp-contract=on"


def corpus_sources() -> list[Path]:
    """The kernel files that are compared with the host."""
    return sorted(KERNELS.glob("*.hip"))


def zig(*args: str) -> None:
    """Runs one of zig's tools; an AssertionError with its output if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "ziglang", *args], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"zig {' '.join(args)}\n{done.stdout}{done.stderr}"


def kernel_names(source: Path) -> list[str]:
    """Kernels that `source` defines on gfx942."""
    preprocessed = subprocess.run(
        [sys.executable, "-m", "ziglang", "clang", *_device_flags("gfx942"), "-E", "-P", str(source)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    text = preprocessed.replace("__attribute__((global))", "__global__")
    text = re.sub(r"__attribute__\(\(launch_bounds\(\d+\)\)\)\s*", "", text)
    return _KERNEL.findall(text)


def _device_flags(arch: str) -> list[str]:
    return [
        *("-x", "hip", "--cuda-device-only", f"--offload-arch={arch}", "-nogpulib", "-nogpuinc"),
        *("-std=c++20", "-Wno-unused-command-line-argument", f"-I{KERNELS}", _CONTRACT),
    ]


def link_device(obj: Path, out: Path) -> None:
    zig("ld.lld", "-shared", str(obj), "-o", str(out))


def refused_lines(text: str, directory: Path, arch: str) -> set[int]:
    """Numbers, from 1, of the lines of assembly that `arch` does not have."""
    source = directory / f"refused_{arch}.s"
    source.write_text(text)
    words = ["clang", "-cc1as", "-triple", "amdgcn-amd-amdhsa", "-target-cpu", arch, "-filetype", "null"]
    done = subprocess.run(
        [sys.executable, "-m", "ziglang", *words, str(source)], capture_output=True, text=True, timeout=300
    )
    return {int(n) for n in re.findall(rf"{source.name}:(\d+):\d+: error", done.stderr)}


def assemble(text: str, name: str, directory: Path, arch: str = "gfx942") -> Path:
    """Assembles AMDGPU assembly and links it to a code object; its path."""
    source, obj, out = (directory / f"{name}.{kind}" for kind in ("s", "o", "hsaco"))
    source.write_text(text)
    zig("clang", "-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", "-c", str(source), "-o", str(obj))
    link_device(obj, out)
    return out


@functools.cache
def compile_device(source: Path, level: str, directory: Path, arch: str = "gfx942") -> Path:
    """The code object of `source` at optimisation `level` ("-O0", "-O3")."""
    stem = directory / f"{source.stem}_{arch}{level}"
    assembly, obj, out = (stem.with_suffix(kind) for kind in (".s", ".o", ".hsaco"))
    zig("clang", *_device_flags(arch), level, "-S", str(source), "-o", str(assembly))
    zig("clang", "-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", "-c", str(assembly), "-o", str(obj))
    link_device(obj, out)
    return out


@functools.cache
def compile_host(source: Path, directory: Path) -> Path:
    """A shared library with run_KERNEL for every kernel of `source` (see host_grid.h)."""
    entry = directory / f"{source.stem}_host.cpp"
    lines = [f'#include "{source}"', *(f"HOST_KERNEL({name})" for name in kernel_names(source))]
    entry.write_text("\n".join(lines) + "\n")
    obj, out = entry.with_suffix(".o"), entry.with_suffix(".so")
    # AVX2 and FMA so that a fused multiply-add is one; the simulator's own speed needs them as well.
    flags = ["-x", "c++", "-std=c++20", "-O1", "-march=x86-64-v3", _CONTRACT, "-fPIC", "-Wno-psabi"]
    zig("clang", *flags, f"-I{KERNELS}", "-c", str(entry), "-o", str(obj))
    zig("ld.lld", "-shared", str(obj), "-o", str(out))
    return out


def jobs() -> int:
    return min(4, os.cpu_count() or 1)
