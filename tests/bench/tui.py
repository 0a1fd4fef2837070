"""The terminal UI in a pseudo-terminal: first paint, processor time, key echo, bytes a second, and what the
program pays for being watched.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.report import Report, median, spread
from support.build import build_program, simulator_environment

KERNCAP = [sys.executable, "-m", "kerncap", "tui", "--device", "sim:gfx942"]
SIZE = (120, 40)
_STARTS = 5
_SECONDS = 8.0
_ROWS = (50, 200, 1000)
_LAUNCHES = 100_000


class Pty:
    """kerncap in a pseudo-terminal; reads what it draws."""

    def __init__(
        self,
        words: list[str],
        folder: Path,
        hertz: float | None = None,
        more: Mapping[str, str] | None = None,
    ) -> None:
        config = folder / "config/kerncap"
        config.mkdir(parents=True, exist_ok=True)
        (config / "tui.toml").write_text(f"refresh_hz = {hertz:g}\n" if hertz else "")
        variables = {
            **os.environ,
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
        }
        for name in ("NO_COLOR", "SSH_CONNECTION"):
            variables.pop(name, None)
        variables.update(more or {})
        self.started = time.perf_counter()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execvpe(words[0], words, variables)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0))
        self.data = b""

    def read(self, seconds: float) -> int:
        """Reads for that long; returns the number of bytes."""
        until, count = time.perf_counter() + seconds, 0
        while (left := until - time.perf_counter()) > 0:
            if select.select([self.master], [], [], left)[0]:
                try:
                    part = os.read(self.master, 1 << 16)
                except OSError:
                    break
                count += len(part)
                self.data = (self.data + part)[-1 << 20 :]
        return count

    def wait(self, text: bytes, limit_s: float = 30.0) -> float:
        """Seconds until that is drawn (escape sequences are left out); raises TimeoutError."""
        begun = time.perf_counter()
        while text not in re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", self.data):
            if time.perf_counter() - begun > limit_s:
                raise TimeoutError(f"{text!r} was not drawn within {limit_s:g} s: {self.data[-2000:]!r}")
            self.read(0.002)
        return time.perf_counter() - begun

    def echo(self, key: bytes) -> float:
        """Seconds from a key to its being drawn."""
        self.data = b""
        os.write(self.master, key)
        return self.wait(key)

    def processor_s(self) -> float:
        """Processor time used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """Ends it, by force where it must be."""
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGTERM)
        until = time.monotonic() + 8.0
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            self.read(0.05)
            if time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                break
        self.read(0.05)
        os.close(self.master)


@contextlib.contextmanager
def running(
    words: list[str], hertz: float | None = None, more: Mapping[str, str] | None = None
) -> Iterator[Pty]:
    """kerncap tui with further arguments, and further variables."""
    with tempfile.TemporaryDirectory() as folder:
        terminal = Pty([*KERNCAP, *words], Path(folder), hertz, more)
        try:
            yield terminal
        finally:
            terminal.end()


def first_paint() -> tuple[float, float]:
    """Seconds to the first screen, and the processor time it took."""
    with running([]) as terminal:
        terminal.wait(b"captures")
        return time.perf_counter() - terminal.started, terminal.processor_s()


def measure(report: Report) -> None:
    """Adds the figures of the terminal UI."""
    first_paint()  # byte code is written once
    paints = [first_paint() for _ in range(_STARTS)]
    wall = [paint[0] for paint in paints]
    report.add("terminal UI, first paint", median(wall), "s", at_most=0.5, note=spread(wall))
    busy = [paint[1] for paint in paints]
    report.add("terminal UI, processor time to it", median(busy), "s", note=spread(busy))
    program = str(Path(__file__).with_name("live_rows.py"))
    for rows in _ROWS:
        words = ["--", sys.executable, program, str(rows), "60"]
        with running(words, hertz=10.0) as terminal:
            terminal.wait(b"kernel_0")
            terminal.read(2.0)
            before = terminal.processor_s()
            count = terminal.read(_SECONDS)
            used = (terminal.processor_s() - before) / _SECONDS * 100
            aim = 12.0 if rows == max(_ROWS) else None
            report.add(f"terminal UI, {rows} kernels at 10 Hz", used, "% of a core", at_most=aim)
            report.add(f"terminal UI, {rows} kernels at 10 Hz", count / _SECONDS / 1e3, "kB/s")
            os.write(terminal.master, b"/")
            terminal.read(0.5)
            # No kernel has these letters: what is read is their echo.
            echoes = [terminal.echo(key.encode()) * 1e3 for key in "QZJXWYQZJX"]
            report.add(
                f"terminal UI, key echo, {rows} kernels",
                median(echoes),
                "ms",
                at_most=30.0,
                note=spread(echoes),
            )
    with running(["--", sys.executable, program, "1000", "60"]) as terminal:
        terminal.wait(b"kernel_0")
        terminal.read(2.0)
        rate = terminal.read(_SECONDS) / _SECONDS / 1e3
        report.add("terminal UI, as it comes (4 Hz, 120x40)", rate, "kB/s", at_most=40.0)
    _watched_cost(report)


def _watched_cost(report: Report) -> None:
    """The same launches alone and under the terminal UI, by the program's own clock."""
    launches = build_program("launches")
    loop = [str(launches.executable), "--launches", str(_LAUNCHES)]
    with tempfile.TemporaryDirectory() as folder:
        stamp = Path(folder) / "seconds"
        text = (
            f"import subprocess, time; a = time.perf_counter(); subprocess.run({loop!r}, check=True); "
            f"open({str(stamp)!r}, 'w').write(str(time.perf_counter() - a))"
        )
        script = [sys.executable, "-c", text]
        quiet = f"{shlex.join(script)} >/dev/null"
        alone, watched = [], []
        for _ in range(3):
            environment = {**os.environ, **simulator_environment()}
            pid = os.spawnvpe(os.P_NOWAIT, "sh", ["sh", "-c", quiet], environment)
            os.waitpid(pid, 0)
            alone.append(float(stamp.read_text()))
            stamp.unlink()
            with running(["--", *script]) as terminal:
                until = time.monotonic() + 120
                while not (stamp.exists() and stamp.read_text()) and time.monotonic() < until:
                    terminal.read(0.1)
            watched.append(float(stamp.read_text()))
            stamp.unlink()
    extra = (median(watched) - median(alone)) / _LAUNCHES * 1e6
    report.add("terminal UI, cost of being watched", extra, "us a dispatch", note=spread(watched))


if __name__ == "__main__":
    measure(Report())
