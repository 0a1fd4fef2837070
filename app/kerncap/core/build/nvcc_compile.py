"""Compiling one CUDA C++ unit with nvcc, for the device only: to a cubin, or as far as its kernel names.

nvcc has no VFS overlay. The reproducer's copies are put into a tree of their own, each under its original
path, and the unit is compiled there: quoted includes are looked for beside the file that includes, and so
find copies; each -I of the command is preceded by its stand-in in that tree. The original folders come last,
for files that were not copied. The host's preprocessor is told to write paths without the tree's name.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kerncap.core.build.compile_command import GUESSED, CompileCommand, split_compiler
from kerncap.core.build.device_compile import Compiled, Probe, parse_dependencies
from kerncap.core.build.nvcc_command import device_options
from kerncap.core.build.toolchain import CompileError, Compiler, Finished, run_tool
from kerncap.core.code.codeobject import Target
from kerncap.core.code.reading import read_code_object
from kerncap.core.device import cuda_toolkit
from kerncap.core.errors import DeviceError
from kerncap.core.scratch import scratch

_ENTRY = re.compile(r"\.entry\s+([\w$.]+)")
# What stands for the unit in names of internal linkage: hashes of its path and of its options around the
# name of the file (cudafe++: _GLOBAL__N__eb2af234_4_k_cu_fbd319a2).
_UNIT = re.compile(r"[0-9a-f]{8}_(\d+_\w+?)_[0-9a-f]{8}")


def resolve_nvcc(command: CompileCommand) -> Compiler:
    """The nvcc of a command where it is still there, else the nearest one of this machine. KERNCAP_NVCC names
    one to use in any case. Raises DeviceError where there is none.
    """
    override = os.environ.get("KERNCAP_NVCC")
    if override:
        return Compiler((override,), "nvcc")
    words, _ = split_compiler(command.arguments)
    name = words[-1]
    found = shutil.which(name) if os.sep not in name else os.path.join(command.directory, name)
    if found and os.access(found, os.X_OK):
        return Compiler((found,), "nvcc")
    other = cuda_toolkit.nvcc()
    if other is None:
        raise DeviceError(
            f"{name} is not on this machine, and there is no other nvcc: install the CUDA toolkit, or name "
            "one in KERNCAP_NVCC.",
            missing="nvcc",
        )
    missed = "" if command.origin == GUESSED else f"{name} is not on this machine; {other} is used."
    return Compiler((other,), "nvcc", note=missed)


def without_unit(symbol: str) -> str:
    """A mangled name without the hashes of the unit that it was compiled in."""
    return _UNIT.sub(r"#_\1_#", symbol)


@dataclass(frozen=True)
class NvccCompile:
    """One unit, for one target. `copies` maps original paths to the files that stand for them."""

    command: CompileCommand
    target: Target
    compiler: Compiler
    symbol: str = ""
    copies: Mapping[Path, Path] = field(default_factory=dict)
    timeout_s: float = 600.0
    cancel: threading.Event | None = None

    @classmethod
    def of(
        cls,
        command: CompileCommand,
        target: Target,
        symbol: str = "",
        copies: Mapping[Path, Path] | None = None,
    ) -> NvccCompile:
        """With the nvcc that the command names, or another one here."""
        return cls(command, target, resolve_nvcc(command), symbol, copies or {})

    @property
    def in_place(self) -> bool:
        """Whether the unit is where it was."""
        return os.path.isfile(self.command.file)

    def arguments(self) -> list[str]:
        """Options without the compiler and without what is to be made."""
        return device_options(self.command, self.target, lambda path, folder: [path])

    def _words(self, tree: Path | None) -> list[str]:
        """The command as far as the action: with a tree of copies, for the unit in it."""
        if tree is None:
            return [*self.compiler.words, *self.arguments(), str(self.command.file)]
        originals = sorted({path.parent for path in self.copies})

        def place(path: Path, folder: bool) -> list[Path]:
            if folder:
                held = any(original.is_relative_to(path) for original in self.copies)
                return [_in(tree, path), path] if held else [path]
            return [_in(tree, path)] if path in self.copies else [path]

        options = device_options(self.command, self.target, place)
        last = [f"-I{folder}" for folder in originals if folder.is_dir()]
        names = ["-Xcompiler", f"-fmacro-prefix-map={tree}="]
        return [*self.compiler.words, *options, *last, *names, str(_in(tree, self.command.file))]

    def _tree(self, place: Path) -> Path | None:
        if not self.copies:
            return None
        tree = place / "tree"
        for original, copy in self.copies.items():
            target = _in(tree, original)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(copy, target)
        return tree

    def _run(self, action: list[str], place: Path) -> Finished:
        tree = self._tree(place)
        directory = self.command.directory
        if not directory.is_dir():
            directory = place
        words = [*self._words(tree), *action]
        finished = run_tool(words, directory=directory, timeout_s=self.timeout_s, cancel=self.cancel)
        if tree is None:
            return finished
        return Finished(finished.code, finished.output.replace(f"{tree}/", "/"))

    def probe(self) -> Probe:
        """Kernel names and dependencies. Raises CompileError."""
        with scratch("probe") as temporary:
            place = Path(temporary)
            listing, depends = place / "unit.ptx", place / "unit.d"
            finished = self._run(["-ptx", "-MD", "-MF", str(depends), "-o", str(listing)], place)
            if finished.code or not listing.exists():
                raise self._failed(finished)
            names = dict.fromkeys(_ENTRY.findall(listing.read_text("utf-8", "replace")))
            files = parse_dependencies(depends.read_text("utf-8", "replace"))
            return Probe(tuple(names), tuple(files))

    def defines(self, kernels: tuple[str, ...]) -> bool:
        """Whether the wanted kernel is among those names, whatever the unit's hash in them."""
        return without_unit(self.symbol) in map(without_unit, kernels)

    def build(self, output: Path) -> Compiled:
        """The cubin of the unit, written beside `output` and renamed. Raises CompileError."""
        started = time.perf_counter()
        output.parent.mkdir(parents=True, exist_ok=True)
        with scratch("build", output.parent) as temporary:
            place = Path(temporary)
            made = place / "unit.cubin"
            finished = self._run(["-cubin", "-o", str(made)], place)
            if finished.code or not made.exists():
                raise self._failed(finished)
            self._name_as_captured(made)
            os.replace(made, output)
        return Compiled(output, finished.output, {"compile": time.perf_counter() - started})

    def _name_as_captured(self, made: Path) -> None:
        """Names of internal linkage carry hashes of the path: those of the captured unit are put back."""
        ours = next(
            (n for n in read_code_object(made).kernel_names if without_unit(n) == without_unit(self.symbol)),
            None,
        )
        if ours is None or ours == self.symbol:
            return
        data = made.read_bytes()
        for mine, theirs in zip(_UNIT.finditer(ours), _UNIT.finditer(self.symbol), strict=True):
            data = data.replace(mine[0].encode(), theirs[0].encode())
        made.write_bytes(data)

    def _failed(self, finished: Finished) -> CompileError:
        message = f"nvcc could not compile {self.command.file} (exit code {finished.code})."
        if "Unresolved extern" in finished.output or "undefined reference" in finished.output.lower():
            message = (
                f"{self.command.file} does not compile by itself: it calls device code of other units "
                "(-rdc=true), which are not in the reproducer."
            )
        return CompileError(message, finished.output)


def _in(tree: Path, path: Path) -> Path:
    """Where the stand-in of an absolute path is."""
    return tree / path.relative_to(path.anchor)
