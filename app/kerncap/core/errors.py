"""Errors that reach a person: a sentence that names the thing, its value and the way out, and an exit
code.
"""

from __future__ import annotations

import errno
import os
import shutil

# What a path can have against it that no check before could know for good.
_PLACE = frozenset(
    (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR)
)


class KerncapError(Exception):
    """Base of every error that kerncap raises on purpose.

    The message is shown as it is; `exit_code` is what the command line ends with. An optional
    `details` mapping goes into the error document of `--json`.
    """

    exit_code = 3

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, object] = dict(details)


class FailError(KerncapError):
    """A verdict of FAIL."""

    exit_code = 1


class UsageError(KerncapError):
    """The request itself is wrong: an unknown option value, an unknown or ambiguous kernel, an output that
    exists.
    """

    exit_code = 2


class InconclusiveError(KerncapError):
    """Nothing was proven: neither PASS nor FAIL may be reported."""

    exit_code = 3


class DeviceError(KerncapError):
    """No such device, tool or runtime here."""

    exit_code = 4


class ShortageError(DeviceError):
    """Not enough memory, open files or threads here: that says nothing of what was read, built or run."""


class WorkloadError(KerncapError):
    """The program failed, was ended, or never launched the kernel."""

    exit_code = 5


DAMAGED = "; the capture is damaged, extract it again"  # how most of these end


class DamagedCaptureError(KerncapError):
    """A capture that is incomplete, altered, or of a version this kerncap does not read."""

    exit_code = 6


class Interrupted(KeyboardInterrupt):
    """Stopped by the user (ctrl-C, or a signal that ends kerncap). As any KeyboardInterrupt it is no
    Exception: it comes at any moment, and whoever goes on after an error must not go on after this.
    """

    exit_code = 130

    def __init__(self, message: str = "interrupted") -> None:
        super().__init__(message)
        self.message = message


# What there is no room for, and the way out.
_ROOM = {
    errno.ENOSPC: "make room, or name another place",
    errno.EDQUOT: "make room, or name another place",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
}


# What a process can be short of, and the way out: a file that cannot be read for that is none the worse.
_MEMORY = (
    "there is not enough memory; raise the limit (ulimit -v, or the container's), or end what else takes it"
)
_SHORT = {
    errno.ENOMEM: _MEMORY,
    errno.EMFILE: "too many files are open; raise the limit (ulimit -n)",
    errno.ENFILE: "too many files are open on this machine; end what has them open (sysctl fs.file-max)",
    errno.EAGAIN: "no more threads, or no memory for one; raise the limits (ulimit -u, ulimit -v)",
}


def way_out(number: int) -> str:
    """What helps against an error number that tells of a want: of room, of memory, of open files; else
    "".
    """
    return {**_ROOM, **_SHORT}.get(number, "")


def shortage_in(text: str, *, thrown: bool = True) -> str:
    """What is short, and the way out, where a tool has said that it is: memory, open files, threads; else
    "". `thrown`: also by the C++ exception alone, which a compiler's message may quote from the source.
    """
    if thrown and "bad_alloc" in text:
        return _MEMORY
    return next((way for number, way in _SHORT.items() if os.strerror(number) in text), "")


def unreadable(
    what: str | os.PathLike[str],
    error: OSError,
    otherwise: type[KerncapError] = UsageError,
    after: str = "",
    **details: object,
) -> KerncapError:
    """The error for `what`, which could not be read: a ShortageError where this process is short of
    something, else `otherwise`, which ends with `after` and has `details`.
    """
    name, reason = os.fspath(what), error.strerror or str(error)
    if error.errno in _SHORT:
        return ShortageError(f"{name} cannot be read: {reason}: {_SHORT[error.errno]}")
    if isinstance(error, FileNotFoundError) and otherwise is DamagedCaptureError:
        return otherwise(f"{name} is missing{after}", **details)
    return otherwise(f"{name} cannot be read: {reason}{after}", **details)


def no_room_in(text: str) -> int:
    """The error number where what a tool has said is that the disk is full, or a file over the limit on its
    size; else 0.
    """
    return next((number for number in _ROOM if os.strerror(number) in text), 0)


def unwritable(
    what: str | os.PathLike[str], error: OSError, otherwise: type[KerncapError] = UsageError
) -> KerncapError:
    """The error for `what`, which could not be written: a WorkloadError where there is no room, or where a
    limit on the size of files is met, else `otherwise`.
    """
    if isinstance(error, shutil.Error):  # of a whole tree: what its first file says
        first = str(error.args[0][0][2] if isinstance(error.args[0], list) else error)
        error = OSError(no_room_in(first) or errno.EIO, first)
    reason = error.strerror or str(error)
    if error.errno in _ROOM:
        return WorkloadError(f"{os.fspath(what)} cannot be written: {reason}; {_ROOM[error.errno]}")
    return otherwise(f"{os.fspath(what)} cannot be written: {reason}")


def explained(error: BaseException) -> KerncapError | None:
    """What an exception that nobody foresaw comes from, where that is not kerncap: a limit of the process, a
    full disk, a directory that is gone. None for anything else.
    """
    if isinstance(error, MemoryError):
        return ShortageError(_MEMORY)
    if not isinstance(error, OSError):
        return None
    if error.errno in _ROOM:
        return unwritable(error.filename or "stdout, or a file,", error)
    if error.errno in _SHORT:
        return ShortageError(
            (f"{os.fspath(error.filename)}: " if error.filename else "") + _SHORT[error.errno]
        )
    if error.errno in _PLACE and error.filename:
        return UsageError(f"{os.fspath(error.filename)}: {error.strerror}")
    if error.errno == errno.ENOENT and not error.filename:
        try:
            os.getcwd()
        except OSError:
            return UsageError("the working directory is gone; change to another")
        if "temporary directory" in str(error.strerror):
            return DeviceError("no directory for temporary files can be written to; TMPDIR names another")
    return None
