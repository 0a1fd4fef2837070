"""An unmodified HIP on the simulator: how long a program takes to start, and what watching 100,000 launches
costs. Needs the packages that tests/rocm takes from Debian; where they cannot be had, nothing is measured."""

from __future__ import annotations

import os

from bench.interception import wall, watched
from bench.report import Report, median, spread
from kerncap.core.native import SIM_RUNTIME, native_path
from rocm.build import Builder
from rocm.prefix import Unavailable, find_prefix

_LAUNCHES = 100_000
_PAIRS = 4


def measure(report: Report) -> None:
    """Adds the figures of a program that Debian's hipcc built."""
    try:
        prefix = find_prefix()
    except Unavailable as reason:
        print(f"HIP: not measured: Debian's HIP cannot be had: {reason}")
        return
    program = str(Builder(prefix).build("launches").path)
    environment = {
        **os.environ,
        **prefix.environment(),
        "KERNCAP_SIM": "gfx942",
        "LD_LIBRARY_PATH": str(native_path(SIM_RUNTIME).parent),
    }
    wall([program], environment)  # HIP keeps what it compiles for itself
    starts = [wall([program], environment) for _ in range(5)]
    report.add("HIP program of 12 launches, whole run", median(starts), "s", note=spread(starts))
    loop = [program, str(_LAUNCHES)]
    alone, beside = [], []
    for pair in range(_PAIRS):  # ABBA
        for bare in (True, False) if pair % 2 == 0 else (False, True):
            if bare:
                alone.append(wall(loop, environment))
            else:
                beside.append(watched(loop, timing=True))
    report.add("100,000 launches by HIP, alone", median(alone), "s", note=spread(alone))
    report.add("100,000 launches by HIP, watched", median(beside), "s", note=spread(beside))
    report.add("launches by HIP, watched against alone", median(beside) / median(alone), "x", at_most=1.03)
