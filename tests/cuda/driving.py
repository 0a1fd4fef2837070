"""Programs under the CUDA interposer, and kerncap-replay-cuda over its pipe."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from urllib.parse import unquote

import numpy as np

from kerncap.core.capture.reading import read_capture
from kerncap.core.capture.records import Capture
from kerncap.core.code.layout import CaptureState, MemoryMode
from kerncap.core.native import native_path
from kerncap.core.program.control import CaptureRequest, CaptureStatus, Session
from kerncap.core.program.live import LiveReader, Snapshot

# The protocol's words once more (native/replay/protocol.h): the GPU machine need not have what kerncap needs.
TIMES = np.dtype([("start", "<u8"), ("end", "<u8")])
INTERPOSER = "libkerncap_cuda.so"
REPLAYER = "kerncap-replay-cuda"
STANDIN = Path(__file__).resolve().parents[1] / "support" / "triton_standin"  # for Triton and torch
ENDED = {CaptureState.DONE, CaptureState.FAILED, CaptureState.CANCELLED, CaptureState.AMBIGUOUS}


def escape(text: str) -> str:
    return "".join(c if 32 < ord(c) < 127 and c != "%" else f"%{ord(c):02X}" for c in text) or "-"


def unescape(word: str) -> str:
    return "" if word == "-" else unquote(word)


@dataclass
class Watched:
    """A program that ran in a session."""

    code: int
    output: str
    errors: str
    wall_s: float
    snapshot: Snapshot
    status: CaptureStatus
    states: dict[CaptureState, float]  # when each state of the request was first seen, in seconds

    def calls(self, name: str) -> int:
        """How often kernels whose name holds `name` were launched."""
        return sum(k.calls for k in self.snapshot.unordered if name in k.name)


def watch(
    command: Sequence[str | os.PathLike[str]],
    *,
    request: CaptureRequest | None = None,
    environment: Mapping[str, str] | None = None,
    timing: bool = True,
    limit_s: float = 120,
) -> Watched:
    """Runs a program with the interposer in it, and a capture armed if one is asked for."""
    with Session.create(timing=timing) as session:
        if request is not None:
            session.request_capture(request)
        variables = {
            **os.environ,
            **(environment or {}),
            "CUDA_INJECTION64_PATH": str(native_path(INTERPOSER)),
            "KERNCAP_SESSION": str(session.directory),
        }
        start = time.monotonic()
        states: dict[CaptureState, float] = {}
        over = threading.Event()

        def follow() -> None:
            while not over.wait(0.002):
                states.setdefault(session.status().state, time.monotonic() - start)

        follower = threading.Thread(target=follow)
        follower.start()
        try:
            done = subprocess.run(
                [os.fspath(word) for word in command],
                env=variables,
                capture_output=True,
                text=True,
                timeout=limit_s,
                check=False,
            )
        finally:
            over.set()
            follower.join()
        wall = time.monotonic() - start
        with LiveReader(session.directory) as reader:
            snapshot = reader.snapshot()
        status = session.status()
        return Watched(done.returncode, done.stdout, done.stderr, wall, snapshot, status, states)


def capture(
    command: Sequence[str | os.PathLike[str]],
    kernel: str,
    output: Path,
    *,
    nth: int = 1,
    memory: MemoryMode = MemoryMode.REACHABLE,
    exit_after: bool = False,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 60,
    limit_s: float = 120,
) -> tuple[Watched, Capture | None]:
    """One dispatch of a program, captured to `output`; the capture is None where it was not made."""
    wanted = CaptureRequest(
        kernel, output, nth=nth, memory=memory, exit_after=exit_after, timeout_s=timeout_s
    )
    watched = watch(command, request=wanted, environment=environment, limit_s=limit_s)
    return watched, read_capture(output) if watched.status.state is CaptureState.DONE else None


class ReplayError(Exception):
    """What the replayer answered instead of ok: `kind` and a sentence."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


@dataclass
class Answer:
    values: dict[str, str] = field(default_factory=dict)
    data: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def number(self, key: str) -> int:
        return int(self.values[key], 0)


class Replay:
    """kerncap-replay-cuda with one capture."""

    def __init__(self, capture: Capture, *options: str, environment: Mapping[str, str] | None = None) -> None:
        self.capture = capture
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [str(native_path(REPLAYER)), str(capture.path), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **(environment or {})},
        )
        try:
            self.greeting = self._read()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Replay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._errors.close()

    def errors(self) -> str:
        """What it wrote on stderr."""
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")

    def ask(self, *words: object) -> Answer:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(escape(str(word)) for word in words).encode() + b"\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Answer:
        answer = Answer()
        assert self._process.stdout is not None
        while True:
            line = self._process.stdout.readline()
            if not line:
                raise ReplayError("ended", f"status {self._process.wait()}: {self.errors()}")
            words = line.decode().rstrip("\n").split(" ")
            if words[0] == "note":
                answer.notes.append(f"{words[1]} {unescape(words[2])}")
            elif words[0] == "data":
                answer.data[words[1]] = self._process.stdout.read(int(words[2]))
            elif words[0] == "ok":
                answer.values = {
                    key: unescape(value) for key, _, value in (w.partition("=") for w in words[1:]) if key
                }
                return answer
            elif words[0] == "error":
                raise ReplayError(words[1], unescape(words[3]))
            else:
                raise ReplayError("protocol", line.decode())

    def load(self, path: Path | None = None, symbol: str | None = None) -> int:
        """Loads a variant (default: the captured code); its number."""
        dispatch = self.capture.dispatch
        words = (dispatch.private_segment_size, dispatch.group_segment_size, "")
        return self.ask("load", path or self.capture.code_path(), symbol or dispatch.symbol, *words).number(
            "variant"
        )

    def run(self, variant: int, count: int = 1, *, cache: str = "warm", limit_s: float = 20) -> np.ndarray:
        """Durations in ns."""
        answer = self.ask("run", variant, count, cache, 1, "time", "restore", limit_s)
        times = np.frombuffer(answer.data["times"], TIMES)
        return (times["end"] - times["start"]).astype(np.int64)

    def differences(
        self, variant: int, scope: str = "all", against: str = "application"
    ) -> tuple[int, int, float]:
        """Bytes compared, bytes that differ, seconds."""
        answer = self.ask("compare", against, scope, variant, "", 0)
        return answer.number("compared"), answer.number("different"), float(answer.values["seconds"])
