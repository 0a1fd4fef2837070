"""A process short of memory or of file descriptors: what it cannot read or run is none the worse."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kerncap.core.capture.reading import read_capture
from kerncap.core.errors import (
    DamagedCaptureError,
    DeviceError,
    KerncapError,
    ShortageError,
    UsageError,
    explained,
    shortage_in,
    unreadable,
)
from kerncap.core.native import REPLAYER, SIM_HIP, SIM_RUNTIME, find_native
from kerncap.core.replay.replayer import KernelFault, Replayer
from kerncap.core.replay.replayer_process import ReplayerProcess
from support.build import build_program
from support.package import APP

built = pytest.mark.skipif(
    any(find_native(name) is None for name in (REPLAYER, SIM_RUNTIME, SIM_HIP)),
    reason="the native part is not built (KERNCAP_NATIVE_DIR, or pip install .)",
)


def kerncap(*words: str, cwd: Path, limit: int, value: int = -1) -> subprocess.CompletedProcess[str]:
    def limited() -> None:
        if value >= 0:
            resource.setrlimit(limit, (value, value))

    return subprocess.run(
        [sys.executable, "-m", "kerncap", *words],
        cwd=cwd,
        # One thread of numpy's: each takes address space.
        env={
            **os.environ,
            "KERNCAP_DEVICE": "sim:gfx942",
            "KERNCAP_MEMORY_FILES": "4",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPATH": str(APP),
        },
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=limited,
    )


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("shortage")
    program = str(build_program("in_place").executable)
    done = kerncap("extract", "advance", "-o", "cap", "--", program, cwd=where, limit=resource.RLIMIT_AS)
    assert done.returncode == 0, done.stderr
    return where / "cap"


@pytest.mark.parametrize("number", [12, 24, 23, 11])
def test_what_cannot_be_read_for_a_shortage_is_not_damaged(number: int) -> None:
    error = OSError(number, os.strerror(number), "memory.post")
    short = unreadable("memory.post", error, DamagedCaptureError, "; it is damaged", file="memory.post")
    assert type(short) is ShortageError
    assert short.message.startswith(f"memory.post cannot be read: {os.strerror(number)}: ")
    assert "damaged" not in short.message
    told = explained(error)
    assert type(told) is ShortageError
    assert told.message.startswith("memory.post: ")
    gone = unreadable("x", OSError(2, "No such file or directory"), DamagedCaptureError, "; extract it again")
    assert type(gone) is DamagedCaptureError
    assert unreadable("x", PermissionError(13, "Permission denied")).message.startswith("x cannot be read")
    assert type(unreadable("x", PermissionError(13, "Permission denied"))) is UsageError


def test_a_shortage_is_found_in_what_a_tool_said() -> None:
    assert "ulimit -v" in shortage_in("cannot map a/memory.post: Cannot allocate memory")
    assert "ulimit -v" in shortage_in("std::bad_alloc")
    assert "ulimit -n" in shortage_in("cannot open a/memory.pre.2: Too many open files")
    assert "ulimit -u" in shortage_in("Resource temporarily unavailable")
    assert not shortage_in("a memory access fault at 0x7f00")


ABORTS = """
import os, sys
if {greets}:
    print("ok", flush=True)
    sys.stdin.readline()
sys.stderr.write("terminate called after throwing an instance of 'std::bad_alloc'\\n")
sys.stderr.write("  what():  std::bad_alloc\\n")
sys.stderr.flush()
os.abort()
"""


def _told(tmp_path: Path, script: str, request: bool) -> KerncapError:
    process = ReplayerProcess(tmp_path / "stderr", 10.0, 1.0)
    try:
        process.start([sys.executable, "-c", script], os.environ, 30.0)
        assert request
        process.request("run", 1, limit_s=30.0)
    except KerncapError as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("greets", [False, True])
def test_a_replayer_without_memory_is_no_fault_of_the_kernel(greets: bool, tmp_path: Path) -> None:
    told = _told(tmp_path, ABORTS.format(greets=greets), greets)
    assert type(told) is ShortageError
    assert "there is not enough memory; raise the limit (ulimit -v" in told.message
    mangled = ABORTS.format(greets=greets).replace("std::bad_alloc", "St9bad_alloc")
    assert type(_told(tmp_path, mangled, greets)) is ShortageError
    other = _told(tmp_path, ABORTS.format(greets=True).replace("bad_alloc", "logic_error"), True)
    assert type(other) is KernelFault
    several = """import os, sys
