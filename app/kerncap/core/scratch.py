"""Private directories that their maker removes, and that are swept where it was killed first."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from pathlib import Path

# kerncap-[KIND-]PID-START-RANDOM, with a dot where it lies among a user's files.
_OWNED = re.compile(r"\.?kerncap-(?:[a-z]+-)*(\d+)-(\d+)-[0-9a-z_]+\Z", re.ASCII)
_swept: set[str] = set()


def process_start(pid: int) -> int | None:
    """Field 22 of /proc/<pid>/stat: with the pid it names a process for good. None: no such process, or a
    zombie.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[19])


def owned_prefix(kind: str = "", *, hidden: bool = False) -> str:
    """How the name of a directory begins that this process makes and removes."""
    own = f"{os.getpid()}-{process_start(os.getpid()) or 0}-"
    return f"{'.' if hidden else ''}kerncap-{kind}{'-' if kind else ''}{own}"


def sweep(root: Path) -> list[Path]:
    """Removes directories of ours in `root` whose maker is gone; returns what was removed."""
    removed = []
    try:
        with os.scandir(root) as entries:
            found = [(entry, match) for entry in entries if (match := _OWNED.match(entry.name))]
    except OSError:
        return []
    for entry, match in found:
        try:
            info = entry.stat(follow_symlinks=False)
            if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
                continue
            if process_start(int(match[1])) == int(match[2]):
                continue
            shutil.rmtree(entry.path)
            removed.append(Path(entry.path))
        except OSError:
            continue
    return removed


def scratch(kind: str, directory: Path | None = None) -> tempfile.TemporaryDirectory[str]:
    """A private directory, in the temporary directory or in `directory`, for use as a context manager."""
    place = str(directory) if directory is not None else tempfile.gettempdir()
    if place not in _swept:
        _swept.add(place)
        sweep(Path(place))
    return tempfile.TemporaryDirectory(
        prefix=owned_prefix(kind, hidden=directory is not None), dir=place, ignore_cleanup_errors=True
    )
