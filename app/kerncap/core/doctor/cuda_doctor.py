"""What there is of CUDA on this machine, and the self-test on an NVIDIA GPU."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from kerncap.core.build.toolchain import run_tool
from kerncap.core.device import cuda_toolkit
from kerncap.core.device.cuda_driver import driver
from kerncap.core.device.devices import Device
from kerncap.core.doctor.checks import NOTE, OK, PROBLEM, Check, Steps
from kerncap.core.errors import DeviceError
from kerncap.core.scratch import scratch
from kerncap.core.units import duration, size

_TOOLKIT = "install the CUDA toolkit, or name its folder in CUDA_HOME"
_PROFILING = (
    "run as root, or set the module option NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d and load "
    "the driver again"
)
_LIMIT_S = 300.0


def cuda_checks() -> list[Check]:
    """The driver, libcupti, nvcc, ncu and who may read counters. A machine without an NVIDIA GPU lacks
    nothing: notes then.
    """
    found = driver()
    if found.problem is not None and not found.version:
        # What of the toolkit is here is told all the same: kernels can be rebuilt without a GPU.
        return [Check("cuda", NOTE, found.problem), *(check for check in _toolkit(NOTE) if check.state == OK)]
    here = found.problem is None
    missing = PROBLEM if here else NOTE
    told = f"NVIDIA's driver supports CUDA {found.version}"
    checks = [Check("cuda", OK if here else PROBLEM, told if here else f"{told}: {found.problem}")]
    checks += _toolkit(missing)
    ncu = cuda_toolkit.find_tool("ncu")
    if ncu is None:
        text = "no ncu (Nsight Compute): replay --counters cannot read hardware counters"
        return [*checks, Check("counters", NOTE, text, "install Nsight Compute, or add its folder to PATH")]
    checks.append(Check("counters", OK, f"{ncu} {cuda_toolkit.version_of(ncu)}".strip()))
    allowed = cuda_toolkit.counters_allowed()
    if allowed is None:
        checks.append(Check("counters", NOTE, "the driver does not tell who may read hardware counters"))
    elif allowed:
        checks.append(Check("counters", OK, "this user may read hardware counters"))
    else:
        checks.append(Check("counters", NOTE, "only administrators may read hardware counters", _PROFILING))
    return checks


def _toolkit(missing: str) -> list[Check]:
    """libcupti and nvcc; `missing`: the state of what a machine with a GPU needs."""
    checks = []
    cupti = cuda_toolkit.find_cupti()
    if cupti:
        checks.append(Check("cuda", OK, f"libcupti: {cupti}"))
    else:
        fix = f"{_TOOLKIT}, or `pip install nvidia-cuda-cupti`, or name it in KERNCAP_CUPTI"
        text = "no libcupti is here: programs that bring none of their own cannot be watched"
        checks.append(Check("cuda", missing, text, fix))
    nvcc = cuda_toolkit.nvcc()
    if nvcc:
        checks.append(Check("compiler", OK, f"{nvcc} {cuda_toolkit.version_of(nvcc)}".strip()))
    else:
        checks.append(Check("compiler", NOTE, "no nvcc: edits of CUDA kernels cannot be rebuilt", _TOOLKIT))
    return checks


# Every kind of argument that a capture must get right, in one kernel: pointers, a scalar, a constant, shared
# memory, an update in place.
PROGRAM = """
#include <cstdio>
#include <vector>
__constant__ float factor;
__global__ void axpy(const float* x, float* y, int n) {
  extern __shared__ float staged[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  staged[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  if (i < n) y[i] += factor * staged[threadIdx.x];
}
int main() {
  const int n = 1 << 20;
  std::vector<float> host(n, 1.5f);
  float *x = nullptr, *y = nullptr, two = 2;
  if (cudaMalloc(&x, n * 4) != cudaSuccess || cudaMalloc(&y, n * 4) != cudaSuccess) return 1;
  cudaMemcpy(x, host.data(), n * 4, cudaMemcpyHostToDevice);
  cudaMemset(y, 0, n * 4);
  cudaMemcpyToSymbol(factor, &two, sizeof two);
  for (int i = 0; i < 20; ++i) axpy<<<(n + 255) / 256, 256, 256 * 4>>>(x, y, n);
  if (cudaMemcpy(host.data(), y, n * 4, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  std::printf("%g\\n", host[n - 1]);
  return host[n - 1] == 60 ? 0 : 1;
}
"""


def cuda_self_test(device: Device, on_step: Callable[[str], None] | None = None) -> list[Check]:
    """Builds a small CUDA program with nvcc and goes through profile, extract, recompile, replay and validate
    with it, in a temporary directory.
    """
    from kerncap.core.build.recompile import recompile
    from kerncap.core.extract.extract import extract
    from kerncap.core.judge.validate import validate
    from kerncap.core.program.profile import profile
    from kerncap.core.replay.replay import replay

    steps = Steps(on_step)
    with scratch("self-test") as temporary:
        where = Path(temporary)
        source, program, output = where / "axpy.cu", where / "axpy", where / "isolated"
        quiet = os.open(os.devnull, os.O_WRONLY)

        def do_build() -> str:
            nvcc = cuda_toolkit.nvcc()
            if nvcc is None or shutil.which(nvcc) is None:
                raise DeviceError(f"there is no nvcc to build the test's program with: {_TOOLKIT}")
            source.write_text(PROGRAM)
            words = [nvcc, "-O2", f"-arch={device.arch}", str(source), "-o", str(program)]
            done = run_tool(words, directory=where, timeout_s=_LIMIT_S)
            if done.code:
                raise DeviceError(f"nvcc could not build the test's program:\n{done.output.rstrip()}")
            return f"a CUDA program is built by {nvcc}"

        def do_profile() -> str:
            report = profile([str(program)], device=device, stdout=quiet, stderr=quiet, timeout=_LIMIT_S)
            if report.exit_code or report.dispatches != 20 or report.timed != 20:
                more = "; ".join(report.warnings)
                raise DeviceError(
                    f"the program ended with {report.exit_code}; of its 20 launches {report.dispatches} were "
                    f"seen and {report.timed} timed{': ' + more if more else ''}"
                )
            return f"20 launches, {len(report.kernels)} kernel, {report.lost} lost"

        def do_extract() -> str:
            result = extract(
                "axpy",
                [str(program)],
                device=device,
                dispatch=3,
                source_dir=where,
                output=output,
                stdout=quiet,
                stderr=quiet,
                timeout=_LIMIT_S,
            )
            source = result.source.variant or f"none: {result.source.reason}"
            return f"{size(result.bytes)}, source {source}, baseline {result.baseline.get('verdict')}"

        def do_replay() -> str:
            result = replay(output, iterations=5, device=device).to_json()
            return f"median {duration(result['median_ns'])} ({result['timer']})"

        def do_recompile() -> str:
            made = recompile(output)
            return f"{made.object.name} in {made.seconds['total']:.2f} s"

        def do_validate() -> str:
            for variant in (None, output / "optimized.cubin"):
                verdict = validate(output, variant, device=device).to_json()["verdict"]
                if verdict != "IDENTICAL":
                    what = "the captured kernel's own replay" if variant is None else "the rebuilt kernel"
                    raise DeviceError(f"{what} is {verdict}")
            return "IDENTICAL, and so is the rebuilt kernel"

        try:
            steps.take(
                ("build", do_build),
                ("profile", do_profile),
                ("extract", do_extract),
                ("replay", do_replay),
                ("recompile", do_recompile),
                ("validate", do_validate),
            )
        finally:
            os.close(quiet)
    return steps.checks
