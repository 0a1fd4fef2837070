"""What watching costs: the demonstration program's wall time with the interposer against without, and
launches a second through it."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.report import Report, median, spread
from kerncap.core.device.devices import full_environment, parse_device
from kerncap.core.program.control import Session
from kerncap.core.program.profile import profile
from kerncap.demo import build
from support.build import build_program, simulator_environment

_PAIRS = 4
_LAUNCHES = 200_000


def wall(command: list[str], environment: dict[str, str]) -> float:
    """Seconds that a program took. Raises CalledProcessError where it failed."""
    started = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True, timeout=300)
    return time.perf_counter() - started


def watched(command: list[str], timing: bool) -> float:
    """Seconds that a program took on sim:gfx942 with kerncap's interposer."""
    with Session.create(timing=timing) as session:
        return wall(command, full_environment(parse_device("sim:gfx942"), session.directory))


def interleaved(
    one: Callable[[], float], other: Callable[[], float], pairs: int
) -> tuple[list[float], list[float]]:
    """Samples of both in ABBA order, so that a machine that slows down does so for both."""
    first, second = [], []
    for pair in range(pairs):
        for sample, into in ((one, first), (other, second))[:: 1 if pair % 2 == 0 else -1]:
            into.append(sample())
    return first, second


def measure(report: Report) -> None:
    """Adds the figures of interception."""
    bare_environment = {**os.environ, **simulator_environment()}
    with tempfile.TemporaryDirectory() as folder:
        command = build(Path(folder) / "demo", "sim:gfx942").command
        wall(command, bare_environment)
        alone, beside = interleaved(
            lambda: wall(command, bare_environment), lambda: watched(command, timing=True), _PAIRS
        )
        report.add("demo, wall time alone", median(alone), "s", note=spread(alone))
        report.add("demo, wall time watched", median(beside), "s", note=spread(beside))
        report.add("demo, watched against alone", median(beside) / median(alone), "x", at_most=1.03)

    launches = build_program("launches")
    loop = [str(launches.executable), "--launches", str(_LAUNCHES)]
    bare = [wall(loop, bare_environment) for _ in range(3)]
    report.add("launches alone", _LAUNCHES / median(bare), "dispatches/s", note=spread(bare))
    for timing, aim in ((False, 200_000.0), (True, None)):
        walls = [watched(loop, timing) for _ in range(3)]
        how = "timed" if timing else "counted"
        report.add(
            f"launches watched, {how}",
            _LAUNCHES / median(walls),
            "dispatches/s",
            at_least=aim,
            note=spread(walls),
        )
    counted = profile(loop, device="sim:gfx942", timing=False, stdout=subprocess.DEVNULL)
    report.add("interposer's own time a dispatch, counted", counted.interposer_s / _LAUNCHES * 1e9, "ns")
    report.add(
        "dispatches seen less launches made", counted.dispatches - _LAUNCHES, "", at_most=0, at_least=None
    )
