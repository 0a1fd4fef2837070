"""Captures on disk: opening one, listing them, and the transaction in which one is made.

A capture in the making is `.partial-<name>-<pid>-<start>` beside its final name; its manifest says "partial"
until all is there and flushed, and then the directory is renamed. What a dead kerncap has left is swept.
"""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerncap.core.capture import manifest
from kerncap.core.capture.reading import find_capture, has_traces, read_capture
from kerncap.core.capture.records import Capture
from kerncap.core.code.names import instance_name, matching, one_line
from kerncap.core.errors import DamagedCaptureError, UsageError, unwritable
from kerncap.core.files import A_DIRECTORY, fsync_directory, what_is
from kerncap.core.interrupts import settle
from kerncap.core.loop.keeping import put_aside, worked_on
from kerncap.core.program.control import process_start

_PARTIAL = re.compile(r"\.partial-.*-(\d+)-(\d+)\Z", re.DOTALL)
_LIST_DEPTH = 3
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


@dataclass(frozen=True, slots=True)
class OpenedCapture:
    """A capture whose manifest and records were checked."""

    directory: Path  # as given: a reproducer, or a capture
    capture: Capture
    manifest: dict[str, Any]


def open_capture(directory: str | os.PathLike[str], *, verify: bool = False) -> OpenedCapture:
    """Opens the capture in `directory` (a reproducer, or its `capture/`).

    Checks the manifest, `capture.bin` with its hash, and the sizes of the memory files; with `verify` their
    contents too. Raises DamagedCaptureError naming file and offset; UsageError where there is no capture.
    """
    where = Path(directory)
    path = find_capture(where)
    document = manifest.read(path)
    capture = read_capture(path)
    wanted = document["files"].get("capture.bin")
    if wanted != manifest.file_digest(path / "capture.bin"):
        raise DamagedCaptureError(
            f"{path / 'capture.bin'}: not the file that {manifest.NAME} describes; the capture is "
            "damaged, extract it again",
            file=str(path / "capture.bin"),
            offset=0,
        )
    if verify:
        capture.verify()
    return OpenedCapture(where, capture, document)


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of `kerncap list`."""

    directory: Path
    kernel: str
    symbol: str
    arch: str
    simulated: bool
    bytes: int
    bytes_on_disk: int
    created: str
    verdict: str | None
    problem: str | None  # why it cannot be used
    id: str = ""
    demangled: str = ""

    @property
    def told(self) -> str:
        """The kernel's name for a list: with its template arguments, which tell instances apart."""
        return instance_name(self.demangled) or self.kernel

    @property
    def short_id(self) -> str:
        """The beginning of its id, empty where that is not known."""
        return self.id[:6]

    def to_json(self) -> dict[str, Any]:
        """The JSON document of this line."""
        document = {slot: getattr(self, slot) for slot in self.__slots__}
        document["directory"] = str(self.directory)
        return document


def disk_bytes(directory: Path) -> int:
    """What a directory takes on disk (holes take nothing)."""
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_blocks * 512
            except OSError:
                continue
    return total


def _missized(capture: Path, files: Mapping[str, Any]) -> str | None:
    """What is wrong with the first file that is gone or has another size than the manifest says.

    The content is only read when a capture is opened: a list of many must stay quick.
    """
    for name in sorted(files):
        path = capture / name
        if not path.is_file():
            return f"{name} is missing"
        size = path.stat().st_size
        if size != files[name]["bytes"]:
            return f"{name} has {size} bytes, the manifest says {files[name]['bytes']}"
    return None


