"""A session: the private directory that kerncap and the programs it watches share.

`Session.create()` makes the directory and its control block, `request_capture` arms a capture in whatever
runs (or will run) with that session, and `status` says how far it has come.
"""

from __future__ import annotations

import mmap
import os
import secrets
import shutil
import stat
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kerncap.core.code import layout
from kerncap.core.code.layout import CaptureState, MemoryMode, RequestKind
from kerncap.core.errors import DeviceError, UsageError, unwritable, way_out
from kerncap.core.files import check_directory
from kerncap.core.scratch import owned_prefix, sweep
from kerncap.core.scratch import process_start as process_start
from kerncap.core.units import many

MOST_DISPATCHES = 2**63 - 1
TRITON_HOOK = "triton_hook"  # what Python programs that are watched execute when they import Triton
_DEVICE = "device"  # a file with the name of the device that the session was made for
_LEAST_FREE = 64 << 20  # a statistics file is sparse, but its rows and names must fit


def session_root() -> Path:
    """Where sessions are made: XDG_RUNTIME_DIR where it is ours and has room, else the temporary
    directory.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        try:
            info = os.stat(runtime)
            room = os.statvfs(runtime)
            if (
                stat.S_ISDIR(info.st_mode)
                and info.st_uid == os.getuid()
                and os.access(runtime, os.W_OK | os.X_OK)
                and room.f_bavail * room.f_frsize >= _LEAST_FREE
            ):
                return Path(runtime)
        except OSError:
            pass
    return Path(tempfile.gettempdir())


def sweep_stale_sessions(root: Path | None = None) -> list[Path]:
    """Removes session directories of ours whose owner is gone; returns what was removed."""
    return sweep(root or session_root())


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """Which dispatch to capture, and to where."""

    pattern: str  # id, name, or part of a name
    output: Path  # directory to create; its parent exists
    nth: int = 1  # the n-th dispatch of the kernel in its process, from 1; 0: the next one
    exact: bool = False  # `pattern` is an id or a mangled name
    memory: MemoryMode = MemoryMode.REACHABLE
    exit_after: bool = True
    timeout_s: float = 600.0  # for draining the queues, and for the dispatch itself
    grid: tuple[int, int, int] = (0, 0, 0)  # all zero: any
    only_pid: int = 0  # 0: any process


@dataclass(frozen=True, slots=True)
class CaptureStatus:
    """How far the last request has come."""

    sequence: int
    accepted: int
    state: CaptureState
    owner_pid: int
    bytes_done: int
    bytes_total: int
    started_ns: int
    saved_ns: int
    finished_ns: int
    processes: int
    message: str


_fence_lock = threading.Lock()


def _fence() -> None:
    # Taking and releasing a lock is a full barrier on every processor that Python runs on.
    with _fence_lock:
        pass


class Session:
    """A session directory with its control block mapped. Use as a context manager: leaving it removes the
    directory.
    """

    def __init__(self, directory: Path, *, owned: bool) -> None:
        self.directory = directory
        self._owned = owned
        fd = os.open(directory / "control", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            self._map = mmap.mmap(fd, layout.CONTROL.itemsize)
        finally:
            os.close(fd)
        self._block = np.frombuffer(self._map, layout.CONTROL, 1)

    @classmethod
    def create(cls, *, timing: bool = True, directory: Path | None = None, device: str = "") -> Session:
        """Makes a new session: under `session_root()`, removed on leaving, or as `directory`, which is kept.
        `device`: the name of the device that its programs are to run on, for who opens it later.

        Raises DeviceError where no directory can be made, UsageError where `directory` exists.
        """
        made = False
        where = directory or session_root() / f"{owned_prefix()}{secrets.token_hex(4)}"
        if directory is None:
            sweep_stale_sessions()
        try:
            where.mkdir(mode=0o700)
            made = True
            where.chmod(0o700)
            block = np.zeros(1, layout.CONTROL)
            block["magic"] = layout.CONTROL_MAGIC
            block["version"] = layout.VERSION
            block["bytes"] = layout.CONTROL.itemsize
            block["front_pid"] = os.getpid() if directory is None else 0
            block["timing"] = 1 if timing else 0
            temporary = where / "control.new"
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(block.tobytes())
            if device:
                (where / _DEVICE).write_text(f"{device}\n", "utf-8")
            temporary.rename(where / "control")
            (where / TRITON_HOOK).symlink_to(Path(__file__).resolve().parents[2] / TRITON_HOOK)
        except FileExistsError:
            what = "" if (where / "control").exists() else " and is no session of kerncap"
            raise UsageError(f"{where} exists already{what}: name a directory that does not exist") from None
        except OSError as error:
            if made:
                shutil.rmtree(where, ignore_errors=True)
            if directory is not None:
                raise unwritable(f"the session {where}", error) from None
            raise unwritable(
                f"the session directory {where} (XDG_RUNTIME_DIR and TMPDIR say where it is made)",
                error,
                DeviceError,
            ) from None
        return cls(where, owned=directory is None)

    @classmethod
    def open(cls, directory: Path) -> Session:
        """Opens a session that was made earlier (with `kerncap env --session`); leaving it keeps the
        directory.
        """
        check_directory(directory, "session")
        try:
            info = os.lstat(directory / "control")
        except OSError as error:
            raise UsageError(
                f"{directory} is no kerncap session: {error.strerror}: {directory / 'control'}"
            ) from None
        if info.st_uid != os.getuid():
            raise UsageError(f"{directory} is a session of another user")
        if info.st_size != layout.CONTROL.itemsize:
            raise UsageError(
                f"{directory} was made by another version of kerncap: its control block has "
                f"{info.st_size} bytes, "
                f"this version's has {layout.CONTROL.itemsize}. Make a new one with `kerncap env "
                "--session DIR`."
            )
        session = cls(directory, owned=False)
        if (
            session._block["magic"][0] != layout.CONTROL_MAGIC
            or int(session._block["version"][0]) != layout.VERSION
        ):
            session.close()
            raise UsageError(f"{directory}/control is no control block of this version of kerncap")
        return session

    @property
    def device(self) -> str:
        """The name of the device that it was made for; "" where that is not known."""
        try:
            return (self.directory / _DEVICE).read_text("utf-8").strip()
        except (OSError, ValueError):
            return ""

    @property
    def unwatched(self) -> str:
        """Why processes of the session have no statistics file, with the way out; "" where all have one."""
        count, number = int(self._block["unwatched"][0]), int(self._block["unwatched_error"][0])
        if not count:
            return ""
        why = os.strerror(number)
        return (
            f"what {many(count, 'process')} dispatched is not known: the statistics file in {self.directory} "
            f"cannot be made: {why}; {way_out(number) or 'XDG_RUNTIME_DIR and TMPDIR name another place'}"
        )

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unmaps the control block, and removes the directory if this process made it for itself."""
        if self.__dict__.pop("_block", None) is None:
            return
        with suppress(BufferError):  # an error on its way out may still look at the block
            self._map.close()
        if self._owned:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _send(self, request: RequestKind) -> int:
        block = self._block
        block["request"] = int(request)
        _fence()
        sequence = int(block["request_sequence"][0]) + 1
        block["request_sequence"] = sequence
        _fence()
        return sequence

    def request_capture(self, request: CaptureRequest) -> int:
        """Arms a capture; returns its sequence number. A request that is only armed is replaced.

        Raises UsageError where the names do not fit, or a capture is being written at this moment.
        """
        pattern = request.pattern.encode("utf-8", "surrogateescape")
        output = os.fsencode(request.output)
        if not pattern or b"\0" in pattern:
            raise UsageError("a kernel's name cannot be empty or hold a NUL byte")
        if len(pattern) >= layout.PATTERN_BYTES:
            raise UsageError(
                f"a kernel's name of {len(pattern)} bytes is longer than "
                f"{layout.PATTERN_BYTES - 1}; use its id"
            )
        if len(output) >= layout.PATH_BYTES:
            raise UsageError(
                f"the output's path has {len(output)} bytes; at most {layout.PATH_BYTES - 1} are possible"
            )
        if self.status().state.busy:
            raise UsageError("a capture is being written in this session; cancel it or wait for its end")
        block = self._block
        for name, value in (
            ("memory", int(request.memory)),
            ("nth", request.nth),
            ("timeout_ms", max(1, int(request.timeout_s * 1000))),
            ("exit_after", int(request.exit_after)),
            ("pattern_exact", int(request.exact)),
            ("only_pid", request.only_pid),
            ("pattern", pattern),
            ("output", output),
            # The status of an earlier request must not be taken for this one's.
            ("bytes_done", 0),
            ("bytes_total", 0),
            ("saved_ns", 0),
            ("message", b""),
            ("owner_pid", 0),
            ("state", int(CaptureState.IDLE)),
        ):
            block[name] = value
        block["grid"] = request.grid
        return self._send(RequestKind.CAPTURE)

    def cancel(self) -> int:
        """Asks for the end of whatever capture is armed or running; what it has written is removed by its
        process.
        """
        return self._send(RequestKind.CANCEL)

    def status(self) -> CaptureStatus:
        """The state of the last request."""
        block = self._block[0]
        state = int(block["state"])
        _fence()  # `message` is written before `state`
        return CaptureStatus(
            sequence=int(block["request_sequence"]),
            accepted=int(block["accepted_sequence"]),
            state=CaptureState(state) if state in CaptureState._value2member_map_ else CaptureState.IDLE,
            owner_pid=int(block["owner_pid"]),
            bytes_done=int(block["bytes_done"]),
            bytes_total=int(block["bytes_total"]),
            started_ns=int(block["started_ns"]),
            saved_ns=int(block["saved_ns"]),
            finished_ns=int(block["finished_ns"]),
            processes=int(block["processes"]),
            message=bytes(block["message"]).split(b"\0", 1)[0].decode("utf-8", "replace"),
        )
