"""A fault in words that fit a reproducer: its own files, and one distance to the captured memory.

The simulated device tells where a fault is by the code object's line table, which has the paths of the
program's tree, and by its own allocations, which are larger than the captured regions: both are replaced by
what a person has before him. Where the line is in a function that was inlined, the kernel's own line is said
too.
"""

from __future__ import annotations

import re

from kerncap.core.build.compile_file import CompileFile
from kerncap.core.capture import manifest
from kerncap.core.capture.records import Capture
from kerncap.core.code.names import one_line
from kerncap.core.code.reading import read_code_object
from kerncap.core.errors import DamagedCaptureError, KerncapError
from kerncap.core.replay.launch import Launch

# As native/sim/device/fault.cpp and native/replay/session.cpp write them.
_PLACE = re.compile(r"(\(\+0x([0-9a-f]+)\), )(.+?):(\d+)(?=, called at |, instruction '|, workgroup \(|\.)")
_IN_FUNCTION = " In function "  # the offset is from that one's begin then, not from the kernel's
_ALLOCATION = re.compile(r" The nearest allocation is [^.\n]*\.")
_REGION = "\nThe address is "
_OUTSIDE = re.compile(r"\nThe address is (0x[0-9a-f]+), \d+ bytes (?:past the end of|before) region \d+ ")
_NEAR = 1 << 40  # farther than any buffer is long


def place_of(text: str) -> tuple[str, int] | None:
    """The file and the line that a fault's sentence names, if it names any."""
    match = _PLACE.search(text)
    return (match[3], int(match[4])) if match else None


def fault_text(text: str, capture: Capture, launch: Launch) -> str:
    """What a fault of `launch` says to a person."""
    if _REGION in text:
        text = _ALLOCATION.sub("", text) + _from_argument(text, capture)
    plan = _plan(capture, launch)
    if plan is None:
        return text

    def own(match: re.Match[str]) -> str:
        return (
            f"{match[1]}{plan.copy_of(match[3]) or match[3]}:{match[4]}{_caller(text, match, plan, launch)}"
        )

    return _PLACE.sub(own, text)


def _from_argument(text: str, capture: Capture) -> str:
    """How far an address outside of all regions is from the nearest argument below it: the region that it is
    nearest to may be another's than the one that was indexed.
    """
    match = _OUTSIDE.search(text)
    if match is None:
        return ""
    try:
        arguments = manifest.read(capture.path)["arguments"]
    except DamagedCaptureError:
        return ""
    address = int(match[1], 16)
    below = [
        (address - int(argument["pointer"]["address"], 16), argument)
        for argument in arguments
        if argument.get("pointer")
    ]
    near = [pair for pair in below if 0 <= pair[0] < _NEAR]
    if not near:
        return ""
    distance, argument = min(near, key=lambda pair: pair[0])
    name = one_line(argument["name"]) or f"at offset {argument['offset']}"
    return f" It is {distance} bytes after where the argument {name} points, the nearest one below."


def _caller(text: str, match: re.Match[str], plan: CompileFile, launch: Launch) -> str:
    """ ", called at FILE:LINE", where the fault is in what was inlined into the kernel."""
    if launch.path is None or _IN_FUNCTION in text:
        return ""
    from kerncap.core.code.inlining import called_at  # takes long to import

    try:
        site = called_at(read_code_object(launch.path), launch.symbol, int(match[2], 16))
    except KerncapError:
        return ""
    return f", called at {plan.copy_of(site[0]) or site[0]}:{site[1]}" if site is not None else ""


def _plan(capture: Capture, launch: Launch) -> CompileFile | None:
    """How the code was made of the reproducer's copies; None where it was not, as far as anybody knows."""
    reproducer = capture.path.absolute().parent
    if launch.path is None or not launch.path.absolute().is_relative_to(reproducer):
        return None
    if launch.path == capture.code_path().absolute():
        return None
    try:
        return CompileFile.read(reproducer)
    except KerncapError:
        return None
