"""A real terminal for tests: a tmux server of its own, keys typed into it, its screen read."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import pytest

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux")


class Terminal:
    """One window. Use as a context manager: leaving it ends the server and whatever runs in it."""

    def __init__(
        self,
        command: list[str],
        *,
        size: tuple[int, int] = (120, 40),
        environment: Mapping[str, str] | None = None,
        directory: Path,
    ) -> None:
        self._own = Path(tempfile.mkdtemp(prefix="terminal-"))
        self._socket = self._own / "tmux.sock"
        self._status = self._own / "exit-status"
        self._pid = self._own / "pid"
        width, height = size
        inner = (
            f'sh -c \'echo $$ >"$0"; exec "$@"\' {shlex.quote(str(self._pid))} {shlex.join(command)}; '
            f"echo $? >{shlex.quote(str(self._status))}; sleep 600"
        )
        variables = dict(os.environ if environment is None else environment)
        variables.pop("TMUX", None)
        shape = ["-x", str(width), "-y", str(height)]
        self._tmux("-f", "/dev/null", "new-session", "-d", *shape, inner, env=variables, directory=directory)

    def _tmux(self, *words: str, env: Mapping[str, str] | None = None, directory: Path | None = None) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), *words],
            capture_output=True,
            text=True,
            timeout=30,
            env=env,
            cwd=directory,
            check=True,
        )
        return done.stdout

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        subprocess.run(["tmux", "-S", str(self._socket), "kill-server"], capture_output=True, timeout=30)
        shutil.rmtree(self._own, ignore_errors=True)

    def keys(self, *keys: str) -> None:
        """Presses keys by tmux's names (Enter, Escape, Down), or types text."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Types text as it is."""
        self._tmux("send-keys", "-l", text)

    def screen(self, *, escapes: bool = False) -> str:
        """What is on the screen; with `escapes`, also in which colours."""
        return self._tmux("capture-pane", "-p", *(["-e"] if escapes else []))

    def resize(self, width: int, height: int) -> None:
        """Another size of the terminal."""
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def wait(self, pattern: str, limit_s: float = 60.0) -> str:
        """Waits until the screen shows a match; returns the screen. Fails with what is on it instead."""
        until = time.monotonic() + limit_s
        while True:
            text = self.screen()
            if re.search(pattern, text):
                return text
            if time.monotonic() > until:
                pytest.fail(f"{pattern!r} did not appear within {limit_s:g} s; the screen:\n{text}")
            time.sleep(0.1)

    def wait_gone(self, pattern: str, limit_s: float = 30.0) -> str:
        """Waits until nothing on the screen matches."""
        until = time.monotonic() + limit_s
        while re.search(pattern, text := self.screen()):
            if time.monotonic() > until:
                pytest.fail(f"{pattern!r} is still there after {limit_s:g} s; the screen:\n{text}")
            time.sleep(0.1)
        return text

    def exit_status(self, limit_s: float = 30.0) -> int:
        """Waits for the command's end."""
        until = time.monotonic() + limit_s
        while not (self._status.exists() and self._status.read_text().strip()):
            if time.monotonic() > until:
                pytest.fail(f"it has not ended within {limit_s:g} s; the screen:\n{self.screen()}")
            time.sleep(0.05)
        return int(self._status.read_text())

    @property
    def pid(self) -> int:
        """The command's process."""
        return int(self._pid.read_text())

    def kill_server(self) -> None:
        """As when the connection is lost and nobody holds the session: its programs get SIGHUP."""
        self._tmux("kill-server")
