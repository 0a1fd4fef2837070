"""The published steps, typed one by one on the demonstration program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kerncap.demo.building import build
from kerncap.demo.edits import HOIST

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="the steps use make")


def test_the_six_steps(tmp_path: Path) -> None:
    build(tmp_path / "decoder", "sim:gfx942")
    environment = {**os.environ, "KERNCAP_DEVICE": "sim:gfx942"}

    def step(*words: str) -> str:
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200
        )
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout

    kerncap = [sys.executable, "-m", "kerncap"]
    command = "./decoder/build/decode --tokens 2 --no-check"
    step(*kerncap, "extract", "mul_mat_vec_q", "--cmd", command, "--source-dir", "./decoder")
    where = "./isolated/mul_mat_vec_q"
    before = json.loads(step(*kerncap, "replay", where, "--iterations", "10", "--json"))
    HOIST.apply(tmp_path / where / "kernel_variant.cpp")
    step("make", "-C", where, "recompile")
    variant = ["--hsaco", f"{where}/optimized.hsaco"]
    after = json.loads(step(*kerncap, "replay", where, *variant, "--iterations", "10", "--json"))
    verdict = json.loads(step(*kerncap, "validate", where, *variant, "--json"))

    assert before["median_ns"] > 2 * after["median_ns"]
    assert (before["iterations"], after["iterations"]) == (10, 10)
    assert verdict["verdict"] == "IDENTICAL"
    assert verdict["compared_bytes"] == verdict["written_bytes"] == 2048
