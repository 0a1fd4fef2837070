"""Speed of the interpreter: wave-instructions a second on one host thread, and on two."""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

from bench.report import Report, median, spread
from kerncap.core.native import native_path
from support.build import compile_device

_SOURCE = Path(__file__).with_name("fma_sgemm.hip")
_HIDDEN = {"fma_loop": 24, "sgemm_tiled": 32}  # where the hidden arguments start
_RUNS = 5


class Driver:
    """`kerncap-sim-run`, a line at a time."""

    def __init__(self, threads: int, code: Path) -> None:
        self._process = subprocess.Popen(
            [native_path("kerncap-sim-run")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.tell(f"threads {threads}")
        self.tell(f"load {code}")

    def tell(self, line: str) -> dict[str, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        assert answer[:1] == ["ok"], f"{line}: {' '.join(answer)}"
        return dict(word.split("=", 1) for word in answer[1:] if "=" in word)

    def close(self) -> None:
        self._process.communicate(timeout=30)


def _rates(threads: int, code: Path, kernel: str, setup: list[str], launch: str) -> list[float]:
    driver = Driver(threads, code)
    for line in setup:
        driver.tell(line)
    rates = []
    for run in range(_RUNS + 1):
        started = time.perf_counter()
        answer = driver.tell(launch)
        elapsed = time.perf_counter() - started
        if run:  # the first warms up
            rates.append(int(answer["insts"]) / elapsed / 1e6)
    driver.close()
    return rates


def measure(report: Report) -> None:
    """Adds the interpreter's figures."""
    with tempfile.TemporaryDirectory() as folder:
        code = compile_device(_SOURCE, Path(folder) / "fma_sgemm.hsaco")
        cases = {
            "fma_loop": (
                100,
                ["alloc out 65536", "kernarg ptr out f32 0.999 f32 0.5 i32 4000", "hidden 24"],
                "launch fma_loop 16384 1 1 256 1 1 0",
            ),
            "sgemm_tiled": (
                30,
                [
                    "alloc a 262144",
                    "alloc b 262144",
                    "alloc c 262144",
                    "kernarg ptr a ptr b ptr c i32 256",
                    "hidden 32",
                ],
                "launch sgemm_tiled 64 64 1 16 16 1 0",
            ),
        }
        for kernel, (aim, setup, launch) in cases.items():
            one = _rates(1, code, kernel, setup, launch)
            two = _rates(2, code, kernel, setup, launch)
            report.add(
                f"interpreter, {kernel}, one thread",
                median(one),
                "M wave-instructions/s",
                at_least=aim,
                note=spread(one),
            )
            report.add(
                f"interpreter, {kernel}, two threads",
                median(two) / median(one),
                "x one thread",
                at_least=1.8,
                note=spread(two),
            )
