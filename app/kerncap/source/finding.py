"""What is asked of a source finder, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kerncap.core.build.compile_command import CompileCommand
from kerncap.core.code.codeobject import Target

LANGUAGES = ("hip", "cuda")


def _quiet(_: str) -> None:
    """Progress that nobody looks at."""


@dataclass(frozen=True)
class SourceRequest:
    """A captured kernel whose source is wanted.

    `symbol` is mangled; `target` is what its code object was compiled for. `source_dirs` are what the user
    named; `working_directory` and `executable` are the program's, and are only looked at for
    compile_commands.json.
    """

    symbol: str
    code_object: Path
    target: Target
    source_dirs: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    working_directory: Path | None = None
    executable: Path | None = None
    compile_commands: Path | None = None
    timeout_s: float = 300.0
    progress: Callable[[str], None] = field(default=_quiet, compare=False)


@dataclass(frozen=True)
class Definition:
    """Where the kernel stands: a file and a line (from 1; 0 where the line is not known)."""

    file: Path
    line: int


@dataclass(frozen=True)
class SourceFinding:
    """The answer. Without a `command` there is nothing to recompile, and `reason` says why in a sentence.

    `dependencies` are the unit and every file that its device compile reads, absolute and in the order of
    reading, toolchain and system files included. `notes` are sentences a person should see, such as options
    that were guessed.
    """

    language: str
    command: CompileCommand | None = None
    definition: Definition | None = None
    dependencies: tuple[Path, ...] = ()
    reason: str | None = None
    notes: tuple[str, ...] = ()
