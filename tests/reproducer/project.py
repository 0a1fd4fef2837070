"""Reproducers made from small programs, through the same call that extract makes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import make_capture
import numpy as np
from hip_tree import FLAGS, Tree, clang

from kerncap.core.capture import manifest
from kerncap.core.capture.reading import read_capture
from kerncap.core.code.reading import read_code_object
from kerncap.core.extract.reproducer import write_reproducer
from kerncap.core.extract.reproducer_info import ReproducerInfo
from support.package import APP

KERNEL = """#include "scale.h"
template <typename T>
__global__ void __launch_bounds__(256) scale(T* p, int n) { int i = lane(); if (i < n) p[i] = twice(p[i]); }
template __global__ void scale<float>(float*, int);
"""
HEADER = """#pragma once
#include "device.h"
static __device__ float twice(float x) { return x * FACTOR; }
"""


def program(tree: Tree) -> Path:
    """src/k.hip with a header in another directory, compiled by a command with relative paths. Returns the
    code object.
    """
    tree.write({"src/k.hip": KERNEL, "include/scale.h": HEADER})
    flags = [*FLAGS, "-I../include", "-I", "../src", "-DFACTOR=2.0f", "-c", "../src/k.hip", "-o", "k.o"]
    tree.database([("../src/k.hip", [*clang(), *flags])])
    return tree.captured("src/k.hip", ["-Iinclude", "-Isrc", "-DFACTOR=2.0f"])


def reproducer(
    out: Path, hsaco: Path, source_dir: Path | None, *, demangled: str = "", symbol: str = "", **more: object
) -> ReproducerInfo:
    """`out`/capture with that code object, and the project around it."""
    symbol = symbol or read_code_object(hsaco).kernel_names[0]
    spec = make_capture.Spec(
        hsaco.read_bytes(),
        symbol,
        (64, 1, 1),
        (64, 1, 1),
        (0x10000).to_bytes(8, "little") + (64).to_bytes(8, "little"),
        [make_capture.Memory(0x10000, np.ones(64, np.float32), np.full(64, 2, np.float32))],
        demangled=demangled,
    )
    make_capture.write(out / "capture", spec)
    document = manifest.build(
        read_capture(out / "capture"), command=["./app", "--size", "6 4"], device_name="sim:gfx942"
    )
    manifest.write(out / "capture", document)
    return write_reproducer(out / "capture", out, source_dir=source_dir, **more)  # type: ignore[arg-type]


def make(directory: Path, *targets: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`make -C directory targets`, from another directory, with this Python's kerncap."""
    return subprocess.run(
        ["make", "-C", str(directory), *targets],
        cwd=cwd or Path("/"),
        env={**os.environ, "PYTHONPATH": str(APP), "KERNCAP_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=120,
    )
