"""Our declarations of the CUDA driver API and CUPTI (native/abi/cuda*.h) against NVIDIA's headers.

They are looked for in the folders of KERNCAP_CUDA_HEADERS (separated by ':'), in /usr/local/cuda and in pip's
packages.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NATIVE = Path(__file__).resolve().parents[2] / "native"
# Ours alone: the head that all versions of a record share, and lists of functions with their shapes.
ACTIVITY = "CUpti_ActivityKernelPrefix"
RENAMED = {ACTIVITY: "CUpti_ActivityKernel9"}
# Members that have other names there.
UNLIKE = {"cache_config", "partitioned", "between", "pad", "value", "allocFlags"}


def header_folders() -> list[Path]:
    places = [Path(p) for p in os.environ.get("KERNCAP_CUDA_HEADERS", "").split(":") if p]
    places += [Path("/usr/local/cuda/include"), Path("/usr/local/cuda/extras/CUPTI/include")]
    for entry in sys.path:
        nvidia = Path(entry) / "nvidia"
        places += [nvidia / "cu13/include", nvidia / "cuda_runtime/include", nvidia / "cuda_cupti/include"]
    return [p for p in places if p.is_dir()]


def our_text() -> str:
    text = "".join((NATIVE / "abi" / name).read_text() for name in ("cuda.h", "cuda_graph.h", "cuda_cupti.h"))
    return re.sub(r"//[^\n]*", "", text)


def assertions() -> str:
    text, lines = our_text(), []
    for _, body in re.findall(r"enum (\w+) ?: \w[\w:]* \{(.*?)\};", text, re.S):
        for name in re.findall(r"(\w+) = ", body):
            lines.append(f"static_assert(static_cast<long>(ours::{name}) == static_cast<long>({name}));")
    for name, body in re.findall(r"^struct (?:alignas\(8\) )?(\w+) \{\n(.*?)^\};", text, re.S | re.M):
        if name in ("CudaDriver", "CudaGraphs", "Cupti"):
            continue
        theirs = RENAMED.get(name, name)
        members = [
            m
            for line in body.splitlines()
            if re.match(r"  [\w}]", line)
            for m in re.findall(r"(\w+)(?:\[\w+\])?(?=[,;])", line)
        ]
        for member in members:
            if re.search(rf"\b{member}\b\s*[;,\[]", body) and member not in UNLIKE and not member.isdigit():
                lines.append(f"SAME({name}, {theirs}, {member});")
    return "\n".join(dict.fromkeys(lines))


def test_declarations_agree_with_nvidias(tmp_path: Path) -> None:
    folders = header_folders()
    if not any((f / "cuda.h").is_file() for f in folders) or not any(
        (f / "cupti.h").is_file() for f in folders
    ):
        pytest.skip("no cuda.h and cupti.h; KERNCAP_CUDA_HEADERS names their folders")
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    checks = assertions()
    assert checks.count("static_assert") > 80
    assert checks.count("SAME(") > 70
    source = tmp_path / "compare.cpp"
    source.write_text(
        "#include <cstddef>\n#include <cuda.h>\n#include <cupti.h>\n"
        '#include "abi/cuda_cupti.h"\nnamespace ours = kerncap::abi;\n'
        "template <typename T> struct holder { using type = T; };\n"
        "#define SAME(a, b, m) static_assert(offsetof(ours::a, m) == offsetof(b, m) && "
        "sizeof(ours::a::m) == sizeof(b::m), #a)\n"
        f"{checks}\n"
        "static_assert(sizeof(ours::CUlaunchAttribute) == sizeof(CUlaunchAttribute));\n"
        "static_assert(sizeof(ours::CUlaunchConfig) == sizeof(CUlaunchConfig));\n"
        "static_assert(sizeof(ours::CUmemAllocationProp) == sizeof(CUmemAllocationProp));\n"
        "static_assert(sizeof(ours::CUmemAccessDesc) == sizeof(CUmemAccessDesc));\n"
        "static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS_v2) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2));\n"
        "static_assert(sizeof(ours::CUgraphEdgeData) == sizeof(CUgraphEdgeData));\n"
        "static_assert(sizeof(ours::CUpti_CallbackData) == sizeof(CUpti_CallbackData));\n"
    )
    includes = [f"-I{folder}" for folder in folders]
    words = [compiler, "-std=c++20", "-w", "-Wno-invalid-offsetof", "-fsyntax-only", f"-I{NATIVE}"]
    done = subprocess.run([*words, *includes, source], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-4000:]
