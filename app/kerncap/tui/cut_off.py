"""A session that a signal cut off: what was on its screen, which the next one offers to go on with.

It is made of what the screens show at that moment, never of what earlier sessions left.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerncap.core.program.workload import Command

NAME = "resume.cut_off"  # in what is remembered


@dataclass(frozen=True)
class CutOff:
    """One session. `directory` is where it ran: a program's name and arguments may be relative to it."""

    directory: Path
    workbench: Path | None = None
    command: Command | None = None
    running: bool = False
    device: str | None = None
    source_dir: Path | None = None

    @classmethod
    def of(cls, document: Any) -> CutOff | None:
        """From what is remembered. None where that is nothing that can be gone on with, here and now."""
        if not isinstance(document, dict):
            return None
        directory, workbench, source = (
            Path(text) if isinstance(text := document.get(name), str) and text else None
            for name in ("directory", "workbench", "source_dir")
        )
        try:
            words = tuple(str(word) for word in document.get("command") or ())
            variables = tuple((str(name), str(value)) for name, value in document.get("variables") or ())
        except (TypeError, ValueError):
            return None
        device = document.get("device")
        found = cls(
            directory or Path(),
            workbench if workbench is not None and workbench.is_dir() else None,
            Command(words, variables) if words and directory is not None and directory.is_dir() else None,
            document.get("running") is True,
            device if isinstance(device, str) else None,
            source,
        )
        return found if found.workbench or found.command else None

    def question(self) -> str:
        """What is asked."""
        if self.workbench is not None:
            return f"The last session was cut off, with the workbench on {self.workbench}. Go on there?"
        assert self.command is not None
        where = "" if self.is_here() else f" in {self.directory}"
        when = "while it ran" if self.running else "after it ran"
        again = "again" if self.is_here() else "there again"
        return f"The last session was cut off {when} {self.command.text()}{where}. Run it {again}?"

    def is_here(self) -> bool:
        """Whether it ran in the working directory."""
        return str(self.directory) == working_directory()


def working_directory() -> str:
    """Of this process; empty where it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def record(screens: Iterable[object], device: str | None, source_dir: Path | None) -> dict[str, Any] | None:
    """What is to be remembered of a session with those screens, the lowest first; None: nothing."""
    found: dict[str, Any] = {}
    for screen in screens:
        seen = getattr(screen, "seen", None)
        found |= seen() if seen is not None else {}
    if not found:
        return None
    found["directory"] = working_directory()
    if device:
        found["device"] = device
    if source_dir is not None:
        found["source_dir"] = str(source_dir.absolute())
    return found