def _list_one(directory: Path, capture: Path) -> Listed:
    try:
        document = manifest.read(capture)
        memory, kernel, device = document["memory"], document["kernel"], document["device"]
        return Listed(
            directory=directory,
            kernel=str(kernel["name"]),
            symbol=str(kernel["symbol"]),
            arch=str(device["arch"]),
            simulated=bool(device["simulated"]),
            bytes=int(memory["bytes"]),
            bytes_on_disk=disk_bytes(directory),
            created=str(document.get("created", "")),
            verdict=(document.get("baseline") or {}).get("verdict"),
            problem=_missized(capture, document["files"]),
            id=str(kernel["id"]),
            demangled=str(kernel["demangled"]),
        )
    except (DamagedCaptureError, KeyError, TypeError, ValueError) as error:
        reason = (
            error.message
            if isinstance(error, DamagedCaptureError)
            else f"{capture / manifest.NAME}: damaged: {error!r}"
        )
        return Listed(directory, "", "", "", False, 0, disk_bytes(directory), "", None, reason)


def list_captures(root: str | os.PathLike[str] = "isolated") -> list[Listed]:
    """The captures at or below `root`, by path. Raises UsageError where `root` is no readable directory."""
    base = Path(root)
    if not base.exists():
        raise UsageError(
            f"there are no captures in {base}, which does not exist: `kerncap extract` makes them in "
            "./isolated, `kerncap list DIR` shows those of another directory"
        )
    if not base.is_dir():
        raise UsageError(f"{base} is no directory; name the one that captures were extracted to")
    try:
        os.listdir(base)
    except OSError as error:
        raise UsageError(f"{base} cannot be read: {error.strerror}") from None
    found: list[Listed] = []

    def look(directory: Path, depth: int) -> None:
        for capture in (directory, directory / "capture"):
            if has_traces(capture):
                found.append(_list_one(directory, capture))
                return
        if depth < _LIST_DEPTH:
            try:
                children = sorted(
                    entry.name for entry in os.scandir(directory) if entry.is_dir(follow_symlinks=False)
                )
            except OSError:
                return
            for name in children:
                if not name.startswith("."):
                    look(directory / name, depth + 1)

    look(base, 0)
    return found


def captured_as(pattern: str, root: Path) -> list[tuple[Path, Known]]:
    """The captures in `root` itself that `pattern` can mean."""
    found = []
    for directory in sorted(root.iterdir()) if root.is_dir() and os.access(root, os.R_OK | os.X_OK) else ():
        if directory.name.startswith(".") or not has_traces(directory / "capture"):
            continue
        try:
            kernel = manifest.read(directory / "capture")["kernel"]
            ident, written, symbol = (str(kernel[key]) for key in ("id", "demangled", "symbol"))
        except (DamagedCaptureError, KeyError, TypeError):
            continue
        known = Known(ident, written or symbol, symbol)
        if matching(pattern, [known]):
            found.append((directory, known))
    return found


def free_output(wanted: Path, pattern: str) -> Path:
    """`wanted`, or the first of `wanted-2`, `wanted-3` ... that is free, where what is there is another
    kernel than `pattern` names: an instance of the same template, for instance.

    The first that may be of that kernel is returned, to be refused or replaced as it is.
    """
    found, number = wanted, 1
    while has_traces(found / "capture"):
        there = _list_one(found, found / "capture")
        known = Known(there.id, there.demangled or there.symbol, there.symbol)
        if (there.problem and not there.id) or matching(pattern, [known]):
            return found
        number += 1
        found = wanted.with_name(f"{wanted.name}-{number}")
    return found


@dataclass(frozen=True, slots=True)
class Known:
    """A captured kernel, to be named."""

    id: str
    name: str
    symbol: str


def sweep_partial(parent: Path) -> list[Path]:
    """Removes what dead extractions of ours have left in `parent`."""
    removed = []
    try:
        entries = list(os.scandir(parent))
    except OSError:
        return []
    for entry in entries:
        match = _PARTIAL.match(entry.name)
        if not match or not entry.is_dir(follow_symlinks=False):
            continue
        if process_start(int(match[1])) == int(match[2]):
            continue
        try:
            if entry.stat(follow_symlinks=False).st_uid == os.getuid():
                shutil.rmtree(entry.path)
                removed.append(Path(entry.path))
        except OSError:
            continue
    return removed


