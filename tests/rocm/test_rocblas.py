"""Debian's rocBLAS with its own Tensile code objects (version 4, many kernels each) on a simulated gfx90a."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

from rocm.build import Built
from rocm.prefix import Prefix
from rocm.running import Run
from rocm.watching import Kerncap, counts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

M, N, K, BATCHES = 96, 80, 112, 3
ARCH = "gfx90a"  # rocBLAS of Debian has no code for gfx942
Numbers = Callable[[str, DTypeLike], "NDArray[np.float64]"]


@pytest.fixture
def blas(prefix: Prefix, build: Callable[..., Built]) -> Path:
    if not prefix.has_rocblas():
        pytest.skip("the folder of packages was made without rocBLAS")
    return build("blas", ["-lrocblas"]).path


@pytest.fixture
def saved(blas: Path, run: Callable[..., Run], tmp_path: Path) -> Numbers:
    """What a run of all operations wrote, by name, as double precision."""
    done = run(blas, str(tmp_path), device=ARCH)
    assert (done.code, done.stdout) == (0, "ok\n"), done.stdout + done.stderr
    return lambda name, dtype: np.fromfile(tmp_path / f"{name}.bin", dtype).astype(np.float64)


def matrix(values: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    """Column-major values as a matrix; of several, one after the other."""
    return values.reshape(-1, rows).T


def test_results_are_numpys(saved: Numbers) -> None:
    x, y = saved("x", "f4"), saved("y", "f4")
    assert saved("dot.result", "f4")[0] == x @ y
    assert np.array_equal(saved("axpy.result", "f4"), 2.5 * x + y)
    # The numbers are small multiples of 1/8, and their products' sums exact in single precision.
    for name, dtype in (("sgemm", "f4"), ("dgemm", "f8")):
        a, b, c = (
            matrix(saved(f"{name}.{part}", dtype), rows) for part, rows in (("a", M), ("b", K), ("c", M))
        )
        assert np.array_equal(matrix(saved(f"{name}.result", dtype), M), 1.5 * (a @ b) - 0.5 * c), name
    parts = {part: saved(f"batched.{part}", "f4").reshape(BATCHES, -1) for part in ("a", "b", "c", "result")}
    for a, b, c, result in zip(*parts.values(), strict=True):
        assert np.array_equal(matrix(result, M), matrix(a, K).T @ matrix(b, K) + 2 * matrix(c, M))


def test_half_precision_is_that_of_fused_additions_in_order(saved: Numbers) -> None:
    a, b, c = (matrix(saved(f"hgemm.{part}", "f2"), rows) for part, rows in (("a", M), ("b", K), ("c", M)))
    total = np.zeros((M, N), np.float16)
    for k in range(K):  # v_pk_fma_f16: one rounding each
        total = (total + np.outer(a[:, k], b[k])).astype(np.float16)
    scaled = (1.5 * total.astype(np.float64)).astype(np.float16)
    expected = (scaled.astype(np.float64) - 0.5 * c).astype(np.float16)
    assert np.array_equal(matrix(saved("hgemm.result", "f2"), M), expected)


def test_tensile_kernels_are_known_as_such(prefix: Prefix, blas: Path, tmp_path: Path) -> None:
    report = Kerncap(prefix, tmp_path, f"sim:{ARCH}").document("profile", "--", str(blas), str(tmp_path))
    tensile = [kernel for kernel in report["kernels"] if kernel["kind"] == "tensile"]
    assert sorted(kernel["calls"] for kernel in tensile) == [1, 1, 1, 1]
    assert all(kernel["name"].startswith("Cijk_") and kernel["vgprs"] > 0 for kernel in tensile)
    assert set(counts(report, "hip")) == {"rocblas_saxpy_2_kernel", "rocblas_dot_kernel_inc1by2"}
    assert report["dispatches"] == report["timed"]


@pytest.mark.parametrize(
    ("name", "kernel", "written"),
    [
        ("axpy", "saxpy", 5000 * 4),
        ("dot", "rocblas_dot", 4),
        ("sgemm", "Cijk", M * N * 4),
        ("dgemm", "Cijk", M * N * 8),
        ("hgemm", "Cijk", M * N * 2),
        ("batched", "Cijk", BATCHES * M * N * 4),
    ],
)
def test_a_kernel_of_the_library_is_taken_out(
    prefix: Prefix, blas: Path, tmp_path: Path, name: str, kernel: str, written: int
) -> None:
    kerncap = Kerncap(prefix, tmp_path, f"sim:{ARCH}")
    extracted = kerncap.document("extract", kernel, "-o", "out", "--", str(blas), str(tmp_path), name)
    assert extracted["baseline"]["verdict"] == "IDENTICAL", extracted
    assert extracted["arch"] == ARCH
    assert extracted["source"]["variant"] is None
    verdict = kerncap.document("validate", "out")
    assert (verdict["verdict"], verdict["written_bytes"]) == ("IDENTICAL", written)
    if kernel != "Cijk":
        return
    assert extracted["source"]["language"] == "tensile"
    assert "Tensile generated this kernel" in (tmp_path / "out/README.md").read_text()
    arguments = kerncap.document("inspect", "out")["capture"]["arguments"]
    # Declared as plain values, and found to be pointers all the same.
    pointing = {argument["name"] for argument in arguments if "pointer" in argument}
    assert {"AddressA", "AddressB", "AddressC", "AddressD"} <= pointing


def test_all_objects_of_the_library_are_loaded_in_flat_memory(  # C8
    prefix: Prefix, blas: Path, build: Callable[..., Built], run: Callable[..., Run], tmp_path: Path
) -> None:
    program = build("libraries").path
    [folder] = prefix.lib.glob("rocblas/*/library")
    words = [str(folder), f"_{ARCH}.co", f"_{ARCH}-xnack-.hsaco"]

    def said(stdout: str) -> tuple[int, int, int]:
        [line] = [line.split() for line in stdout.splitlines() if line.startswith("objects ")]
        return int(line[1]), int(line[3]), int(line[5])

    alone = run(program, *words, device=ARCH)
    assert alone.code == 0, alone.stderr
    objects, mebibytes, peak = said(alone.stdout)
    assert objects > 150
    assert mebibytes > 1000
    assert peak < 600 << 10  # the largest object a few times, not the sum of all
    kerncap = Kerncap(prefix, tmp_path, f"sim:{ARCH}")
    _, stderr = kerncap.document_and_stderr("profile", "--", str(program), *words)
    assert said(stderr)[2] < peak + (100 << 10)
