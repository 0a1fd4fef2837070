"""Devices by one name everywhere, and what a program needs in its environment to be watched on one.

`rocm[:N]`, `cuda[:N]`, `sim:ARCH` (`sim:ARCHxN` for N of them), or `auto`: real ones first, then the
simulator.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kerncap.core.device.cuda_driver import driver
from kerncap.core.device.memory_files import check_setting
from kerncap.core.device.sim_settings import check_settings
from kerncap.core.errors import DeviceError
from kerncap.core.native import (
    INTERPOSER_CUDA,
    INTERPOSER_HSA,
    SIM_HIP,
    SIM_RUNTIME,
    find_native,
    native_dir,
    native_path,
)

SIM_ARCHES = ("gfx942", "gfx90a", "gfx1100")
SIM_READY = ("gfx942", "gfx90a")
DEFAULT_SIM = "gfx942"
MAX_SIM_DEVICES = 16

_KFD = Path("/dev/kfd")
_KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
_SIM = re.compile(r"sim:(gfx[0-9a-z]+?)(?:x([0-9]+))?\Z")
_REAL = re.compile(r"(rocm|cuda)(?::([0-9]+))?\Z")


@dataclass(frozen=True, slots=True)
class Device:
    """One device, or one family of them."""

    kind: str  # "rocm", "cuda" or "sim"
    arch: str | None = None  # "gfx942", "sm_90"; None where only the running program can tell
    index: int | None = None  # of a real GPU; None: all of them
    count: int = 1  # how many are simulated

    @property
    def name(self) -> str:
        """As `--device` takes it."""
        if self.kind == "sim":
            return f"sim:{self.arch}" + (f"x{self.count}" if self.count > 1 else "")
        return self.kind if self.index is None else f"{self.kind}:{self.index}"

    @property
    def simulated(self) -> bool:
        """Whether its clock counts simulated cycles."""
        return self.kind == "sim"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Found:
    """What `list_devices` says of one name: usable, or the reason why it is not."""

    device: Device
    usable: bool
    detail: str


def _arch_of_version(version: int) -> str:
    # KFD's gfx_target_version is major*10000 + minor*100 + stepping; the stepping is a hex digit in the name.
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def rocm_gpus() -> list[str]:
    """Architectures of the AMD GPUs that the kernel driver shows, in its order."""
    gpus = []
    try:
        nodes = sorted(_KFD_NODES.iterdir(), key=lambda node: int(node.name) if node.name.isdigit() else 0)
    except OSError:
        return []
    for node in nodes:
        try:
            lines = (node / "properties").read_text().splitlines()
            properties = dict(line.split(maxsplit=1) for line in lines if " " in line)
            if int(properties.get("simd_count", "0")) > 0:
                gpus.append(_arch_of_version(int(properties.get("gfx_target_version", "0"))))
        except (OSError, ValueError):
            continue
    return gpus


def _rocm_problem(index: int | None) -> str | None:
    if not _KFD.exists():
        return "there is no /dev/kfd: no AMD GPU, or its driver (amdgpu) is not loaded"
    if not os.access(_KFD, os.R_OK | os.W_OK):
        return (
            "/dev/kfd may not be opened by this user: join the groups `render` and `video`, then log in again"
        )
    gpus = rocm_gpus()
    if not gpus:
        return "/dev/kfd is there, but the driver shows no GPU"
    if index is not None and index >= len(gpus):
        return f"there are {len(gpus)} AMD GPUs, numbered from 0"
    if find_native(INTERPOSER_HSA) is None:
        return f"{INTERPOSER_HSA} is not built"
    return None


def _cuda_problem(index: int | None) -> str | None:
    found = driver()
    if found.problem is not None:
        return found.problem
    if index is not None and index >= len(found.gpus):
        return f"there are {len(found.gpus)} NVIDIA GPUs, numbered from 0"
    if find_native(INTERPOSER_CUDA) is None:
        return f"{INTERPOSER_CUDA} is not built"
    return None


def real_arches(kind: str) -> list[str]:
    """Architectures of the real GPUs of a kind ("rocm" or "cuda"), in their order."""
    return [gpu.arch for gpu in driver().gpus] if kind == "cuda" else rocm_gpus()


def _problem(device: Device) -> str | None:
    if device.kind == "sim":
        return _sim_problem(device.arch or "")
    return (_cuda_problem if device.kind == "cuda" else _rocm_problem)(device.index)


def _sim_problem(arch: str) -> str | None:
    if arch not in SIM_READY:
        return f"{arch} cannot be simulated yet; {', '.join(SIM_READY)} can"
    missing = [name for name in (SIM_RUNTIME, INTERPOSER_HSA) if find_native(name) is None]
    if missing:
        return f"{' and '.join(missing)} not built (looked in {native_dir()})"
    return None


def list_devices() -> list[Found]:
    """Every kind of device with whether it can be used here, real ones first."""
    found = []
    for index, arch in enumerate(rocm_gpus()):
        problem = _rocm_problem(index)
        found.append(Found(Device("rocm", arch, index), problem is None, problem or arch))
    if not found:
        problem = _rocm_problem(None)
        found.append(Found(Device("rocm"), problem is None, problem or "usable"))
    gpus = driver().gpus
    for gpu in gpus:
        problem = _cuda_problem(gpu.index)
        detail = problem or f"{gpu.arch}, {gpu.name}"
        found.append(Found(Device("cuda", gpu.arch, gpu.index), problem is None, detail))
    if not gpus:
        found.append(Found(Device("cuda"), False, _cuda_problem(None) or "no GPU"))
    for arch in SIM_ARCHES:
        problem = _sim_problem(arch)
        found.append(Found(Device("sim", arch), problem is None, problem or "simulated, on the CPU"))
    return found


def _known() -> str:
    lines = [f"  {f.device.name:<12} {'' if f.usable else 'not usable: '}{f.detail}" for f in list_devices()]
    return "\n".join(lines)


def parse_device(text: str, variable: str | None = None) -> Device:
    """A device from its name, which the environment variable `variable` may have given, whether or not it is
    here. Raises DeviceError for a name that is none.
    """
    named = f"device {text!r}" + (f" ({variable})" if variable else "")
    sim = _SIM.match(text)
    if sim and sim[1] in SIM_ARCHES:
        count = int(sim[2] or 1)
        if not 1 <= count <= MAX_SIM_DEVICES:
            raise DeviceError(f"{named}: 1 to {MAX_SIM_DEVICES} devices can be simulated")
        return Device("sim", sim[1], None, count)
    real = _REAL.match(text)
    if real:
        return Device(real[1], None, None if real[2] is None else int(real[2]))
    raise DeviceError(f"{named} is not known. Known here:\n{_known()}")


def named_device(text: str | None) -> Device | None:
    """The device that is named: by `text`, else by KERNCAP_DEVICE. None for `auto`, or where neither names
    one. Raises DeviceError for a name that is none.
    """
    told = os.environ.get("KERNCAP_DEVICE") if text is None else None
    wanted = told or "auto" if text is None else text
    return None if wanted == "auto" else parse_device(wanted, "KERNCAP_DEVICE" if told else None)


def resolve_device(text: str | None = None) -> Device:
    """The device to use: `text`, else KERNCAP_DEVICE, else `auto`. Raises DeviceError where it cannot be
    used.
    """
    device = named_device(text)
    if device is None:
        for found in list_devices():
            if found.usable:
                # A program may use every real GPU; only a name with a number narrows that.
                one = found.device
                return one if one.kind == "sim" else Device(one.kind, one.arch)
        raise DeviceError(f"no device can be used here:\n{_known()}")
    problem = _problem(device)
    if problem is None and device.kind != "sim":
        device = Device(device.kind, real_arches(device.kind)[device.index or 0], device.index)
    if problem:
        raise DeviceError(f"device {device.name} cannot be used: {problem}. Known here:\n{_known()}")
    return device


def _joined(*parts: str | os.PathLike[str] | None) -> str:
    return ":".join(text for part in parts if part and (text := os.fspath(part)))


def _linkable(directory: Path, session: Path | None) -> Path:
    """`directory`, or a link to it in the session where its own path cannot stand in LD_PRELOAD."""
    if not any(char in str(directory) for char in ": \t\n;"):
        return directory
    if session is None or any(char in str(session) for char in ": \t\n;"):
        raise DeviceError(
            f"{directory} holds a character that LD_PRELOAD takes for a separator; install kerncap "
            "where the path has none"
        )
    link = session / "native"
    if not link.is_symlink():
        link.symlink_to(directory)
    return link


def _wants_own_hip(environment: Mapping[str, str]) -> bool:
    """Whether kerncap's small HIP is to be found: not where the machine has one, which works on the simulated
    runtime as well. KERNCAP_SIM_HIP says "own" or "system" where that guess is wrong.

    LD_LIBRARY_PATH goes before a program's own RUNPATH and the system's cache, so that being last in it would
    still hide the machine's.
    """
    choice = environment.get("KERNCAP_SIM_HIP", "auto")
    if choice in ("own", "system"):  # else auto (sim_settings.py)
        return choice == "own"
    soname = Path(SIM_HIP).name
    rocm = environment.get("ROCM_PATH", "/opt/rocm")
    places = [Path(rocm, "lib"), *(Path(p) for p in environment.get("LD_LIBRARY_PATH", "").split(":") if p)]
    if any((place / soname).exists() for place in places):
        return False
    try:
        cache = Path("/etc/ld.so.cache").read_bytes()
    except OSError:
        return True
    return soname.encode() + b"\0" not in cache


def child_environment(
    device: Device, session: Path | None = None, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment in which a program is watched on `device`, as changes to `base` (default: this
    process's).

    Only variables that differ from `base` are returned. What the user has in LD_PRELOAD and LD_LIBRARY_PATH
    stays. Raises DeviceError where a native file is not built.
    """
    old = os.environ if base is None else base
    check_setting(old)
    if device.kind == "cuda":
        return _cuda_environment(device, session, old)
    native_path(INTERPOSER_HSA)
    native = _linkable(native_dir(), session)
    changes: dict[str, str] = {}
    # With a path that holds no "/", ld.so would search for it: the interposer is named in full.
    changes["LD_PRELOAD"] = _joined(old.get("LD_PRELOAD"), native / INTERPOSER_HSA)
    if device.kind == "sim":
        check_settings(old)
        runtime = native_path(SIM_RUNTIME)
        changes["KERNCAP_SIM"] = f"{device.arch}" + (f"x{device.count}" if device.count > 1 else "")
        hip = native / SIM_HIP
        changes["LD_LIBRARY_PATH"] = _joined(
            (native / SIM_RUNTIME).parent if runtime.exists() else None,
            old.get("LD_LIBRARY_PATH"),
            hip.parent if hip.exists() and _wants_own_hip(old) else None,
        )
    elif device.kind == "rocm" and device.index is not None:
        changes["ROCR_VISIBLE_DEVICES"] = str(device.index)
    if session is not None:
        changes["KERNCAP_SESSION"] = str(session)
    return changes


def _cuda_environment(device: Device, session: Path | None, old: Mapping[str, str]) -> dict[str, str]:
    """The driver itself loads the interposer, into every process that starts CUDA."""
    changes = {"CUDA_INJECTION64_PATH": str(native_path(INTERPOSER_CUDA))}
    if device.index is not None:
        # The number counts the GPUs that this process would see.
        seen = [word for word in old.get("CUDA_VISIBLE_DEVICES", "").split(",") if word]
        changes["CUDA_VISIBLE_DEVICES"] = (
            seen[device.index] if device.index < len(seen) else str(device.index)
        )
    if session is not None:
        changes["KERNCAP_SESSION"] = str(session)
    return changes


def full_environment(
    device: Device, session: Path | None = None, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """All of `base` with `child_environment` applied, and without what belongs to another device or
    session.
    """
    environment = dict(os.environ if base is None else base)
    for name in ("KERNCAP_SIM", "KERNCAP_SESSION"):
        environment.pop(name, None)
    if INTERPOSER_CUDA in environment.get("CUDA_INJECTION64_PATH", ""):
        environment.pop("CUDA_INJECTION64_PATH")
    environment.update(child_environment(device, session, base))
    return environment
