"""What ROCm a machine has: its version, the runtimes that programs find, who may open the GPUs, and how
kerncap gets into a program there.
"""

from __future__ import annotations

import grp
import mmap
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# ROCr 5.4 and later look for this symbol in the libraries that are loaded, and call their OnLoad.
_TOOL_SYMBOL = b"HSA_AMD_TOOL_PRIORITY"
# ROCr 6.1 and later, where it was built with rocprofiler-register.
_REGISTER_SYMBOL = b"rocprofiler_register_library_api_table"
# Each of them makes rocprofiler-register hand the API table to a profiler.
PROFILER_VARIABLES = (
    "ROCP_TOOL_LIBRARIES",
    "ROCPROFILER_REGISTER_LIBRARY",
    "ROCPROFILER_REGISTER_FORCE_LOAD",
)
_HSA = re.compile(r"libhsa-runtime64\.so\.[0-9]+\Z")
_HIP = re.compile(r"libamdhip64\.so\.[0-9]+\Z")
_VERSION = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Install:
    """One ROCm directory."""

    path: Path
    version: str | None  # "6.4.3"; None where the directory does not say


def _libraries(directory: Path, name: re.Pattern[str]) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if name.match(path.name))
    except OSError:
        return []


def installs(environment: Mapping[str, str], root: Path = Path("/")) -> list[Install]:
    """ROCm's directories: $ROCM_PATH, /opt/rocm, and versioned ones beside it; each real directory once."""
    named = environment.get("ROCM_PATH")
    places = [Path(named)] if named else []
    try:
        beside = sorted((root / "opt").glob("rocm-*"), reverse=True)
    except OSError:
        beside = []
    found: dict[Path, Install] = {}
    for place in [*places, root / "opt/rocm", *beside]:
        if not place.is_dir():
            continue
        version = None
        for name in ("version", "version-rocm", "version-dev"):
            try:
                text = (place / ".info" / name).read_text(errors="replace")
            except OSError:
                continue
            if match := _VERSION.match(text.strip()):
                version = match[0]
                break
        found.setdefault(place.resolve(), Install(place, version))
    return list(found.values())


def _library_places(environment: Mapping[str, str], root: Path) -> list[Path]:
    """Where a program finds its libraries, the first place first."""
    own = [Path(part) for part in environment.get("LD_LIBRARY_PATH", "").split(":") if part]
    system = [root / "usr/lib/x86_64-linux-gnu", root / "usr/lib64", root / "usr/lib", root / "lib64"]
    return [*own, *(install.path / "lib" for install in installs(environment, root)), *system]


def runtimes(environment: Mapping[str, str], root: Path = Path("/")) -> dict[str, list[Path]]:
    """The HSA and HIP runtimes ("hsa", "hip") of a machine, in the order in which programs look; each
    file once.
    """
    found: dict[str, dict[Path, Path]] = {"hsa": {}, "hip": {}}
    for place in _library_places(environment, root):
        for kind, name in (("hsa", _HSA), ("hip", _HIP)):
            for path in _libraries(place, name):
                found[kind].setdefault(path.resolve(), path)
    return {kind: list(paths.values()) for kind, paths in found.items()}


def _holds(path: Path, *needles: bytes) -> list[bool]:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return [data.find(needle) >= 0 for needle in needles]
    except (OSError, ValueError):
        return [False for _ in needles]


def registration(runtime: Path, environment: Mapping[str, str]) -> tuple[bool, str]:
    """Whether kerncap can get into programs on this HSA runtime, and how, or why not."""
    by_symbol, has_register = _holds(runtime, _TOOL_SYMBOL, _REGISTER_SYMBOL)
    off = environment.get("ROCPROFILER_REGISTER_ENABLED") == "0" or environment.get(
        "HSA_TOOLS_DISABLE_REGISTER", "0"
    ) not in ("", "0")
    active = [name for name in PROFILER_VARIABLES if environment.get(name)]
    if has_register and active and not off:
        return True, (
            f"through rocprofiler-register, beside the profiler that {' and '.join(active)} names: it "
            "is given the API table first, kerncap goes in front of it"
        )
    if by_symbol:
        return True, "as a preloaded tool of the runtime (HSA_AMD_TOOL_PRIORITY, OnLoad)"
    return (
        False,
        "not at all: it does not look for preloaded tools (older than ROCm 5.4, or not ROCr)",
    )


@dataclass(frozen=True, slots=True)
class Node:
    """A device file, and the group that may open it where this user may not."""

    path: Path
    may_open: bool
    group: str | None


def device_nodes(root: Path = Path("/")) -> list[Node]:
    """/dev/kfd and the render nodes, those that exist."""
    try:
        render = sorted((root / "dev/dri").glob("renderD*"))
    except OSError:
        render = []
    nodes = []
    for path in [root / "dev/kfd", *render]:
        try:
            gid = path.stat().st_gid
        except OSError:
            continue
        may_open = os.access(path, os.R_OK | os.W_OK)
        try:
            group: str | None = grp.getgrgid(gid).gr_name
        except KeyError:
            group = str(gid)
        nodes.append(Node(path, may_open, None if may_open else group))
    return nodes
