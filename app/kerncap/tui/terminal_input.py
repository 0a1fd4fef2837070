"""Escape is escape, also where another key comes right after it.

A terminal sends alt and a letter as escape and the letter, and Textual takes both for one key where they come
within a tenth of a second: of an escape that `f` follows, neither would be acted on. Nothing is on alt and
a character, so the two are kept apart. Sequences (ECMA-48, section 5.3 and 5.4) are read as ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

_ESCAPE = "\x1b"
_BEGINS_SEQUENCE = "[O]PX^_"
_PIECES = re.compile(r"\x1b|[^\x1b]+")


class EscapeFirstParser(XTermParser):
    """Gives an escape as soon as what follows cannot be a sequence."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._after_escape = False

    def feed(self, data: str) -> Iterable[Message]:
        """As the parser's own; `data` empty: the end."""
        if not data:
            yield from super().feed(data)
        for piece in _PIECES.findall(data):
            if self._after_escape and piece != _ESCAPE and piece[0] not in _BEGINS_SEQUENCE:
                if self._timeout_time is not None:
                    self._timeout_time = 0.0  # the wait for a sequence is over
                yield from self.tick()
            self._after_escape = piece == _ESCAPE
            yield from super().feed(piece)


class TerminalDriver(LinuxDriver):
    """Textual's driver of a terminal with that parser."""

    def run_input_thread(self) -> None:
        """Reads keys."""
        # The driver makes its parser by this name.
        linux_driver.XTermParser = EscapeFirstParser  # type: ignore[attr-defined]
        super().run_input_thread()
