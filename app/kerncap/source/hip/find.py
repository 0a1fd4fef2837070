"""The unit that makes a captured kernel.

Cheapest proof first: the debug information names the unit; an object file of the build defines the symbol;
the frontend, run on the units that can reach a definition of that name, makes the symbol. Names alone never
decide where a compiler is there: several units may include the same header, and only one may instantiate what
was captured.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from pathlib import Path

from kerncap.core.build.compile_command import CompileCommand, with_defines
from kerncap.core.build.device_compile import DeviceCompile, Probe
from kerncap.core.build.diagnostics import first_error_text
from kerncap.core.build.toolchain import CompileError
from kerncap.core.code.codeobject import CodeObject
from kerncap.core.code.dwarf import KernelDebug, kernel_debug
from kerncap.core.code.reading import read_code_object, read_file
from kerncap.core.errors import DeviceError, KerncapError
from kerncap.core.units import many
from kerncap.source.finding import Definition, SourceFinding, SourceRequest
from kerncap.source.hip.cache import cached_probe
from kerncap.source.hip.database import Database, find_databases, load
from kerncap.source.hip.guess import guess_command, own_include
from kerncap.source.hip.lexer import symbol_words
from kerncap.source.hip.tree import HEADERS, SOURCES, Site, find_sites, including_units, source_files

_NAME = "hip"
# A unit's surroundings may be anything, such as a folder of downloads.
_AROUND_S, _AROUND_FILES = 2.0, 2000


class _Search:
    """One search: what is asked, and what is known of the tree so far."""

    def __init__(self, request: SourceRequest) -> None:
        self.request = request
        self.deadline = time.monotonic() + request.timeout_s
        self.notes: list[str] = []
        self.failures: dict[Path, KerncapError] = {}
        self.debug = self._debug()
        self.database = self._database()
        self.roots = self._roots()
        self.files = list(source_files(self.roots, self.deadline)) or self._beside_the_unit()
        self.sites = find_sites(self.files, symbol_words(request.symbol), self.deadline)

    def _debug(self) -> KernelDebug | None:
        try:
            return kernel_debug(read_code_object(self.request.code_object), self.request.symbol)
        except KerncapError as error:
            self.notes.append(error.message)
            return None

    def _database(self) -> Database:
        request = self.request
        if request.compile_commands is not None:
            return load([request.compile_commands])
        near: list[Path] = list(request.source_dirs)
        if not near:
            near += [p for p in (request.working_directory, request.executable) if p is not None]
        found = load(find_databases(near))
        if not found.commands and request.source_dirs:
            near = [p for p in (request.working_directory, request.executable) if p is not None]
            more = load(find_databases(near))
            found = Database(more.commands, found.paths + more.paths, found.notes + more.notes)
        return found

    def _roots(self) -> list[Path]:
        """Where sources are looked for: what the user named, else the directories of the database's units."""
        if self.request.source_dirs:
            return [Path(os.path.abspath(d)) for d in self.request.source_dirs]
        folders = sorted({c.file.parent for c in self.database.commands})
        return [f for f in folders if os.path.isdir(f) and not any(p in folders for p in f.parents)]

    def _beside_the_unit(self) -> list[Path]:
        """Where neither the user nor a database names a tree: what lies around the unit that the debug
        information names, for the headers that it includes.
        """
        if self.debug is None or not os.path.isfile(self.debug.unit):
            return []
        folder = Path(self.debug.unit).parent
        around = [f for f in (folder, folder.parent) if f not in (Path.home(), Path(f.anchor))]
        return list(islice(source_files(around, time.monotonic() + _AROUND_S), _AROUND_FILES))

    def seconds_left(self) -> float:
        return max(1.0, self.deadline - time.monotonic())


def find_hip(request: SourceRequest) -> SourceFinding:
    """The translation unit that defines `request.symbol`, its command and its files; else a reason in a
    sentence.
    """
    search = _Search(request)
    notes = search.notes + list(search.database.notes)
    chosen = _from_database(search)
    if chosen is None:
        chosen = _from_sources(search)
    if chosen is None:
        return SourceFinding(_NAME, None, _definition(search, ()), reason=_reason(search), notes=tuple(notes))
    command, probe, remarks = chosen
    if probe is None:
        dependencies: tuple[Path, ...] = tuple(_textual_dependencies(command))
    else:
        dependencies = tuple(dict.fromkeys(command.resolve(d) for d in probe.dependencies))
    return SourceFinding(
        _NAME, command, _definition(search, dependencies), dependencies, notes=tuple([*notes, *remarks])
    )


_Chosen = tuple[CompileCommand, Probe | None, list[str]]


