"""What of a reproducer is somebody's work, and is not thrown away with it."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from kerncap.core.compile_file import NAME, OUTPUT, OUTPUT_CUDA
from kerncap.core.errors import KerncapError
from kerncap.core.history import captured_sources, present_sources
from kerncap.core.iterations import FOLDER

# What kerncap and `make` write beside what an extraction wrote.
_MADE = {NAME, OUTPUT, OUTPUT_CUDA, FOLDER, "Makefile", "README.md", "capture", "build", "__pycache__"}


def worked_on(directory: Path, fresh: Path) -> str | None:
    """What somebody has done in the reproducer `directory`, in words; None if an extraction makes all of it.

    `fresh` is a newer reproducer of the same place: it tells what an extraction writes.
    """
    try:
        if any((directory / FOLDER).iterdir()):
            return "attempts"
    except OSError:
        pass
    if (directory / NAME).exists():
        try:
            present = present_sources(directory)
            if any(present.get(name) != text for name, text in captured_sources(directory).items()):
                return "edited sources"
        except (KerncapError, OSError):
            return "sources that cannot be compared"
    try:
        written = {*os.listdir(fresh), *_MADE}
        foreign = sorted(name for name in os.listdir(directory) if name not in written)
    except OSError:
        return "files that cannot be listed"
    sources = {Path(name).parts[0] for name in _sources(directory)}
    foreign = [name for name in foreign if name not in sources]
    return f"files of its own ({foreign[0]})" if foreign else None


def _sources(directory: Path) -> list[str]:
    try:
        return [name for name in captured_sources(directory) if name]
    except (KerncapError, OSError):
        return []


def put_aside(directory: Path, place: Path) -> Path:
    """Moves `directory` to `place`.old, or .old-2 and so on, and returns where it is now."""
    for number in itertools.count(1):
        kept = place.with_name(f"{place.name}.old" + (f"-{number}" if number > 1 else ""))
        if os.path.lexists(kept):
            continue
        os.rename(directory, kept)
        return kept
    raise AssertionError