def _exchange(first: Path, second: Path) -> bool:
    """Swaps two names in one step (Linux's renameat2); False where the file system cannot."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        call = libc.renameat2
    except (OSError, AttributeError):
        return False
    result = call(
        _AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), ctypes.c_uint(_RENAME_EXCHANGE)
    )
    return int(result) == 0


def check_output(output: Path, force: bool) -> None:
    """Raises UsageError if a reproducer cannot be put at `output`, before a program is run for it."""
    try:
        os.lstat(output)
        there = True
    except FileNotFoundError:
        there = False
    except OSError as error:
        raise UsageError(f"{one_line(str(output), 160)}: {error.strerror}") from None
    if there:
        found = "a link" if output.is_symlink() else what_is(output)
        if found != A_DIRECTORY:
            raise UsageError(
                f"{output} is {found}; --force replaces only what an extraction has made, "
                "-o names another place"
            )
        if not force:
            raise UsageError(f"{output} exists already; --force replaces it, -o names another place")
        try:
            replaceable = not os.listdir(output) or (output / "capture" / "capture.bin").exists()
        except OSError as error:
            raise UsageError(f"{output} cannot be read: {error.strerror}") from None
        if not replaceable:
            raise UsageError(f"{output} holds no capture; --force replaces only what an extraction has made")
    ancestor = output.absolute().parent
    while not ancestor.exists():
        ancestor = ancestor.parent
    if not ancestor.is_dir():
        raise UsageError(f"{output}: {ancestor} is no directory")
    if not os.access(ancestor, os.W_OK | os.X_OK):
        raise UsageError(f"{output}: {ancestor} may not be written to")


def free_bytes(path: Path) -> int:
    """Free space for this user where `path` is, or will be."""
    while not path.exists():
        path = path.parent
    room = os.statvfs(path)
    return room.f_bavail * room.f_frsize


@contextmanager
def transaction(output: Path, *, force: bool) -> Iterator[tuple[Path, Callable[[Path], str | None]]]:
    """A private directory beside `output`, and the function that puts it there, or at another name in the
    same folder. Whatever goes wrong, it is removed.

    With `force`, an earlier capture at `output` is replaced in the step that puts the new one there, never
    before. One that was worked on is kept beside it, and the function returns a sentence on that. Raises
    UsageError where the directory cannot be made, or `output` has appeared meanwhile.
    """
    output = output.absolute()
    made: list[Path] = []
    missing = output.parent
    while not missing.exists():
        made.append(missing)
        missing = missing.parent
    start = process_start(os.getpid()) or 0
    shown = os.fsdecode(os.fsencode(output.name)[:80])  # names are limited in bytes
    partial = output.parent / f".partial-{shown}-{secrets.token_hex(3)}-{os.getpid()}-{start}"
    committed = False

    def commit(to: Path) -> str | None:
        nonlocal committed
        said, output = None, to.absolute()
        fsync_directory(partial)
        if os.path.lexists(output):
            if not force:
                raise UsageError(f"{output} appeared while the capture was made; nothing was replaced")
            settle()
            old = partial
            if not _exchange(partial, output):
                old = partial.with_name(partial.name.replace(".partial-", ".partial-old-", 1))
                os.rename(output, old)
                os.rename(partial, output)
            committed = True
            work = worked_on(old, output)
            if work is None:
                shutil.rmtree(old, ignore_errors=True)
            else:
                kept = put_aside(old, output)
                said = f"what was at {output.name} had {work}: it is kept as {kept}"
        else:
            settle()
            os.rename(partial, output)
            committed = True
        fsync_directory(output.parent)
        return said

    try:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            sweep_partial(output.parent)
            partial.mkdir(mode=0o700)
            partial.chmod(0o700)
        except OSError as error:
            raise unwritable(error.filename or output, error) from None
        yield partial, commit
    finally:
        if not committed:
            settle(False)
            shutil.rmtree(partial, ignore_errors=True)
            for directory in made:
                try:
                    directory.rmdir()
                except OSError:
                    break
