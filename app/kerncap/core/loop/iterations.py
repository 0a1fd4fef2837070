"""What the edit loop keeps: DIR/iterations/NNN, one directory an attempt, with source, object, samples and
verdict.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerncap.core.errors import DamagedCaptureError, UsageError, unwritable
from kerncap.core.files import write_json

FOLDER = "iterations"
RECORD = "iteration.json"
OBJECT = "variant.hsaco"
SOURCE = "source"
SCHEMA = "kerncap-iteration/1"
_MOST_RIVALS = 100  # numbers that other sessions take while one looks for its own
OUTCOMES = ("passed", "failed", "build-failed", "error", "superseded", "kept")
# As core/judge/verdict.py has them, which takes long to import.
VERDICTS = ("IDENTICAL", "WITHIN_TOLERANCE", "NONDETERMINISTIC_OK", "FAIL", "INCONCLUSIVE", "RAN")
_NAME = re.compile(r"\d{3,}")


@dataclass(frozen=True)
class Iteration:
    """One attempt on disk. `document` is iteration.json: steps with seconds, outcome, timing and verdict."""

    number: int
    directory: Path
    document: dict[str, Any]

    @property
    def outcome(self) -> str:
        """One of OUTCOMES."""
        return str(self.document.get("outcome", ""))


def list_iterations(directory: Path, problems: list[str] | None = None) -> list[Iteration]:
    """The complete attempts of a reproducer, oldest first.

    Raises DamagedCaptureError naming a record that is not right; with `problems`, its sentence goes there,
    and the others are returned.
    """
    folder = directory / FOLDER
    found: list[Iteration] = []
    if not folder.is_dir():
        return found
    for path in sorted(folder.iterdir(), key=lambda p: (len(p.name), p.name)):
        record = path / RECORD
        if not _NAME.fullmatch(path.name) or not record.is_file():
            continue
        try:
            found.append(_read(path))
        except DamagedCaptureError as error:
            if problems is None:
                raise
            problems.append(error.message)
    return found


def find_iteration(directory: Path, number: int) -> Iteration:
    """One complete attempt (`number` 0: the newest). Raises UsageError where there is none,
    DamagedCaptureError.
    """
    if number:
        path = directory / FOLDER / f"{number:03d}"
        if (path / RECORD).is_file():
            return _read(path)
        raise UsageError(f"{path} holds no complete attempt.")
    known = list_iterations(directory, problems=[])
    if not known:
        raise UsageError(f"{directory} has no attempt yet: build first.")
    return known[-1]


def _finite(text: str) -> float:
    """No record has a number beyond all bounds, or none."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number")
    return value


def _read(path: Path) -> Iteration:
    record = path / RECORD
    try:
        document = json.loads(record.read_text("utf-8"), parse_constant=_finite, parse_float=_finite)
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']!r}; this kerncap reads {SCHEMA!r}")
        if document["outcome"] not in OUTCOMES:
            raise ValueError(f"outcome {document['outcome']!r} is none of {', '.join(OUTCOMES)}")
        validation = document.get("validation")
        verdict = validation.get("verdict") if isinstance(validation, dict) else None
        if verdict is not None and verdict not in VERDICTS:
            raise ValueError(f"verdict {verdict!r} is none of {', '.join(VERDICTS)}")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedCaptureError(f"{record} cannot be read: {error}.", file=str(record)) from error
    return Iteration(int(path.name), path, document)


class Keeper:
    """Writes the attempts of one session. Numbers go on from those that are there."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory / FOLDER
        self._next = 1

    def open(self, contents: Mapping[str, bytes]) -> tuple[int, Path]:
        """A new attempt with its sources in it. Raises UsageError where the directory cannot be written."""
        try:
            if not self._folder.is_dir() and os.path.lexists(self._folder):
                raise UsageError(f"{self._folder} is no directory; attempts are kept there: move it away.")
            self._folder.mkdir(exist_ok=True, mode=0o700)
            number, path = self._take()
            for name, content in contents.items():
                target = path / SOURCE / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        except OSError as error:
            raise unwritable(self._folder, error) from error
        return number, path

    def _take(self) -> tuple[int, Path]:
        """The next number that nobody else has, and its new directory."""
        taken = [int(p.name) for p in self._folder.iterdir() if _NAME.fullmatch(p.name)]
        self._next = max([self._next, *(n + 1 for n in taken)])
        for number in range(self._next, self._next + _MOST_RIVALS):
            path = self._folder / f"{number:03d}"
            try:
                path.mkdir(mode=0o700)
            except FileExistsError:  # another session on this reproducer took it since we looked
                continue
            return number, path
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))

    def close(self, number: int, path: Path, document: Mapping[str, Any]) -> Iteration:
        """Complete an attempt: its record is written last, so that an attempt without one never counted."""
        whole = {
            "schema": SCHEMA,
            "number": number,
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            **document,
        }
        write_json(path / RECORD, whole)
        return Iteration(number, path, dict(whole))
