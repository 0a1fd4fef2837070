"""What a session that was cut off is gone on with: what was on its screen, and nothing of sessions before."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kerncap.core.program.workload import Command
from kerncap.tui import app as tui_app
from kerncap.tui.cut_off import CutOff
from kerncap.tui.screens.base import KerncapScreen
from kerncap.tui.settings import Remembered
from tui.stage import Stage, stage

PROGRAM = Command(("./program", "3000", "30"))


class Bench(KerncapScreen):
    """Stands for the workbench on a directory."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory

    def seen(self) -> dict[str, Any]:
        return {"workbench": str(self.directory)}


@pytest.fixture(autouse=True)
def no_forced_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tui_app, "_FORCED_END_S", 1e6)


@asynccontextmanager
async def session(command: Command | None = None, **more: Any) -> AsyncIterator[Stage]:
    async with stage(command=command, **more) as st:
        if command is not None:
            await st.show()
        yield st


async def quit_cleanly(command: Command | None = None, bench: Path | None = None, **more: Any) -> None:
    async with session(command, **more) as st:
        if bench is not None:
            await st.app.push_screen(Bench(bench))
        await st.press("q")


async def cut_off(command: Command | None = None, bench: Path | None = None, **more: Any) -> None:
    async with session(command, **more) as st:
        if bench is not None:
            await st.app.push_screen(Bench(bench))
            await st.settle()
        st.app._on_signal(signal.SIGHUP)


def words(st: Stage) -> str:
    """The screen without its frames and ends of lines."""
    return " ".join(st.text().replace("│", " ").split())


def reproducer(where: Path) -> Path:
    out = where / "isolated/saxpy-2"
    out.mkdir(parents=True, exist_ok=True)
    return out


async def test_a_workbench_that_was_quit_before_is_not_gone_on_with(own_home: Path) -> None:
    await quit_cleanly(bench=reproducer(own_home))
    Remembered().set("resume.workbench", str(reproducer(own_home)))  # an older kerncap left it there
    await quit_cleanly()
    await cut_off(PROGRAM)
    async with session() as st:
        await st.until("Run it again?")
        assert "was cut off while it ran ./program 3000 30. Run" in words(st)
        await st.press("y")
        assert not st.opened
        assert st.program.command == PROGRAM


async def test_a_program_of_a_session_before_is_not_gone_on_with(own_home: Path) -> None:
    await quit_cleanly(Command(("./other",)))
    await cut_off()  # on an empty leaderboard
    async with session() as st:
        assert st.screen is st.leaderboard
    await cut_off(bench=reproducer(own_home))
    async with session() as st:
        await st.until("with the workbench on")
        await st.press("y")
        assert st.opened == [reproducer(own_home)]
        assert st.leaderboard.command is None


async def test_a_cut_off_before_the_last_session_is_over(own_home: Path) -> None:
    await cut_off(PROGRAM)
    await quit_cleanly(Command(("./other",)))
    async with session() as st:
        assert st.screen is st.leaderboard


async def test_an_offer_that_is_cut_off_itself_is_made_again() -> None:
    await cut_off(PROGRAM)
    await cut_off()
    async with session() as st:
        await st.until("Run it again?")
        assert "./program 3000 30" in words(st)


async def test_the_workbench_over_the_leaderboard_and_what_is_below(own_home: Path) -> None:
    await cut_off(PROGRAM, reproducer(own_home))
    async with session() as st:
        await st.until("with the workbench on")
        await st.press("y")
        assert st.opened == [reproducer(own_home)]
        assert st.leaderboard.command == PROGRAM
        assert not st.programs


async def test_one_that_had_ended_and_one_that_could_not_be_started() -> None:
    async with session(PROGRAM) as st:
        st.program.ends()
        await st.settle()
        st.app._on_signal(signal.SIGHUP)
    async with session() as st:
        await st.until("Run it again?")
        assert "was cut off after it ran ./program 3000 30. Run" in words(st)
        await st.press("n")
    async with stage(command=PROGRAM) as st:
        await st.settle()
        st.program.fails("program './program' does not exist")
        await st.settle()
        st.app._on_signal(signal.SIGHUP)
    async with session() as st:
        assert st.screen is st.leaderboard


async def test_where_it_ran_and_on_what(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = own_home / "there"
    there.mkdir()
    monkeypatch.chdir(there)
    await cut_off(Command(("./program",), (("A", "1"),)), source_dir=Path("src"))
    monkeypatch.chdir(own_home)
    async with session() as st:
        st.app.device = None
        await st.until("there again?")
        assert "A=1 ./program in" in words(st)
        await st.press("y")
        assert os.getcwd() == str(there)
        assert st.program.command == Command(("./program",), (("A", "1"),))
        assert st.app.device == "sim:gfx942"
        assert st.app.source_dir == there / "src"
    await cut_off(PROGRAM)
    monkeypatch.chdir(own_home)
    there.rmdir()  # its program is gone with it, as the demonstration's
    async with session() as st:
        assert st.screen is st.leaderboard


@pytest.mark.parametrize("text", [True, 3, {}, {"command": 3}, {"command": ["a"], "variables": [1]}])
def test_what_an_older_kerncap_or_nobody_wrote_is_nothing(text: object) -> None:
    assert CutOff.of(text) is None


def test_two_sessions_at_once_do_not_undo_each_other() -> None:
    one, other = Remembered(), Remembered()
    one.set("resume.cut_off", {"workbench": "/x"})
    other.set("leaderboard.wide", True)
    assert Remembered().get("resume.cut_off") == {"workbench": "/x"}
    assert Remembered().get("leaderboard.wide") is True