print("ok", flush=True)
sys.stdin.readline()
sys.stderr.write("terminate called recursively\\n")
sys.stderr.flush()
os.abort()"""
    assert type(_told(tmp_path, several, True)) is DeviceError


@pytest.mark.parametrize(
    "text",
    ["std::bad_alloc", "Resource temporarily unavailable", "no library: Too many open files"],
)
def test_what_the_replayer_is_short_of_is_told(text: str, tmp_path: Path) -> None:
    line = f"error internal 0x0 {text.replace(' ', '%20')}"
    told = _told(tmp_path, f"print({line!r}, flush=True)", False)
    assert type(told) is ShortageError
    assert told.message == f"kerncap-replay: {text}: {shortage_in(text)}"


@built
@pytest.mark.parametrize("files", [8, 9, 10, 11, 12, 13, 14, 15, 16])
def test_too_few_descriptors_are_told_as_that(files: int, capture: Path, tmp_path: Path) -> None:
    done = kerncap("validate", str(capture), cwd=tmp_path, limit=resource.RLIMIT_NOFILE, value=files)
    assert done.returncode in (0, 4), done.stderr
    assert "damaged" not in done.stderr
    if done.returncode:
        assert "ulimit -n" in done.stderr or "No file descriptors available" in done.stderr


@built
@pytest.mark.parametrize("mib", [300, 350, 400, 450, 500, 550])
def test_too_little_memory_is_told_as_that(mib: int, capture: Path, tmp_path: Path) -> None:
    done = kerncap("validate", str(capture), cwd=tmp_path, limit=resource.RLIMIT_AS, value=mib << 20)
    assert "damaged" not in done.stderr
    assert "FAIL" not in done.stdout
    assert "--memory all" not in done.stdout
    assert (done.returncode in (0, 1, 4) and "Traceback" not in done.stderr) or "import" in done.stderr


@built
@pytest.mark.parametrize("files", [4, 5, 6, 7])
def test_a_replayer_says_that_it_has_too_few_descriptors(
    files: int, capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is met by the replayer alone: this process has all that it needs open."""
    with Replayer(read_capture(capture), "sim:gfx942") as replayer:
        start = replayer.process.start
        limited = ["prlimit", f"--nofile={files}"]
        monkeypatch.setattr(
            replayer.process, "start", lambda command, *more: start([*limited, *command], *more)
        )
        told = None
        try:
            replayer.captured()
        except KerncapError as error:
            told = error
    if told is None:
        assert files > 5
    else:
        assert type(told) is ShortageError, told.message
        assert "Too many open files" in told.message
        assert "ulimit -n" in told.message


@built
def test_a_profile_without_room_for_statistics_is_no_empty_one(capture: Path, tmp_path: Path) -> None:
    program = str(build_program("in_place").executable)
    unlimited: dict[str, Any] = {"cwd": tmp_path, "limit": resource.RLIMIT_AS}
    limited = ["sh", "-c", f"ulimit -f 512; exec {program}"]
    done = kerncap("profile", "--json", "-o", "p.json", "--", *limited, **unlimited)
    assert done.returncode == 5, done.stderr
    said = "what 1 process dispatched is not known: the statistics file in "
    assert said in json.loads(done.stdout)["error"]
    assert "File too large; raise the limit on the size of files (ulimit -f)" in done.stdout
    assert "dispatched no kernel" not in done.stdout + done.stderr
    assert not (tmp_path / "p.json").exists()
    both = ["sh", "-c", f"(ulimit -f 512; exec {program}); exec {program}"]
    done = kerncap("profile", "--json", "--", *both, **unlimited)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["dispatches"] > 0
    assert any(said in warning for warning in told["warnings"])
