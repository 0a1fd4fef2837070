"""Whether a reproducer's rebuilt kernel still is what its source says."""

from __future__ import annotations

from pathlib import Path

from kerncap.core.compile_file import NAME, OUTPUT, OUTPUT_CUDA, CompileFile
from kerncap.core.errors import KerncapError


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
