"""What hooks functions (native/interpose/cuda: hook, movable_code), under AddressSanitizer and UBSan."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "native"


def test_beginnings_of_functions_and_hooks(tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    parts = [NATIVE / "interpose/cuda/hook.cpp", NATIVE / "interpose/cuda/movable_code.cpp"]
    tests = [HERE / "unit/hooks.cpp", HERE.parent / "interpose/unit/main.cpp"]
    words = [compiler, "-std=c++20", "-O1", "-fsanitize=address,undefined", "-Wall", "-Wextra"]
    includes = [f"-I{NATIVE}", f"-I{HERE.parent / 'interpose'}"]
    program = tmp_path / "hooks"
    command = [*words, *includes, *map(str, parts + tests), "-o", str(program)]
    subprocess.run(command, check=True, timeout=300)
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed checks" in done.stdout
