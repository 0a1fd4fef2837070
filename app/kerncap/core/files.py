"""Writing files so that they are there whole or not at all, and are their owner's alone."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
from pathlib import Path
from typing import Any

from kerncap.core.errors import UsageError, unwritable

A_FILE, AN_EMPTY_FILE, A_DIRECTORY, A_SOCKET = "a file", "an empty file", "a directory", "a socket"
_KINDS = (
    (stat.S_ISDIR, A_DIRECTORY),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, A_SOCKET),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def what_is(path: str | os.PathLike[str]) -> str:
    """What is at a path, for a sentence; "" where there is nothing. UsageError where that is hidden."""
    try:
        info = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        try:
            return f"a link to {os.readlink(path)}, which does not exist"
        except OSError:
            return ""
    except OSError as error:
        raise UsageError(f"{os.fspath(path)} cannot be read: {error.strerror}") from None
    for is_one, words in _KINDS:
        if is_one(info.st_mode):
            return words
    return A_FILE if info.st_size else AN_EMPTY_FILE


def check_directory(path: str | os.PathLike[str], what: str) -> None:
    """Raises UsageError unless there is a directory at `path`; `what` names the path's part."""
    found = what_is(path)
    if found != A_DIRECTORY:
        told = f"is {found}, no directory" if found else "does not exist"
        raise UsageError(f"{what} {os.fspath(path)} {told}")


def check_writable_target(path: Path) -> None:
    """Raises UsageError if a file cannot be put at `path`, before any work is done for it."""
    try:
        found = what_is(path)
        if found in (A_DIRECTORY, A_SOCKET):
            raise UsageError(f"{path} is {found}; name a file")
        if _written_through(path):
            if not os.access(path, os.W_OK):
                raise UsageError(f"{path} may not be written to")
            return
        parent = _behind_links(path).parent
        if not parent.is_dir():
            raise UsageError(f"{path}: the directory {parent} does not exist")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UsageError(f"{path}: the directory {parent} may not be written to")


def _behind_links(path: Path) -> Path:
    """What a link at `path` names: the file is replaced there, and the link stays."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _written_through(path: Path) -> bool:
    """Whether `path` is no file that another can take the place of: a device, a pipe, an open descriptor."""
    if os.path.abspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return path.exists()
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def _write_through(path: Path, data: bytes) -> None:
    try:
        # Without a reader, opening a pipe would wait for one.
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(error.errno, "nobody reads it", os.fspath(path)) from None
        raise
    os.set_blocking(fd, True)
    with os.fdopen(fd, "wb") as file:
        file.write(data)


def write_atomically(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Writes beside `path`, flushes to disk and renames. Raises OSError, leaving nothing behind.

    A link stays, and what it names is replaced; into a device or a pipe the data is written as it is.
    """
    if _written_through(path):
        _write_through(path, data)
        return
    path = _behind_links(path)
    temporary = path.with_name(f".{path.name[:60]}.{secrets.token_hex(4)}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = os.fspath(path)  # writing names no file, and the reader wants to know
        temporary.unlink(missing_ok=True)
        raise


def json_text(document: Any) -> str:
    """A document as kerncap prints and stores it: indented, UTF-8, NaN refused.

    Bytes of a path that are no UTF-8 (PEP 383) are escaped; whoever reads the document gets the path back.
    """
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


_JSON_WORDS = {
    "Extra data": "something follows the end of the document",
    "Expecting value": "a value is expected",
    "Expecting ',' delimiter": "a comma is missing, or a bracket",
    "Expecting ':' delimiter": "a colon is missing",
    "Expecting property name enclosed in double quotes": "a name in double quotes is expected",
    "Illegal trailing comma before end of object": "a comma stands before the end of an object",
    "Illegal trailing comma before end of array": "a comma stands before the end of a list",
    "Unterminated string starting at": "a text that begins here has no end",
    "Invalid control character at": "a text goes on in the next line, or has a control character in it",
    "Invalid \\escape": "a backslash that no escape begins with (write two of them)",
}


def unread(error: Exception) -> str:
    """Why a JSON document that a person may edit cannot be read: where, and what is wrong there."""
    if isinstance(error, json.JSONDecodeError):
        what = _JSON_WORDS.get(error.msg.rstrip(": "), error.msg)
        return f"line {error.lineno}, column {error.colno}: {what}"
    if isinstance(error, UnicodeDecodeError):
        line = error.object[: error.start].count(b"\n") + 1
        return f"line {line}: a byte that is no UTF-8, 0x{error.object[error.start]:02x}"
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or error}"
    return str(error) or type(error).__name__


def write_json(path: Path, document: Any) -> None:
    """`write_atomically` of a document. Raises UsageError, naming the path, where it cannot be written, and
    WorkloadError where there is no room.
    """
    try:
        write_atomically(path, json_text(document).encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise unwritable(path, error) from None


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
