"""What goes wrong with a program, in a real terminal: a sentence, and the UI lives on."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tui.terminal import Terminal, needs_tmux

pytestmark = [needs_tmux, pytest.mark.timeout(300)]
KERNCAP = [sys.executable, "-m", "kerncap", "tui", "--device", "sim:gfx942"]
ROWS = str(Path(__file__).resolve().parents[1] / "bench/live_rows.py")
HELP = r"keys \(esc closes\)"
FLOOD = "import os\nfor _ in range(100): os.write(1, b'0123456789abcdef\\n' * 61681)\nprint('the end')"
CRASH = "import os, signal; print('last words', flush=True); os.kill(os.getpid(), signal.SIGSEGV)"


def no_program(where: Path) -> list[str]:
    (where / "data").write_text("hello")
    return ["./data"]


def lives_on(terminal: Terminal) -> None:
    """Help opens and closes, another program runs, and it ends in order."""
    terminal.keys("?")
    terminal.wait(HELP)
    terminal.keys("Escape")
    terminal.wait_gone(HELP)
    terminal.keys("R")
    terminal.wait("Program to run:")
    terminal.keys("C-u")
    terminal.type("/bin/echo again")
    terminal.keys("Enter")
    terminal.wait("exit status 0")
    terminal.wait("/bin/echo again")
    terminal.keys("q")
    assert terminal.exit_status() == 0


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        (lambda _: ["./no-such-program"], r"'\./no-such-program' does not exist"),
        (no_program, r"'\./data' may not be executed"),
        (lambda _: ["/bin/true"], r"No dispatch was seen"),
        (lambda _: [sys.executable, "-c", CRASH], r"failed \(ended by SIGSEGV\) before any dispatch"),
        (lambda _: [sys.executable, "-c", FLOOD], r"No dispatch was seen"),
        (lambda _: [sys.executable, "-c", "print('no GPU')"], r"No GPU runtime"),
    ],
    ids=["missing", "not executable", "ends at once", "crashes", "prints 100 MB", "uses no GPU"],
)
def test_a_program_that_gives_nothing_is_a_sentence(
    program: Callable[[Path], list[str]], sentence: str, size: tuple[int, int], own_home: Path
) -> None:
    words = program(own_home)
    with Terminal([*KERNCAP, "--", *words], size=size, directory=own_home) as terminal:
        terminal.wait(sentence)
        text = terminal.screen()
        assert "Traceback" not in text
        if CRASH in words:
            assert "last words" in text
        if FLOOD in words:
            terminal.keys("o")
            text = terminal.screen() if size[0] > 100 else terminal.wait(r"lines, 10\d\.\d MB")
            assert re.search(r"lines, 10\d\.\d MB", text) or size[0] > 100
        lives_on(terminal)
    assert not (own_home / "isolated").exists()


def test_a_terminal_of_40_by_10(own_home: Path) -> None:
    command = [*KERNCAP, "--", sys.executable, ROWS, "40", "120"]
    with Terminal(command, size=(40, 10), directory=own_home) as terminal:
        terminal.wait("kernel_00")
        terminal.keys("Down", "e")
        terminal.wait("─ extract ─")
        terminal.keys("Escape")
        terminal.wait_gone("─ extract ─")
        terminal.keys("?")
        terminal.wait(HELP)
        terminal.keys("Escape")
        terminal.wait_gone(HELP)
        terminal.keys("/")
        terminal.type("0007")
        terminal.wait(r" 1 kernel_0007")
        terminal.keys("Escape")
        terminal.resize(120, 40)  # and back to a size that shows all
        terminal.wait("output of the program")
        terminal.keys("q")
        assert terminal.exit_status() == 0


def test_no_color_at_80_by_24_says_the_same(own_home: Path) -> None:
    command = [*KERNCAP, "--no-mouse", "--", sys.executable, ROWS, "40", "120"]
    variables = {**os.environ, "NO_COLOR": "1"}
    with Terminal(command, size=(80, 24), directory=own_home, environment=variables) as terminal:
        terminal.wait("kernel_00")
        terminal.keys("f")
        terminal.wait("ORDER FROZEN")
        terminal.keys("Space")
        terminal.wait("1 marked")
        assert "●" in terminal.screen()
        assert not re.search(r"\x1b\[[0-9;]*3[1-7]m|\x1b\[[0-9;]*[34]8[;:]", terminal.screen(escapes=True))
        terminal.keys("q")
        assert terminal.exit_status() == 0
