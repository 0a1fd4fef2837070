"""Builds the programs of tests/programs for the simulated GPU: the host part with the machine's C++ compiler,
the device part with clang from the `ziglang` package. Results are kept by content: each is built once.

    from support.build import build_program, simulator_environment
    program = build_program("in_place")
    subprocess.run([program.executable], env={**os.environ, **simulator_environment()}, timeout=60)
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kerncap.core.build.toolchain import zig
from kerncap.core.native import SIM_HIP, native_path

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"
_CACHE = Path(tempfile.gettempdir()) / f"kerncap-test-programs-{os.getuid()}"
_DEVICE = ["-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc", "-O3", "-g"]
_HOST = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror"]


@dataclass(frozen=True)
class Program:
    """A built program. `folder` holds it, its code objects and compile_commands.json; `source` its source."""

    name: str
    executable: Path
    folder: Path
    source: Path

    def code_object(self, name: str | None = None) -> Path:
        """A code object of the program, by its source's stem (default: the program's name)."""
        return self.folder / f"{name or self.name}.hsaco"


def hip_include() -> Path:
    """The folder of kerncap's HIP header."""
    return native_path(SIM_HIP).parent / "include"


def simulator_environment(arch: str = "gfx942", count: int = 1) -> dict[str, str]:
    """Variables with which a program finds the simulated runtime, and nothing of kerncap's own."""
    hip = native_path(SIM_HIP).parent
    paths = [str(hip.parent / "sim"), os.environ.get("LD_LIBRARY_PATH", ""), str(hip)]
    return {
        "KERNCAP_SIM": arch + (f"x{count}" if count > 1 else ""),
        "LD_LIBRARY_PATH": ":".join(filter(None, paths)),
    }


def _run(words: list[str], directory: Path) -> None:
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"


def zig_program() -> str:
    """The `zig` program; an AssertionError where it is not installed."""
    found = zig()
    assert found, "the tests need the ziglang package: pip install 'kerncap[sim]'"
    return found


def device_command(source: Path, output: Path, arch: str, *options: str) -> list[str]:
    """How a HIP file becomes an object for one target."""
    action = ["-S", "-Xclang", "-emit-obj", str(source), "-o", str(output)]
    return [
        zig_program(), "clang", *_DEVICE, f"--offload-arch={arch}", f"-I{hip_include()}", *options, *action
    ]  # fmt: skip


def link_command(obj: Path, output: Path) -> list[str]:
    """How an object becomes a code object that can be loaded."""
    return [zig_program(), "ld.lld", "-shared", "--no-undefined", str(obj), "-o", str(output)]


def compile_device(source: Path, output: Path, arch: str = "gfx942", *options: str) -> Path:
    """The linked code object of a HIP file."""
    obj = output.with_suffix(".o")
    _run(device_command(source, obj, arch, *options), source.parent)
    _run(link_command(obj, output), source.parent)
    return output


def build_single_source(source: Path, directory: Path, arch: str = "gfx942") -> Path:
    """The program of one HIP file that needs no header of the machine's: clang compiles both of its sides."""
    code_object = compile_device(source, directory / f"{source.stem}.hsaco", arch)
    obj, program = directory / f"{source.stem}_host.o", directory / source.stem
    words = [
        zig_program(),
        "clang",
        "-x",
        "hip",
        "--cuda-host-only",
        f"--offload-arch={arch}",
        "-nogpulib",
        "-nogpuinc",
    ]
    words += [
        "-O1",
        "-fPIC",
        f"-I{hip_include()}",
        "-Xclang",
        "-fcuda-include-gpubinary",
        "-Xclang",
        str(code_object),
    ]
    _run([*words, "-c", str(source), "-o", str(obj)], directory)
    library = [str(native_path(SIM_HIP)), "-Wl,--allow-shlib-undefined"]
    _run([*os.environ.get("CXX", "g++").split(), str(obj), *library, "-o", str(program)], directory)
    return program


def _content(paths: list[Path], *more: str) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    digest.update("\0".join(more).encode())
    return digest.hexdigest()[:20]


def build_program(name: str, arch: str = "gfx942", sources: Path = PROGRAMS) -> Program:
    """The program NAME of `sources`: NAME.cpp, and a code object for each of NAME.hip and NAME_*.hip."""
    host = sources / f"{name}.cpp"
    units = [sources / f"{name}.hip", *sorted(sources.glob(f"{name}_*.hip"))]
    headers = sorted([*PROGRAMS.glob("*.h"), *sources.glob("*.h"), *hip_include().rglob("*.h")])
    key = _content([host, *units, *headers, Path(__file__)], arch, str(native_path(SIM_HIP)), str(sources))
    folder = _CACHE / key / name
    program = Program(name, folder / name, folder, sources)
    if program.executable.exists():
        return program
    _CACHE.mkdir(mode=0o700, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=_CACHE))
    try:
        _build(program, scratch / name, host, units, arch)
        try:
            (scratch / name).parent.rename(folder.parent)
        except OSError:  # another process was first
            assert program.executable.exists(), f"{folder} is incomplete: remove it"
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return program


def _build(program: Program, into: Path, host: Path, units: list[Path], arch: str) -> None:
    into.mkdir()
    compiler = os.environ.get("CXX", "g++").split()
    library = [str(native_path(SIM_HIP)), "-Wl,--allow-shlib-undefined"]
    steps: list[tuple[Path, list[str], Path]] = []
    for unit in units:
        steps.append((unit, device_command(unit, into / f"{unit.stem}.o", arch), into / f"{unit.stem}.o"))
    host_object = into / f"{program.name}_host.o"
    host_words = [*compiler, *_HOST, f"-I{hip_include()}", "-c", str(host), "-o", str(host_object)]
    steps.append((host, host_words, host_object))
    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(lambda step: _run(step[1], PROGRAMS), steps))
    for unit in units:
        _run(link_command(into / f"{unit.stem}.o", into / f"{unit.stem}.hsaco"), PROGRAMS)
    _run([*compiler, str(host_object), *library, "-o", str(into / program.name)], PROGRAMS)
    commands = []
    for source, words, output in steps:
        final = [word.replace(str(into), str(program.folder)) for word in words]
        where = str(program.folder / output.name)
        commands.append(
            {"directory": str(PROGRAMS), "file": str(source), "arguments": final, "output": where}
        )
    (into / "compile_commands.json").write_text(json.dumps(commands, indent=2))
