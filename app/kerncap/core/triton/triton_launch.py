"""How a rebuilt Triton kernel is launched: its threads are its own (num_warps), and so may its grid be.

kerncap.triton_hook.compile_variant writes that beside the code object, with the code object's hash.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path

from kerncap.core.capture.records import Capture
from kerncap.core.code.shape import misshapen
from kerncap.core.errors import DamagedCaptureError, UsageError
from kerncap.core.triton import triton_record
from kerncap.core.units import by

LAUNCH = ".launch.json"  # beside a code object
_SHAPE = {"sha256": str, "grid": [int], "threads": int, "shared": int, "ctas?": int, "scratch?": int}


@dataclass(frozen=True)
class Shape:
    """A grid in programs (workgroups; on NVIDIA GPUs clusters of `ctas` blocks), the threads of each block,
    and its dynamic shared memory (bytes; None: not known).
    """

    programs: tuple[int, int, int]
    threads: int
    shared: int | None
    ctas: int = 1

    @property
    def groups(self) -> tuple[int, int, int]:
        """The grid as the device has it."""
        x, y, z = self.programs
        return x * self.ctas, y, z

    def told(self, capture: Capture) -> str:
        """What is otherwise than in the captured launch, in a sentence."""
        before = captured_shape(capture)
        mine, theirs = self._words(before), before._words(self)
        return f"launched as {mine}; captured were {theirs}"

    def _words(self, other: Shape) -> str:
        words = f"{by(self.programs)} programs of {self.threads} threads"
        if self.ctas != other.ctas:
            words += f" in {self.ctas} blocks"
        if other.shared is not None and self.shared not in (None, other.shared):
            words += f" with {self.shared} bytes of shared memory"
        return words


def captured_shape(capture: Capture) -> Shape:
    """How the captured kernel was launched."""
    x, y, z = capture.dispatch.workgroup
    threads = x * max(y, 1) * max(z, 1)
    launch = capture.cuda_launch
    if launch is not None:
        ctas = max(launch.cluster[0], 1)
        gx, gy, gz = launch.grid
        return Shape((gx // ctas, gy, gz), threads, launch.dynamic_shared, ctas)
    record = triton_record.read(capture.path)
    shared = record.row.get("shared") if record is not None else None
    return Shape(programs(capture), threads, shared if isinstance(shared, int) else None)


def programs(capture: Capture) -> tuple[int, int, int]:
    """The grid in programs, as Triton counts it: workgroups on AMD GPUs, clusters of blocks on NVIDIA's."""
    if capture.cuda_launch is not None:
        return captured_shape(capture).programs
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
        if problem is None and (
            len(row["grid"]) != 3 or min(*row["grid"], row["threads"], row.get("ctas", 1)) < 1
        ):
            problem = f"no grid: {row['grid']} programs of {row['threads']} threads"
    except (OSError, ValueError) as error:
        problem = f"it cannot be read: {error}"
    if problem is not None:
        raise DamagedCaptureError(f"{beside}: {problem}.", file=str(beside))
    if row["sha256"] != hashlib.sha256(path.read_bytes()).hexdigest():
        return None
    x, y, z = row["grid"]
    shape = Shape((x, y, z), row["threads"], row["shared"], row.get("ctas", 1))
    before = captured_shape(capture)
    if shape == replace(before, shared=shape.shared if before.shared is None else before.shared):
        return None
    _check_scratch(capture, path, row.get("scratch", 0))
    return shape


def _check_scratch(capture: Capture, path: Path, needed: int) -> None:
    """The memory that Triton gives a kernel for itself is the captured launch's: as large as that needed."""
    if not needed:
        return
    record = triton_record.read(capture.path)
    x, y, z = captured_shape(capture).groups
    had = (record.row.get("scratch") or 0) * x * y * z if record is not None else 0
    if needed > had:
        raise UsageError(
            f"{path}: as it is launched, the kernel takes {needed} bytes of scratch memory (TMA descriptors, "
            f"for one); the captured launch had {had}"
        )
