"""Which GPU runtimes a program has loaded, and why nothing could be loaded into it: for messages when no
dispatch was seen.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from kerncap.core.device.cuda_driver import driver

_INTERPOSER = "libkerncap_"
NOTES = "loaded"  # in a session: a path a line
_ENOUGH_LOOKS = 4  # over more than a tenth of a second
_RUNTIME = re.compile(
    r"/(libamdhip64|libhsa-runtime64|libcuda|libcudart|libOpenCL|libze_loader|libvulkan|libhiprtc|libtorch_hip|"
    r"libtorch_cuda|librocblas|libhipblaslt|libkerncap_hsa|libkerncap_cuda)[^/]*\.so[^/]*\Z"
)
_AMD = re.compile(r"libamdhip64|libhsa-runtime64|libtorch_hip")
_CUDA = re.compile(r"(libcuda|libcudart|libtorch_cuda|libcublas|libcudnn|libnvrtc)(Lt)?[-.\w]*\.so")
_SYSTEM = ("/usr/lib/", "/lib/", "/dev/", "/memfd:", "/SYSV")
_CUDA_KERNELS = ".nv_fatbin"  # the section that nvcc puts them into


class RuntimeWatch:
    """Looks, more and more rarely, at what the processes of a workload have mapped, and reads what those with
    kerncap's library in them noted of themselves (native/interpose/common/loaded.h).

    `session` is where they did.
    """

    def __init__(self, session: Path | None = None) -> None:
        self.session = session
        self.libraries: set[str] = set()
        self.files: set[str] = set()  # executables, and libraries that are not the system's
        self._next = 0.0
        self._interval = 0.02
        self.looks = 0  # that found a process

    def look(self, pids: Callable[[], Iterable[int]]) -> None:
        """Adds the runtimes that the processes have mapped; costs nothing until it is time to look again."""
        if time.monotonic() < self._next:
            return
        found = list(pids())
        for pid in found:
            self._add(_mapped(pid))
        self.looks += bool(found)
        self._next = time.monotonic() + self._interval
        self._interval = min(self._interval * 2, 2.0)

    def read_notes(self) -> bool:
        """Adds what processes noted, also those that were too short to be looked at; whether any did."""
        if self.session is None:
            return False
        try:
            text = (self.session / NOTES).read_text(errors="surrogateescape")
        except OSError:
            return False
        self._add({_kept(line) for line in text.splitlines() if line})
        return bool(text)

    def _add(self, mapped: set[str]) -> None:
        self.libraries |= {path for path in mapped if _RUNTIME.search(path)}
        self.files |= {path for path in mapped if not path.startswith(_SYSTEM)}

    def runtimes(self) -> list[str]:
        """Names of the runtimes seen, kerncap's own library left out."""
        self.read_notes()
        return sorted({Path(path).name for path in self.libraries if _INTERPOSER not in path})

    @property
    def interposed(self) -> bool:
        """Whether kerncap's own library was seen in any process."""
        return any(_INTERPOSER in path for path in self.libraries)


def _mapped(pid: int) -> set[str]:
    """Paths of the files that a process has mapped now."""
    try:
        text = Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return set()
    return {_kept(line[line.index("/") :]) for line in text.splitlines() if "/" in line}


def _kept(path: str) -> str:
    """The path of a mapped file, whether it still is there or not."""
    return path.removesuffix(" (deleted)")


