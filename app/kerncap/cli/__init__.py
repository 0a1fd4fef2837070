"""The `kerncap` command: one thin module a subcommand, over kerncap.core."""

from __future__ import annotations

import signal
import sys
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _interrupted(number: int, frame: FrameType | None) -> None:
    for other in _SIGNALS:  # one is enough: what follows must come to its end
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt


def end_in_order() -> None:
    """What interrupts a command ends it with 130 and a sentence while it is still being loaded, too, and
    however often it comes. Afterwards core/interrupts.py has the signals.
    """
    for number in _SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _interrupted)


def main() -> None:
    """`kerncap` on the command line."""
    try:
        end_in_order()
        try:
            from kerncap.cli.entry import main as run
        except (ImportError, OSError, MemoryError) as error:
            # Too few file descriptors, too little memory, or an install that is broken.
            sys.stderr.write(f"kerncap: cannot be loaded: {error}\n")
            sys.exit(3)
        run()
    except KeyboardInterrupt:
        sys.stderr.write("kerncap: interrupted\n")
        sys.exit(130)
