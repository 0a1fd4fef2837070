"""Captures on disk: where one is, and reading it. Every defect is a DamagedCaptureError that names file and
offset.
"""

from __future__ import annotations

import os
from pathlib import Path

from kerncap.core.capture.record_parser import Parser
from kerncap.core.capture.records import Capture
from kerncap.core.errors import DamagedCaptureError, UsageError, unreadable

_FILES = ("capture.bin", "memory.pre", "memory.post")


def has_traces(directory: Path) -> bool:
    """Whether `directory` is, or was, a capture: any of its files is there."""
    # Not Path.is_file: a folder that may not be searched is no capture of ours, not an error.
    if any(os.path.isfile(directory / name) for name in _FILES):
        return True
    try:
        with (directory / "manifest.json").open("rb") as file:
            return b"kerncap-capture/" in file.read(1 << 20)  # other programs have files of that name
    except OSError:
        return False


def find_capture(directory: Path | str) -> Path:
    """The capture in `directory`: itself, or its `capture/` (a reproducer).

    Raises UsageError where there is none, DamagedCaptureError where one has lost its `capture.bin`.
    """
    directory = Path(directory)
    try:
        os.listdir(directory)
    except FileNotFoundError:
        raise UsageError(f"{directory} does not exist; `kerncap list` shows captures") from None
    except NotADirectoryError:
        raise UsageError(f"{directory} is no directory; name the directory of a capture") from None
    except OSError as error:
        raise unreadable(directory, error) from None
    places = (directory, directory / "capture")
    for candidate in places:
        if (candidate / "capture.bin").is_file():
            return candidate
    for candidate in places:
        if has_traces(candidate):
            raise DamagedCaptureError(
                f"{candidate / 'capture.bin'} is missing: the capture is damaged, extract it again",
                file=str(candidate / "capture.bin"),
                offset=0,
            )
    if (directory / "compile.json").is_file():
        raise DamagedCaptureError(
            f"{directory}: the reproducer has lost its capture/; extract it again",
            file=str(directory / "capture" / "capture.bin"),
            offset=0,
        )
    raise UsageError(
        f"{directory}: no capture here (neither capture.bin nor capture/capture.bin); "
        "`kerncap list` shows where captures are"
    )


def read_capture(directory: Path | str) -> Capture:
    """Reads the capture in `directory` (a capture, or a reproducer that holds one), and checks the structure
    of `capture.bin` (magic, version, lengths, checksum) and the sizes of the memory files.

    Raises DamagedCaptureError, which names file and offset; UsageError where there is no capture.
    """
    path = find_capture(directory)
    name = path / "capture.bin"
    try:
        raw = name.read_bytes()
    except OSError as error:
        raise unreadable(name, error, DamagedCaptureError, file=str(name), offset=0) from error
    return Parser(path, raw).capture()
