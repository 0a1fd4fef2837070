"""Which file a variant's name means, and whether a rebuilt kernel still is what its source says."""

from __future__ import annotations

import filecmp
import os
from pathlib import Path

from kerncap.core.build.compile_file import NAME, OUTPUT, OUTPUT_CUDA, CompileFile
from kerncap.core.capture.records import Capture
from kerncap.core.errors import KerncapError, UsageError


def find_variant(capture: Capture, hsaco: str | os.PathLike[str]) -> Path:
    """A relative name counts from the current directory, else from the reproducer (where `make recompile`
    writes); the absolute path.

    Raises UsageError where it names a file in both, and these are not the same.
    """
    path = Path(hsaco)
    if path.is_absolute():
        return path
    inside = Path(os.path.abspath(capture.path.parent / path))
    here = Path(os.path.abspath(path))
    if not here.is_file():
        return inside if inside.is_file() else here
    if inside.is_file() and not filecmp.cmp(here, inside, shallow=False):
        raise UsageError(
            f"{os.fspath(hsaco)} names two code objects, and they differ: {here} and {inside}. "
            "Write more of the path of the one that is meant"
        )
    return here


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
