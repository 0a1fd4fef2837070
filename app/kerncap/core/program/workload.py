"""Starting the user's program, waiting for it with a limit, and leaving nothing of it behind.

A program is an argument list; there is no shell. It gets a process group (and session) of its own, so that
ctrl-C reaches kerncap alone, which then ends the program and all that it started.
"""

from __future__ import annotations

import errno
import math
import os
import select
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from kerncap.core.errors import Interrupted, UsageError
from kerncap.core.interrupts import deferred, signal_name

TERM_GRACE_S = 3.0  # between SIGTERM and SIGKILL
_SHELL_WORDS = {"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1", "&>"}


@dataclass(frozen=True, slots=True)
class Command:
    """A program and its arguments, and variables to set for it."""

    arguments: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()

    def text(self) -> str:
        """As a person would type it."""
        return shlex.join([*(f"{name}={value}" for name, value in self.variables), *self.arguments])


def parse_command(arguments: Sequence[str] = (), text: str | None = None) -> Command:
    """The command from an argument list, or from one string that is split as a shell would, and not run by
    one.

    In a string, leading `NAME=VALUE` words set variables. Raises UsageError for both, neither, a string that
    cannot be split, or one that needs a shell.
    """
    if text is None:
        if not arguments:
            raise UsageError("no program to run: end the command line with `-- PROGRAM ARGUMENTS...`")
        return Command(tuple(arguments))
    if arguments:
        raise UsageError(f"the program is given twice: by --cmd, and after it ({shlex.join(arguments)})")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--cmd {text!r} cannot be split into words: {error}") from None
    variables = []
    while words and words[0].partition("=")[1] and words[0].partition("=")[0].isidentifier():
        name, _, value = words.pop(0).partition("=")
        variables.append((name, value))
    if not words:
        raise UsageError(f"--cmd {text!r} names no program")
    for word in words:
        if word in _SHELL_WORDS:
            raise UsageError(
                f"--cmd {text!r} is not run by a shell, so {word!r} would be an argument. "
                f"If a shell is meant: `-- sh -c '...'`"
            )
    return Command(tuple(words), tuple(variables))


def find_program(
    name: str, search_path: str | None = None, directory: str | os.PathLike[str] | None = None
) -> str:
    """The path of the program, as exec would find it. Raises UsageError saying why there is none."""
    base = Path(directory) if directory else Path()
    if "/" not in name:
        found = shutil.which(name, path=search_path)
        if found:
            return found
        hint = f" (./{name} is; write it so)" if (base / name).is_file() else ""
        raise UsageError(f"program {name!r} is not in PATH{hint}")
    path = base / name
    if not path.exists():
        raise UsageError(f"program {name!r} does not exist")
    if path.is_dir():
        raise UsageError(f"program {name!r} is a directory")
    if not os.access(path, os.X_OK):
        raise UsageError(f"program {name!r} may not be executed (chmod +x, or name its interpreter)")
    return name


def check_seconds(name: str, seconds: float | None) -> None:
    """Raises UsageError for a limit that is no positive, finite number of seconds; None is no limit."""
    if seconds is not None and not (seconds > 0 and math.isfinite(seconds)):
        raise UsageError(f"{name} {seconds:g}: give a positive number of seconds, or none")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    exit_code: int  # 128 + the signal's number where one ended it, as a shell has it
    signal: str | None  # "SIGSEGV"

    @property
    def ok(self) -> bool:
        """Exit status 0."""
        return self.exit_code == 0

    def text(self) -> str:
        """ "exit status 3", "ended by SIGSEGV"."""
        return f"ended by {self.signal}" if self.signal else f"exit status {self.exit_code}"


