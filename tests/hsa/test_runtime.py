"""The simulated HSA runtime, used as a program uses it: small C++ programs that link libhsa-runtime64.so.1."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kerncap.core.native import SIM_RUNTIME, find_native
from support.build import zig_program

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[1] / "native"
CXX = os.environ.get("CXX", "c++").split()
DEVICE = ["-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc", "-O2", "-gline-tables-only"]


def run(words: list[str], environment: dict[str, str] | None = None, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=timeout)


def build(words: list[str]) -> None:
    done = run(words, timeout=300)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stderr}"


class Workshop:
    """Builds this folder's programs, tools and code, each once, and runs them on the simulator."""

    def __init__(self, folder: Path, runtime: Path) -> None:
        self.folder, self.runtime = folder, runtime

    def program(self, name: str) -> Path:
        out = self.folder / name
        if not out.exists():
            flags = ["-std=c++20", "-O1", "-g", "-Wall", "-Wextra", f"-I{NATIVE}", "-pthread"]
            build([*CXX, *flags, str(HERE / f"{name}.cpp"), str(self.runtime), "-ldl", "-o", str(out)])
        return out

    def tool(self, name: str, *defines: str) -> Path:
        """A shared library that the runtime may load as a tool."""
        out = self.folder / ("-".join([name, *defines]).replace("=", "_") + ".so")
        if not out.exists():
            flags = ["-std=c++20", "-O1", "-g", "-Wall", "-Wextra", f"-I{NATIVE}", "-fPIC", "-shared"]
            build([*CXX, *flags, *(f"-D{d}" for d in defines), str(HERE / f"{name}.cpp"), "-o", str(out)])
        return out

    def code(self, arch: str = "gfx942", *options: str, name: str = "kernels", version: int = 5) -> Path:
        out = self.folder / ("-".join([name, arch, f"v{version}", *options]).replace("=", "_") + ".hsaco")
        if not out.exists():
            obj = out.with_suffix(".o")
            flags = [f"--offload-arch={arch}", f"-mcode-object-version={version}", *options]
            source = str(HERE / f"{name}.hip")
            zig = zig_program()
            build([zig, "clang", *DEVICE, *flags, "-S", "-Xclang", "-emit-obj", source, "-o", str(obj)])
            build([zig, "ld.lld", "-shared", str(obj), "-o", str(out)])
        return out

    def run(self, program: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("KERNCAP_", "LD_PRELOAD", "HSA_", "ROC"))}
        library = {"LD_LIBRARY_PATH": str(self.runtime.parent), "KERNCAP_SIM": "gfx942"}
        return run([str(self.program(program)), *map(str, arguments)], {**clean, **library, **variables})

    def passes(self, program: str, *arguments: object, **variables: str) -> str:
        done = self.run(program, *arguments, **variables)
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    runtime = find_native(SIM_RUNTIME)
    if runtime is None:
        pytest.skip(f"{SIM_RUNTIME} is not built")
    return Workshop(tmp_path_factory.mktemp("hsa"), runtime)


def test_signals(workshop: Workshop) -> None:
    assert "signals ok" in workshop.passes("signals")


@pytest.mark.parametrize("version", [4, 5, 6])
def test_dispatches(workshop: Workshop, version: int) -> None:
    assert "dispatch ok" in workshop.passes("dispatch", workshop.code(version=version))
