"""The simulated gfx90a under Debian's HIP and rocBLAS, which come with prebuilt code for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rocm.build import Built
from rocm.prefix import Prefix
from rocm.running import Run
from rocm.watching import Kerncap

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

Build = Callable[..., Built]


@pytest.fixture
def kerncap(prefix: Prefix, tmp_path: Path) -> Kerncap:
    return Kerncap(prefix, tmp_path, "sim:gfx90a")


def test_results_of_rocblas_are_right(build: Build, run: Callable[..., Run]) -> None:
    done = run(build("rocblas_gemm").path, device="gfx90a")
    assert done.code == 0, done.stdout + done.stderr
    assert done.stdout.endswith("ok\n"), done.stdout


def test_a_kernel_with_barriers_of_the_whole_grid_is_replayed(build: Build, kerncap: Kerncap) -> None:
    """HIP sets the barrier up in a dispatch before, which no replay has."""
    program = build("cooperative")
    words = ["extract", "shift_and_add", "--dispatch", "2", "-o", "out", "--source-dir", str(program.folder)]
    extracted = kerncap.document(*words, "--", str(program.path))
    assert extracted["baseline"]["verdict"] == "IDENTICAL", extracted
    kerncap.rebuild("out")
    assert kerncap.document("validate", "out", "--hsaco", "optimized.hsaco")["verdict"] == "IDENTICAL"


def test_a_kernel_of_rocblas_is_taken_out(build: Build, kerncap: Kerncap) -> None:
    program = str(build("rocblas_gemm").path)
    report = kerncap.document("profile", "--", program)
    names = [kernel["name"] for kernel in report["kernels"] if kernel["name"].startswith("Cijk_")]
    assert len(names) >= 6
    extracted = kerncap.document("extract", names[0], "-o", "out", "--", program)
    assert extracted["baseline"]["verdict"] == "IDENTICAL", extracted
