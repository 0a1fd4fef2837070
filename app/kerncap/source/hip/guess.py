"""A compile command for a source file of which none is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from kerncap.core.build.compile_command import GUESSED, CompileCommand
from kerncap.core.build.device_compile import DeviceCompile, Probe
from kerncap.core.build.toolchain import CompileError
from kerncap.core.native import SIM_HIP, find_native
from kerncap.source.finding import SourceRequest
from kerncap.source.hip.cache import cached_probe

_MISSING = re.compile(r"fatal error: '([^']+)' file not found")
_ATTEMPTS = 24


def guess_command(
    request: SourceRequest, file: Path, files: Sequence[Path], debug: bool
) -> tuple[CompileCommand, Probe]:
    """`-x hip -O3` (and `-g`: `debug`) with the user's defines, and the include directories that the sources
    turn out to need. What is compiled with -g may have its instructions in another order.

    A header that is not found is looked for in the tree: its directory becomes an -I. HIP's own, where this
    machine has none, are kerncap's. Raises CompileError where the file does not compile even so.
    """
    includes: list[str] = []
    for _ in range(_ATTEMPTS):
        words = [
            "hipcc",
            "-x",
            "hip",
            "-O3",
            *(["-g"] if debug else []),
            *(f"-I{i}" for i in includes),
            *(f"-D{d}" for d in request.defines),
        ]
        command = CompileCommand(file.parent, (*words, "-c", str(file)), file, None, GUESSED)
        try:
            return command, cached_probe(DeviceCompile.of(command, request.target, request.symbol))
        except CompileError as error:
            missing = _MISSING.search(error.output)
            folder = (_include_directory(missing[1], files) or _own_header(missing[1])) if missing else None
            if folder is None or str(folder) in includes:
                raise
            includes.append(str(folder))
    raise CompileError(
        f"{file} needs more than {_ATTEMPTS} include directories: give a compile_commands.json."
    )


def own_include() -> Path | None:
    """The folder of kerncap's HIP headers; None where its native part is not built."""
    library = find_native(SIM_HIP)
    folder = library.parent / "include" if library else None
    return folder if folder is not None and folder.is_dir() else None


def _own_header(name: str) -> Path | None:
    folder = own_include()
    inside = folder is not None and ".." not in Path(name).parts and (folder / name).is_file()
    return folder if inside else None


def _include_directory(name: str, files: Sequence[Path]) -> Path | None:
    """The directory from which `#include <name>` finds a file of the tree; the shortest where several do."""
    parts = Path(name).parts
    if not parts or ".." in parts or Path(name).is_absolute():
        return None
    folders = [f.parents[len(parts) - 1] for f in files if f.parts[-len(parts) :] == parts]
    return min(folders, key=lambda p: len(p.parts), default=None)
