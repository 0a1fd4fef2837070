"""Where a reproducer goes when nobody says: ./isolated/KERNEL, by the kernel's own name, however it was asked
for. That name may be known only once the kernel is captured; what can be refused is refused before.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from kerncap.core.code.demangle import demangled
from kerncap.core.code.names import base_name, is_id, safe_filename
from kerncap.core.loop.captures import captured_as, free_output

FOLDER = Path("isolated")


def default_output(kernel: str) -> Path:
    """./isolated/KERNEL, with the name made safe for a file system and a Makefile."""
    written = demangled(kernel.removesuffix(".kd"))
    name = base_name(written) if "(" in written or "<" in written else written
    return FOLDER / safe_filename(name)


def _may_be_place(directory: Path, name: str) -> bool:
    """Whether an extraction of a kernel of that name goes, or once went, to this directory by itself."""
    return re.fullmatch(re.escape(default_output(name).name) + r"(-\d+)?", directory.name) is not None


def place_for(kernel: str) -> Path:
    """Where `kernel`, as it was typed, goes as far as that is known before the program runs.

    Where a capture of it is at the place of its own name already, that: to be refused, or replaced.
    """
    for directory, known in captured_as(kernel, FOLDER):
        own = (base_name(known.name), known.symbol, known.symbol.removesuffix(".kd"))
        # A plain word that is a part of that name may be the whole name of another kernel.
        whole = is_id(kernel) or not kernel.isidentifier() or kernel in own
        if whole and _may_be_place(directory, known.name):
            return directory
    return free_output(default_output(kernel), kernel)


def own_place(target: Path, kernel: str, name: str, symbol: str, *, force: bool) -> Path:
    """Where the captured kernel `name` goes, which was asked for as `kernel`; `target` was the place so far.

    What is there and was not checked before the run is never replaced without `force`, and a capture is not
    given up for it: it goes beside.
    """
    own = default_output(name)
    found = free_output(own, kernel if is_id(kernel) else symbol)
    number = 1
    while found != target and os.path.lexists(found):
        if force and (found / "capture" / "capture.bin").exists():
            break
        number += 1
        found = own.with_name(f"{own.name}-{number}")
    return found
