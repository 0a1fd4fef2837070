"""HSA programs of our own, built against the simulated runtime, and runs of programs with the interposer."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kerncap.core.code.layout import CaptureState
from kerncap.core.native import INTERPOSER_HSA, SIM_RUNTIME, native_path
from kerncap.core.program.control import CaptureRequest, CaptureStatus, Session
from kerncap.core.program.live import KernelStats, LiveReader, ProcessStats, Snapshot
from support.build import build_program, compile_device, simulator_environment

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIMIT_S = 120.0


def build_hsa_program(name: str) -> Path:
    """The program tests/interpose/programs/NAME.cpp with kernels.hsaco beside it; built once."""
    sources = [
        HERE / "programs" / f"{name}.cpp",
        HERE / "programs/hsa_program.h",
        HERE / "programs/kernels.hip",
    ]
    runtime = native_path(SIM_RUNTIME)
    content = b"".join(path.read_bytes() for path in sources)
    key = hashlib.sha256(content + f"{runtime}\0{HERE}".encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"kerncap-hsa-programs-{os.getuid()}" / key
    if (folder / name).exists():
        return folder / name
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=folder.parent))
    compile_device(sources[2], scratch / "kernels.hsaco")
    compiler = os.environ.get("CXX", "g++").split()
    command = [
        *compiler, "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'native'}",
        str(sources[0]), str(runtime), "-pthread", "-o", str(scratch / name),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    try:
        scratch.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(scratch)
    return folder / name


def executable(name: str) -> Path:
    """A program of this folder, or else of tests/programs, by its name."""
    if (HERE / "programs" / f"{name}.cpp").exists():
        return build_hsa_program(name)
    return build_program(name).executable


@dataclass
class Watched:
    """A run of a program with the interposer."""

    session: Session
    process: subprocess.Popen[str]
    reader: LiveReader
    out: str = ""
    err: str = ""

    def status(self) -> CaptureStatus:
        return self.session.status()

    def wait_state(self, *states: CaptureState, timeout: float = LIMIT_S) -> CaptureStatus:
        """Waits until the capture is in one of `states`; fails when the time is up."""
        deadline = time.monotonic() + timeout
        while (status := self.status()).state not in states:
            assert time.monotonic() < deadline, f"{status} after {timeout} s"
            time.sleep(0.002)
        return status

    def peak_memory(self) -> int:
        """Waits for the program's end; the most memory that it had resident, in KiB."""
        peak = 0
        while self.process.poll() is None:
            try:
                text = Path(f"/proc/{self.process.pid}/status").read_text()
            except OSError:
                break
            if found := re.search(r"VmHWM:\s+(\d+) kB", text):
                peak = int(found[1])
            time.sleep(0.01)
        return peak

    def wait_dispatches(self, count: int) -> None:
        """Waits until so many dispatches were seen."""
        deadline = time.monotonic() + LIMIT_S
        while self.reader.snapshot().total("dispatches") < count:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def finish(self, timeout: float = LIMIT_S) -> int:
        """Waits for the program; keeps what it printed."""
        self.out, self.err = self.process.communicate(timeout=timeout)
        return self.process.returncode

    def snapshot(self) -> Snapshot:
        return self.reader.snapshot()

    def only(self) -> ProcessStats:
        processes = self.snapshot().processes
        assert len(processes) == 1, processes
        return processes[0]

    def kernels(self) -> dict[str, KernelStats]:
        return {kernel.name: kernel for kernel in self.snapshot().kernels}


def environment(session: Path | None, **more: str) -> dict[str, str]:
    """The environment of a program with the interposer; without a session it is to stay inert."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KERNCAP_")}
    named = {"KERNCAP_SESSION": str(session)} if session else {}
    return {
        **clean,
        **simulator_environment(),
        "LD_PRELOAD": str(native_path(INTERPOSER_HSA)),
        **named,
        **more,
    }


@contextmanager
def watched(
    name: str,
    *arguments: str,
    timing: bool = True,
    request: CaptureRequest | None = None,
    preexec: Callable[[], None] | None = None,
    **variables: str,
) -> Iterator[Watched]:
    """Starts a program in a session of its own; ends it on leaving."""
    command = [str(executable(name)), *arguments]
    with Session.create(timing=timing) as session, LiveReader(session.directory) as reader:
        if request is not None:
            session.request_capture(request)
        process = subprocess.Popen(
            command,
            env=environment(session.directory, **variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=preexec,
        )
        try:
            yield Watched(session, process, reader)
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()


def plain(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The same program without kerncap."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("KERNCAP_")}
    return subprocess.run(
        [str(executable(name)), *arguments],
        env={**clean, **simulator_environment()},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