class Workload:
    """A running program.

    Leaving it as a context manager by an error, or while the program runs, ends it and all that it started.
    What a program that ended by itself has left running on purpose is left alone.
    """

    def __init__(
        self,
        command: Command,
        environment: Mapping[str, str],
        *,
        directory: str | os.PathLike[str] | None = None,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        session: Path | None = None,
    ) -> None:
        """Starts it. Raises UsageError where it cannot be started.

        `stdin`, `stdout` and `stderr` are file descriptors (None: this process's own). `session` marks every
        process that descends from it, wherever it moves: the value of KERNCAP_SESSION in its environment.
        """
        variables = {**environment, **dict(command.variables)}
        program = find_program(command.arguments[0], variables.get("PATH"), directory)
        self.command = command
        self.program = program
        self._session = session
        self.started = time.monotonic()
        try:
            with deferred():  # between its start and our knowing of it, nobody would end it
                self._process = subprocess.Popen(
                    list(command.arguments),
                    executable=program if "/" in program else None,
                    env=variables,
                    cwd=directory,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
                self.pid = self._process.pid
                try:
                    self._pidfd = os.pidfd_open(self.pid)
                except OSError:
                    self._pidfd = -1
        except OSError as error:
            reason = error.strerror or str(error)
            if error.errno == errno.ENOEXEC:
                reason = "it is neither a program for this machine nor a script that begins with #!"
            raise UsageError(f"program {program!r} cannot be started: {reason}") from None
        except Interrupted:
            self.end()
            raise

    def __enter__(self) -> Workload:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None or self.poll() is None:
            self.end()
        self._release()

    def poll(self) -> Ended | None:
        """How it ended, or None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        if code < 0:
            return Ended(128 - code, signal_name(-code))
        return Ended(code, None)

    def sleep(self, seconds: float) -> Ended | None:
        """Waits for `seconds`, or until the program ends."""
        if self._pidfd >= 0 and self._process.returncode is None:
            select.select([self._pidfd], [], [], seconds)
        else:
            time.sleep(seconds)
        return self.poll()

    def wait(
        self,
        *,
        timeout: float | None = None,
        tick: Callable[[], bool | None] | None = None,
        interval: float = 0.05,
    ) -> Ended | None:
        """Waits for its end. None when `timeout` seconds are over, or `tick` (called every `interval`)
        returns True.
        """
        limit = None if timeout is None else time.monotonic() + timeout
        while True:
            ended = self.poll()
            if tick is not None and tick():
                return None
            if ended is not None:
                return ended
            left = interval
            if limit is not None:
                left = min(interval, limit - time.monotonic())
                if left <= 0:
                    return None
            self.sleep(left)

    def descendants(self) -> list[int]:
        """Processes that still live and belong to it: its process group, and whoever carries its session.

        Raises OSError where /proc cannot be read, for want of file descriptors for instance.
        """
        found = []
        marker = b"KERNCAP_SESSION=" + os.fsencode(self._session) + b"\0" if self._session else None
        with os.scandir("/proc") as entries:
            numbers = [int(entry.name) for entry in entries if entry.name.isdigit()]
        for pid in numbers:
            if pid == os.getpid():
                continue
            try:
                text = Path(f"/proc/{pid}/stat").read_text()
                fields = text[text.rindex(")") + 2 :].split()
                if fields[0] in "ZX":
                    continue
                belongs = int(fields[2]) == self.pid
                if not belongs and marker is not None:
                    belongs = marker in Path(f"/proc/{pid}/environ").read_bytes() + b"\0"
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
                    raise
                continue
            if belongs:
                found.append(pid)
        return found

    def _signal_all(self, number: int) -> bool:
        try:
            alive = self.descendants()
        except OSError:  # without /proc, its process group is what can be reached
            try:
                os.killpg(self.pid, number)
            except OSError:
                return False
            return self.poll() is None
        for pid in alive:
            try:
                os.kill(pid, number)
            except OSError:
                continue
        return bool(alive)

    def _any_left(self) -> bool:
        try:
            return bool(self.descendants())
        except OSError:
            return self.poll() is None

    def end(self, grace: float = TERM_GRACE_S) -> Ended | None:
        """Ends the program and everything it started: SIGTERM, `grace` seconds, SIGKILL. Nothing if all has
        ended.
        """
        if self._signal_all(signal.SIGTERM):
            limit = time.monotonic() + grace
            while self._any_left() and time.monotonic() < limit:
                self.sleep(0.02)
                time.sleep(0.01)
            limit = time.monotonic() + 5.0
            while self._signal_all(signal.SIGKILL) and time.monotonic() < limit:
                time.sleep(0.02)
        try:
            self._process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            return None
        self._release()
        return self.poll()

    def _release(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
