"""CUDA programs on a device that runs no CUDA: what is said instead of an empty table."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kerncap.core.device import runtimes
from kerncap.core.device.cuda_driver import CudaGpu, Driver
from kerncap.core.device.cuda_toolkit import nvcc
from kerncap.core.device.runtimes import RuntimeWatch, no_dispatch_reason
from kerncap.core.errors import WorkloadError
from kerncap.core.extract.extract import extract
from kerncap.core.program.profile import ProfileReport, profile

NO_DRIVER = Driver("", (), "there is no libcuda.so.1: no NVIDIA GPU, or its driver is not installed")
ONE_GPU = Driver("13.0", (CudaGpu(0, "sm_90", "NVIDIA H200"),), None)
# nvcc puts kernels into this section, whichever way the runtime is linked.
IN_C = """
#include <unistd.h>
__attribute__((section(".nv_fatbin"), used)) static const char kernels[64] = "no kernel";
int main(void) { usleep(400000); return 0; }
"""
IN_CUDA = """
__global__ void saxpy(float *x) { x[threadIdx.x] *= 2.0f; }
int main() {
    float *x = nullptr;
    if (cudaMalloc(&x, 256) == cudaSuccess) saxpy<<<1, 64>>>(x);
    return 0;
}
"""
Build = Callable[[str, str, list[str]], str]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Builds a program in the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runtimes, "driver", lambda: NO_DRIVER)

    def run(text: str, name: str, command: list[str]) -> str:
        (tmp_path / name).write_text(text)
        subprocess.run([*command, name, "-o", "program"], check=True, timeout=120)
        return "./program"

    return run


def told(report: ProfileReport) -> str:
    (warning,) = (w for w in report.warnings if w.startswith("no dispatch was seen. "))
    return warning.removeprefix("no dispatch was seen. ")


@pytest.mark.parametrize("runtime", ["static", "shared"])
def test_what_nvcc_builds_is_named_with_the_way_out(fake_natives: Path, build: Build, runtime: str) -> None:
    compiler = nvcc()
    if compiler is None:
        pytest.skip("no nvcc")
    program = build(IN_CUDA, "saxpy.cu", [compiler, "-cudart", runtime])
    said = told(profile([program], device="sim:gfx942"))
    assert said.startswith(
        "It is a CUDA program (./program holds CUDA kernels), and a simulated AMD GPU cannot run its kernels."
    )
    assert "--device cuda" in said
    assert "there is no libcuda.so.1" in said
    assert said.endswith("(see `kerncap doctor`).")
    with pytest.raises(WorkloadError, match=r"No dispatch was seen\. It is a CUDA program .*--device cuda"):
        extract("saxpy", [program], device="sim:gfx942")


def test_one_that_a_script_starts(fake_natives: Path, build: Build, tmp_path: Path) -> None:
    build(IN_C, "program.c", ["cc"])
    said = told(profile(["sh", "-c", "./program; true"], device="sim:gfx942"))
    assert f"It is a CUDA program ({tmp_path / 'program'} holds CUDA kernels)" in said


def test_where_there_is_a_driver_only_the_option_is_named(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = build(IN_C, "program.c", ["cc"])
    monkeypatch.setattr(runtimes, "driver", lambda: ONE_GPU)
    said = no_dispatch_reason(program, RuntimeWatch(), "rocm")
    assert said.endswith("and AMD GPUs cannot run its kernels. --device cuda watches it.")
    assert "CUDA program" not in no_dispatch_reason(program, RuntimeWatch(), "cuda")


def test_a_program_that_needs_the_driver_itself(build: Build, tmp_path: Path) -> None:
    (tmp_path / "driver.c").write_text("int cuInit(unsigned flags) { return (int)flags; }")
    shared = ["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "driver.c", "-o", "libcuda.so.1"]
    subprocess.run(shared, check=True, timeout=60)
    text = "int cuInit(unsigned); int main(void) { return cuInit(0); }"
    program = build(text, "program.c", ["cc", "-Wl,--no-as-needed", "./libcuda.so.1"])
    said = no_dispatch_reason(program, RuntimeWatch(), "sim")
    assert "It is a CUDA program (./program is linked with libcuda.so.1)" in said
    watch = RuntimeWatch()  # a script whose libraries were seen
    watch.libraries = {"/opt/torch/lib/libtorch_cuda.so"}
    assert "(it loaded libtorch_cuda.so)" in no_dispatch_reason("nowhere", watch, "sim")


def test_a_program_of_both_kinds_is_no_cuda_program(build: Build) -> None:
    program = build(IN_C, "program.c", ["cc"])
    watch = RuntimeWatch()
    watch.libraries = {"/opt/rocm/lib/libamdhip64.so.6", "/opt/rocm/lib/libkerncap_hsa.so"}
    assert no_dispatch_reason(program, watch, "sim") == (
        "It loaded libamdhip64.so.6, and dispatched no kernel."
    )
    watch.libraries |= {"/usr/lib/libcuda.so.1"}
    assert "--device cuda watches it, which cannot be used here" in no_dispatch_reason(program, watch, "sim")
