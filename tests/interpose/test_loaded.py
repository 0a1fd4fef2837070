"""What processes note of themselves as they start and end: programs that are too short to be looked at, and
what is said of CUDA programs behind a shell, a script or Python.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from watching import environment

from kerncap.core.device import runtimes
from kerncap.core.device.cuda_driver import Driver
from kerncap.core.device.runtimes import NOTES, RuntimeWatch
from kerncap.core.program.control import Session
from kerncap.core.program.profile import profile

# nvcc puts kernels into this section, in programs and in libraries.
KERNELS = """
__attribute__((section(".nv_fatbin"), used)) static const char kernels[64] = "no kernel";
int main(void) { return 3; }
"""
LOADS = "import ctypes; ctypes.CDLL('./libsx.so')"
STARTS = "import subprocess; subprocess.run(['./saxpy'])"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """./saxpy, ./libsx.so with CUDA kernels, ./linked with a shared cudart, and scripts that start saxpy."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runtimes, "driver", lambda: Driver("", (), "there is no libcuda.so.1"))
    Path("saxpy.c").write_text(KERNELS)
    Path("cudart.c").write_text("int cudaMalloc(void) { return 35; }")
    Path("linked.c").write_text("int cudaMalloc(void); int main(void) { return cudaMalloc(); }")
    name = "libcudart.so.12"
    for words in (
        ["saxpy.c", "-o", "saxpy"],
        ["-shared", "-fPIC", "saxpy.c", "-o", "libsx.so"],
        ["-shared", "-fPIC", f"-Wl,-soname,{name}", "cudart.c", "-o", name],
        ["linked.c", f"./{name}", "-Wl,-rpath,$ORIGIN", "-o", "linked"],
    ):
        subprocess.run(["cc", *words], check=True, timeout=60)
    for script, text in (("runs", "./saxpy\ntrue"), ("execs", "exec ./saxpy")):
        Path(script).write_text(f"#!/bin/sh\n{text}\n")
        Path(script).chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "sign"),
    [
        (["./saxpy"], "./saxpy holds CUDA kernels"),
        (["sh", "-c", "./saxpy"], "/saxpy holds CUDA kernels"),
        (["sh", "-c", "./saxpy; true"], "/saxpy holds CUDA kernels"),
        (["./runs"], "/saxpy holds CUDA kernels"),
        (["./execs"], "/saxpy holds CUDA kernels"),
        ([sys.executable, "-c", STARTS], "/saxpy holds CUDA kernels"),
        ([sys.executable, "-c", LOADS], "/libsx.so holds CUDA kernels"),
        (["sh", "-c", "./linked; true"], "linked is linked with libcudart.so.12"),
    ],
    ids=["bare", "sh -c", "sh -c and more", "script", "script that execs", "python", "ctypes", "cudart"],
)
def test_a_short_cuda_program_is_named_behind_whatever_starts_it(
    programs: Path, command: list[str], sign: str
) -> None:
    report = profile(command, device="sim:gfx942")
    (said,) = (w for w in report.warnings if w.startswith("no dispatch was seen. "))
    assert "It is a CUDA program (" in said
    assert f"{sign}), and a simulated AMD GPU cannot run its kernels. --device cuda watches it" in said


def test_a_short_program_without_a_gpu_is_not_said_to_have_ended_too_early() -> None:
    report = profile(["true"], device="sim:gfx942")
    (said,) = (w for w in report.warnings if w.startswith("no dispatch was seen. "))
    assert said.endswith("No GPU runtime (libamdhip64, libhsa-runtime64, libcuda) was seen in it.")


def _notes(
    session: Session, *command: str, preexec: Callable[[], None] | None = None, code: int = 0
) -> list[str]:
    done = subprocess.run(
        command, env=environment(session.directory), timeout=60, preexec_fn=preexec, capture_output=True
    )
    assert (done.returncode, done.stderr) == (code, b"")
    path = session.directory / NOTES
    return path.read_text().splitlines() if path.exists() else []


def test_each_file_is_noted_once_however_many_processes_have_it() -> None:
    with Session.create() as session:
        first = _notes(session, "sh", "-c", "true")
        assert os.path.realpath("/bin/sh") in [os.path.realpath(path) for path in first]
        assert not any(path.startswith(("/usr/lib/", "/lib/")) for path in first)
        assert _notes(session, "sh", "-c", "for i in 1 2 3 4 5; do /bin/sh -c true; done") == first
        assert (session.directory / NOTES).stat().st_mode & 0o777 == 0o600
        watch = RuntimeWatch(session.directory)
        assert watch.read_notes()
        assert watch.interposed


def test_a_program_that_may_write_no_file_goes_on() -> None:
    with Session.create() as session:
        none = (0, 0)
        assert (
            _notes(
                session, "sh", "-c", "exit 0", preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, none)
            )
            == []
        )


def test_without_a_session_nothing_is_written(tmp_path: Path) -> None:
    subprocess.run(["true"], env=environment(None), cwd=tmp_path, check=True, timeout=60)
    assert list(tmp_path.iterdir()) == []
