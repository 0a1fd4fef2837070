"""The compilers that can rebuild a kernel here, and running them with a limit.

On a machine with ROCm the program's own compiler is used. Elsewhere clang comes from the `ziglang` package:
it has the AMDGPU target and LLD, but its driver cannot start its own linker, so that an object is made first
and linked by hand.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from kerncap.core.build.compile_command import is_compiler, split_compiler
from kerncap.core.errors import (
    DeviceError,
    KerncapError,
    ShortageError,
    WorkloadError,
    no_room_in,
    shortage_in,
)

DEFAULT_TIMEOUT_S = 600.0
_WITHOUT_ROCM = ("-nogpuinc", "-nogpulib")  # neither HIP headers nor device libraries are here


class CompileError(KerncapError):
    """The compiler or the linker refused the source. `output` is what it said, with paths as the reader sees
    them.
    """

    exit_code = 2

    def __init__(self, message: str, output: str = "", **details: object) -> None:
        super().__init__(message, output=output, **details)
        self.output = output


@dataclass(frozen=True)
class Compiler:
    """A compiler driver for HIP device code.

    `words` start it; `kind` is "zig" (needs its linker started by hand), "hipcc" or "clang"; `extra` are
    options that it needs on this machine; `note` says in a sentence why it is not the program's own one, if
    it is not.
    """

    words: tuple[str, ...]
    kind: str
    extra: tuple[str, ...] = ()
    note: str = ""

    @property
    def identity(self) -> str:
        """Changes when the compiler is replaced: for caches."""
        try:
            path = shutil.which(self.words[0]) or self.words[0]
            stat = os.stat(path)
            return f"{'|'.join(self.words)}:{stat.st_size}:{stat.st_mtime_ns}"
        except OSError:
            return "|".join(self.words)


@dataclass(frozen=True)
class Finished:
    """A tool that ran to its end: exit code and what it wrote to both streams."""

    code: int
    output: str


def run_tool(
    words: Sequence[str],
    *,
    directory: Path | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    cancel: threading.Event | None = None,
) -> Finished:
    """Run a tool as an argument list. Its whole process group ends with it, at the limit, and when `cancel`
    is set.

    Raises DeviceError where it cannot be started, ShortageError where it lacks memory or open files,
    WorkloadError where the disk has no room for what it makes, CompileError where the limit is reached or it
    was cancelled.
    """
    try:
        process = subprocess.Popen(
            list(words),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # the latter for a word that no program can be given
        reason = getattr(error, "strerror", None) or error
        text = f"{words[0][:200]} cannot be started: {reason}"
        if short := shortage_in(str(reason)):
            raise ShortageError(f"{text}: {short}") from error
        raise DeviceError(f"{text}.") from error
    try:
        output = _collect(process, timeout_s, cancel)
    except subprocess.TimeoutExpired:
        _end(process)
        raise CompileError(
            f"{Path(words[0]).name} did not finish within {timeout_s:g} s and was ended."
        ) from None
    except BaseException:
        _end(process)
        raise
    finished = Finished(process.returncode, output.decode("utf-8", "replace"))
    if finished.code and (no_room_in(finished.output) or finished.code in _NO_ROOM):
        said = finished.output.rstrip() or _NO_ROOM.get(finished.code, "")
        raise WorkloadError(f"{Path(words[0]).name} found no room for what it makes: {said}")
    if finished.code and (short := shortage_in(finished.output, thrown=False)):
        raise ShortageError(f"{Path(words[0]).name}: {finished.output.rstrip()}\n{short}")
    return finished


# What ends a tool without a word. A linker that maps its output gets SIGBUS where a page of it finds no room.
_NO_ROOM = {
    -signal.SIGBUS: "it was ended by SIGBUS, as where the disk is full",
    -signal.SIGXFSZ: "it was ended by SIGXFSZ, at the limit on the size of files (ulimit -f)",
}


_LOOK_S = 3600.0  # poll(2) takes less than 25 days at once


def _collect(process: subprocess.Popen[bytes], timeout_s: float, cancel: threading.Event | None) -> bytes:
    deadline = time.monotonic() + timeout_s
    while True:
        left = deadline - time.monotonic()
        try:
            return process.communicate(timeout=min(left, _LOOK_S if cancel is None else 0.05))[0]
        except subprocess.TimeoutExpired:
            if time.monotonic() >= deadline:
                raise
            if cancel is not None and cancel.is_set():
                raise CompileError("The compile was given up.") from None


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=10)
    if process.stdout:
        process.stdout.close()


@lru_cache(maxsize=1)
def zig() -> str | None:
    """The `zig` program of the ziglang package, or of the PATH."""
    spec = importlib.util.find_spec("ziglang")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        candidate = Path(folder) / "zig"
        if candidate.is_file():
            return str(candidate)
    return shutil.which("zig")


def rocm_clang() -> str | None:
    """amdclang++ or ROCm's clang++, from ROCM_PATH, HIP_PATH, the PATH or /opt/rocm."""
    roots = [os.environ.get("ROCM_PATH"), os.environ.get("HIP_PATH"), "/opt/rocm"]
    for root in filter(None, roots):
        for relative in ("bin/amdclang++", "llvm/bin/clang++", "lib/llvm/bin/clang++"):
            if os.access(Path(root) / relative, os.X_OK):
                return str(Path(root) / relative)
    return shutil.which("amdclang++")


