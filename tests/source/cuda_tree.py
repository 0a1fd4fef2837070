"""Programs in CUDA C++ for tests: a tree, its compile_commands.json, and what nvcc makes of a unit."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

NVCC = shutil.which("nvcc")
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
ARCH = "sm_90"


@dataclass(frozen=True)
class CudaTree:
    """A program's tree at `root`."""

    root: Path

    def write(self, files: Mapping[str, str]) -> CudaTree:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return self

    def database(self, units: Sequence[tuple[str, Sequence[str]]], directory: str = "build") -> Path:
        """build/compile_commands.json with (file, words after the compiler)."""
        folder = self.root / directory
        folder.mkdir(parents=True, exist_ok=True)
        rows = [
            {"directory": str(folder), "file": file, "arguments": [str(NVCC or "nvcc"), *words]}
            for file, words in units
        ]
        path = folder / "compile_commands.json"
        path.write_text(json.dumps(rows))
        return path

    def cubin(self, unit: str, options: Sequence[str] = (), directory: str = "build") -> Path:
        """The unit compiled as the program's build does it, in its build folder."""
        folder = self.root / directory
        folder.mkdir(parents=True, exist_ok=True)
        made = folder / f"{Path(unit).stem}.captured.cubin"
        words = [str(NVCC), "-cubin", f"-arch={ARCH}", *options, unit, "-o", str(made)]
        subprocess.run(words, cwd=folder, check=True, timeout=120)
        return made
