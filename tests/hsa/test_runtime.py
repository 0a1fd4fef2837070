"""The simulated HSA runtime, as programs use it: small C++ programs that link libhsa-runtime64.so.1."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from kerncap.core.native import SIM_RUNTIME, find_native
from support.build import zig_program

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[1] / "native"
CXX = os.environ.get("CXX", "c++").split()
DEVICE = ["-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc", "-O2", "-gline-tables-only"]


def run(
    words: list[str], environment: dict[str, str] | None = None, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
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
            build(
                [
                    *CXX,
                    *flags,
                    "-rdynamic",
                    str(HERE / f"{name}.cpp"),
                    str(self.runtime),
                    "-ldl",
                    "-o",
                    str(out),
                ]
            )
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
        clean = {
            k: v for k, v in os.environ.items() if not k.startswith(("KERNCAP_", "LD_PRELOAD", "HSA_", "ROC"))
        }
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


def test_dispatches_on_gfx90a(workshop: Workshop) -> None:
    assert "dispatch ok" in workshop.passes("dispatch", workshop.code("gfx90a"), KERNCAP_SIM="gfx90a")


@pytest.mark.parametrize("stripped", [False, True])
def test_functions_without_a_size(workshop: Workshop, tmp_path: Path, stripped: bool) -> None:
    """As kernels written in assembly have none: each reaches to the next."""
    code = bytearray(workshop.code().read_bytes())
    with workshop.code().open("rb") as stream:
        for name in (".symtab", ".dynsym"):
            section = ELFFile(stream).get_section_by_name(name)
            for number, symbol in enumerate(section.iter_symbols()):
                at = section["sh_offset"] + 24 * number
                if symbol["st_info"]["type"] == "STT_FUNC":
                    code[at + 16 : at + 24] = bytes(8)
            if stripped and name == ".symtab":  # its section header's size
                header = ELFFile(stream)["e_shoff"] + 64 * ELFFile(stream).get_section_index(name)
                code[header + 4 : header + 8] = bytes(4)  # SHT_NULL
    changed = tmp_path / "without_sizes.hsaco"
    changed.write_bytes(code)
    assert "dispatch ok" in workshop.passes("dispatch", changed)


def test_initialisation_counts_and_starts_again(workshop: Workshop) -> None:
    assert "lifetime ok" in workshop.passes("lifetime", 3)


def test_fork(workshop: Workshop) -> None:
    assert "forks ok" in workshop.passes("forks", workshop.code())


@pytest.mark.parametrize("mode", ["batch", "single"])
def test_intercept_queues(workshop: Workshop, mode: str) -> None:
    tool = workshop.tool("table_tool")
    output = workshop.passes(
        "intercept", workshop.code(), mode, LD_PRELOAD=str(tool), KERNCAP_SIM_INTERCEPT=mode
    )
    assert "intercept ok" in output


def log_of(workshop: Workshop, log: Path, **variables: str) -> list[str]:
    assert "lifetime ok" in workshop.passes("lifetime", KERNCAP_TEST_LOG=str(log), **variables)
    return log.read_text().splitlines() if log.exists() else []


def test_tools_load_by_priority_and_unload_in_reverse(workshop: Workshop, tmp_path: Path) -> None:
    late = workshop.tool("tool", 'NAME="late"', "PRIORITY=90")
    early = workshop.tool("tool", 'NAME="early"', "PRIORITY=10")
    named = workshop.tool("tool", 'NAME="named"')  # no priority of its own: 0
    lines = log_of(workshop, tmp_path / "log", LD_PRELOAD=f"{late}:{early}", HSA_TOOLS_LIB=f"{named} {early}")
    assert lines == [
        "named OnLoad", "early OnLoad", "late OnLoad",
        # The table that the program calls through is patched: the last tool's hook first, then the others'.
        "late queue_create", "early queue_create", "named queue_create",
        "late OnUnload", "early OnUnload", "named OnUnload",
    ]  # fmt: skip


def test_library_without_priority_is_no_tool(workshop: Workshop, tmp_path: Path) -> None:
    assert log_of(workshop, tmp_path / "log", LD_PRELOAD=str(workshop.tool("tool", 'NAME="named"'))) == []


def test_tool_that_refuses_is_closed_and_told_to_the_next(workshop: Workshop, tmp_path: Path) -> None:
    refuses = workshop.tool("tool", 'NAME="refuses"', "RESULT=false", "PRIORITY=1")
    after = workshop.tool("tool", 'NAME="after"', "PRIORITY=2")
    lines = log_of(workshop, tmp_path / "log", HSA_TOOLS_LIB=f"{after} {refuses} /nowhere/tool.so")
    assert lines[:4] == ["refuses OnLoad", "refuses someone failed", "after OnLoad", "after someone failed"]
    assert "refuses OnUnload" not in lines


def test_bad_settings_are_refused(workshop: Workshop) -> None:
    for name, value in [
        ("KERNCAP_SIM", "gfx9000"),
        ("KERNCAP_SIM", "gfx942x99"),
        ("KERNCAP_SIM_THREADS", "many"),
    ]:
        done = workshop.run("lifetime", **{name: value})
        assert done.returncode == 1
        assert f"kerncap: {name}={value}" in done.stderr


def test_memory(workshop: Workshop) -> None:
    assert "memory ok" in workshop.passes("memory", workshop.code())


def test_two_devices(workshop: Workshop) -> None:
    assert "two devices ok" in workshop.passes("two_devices", workshop.code(), KERNCAP_SIM="gfx942x2")


def test_loading(workshop: Workshop) -> None:
    external = workshop.code("gfx942", "-DWITH_EXTERNAL")
    output = workshop.passes("loading", workshop.code(), external)
    assert "loading ok" in output
    assert "undefined symbol outside" in output
    assert re.search(
        r"cannot load code object memory://.*ffffffff.*\badd\b|cannot load.*\badd\b.*ffffffff", output
    )
    assert "another processor (EF_AMDGPU_MACH 0x036), and the device is gfx942" in output
    assert "it is for gfx90a, and the device is gfx942" in output


@pytest.mark.parametrize("what", ["null", "past_the_end", "freed", "host", "code", "trap", "time", "packet"])
def test_fault(workshop: Workshop, what: str) -> None:
    output = workshop.passes("faults", workshop.code(), what, KERNCAP_SIM_MAX_SECONDS="1")
    assert "fault ok" in output
    if what in ("null", "past_the_end", "freed", "host", "code"):
        line = next(
            i
            for i, text in enumerate((HERE / "kernels.hip").read_text().splitlines(), 1)
            if "void store" in text
        )
        assert f"kernels.hip:{line}" in output


def test_fault_that_nobody_handles_aborts(workshop: Workshop) -> None:
    done = workshop.run("faults", workshop.code(), "past_the_end", "none")
    assert done.returncode == -6, done.stderr
    assert "store" in done.stderr


def test_active_profiler_gets_the_table_instead_of_tools(workshop: Workshop, tmp_path: Path) -> None:
    """As rocprofiler-register: only a visible rocprofiler_configure (or its variables) activates it."""
    profiler, tool = workshop.tool("profiler"), workshop.tool("tool", 'NAME="named"', "PRIORITY=1")
    log = tmp_path / "log"
    both = {"LD_PRELOAD": f"{profiler}:{tool}"}
    assert log_of(workshop, log, **both) == ["profiler hsa 1"]
    log.unlink()
    assert log_of(workshop, log, **both, HSA_TOOLS_ROCPROFILER_V1_TOOLS="1")[:2] == [
        "profiler hsa 1",
        "named OnLoad",
    ]
    log.unlink()
    assert log_of(workshop, log, **both, ROCPROFILER_REGISTER_ENABLED="0")[0] == "named OnLoad"
    log.unlink()
    silent = workshop.tool("profiler", "NO_CONFIGURE")  # exports the entry point only
    assert log_of(workshop, log, LD_PRELOAD=f"{silent}:{tool}")[0] == "named OnLoad"
