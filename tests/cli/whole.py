"""What end-to-end tests share: programs under the interposer, by command lines, with their exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kerncap.core.native import REPLAYER, SIM_HIP, SIM_RUNTIME, find_native
from support.build import build_program
from support.package import APP

DEVICE = "sim:gfx942"

built = pytest.mark.skipif(
    any(find_native(name) is None for name in (REPLAYER, SIM_RUNTIME, SIM_HIP)),
    reason="the native part is not built (KERNCAP_NATIVE_DIR, or pip install .)",
)


def kerncap(
    *words: str, cwd: Path, code: int = 0, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """A command line of kerncap; it must end with `code`, and show no traceback."""
    environment = {**os.environ, "KERNCAP_DEVICE": DEVICE, "PYTHONPATH": str(APP), **(env or {})}
    command = [sys.executable, "-m", "kerncap", *words]
    done = subprocess.run(command, cwd=cwd, env=environment, text=True, timeout=240, capture_output=True)
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode == code, f"{words}\n{done.stdout}{done.stderr}"
    return done


def document(command: str, *words: str, cwd: Path, code: int = 0) -> Any:
    """What a command prints with --json."""
    return json.loads(kerncap(command, "--json", *words, cwd=cwd, code=code).stdout)


def extracted(program: str, kernel: str, where: Path, *options: str) -> Path:
    """The reproducer of a kernel of tests/programs/PROGRAM, in `where`."""
    command = str(build_program(program).executable)
    kerncap("extract", kernel, "-o", kernel, *options, "--", command, cwd=where)
    return where / kernel


def rebuilt(reproducer: Path, old: str, new: str, name: str = "optimized.hsaco") -> str:
    """The object of the reproducer's variant with an edit, which is taken back; its path."""
    source = reproducer / "kernel_variant.cpp"
    original = source.read_text()
    assert old in original
    source.write_text(original.replace(old, new))
    try:
        command = [sys.executable, "-m", "kerncap.cli.recompile", str(reproducer), str(reproducer / name)]
        environment = {**os.environ, "PYTHONPATH": str(APP)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        source.write_text(original)
        os.utime(source, ns=(0, 0))  # older than the object: what was built stays what is judged
    return str(reproducer / name)
