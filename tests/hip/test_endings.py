"""Programs that end, or go on, in unusual ways are the same with the interposer loaded."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.build import Program

WAYS = [
    "return", "status", "exit", "at-exit-launch", "_exit", "quick_exit", "in-flight", "abort", "crash",
    "throw",
    "terminate", "kill", "main-thread-first", "threads", "children", "print", "signals", "close-all",
    "limits",
    "directory", "daemonize", "runtime-again", "unload", "exec", "exec-bare", "not-dumpable",
]  # fmt: skip


def test_every_way_is_tested(build_program: Callable[[str], Program], simulator: dict[str, str]) -> None:
    words = [str(build_program("endings").executable), "--way", "list"]
    listed = subprocess.run(words, env=simulator, capture_output=True, text=True, timeout=60).stdout.split()
    assert sorted(listed) == sorted(WAYS)


@pytest.mark.parametrize("way", WAYS)
def test_output_and_status_are_the_same(
    way: str, build_program: Callable[[str], Program], simulator: dict[str, str], tmp_path: Path
) -> None:
    program = [str(build_program("endings").executable), "--way", way]
    alone = subprocess.run(program, env=simulator, capture_output=True, timeout=100)
    words = [sys.executable, "-m", "kerncap", "profile", "--device", "sim:gfx942", "-o", "r.json", "--"]
    watched = subprocess.run(
        [*words, *program], env=dict(os.environ), cwd=tmp_path, capture_output=True, timeout=200
    )
    report = json.loads((tmp_path / "r.json").read_bytes())
    code = alone.returncode if alone.returncode >= 0 else 128 - alone.returncode
    assert report["exit_code"] == code
    assert watched.stdout.startswith(alone.stdout)
    assert alone.stderr in watched.stderr
    assert report["dispatches"] > 0
    assert report["lost"] == 0
    # Each dispatch has a time, or it is said why not.
    told = re.findall(r"of its last (?:(\d+) dispatches were|dispatch was) not read", str(report["warnings"]))
    unread = sum(int(number or 1) for number in told)
    assert report["timed"] + report["rejected"] + unread == report["dispatches"], report["warnings"]
    assert not any("unaccounted" in warning for warning in report["warnings"])
