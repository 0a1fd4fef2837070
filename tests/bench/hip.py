"""An unmodified HIP on the simulator: how long a program takes to start, and what watching 100,000 launches
costs. Needs the packages that tests/rocm takes from Debian; where they cannot be had, nothing is measured."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

from bench.interception import interleaved, wall, watched
from bench.report import Report, median, spread
from kerncap.core.device.devices import full_environment, parse_device
from kerncap.core.native import SIM_RUNTIME, native_path
from kerncap.core.program.control import Session
from rocm.build import Builder
from rocm.llama import environment as llama_environment
from rocm.llama import program
from rocm.prefix import Prefix, Unavailable, find_prefix
from rocm.tiny_model import write_model

_LAUNCHES = 100_000
_PAIRS = 4


def measure(report: Report) -> None:
    """Adds the figures of a program that Debian's hipcc built."""
    try:
        prefix = find_prefix()
    except Unavailable as reason:
        print(f"HIP: not measured: Debian's HIP cannot be had: {reason}")
        return
    launches = str(Builder(prefix).build("launches").path)
    environment = {
        **os.environ,
        **prefix.environment(),
        "KERNCAP_SIM": "gfx942",
        "LD_LIBRARY_PATH": str(native_path(SIM_RUNTIME).parent),
    }
    wall([launches], environment)  # HIP keeps what it compiles for itself
    starts = [wall([launches], environment) for _ in range(5)]
    report.add("HIP program of 12 launches, whole run", median(starts), "s", note=spread(starts))
    loop = [launches, str(_LAUNCHES)]
    alone, beside = interleaved(lambda: wall(loop, environment), lambda: watched(loop, timing=True), _PAIRS)
    report.add("100,000 launches by HIP, alone", median(alone), "s", note=spread(alone))
    report.add("100,000 launches by HIP, watched", median(beside), "s", note=spread(beside))
    report.add("launches by HIP, watched against alone", median(beside) / median(alone), "x", at_most=1.03)
    _products(report, prefix, environment)
    _llama(report, prefix)


def _products(report: Report, prefix: Prefix, environment: dict[str, str]) -> None:
    """rocBLAS's own kernels on one thread of the simulator."""
    program = str(Builder(prefix).build("rocblas_rate").path)
    one_thread = {**environment, "KERNCAP_SIM": "gfx90a", "KERNCAP_SIM_THREADS": "1"}
    done = subprocess.run([program], env=one_thread, capture_output=True, text=True, check=True, timeout=300)
    rates: dict[str, list[float]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("rate "):
            _, name, seconds = line.split()
            rates.setdefault(name, []).append(512**3 / float(seconds) / 1e9)
    for name, aim in (("sgemm", 1.0), ("hgemm", 3.0)):
        best = rates[name]
        report.add(f"rocBLAS {name} 512^3, one core", median(best), "GMAC/s", at_least=aim, note=spread(best))


def _llama(report: Report, prefix: Prefix) -> None:
    """llama.cpp's own benchmark: tokens a second of a tiny model, watched and not."""
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder) / "tiny.gguf")
        words = [*program(prefix, "llama-bench", Path(folder) / "tiny.gguf"), "-p", "0", "-n", "64"]
        words += ["-r", "3", "-o", "json"]

        def rate(environment: dict[str, str]) -> float:
            done = subprocess.run(
                words, env=environment, capture_output=True, text=True, check=True, timeout=300
            )
            return float(json.loads(done.stdout)[0]["avg_ts"])

        def beside_kerncap() -> float:
            with Session.create(timing=True) as session:
                base = llama_environment(prefix)
                return rate(full_environment(parse_device("sim:gfx90a"), session.directory, base))

        alone, beside = interleaved(lambda: rate(llama_environment(prefix)), beside_kerncap, _PAIRS)
    report.add("llama-bench, f16, alone", median(alone), "tokens/s", note=spread(alone))
    report.add("llama-bench, f16, watched", median(beside), "tokens/s", note=spread(beside))
    report.add("llama-bench, watched against alone", median(beside) / median(alone), "x", at_least=0.97)
