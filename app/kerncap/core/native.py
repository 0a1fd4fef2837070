"""Where kerncap's native programs and libraries are."""

from __future__ import annotations

import os
from pathlib import Path

from kerncap.core.errors import DeviceError

INTERPOSER_HSA = "libkerncap_hsa.so"
INTERPOSER_CUDA = "libkerncap_cuda.so"
REPLAYER = "kerncap-replay"
REPLAYER_CUDA = "kerncap-replay-cuda"
SIM_RUNTIME = "sim/libhsa-runtime64.so.1"
SIM_HIP = "sim-hip/libamdhip64.so.6"
DISASSEMBLER = "kerncap-sim-disasm"


def native_dir() -> Path:
    """The folder of native files: `KERNCAP_NATIVE_DIR` if set, else `_native/` beside the package."""
    override = os.environ.get("KERNCAP_NATIVE_DIR")
    if override:
        return Path(override).absolute()
    return Path(__file__).resolve().parent.parent / "_native"


def find_native(name: str) -> Path | None:
    """The path of a native file, or None where it is not built."""
    path = native_dir() / name
    return path if path.exists() else None


def native_path(name: str) -> Path:
    """The absolute path of a native file such as "kerncap-replay".

    Raises DeviceError, saying where it was looked for and how to build it, when it is not there.
    """
    path = native_dir() / name
    if path.exists():
        return path
    where = "KERNCAP_NATIVE_DIR" if os.environ.get("KERNCAP_NATIVE_DIR") else "the installed package"
    raise DeviceError(
        f"{name} is not in {native_dir()} ({where}). Build it: `pip install .` in kerncap's source tree, or "
        f"`cmake -S native -B build && cmake --build build && cmake --install build --prefix DIR` and "
        f"KERNCAP_NATIVE_DIR=DIR/kerncap/_native.",
        missing=name,
    )
