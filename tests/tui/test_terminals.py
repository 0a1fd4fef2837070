"""What is sent to a terminal: colours that it has, the mouse only where it is wanted, order at the end."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from bench.tui import Pty, running

ROWS = str(Path(__file__).resolve().parents[1] / "bench/live_rows.py")
PROGRAM = ["--", sys.executable, ROWS, "40", "60"]
TRUE_COLOUR, PALETTE, ANSI = rb"\x1b\[[0-9;]*38;2;", rb"\x1b\[[0-9;]*38;5;", rb"\x1b\[(?:[0-9;]*;)?3[1-7]m"


def drawn(terminal: Pty) -> bytes:
    terminal.wait(b"kernel_0")
    terminal.read(1.0)
    return terminal.data


@pytest.mark.parametrize(
    ("variables", "sent", "never"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, TRUE_COLOUR, PALETTE),
        ({"TERM": "screen-256color", "COLORTERM": ""}, PALETTE, TRUE_COLOUR),
        (
            {"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"},
            rb"\x1b\[(?:[0-9;]*;)?7[;m]",
            TRUE_COLOUR,
        ),
    ],
)
def test_colours_are_those_that_the_terminal_has(
    variables: dict[str, str], sent: bytes, never: bytes
) -> None:
    with running(PROGRAM, more=variables) as terminal:
        data = drawn(terminal)
        assert re.search(sent, data)
        assert not re.search(never, data)
        if "NO_COLOR" in variables:
            assert not re.search(PALETTE, data)
            assert not re.search(ANSI, data)


def test_the_mouse_is_asked_for_unless_it_is_not_wanted() -> None:
    with running(PROGRAM) as terminal:
        assert b"\x1b[?1000h" in drawn(terminal)
    with running(["--no-mouse", *PROGRAM]) as terminal:
        assert b"\x1b[?1000h" not in drawn(terminal)


def test_the_terminal_is_given_back_in_order() -> None:
    with running(PROGRAM) as terminal:
        drawn(terminal)
    for sequence in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l"):
        assert sequence in terminal.data


def test_over_ssh_less_is_sent() -> None:
    def sent(more: dict[str, str]) -> int:
        with running(PROGRAM, more=more) as terminal:
            drawn(terminal)
            return terminal.read(4.0)

    assert sent({"SSH_CONNECTION": "10.0.0.1 50000 10.0.0.2 22"}) < 0.75 * sent({})


def test_a_program_that_prints_without_end_leaves_the_keys_alive() -> None:
    text = "import os\nwhile True: os.write(1, b'0123456789abcdef' * 64 + b'\\n')"
    with running(["--", sys.executable, "-c", text]) as terminal:
        terminal.wait(b" MB")
        seconds = terminal.echo(b"/") + sum(terminal.echo(key.encode()) for key in "QZJ")
        assert seconds < 4.0
