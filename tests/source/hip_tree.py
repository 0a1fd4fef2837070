"""Small HIP programs' trees, compiled by the clang that `kerncap[sim]` installs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kerncap.core.build.toolchain import zig
from kerncap.core.code.codeobject import Target
from kerncap.core.code.reading import read_code_object
from kerncap.source import SourceFinding, SourceRequest, find_source

TARGET = Target.parse("gfx942")
# What a HIP header would declare; the clang of ziglang comes without one.
DEVICE_H = """#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
static __device__ inline int lane() { return __builtin_amdgcn_workitem_id_x(); }
"""


def clang() -> list[str]:
    program = zig()
    assert program, "the tests need the ziglang package: pip install 'kerncap[sim]'"
    return [program, "clang"]


FLAGS = ["-x", "hip", "--cuda-device-only", "--offload-arch=gfx942", "-nogpuinc", "-nogpulib", "-O3"]


@dataclass
class Tree:
    """A program's tree. `captured` builds what the program would have loaded."""

    root: Path

    def write(self, files: dict[str, str]) -> Tree:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return self

    def database(self, rows: Sequence[tuple[str, Sequence[str]]], directory: str = "build") -> Path:
        """compile_commands.json in `directory`, one (file, arguments) a row."""
        folder = self.root / directory
        folder.mkdir(parents=True, exist_ok=True)
        document = [{"directory": str(folder), "file": f, "arguments": list(a)} for f, a in rows]
        path = folder / "compile_commands.json"
        path.write_text(json.dumps(document))
        return path

    def captured(self, unit: str, flags: Sequence[str] = (), name: str = "captured.hsaco") -> Path:
        """The code object of a unit, as the program has it."""
        folder = self.root.parent / "captured"
        folder.mkdir(exist_ok=True)
        made, linked = folder / f"{name}.o", folder / name
        words = [*clang(), *FLAGS, "-S", "-Xclang", "-emit-obj", *flags, unit, "-o", str(made)]
        subprocess.run(words, cwd=self.root, check=True, timeout=60)
        subprocess.run(
            [clang()[0], "ld.lld", "-shared", str(made), "-o", str(linked)], check=True, timeout=60
        )
        return linked

    def find(self, hsaco: Path, symbol: str | None = None, **more: object) -> SourceFinding:
        """What find_source answers for a kernel (the only one by default) of a code object."""
        if symbol is None:
            (symbol,) = read_code_object(hsaco).kernel_names
        options: dict[str, object] = {"source_dirs": (self.root,), **more}
        return find_source(SourceRequest(symbol, hsaco, TARGET, **options))  # type: ignore[arg-type]
