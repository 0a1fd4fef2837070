"""kerncap and a profiler that takes the table through rocprofiler-register: both see every dispatch."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from watching import HERE, ROOT, plain, watched

from kerncap.core.code.layout import CaptureState
from kerncap.core.program.control import CaptureRequest


@pytest.fixture(scope="module")
def profiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("profiler") / "libprofiler.so"
    compiler = os.environ.get("CXX", "g++").split()
    source = HERE / "programs/profiler.cpp"
    command = [
        *compiler,
        "-std=c++20",
        "-shared",
        "-fPIC",
        f"-I{ROOT / 'native'}",
        str(source),
        "-o",
        str(library),
    ]
    subprocess.run(command, check=True, timeout=120)
    return library


@pytest.mark.parametrize("tools", ["0", "1"])
def test_both_see_every_dispatch(profiler: Path, tools: str) -> None:
    """With HSA_TOOLS_ROCPROFILER_V1_TOOLS the runtime hands out the table twice; nothing is counted twice."""
    variables = {"ROCPROFILER_REGISTER_LIBRARY": str(profiler), "HSA_TOOLS_ROCPROFILER_V1_TOOLS": tools}
    bare = plain("batches")
    with watched("batches", **variables) as run:
        assert run.finish() == 7, run.err
        assert run.out == bare.stdout + "profiler: 12 dispatches\n"
        process = run.only()
        assert process.dispatches == process.timed == 12


def test_a_capture_beside_a_profiler(profiler: Path, tmp_path: Path) -> None:
    request = CaptureRequest("add_two", tmp_path / "capture", nth=2, exit_after=False)
    with watched("batches", request=request, ROCPROFILER_REGISTER_LIBRARY=str(profiler)) as run:
        assert run.finish() == 7, run.err
        assert run.status().state == CaptureState.DONE, run.status()
        assert run.out.endswith("profiler: 12 dispatches\n")
