"""Which file a variant's name means, and whether a rebuilt kernel still is what its source says."""

from __future__ import annotations

import filecmp
import os
from pathlib import Path

from kerncap.core.build.compile_file import NAME, OUTPUT, OUTPUT_CUDA, CompileFile
from kerncap.core.capture.records import Capture
from kerncap.core.code.bundle import BUNDLE_MAGIC, COMPRESSED_MAGIC
from kerncap.core.code.elf import ELF_MAGIC
from kerncap.core.code.fatbin import MAGIC as FATBIN_MAGIC
from kerncap.core.code.ptx import is_ptx
from kerncap.core.errors import KerncapError, UsageError


def find_variant(capture: Capture, hsaco: str | os.PathLike[str]) -> Path:
    """A relative name counts from the current directory, else from the reproducer (where `make recompile`
    writes); the absolute path.

    Raises UsageError where it names code in both, and these are not the same.
    """
    path = Path(hsaco)
    if path.is_absolute():
        return path
    inside = Path(os.path.abspath(capture.path.parent / path))
    here = Path(os.path.abspath(path))
    if not here.is_file():
        return inside if inside.is_file() else here
    both = inside.is_file() and _is_code(here) and _is_code(inside)
    if both and not filecmp.cmp(here, inside, shallow=False):
        raise UsageError(
            f"{os.fspath(hsaco)} names two code objects, and they differ: {here} and {inside}. "
            "Write more of the path of the one that is meant"
        )
    return here


def _is_code(path: Path) -> bool:
    """Whether a file begins as what can be run does."""
    try:
        with path.open("rb") as file:
            head = file.read(1 << 16)
    except OSError:
        return False
    return head.startswith((ELF_MAGIC, BUNDLE_MAGIC, COMPRESSED_MAGIC, FATBIN_MAGIC)) or is_ptx(head)


def newer_source(hsaco: Path) -> Path | None:
    """The first source of a reproducer that was changed after its `optimized.hsaco` (or .cubin) was
    built.

    None for a code object that lies elsewhere or has another name: that one stands for itself.
    """
    directory = hsaco.absolute().parent
    if hsaco.name not in (OUTPUT, OUTPUT_CUDA) or not (directory / NAME).is_file():
        return None
    try:
        built = hsaco.stat().st_mtime_ns
        for copy in CompileFile.read(directory).sources:
            source = directory / copy
            if source.is_file() and source.stat().st_mtime_ns > built:
                return source
    except (OSError, KerncapError):
        return None
    return None
