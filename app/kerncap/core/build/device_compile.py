"""Compiling one translation unit for the device only: to a linked code object, or as far as its kernel names.

The program's command runs in its own directory, with the reproducer's copies laid over the original files.
Where that directory is gone the driver refuses to start, so clang's own frontend (`-cc1`) is asked for the
same work: it takes every path through the overlay.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kerncap.core.build.compile_command import (
    GUESSED,
    CompileCommand,
    absolute_arguments,
    device_arguments,
    input_index,
)
from kerncap.core.build.toolchain import (
    CompileError,
    Compiler,
    Finished,
    language_arguments,
    linker_words,
    resolve_compiler,
    run_tool,
)
from kerncap.core.code.bundle import BUNDLE_MAGIC, COMPRESSED_MAGIC, entries
from kerncap.core.code.codeobject import CodeObject, Target
from kerncap.core.code.reading import read_file
from kerncap.core.scratch import scratch

_KERNEL = re.compile(
    r'^define [^@\n]*\bamdgpu_kernel\b[^@\n]*@(?:"((?:[^"\\]|\\[0-9A-Fa-f]{2})+)"|([\w.$-]+))\(', re.M
)
_UNIT_HASH = re.compile(r"\.(?:static|intern)\.([0-9a-f]+)$")
_OBJECT = ("-S", "-Xclang", "-emit-obj")
_LINKED = ("-c", "--no-gpu-bundle-output")
_FRONTEND = ("-S", "-Xclang", "-emit-llvm", "-Xclang", "-disable-llvm-passes")


@dataclass(frozen=True)
class Overlay:
    """A VFS overlay file, and the copy of the unit in it: what stands in for an original that is gone."""

    file: Path
    unit_copy: Path


@dataclass(frozen=True)
class Probe:
    """What the frontend found in a unit: mangled kernel names, and every file it read, as the compiler
    spelled them.
    """

    kernels: tuple[str, ...]
    dependencies: tuple[str, ...]


@dataclass(frozen=True)
class Compiled:
    """A linked code object on disk, the compiler's remarks, and where the time went (seconds by step)."""

    object: Path
    output: str
    seconds: dict[str, float]


