"""Noticing saves: the sources of a reproducer, by the system's file events or by polling."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import watchfiles

from kerncap.core.build.compile_file import CompileFile

# Editors write, rename and touch within a few milliseconds; later than this is a new save.
_QUIET_MS = 40
_STEP_MS = 15


@dataclass(frozen=True)
class SourceState:
    """The files at one time: content, and (inode, size, ns of the last change), by path in the reproducer."""

    contents: dict[str, bytes]
    stamps: dict[str, tuple[int, int, int]]

    def saved_since(self, before: SourceState) -> list[str]:
        """The files that were saved since, also where they have the content that they had."""
        return sorted(_changed(before.stamps, self.stamps) | _changed(before.contents, self.contents))


def _changed(before: Mapping[str, object], now: Mapping[str, object]) -> set[str]:
    """The names that have another value, or none any more, or had none."""
    return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}


class Sources:
    """The files that make a variant: the unit, its headers, and compile.json."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._paths = self._list()

    def _list(self) -> list[Path]:
        return [self.directory / copy for copy in CompileFile.read(self.directory).sources]

    @property
    def paths(self) -> list[Path]:
        """Absolute or relative as the directory was given; the unit first."""
        return list(self._paths)

    def contents(self) -> dict[str, bytes]:
        """Every file by its path in the reproducer; one that is gone (an editor in the middle of a save) is
        left out.
        """
        found = {}
        for path in self._paths:
            try:
                found[str(path.relative_to(self.directory))] = path.read_bytes()
            except OSError:
                continue
        return found

    def state(self) -> SourceState:
        """The content and the stamps of the files; the stamps first, so that a save in between shows."""
        stamps = self._stamps()
        return SourceState(self.contents(), stamps)

    def digest(self) -> str:
        """Changes when any content does; a touch alone does not count."""
        digest = hashlib.sha256()
        for name, content in self.contents().items():
            digest.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content)
        return digest.hexdigest()

    def changes(
        self, stop: threading.Event, *, poll_ms: int | None = None, timeout_ms: int = 250
    ) -> Iterator[list[str]]:
        """The changed files (paths in the reproducer) of each save, until `stop` is set; an empty list every
        `timeout_ms`.

        Directories are watched, not files: editors replace a file by renaming another over it. `poll_ms`
        looks at the files that often instead, for file systems without events (NFS, some containers).
        """
        if poll_ms is not None:
            yield from self._polled(stop, poll_ms / 1000, timeout_ms / 1000)
            return
        before, unseen = self._stamps(), set[str]()
        while not stop.is_set():
            for seen in self._events(stop, timeout_ms):
                now = self._stamps()
                fresh = _changed(before, now)
                before = now
                if seen:
                    unseen = set()
                    yield seen
                # Not every save is an event: a link may have taken a file's place, a folder have come back.
                elif unseen and not fresh:
                    yield sorted(unseen)
                    unseen = set()
                else:
                    unseen |= fresh
                    yield []

    def _wanted(self) -> dict[str, str]:
        """The files' names in the reproducer, by where they are."""
        return {str(p.resolve()): str(p.relative_to(self.directory)) for p in self._paths}

    def _events(self, stop: threading.Event, timeout_ms: int) -> Iterator[list[str]]:
        """`changes` by the system's events, until the files are elsewhere than they were."""
        wanted = self._wanted()
        folders = sorted({folder for p in self._paths if (folder := p.parent.resolve()).is_dir()})
        if not folders:
            stop.wait(timeout_ms / 1000)
            yield []
            return

        def only_sources(_: watchfiles.Change, path: str) -> bool:
            return path in wanted

        for batch in watchfiles.watch(
            *folders,
            watch_filter=only_sources,
            debounce=_QUIET_MS,
            step=_STEP_MS,
            stop_event=stop,
            rust_timeout=timeout_ms,
            yield_on_timeout=True,
            recursive=False,
            raise_interrupt=True,
        ):
            yield sorted({wanted[path] for _, path in batch if path in wanted})
            if self._wanted() != wanted or not all(folder.is_dir() for folder in folders):
                return

    def _stamps(self) -> dict[str, tuple[int, int, int]]:
        """(inode, size, ns of the last change) of each file that is there."""
        found = {}
        for path in self._paths:
            try:
                stat = path.stat()
            except OSError:
                continue
            found[str(path.relative_to(self.directory))] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        return found

    def _polled(self, stop: threading.Event, poll_s: float, timeout_s: float) -> Iterator[list[str]]:
        # Not watchfiles' polling: it compares whole seconds, and would miss the second of two quick saves.
        before, changed = self._stamps(), set[str]()
        told = time.monotonic()
        while not stop.wait(poll_s):
            now = self._stamps()
            fresh = _changed(before, now)
            before, changed = now, changed | fresh
            if changed and not fresh:  # quiet for one round
                yield sorted(changed)
                changed = set()
                told = time.monotonic()
            elif time.monotonic() - told >= timeout_s:
                yield []
                told = time.monotonic()
