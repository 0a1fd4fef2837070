"""CUDA C++: a kernel's unit and command from compile_commands.json, and nvcc's command lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from cuda_tree import ARCH, CudaTree, needs_nvcc

from kerncap.core.build.compile_command import CompileCommand
from kerncap.core.build.nvcc_command import device_options, expand_options_files, is_nvcc, virtual_arch
from kerncap.core.code.codeobject import Target
from kerncap.source import SourceFinding, SourceRequest, find_source

TARGET = Target.parse(f"nvptx64-nvidia-cuda--{ARCH}")


def command(*words: str, file: str = "/p/src/k.cu") -> CompileCommand:
    return CompileCommand(Path("/p/build"), ("nvcc", *words), Path(file))


def options(*words: str) -> list[str]:
    return device_options(command(*words), TARGET, lambda path, folder: [path])[1:]


def test_what_is_the_devices_stays_and_the_rest_goes() -> None:
    kept = [
        "-O3",
        "--use_fast_math",
        "-std=c++17",
        "-DX=1",
        "-D",
        "Y",
        "-Xcompiler",
        "-fPIC,-Wall",
        "-lineinfo",
    ]
    kept += ["-Xptxas=-v", "--maxrregcount", "64", "-march=native", "--ftz=true", "--expt-relaxed-constexpr"]
    dropped = ["-c", "-dc", "-rdc=true", "-o", "k.o", "-MD", "-MF", "k.d", "-MT", "k.o", "-gencode"]
    dropped += ["arch=compute_80,code=sm_80", "-arch=sm_90", "--threads=4", "-lcudart", "-L/x", "-dlto"]
    assert options(*kept, *dropped, "../src/k.cu") == kept
    assert options("-I../include,../other", "-isystem=/s", "-include", "../a.h") == [
        *("-I", "/p/include", "-I", "/p/other", "-isystem", "/s", "-include", "/p/a.h"),
    ]


@pytest.mark.parametrize(
    ("words", "virtual"),
    [
        ([], "compute_90"),
        (["-arch=sm_90"], "compute_90"),
        (["-gencode", "arch=compute_80,code=sm_90"], "compute_80"),
        (["--generate-code=arch=compute_90,code=[compute_90,sm_90]"], "compute_90"),
        (["-gencode=arch=compute_70,code=sm_70", "-gencode=arch=compute_80,code=compute_80"], "compute_80"),
        (["-arch=compute_75", "-code=sm_75,compute_75"], "compute_75"),
    ],
)
def test_code_is_made_through_the_virtual_arch_of_the_program(words: list[str], virtual: str) -> None:
    """`__CUDA_ARCH__` is what it was, also where the driver made the code of PTX."""
    assert virtual_arch(command(*words), TARGET) == virtual


def test_which_commands_are_nvccs() -> None:
    assert is_nvcc(command("-c", "k.cu"))
    wrapped = CompileCommand(Path("/"), ("ccache", "/usr/local/cuda/bin/nvcc", "-c", "k.cu"), Path("/k.cu"))
    assert is_nvcc(wrapped)
    assert is_nvcc(command("-x", "cu", "-c", "k.cpp", file="/k.cpp"))
    assert not is_nvcc(command("-c", "k.cpp", file="/k.cpp"))
    assert not is_nvcc(CompileCommand(Path("/"), ("g++", "-c", "k.cu"), Path("/k.cu")))


def test_options_files(tmp_path: Path) -> None:
    (tmp_path / "more.rsp").write_text('-I"a b" -DX')
    words = ["-O2", "--options-file", "more.rsp", "-c"]
    assert expand_options_files(words, tmp_path) == ["-O2", "-Ia b", "-DX", "-c"]


KERNEL = """#include "scale.cuh"
template <typename T>
__global__ void __launch_bounds__(256) scale(T* p, int n) { int i = lane(); if (i < n) p[i] = twice(p[i]); }
template __global__ void scale<float>(float*, int);
"""
HEADER = """#pragma once
#include "lane.cuh"
static __device__ float twice(float x) { return x * FACTOR; }
"""
LANE = """#pragma once
static __device__ int lane() { return blockIdx.x * blockDim.x + threadIdx.x; }
"""
OPTIONS = ["-I../include", "-DFACTOR=2.0f"]


def program(root: Path) -> CudaTree:
    """Two units, of which one instantiates the kernel that a header of another folder helps to define."""
    tree = CudaTree(root)
    tree.write(
        {
            "src/k.cu": KERNEL,
            "src/lane.cuh": LANE,
            "include/scale.cuh": HEADER.replace("lane.cuh", "../src/lane.cuh"),
            "src/other.cu": "__global__ void other(float* p) { p[0] = 1; }\n",
        }
    )
    words = ["-forward-unknown-to-host-compiler", *OPTIONS, "-O3", f"-arch={ARCH}", "-Wall", "-c"]
    tree.database([(f"../src/{u}.cu", [*words, f"../src/{u}.cu", "-o", f"{u}.o"]) for u in ("other", "k")])
    return tree


def find(tree: CudaTree, cubin: Path, symbol: str, **more: object) -> SourceFinding:
    more = {"source_dirs": (tree.root,), **more}
    return find_source(SourceRequest(symbol, cubin, TARGET, **more))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNCAP_CACHE_DIR", str(tmp_path / "cache"))


@needs_nvcc
def test_unit_that_makes_the_kernel_is_found(tmp_path: Path) -> None:
    tree = program(tmp_path / "a program")
    found = find(tree, tree.cubin("../src/k.cu", OPTIONS), "_Z5scaleIfEvPT_i")
    assert found.command is not None
    assert found.command.file == tree.root / "src/k.cu"
    assert {tree.root / "include/scale.cuh", tree.root / "src/lane.cuh"} < set(found.dependencies)
    assert found.definition is not None
    assert (found.definition.file.name, found.definition.line) == ("k.cu", 3)
    missing = find(tree, tree.cubin("../src/k.cu", OPTIONS), "_Z5scaleIdEvPT_i")
    assert missing.command is None
    assert "makes _Z5scaleIdEvPT_i" in str(missing.reason)


@needs_nvcc
def test_without_commands_the_unit_is_compiled_with_what_it_needs(tmp_path: Path) -> None:
    tree = program(tmp_path / "tree")
    (tree.root / "build/compile_commands.json").unlink()
    found = find(tree, tree.cubin("../src/k.cu", OPTIONS), "_Z5scaleIfEvPT_i", defines=("FACTOR=2.0f",))
    assert found.command is not None
    assert f"-I{tree.root / 'include'}" in found.command.arguments
    assert any("No compile command of this unit is known" in note for note in found.notes)


@pytest.mark.parametrize(
    ("symbol", "words"),
    [
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "cuBLAS's"),
        ("_ZN7cutlass6KernelI4gemmEEvNT_6ParamsE", "CUTLASS's"),
        ("nvjet_tst_128x256_64x4_2x1_v_bz_TNT", "cuBLAS's"),
        ("triton_poi_fused_add_0", "Inductor and Triton made this kernel of Python"),
        ("cupy_add__float32_float32_float32", "(NVRTC, Triton, CuPy) has no such source"),
    ],
)
def test_kernels_without_source_say_why(tmp_path: Path, symbol: str, words: str) -> None:
    found = find_source(SourceRequest(symbol, tmp_path / "no.cubin", TARGET, working_directory=tmp_path))
    assert found.command is None
    assert words in str(found.reason)
