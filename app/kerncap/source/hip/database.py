"""compile_commands.json: where it is, and the HIP (or CUDA) units in it."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kerncap.core.build.compile_command import CompileCommand, is_hip, make_command
from kerncap.core.errors import UsageError
from kerncap.core.files import unread

NAME = "compile_commands.json"
_MAX_FOLDERS = 4000
_SKIP = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".cache"})


@dataclass(frozen=True)
class Database:
    """The units of one or more databases, in order, and sentences on what could not be used."""

    commands: tuple[CompileCommand, ...]
    paths: tuple[Path, ...]
    notes: tuple[str, ...]


def find_databases(near: Iterable[Path]) -> list[Path]:
    """compile_commands.json in the given directories, up to two levels below, and in those above up to the
    repository's root.
    """
    found: dict[Path, None] = {}
    budget = [_MAX_FOLDERS]
    for start in near:
        directory = Path(os.path.abspath(start))
        if os.path.isfile(directory):
            directory = directory.parent
        if not os.path.isdir(directory) or directory == Path("/"):
            continue
        for candidate in _below(directory, 2, budget):
            found[candidate] = None
        for parent in list(directory.parents)[:5]:
            home = Path(os.path.expanduser("~"))
            if parent in (Path("/"), home) or os.path.exists(directory / ".git"):
                break
            for candidate in _below(parent, 0, budget):
                found[candidate] = None
            directory = parent
    return list({path.resolve(): path for path in found}.values())


def _below(directory: Path, depth: int, budget: list[int]) -> Iterator[Path]:
    if os.path.isfile(directory / NAME):
        yield directory / NAME
    budget[0] -= 1
    if depth == 0 or budget[0] < 0:
        return
    try:
        folders = sorted(e.name for e in os.scandir(directory) if e.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in folders:
        if name not in _SKIP:
            yield from _below(directory / name, depth - 1, budget)


def load(paths: Iterable[Path], accepts: Callable[[CompileCommand], bool] = is_hip) -> Database:
    """The units of databases whose commands `accepts` takes. One that cannot be read is a note, not an
    error: others may still have the unit.
    """
    commands: list[CompileCommand] = []
    notes: list[str] = []
    used: list[Path] = []
    for path in paths:
        try:
            rows = json.loads(path.read_text("utf-8"))
            if not isinstance(rows, list):
                raise ValueError("it is no list")
        except (OSError, ValueError) as error:
            notes.append(f"{path} was left out: {unread(error)}.")
            continue
        used.append(path)
        for row in rows:
            try:
                command = _command(row, path)
            except (KeyError, TypeError, ValueError, UsageError) as error:
                notes.append(f"{path}: the entry of {_name(row)} cannot be used: {error}")
                continue
            if accepts(command):
                commands.append(command)
    return Database(tuple(commands), tuple(used), tuple(dict.fromkeys(notes)))


def _command(row: dict[str, object], path: Path) -> CompileCommand:
    directory = Path(os.path.normpath(os.path.join(path.parent, str(row["directory"]))))
    arguments = row.get("arguments")
    if isinstance(arguments, list):
        words = [str(a) for a in arguments]
    else:
        words = shlex.split(str(row["command"]))
    output = row.get("output")
    return make_command(directory, words, str(row["file"]), str(output) if output else None, str(path))


def _name(row: object) -> str:
    return str(row.get("file", "an unnamed file")) if isinstance(row, dict) else "an unnamed file"
