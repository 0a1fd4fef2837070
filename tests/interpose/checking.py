"""Captures that the tests of the interposer make, and what is looked at in them."""

from __future__ import annotations

import struct

import numpy as np
from watching import plain, watched

from kerncap.core.capture import records
from kerncap.core.capture.reading import read_capture
from kerncap.core.code.layout import CaptureState
from kerncap.core.program.control import CaptureRequest


def pointer(capture: records.Capture, index: int) -> int:
    """The 64-bit argument number `index`."""
    return int(struct.unpack_from("<Q", capture.kernarg.data, 8 * index)[0])


def ints(data: np.ndarray) -> np.ndarray:
    return np.frombuffer(data.tobytes(), np.int32)


def checked(request: CaptureRequest) -> records.Capture:
    """The capture, with every checksum verified and nothing left beside it."""
    assert [path.name for path in request.output.parent.iterdir()] == [request.output.name]
    capture = read_capture(request.output)
    capture.verify()
    return capture


def captured(request: CaptureRequest, program: str, *arguments: str, timing: bool = True) -> records.Capture:
    """Runs the program with the capture in it, and checks that it did what it does without."""
    bare = plain(program, *arguments)
    with watched(program, *arguments, timing=timing, request=request) as run:
        code = run.finish()
        status = run.status()
        assert status.state == CaptureState.DONE, f"{status}\n{run.err}"
        assert (code, run.out, run.err) == (bare.returncode, bare.stdout, bare.stderr)
        assert status.owner_pid == run.process.pid
        assert status.accepted == status.sequence
        assert 0 < status.started_ns < status.finished_ns
        assert 0 < status.saved_ns <= status.finished_ns - status.started_ns
        process = run.only()
        if timing:
            assert process.timed == process.dispatches
    return checked(request)
