"""The edit of a reproducer as a patch of the program's tree, for `git apply` or `patch -p1`."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path

from kerncap.core.build.compile_file import PRISTINE, CompileFile
from kerncap.core.errors import UsageError, unreadable, unwritable
from kerncap.core.files import write_atomically

NAME = "variant.patch"


@dataclass(frozen=True)
class Patch:
    """A unified diff. `root` is the directory it applies in; `files` are the changed ones, relative to that.

    `outside` are changed files that are not below the root, and so not in the patch. `applies` says whether
    the program's files are still what was copied: None where they cannot be read.
    """

    text: bytes
    root: Path
    files: tuple[str, ...]
    outside: tuple[Path, ...]
    applies: bool | None


def make_patch(directory: Path) -> Patch:
    """What was edited in a reproducer since it was written, as it would be edited in the program's tree.

    Raises UsageError where nothing was edited, or a copy or its untouched twin is gone.
    """
    plan = CompileFile.read(directory)
    originals: dict[str, Path] = {}
    for path, copy in plan.files.items():
        originals.setdefault(copy, path)
    pieces: list[bytes] = []
    files: list[str] = []
    outside: list[Path] = []
    same: list[bool | None] = []
    for copy, original in sorted(originals.items(), key=lambda item: str(item[1])):
        before, after = _read(directory / PRISTINE / copy), _read(directory / copy)
        if before == after:
            continue
        if not original.is_relative_to(plan.root):
            outside.append(original)
            continue
        name = str(original.relative_to(plan.root))
        files.append(name)
        pieces.append(_file_diff(name, before, after))
        try:
            same.append(original.read_bytes() == before)
        except OSError:
            same.append(None)
    if not files and not outside:
        raise UsageError(f"Nothing was edited in {directory}: there is no patch to write.")
    applies = None if None in same else all(same)
    return Patch(b"".join(pieces), plan.root, tuple(files), tuple(outside), applies)


def write_patch(directory: Path, output: Path | None = None) -> Patch:
    """`make_patch`, written to `output` (variant.patch in the reproducer). Raises UsageError where it cannot
    be written.
    """
    patch = make_patch(directory)
    path = output or directory / NAME
    try:
        write_atomically(path, patch.text)
    except OSError as error:
        raise unwritable(path, error) from error
    return patch


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error, after=". Extract again, or put it back.") from error


def _file_diff(name: str, before: bytes, after: bytes) -> bytes:
    old, new = _quote(f"a/{name}"), _quote(f"b/{name}")
    # A tab ends a name with blanks in it, as git writes it.
    end = b"\t\n" if " " in name else b"\n"
    lines = difflib.diff_bytes(difflib.unified_diff, _lines(before), _lines(after), lineterm=b"\n")
    body = list(lines)[2:]
    text = [b"diff --git " + old + b" " + new + b"\n", b"--- " + old + end, b"+++ " + new + end]
    for line in body:
        text.append(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n")
    return b"".join(text)


def _lines(content: bytes) -> list[bytes]:
    parts = content.split(b"\n")
    return [p + b"\n" for p in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _quote(name: str) -> bytes:
    """A path as git's diff headers have it: in double quotes with C escapes where it has unusual bytes."""
    raw = os.fsencode(name)
    if all(32 <= b < 127 and b not in b'"\\' for b in raw):
        return raw
    escapes = {ord('"'): b'\\"', ord("\\"): b"\\\\", 9: b"\\t", 10: b"\\n"}
    body = b"".join(escapes.get(b, bytes([b]) if 32 <= b < 127 else b"\\%03o" % b) for b in raw)
    return b'"' + body + b'"'
