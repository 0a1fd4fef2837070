"""The sources of attempts: what changed between two of them, and going back to one."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kerncap.core.build.compile_file import NAME, PRISTINE, CompileFile
from kerncap.core.errors import UsageError, unwritable
from kerncap.core.files import write_atomically
from kerncap.core.loop.iterations import SOURCE, Iteration, Keeper
from kerncap.core.loop.watching import Sources

_CONTEXT = 3
KEPT = "kept"  # the outcome of a source that was put aside without an attempt

Contents = Mapping[str, bytes]


@dataclass(frozen=True)
class DiffLine:
    """One line of a diff. `kind` is file, place, same, added or removed; the numbers count from 1, else 0."""

    kind: str
    text: str
    old: int = 0
    new: int = 0


def captured_sources(directory: Path) -> dict[str, bytes]:
    """The sources as they were when the reproducer was written, by their path in it."""
    return _read(directory / PRISTINE, CompileFile.read(directory).editable)


def edited_copies(directory: Path) -> list[str]:
    """The copies that are not as they were when the reproducer was written, also of kerncap's own headers."""
    plan = CompileFile.read(directory)
    names = [plan.variant, *plan.files.values()]
    captured, present = _read(directory / PRISTINE, names), _read(directory, names)
    return [name for name, text in captured.items() if present.get(name) != text]


def present_sources(directory: Path) -> dict[str, bytes]:
    """The sources as they are now, by their path in the reproducer."""
    return Sources(directory).contents()


def iteration_sources(iteration: Iteration) -> dict[str, bytes]:
    """The sources of an attempt. Raises UsageError where they are gone."""
    folder = iteration.directory / SOURCE
    names = [str(p.relative_to(folder)) for p in sorted(folder.rglob("*")) if p.is_file()]
    if not names:
        raise UsageError(f"{folder} holds no source: it was removed.")
    return _read(folder, names)


def _read(folder: Path, names: list[str]) -> dict[str, bytes]:
    found = {}
    for name in dict.fromkeys(names):
        try:
            found[name] = (folder / name).read_bytes()
        except OSError:
            continue
    return found


def same_sources(one: Contents, other: Contents) -> bool:
    """Whether two sets of sources are alike, compile.json included where both have it."""
    names = (one.keys() | other.keys()) - ({NAME} - (one.keys() & other.keys()))
    return all(one.get(name) == other.get(name) for name in names)


def digest(contents: Contents) -> str:
    """Of sources, whatever their order."""
    found = hashlib.sha256()
    for name in sorted(contents):
        found.update(f"{name}\0{len(contents[name])}\0".encode("utf-8", "surrogateescape") + contents[name])
    return found.hexdigest()


def diff(before: Contents, after: Contents) -> list[DiffLine]:
    """What changed, file by file, with three lines around it. compile.json counts where both have it."""
    lines: list[DiffLine] = []
    names = before.keys() | after.keys()
    if not (NAME in before and NAME in after):
        names = names - {NAME}
    for name in sorted(names):
        old, new = before.get(name, b""), after.get(name, b"")
        if old == new:
            continue
        lines.append(DiffLine("file", name))
        lines += _file(_lines(old), _lines(new))
    return lines


def _file(old: list[str], new: list[str]) -> list[DiffLine]:
    lines: list[DiffLine] = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        first, last = group[0], group[-1]
        lines.append(
            DiffLine(
                "place",
                f"@@ -{first[1] + 1},{last[2] - first[1]} +{first[3] + 1},{last[4] - first[3]} @@",
                first[1] + 1,
                first[3] + 1,
            )
        )
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [DiffLine("same", text, i1 + k + 1, j1 + k + 1) for k, text in enumerate(old[i1:i2])]
                continue
            lines += [DiffLine("removed", text, i1 + k + 1) for k, text in enumerate(old[i1:i2])]
            lines += [DiffLine("added", text, 0, j1 + k + 1) for k, text in enumerate(new[j1:j2])]
    return lines


def changed_lines(before: Contents, after: Contents) -> tuple[int, int]:
    """(added, removed) lines."""
    kinds = [line.kind for line in diff(before, after)]
    return kinds.count("added"), kinds.count("removed")


def first_change(before: bytes, after: bytes) -> int:
    """The first line of `after`, from 1, that is not as in `before`; 0 where both are alike."""
    if before == after:
        return 0
    old, new = _lines(before), _lines(after)
    pairs = enumerate(zip(old, new, strict=False))
    alike = next((i for i, (a, b) in pairs if a != b), min(len(old), len(new)))
    return max(1, min(alike + 1, len(new)))


def line_now(before: bytes, after: bytes, line: int) -> int:
    """Where a line of `before` is in `after`, both from 1; of one that is gone, where it was."""
    if before == after:
        return line
    matcher = difflib.SequenceMatcher(None, _lines(before), _lines(after), autojunk=False)
    for _, i1, i2, j1, j2 in matcher.get_opcodes():
        if i1 < line <= i2:
            return max(1, j1 + min(line - i1, j2 - j1))
    return line


def _lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "replace").splitlines()


def go_back(directory: Path, iteration: Iteration, known: list[Iteration]) -> tuple[list[str], int | None]:
    """Puts the source of an attempt back into the reproducer.

    Returns the files that were changed, and, where the source as it was had not been kept in any of `known`,
    the number under which it is kept now. Raises UsageError where a file cannot be written.
    """
    wanted, now = iteration_sources(iteration), present_sources(directory)
    changed = [name for name in sorted(wanted) if wanted[name] != now.get(name)]
    if not changed:
        return [], None
    aside = None
    if now and not any(_has(item, now) for item in known):
        keeper = Keeper(directory)
        aside, folder = keeper.open(now)
        keeper.close(aside, folder, {"files": [], "seconds": {}, "outcome": KEPT})
    for name in changed:
        path = directory / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
            write_atomically(path, wanted[name], mode)
        except OSError as error:
            raise unwritable(path, error) from error
    return changed, aside


def _has(iteration: Iteration, contents: Contents) -> bool:
    try:
        return same_sources(iteration_sources(iteration), contents)
    except UsageError:
        return False
