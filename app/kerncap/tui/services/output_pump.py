"""A program's output through a pseudo-terminal, as clean lines, however much it prints.

The program is never held up by us: what comes faster than it can be read by a person is counted and dropped.
A pseudo-terminal, so that the program's C library does not keep back its lines as it does for a pipe.
"""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import termios
import threading
import time
import tty
from collections.abc import Callable

_KEPT_BYTES = 256 << 10  # of what waits to be shown
_FLUSH_S = 0.1
_READ_BYTES = 1 << 16
_LONGEST_LINE = 2000
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

OnLines = Callable[[tuple[str, ...], int, int], None]


def clean_line(line: str) -> str:
    """A line as a terminal would leave it: without escape sequences, after its last carriage return."""
    text = _ESCAPES.sub("", line).rstrip("\r")
    if "\r" in text:
        text = text[text.rindex("\r") + 1 :]
    return _CONTROL.sub("?", text.expandtabs(8))[:_LONGEST_LINE]


class OutputPump:
    """Reads the master side in a thread. `on_lines(lines, skipped, total bytes)` is called from it.

    Give `slave` to the program as stdout and stderr, then call `started()`; `finish()` after the program has
    ended; `close()` when nobody is to write any more.
    """

    def __init__(self, on_lines: OnLines, columns: int = 100, rows: int = 24) -> None:
        self._on_lines = on_lines
        self._master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._pending = bytearray()
        self._skipped = 0
        self.total_bytes = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._pump, name="kerncap-output", daemon=True)

    def started(self) -> None:
        """The program has the slave side: ours is closed, so that its end is seen."""
        os.close(self.slave)
        self.slave = -1
        self._thread.start()

    def finish(self, limit_s: float = 0.5) -> None:
        """Waits for what the ended program has printed; processes that it left may still write."""
        if self._thread.is_alive():
            self._thread.join(limit_s)

    def close(self) -> None:
        """Stops reading; a process that still writes gets an error."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(1.0)
        for fd in (self._master, self.slave):
            if fd >= 0:
                with contextlib.suppress(OSError):
                    os.close(fd)
        self._master = self.slave = -1

    def _pump(self) -> None:
        flushed = time.monotonic()
        while not self._stop.is_set():
            ready, _, _ = select.select([self._master], [], [], _FLUSH_S)
            if ready:
                try:
                    data = os.read(self._master, _READ_BYTES)
                except OSError:  # EIO: every writer has closed its side
                    break
                if not data:
                    break
                self._take(data)
            now = time.monotonic()
            if now - flushed >= _FLUSH_S or not ready:
                flushed = now
                self._flush()
        self._flush(final=True)

    def _take(self, data: bytes) -> None:
        self.total_bytes += len(data)
        self._pending += data
        if len(self._pending) > 2 * _KEPT_BYTES:
            cut = self._pending.find(b"\n", len(self._pending) - _KEPT_BYTES) + 1
            cut = cut or len(self._pending) - _KEPT_BYTES
            self._skipped += self._pending.count(b"\n", 0, cut)
            del self._pending[:cut]
            self._rest = ""
            self._decoder.reset()

    def _flush(self, final: bool = False) -> None:
        if not self._pending and not (final and self._rest):
            return
        text = self._rest + self._decoder.decode(bytes(self._pending), final)
        self._pending.clear()
        *lines, self._rest = text.split("\n")
        if len(self._rest) > 4 * _LONGEST_LINE:  # a line without end
            self._rest = self._rest[-_LONGEST_LINE:]
        if final and self._rest:
            lines.append(self._rest)
            self._rest = ""
        skipped, self._skipped = self._skipped, 0
        if lines or skipped:
            self._on_lines(tuple(clean_line(line) for line in lines), skipped, self.total_bytes)
