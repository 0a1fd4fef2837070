"""How a rebuilt Triton kernel is launched: its threads are its own (num_warps), and so may its grid be.

kerncap.triton_hook.compile_variant writes that beside the code object, with the code object's hash.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from kerncap.core.errors import DamagedCaptureError
from kerncap.core.records import Capture
from kerncap.core.shape import misshapen
from kerncap.core.units import by

LAUNCH = ".launch.json"  # beside a code object
_SHAPE = {"sha256": str, "grid": [int], "threads": int, "shared": int}


@dataclass(frozen=True)
class Shape:
    """A grid in programs (workgroups, blocks), the threads of each, and its dynamic shared memory (bytes)."""

    programs: tuple[int, int, int]
    threads: int
    shared: int

    def told(self, capture: Capture) -> str:
        """What is otherwise than in the captured launch, in a sentence."""
        before, threads = programs(capture), captured_threads(capture)
        return (
            f"launched as {by(self.programs)} programs of {self.threads} threads; captured were "
            f"{by(before)} of {threads}"
        )


def captured_threads(capture: Capture) -> int:
    """The threads of a program, in all axes."""
    x, y, z = capture.dispatch.workgroup
    return x * max(y, 1) * max(z, 1)


def programs(capture: Capture) -> tuple[int, int, int]:
    """The grid in programs, as Triton counts it: workgroups on AMD GPUs, blocks on NVIDIA's."""
    if capture.cuda_launch is not None:
        return capture.cuda_launch.grid
    dispatch = capture.dispatch
    x, y, z = (
        (size + group - 1) // max(group, 1)
        for size, group in zip(dispatch.grid, dispatch.workgroup, strict=True)
    )
    return x, y, z


def variant_shape(capture: Capture, path: Path) -> Shape | None:
    """What lies beside a code object that Triton made; None where there is nothing, where it is of another
    code object, or where it says what was captured. Raises DamagedCaptureError.
    """
    beside = Path(f"{path}{LAUNCH}")
    if not beside.is_file():
        return None
    try:
        row = json.loads(beside.read_text("utf-8"))
        problem = misshapen(row, _SHAPE)
        if problem is None and (len(row["grid"]) != 3 or min(*row["grid"], row["threads"]) < 1):
            problem = f"no grid: {row['grid']} programs of {row['threads']} threads"
    except (OSError, ValueError) as error:
        problem = f"it cannot be read: {error}"
    if problem is not None:
        raise DamagedCaptureError(f"{beside}: {problem}.", file=str(beside))
    if row["sha256"] != hashlib.sha256(path.read_bytes()).hexdigest():
        return None
    x, y, z = row["grid"]
    shape = Shape((x, y, z), row["threads"], row["shared"])
    if shape.programs == programs(capture) and shape.threads == captured_threads(capture):
        return None
    return shape
