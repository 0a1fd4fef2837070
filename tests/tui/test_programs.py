"""Real programs under the real watcher: what goes wrong becomes a message, and nothing is left."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.message import Message

from kerncap.core.program.control import session_root
from kerncap.core.program.workload import Command
from kerncap.tui.messages import Figures, Output, ProgramEnded, ProgramFailed, ProgramStarted
from kerncap.tui.services.output_pump import OutputPump, clean_line
from kerncap.tui.services.program import LiveProgram
from support.build import build_program


class Run:
    """A watched program, and what was posted about it."""

    def __init__(self, *words: str, hertz: float = 20.0) -> None:
        self.messages: list[Message] = []
        self.program = LiveProgram(1, Command(words), "sim:gfx942", self.messages.append, hertz)
        self.program.start()

    def of(self, kind: type[Message]) -> list:
        return [m for m in list(self.messages) if isinstance(m, kind)]

    def wait(self, condition: Callable[[], object], limit_s: float = 60.0) -> None:
        until = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < until, self.messages[-5:]
            time.sleep(0.01)

    def end(self) -> Message:
        self.wait(lambda: self.of(ProgramEnded) or self.of(ProgramFailed))
        self.program._thread.join(10)
        return (self.of(ProgramEnded) + self.of(ProgramFailed))[0]

    def lines(self) -> list[str]:
        return [line for m in self.of(Output) for line in m.lines]


def python(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


def sessions() -> set[str]:
    return {name for name in os.listdir(session_root()) if name.startswith(f"kerncap-{os.getpid()}-")}


@pytest.fixture(autouse=True)
def nothing_left():
    """No test leaves a session directory of ours."""
    before = sessions()
    yield
    assert sessions() <= before


def test_a_program_that_is_missing() -> None:
    end = Run("./no-such-program").end()
    assert isinstance(end, ProgramFailed)
    assert "'./no-such-program' does not exist" in end.sentence


def test_a_program_that_is_not_executable(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("hello")
    end = Run(str(path)).end()
    assert isinstance(end, ProgramFailed)
    assert "may not be executed" in end.sentence


def test_a_program_that_ends_at_once_and_never_uses_a_gpu() -> None:
    run = Run("/bin/true")
    end = run.end()
    assert isinstance(end, ProgramEnded)
    assert end.ended is not None
    assert end.ended.ok
    assert end.reason  # why nothing was seen
    assert run.of(ProgramStarted)


def test_a_program_that_crashes() -> None:
    end = Run(
        *python("import os, signal; print('last words', flush=True); os.kill(os.getpid(), signal.SIGSEGV)")
    ).end()
    assert isinstance(end, ProgramEnded)
    assert end.ended is not None
    assert end.ended.signal == "SIGSEGV"


def test_a_hundred_megabytes_do_not_hold_the_program_up() -> None:
    program = "import os\nblock = b'0123456789abcdef' * 64 + b'\\n'\n"
    program += "for _ in range(100):\n os.write(1, block * 1024)\n"
    started = time.monotonic()
    run = Run(*python(program + "print('the end')"))
    end = run.end()
    assert isinstance(end, ProgramEnded)
    outputs = run.of(Output)
    assert outputs[-1].total_bytes > 100 * 1024 * 1024
    lines = sum(len(m.lines) + m.skipped for m in outputs)
    assert lines == 100 * 1024 + 1
    assert run.lines()[-1] == "the end"
    assert sum(len(m.lines) for m in outputs) < 60_000  # what nobody could read is only counted
    assert time.monotonic() - started < 60


def test_output_comes_while_the_program_runs_and_stdin_is_empty() -> None:
    run = Run(*python("import sys, time; print('first'); print(repr(sys.stdin.read())); time.sleep(30)"))
    run.wait(lambda: "''" in run.lines())
    assert run.lines() == ["first", "''"]
    run.program.stop()
    end = run.end()
    assert isinstance(end, ProgramEnded)
    assert end.ended is not None
    assert end.ended.signal == "SIGTERM"


def test_all_that_a_program_started_ends_with_it(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    child = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    run = Run(*python(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"))
    run.wait(lambda: mark.exists() and mark.read_text())
    run.program.end_now()
    pid = int(mark.read_text())
    run.wait(
        lambda: (
            not Path(f"/proc/{pid}").exists()
            or "Z" in Path(f"/proc/{pid}/stat").read_text().split(")")[1][:3]
        )
    )


def test_kernels_of_a_real_program_are_counted(build_program) -> None:
    program = build_program("launches")
    run = Run(str(program.executable))
    end = run.end()
    assert isinstance(end, ProgramEnded), end
    board = run.of(Figures)[-1].board
    assert board.dispatches > 0
    assert board.dispatches == board.timed
    assert board.simulated
    assert end.reason == ""


def test_escape_sequences_never_reach_the_screen() -> None:
    assert clean_line("\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\x1b(B") == "red x"
    assert clean_line("10 %\r20 %\r30 %\r") == "30 %"
    assert clean_line("a\tb\x07") == "a       b?"
    assert len(clean_line("x" * 100_000)) == 2000


def test_lines_are_cut_where_a_byte_is_no_text() -> None:
    got: list[str] = []
    pump = OutputPump(lambda lines, skipped, total: got.extend(lines))
    os.write(pump.slave, b"\xff\xfe bad\n\xc3")
    keep = os.dup(pump.slave)
    pump.started()
    os.write(keep, b"\xa9 split\n")
    os.close(keep)
    pump.finish(5.0)
    pump.close()
    assert got == ["�� bad", "é split"]


def test_no_room_for_statistics_is_the_reason_and_not_that_nothing_was_dispatched() -> None:
    program = str(build_program("in_place").executable)
    run = Run("sh", "-c", f"ulimit -f 512; exec {program}")
    ended = run.end()
    assert isinstance(ended, ProgramEnded)
    assert "cannot be made: File too large; raise the limit on the size of files (ulimit -f)" in ended.reason
    assert "dispatched no kernel" not in ended.reason
