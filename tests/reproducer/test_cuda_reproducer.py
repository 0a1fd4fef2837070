"""Reproducers of CUDA C++ kernels: rebuilt by nvcc from copies, with the program's tree there or not."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import make_capture
import numpy as np
import pytest
from cuda_tree import CudaTree, needs_nvcc

from kerncap.core.build.compile_file import CompileFile
from kerncap.core.build.diagnostics import parse
from kerncap.core.build.recompile import recompile
from kerncap.core.build.toolchain import CompileError
from kerncap.core.capture import manifest
from kerncap.core.capture.reading import read_capture
from kerncap.core.code.reading import machine_code, read_code_object
from kerncap.core.errors import UsageError
from kerncap.core.extract.reproducer import write_reproducer
from kerncap.core.extract.reproducer_info import ReproducerInfo
from kerncap.core.loop.captures import list_captures
from kerncap.core.replay.cuda_launch import cuda_variant_launch
from kerncap.core.replay.variant_launch import variant_launch
from kerncap.tui.captures_text import capture_text
from support.package import APP

CUBINS = Path(__file__).resolve().parent.parent / "core/cubins"
DATA = 0x7F0000000000
KERNEL = """#include "scale.cuh"
__constant__ float offset[2];
namespace {
template <typename T>
__global__ void __launch_bounds__(256) scale(T* p, int n) {
  int i = lane();
  if (i < n) p[i] = twice(p[i]) + offset[1];
}
}  // namespace
int launch(float* p, int n) { scale<<<4, 64>>>(p, n); return __LINE__; }
"""
SCALE = """#pragma once
#include "../src/lane.cuh"
static __device__ float twice(float x) { return x * FACTOR; }
"""
LANE = """#pragma once
static __device__ int lane() { return blockIdx.x * blockDim.x + threadIdx.x; }
"""
OPTIONS = ["-I../include", "-DFACTOR=2.0f"]


def capture(directory: Path, cubin: bytes, symbol: str, **more: object) -> Path:
    values = np.arange(256, dtype=np.float32)
    spec = make_capture.Spec(
        cubin,
        symbol,
        (256, 1, 1),
        (64, 1, 1),
        struct.pack("<Qi", DATA, 256),
        [make_capture.Memory(DATA, values, values * 2)],
        isa="nvptx64-nvidia-cuda--sm_90",
        name="sm_90",
        simulated=False,
        cuda=make_capture.Cuda((4, 1, 1), (64, 1, 1), [(0, 8), (8, 4)], **more),  # type: ignore[arg-type]
    )
    written = make_capture.write(directory / "capture", spec)
    document = manifest.build(read_capture(written), command=["./app"], device_name="cuda")
    document["state"] = manifest.COMPLETE
    manifest.write(written, document)
    return written


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CudaTree:
    monkeypatch.setenv("KERNCAP_CACHE_DIR", str(tmp_path / "cache"))
    made = CudaTree(tmp_path / "a program")
    made.write({"src/k.cu": KERNEL, "src/lane.cuh": LANE, "include/scale.cuh": SCALE})
    words = [*OPTIONS, "-O3", "-arch=sm_90", "-dc", "../src/k.cu", "-o", "k.o"]
    made.database([("../src/k.cu", words)])
    return made


def reproducer(tree: CudaTree, out: Path) -> ReproducerInfo:
    cubin = tree.cubin("../src/k.cu", OPTIONS)
    symbol = read_code_object(cubin).kernel_names[0]
    return write_reproducer(capture(out, cubin.read_bytes(), symbol), out, source_dir=tree.root)


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def code(path: Path) -> bytes:
    made = read_code_object(path)
    found = machine_code(made, made.kernel_names[0])
    assert found
    return found


@pytest.fixture
def out(tree: CudaTree, tmp_path: Path) -> Path:
    info = reproducer(tree, tmp_path / ".partial")
    assert (info.language, info.variant, info.reason) == ("cuda", "kernel_variant.cu", None)
    assert info.rebuilt == "identical", info.notes
    assert info.files == ("kernel_variant.cu", "deps/include/scale.cuh", "deps/src/lane.cuh")
    assert info.definition == "kernel_variant.cu:5"
    os.rename(tmp_path / ".partial", tmp_path / "isolated")
    return tmp_path / "isolated"


@needs_nvcc
def test_edits_of_variant_and_headers_count_also_without_the_programs_tree(out: Path, tree: CudaTree) -> None:
    before = {p: p.read_bytes() for p in tree.root.rglob("*") if p.is_file()}
    captured = CompileFile.read(out).symbol
    first = recompile(out)
    assert first.object == out / "optimized.cubin"
    # The hashes of the path in the names of an anonymous namespace are those that were captured.
    assert read_code_object(first.object).kernel_names == [captured]
    original = code(first.object)
    edit(out / "kernel_variant.cu", "i < n", "i < n - 1")
    changed = code(recompile(out).object)
    assert changed != original
    assert {p: p.read_bytes() for p in tree.root.rglob("*") if p.is_file()} == before
    shutil.rmtree(tree.root)
    assert code(recompile(out).object) == changed
    edit(out / "deps/src/lane.cuh", "threadIdx.x", "threadIdx.y")
    assert code(recompile(out).object) not in (original, changed)


@needs_nvcc
def test_tree_changed_since_does_not_matter(out: Path, tree: CudaTree) -> None:
    original = code(recompile(out).object)
    for path in tree.root.rglob("*.cu*"):
        path.write_text("#error changed\n")
    assert code(recompile(out).object) == original


@needs_nvcc
def test_compile_errors_name_the_copies(out: Path, tree: CudaTree) -> None:
    recompile(out)
    edit(out / "kernel_variant.cu", "int i = lane();", "int i = lain();")
    edit(out / "deps/include/scale.cuh", "return x", "return y")
    with pytest.raises(CompileError) as caught:
        recompile(out)
    places = {(d.path, d.line) for d in parse(caught.value.output) if d.severity == "error"}
    assert places == {("kernel_variant.cu", 6), ("deps/include/scale.cuh", 3)}
    assert not (out / "optimized.cubin").exists(), "an older object must not be taken for the new one"
    edit(out / "kernel_variant.cu", '#include "scale.cuh"', '#include "gone.cuh"')
    with pytest.raises(CompileError) as caught:  # this one is the host's preprocessor's
        recompile(out)
    assert parse(caught.value.output)[0].path == "kernel_variant.cu"


@needs_nvcc
def test_kernel_that_needs_other_units_says_so(tree: CudaTree, tmp_path: Path) -> None:
    cubin = tree.cubin("../src/k.cu", OPTIONS)
    edit(tree.root / "src/lane.cuh", "static __device__ int lane()", "extern __device__ int other();\n//")
    edit(tree.root / "src/k.cu", "int i = lane();", "int i = other();")
    symbol = read_code_object(cubin).kernel_names[0]
    out = tmp_path / "out"
    info = write_reproducer(capture(out, cubin.read_bytes(), symbol), out, source_dir=tree.root)
    assert (info.variant, info.rebuilt) == ("kernel_variant.cu", None)
    assert any("The unchanged kernel does not rebuild here" in note for note in info.notes)
    with pytest.raises(CompileError, match="calls device code of other units") as caught:
        recompile(out)
    assert "Unresolved extern function" in caught.value.output


@needs_nvcc
def test_makefile_rebuilds(out: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(APP)}
    words = ["make", "-C", str(out), f"KERNCAP_PYTHON={sys.executable}", "recompile"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "optimized.cubin: " in done.stdout
    assert "optimized.hsaco" not in (out / "Makefile").read_text() + (out / "README.md").read_text()


@needs_nvcc
def test_variants_that_do_not_fit_are_refused(out: Path, tmp_path: Path) -> None:
    taken = read_capture(out)
    made = recompile(out).object
    assert variant_launch(taken, made).kernel is not None
    edit(out / "kernel_variant.cu", "__launch_bounds__(256)", "__launch_bounds__(32)")
    with pytest.raises(UsageError, match="compiled for blocks of at most 32 threads"):
        variant_launch(taken, recompile(out).object)
    edit(out / "kernel_variant.cu", "__constant__ float offset[2]", "__constant__ float offset[3]")
    edit(out / "kernel_variant.cu", "__launch_bounds__(32)", "")
    with pytest.raises(UsageError, match="offset has 12 bytes, 8 were captured"):
        variant_launch(taken, recompile(out).object)
    edit(out / "kernel_variant.cu", "(T* p, int n)", "(T* p, long n)")
    with pytest.raises(UsageError, match="no longer defines"):
        recompile(out)


def test_cubins_of_others_are_refused_without_a_compiler(tmp_path: Path) -> None:
    data = (CUBINS / "kernels.cubin").read_bytes()
    taken = read_capture(capture(tmp_path, data, "_Z3addPKfS0_Pfi5Mixed"))
    with pytest.raises(UsageError, match=r"takes other parameters .*than the captured kernel"):
        cuda_variant_launch(taken, CUBINS / "kernels.cubin")
    assert taken.device_kind == "cuda"
    ptx = tmp_path / "k.ptx"
    ptx.write_text("// made by hand\n.version 8.0\n.target sm_90\n.visible .entry another(\n")
    with pytest.raises(UsageError, match="has no kernel _Z3add"):
        cuda_variant_launch(taken, ptx)
    ptx.write_text(ptx.read_text().replace("another", "_Z3addPKfS0_Pfi5Mixed"))
    assert "is PTX: the driver compiles it" in cuda_variant_launch(taken, ptx).warnings[0]


def test_capture_without_source_names_the_launch_as_cuda_does(tmp_path: Path) -> None:
    data = (CUBINS / "kernels.cubin").read_bytes()
    written = capture(tmp_path, data, "_Z5large3BigcPs", cluster=(2, 1, 1), dynamic_shared=512)
    info = write_reproducer(written, tmp_path)
    assert info.variant is None
    readme = (tmp_path / "README.md").read_text()
    assert (
        "| grid | `4 x 1 x 1 blocks of 64 x 1 x 1 threads (256 in all), in clusters of 2 x 1 x 1 blocks` |"
        in readme
    )
    assert "| shared | `0 B static, 512 B dynamic a block` |" in readme
    assert "HSACO=other.cubin" in readme
    assert "VGPR" not in readme + (tmp_path / "Makefile").read_text()
    (listed,) = list_captures(tmp_path)
    shown = capture_text(listed).plain
    assert "grid      4 x 1 x 1 blocks of 64 x 1 x 1 threads (256 in all), in clusters of" in shown
    assert "work-item" not in shown
    document = manifest.read(written)
    assert document["cuda"]["grid_blocks"] == [4, 1, 1]
    assert document["cuda"]["dynamic_shared_bytes"] == 512
