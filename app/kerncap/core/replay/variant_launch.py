"""Whether and how a code object's kernel can take the place of the captured one.

Nothing is guessed: what does not fit is a UsageError that says why, and never another kernel.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from kerncap.core.build.staleness import find_variant, newer_source
from kerncap.core.capture.records import Capture
from kerncap.core.errors import UsageError
from kerncap.core.files import A_FILE, what_is
from kerncap.core.replay.cuda_launch import cuda_variant_launch
from kerncap.core.replay.hsaco_launch import hsaco_variant_launch
from kerncap.core.replay.launch import Launch


def variant_launch(capture: Capture, hsaco: str | os.PathLike[str]) -> Launch:
    """The kernel of the same symbol in `hsaco`, with the captured grid, workgroup and arguments.

    Raises UsageError: no such file, or none that has something in it, no code object, another arch, no such
    kernel, other arguments, more LDS than the device has, a workgroup that the kernel was not compiled for,
    module variables whose captured value it has no place for.
    """
    path = find_variant(capture, hsaco)
    made = "optimized.cubin" if capture.cuda_launch else "optimized.hsaco"
    found = what_is(path)
    if not found:
        raise UsageError(f"{hsaco}: there is no such file; `make recompile` writes {made}")
    if found != A_FILE:
        there = (path / made).is_file()
        such = Path(hsaco, made) if there else f"the {made} of `make recompile`"
        raise UsageError(f"{hsaco} is {found}; --hsaco takes a code object, such as {such}")
    changed = newer_source(path)
    if changed is not None:
        folder = shlex.quote(str(path.absolute().parent))
        raise UsageError(
            f"{path} is older than {changed.name}: rebuild it with `make -C {folder} "
            "recompile`, or copy it to another name to judge it as it is"
        )
    if capture.cuda_launch is not None:
        return cuda_variant_launch(capture, path)
    return hsaco_variant_launch(capture, path)
