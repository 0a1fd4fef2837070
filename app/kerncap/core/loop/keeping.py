"""What of a reproducer is somebody's work, and is not thrown away with it."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from kerncap.core.build.compile_file import NAME, OUTPUT, OUTPUT_CUDA, OVERLAY, CompileFile
from kerncap.core.errors import KerncapError
from kerncap.core.loop.history import edited_copies
from kerncap.core.loop.iterations import FOLDER

# What kerncap and `make` write beside what an extraction wrote.
_MADE = {
    NAME,
    OUTPUT,
    OUTPUT_CUDA,
    OVERLAY,
    FOLDER,
    "Makefile",
    "README.md",
    "capture",
    "build",
    "__pycache__",
}


def worked_on(directory: Path, fresh: Path) -> str | None:
    """What somebody has done in the reproducer `directory`, in words; None if an extraction makes all of it.

    `fresh` is a newer reproducer of the same place: it tells what an extraction writes.
    """
    try:
        if any((directory / FOLDER).iterdir()):
            return "attempts"
    except OSError:
        pass
    copies: list[str] = []
    if (directory / NAME).exists():
        try:
            copies, edited = list(CompileFile.read(directory).files.values()), edited_copies(directory)
        except (KerncapError, OSError):
            return "sources that cannot be compared"
        if edited:
            return "edited sources"
    try:
        known = {*os.listdir(fresh), *_MADE, *(Path(name).parts[0] for name in copies)}
        foreign = sorted(name for name in os.listdir(directory) if name not in known)
    except OSError:
        return "files that cannot be listed"
    return f"files of its own ({foreign[0]})" if foreign else None


def put_aside(directory: Path, place: Path) -> Path:
    """Moves `directory` to `place`.old, or .old-2 and so on, and returns where it is now."""
    names = itertools.chain([f"{place.name}.old"], (f"{place.name}.old-{n}" for n in itertools.count(2)))
    kept = next(path for name in names if not os.path.lexists(path := place.with_name(name)))
    os.rename(directory, kept)
    return kept
