"""What the leaderboard asks for: a program, a device, and whether to go on where a session was cut off."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from kerncap.core.errors import KerncapError
from kerncap.core.program.workload import Command, parse_command
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
    remembered = app.remembered
    if not remembered.get("resume.cut_off", False):
        return
    if app.workbench is not None:  # the user has said where to go on
        remembered.set("resume.cut_off", None)
        return
    directory = remembered.get("resume.workbench", "")
    words = remembered.get("resume.command", [])
    if directory and Path(directory).is_dir():
        question = f"The last session was cut off, with the workbench on {directory}. Go on there?"
    elif words:
        question = f"The last session was cut off while it ran {shlex.join(words)}. Run it again?"
    else:
        return

    def answered(yes: bool | None) -> None:
        remembered.set("resume.cut_off", None)
        if not yes:
            return
        if words:
            variables = remembered.get("resume.variables", [])
            screen.command = Command(tuple(words), tuple((name, value) for name, value in variables))
        if directory and Path(directory).is_dir():
            screen.refresh_heading()
            app.open_workbench(directory)
        else:
            screen.start()

    app.push_screen(Confirm(question, "Resume", "No", first=True), answered)