@dataclass(frozen=True)
class DeviceCompile:
    """One unit, for one target, by one compiler. `symbol` is the captured kernel's: static ones carry a unit
    id in it.
    """

    command: CompileCommand
    target: Target
    compiler: Compiler
    symbol: str = ""
    overlay: Overlay | None = None
    timeout_s: float = 600.0
    cancel: threading.Event | None = None

    @classmethod
    def of(
        cls, command: CompileCommand, target: Target, symbol: str = "", overlay: Overlay | None = None
    ) -> DeviceCompile:
        """With the compiler that the command names, or the nearest one here."""
        compiler = resolve_compiler(command.arguments, command.directory, command.origin != GUESSED)
        return cls(command, target, compiler, symbol, overlay)

    @property
    def in_place(self) -> bool:
        """Whether the driver can still run: the unit is where it was."""
        return os.path.isfile(self.command.file)

    @property
    def unit_hash(self) -> str:
        """The hash at the end of the symbol of a kernel with internal linkage in a program built with
        -fgpu-rdc, else "".

        It comes from the id of the unit, which the driver makes from the whole command line: another command
        cannot give it. A hash of the same length is compiled in and replaced before linking.
        """
        found = _UNIT_HASH.search(self.symbol)
        return found[1] if found else ""

    def arguments(self) -> list[str]:
        """Options without the compiler and without what is to be made."""
        options = device_arguments(self.command, self.target)
        source = input_index(options, self.command)
        options = language_arguments(self.compiler, self.command.arguments, options, source)
        extra = [e for e in self.compiler.extra if e not in options]
        if self.unit_hash:
            extra += ["-Xclang", "-fgpu-rdc", f"-cuid={_unit_id(self.unit_hash)[0]}"]
        if self.overlay:
            extra += ["-ivfsoverlay", str(self.overlay.file)]
        return [*options, *extra, "-Wno-unused-command-line-argument", "-fno-color-diagnostics"]

    def words(self, action: Sequence[str], output: Path) -> tuple[list[str], Path]:
        """The complete argument list and the directory to run it in. Raises CompileError where the driver
        refuses.
        """
        options = self.arguments()
        if self.in_place:
            directory = self.command.directory
            if not os.path.isdir(directory):
                options[input_index(options, self.command)] = str(self.command.file)
                options, directory = absolute_arguments(options, directory), self.command.file.parent
            return [*self.compiler.words, *options, *action, "-o", str(output)], directory
        if self.overlay is None:
            raise CompileError(f"{self.command.file} is gone, and there is no copy of it.")
        return self._frontend_words(options, action, output)

    def _frontend_words(
        self, options: list[str], action: Sequence[str], output: Path
    ) -> tuple[list[str], Path]:
        assert self.overlay is not None
        home = self.overlay.file.parent
        index = input_index(options, self.command)
        options[index] = str(self.overlay.unit_copy)
        if not any(o == "-x" or (o.startswith("-x") and len(o) > 2) for o in options[:index]):
            language = "hip" if self.command.file.suffix in (".hip", ".cu") else "c++"
            options[index:index] = ["-x", language]
        options = absolute_arguments(options, self.command.directory)
        asked = [*self.compiler.words, *options, *action, "-o", str(output), "-###"]
        answer = run_tool(asked, directory=home, timeout_s=self.timeout_s, cancel=self.cancel)
        line = next((text for text in answer.output.splitlines() if '"-cc1"' in text), None)
        if line is None:
            raise CompileError(
                f"{self.compiler.words[0]} refuses the compile command of {self.command.file}.", answer.output
            )
        words = shlex.split(line)
        words[len(words) - 1 - words[::-1].index(str(self.overlay.unit_copy))] = str(self.command.file)
        # Quoted includes look beside the unit by its real name; the copies are found there through the
        # overlay.
        return words, home

    def probe(self) -> Probe:
        """Kernel names and dependencies, by the frontend alone (no optimisation, no code). Raises
        CompileError.
        """
        with scratch("probe") as place:
            listing, depends = Path(place) / "unit.ll", Path(place) / "unit.d"
            action = [*_FRONTEND, *_dependency_options(depends)]
            words, directory = self.words(action, listing)
            finished = run_tool(words, directory=directory, timeout_s=self.timeout_s, cancel=self.cancel)
            if finished.code or not listing.exists():
                raise self._failed(finished)
            text = listing.read_text("utf-8", "replace")
            if self.unit_hash:
                text = text.replace(_unit_id(self.unit_hash)[1], self.unit_hash)
            names = tuple(dict.fromkeys(_unescape(m[1]) if m[1] else m[2] for m in _KERNEL.finditer(text)))
            return Probe(names, tuple(parse_dependencies(depends.read_text("utf-8", "replace"))))

    def build(self, output: Path) -> Compiled:
        """The linked code object of the unit, written beside `output` and renamed. Raises CompileError."""
        seconds: dict[str, float] = {}
        started = time.perf_counter()
        output.parent.mkdir(parents=True, exist_ok=True)
        with scratch("build", output.parent) as place:
            made = Path(place) / "unit.o"
            linked = Path(place) / "unit.hsaco"
            by_driver = self.compiler.kind != "zig" and self.in_place and not self.unit_hash
            action = _LINKED if by_driver else _OBJECT
            words, directory = self.words(action, made)
            finished = run_tool(words, directory=directory, timeout_s=self.timeout_s, cancel=self.cancel)
            seconds["compile"] = time.perf_counter() - started
            if finished.code or not made.exists():
                raise self._failed(finished)
            if self.unit_hash:
                ours = _unit_id(self.unit_hash)[1].encode()
                made.write_bytes(made.read_bytes().replace(ours, self.unit_hash.encode()))
            started = time.perf_counter()
            result = self._finish(made, linked)
            seconds["link"] = time.perf_counter() - started
            os.replace(result, output)
        return Compiled(output, finished.output, seconds)

    def _finish(self, made: Path, linked: Path) -> Path:
        """A loadable object from what the compiler made: out of its bundle, and linked if it is not."""
        data = memoryview(made.read_bytes())
        if bytes(data[:24]).startswith((BUNDLE_MAGIC, COMPRESSED_MAGIC)):
            made.write_bytes(next(entries(data, str(made))).data)
        elif bytes(data[:2]) == b"BC" or bytes(data[:4]) == b"\xde\xc0\x17\x0b":
            raise CompileError(
                f"{self.compiler.words[-1]} made LLVM bitcode for {self.command.file}, not an object: its "
                "command asks for link-time "
                "compilation. Remove -flto or -fgpu-rdc from compile.json."
            )
        if not CodeObject(memoryview(made.read_bytes()), str(made)).relocatable:
            return made
        program, *more = linker_words(self.compiler)
        if os.sep in program:
            program = os.path.abspath(program)
        # By relative names: lld takes every % in the path of its output for a place to put a random digit.
        words = [program, *more, "-shared", "--no-undefined", made.name, "-o", linked.name]
        finished = run_tool(words, directory=made.parent, timeout_s=self.timeout_s, cancel=self.cancel)
        if finished.code or not linked.exists():
            raise CompileError(
                "The kernel does not link by itself. It may call device code of other units (-fgpu-rdc): "
                f"{self.command.file} alone "
                "does not define it.",
                finished.output.replace(made.name, "kernel"),
            )
        return linked

    def _failed(self, finished: Finished) -> CompileError:
        tool = Path(self.compiler.words[0]).name
        message = f"{tool} could not compile {self.command.file} (exit code {finished.code})."
        return CompileError(message, finished.output)


