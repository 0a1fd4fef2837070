"""The process of `kerncap-replay`, and the lines to and from it (native/replay/protocol.h)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from kerncap.core.errors import (
    DAMAGED,
    DamagedCaptureError,
    DeviceError,
    InconclusiveError,
    ShortageError,
    UsageError,
    WorkloadError,
    no_room_in,
    shortage_in,
)
from kerncap.core.replay.replies import KernelFault, KernelTimeout, Reply, escape, unescape
from kerncap.core.waiting import Wait, wait_readable

# No kernel sends these: somebody ended the replayer, which says nothing of a variant.
_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT})

# Said of a second thread's uncaught exception, which ends the process before the first one is named.
_AT_ONCE = "terminate called recursively"


class ReplayerProcess:
    """One process at a time. Its stderr goes to the file `errors`; it may be stopped from outside for
    `stopped_limit_s` seconds, and is killed `end_limit_s` after it was told to end.
    """

    def __init__(self, errors: Path, stopped_limit_s: float, end_limit_s: float) -> None:
        self._errors = errors
        self._stopped_limit_s = stopped_limit_s
        self._end_limit_s = end_limit_s
        self._popen: subprocess.Popen[bytes] | None = None
        self._pending = bytearray()

    @property
    def running(self) -> bool:
        """Whether there is one: it may have ended by itself, which the next request finds out."""
        return self._popen is not None

    def reap(self) -> None:
        """Lets go of a process that has ended by itself, or was ended, while nothing was asked of it: `start`
        starts another.
        """
        if self._popen is not None and self._popen.poll() is not None:
            self.stop()

    @property
    def pid(self) -> int:
        """Of the process, which runs."""
        assert self._popen is not None
        return self._popen.pid

    def start(self, command: Sequence[str], environment: Mapping[str, str], limit_s: float) -> Reply:
        """Starts it, and waits for its greeting. Raises what `request` does."""
        with self._errors.open("wb") as errors:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                start_new_session=True,
                umask=0o077,  # what it writes is a program's memory
            )
        self._pending.clear()
        return self._read_reply(limit_s)

    def stop(self) -> None:
        """Ends it; `start` starts another."""
        process, self._popen = self._popen, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        try:
            process.wait(self._end_limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """Ends the process at once, from any thread: a request under way raises DeviceError."""
        process = self._popen
        if process is not None:
            process.kill()

    def stderr_tail(self, limit: int = 4000) -> str:
        """The last of what the process wrote on stderr."""
        try:
            return self._errors.read_bytes()[-limit:].decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def request(self, command: str, *arguments: object, limit_s: float) -> Reply:
        """Sends one command to the process, which runs, and waits for its answer. Raises KernelFault,
        KernelTimeout, UsageError, InconclusiveError, DamagedCaptureError, WorkloadError, DeviceError.
        """
        assert self._popen is not None
        assert self._popen.stdin is not None
        line = " ".join([command, *(escape(str(argument)) for argument in arguments)])
        try:
            self._popen.stdin.write(line.encode() + b"\n")
            self._popen.stdin.flush()
        except OSError:
            self._died(command)
        return self._read_reply(limit_s, command)

    def _read_reply(self, limit_s: float, command: str = "start") -> Reply:
        reply = Reply()
        deadline = time.monotonic() + limit_s
        while True:
            words = self._read_line(deadline, command).split(" ")
            kind = words[0]
            if kind == "note":
                reply.notes.append((words[1], unescape(words[2])))
            elif kind == "data":
                reply.data[words[1]] = self._read_bytes(int(words[2]), deadline, command)
            elif kind == "ok":
                for word in words[1:]:
                    key, _, value = word.partition("=")
                    if key:
                        reply.values[key] = unescape(value)
                return reply
            elif kind == "error":
                self._raise(words[1], int(words[2], 16), unescape(words[3]), started=command != "start")
            else:
                self.stop()
                raise DeviceError(f"kerncap-replay answered {command} with {kind!r}; see {self._errors}")

    def _raise(self, kind: str, address: int, text: str, *, started: bool) -> None:
        if kind in ("fault", "timeout", "internal", "damaged") or not started:
            told = self.stderr_tail()
            self.stop()
        if kind == "fault":
            known = not told or text.splitlines()[0].removeprefix("kerncap: ") in told
            message = text if known else f"{text}\n{told}"
            raise KernelFault(message, address)
        if kind == "timeout":
            raise KernelTimeout(f"{text}, its limit (--timeout)")
        if kind in ("usage", "device", "internal") and (short := shortage_in(text)):
            raise ShortageError(f"{text if '/' in text else f'kerncap-replay: {text}'}: {short}")
        if kind == "usage":
            raise InconclusiveError(text) if "calls back into the host" in text else UsageError(text)
        if kind == "damaged":
            raise DamagedCaptureError(f"{text}{DAMAGED}")
        if no_room_in(text):
            raise WorkloadError(text)
        raise DeviceError(
            text if kind != "collision" else f"{text}: the capture cannot be replayed in this process"
        )

    def _died(self, command: str) -> None:
        process = self._popen
        status = process.poll() if process is not None else None
        told = self.stderr_tail()
        self.stop()
        if status is not None and -status in _FROM_OUTSIDE:
            raise DeviceError(
                f"kerncap-replay was ended from outside ({signal.Signals(-status).name}) during '{command}', "
                "by someone or for want of memory. The next run starts it again."
            )
        if status == -signal.SIGABRT and (short := shortage_in(told)):
            # What the C++ runtime says of an exception that nobody caught: no kernel can do that.
            raise ShortageError(f"kerncap-replay ended during '{command}': {short}\n{told}")
        if status == -signal.SIGABRT and _AT_ONCE in told:
            raise DeviceError(
                f"several threads of kerncap-replay failed at once during '{command}', as where there is not "
                f"enough memory (ulimit -v, or the container's limit):\n{told}"
            )
        how = f"signal {-status}" if status is not None and status < 0 else f"status {status}"
        ended = KernelFault if command != "start" else DeviceError  # no kernel has run by then
        raise ended(f"kerncap-replay ended with {how} during '{command}'" + (f":\n{told}" if told else ""))

    def _fill(self, deadline: float, command: str) -> None:
        assert self._popen is not None
        assert self._popen.stdout is not None
        ended = wait_readable(self._popen.stdout, self._popen.pid, deadline, self._stopped_limit_s)
        if ended is not Wait.READY:
            self._popen.kill()
            self.stop()
        if ended is Wait.STOPPED:
            raise DeviceError(
                f"kerncap-replay was stopped from outside (SIGSTOP) for {self._stopped_limit_s:g} s during "
                f"'{command}', and was ended. The next run starts it again."
            )
        if ended is Wait.LATE:
            raise KernelTimeout(f"kerncap-replay did not answer '{command}' in time; it was ended")
        chunk = os.read(self._popen.stdout.fileno(), 1 << 20)
        if not chunk:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(5)
            self._died(command)
        self._pending += chunk

    def _read_line(self, deadline: float, command: str) -> str:
        while True:
            end = self._pending.find(b"\n")
            if end >= 0:
                line = bytes(self._pending[:end])
                del self._pending[: end + 1]
                return line.decode("utf-8", "replace")
            self._fill(deadline, command)

    def _read_bytes(self, size: int, deadline: float, command: str) -> bytes:
        while len(self._pending) < size:
            self._fill(deadline, command)
        data = bytes(self._pending[:size])
        del self._pending[:size]
        return data
