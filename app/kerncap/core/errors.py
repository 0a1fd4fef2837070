"""Errors that reach a person: a sentence that names the thing, its value and the way out, and an exit
code.
"""

from __future__ import annotations


class KerncapError(Exception):
    """Base of every error that kerncap raises on purpose.

    The message is shown as it is; `exit_code` is what the command line ends with. An optional
    `details` mapping goes into the error document of `--json`.
    """

    exit_code = 1

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, object] = dict(details)


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


class WorkloadError(KerncapError):
    """The program failed, was ended, or never launched the kernel."""

    exit_code = 5


class DamagedCaptureError(KerncapError):
    """A capture that is incomplete, altered, or of a version this kerncap does not read."""

    exit_code = 6


class Interrupted(KerncapError):
    """Stopped by the user (ctrl-C, or a signal that ends kerncap)."""

    exit_code = 130

    def __init__(self, message: str = "interrupted", **details: object) -> None:
        super().__init__(message, **details)
