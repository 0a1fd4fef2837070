"""Where a kernel that runs is written, as far as that can be proven quickly and without a compiler.

A name proves nothing: another file of the tree may define a kernel of the same name. What counts is the very
code that runs, by its hash: its own debug information names the file, or the object of a unit in
compile_commands.json holds it. Whatever cannot be proven so is left to the extraction, which asks the
compiler (kerncap.source.hip.find).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import xxhash

from kerncap.core.build.compile_command import CompileCommand
from kerncap.core.code.codeobject import CodeObject
from kerncap.core.code.dwarf import kernel_debug
from kerncap.core.code.names import id_text
from kerncap.core.code.reading import read_file
from kerncap.core.errors import KerncapError
from kerncap.source.hip.database import find_databases, load
from kerncap.source.hip.lexer import symbol_words
from kerncap.source.hip.tree import Site, find_sites, including_units, source_files

_OBJECTS = frozenset({".o", ".obj", ".hsaco", ".co", ".so"})
_MOST_DEBUG_BYTES = 32 << 20  # reading the debug information of more would take too long for a look


@dataclass(frozen=True)
class RunningCode:
    """A kernel by its mangled name and the XXH64 of its code object (16 hexadecimal digits), and the file of
    the program that runs it, where that is known.
    """

    symbol: str
    code_hash: str
    program: Path | None = None


@dataclass(frozen=True)
class Place:
    """The file, and the line (from 1; 0 where the file defines the name more than once)."""

    file: Path
    line: int


@dataclass(frozen=True)
class Look:
    """What was found: the proven place, or None, and how many files have a definition of that name."""

    place: Place | None
    files: int


def look(code: RunningCode, roots: Sequence[Path], seconds: float) -> Look:
    """Looks at the program and below `roots` for `seconds` at most. Raises nothing: what cannot be read
    proves nothing.
    """
    deadline = time.monotonic() + seconds
    words = symbol_words(code.symbol)
    files = list(source_files(roots, deadline))
    found = find_sites(files, words[:1], deadline) if words else []
    sites = [site for site in found if site.kernel.is_definition]
    place = _from_program(code) or _from_units(code, sites, files, roots, deadline)
    return Look(place, len({site.file for site in sites}))


def _code_in(path: Path, code: RunningCode) -> Iterator[CodeObject]:
    """The code objects of a file that are what runs."""
    try:
        for found in read_file(path):
            if (
                found.has_kernel(code.symbol)
                and id_text(xxhash.xxh64_intdigest(found.data)) == code.code_hash
            ):
                yield found
    except (KerncapError, OSError):
        return


def _from_debug(found: CodeObject, symbol: str) -> Place | None:
    if not found.has_debug_info or len(found.data) > _MOST_DEBUG_BYTES:
        return None
    try:
        debug = kernel_debug(found, symbol)
    except KerncapError:
        return None
    if debug is None or not os.path.isabs(debug.file) or not os.path.isfile(debug.file):
        return None
    return Place(Path(debug.file), debug.line)


def _from_program(code: RunningCode) -> Place | None:
    if code.program is None:
        return None
    places = (_from_debug(found, code.symbol) for found in _code_in(code.program, code))
    return next((place for place in places if place is not None), None)


def _objects(command: CompileCommand) -> list[Path]:
    """What a unit was compiled to, and what was linked of it beside: files of the same stem."""
    output = command.output
    if output is None:
        return []
    try:
        with os.scandir(output.parent) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(f"{output.stem}.")]
    except OSError:
        return []
    return [output.parent / name for name in sorted(names) if Path(name).suffix in _OBJECTS]


def _from_units(
    code: RunningCode, sites: Sequence[Site], files: Sequence[Path], roots: Sequence[Path], deadline: float
) -> Place | None:
    if not sites:
        return None
    units: dict[str, list[CompileCommand]] = {}  # a file may be compiled several times, with other defines
    for command in load(find_databases(roots)).commands:
        units.setdefault(os.path.realpath(command.file), []).append(command)
    reached: dict[str, set[Site]] = {}  # by unit: the definitions that it reads
    for site in sites:
        own = os.path.realpath(site.file)
        holders = [own] if own in units else []
        if not holders:
            paths = [commands[0].file for commands in units.values()]
            holders = [os.path.realpath(unit) for unit in including_units(site.file, paths, files)]
        for unit in holders:
            reached.setdefault(unit, set()).add(site)
    proven: set[Site] = set()
    for unit, seen in reached.items():
        if time.monotonic() > deadline:
            return None
        for path in {path for command in units[unit] for path in _objects(command)}:
            for found in _code_in(path, code):
                place = _from_debug(found, code.symbol)
                if place is not None:
                    return place
                proven |= seen
    places = {os.path.realpath(site.file) for site in proven}
    if len(places) != 1:
        return None
    lines = {site.kernel.line for site in proven}
    return Place(next(iter(proven)).file, lines.pop() if len(lines) == 1 else 0)
