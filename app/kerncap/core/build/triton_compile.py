"""Compiling a reproducer's Triton kernel: by the program's own Python and Triton, as pinned."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerncap.core.build.compile_command import CompileCommand
from kerncap.core.build.device_compile import Compiled
from kerncap.core.build.toolchain import CompileError, Compiler, run_tool
from kerncap.core.errors import DeviceError
from kerncap.core.scratch import scratch
from kerncap.core.triton import triton_record
from kerncap.core.triton.triton_launch import LAUNCH

SCRIPT = Path(__file__).resolve().parents[2] / "triton_hook" / "compile_variant.py"


@dataclass(frozen=True)
class TritonCompile:
    """One variant. `override`: constexprs, options and grid in place of the pinned ones, as expressions."""

    directory: Path
    command: CompileCommand
    override: Mapping[str, Any] | None = None
    timeout_s: float = 600.0
    cancel: threading.Event | None = None

    @property
    def in_place(self) -> bool:
        """The copies are complete: nothing of the program's tree is read."""
        return True

    @property
    def compiler(self) -> Compiler:
        """What KERNCAP_TRITON_PYTHON names, else the program's Python, else this one."""
        named = os.environ.get("KERNCAP_TRITON_PYTHON")
        if named:
            return Compiler((named,), "triton")
        python = self.command.arguments[0]
        if os.access(python, os.X_OK):
            return Compiler((python,), "triton")
        if not os.access(sys.executable, os.X_OK):
            raise DeviceError(
                f"{python} is not on this machine: name a Python with Triton in KERNCAP_TRITON_PYTHON"
            )
        return Compiler((sys.executable,), "triton", note=f"{python} is gone; {sys.executable} is used.")

    def build(self, output: Path) -> Compiled:
        """The code object, and how it is launched beside it. Raises CompileError, and DamagedCaptureError
        where the record of it is damaged.
        """
        triton_record.read(self.directory / "capture")  # what Triton's Python says of that is no compiler's
        started = time.perf_counter()
        output.parent.mkdir(parents=True, exist_ok=True)
        with scratch("build", output.parent) as place:
            made = Path(place) / output.name
            words = [*self.compiler.words, "-s", str(SCRIPT), str(self.directory), str(made)]
            if self.override:
                words.append(json.dumps(self.override))
            finished = run_tool(words, directory=self.directory, timeout_s=self.timeout_s, cancel=self.cancel)
            launch = Path(f"{made}{LAUNCH}")
            if finished.code or not made.exists() or not launch.exists():
                raise CompileError(self._message(finished.output, finished.code), finished.output)
            os.replace(launch, f"{output}{LAUNCH}")
            os.replace(made, output)
        return Compiled(output, finished.output, {"compile": time.perf_counter() - started})

    def _message(self, output: str, code: int) -> str:
        lines = output.strip().splitlines()
        if any("No module named 'triton'" in line for line in lines):
            return (
                f"{self.compiler.words[0]} has no Triton: name a Python that has it in KERNCAP_TRITON_PYTHON."
            )
        return f"Triton could not compile kernel_variant.py (exit code {code})."