def preload_obstacle(program: str) -> str | None:
    """Why LD_PRELOAD cannot work for this program, or None: static, set-user-id, or of another machine."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    path = program if "/" in program else shutil.which(program)
    if not path:
        return None
    try:
        info = os.stat(path)
        if info.st_mode & (stat.S_ISUID | stat.S_ISGID):
            return f"{program} is set-user-id or set-group-id: nothing can be preloaded into it"
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                return None  # a script: its interpreter loads what it needs
            file.seek(0)
            elf = ELFFile(file)
            if not any(segment["p_type"] == "PT_INTERP" for segment in elf.iter_segments()):
                return f"{program} is statically linked: nothing can be preloaded into it"
            if elf.elfclass != 64:
                return f"{program} is a 32-bit program"
    except (OSError, ELFError):
        return None
    return None


def _needed(path: str) -> tuple[list[str], bool]:
    """The libraries that an ELF file needs, and whether it holds CUDA kernels; nothing of other files."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.dynamic import DynamicSection
    from elftools.elf.elffile import ELFFile

    try:
        with open(path, "rb") as file:
            elf = ELFFile(file)
            kernels = elf.get_section_by_name(_CUDA_KERNELS) is not None
            dynamic = elf.get_section_by_name(".dynamic")
            if not isinstance(dynamic, DynamicSection):
                return [], kernels
            names = {Path(str(vars(tag)["needed"])).name for tag in dynamic.iter_tags("DT_NEEDED")}
    except (OSError, ELFError):
        return [], False
    return sorted(names), kernels


def linked_runtimes(program: str) -> list[str]:
    """Names of the GPU runtimes that the program's file needs to start, itself; none where it is a script."""
    path = program if "/" in program else shutil.which(program)
    names, _ = _needed(path or "")
    return [name for name in names if _RUNTIME.search(f"/{name}") and _INTERPOSER not in name]


def cuda_sign(program: str, watch: RuntimeWatch) -> str | None:
    """What tells that the program is one for NVIDIA GPUs: its file, or one that its processes had mapped.

    None where nothing does, or where it has an AMD runtime beside it.
    """
    own = program if "/" in program else shutil.which(program) or program
    runtimes = {*watch.runtimes(), *linked_runtimes(program)}
    if any(_AMD.match(name) for name in runtimes):
        return None
    for path in (own, *sorted(watch.files)):
        needed, kernels = _needed(path)
        shown = program if path == own else path
        if kernels:
            return f"{shown} holds CUDA kernels"
        linked = [name for name in needed if _CUDA.match(name)]
        if linked:
            return f"{shown} is linked with {', '.join(linked)}"
    loaded = sorted(name for name in runtimes if _CUDA.match(name))
    return f"it loaded {', '.join(loaded)}" if loaded else None


def _way_to_cuda() -> str:
    """How a CUDA program is watched, or why it cannot be here."""
    problem = driver().problem
    if problem is None:
        return "--device cuda watches it."
    return f"--device cuda watches it, which cannot be used here: {problem} (see `kerncap doctor`)."


def no_dispatch_reason(program: str, watch: RuntimeWatch, kind: str = "rocm") -> str:
    """A sentence on why no dispatch was seen by a program that is watched on that kind of device."""
    cuda = kind == "cuda"
    sign = None if cuda else cuda_sign(program, watch)
    if sign:
        watched = "a simulated AMD GPU" if kind == "sim" else "AMD GPUs"
        return f"It is a CUDA program ({sign}), and {watched} cannot run its kernels. {_way_to_cuda()}"
    obstacle = None if cuda else preload_obstacle(program)
    if obstacle:
        return obstacle + "."
    runtimes = watch.runtimes()
    if not runtimes:
        linked = linked_runtimes(program)
        if linked:
            return f"It is linked with {', '.join(linked)}, and dispatched no kernel."
        # Seen, not loaded: where none noted what it had, a program is looked at now and then.
        text = "No GPU runtime (libamdhip64, libhsa-runtime64, libcuda) was seen in it"
        return (
            f"{text}."
            if watch.looks >= _ENOUGH_LOOKS or watch.read_notes()
            else f"{text}, which ended before there was much to see."
        )
    text = f"It loaded {', '.join(runtimes)}, and dispatched no kernel."
    if not watch.interposed and not cuda:
        text += " kerncap's library was not in it: something cleared LD_PRELOAD on the way."
    elif not watch.interposed and any(name.startswith("libcuda.so") for name in runtimes):
        text += " kerncap's library was not in it: something cleared CUDA_INJECTION64_PATH on the way."
    if not cuda and any(name.startswith("libcuda") for name in runtimes):
        text += f" If it is its CUDA part that is meant: {_way_to_cuda()}"
    if cuda and any(name.startswith("libhsa-runtime64") for name in runtimes):
        text += " Programs for AMD GPUs are not watched by this device."
    return text
