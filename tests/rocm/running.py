"""What a program of this group did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    """What a program did: its exit code, output and own count of its launches, by kernel name."""

    code: int
    stdout: str
    stderr: str

    @property
    def launched(self) -> dict[str, int]:
        return own_counts(self.stdout)


def own_counts(stdout: str) -> dict[str, int]:
    """How often a program says it launched each of its kernels."""
    lines = [line.split() for line in stdout.splitlines() if line.startswith("launched ")]
    return {name: int(count) for _, name, count in lines}
