"""Stands for a program with many kernels: writes a statistics file whose every row changes all the time.

python live_rows.py ROWS SECONDS      (KERNCAP_SESSION names the session)
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

from kerncap.core.code import layout
from kerncap.core.program.control import process_start

STEP_S = 0.05


def main(rows: int, seconds: float) -> None:
    """Writes until `seconds` are over."""
    names = [f"void blocked::kernel_{i:04}<float, {i % 7}>(float const*, float*, int)" for i in range(rows)]
    blob = "".join(names).encode()
    path = Path(os.environ["KERNCAP_SESSION"]) / f"{os.getpid()}-{process_start(os.getpid())}.live"
    with path.open("w+b") as file:
        file.truncate(layout.NAMES_OFFSET + len(blob))
        file.seek(layout.NAMES_OFFSET)
        file.write(blob)
    header = np.memmap(path, layout.LIVE_HEADER, "r+", 0, (1,))
    table = np.memmap(path, layout.ROW, "r+", layout.ROWS_OFFSET, (rows + 1,))
    offset = 0
    for i, name in enumerate(names, 1):
        row = table[i : i + 1]
        for field in ("name", "demangled"):
            row[f"{field}_offset"], row[f"{field}_length"] = offset, len(name)
        row["id"] = i * 0x9E3779B97F4A7C15 % (1 << 64)
        row["kind"], row["min_ns"] = int(layout.KernelKind.HIP), 1000
        row["grid"], row["block"] = (8192, 1, 1), (64, 1, 1)
        offset += len(name)
    header["version"], header["row_bytes"], header["row_count"] = layout.VERSION, layout.ROW_BYTES, rows
    header["pid"], header["max_rows"], header["name_bytes"] = os.getpid(), layout.MAX_ROWS, len(blob)
    header["magic"] = layout.LIVE_MAGIC
    random = np.random.default_rng(1)
    live = table[1:]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        calls = random.integers(1, 50, rows, dtype=np.uint64)
        took = random.integers(1000, 90_000, rows, dtype=np.uint64)
        live["total_ns"] += calls * took
        live["max_ns"] = np.maximum(live["max_ns"], took)
        live["last_ns"] = took
        live["calls"] += calls
        live["timed"] += calls
        header["dispatches"] += calls.sum()
        header["timed"] += calls.sum()
        time.sleep(STEP_S)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
