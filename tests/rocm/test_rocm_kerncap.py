"""kerncap on unmodified HIP programs: figures, captures, source and rebuilt kernels."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rocm.build import PROGRAMS, Built
from rocm.prefix import Prefix
from rocm.running import own_counts
from rocm.watching import Kerncap, counts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

Build = Callable[..., Built]
ALL = ["copies", "launches", "streams", "allocations", "graph", "cooperative", "device_heap", "modules"]
ALL += ["threads", "signalling", "rtc"]


@pytest.fixture
def kerncap(prefix: Prefix, tmp_path: Path) -> Kerncap:
    return Kerncap(prefix, tmp_path)


def command(build: Build, name: str) -> list[str]:
    """A program with the arguments that it needs."""
    more = [str(build("plugin").path), str(build("module").path)] if name == "modules" else []
    return [str(build(name).path), *more]


@pytest.mark.parametrize("name", ALL)
def test_figures_are_the_programs_own(build: Build, kerncap: Kerncap, name: str) -> None:
    report, stderr = kerncap.document_and_stderr("profile", "--", *command(build, name))
    own = own_counts(stderr)  # the program's stdout is moved there
    assert own
    assert counts(report, "hip") == own
    assert report["dispatches"] == report["timed"] == sum(kernel["calls"] for kernel in report["kernels"])
    assert report["lost"] == report["rejected"] == report["pending"] == 0
    others = {kernel["name"] for kernel in report["kernels"] if kernel["kind"] == "runtime"}
    assert all(kernel.startswith("__amd_rocclr_") for kernel in others)
    assert {kernel["kind"] for kernel in report["kernels"]} <= {"hip", "runtime"}
    assert (report["exit_code"], report["warnings"]) == (0, [])


# Program, kernel, which dispatch of it, and the parameter of the copies that must be in the capture.
CASES = [
    ("copies", "weigh", 1),
    ("copies", "__amd_rocclr_copyBuffer", 1),
    ("copies", "__amd_rocclr_fillBufferAligned", 2),
    ("launches", "multiply<double, 4>", 1),
    ("launches", "other::add", 1),
    ("launches", "transform", 1),
    ("launches", "reverse", 1),
    ("launches", "place", 1),
    ("streams", "step", 777),
    ("streams", "gather", 1),
    *(("allocations", "increment", dispatch) for dispatch in range(1, 8)),
    ("graph", "link_of_chain", 7321),
    ("graph", "branch", 5),
    ("cooperative", "shift_and_add", 2),
    ("cooperative", "sum_of_block", 1),
    ("threads", "work", 300),
    ("threads", "count", 77),
    ("signalling", "add_managed", 2),
    ("rtc", "axpy<float>", 1),
    ("modules", "from_plugin", 2),
    ("modules", "scale", 2),
]


@pytest.mark.parametrize(("name", "kernel", "dispatch"), CASES)
def test_any_kernel_is_taken_out_and_gives_what_the_program_got(
    build: Build, kerncap: Kerncap, name: str, kernel: str, dispatch: int
) -> None:
    made = command(build, name)
    folder = Path(made[0]).parent
    extracted = kerncap.document(
        "extract", kernel, "--dispatch", str(dispatch), "-o", "out", "--source-dir", str(folder), "--", *made
    )
    assert extracted["baseline"]["verdict"] == "IDENTICAL", extracted
    assert extracted["dispatch"] == dispatch
    assert extracted["changed_bytes"] > 0
    assert (extracted["device"], extracted["arch"]) == ("sim:gfx942", "gfx942")
    timing = kerncap.document("replay", "out", "--iterations", "3")
    assert timing["median_ns"] > 0
    if kernel.startswith("__amd_rocclr_") or name in ("modules", "rtc"):
        return  # their source is elsewhere, or a string
    assert extracted["source"]["variant"] == "kernel_variant.cpp"
    kerncap.rebuild("out")
    assert kerncap.document("validate", "out", "--hsaco", "optimized.hsaco")["verdict"] == "IDENTICAL"


def test_an_edit_is_rebuilt_with_the_programs_own_command(build: Build, kerncap: Kerncap) -> None:
    built = build("streams")
    kerncap.document(
        "extract", "gather", "-o", "out", "--source-dir", str(built.folder), "--", str(built.path)
    )
    variant = kerncap.directory / "out/kernel_variant.cpp"
    original = (PROGRAMS / "streams.hip").read_text()
    assert variant.read_text() == original
    right = original.replace("sum += in[s][i];", "sum = in[s][i] + sum;")
    wrong = original.replace("sum += in[s][i];", "sum += in[s][i] ^ 1;")
    assert len({original, right, wrong}) == 3
    for text, verdict, code in ((right, "IDENTICAL", 0), (wrong, "FAIL", 1)):
        variant.write_text(text)
        kerncap.rebuild("out")
        document = kerncap.document("validate", "out", "--hsaco", "optimized.hsaco", code=code)
        assert document["verdict"] == verdict


def test_without_compile_commands_the_hipcc_of_the_path_is_used(
    prefix: Prefix, build: Build, kerncap: Kerncap
) -> None:
    """As where a distribution's own packages put hipcc into /usr/bin, and its clang where nobody looks."""
    bare = kerncap.directory / "bare"
    bare.mkdir()
    shutil.copy(build("streams").path, bare / "program")
    for name in ("streams.hip", "check.h"):
        (bare / name).write_text((PROGRAMS / name).read_text())
    hipcc = kerncap.directory / "bin/hipcc"
    hipcc.parent.mkdir()
    hipcc.write_text(f'#!/bin/sh\nexec {prefix.hipcc} --sysroot={prefix.root} "$@"\n')
    hipcc.chmod(0o755)
    kerncap.environment["PATH"] = f"{hipcc.parent}:{kerncap.environment['PATH']}"
    extracted = kerncap.document(
        "extract", "gather", "-o", "out", "--source-dir", str(bare), "--", "bare/program"
    )
    assert extracted["source"]["variant"] == "kernel_variant.cpp", extracted["source"]
    kerncap.rebuild("out")
    assert kerncap.document("validate", "out", "--hsaco", "optimized.hsaco")["verdict"] == "IDENTICAL"


