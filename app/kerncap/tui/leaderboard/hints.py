"""The guided line of the ranking: what to do next in the demonstration."""

from __future__ import annotations


def hint(kernel: str | None, *, extracted: bool, running: bool) -> str:
    """One sentence. `kernel` is the name of the selected one."""
    from kerncap.demo.edits import KERNEL

    if extracted:
        return "Every capture is under c. Press enter on one there to work on it, or q to leave."
    if kernel is None:
        return "The demonstration program starts: a small language model on a simulated GPU."
    if kernel != KERNEL:
        return f"Kernels by device time. Go to {KERNEL} with ↑ ↓ (or any other), then press e."
    where = "the running program" if running else "a rerun"
    return f"Kernels by device time, live. Press e to take {KERNEL} out of {where}."
