"""The unit that makes a captured CUDA kernel.

nvcc is asked: the unit is the one whose device compile has the kernel's mangled name. Units that can reach a
definition of the name are asked first; names in the text alone never decide.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from kerncap.core.build.compile_command import GUESSED, CompileCommand, with_defines
from kerncap.core.build.device_compile import Probe
from kerncap.core.build.diagnostics import first_error_text
from kerncap.core.build.nvcc_command import expand_options_files, is_nvcc
from kerncap.core.build.nvcc_compile import NvccCompile
from kerncap.core.build.toolchain import CompileError
from kerncap.core.device.cuda_libraries import library_of
from kerncap.core.errors import KerncapError
from kerncap.core.units import many
from kerncap.source.finding import Definition, SourceFinding, SourceRequest
from kerncap.source.hip.cache import cached_probe
from kerncap.source.hip.database import Database, find_databases, load
from kerncap.source.hip.lexer import symbol_words
from kerncap.source.hip.tree import HEADERS, SOURCES, Site, find_sites, including_units, source_files

_NAME = "cuda"
_MISSING = re.compile(r"fatal error: ([^:\n]+): No such file or directory")
_ATTEMPTS = 24
_GUESSED = (
    "No compile command of this unit is known: it is compiled with -O3 and the include directories that it "
    "needs. Give --source-dir a tree with compile_commands.json to rebuild it as the program was built."
)


@dataclass(frozen=True)
class _Chosen:
    command: CompileCommand
    probe: Probe
    notes: tuple[str, ...] = ()


def find_cuda(request: SourceRequest) -> SourceFinding:
    """The translation unit that defines `request.symbol`, its command and its files; else a reason in a
    sentence.
    """
    known = _without_source(request)
    if known is not None and not request.source_dirs:
        return SourceFinding("library", None, None, reason=known)
    search = _Search(request)
    chosen = search.from_database() or search.from_sources()
    if chosen is None:
        reason = known or search.reason()
        return SourceFinding(_NAME, None, search.definition(()), reason=reason, notes=search.database.notes)
    command = chosen.command
    dependencies = tuple(dict.fromkeys(command.resolve(d) for d in chosen.probe.dependencies))
    notes = (*search.database.notes, *chosen.notes)
    return SourceFinding(_NAME, command, search.definition(dependencies), dependencies, notes=notes)


def _without_source(request: SourceRequest) -> str | None:
    """Why a kernel has no source that could be rebuilt, by its name; None where it may have."""
    library = library_of(request.symbol)
    if library is not None:
        return (
            f"The kernel is {library}'s, by its name: it comes compiled in a library, and its source is not "
            "here. A cubin of your own that defines the same kernel can be replayed and validated."
        )
    if request.symbol.startswith("triton_"):
        return (
            "Inductor and Triton made this kernel of Python when the program ran. Its Python source was not "
            "seen. A cubin of your own that defines the same kernel can be replayed and validated."
        )
    return None


class _Search:
    """One search: what is asked, and what is known of the tree so far."""

    def __init__(self, request: SourceRequest) -> None:
        self.request = request
        self.deadline = time.monotonic() + request.timeout_s
        self.failures: dict[Path, KerncapError] = {}
        self.database = self._database()
        self.roots = self._roots()
        self.files = list(source_files(self.roots, self.deadline))
        self.sites: list[Site] = find_sites(self.files, symbol_words(request.symbol), self.deadline)

    def _database(self) -> Database:
        request = self.request
        near: list[Path] = list(request.source_dirs)
        around = [p for p in (request.working_directory, request.executable) if p is not None]
        if request.compile_commands is not None:
            return _expanded(load([request.compile_commands], is_nvcc))
        found = load(find_databases(near or around), is_nvcc)
        if not found.commands and near:
            more = load(find_databases(around), is_nvcc)
            found = Database(more.commands, found.paths + more.paths, found.notes + more.notes)
        return _expanded(found)

    def _roots(self) -> list[Path]:
        if self.request.source_dirs:
            return list(self.request.source_dirs)
        folders = sorted({c.file.parent for c in self.database.commands})
        return [f for f in folders if os.path.isdir(f) and not any(p in folders for p in f.parents)]

    def from_database(self) -> _Chosen | None:
        """Of the commands that are known: those that reach a definition of the name, then all others."""
        commands = [c for c in self.database.commands if os.path.isfile(c.file)]
        units = list(dict.fromkeys(c.file for c in commands))
        first: dict[Path, None] = {}
        for site in self.sites:
            own = [u for u in units if os.path.realpath(u) == os.path.realpath(site.file)]
            first.update(dict.fromkeys(own or including_units(site.file, units, self.files)))
        ranked = [c for unit in first for c in commands if c.file == unit]
        return self._confirm(ranked) or self._confirm([c for c in commands if c.file not in first])

    def _confirm(self, commands: Sequence[CompileCommand]) -> _Chosen | None:
        """The first command, in order, whose device compile makes the symbol; they run side by side."""
        if not commands:
            return None
        request = self.request
        request.progress(f"looking for {request.symbol[:80]} in {many(len(commands), 'translation unit')}")
        found: dict[int, _Chosen] = {}

        def probe(index: int) -> None:
            if time.monotonic() > self.deadline or any(i < index for i in found):
                return
            command = with_defines(commands[index], request.defines)
            try:
                chosen = self._ask(command)
            except KerncapError as error:
                self.failures[command.file] = error
                return
            if chosen is not None:
                found[index] = chosen

        with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
            for future in as_completed([pool.submit(probe, i) for i in range(len(commands))]):
                future.result()
        return found[min(found)] if found else None

    def _ask(self, command: CompileCommand) -> _Chosen | None:
        compile_ = NvccCompile.of(command, self.request.target, self.request.symbol)
        probe = cached_probe(replace(compile_, timeout_s=max(1.0, self.deadline - time.monotonic())))
        if not compile_.defines(probe.kernels):
            return None
        return _Chosen(command, probe, (compile_.compiler.note,) if compile_.compiler.note else ())

    def from_sources(self) -> _Chosen | None:
        """Without a database: files that define the kernel, units that include them, a guessed command."""
        units = [f for f in self.files if f.suffix == ".cu"]
        known = {c.file for c in self.database.commands}
        candidates: dict[Path, None] = {}
        for site in self.sites:
            own = [site.file] if site.file.suffix == ".cu" else []
            candidates.update(dict.fromkeys(own or including_units(site.file, units, self.files)))
        for file in (f for f in candidates if f not in known):
            try:
                chosen = self._guess(file)
            except KerncapError as error:
                self.failures[file] = error
                continue
            if chosen is not None:
                return replace(chosen, notes=(*chosen.notes, _GUESSED))
        return None

    def _guess(self, file: Path) -> _Chosen | None:
        includes: list[str] = []
        for _ in range(_ATTEMPTS):
            if time.monotonic() > self.deadline:
                return None
            words = ["nvcc", "-O3", *(f"-I{i}" for i in includes), *(f"-D{d}" for d in self.request.defines)]
            command = CompileCommand(file.parent, (*words, "-c", str(file)), file, None, GUESSED)
            try:
                return self._ask(command)
            except CompileError as error:
                missing = _MISSING.search(error.output)
                folder = _include_folder(missing[1], self.files) if missing else None
                if folder is None or str(folder) in includes:
                    raise
                includes.append(str(folder))
        return None

    def definition(self, dependencies: Sequence[Path]) -> Definition | None:
        """Where the kernel stands, in one of those files where there are any."""
        real = {os.path.realpath(d) for d in dependencies}
        sites = [s for s in self.sites if not real or os.path.realpath(s.file) in real]
        if not sites and real:
            texts = (d for d in dependencies if d.suffix in SOURCES | HEADERS)
            sites = find_sites(texts, symbol_words(self.request.symbol))
        return Definition(sites[0].file, sites[0].kernel.line) if sites else None

    def reason(self) -> str:
        """Why there is nothing to recompile, and what would help."""
        request = self.request
        name = (symbol_words(request.symbol) or [request.symbol])[0]
        if not request.source_dirs and not self.database.commands:
            return (
                "No --source-dir was given, and no compile_commands.json with nvcc's commands is near the "
                "program: the kernel's source is not known. What a program compiles while it runs (NVRTC, "
                "Triton, CuPy) has no such source."
            )
        if time.monotonic() > self.deadline:
            return f"The search for the unit that defines {name} was ended after {request.timeout_s:g} s."
        failure = next(iter(self.failures.values()), None)
        if failure is not None:
            said = first_error_text(failure.output) if isinstance(failure, CompileError) else ""
            return (
                f"No unit that compiles here defines {request.symbol}. The first that did not compile: "
                f"{failure.message}{' ' + said if said else ''}"
            )
        if self.sites:
            where = self.sites[0]
            return (
                f"{where.file}:{where.kernel.line} has a kernel {where.kernel.name}, but no known unit "
                f"makes {request.symbol}: the source is of another version, or the unit that instantiates it "
                "is not in compile_commands.json."
            )
        roots = ", ".join(str(r) for r in self.roots) or "the program's directories"
        return f"No kernel {name} is defined in the CUDA sources of {roots}."


def _expanded(database: Database) -> Database:
    """The same commands with their options files read in; one that cannot be read is a note."""
    commands, notes = [], list(database.notes)
    for command in database.commands:
        try:
            words = expand_options_files(command.arguments[1:], command.directory)
            commands.append(replace(command, arguments=(command.arguments[0], *words)))
        except KerncapError as error:
            notes.append(f"{command.origin}: the entry of {command.file} cannot be used: {error.message}")
    return Database(tuple(commands), database.paths, tuple(dict.fromkeys(notes)))


def _include_folder(name: str, files: Sequence[Path]) -> Path | None:
    """The directory from which `#include <name>` finds a file of the tree; the shortest where several do."""
    parts = Path(name.strip()).parts
    if not parts or ".." in parts or Path(name).is_absolute():
        return None
    folders = [f.parents[len(parts) - 1] for f in files if f.parts[-len(parts) :] == parts]
    return min(folders, key=lambda p: len(p.parts), default=None)