def test_two_kernels_of_one_name_in_two_libraries(build: Build, kerncap: Kerncap) -> None:
    made = command(build, "modules")
    report = kerncap.document("profile", "--", *made)
    twins = [kernel for kernel in report["kernels"] if kernel["name"].startswith("twice(")]
    assert sorted(kernel["calls"] for kernel in twins) == [1, 2]
    for kernel, source in zip(
        sorted(twins, key=lambda twin: twin["calls"]), ("modules", "plugin"), strict=True
    ):
        folder = str(build(source).folder)
        name = f"out-{source}"
        extracted = kerncap.document("extract", kernel["id"], "-o", name, "--source-dir", folder, "--", *made)
        assert extracted["baseline"]["verdict"] == "IDENTICAL"
        variant = kerncap.directory / name / "kernel_variant.cpp"
        assert variant.read_text() == (PROGRAMS / f"{source}.hip").read_text()


@pytest.mark.parametrize("kernel", ["say", "borrow"])
def test_a_kernel_that_the_host_serves_is_said_to_be_one(build: Build, kerncap: Kerncap, kernel: str) -> None:
    made = command(build, "device_heap")
    extracted, stderr = kerncap.document_and_stderr(
        "extract", kernel, "-o", "out", "--keep-running", "--", *made, code=3
    )
    assert own_counts(stderr) == {"say": 1, "push": 2, "pop_all": 2, "borrow": 1}  # the program went on
    assert any("listener" in warning for warning in extracted["warnings"])
    assert "needs_listener" in kerncap.document("inspect", "out")["capture"]["dispatch"]["flags"]
    error = kerncap.document("replay", "out", code=None)
    assert "hostcall buffer" in error["error"]


def test_free_to_the_devices_own_heap_needs_no_host(build: Build, kerncap: Kerncap) -> None:
    made = command(build, "device_heap")
    extracted = kerncap.document("extract", "pop_all", "--dispatch", "2", "-o", "out", "--", *made)
    assert extracted["baseline"]["verdict"] == "IDENTICAL"
    assert "needs_listener" not in kerncap.document("inspect", "out")["capture"]["dispatch"]["flags"]


@pytest.mark.parametrize("option", ["-O0", "-fgpu-rdc", "--offload-compress"])
def test_however_its_program_is_compiled(build: Build, kerncap: Kerncap, option: str) -> None:
    built = build("launches", [option])
    words = ["extract", "transform", "-o", "out", "--source-dir", str(built.folder), "--", str(built.path)]
    extracted = kerncap.document(*words, AMD_COMGR_CACHE="0")
    assert extracted["baseline"]["verdict"] == "IDENTICAL", extracted
    assert extracted["source"]["variant"] == "kernel_variant.cpp"
    kerncap.rebuild("out")
    assert kerncap.document("validate", "out", "--hsaco", "optimized.hsaco")["verdict"] == "IDENTICAL"


def test_each_device_has_its_own_captures(prefix: Prefix, build: Build, tmp_path: Path) -> None:
    kerncap = Kerncap(prefix, tmp_path, device="sim:gfx942x2")
    made = command(build, "devices")
    report, stderr = kerncap.document_and_stderr("profile", "--", *made)
    assert counts(report, "hip") == own_counts(stderr)
    [last] = [kernel for kernel in report["kernels"] if kernel["name"].startswith("only_on_the_last(")]
    assert last["device_index"] == 1
    for kernel, dispatch in (("only_on_the_last", 1), ("take", 1), ("take", 2)):
        out = f"{kernel}-{dispatch}"
        extracted = kerncap.document("extract", kernel, "--dispatch", str(dispatch), "-o", out, "--", *made)
        assert extracted["baseline"]["verdict"] == "IDENTICAL", extracted
