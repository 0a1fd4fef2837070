"""What the replayer launches: the captured kernel as it was, the same emptied, or a variant
(variant_launch.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kerncap.core.capture.captured_code import captured_code
from kerncap.core.capture.records import Capture
from kerncap.core.code.codeobject import CodeObjectError, Kernel
from kerncap.core.triton.triton_launch import Shape

QUEUE = "hidden_queue_ptr"  # of the hidden kernel arguments


@dataclass(frozen=True)
class Launch:
    """What the replayer needs to launch a variant. Sizes are bytes; `group_bytes` includes dynamic LDS."""

    path: Path | None  # None: the captured kernel, emptied
    symbol: str
    private_bytes: int
    group_bytes: int
    kernargs: bytes = b""  # empty: as captured, at their captured address
    queue_offset: int | None = None  # where the address of the live queue belongs
    kernel: Kernel | None = None  # metadata, where the code object carries it
    warnings: tuple[str, ...] = ()  # what of the variant is otherwise than in the captured code object
    shape: Shape | None = None  # None: the captured one

    @property
    def shape_words(self) -> tuple[int, ...]:
        """What the replayer is told of another shape: workgroups, the work-items of each, and how many
        workgroups are a cluster.
        """
        if self.shape is None:
            return ()
        return (*self.shape.groups, self.shape.threads, self.shape.ctas)

    def kernargs_with_queue(self, queue: int) -> bytes:
        """The kernel arguments for a process whose queue is at address `queue`."""
        if self.queue_offset is None:
            return self.kernargs
        at = self.queue_offset
        return self.kernargs[:at] + queue.to_bytes(8, "little") + self.kernargs[at + 8 :]


def captured_kernel(capture: Capture) -> Kernel | None:
    """The captured kernel's metadata; None where its code object has none. Raises DamagedCaptureError."""
    try:
        return captured_code(capture).kernel(capture.dispatch.symbol)
    except CodeObjectError:
        return None


def captured_launch(capture: Capture) -> Launch:
    """The dispatch as it was."""
    dispatch, kernel = capture.dispatch, captured_kernel(capture)
    queue = queue_offset(kernel)
    return Launch(
        capture.code_path().absolute(),
        dispatch.symbol,
        dispatch.private_segment_size,
        dispatch.group_segment_size,
        capture.kernarg.data if queue is not None else b"",
        queue,
        kernel,
    )


def emptied_launch(capture: Capture) -> Launch:
    """The captured kernel with its first instruction replaced by one that ends it."""
    dispatch = capture.dispatch
    return Launch(None, dispatch.symbol, dispatch.private_segment_size, dispatch.group_segment_size)


def queue_offset(kernel: Kernel | None) -> int | None:
    """Where among its arguments a kernel expects the address of the queue; None: nowhere."""
    hidden = next((a for a in kernel.arguments if a.value_kind == QUEUE), None) if kernel else None
    return hidden.offset if hidden else None
