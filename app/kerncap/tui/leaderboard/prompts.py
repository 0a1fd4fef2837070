"""What the leaderboard asks for: a program, a device, and whether to go on where a session was cut off."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from kerncap.core.errors import KerncapError
from kerncap.core.program.workload import parse_command
from kerncap.tui.cut_off import NAME, CutOff
from kerncap.tui.widgets.ask import AskText
from kerncap.tui.widgets.confirm import Confirm

if TYPE_CHECKING:
    from kerncap.tui.screens.leaderboard import LeaderboardScreen


def ask_for_program(screen: LeaderboardScreen) -> None:
    """Asks for a program, and runs it."""
    app = screen.kerncap
    last = screen.command.arguments if screen.command else app.remembered.get("resume.command", [])

    def check(text: str) -> str | None:
        try:
            parse_command(text=text)
        except KerncapError as error:
            return error.message
        return None

    def answered(text: str | None) -> None:
        if text is not None:
            screen.command = parse_command(text=text)
            screen.start()

    hint = "Split into words as a shell would, and run without one. NAME=VALUE before it sets a variable."
    app.push_screen(AskText("Program to run:", shlex.join(last), hint=hint, check=check), answered)


def ask_for_device(screen: LeaderboardScreen) -> None:
    """Asks for the device of the next run."""
    app = screen.kerncap

    def check(text: str) -> str | None:
        from kerncap.core.device.devices import resolve_device

        try:
            resolve_device(text or None)
        except KerncapError as error:
            return error.message
        return None

    def answered(text: str | None) -> None:
        if text is not None:
            app.device = text or None
            screen.tell(f"The next run is on {text or 'auto'}.")

    hint = "rocm[:N], cuda[:N], sim:gfx942[xN], sim:gfx90a[xN], or nothing for KERNCAP_DEVICE, else auto"
    app.push_screen(AskText("Device:", app.device or "", hint=hint, check=check), answered)


def offer_resume(screen: LeaderboardScreen) -> None:
    """Asks whether to go on where the last session was cut off, if it was."""
    app = screen.kerncap
    last = CutOff.of(app.remembered.get(NAME))
    if last is None:
        app.remembered.set(NAME, None)
        return

    def answered(yes: bool | None) -> None:
        app.remembered.set(NAME, None)
        if yes:
            _resume(screen, last)

    app.push_screen(Confirm(last.question(), "Resume", "No", first=True), answered)


def _resume(screen: LeaderboardScreen, last: CutOff) -> None:
    """What was not said anew for this session is as it was."""
    app = screen.kerncap
    app.device = app.device or last.device
    app.source_dir = app.source_dir or last.source_dir
    if last.command is not None:
        screen.command = last.command
        if not last.is_here():
            app.elsewhere = True
            try:
                os.chdir(last.directory)  # where its program is, and its captures are
            except OSError as error:
                screen.tell(f"{last.directory} cannot be entered: {error.strerror}.", "error", lasting=True)
                return
    if last.workbench is not None:
        screen.refresh_heading()
        app.open_workbench(last.workbench)
    else:
        screen.start()
