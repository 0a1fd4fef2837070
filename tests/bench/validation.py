"""Strict validation of a large capture against one pass of memcmp over as many bytes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from bench.report import Report, median, spread
from bench.snapshot import large_capture
from kerncap.core.judge.validate import Validator

_MIB = int(os.environ.get("KERNCAP_BENCH_STRICT_MIB", "4096"))
_RUNS = 3


def measure(report: Report) -> None:
    """Adds the figures of strict validation."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("KERNCAP_BENCH_DIR")) as folder:
        reproducer = large_capture(Path(folder), _MIB)
        with Validator(reproducer) as validator:
            compares, passes = [], []
            captured = validator.capture.code_path()
            validator.baseline("strict")
            for _ in range(_RUNS):
                result = validator.validate(captured, mode="strict")
                assert result.verdict == "IDENTICAL", result
                compares.append(result.compare_s)
                passes.append(validator.memcmp_seconds())
        report.add(f"one memcmp pass, {_MIB} MiB", median(passes), "s", note=spread(passes))
        report.add(f"strict comparison, {_MIB} MiB, resident", median(compares), "s", note=spread(compares))
        report.add("strict comparison against memcmp", median(compares) / median(passes), "x", at_most=2.0)
