"""The demonstration workload: a small quantised transformer decoder in HIP, and the whole loop on it."""

from __future__ import annotations

from kerncap.demo.building import BuiltDemo, build

__all__ = ["BuiltDemo", "build", "run_headless"]


def run_headless(device: str | None = None, json: bool = False) -> int:
    """Go through the whole loop on the demonstration program and print it. Returns the exit code."""
    from kerncap.demo.headless import run

    return run(device, json)
