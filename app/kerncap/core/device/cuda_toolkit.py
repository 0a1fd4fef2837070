"""Where CUDA's tools and libraries are: nvcc, ncu, libcupti; from a toolkit or from Python's packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_SECONDS = 30.0


def toolkits() -> Iterator[Path]:
    """Folders of CUDA toolkits: CUDA_HOME, CUDA_PATH, /usr/local/cuda, its versions (newest first), and those
    in this Python's packages.
    """
    seen = set()
    named = [Path(v) for name in ("CUDA_HOME", "CUDA_PATH") if (v := os.environ.get(name))]
    versions = sorted(Path("/usr/local").glob("cuda-*"), key=_version_of_name, reverse=True)
    packages = [
        place for p in sys.path if p for place in sorted(Path(p).glob("nvidia/cu[0-9]*"), reverse=True)
    ]
    for folder in [*named, Path("/usr/local/cuda"), *versions, Path("/opt/cuda"), *packages]:
        real = os.path.realpath(folder)
        if real not in seen and os.path.isdir(real):
            seen.add(real)
            yield folder


def _version_of_name(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", path.name))


def find_tool(name: str) -> str | None:
    """A program of CUDA's: from PATH, else from a toolkit; ncu also from Nsight Compute's own folder."""
    found = shutil.which(name)
    if found:
        return found
    places = [toolkit / "bin" / name for toolkit in toolkits()]
    if name == "ncu":
        for root in (*toolkits(), Path("/opt/nvidia/nsight-compute")):
            pattern = "*/ncu" if root.name == "nsight-compute" else "nsight-compute-*/ncu"
            places += sorted(root.glob(pattern), reverse=True)
    return next((str(p) for p in places if os.access(p, os.X_OK) and p.is_file()), None)


def nvcc() -> str | None:
    """nvcc: KERNCAP_NVCC, else as any tool."""
    return os.environ.get("KERNCAP_NVCC") or find_tool("nvcc")


def find_cupti() -> str | None:
    """libcupti: KERNCAP_CUPTI, else in a toolkit, else in this Python's packages."""
    named = os.environ.get("KERNCAP_CUPTI")
    if named:
        return named
    folders = [
        toolkit / place
        for toolkit in toolkits()
        for place in ("extras/CUPTI/lib64", "lib64", "lib", "targets/x86_64-linux/lib")
    ]
    folders += [place for p in sys.path if p for place in Path(p).glob("nvidia/cuda_cupti/lib")]
    for folder in folders:
        found = sorted(folder.glob("libcupti.so*"), reverse=True)
        if found:
            return str(found[0])
    return None


def version_of(tool: str) -> str:
    """What `TOOL --version` says of its version; empty where it does not."""
    try:
        done = subprocess.run(
            [tool, "--version"], capture_output=True, text=True, timeout=_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    found = re.findall(r"(?:release|[Vv]ersion) ([\d.]+)", done.stdout)
    return found[-1] if found else ""


def counters_allowed(proc: Path = Path("/proc/driver/nvidia/params")) -> bool | None:
    """Whether this user may read hardware counters, by the driver's parameters; None where they are not told.

    NVIDIA, "ERR_NVGPUCTRPERM": root may; others where NVreg_RestrictProfilingToAdminUsers is 0.
    """
    if os.geteuid() == 0:
        return True
    try:
        text = proc.read_text()
    except OSError:
        return None
    found = re.search(r"RmProfilingAdminOnly:\s*(\d)", text)
    return None if found is None else found[1] == "0"
