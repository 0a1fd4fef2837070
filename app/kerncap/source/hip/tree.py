"""The source files of a tree, and which of them speak of a kernel."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kerncap.source.hip.lexer import KernelSite, scan

SOURCES = frozenset({".hip", ".cu", ".cpp", ".cc", ".cxx", ".c++", ".C"})
HEADERS = frozenset(
    {".h", ".hpp", ".hh", ".hxx", ".h++", ".cuh", ".hiph", ".inl", ".inc", ".ipp", ".tpp", ".def"}
)
_SKIP = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", "CMakeFiles", "isolated"}
)
_MAX_FILE = 8 << 20
_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+[^\n{]*(?:__global__|\(\(global\)\))", re.M)


@dataclass(frozen=True)
class Site:
    """A kernel of the wanted name in a file."""

    file: Path
    kernel: KernelSite


def source_files(roots: Iterable[Path], deadline: float) -> Iterator[Path]:
    """C++ and HIP files below the roots, no directory twice; stops at `deadline` (time.monotonic). Python and
    other files are not looked at.
    """
    seen: set[tuple[int, int]] = set()
    for root in roots:
        if os.path.isfile(root):
            yield root
            continue
        for folder, folders, files in os.walk(root):
            try:
                stat = os.stat(folder)
            except OSError:  # gone meanwhile
                continue
            if (stat.st_dev, stat.st_ino) in seen or time.monotonic() > deadline:
                folders.clear()
                continue
            seen.add((stat.st_dev, stat.st_ino))
            # A capture's own copies must never be taken for the program's source.
            if "capture" in folders and "vfs.yaml" in files:
                folders.clear()
                continue
            folders[:] = sorted(f for f in folders if f not in _SKIP)
            for name in sorted(files):
                if Path(name).suffix in SOURCES or Path(name).suffix in HEADERS:
                    yield Path(folder) / name


def find_sites(files: Iterable[Path], names: Sequence[str], deadline: float = float("inf")) -> list[Site]:
    """Kernels with one of those names: definitions first, then those a macro makes, then declarations.

    Files are read once for a quick look, and taken apart only where a name and a kernel marker occur.
    """
    wanted = [n.encode() for n in names]
    texts: list[tuple[Path, bytes]] = []
    markers: set[str] = set()
    for path in files:
        if time.monotonic() > deadline:
            break
        try:
            if path.stat().st_size > _MAX_FILE:
                continue
            text = path.read_bytes()
        except OSError:
            continue
        markers |= {m.decode() for m in _DEFINE.findall(text)}
        if any(n in text for n in wanted) or (b"##" in text and b"__global__" in text):
            texts.append((path, text))
    sites: list[Site] = []
    for path, text in texts:
        if not any(m in text for m in (b"__global__", b"((global))", *(k.encode() for k in markers))):
            continue
        for kernel in scan(text.decode("utf-8", "replace"), sorted(markers)).kernels:
            if kernel.name in names:
                sites.append(Site(path, kernel))
    # The kernel's own name comes before the names in its template arguments.
    return sorted(
        sites, key=lambda s: (names.index(s.kernel.name), not s.kernel.is_definition, not s.kernel.exact)
    )


def including_units(target: Path, units: Iterable[Path], files: Iterable[Path]) -> list[Path]:
    """The units that include a file, directly or through others, by the names in #include lines alone."""
    includers: dict[str, set[Path]] = {}
    for path in {*files, *units}:
        try:
            text = path.read_bytes()
        except OSError:
            continue
        for name in re.findall(rb'^[ \t]*#[ \t]*include(?:_next)?[ \t]*["<]([^">\n]+)', text, re.M):
            includers.setdefault(Path(name.decode("utf-8", "replace")).name, set()).add(path)
    reached: set[Path] = {target}
    queue = [target]
    while queue:
        for path in includers.get(queue.pop().name, ()):
            if path not in reached:
                reached.add(path)
                queue.append(path)
    return [u for u in units if u in reached]
