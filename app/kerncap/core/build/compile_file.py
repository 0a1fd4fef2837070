"""`compile.json`: how a reproducer's variant is compiled. Read by people too; its options may be edited."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerncap.core.build.compile_command import CompileCommand
from kerncap.core.code.codeobject import Kernel, Target
from kerncap.core.code.shape import misshapen
from kerncap.core.errors import UsageError
from kerncap.core.files import unread, write_json
from kerncap.core.native import SIM_HIP

NAME = "compile.json"
SCHEMA = "kerncap-compile/1"
OVERLAY = "vfs.yaml"
VARIANT, VARIANT_CUDA, VARIANT_TRITON = "kernel_variant.cpp", "kernel_variant.cu", "kernel_variant.py"
OUTPUT = "optimized.hsaco"
OUTPUT_CUDA = "optimized.cubin"
PRISTINE = Path("capture") / "source"  # the copies as they were, for patches

_SHAPE = {
    "schema": str,
    "symbol": str,
    "target": str,
    "variant": str,
    "unit": str,
    "directory": str,
    "arguments": [str],
    "command_from?": str,
    "files": dict,
    "root": str,
    "kernel_arguments": [[int]],
}
_LONGEST_NAME = 255
_KERNCAP_HEADERS = f"/{Path(SIM_HIP).parent}/include/"  # wherever it is installed


@dataclass(frozen=True)
class CompileFile:
    """The compile of one reproducer. `files` maps absolute original paths to copies, relative to the
    reproducer.

    `layout` is (offset, size) of each explicit kernel argument of the captured kernel: a variant must take
    the same. `root` is the directory that a patch of the original tree counts from.
    """

    symbol: str
    target: Target
    command: CompileCommand
    files: dict[Path, str]
    variant: str
    root: Path
    layout: tuple[tuple[int, int], ...]

    @property
    def sources(self) -> list[str]:
        """What the variant is made of, relative to the reproducer: the unit first, its headers, this file.
        kerncap's own HIP headers, which are copied so that it builds anywhere, are nobody's to edit.
        """
        return [*self.editable, NAME]

    @property
    def editable(self) -> list[str]:
        """The same without this file."""
        own = [copy for path, copy in self.files.items() if part_of_kerncap(path) is None]
        return list(dict.fromkeys([self.variant, *own]))

    @property
    def cuda(self) -> bool:
        """Whether nvcc compiles it."""
        return self.target.triple.startswith("nvptx")

    @property
    def triton(self) -> bool:
        """Whether Triton compiles it."""
        return self.variant.endswith(".py")

    @property
    def output(self) -> str:
        """What a rebuild writes, where nothing else is named."""
        return OUTPUT_CUDA if self.cuda else OUTPUT

    def write(self, directory: Path) -> None:
        """Into `directory`/compile.json."""
        write_json(
            directory / NAME,
            {
                "schema": SCHEMA,
                "symbol": self.symbol,
                "target": str(self.target),
                "variant": self.variant,
                "unit": str(self.command.file),
                "directory": str(self.command.directory),
                "arguments": list(self.command.arguments),
                "command_from": self.command.origin,
                "files": {str(path): copy for path, copy in self.files.items()},
                "root": str(self.root),
                "kernel_arguments": [list(pair) for pair in self.layout],
            },
        )

    @classmethod
    def read(cls, directory: Path) -> CompileFile:
        """From a reproducer. Raises UsageError where it has no variant, or the file is not right: it is there
        to be edited.
        """
        path = directory / NAME
        if not directory.is_dir():
            raise UsageError(
                f"{directory} is no directory: name a reproducer, as `kerncap extract` writes it."
            )
        if not path.is_file():
            variant = next(
                (name for name in (VARIANT, VARIANT_CUDA, VARIANT_TRITON) if (directory / name).is_file()),
                None,
            )
            if variant is not None:
                raise UsageError(
                    f"{directory} has lost its {NAME}, which says how {variant} is compiled: extract the "
                    "kernel again."
                )
            raise UsageError(
                f"{directory} has no {NAME}: there is nothing to recompile. Its README.md says why its "
                "kernel has no source."
            )
        try:
            row: dict[str, Any] = json.loads(path.read_text("utf-8", "surrogateescape"))
            problem = misshapen(row, _SHAPE)
            if problem:
                raise UsageError(f"{path}: {problem}.", file=str(path))
            if row["schema"] != SCHEMA:
                raise UsageError(f"{path} has schema {row['schema']!r}; this kerncap reads {SCHEMA!r}.")
            command = CompileCommand(
                Path(row["directory"]),
                tuple(str(a) for a in row["arguments"]),
                Path(row["unit"]),
                None,
                str(row.get("command_from", "")),
            )
            for text in (row["directory"], row["unit"], *row["arguments"], *row["files"], row["root"]):
                if "\0" in text:
                    raise ValueError(f"a NUL byte in {text!r}")
                os.fsencode(text)
            if any(len(pair) != 2 for pair in row["kernel_arguments"]):
                raise ValueError("kernel_arguments is no list of pairs, of offset and size")
            if not command.arguments:
                raise ValueError("arguments is empty")
            files = {Path(original): _inside(str(copy), path) for original, copy in row["files"].items()}
            return cls(
                str(row["symbol"]),
                Target.parse(str(row["target"])),
                command,
                files,
                _inside(str(row["variant"]), path),
                Path(row["root"]),
                tuple((int(a), int(b)) for a, b in row["kernel_arguments"]),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(f"{path}: {unread(error)}.", file=str(path)) from error

    def copy_of(self, path: str) -> str | None:
        """The copy that stands for a path as the compiler prints it, if it is one of the program's files."""
        return self.files.get(self.command.resolve(path))


def part_of_kerncap(path: Path) -> str | None:
    """A header's path below kerncap's own HIP headers; None for any other file."""
    _, found, rest = str(path).rpartition(_KERNCAP_HEADERS)
    return rest if found else None


def layout_of(kernel: Kernel) -> tuple[tuple[int, int], ...]:
    """(offset, size) of each explicit argument."""
    return tuple((a.offset, a.size) for a in kernel.explicit_arguments)


def _inside(copy: str, path: Path) -> str:
    parts = Path(copy).parts
    known = not any(len(os.fsencode(part)) > _LONGEST_NAME or "\0" in part for part in parts)
    if Path(copy).is_absolute() or ".." in parts or not parts or not known:
        raise UsageError(
            f"{path} names the copy {copy[:200]!r}, which is not inside the reproducer.", file=str(path)
        )
    return copy