def _from_database(search: _Search) -> _Chosen | None:
    commands = [c for c in search.database.commands if os.path.isfile(c.file)]
    if not commands:
        return None
    certain = [c for c in commands if search.debug and _same(c.file, search.debug.unit)]
    certain = certain or _by_objects(commands, search.request)
    for command in certain:
        found = _confirm(search, [command])
        if found:
            return found
    ranked = _rank(search, commands)
    found = _confirm(search, ranked)
    if found:
        return found
    blocked = [c for c in certain or ranked[:1] if isinstance(search.failures.get(c.file), DeviceError)]
    if blocked:
        # No compiler to ask: what the object file, the debug information or the text says has to do.
        why = search.failures[blocked[0].file].message
        return with_defines(blocked[0], search.request.defines), None, [f"The unit was not compiled: {why}"]
    rest = [c for c in commands if c not in ranked]
    return _confirm(search, rest)


def _same(path: Path, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return str(path) == other


def _by_objects(commands: Sequence[CompileCommand], request: SourceRequest) -> list[CompileCommand]:
    """Units whose object file in the build directory has the kernel, as it was built last; those whose object
    has the captured instructions first, since several units may define the same name.
    """
    try:
        captured = _instructions(read_code_object(request.code_object), request.symbol)
    except KerncapError:
        captured = None
    same: list[CompileCommand] = []
    others: list[CompileCommand] = []
    for command in commands:
        if command.output is None or not os.path.isfile(command.output):
            continue
        try:
            found = [c for c in read_file(command.output) if c.has_kernel(request.symbol)]
            alike = captured and any(_instructions(c, request.symbol) == captured for c in found)
        except KerncapError:
            continue
        if found:
            (same if alike else others).append(command)
    return [*same, *others]


def _instructions(code: CodeObject, symbol: str) -> bytes | None:
    """The bytes of a kernel in a code object, linked or not; None where its symbol has no code."""
    found = next((s for s in code.elf.symbols if s.name == symbol and s.section and s.size), None)
    if found is None or found.section >= len(code.elf.sections):
        return None
    section = code.elf.sections[found.section]
    start = found.value - section.address
    return bytes(code.elf.content(section)[start : start + found.size])


def _rank(search: _Search, commands: Sequence[CompileCommand]) -> list[CompileCommand]:
    """Units that can reach a definition of the name: those that hold it, then those that include it."""
    units = {c.file: c for c in commands}
    order: dict[Path, None] = {}
    for site in search.sites:
        matches = [u for u in units if _same(u, str(site.file))]
        for unit in matches or including_units(site.file, list(units), search.files):
            order[unit] = None
    # The same file may be compiled several times, with other defines: each command is a candidate.
    return [c for unit in order for c in commands if c.file == unit]


def _confirm(search: _Search, commands: Sequence[CompileCommand]) -> _Chosen | None:
    """The first command, in order, whose frontend makes the symbol; they run side by side."""
    request = search.request
    if not commands:
        return None
    request.progress(f"looking for {request.symbol[:80]} in {many(len(commands), 'translation unit')}")
    found: dict[int, tuple[CompileCommand, Probe, list[str]]] = {}

    def probe(index: int) -> None:
        if time.monotonic() > search.deadline or any(i < index for i in found):
            return
        command = with_defines(commands[index], request.defines)
        try:
            compile_ = DeviceCompile.of(command, request.target, request.symbol)
            result = cached_probe(compile_)
        except KerncapError as error:
            search.failures[command.file] = error
            return
        if request.symbol in result.kernels:
            found[index] = (command, result, [compile_.compiler.note] if compile_.compiler.note else [])

    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        for future in as_completed([pool.submit(probe, i) for i in range(len(commands))]):
            future.result()
    return found[min(found)] if found else None


def _from_sources(search: _Search) -> _Chosen | None:
    """Without a database: files that define the kernel, units that include them, and a guessed command."""
    units = [f for f in search.files if f.suffix in SOURCES]
    candidates: dict[Path, None] = {}
    if search.debug and os.path.isfile(search.debug.unit):
        candidates[Path(search.debug.unit)] = None
    for site in search.sites:
        if site.file.suffix in SOURCES:
            candidates[site.file] = None
        else:
            candidates.update(dict.fromkeys(including_units(site.file, units, search.files)))
    known = {c.file for c in search.database.commands}  # compiled already, with the options that are right
    for file in (f for f in candidates if f not in known):
        if time.monotonic() > search.deadline:
            break
        try:
            command, probe = guess_command(search.request, file, search.files, search.debug is not None)
        except KerncapError as error:
            search.failures[file] = error
            continue
        if search.request.symbol in probe.kernels:
            own = " (among them that of kerncap's HIP headers)" if _uses_own(command) else ""
            options = "-O3 -g" if search.debug else "-O3"
            note = (
                f"No compile command of this unit is known: it is compiled with {options} and the include "
                f"directories that it needs{own}. Give "
                "--source-dir a tree with compile_commands.json to rebuild it as the program was built."
            )
            return command, probe, [note]
    return None


def _uses_own(command: CompileCommand) -> bool:
    own = own_include()
    return own is not None and f"-I{own}" in command.arguments


def _definition(search: _Search, dependencies: Iterable[Path]) -> Definition | None:
    wanted = list(dependencies)
    if search.debug and search.debug.file and search.debug.line:
        told = Definition(Path(search.debug.file), search.debug.line)
        if not wanted or any(_same(d, search.debug.file) for d in wanted):
            return told
        moved = _moved(told, wanted, symbol_words(search.request.symbol))
        if moved is not None:
            return moved
    sites: list[Site] = [s for s in search.sites if not wanted or any(_same(d, str(s.file)) for d in wanted)]
    if not sites and wanted:
        sites = find_sites(
            (d for d in wanted if d.suffix in SOURCES | HEADERS), symbol_words(search.request.symbol)
        )
    return Definition(sites[0].file, sites[0].kernel.line) if sites else None


def _moved(told: Definition, files: Sequence[Path], names: Sequence[str]) -> Definition | None:
    """Where a program was built in another directory: the file that stands for the one that its debug
    information names. The line is the same only where the text is.
    """
    alike = [f for f in files if f.name == told.file.name]
    if not alike:
        return None
    text = _content(told.file)
    file = max(alike, key=lambda f: (text is not None and _content(f) == text, _common_tail(f, told.file)))
    sites = [site.kernel.line for site in find_sites([file], names)]
    same = text is not None and _content(file) == text
    if same or not sites:
        return Definition(file, told.line)
    return Definition(file, min(sites, key=lambda line: abs(line - told.line)))


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _common_tail(a: Path, b: Path) -> int:
    """How many names at the end of two paths are the same."""
    pairs = zip(reversed(a.parts), reversed(b.parts), strict=False)
    return next((n for n, (x, y) in enumerate(pairs) if x != y), min(len(a.parts), len(b.parts)))


def _textual_dependencies(command: CompileCommand) -> list[Path]:
    """The unit and the headers it includes by quotes, followed by name: for machines without a compiler."""
    import re

    found: dict[Path, None] = {command.file: None}
    folders = [command.resolve(a[2:]) for a in command.arguments if a.startswith("-I") and len(a) > 2]
    pairs = zip(command.arguments, command.arguments[1:], strict=False)
    folders += [command.resolve(b) for a, b in pairs if a in ("-I", "-isystem", "-iquote")]
    queue = [command.file]
    while queue:
        path = queue.pop()
        try:
            text = path.read_text("utf-8", "replace")
        except OSError:
            continue
        for name in re.findall(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)', text, re.M):
            for folder in [path.parent, *folders]:
                candidate = Path(os.path.normpath(folder / name))
                if os.path.isfile(candidate):
                    if candidate not in found:
                        found[candidate] = None
                        queue.append(candidate)
                    break
    return list(found)


def _reason(search: _Search) -> str:
    """Why there is nothing to recompile, and what would help."""
    request = search.request
    name = (symbol_words(request.symbol) or [request.symbol])[0]
    if not request.source_dirs and not search.database.commands and not search.failures:
        told = "the kernel's source is not known."
        if search.debug:
            told = f"the unit that the debug information names, {search.debug.unit}, is not here."
        return f"No --source-dir was given, and no compile_commands.json is near the program: {told}"
    failure = next(iter(search.failures.values()), None)
    if time.monotonic() > search.deadline:
        return f"The search for the unit that defines {name} was ended after {request.timeout_s:g} s."
    if failure is not None:
        said = failure.output if isinstance(failure, CompileError) else ""
        text = f"No unit that compiles here defines {request.symbol}. {failure.message}"
        text += f" {detail.rstrip('.')}." if (detail := first_error_text(said)) else ""
        known = bool(search.database.commands)
        if known:
            return text
        return (
            f"{text} No compile_commands.json says how the program is compiled: -D gives a define that is "
            "missing, --source-dir a tree with that file, or with the headers."
        )
    if search.sites:
        where = search.sites[0]
        return (
            f"{where.file}:{where.kernel.line} has a kernel {where.kernel.name}, but no unit that is known "
            f"makes {request.symbol}: "
            "the source is of another version, or the unit that instantiates it is not in "
            "compile_commands.json."
        )
    roots = ", ".join(str(r) for r in search.roots) or "the program's directories"
    return f"No kernel {name} is defined in the C++ and HIP sources of {roots}."