def kernels_in(path: Path) -> list[str]:
    """Mangled kernel names of the code objects in a file, all targets together."""
    return [name for code_object in read_file(path) for name in code_object.kernel_names]


def _dependency_options(path: Path) -> list[str]:
    # The driver ignores -MD in a device-only compile; the frontend does not.
    options = ["-dependency-file", str(path), "-MT", "unit", "-sys-header-deps"]
    return [word for option in options for word in ("-Xclang", option)]


def parse_dependencies(text: str) -> list[str]:
    """The prerequisites in a dependency file; what clang escapes for make is undone: "\\ ", "\\#", "$$"."""
    joined = text.replace("\\\n", " ")
    _, _, rest = joined.partition(":")
    names, current, index = [], "", 0
    while index < len(rest):
        char = rest[index]
        if char == "\\" and index + 1 < len(rest) and rest[index + 1] in " #\\":
            current += rest[index + 1]
            index += 1
        elif char == "$" and rest[index + 1 : index + 2] == "$":
            current += "$"
            index += 1
        elif char.isspace():
            if current:
                names.append(current)
            current = ""
            if char == "\n":
                break
        else:
            current += char
        index += 1
    if current:
        names.append(current)
    return list(dict.fromkeys(names))


@lru_cache
def _unit_id(wanted: str) -> tuple[str, str]:
    """A unit id and its hash (the first half of its MD5, in hexadecimal without leading zeros), as long as
    `wanted`.
    """
    for number in range(1 << 20):
        name = f"{number:x}"
        digest = hashlib.md5(name.encode(), usedforsecurity=False).digest()
        text = f"{int.from_bytes(digest[:8], 'little'):x}"
        if len(text) == len(wanted):
            return name, text
    raise CompileError(f"The captured kernel's name ends in {wanted!r}, which is no hash that clang makes.")


def _unescape(name: str) -> str:
    """LLVM IR quotes names as bytes: \\xx in hexadecimal."""
    raw = re.sub(rb"\\([0-9A-Fa-f]{2})", lambda m: bytes([int(m[1], 16)]), name.encode())
    return raw.decode("utf-8", "replace")
