"""Snapshot and restore against a plain copy to the same place, in one run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.report import Report, median, spread
from kerncap.core.capture.reading import read_capture
from kerncap.core.extract.extract import extract
from kerncap.core.replay.replayer import Replayer
from support.build import build_program

_MIB = int(os.environ.get("KERNCAP_BENCH_MIB", "1024"))
_RUNS = 3
_CHUNK = 8 << 20


def _plain_write(path: Path, data: np.ndarray) -> float:
    """Seconds to write `data` there and flush it."""
    started = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        view = memoryview(data)
        for at in range(0, len(view), _CHUNK):
            file.write(view[at : at + _CHUNK])
        os.fsync(file.fileno())
    return time.perf_counter() - started


def _plain_read(path: Path, into: np.ndarray) -> float:
    started = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        view = memoryview(into)
        at = 0
        while at < len(view):
            at += file.readinto(view[at : at + _CHUNK]) or 0
    return time.perf_counter() - started


def large_capture(folder: Path, mib: int) -> Path:
    """A reproducer of `touch` with `mib` MiB of random data."""
    program = build_program("large_buffer", sources=Path(__file__).parent)
    result = extract(
        "touch",
        [str(program.executable), "--mib", str(mib)],
        device="sim:gfx942",
        output=folder / "touch",
        stdout=subprocess.DEVNULL,
    )
    return Path(result.output)


def _place(report: Report, name: str, root: Path) -> None:
    size = _MIB << 20
    data = np.frombuffer(np.random.default_rng(1).bytes(size), np.uint8)
    into = np.zeros(size, np.uint8)
    saves, restores, writes, reads = [], [], [], []
    for _ in range(_RUNS):
        with tempfile.TemporaryDirectory(dir=root) as text:
            folder = Path(text)
            plain = folder / "plain"
            writes.append(size / _plain_write(plain, data) / 1e9)
            reads.append(size / _plain_read(plain, into) / 1e9)
            plain.unlink()
            reproducer = large_capture(folder, _MIB)
            capture = read_capture(reproducer / "capture")
            manifest = capture.path / "manifest.json"
            assert manifest.exists()

            saves.append(capture.pre_bytes / json.loads(manifest.read_text())["snapshot_s"] / 1e9)
            with Replayer(capture, "sim:gfx942") as replayer:
                replayer.start()
                restores.append(capture.pre_bytes / float(replayer.greeting.values["restore_s"]) / 1e9)
            shutil.rmtree(reproducer)
    report.add(f"plain write and flush, {name}", median(writes), "GB/s", note=spread(writes))
    report.add(f"snapshot, {name}", median(saves), "GB/s", note=spread(saves))
    report.add(f"snapshot against plain write, {name}", median(saves) / median(writes), "x", at_least=0.8)
    report.add(f"plain read, {name}", median(reads), "GB/s", note=spread(reads))
    report.add(f"restore, {name}", median(restores), "GB/s", note=spread(restores))
    report.add(f"restore against plain read, {name}", median(restores) / median(reads), "x", at_least=0.8)


def measure(report: Report) -> None:
    """Adds the figures of snapshots to memory and to disk."""
    if Path("/dev/shm").is_dir():
        _place(report, "memory", Path("/dev/shm"))
    _place(report, "disk", Path(tempfile.gettempdir()))