def resolve_compiler(arguments: Sequence[str], directory: Path, named: bool = True) -> Compiler:
    """The compiler of a command where it is still there, else the nearest one of this machine. Not `named`:
    the command is a guess, and nobody misses its compiler.

    `KERNCAP_CLANG` names one to use in any case. Raises DeviceError where there is none.
    """
    override = os.environ.get("KERNCAP_CLANG")
    if override:
        if _executable(override, directory) is None:
            raise DeviceError(
                f"KERNCAP_CLANG names {override}, which is no program here.", missing="compiler"
            )
        chosen = _classify((override,), "")
        return chosen if rocm_clang() else replace(chosen, extra=_WITHOUT_ROCM)
    words, _ = split_compiler(arguments)
    found = _executable(words[0], directory)
    if found is None and len(words) > 1 and is_compiler(words[1]) and not _is_zig(words):
        # The project's own wrapper is gone; the compiler behind it may not be.
        words = words[1:]
        found = _executable(words[0], directory)
    if found is not None:
        return _classify((found, *words[1:]), "")
    own = zig() if _is_zig(words) else None
    if own is not None:  # the same compiler, from the ziglang package
        return _classify((own, *_after_zig(words)), "")
    return fallback_compiler(f"{words[0]} is not on this machine" if named else "")


def fallback_compiler(why: str = "") -> Compiler:
    """ROCm's clang, else zig's. Raises DeviceError saying what to install."""
    clang = rocm_clang()
    if clang:
        return Compiler((clang,), "clang", note=f"{why}; {clang} is used." if why else "")
    program = zig()
    if program is None:
        raise DeviceError(
            (f"{why}, and there is no other" if why else "There is no")
            + " compiler for AMD GPUs here. Install ROCm, or `pip install 'kerncap[sim]'` for "
            "zig's clang, or name a clang with the AMDGPU target in KERNCAP_CLANG.",
            missing="compiler",
        )
    note = f"{why}; zig's clang is used, without ROCm's headers and device libraries." if why else ""
    return Compiler((program, "clang"), "zig", _WITHOUT_ROCM, note)


def _is_zig(words: Sequence[str]) -> bool:
    return Path(words[0]).name in ("zig", "python-zig") or list(words[1:3]) == ["-m", "ziglang"]


def _after_zig(words: Sequence[str]) -> Sequence[str]:
    """What follows `zig` or `python -m ziglang`."""
    return words[3:] if list(words[1:3]) == ["-m", "ziglang"] else words[1:]


def _executable(word: str, directory: Path) -> str | None:
    if os.sep in word:
        path = os.path.normpath(os.path.join(directory, word))
        return path if os.access(path, os.X_OK) and os.path.isfile(path) else None
    return shutil.which(word)


def _classify(words: tuple[str, ...], note: str) -> Compiler:
    if _is_zig(words):
        if Path(words[0]).name != "zig":  # python -m ziglang: the interpreter may be gone or lack the package
            program = zig()
            if program:
                words = (program, *_after_zig(words))
        # `zig cc` and `zig c++` are front ends with options of their own; `zig clang` is clang itself.
        driver = words[1] if len(words) > 1 else "clang"
        if driver in ("cc", "c++"):
            return Compiler(
                (words[0], "clang", *(("--driver-mode=g++",) if driver == "c++" else ())), "zig", note=note
            )
        return Compiler(words if len(words) > 1 else (words[0], "clang"), "zig", note=note)
    name = Path(words[-1] if len(words) > 1 and is_compiler(words[-1]) else words[0]).name
    return Compiler(words, "hipcc" if name.startswith("hipcc") else "clang", note=note)


def language_arguments(
    compiler: Compiler, original: Sequence[str], arguments: Sequence[str], source: int
) -> list[str]:
    """`arguments` with what hipcc would have added, for a command of hipcc's that another clang runs.

    hipcc compiles any C++ or CUDA suffix as HIP, and optimises with -O3 where no -O is given.
    """
    words, _ = split_compiler(original)
    if compiler.kind == "hipcc" or not Path(words[-1]).name.startswith("hipcc"):
        return list(arguments)
    result = list(arguments)
    if not any(a == "-x" or re.match(r"-x(hip|c\+\+|cuda)$", a) for a in arguments):
        result[source:source] = ["-x", "hip"]
    if not any(re.match(r"-O(\d|s|z|fast|g)?$", a) for a in arguments):
        result.insert(0, "-O3")
    return result


def linker_words(compiler: Compiler) -> list[str]:
    """The LLD that belongs to a compiler. Raises DeviceError where there is none."""
    if compiler.kind == "zig":
        return [compiler.words[0], "ld.lld"]
    beside = Path(os.path.realpath(shutil.which(compiler.words[-1]) or compiler.words[-1])).parent
    for candidate in (beside / "ld.lld", beside / "lld", beside.parent / "llvm/bin/ld.lld"):
        if os.access(candidate, os.X_OK):
            return [str(candidate), *(["-flavor", "gnu"] if candidate.name == "lld" else [])]
    found = shutil.which("ld.lld")
    if found:
        return [found]
    program = zig()
    if program:
        return [program, "ld.lld"]
    raise DeviceError(f"No ld.lld beside {compiler.words[-1]} or in the PATH: the kernel cannot be linked.")
