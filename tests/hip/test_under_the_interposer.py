"""Programs that use HIP in every way do the same under the interposer, and every dispatch is counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from support.build import Program


@pytest.mark.parametrize("packets", ["4", ""])
@pytest.mark.parametrize(
    ("name", "arguments", "dispatches", "printed"),
    [
        ("hip_api", ["arguments"], 4, "arguments: ok"),
        ("hip_api", ["order"], 40, "order: ok"),
        ("hip_api", ["dependencies"], 55, "dependencies: ok"),
        ("hip_api", ["many"], 12000, "many: ok"),
        ("hip_api", ["modules"], 2, "modules: ok"),
        ("in_place", ["--launches", "7"], 7, "in_place: 7 launches"),
        ("pointers", [], 3, "pointers: 15.0 190"),
        ("variables", [], 3, "variables: 3 calls"),
        ("templates", [], 6, "templates: 117.0"),
        ("streams", ["--rounds", "500"], 40, "streams: 3 busy, 10 launches"),
        ("processes", ["--mode", "fork"], 18, "processes: fork, 2 children"),
        ("processes", ["--mode", "fork-after"], 5, "processes: fork-after, 2 children"),
        ("processes", ["--mode", "spawn"], 18, "processes: spawn, 2 children"),
        ("memory_kinds", [], 1, "memory_kinds: ok"),
        ("launches", ["--launches", "100000"], 100000, "launches: 100000"),
    ],
)
def test_nothing_changes_and_every_dispatch_is_counted(
    name: str,
    arguments: list[str],
    dispatches: int,
    printed: str,
    packets: str,
    build_program: Callable[[str], Program],
) -> None:
    program = [str(build_program(name).executable), *arguments]
    done = subprocess.run(
        [sys.executable, "-m", "kerncap", "profile", "--device", "sim:gfx942", "--json", "--", *program],
        env={**os.environ, "ROC_AQL_QUEUE_SIZE": packets},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    assert printed in done.stderr  # the program's stdout, where ours is the document
    report = json.loads(done.stdout)
    assert (report["dispatches"], report["timed"], report["lost"]) == (dispatches, dispatches, 0)
    assert sum(kernel["calls"] for kernel in report["kernels"]) == dispatches
