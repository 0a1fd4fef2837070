"""The verdict on a variant that gets every number wrong, without the captured kernel's own runs."""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
from pathlib import Path

from bench.report import Report, median, spread
from kerncap.core.capture.reading import read_capture
from kerncap.core.extract.extract import extract
from kerncap.core.judge.validate import Validator
from support.build import build_program, compile_device

_THOUSANDS = int(os.environ.get("KERNCAP_BENCH_WRONG_THOUSANDS", "10000"))
_RUNS = 3
_HERE = Path(__file__).parent
_AIM_S = 2.0


def measure(report: Report) -> None:
    """Adds the figures of each type in turn."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("KERNCAP_BENCH_DIR")) as folder:
        wrong = compile_device(_HERE / "everywhere.hip", Path(folder) / "wrong.hsaco", "gfx942", "-DFACTOR=3")
        for dtype in ("f16", "f32", "f64", "i64"):
            reproducer = _capture(Path(folder), dtype)
            for mode in ("default", "strict") if dtype == "f32" else ("default",):
                _verdict(report, reproducer, wrong, dtype, mode)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    report.add("most memory of the process", most, "MiB")


def _capture(folder: Path, dtype: str) -> Path:
    program = build_program("everywhere", sources=_HERE)
    kernel = f"scale_{dtype}"
    command = [str(program.executable), kernel, "--thousands", str(_THOUSANDS)]
    result = extract(kernel, command, device="sim:gfx942", output=folder / kernel, stdout=subprocess.DEVNULL)
    return Path(result.output)


def _verdict(report: Report, reproducer: Path, wrong: Path, dtype: str, mode: str) -> None:
    capture = read_capture(reproducer / "capture")
    dtypes: dict[int | str, str] = dict.fromkeys((int(i) for i in capture.changes["region"]), dtype)
    with Validator(capture, dtypes=dtypes) as validator:
        validator.baseline(mode)
        seconds = []
        for _ in range(_RUNS):
            result = validator.validate(wrong, mode=mode)
            assert result.verdict == "FAIL", result
            found = sum(region["mismatches"] for region in result.regions)
            assert found == _THOUSANDS * 1000, found
            seconds.append(result.seconds)
    name = f"wrong in {_THOUSANDS / 1000:g} M {dtype}, {mode}"
    report.add(name, median(seconds), "s", at_most=_AIM_S, note=spread(seconds))
