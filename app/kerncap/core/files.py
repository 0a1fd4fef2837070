"""Writing files so that they are there whole or not at all, and are their owner's alone."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from kerncap.core.errors import UsageError


def check_writable_target(path: Path) -> None:
    """Raises UsageError if a file cannot be put at `path`, before any work is done for it."""
    parent = path.parent if str(path.parent) else Path()
    if path.is_dir():
        raise UsageError(f"{path} is a directory; name a file")
    if not parent.is_dir():
        raise UsageError(f"{path}: the directory {parent} does not exist")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UsageError(f"{path}: the directory {parent} may not be written to")


def write_atomically(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Writes beside `path`, flushes to disk and renames. Raises OSError, leaving nothing behind."""
    temporary = path.with_name(f".{path.name[:60]}.{secrets.token_hex(4)}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def json_text(document: Any) -> str:
    """A document as kerncap prints and stores it: indented, UTF-8, NaN refused."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: Path, document: Any) -> None:
    """`write_atomically` of a document. Raises UsageError, naming the path, where it cannot be written."""
    try:
        write_atomically(path, json_text(document).encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None


def fsync_directory(path: Path) -> None:
    """Flushes a directory's entries to disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def fsync_tree(path: Path) -> None:
    """Flushes every file and directory below `path` to disk; what has been flushed already costs little."""
    for parent, _, names in os.walk(path):
        for name in names:
            fd = os.open(os.path.join(parent, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        fsync_directory(Path(parent))
