"""Sessions: private, swept when their owner is gone, and one request at a time."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kerncap.core.code import layout
from kerncap.core.code.layout import CaptureState
from kerncap.core.errors import UsageError
from kerncap.core.program.control import (
    CaptureRequest,
    Session,
    process_start,
    session_root,
    sweep_stale_sessions,
)


@pytest.fixture(autouse=True)
def _runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_session_is_its_owners_alone_and_goes_when_it_ends(tmp_path: Path) -> None:
    with Session.create() as session:
        assert session.directory.parent == tmp_path == session_root()
        assert stat.S_IMODE(os.stat(session.directory).st_mode) == 0o700
        control = session.directory / "control"
        assert stat.S_IMODE(os.stat(control).st_mode) == 0o600
        assert control.read_bytes()[:8] == layout.CONTROL_MAGIC
        assert control.stat().st_size == layout.CONTROL.itemsize
    assert not session.directory.exists()


def test_session_goes_by_an_error_too(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), Session.create():
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_sweep_takes_the_sessions_of_dead_owners_alone(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    )
    dead = tmp_path / f"kerncap-{int(done.stdout)}-123-abcd"
    reused = tmp_path / f"kerncap-{os.getpid()}-{(process_start(os.getpid()) or 0) + 1}-abcd"
    other = tmp_path / "kerncap-notes"
    for directory in (dead, reused, other):
        directory.mkdir()
        (directory / "x").write_text("x")
    (tmp_path / "kerncap-1-1-ab").symlink_to(other)
    with Session.create() as session:
        assert session.directory.exists()
        assert not dead.exists()
        assert not reused.exists()
        assert (other / "x").exists()
        assert sweep_stale_sessions() == []


def test_request_is_laid_out_as_the_header_says(tmp_path: Path) -> None:
    with Session.create() as session:
        request = CaptureRequest(
            "mul<(type)39>", tmp_path / "out", nth=3, grid=(64, 2, 1), timeout_s=1.5, exit_after=False
        )
        assert session.request_capture(request) == 1
        import numpy as np

        block = np.fromfile(session.directory / "control", layout.CONTROL, 1)[0]
        assert bytes(block["pattern"]) == b"mul<(type)39>"
        assert os.fsdecode(bytes(block["output"])) == str(tmp_path / "out")
        assert (block["nth"], block["timeout_ms"], block["exit_after"], list(block["grid"])) == (
            3,
            1500,
            0,
            [64, 2, 1],
        )
        assert (block["request"], block["request_sequence"]) == (1, 1)
        assert session.status().state == CaptureState.IDLE
        assert session.cancel() == 2


def test_shorter_pattern_leaves_nothing_of_the_longer_one(tmp_path: Path) -> None:
    with Session.create() as session:
        session.request_capture(CaptureRequest("a" * 1000, tmp_path / "out"))
        session.request_capture(CaptureRequest("bc", tmp_path / "out"))
        data = (session.directory / "control").read_bytes()
        assert b"a" * 10 not in data
        assert b"bc\0" in data


@pytest.mark.parametrize("pattern", ["", "a\0b", "x" * layout.PATTERN_BYTES])
def test_pattern_that_does_not_fit_is_refused(tmp_path: Path, pattern: str) -> None:
    with Session.create() as session, pytest.raises(UsageError):
        session.request_capture(CaptureRequest(pattern, tmp_path / "out"))


def test_named_session_stays_and_is_opened_again(tmp_path: Path) -> None:
    Session.create(directory=tmp_path / "mine").close()
    with Session.open(tmp_path / "mine") as session:
        assert session.status().processes == 0
    assert (tmp_path / "mine" / "control").exists()
    with pytest.raises(UsageError, match="exists already: name"):
        Session.create(directory=tmp_path / "mine")
    (tmp_path / "mine" / "control").write_bytes(b"short")
    with pytest.raises(UsageError, match="another version"):
        Session.open(tmp_path / "mine")
