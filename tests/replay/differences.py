"""Differences as the replayer reports them, made up."""

from __future__ import annotations

import numpy as np

from kerncap.core.replay.replayer import RUN_DTYPE, Differences

A = 0x7E1000000000


def differences(expected: np.ndarray, actual: np.ndarray, address: int = A) -> Differences:
    """Runs of whole 16-byte blocks, each with the bytes that are expected and those that were found."""
    want = np.ascontiguousarray(expected).view(np.uint8).reshape(-1)
    got = np.ascontiguousarray(actual).view(np.uint8).reshape(-1)
    runs, data = [], bytearray()
    for begin in range(0, len(want), 16):
        a, b = want[begin : begin + 16], got[begin : begin + 16]
        count = int(np.count_nonzero(a != b))
        if count:
            runs.append((address + begin, len(a), count, len(data), 1, 0))
            data += a.tobytes() + b.tobytes()
    found = sum(r[2] for r in runs)
    table = np.array(runs, RUN_DTYPE)
    return Differences(table, np.frombuffer(bytes(data), np.uint8), len(want), found, 0.0, {1: len(want)})
