"""The source pane is where the work is: at the kernel, at what was saved, at the fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hip_tree import FLAGS, Tree, clang
from project import reproducer
from workbench_stage import Bench, FakeBench, Result, workbench

from kerncap.core.capture import manifest
from kerncap.core.replay.replayer import KernelFault

UNIT = """#include "device.h"
#include "axpy.h"
template __global__ void axpy<float>(float*, int);
"""
HEADER = [
    "#pragma once",
    '#include "device.h"',
    *(f"static __device__ inline int f{i}() {{ return {i}; }}" for i in range(60)),
    "template <typename T>",
    "__global__ void axpy(T* p, int n) {",
    "  if (lane() < n) p[lane()] += 1;",
    "}",
    *["// end"] * 60,
]
AXPY = "deps/include/axpy.h"
AT = 64  # its __global__


@pytest.fixture
def header(tree: Tree, tmp_path: Path) -> Path:
    """A reproducer whose kernel is a template in a header, at its line 64."""
    tree.write({"src/k.hip": UNIT, "include/axpy.h": "\n".join(HEADER) + "\n"})
    flags = [*FLAGS, "-I../include", "-I../src", "-c", "../src/k.hip", "-o", "k.o"]
    tree.database([("../src/k.hip", [*clang(), *flags])])
    out = tmp_path / "isolated"
    info = reproducer(out, tree.captured("src/k.hip", ["-Iinclude", "-Isrc"]), tree.root)
    document = json.loads((out / "capture" / manifest.NAME).read_text())
    manifest.write(out / "capture", {**document, "source": info.to_json(), "state": manifest.COMPLETE})
    return out


def save(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    beside = path.with_name(".beside")
    beside.write_text(text.replace(old, new))
    beside.rename(path)


def place(bench: Bench) -> tuple[str, int]:
    """The file that is shown, and the line under its cursor."""
    return bench.screen.views.source.name_shown, bench.screen.views.source.line


def in_view(bench: Bench, part: str) -> bool:
    """Whether a line with that is on the screen."""
    view = bench.screen.views.source.view
    first = view.scroll_offset.y
    return any(part in line for line in view.text.splitlines()[first : first + view.size.height])


async def test_the_first_file_is_the_kernels_own_at_its_line(
    header: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vi = tmp_path / "vi"
    vi.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\n')
    vi.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(vi))
    async with workbench(header, size=(80, 24)) as bench:
        await bench.attempts(1)
        assert place(bench) == (AXPY, AT)
        assert in_view(bench, "p[lane()] += 1")
        await bench.pilot.press("e")
        await bench.until((tmp_path / "arguments").exists)
        assert (tmp_path / "arguments").read_text().split() == [f"+{AT}", str(header / AXPY)]
    save(header / AXPY, "#pragma once\n", "#pragma once\n\n// two lines more\n")
    async with workbench(header, size=(80, 24)) as bench:
        await bench.attempts(2)
        assert place(bench)[0] == AXPY
        assert in_view(bench, "two lines more")  # what is new since the last attempt
    async with workbench(header, size=(80, 24)) as bench:
        await bench.until(lambda: bench.screen.model.ready)
        assert place(bench) == (AXPY, AT + 2)


async def test_the_pane_follows_what_is_saved(header: Path) -> None:
    async with workbench(header, size=(80, 24)) as bench:
        await bench.attempts(1)
        save(header / "deps/src/device.h", "#pragma once", "#pragma once\nnonsense;")
        await bench.attempts(2)
        await bench.pilot.press("1")
        assert place(bench) == ("deps/src/device.h", 2)
        save(header / "deps/src/device.h", "nonsense;", "")
        await bench.attempts(3)
        save(header / AXPY, "// end\n// end\n", "// end\n// the edit\n")
        await bench.attempts(4)
        assert place(bench)[0] == AXPY
        assert in_view(bench, "the edit")


async def test_the_pane_goes_to_the_line_of_a_fault(header: Path) -> None:
    fault = KernelFault(
        "write to memory that is not allocated at 0x7f0010 (4 bytes) in kernel axpy, pc 0x7000 (+0x40), "
        f"{AXPY}:65, instruction 'global_store_dword v0, v1, off', workgroup (0, 0, 0), wave 0.",
        0x7F0010,
    )
    async with workbench(header, FakeBench(Result(), Result(error=fault), Result())) as bench:
        await bench.attempts(1)
        save(header / "deps/src/device.h", "#pragma once", "#pragma once\n")
        await bench.attempts(2)
        assert place(bench) == (AXPY, 65)
        (marked,) = (line for line in bench.shows("source").splitlines() if line.startswith("▶"))
        assert "◀ write to memory that is not allocated at 0x7f0010 (4 bytes)" in marked
        save(header / AXPY, "+= 1", "+= 2")
        await bench.attempts(3)
        assert "▶" not in bench.shows("source")
