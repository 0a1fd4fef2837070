"""Timing a captured kernel, or a variant of it, alone.

The memory is resident and the module loaded before anything is timed; the times are the dispatch's own
timestamps. Before every sample the written ranges are put back, and a barrier orders the copy before
the dispatch.
"""

from __future__ import annotations

import dataclasses
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kerncap.core.capture.reading import has_traces, read_capture
from kerncap.core.device.devices import Device
from kerncap.core.errors import InconclusiveError, UsageError, unwritable
from kerncap.core.files import A_DIRECTORY, what_is, write_json
from kerncap.core.replay import timing
from kerncap.core.replay.replayer import Replayer, Variant
from kerncap.core.replay.variant_launch import variant_launch

SCHEMA = "kerncap-replay/1"
_SHORT_NS = 10_000  # below this, several dispatches make one sample
_SHORT_ON_CUDA_NS = 50_000  # likewise where they follow each other without a gap, as in a program
_BATCH = 16
_MOST_SAMPLES = 10_000
_MOST_FAILURES = 100  # samples that were rejected, before there was a good one
_FIRST_RUNS = 5
_SECONDS = 60.0  # of sampling, where nobody says
_SIMULATED_SAMPLES = 3  # its cycles do not vary, unless the kernel does


@dataclass
class ReplayResult:
    """What `replay` measured. Times are ns of the device's clock; on a simulated device, simulated cycles."""

    kernel: str
    symbol: str
    device: str
    simulated: bool
    timer: str
    cache: str
    variant: str | None
    timing: timing.Timing
    batch: int
    launch_ns: float | None  # what an emptied kernel of the same shape takes
    output: str | None
    warnings: list[str]

    def to_json(self) -> dict[str, Any]:
        """The document of `kerncap replay --json`."""
        t = self.timing
        return {
            "schema": SCHEMA,
            "kernel": self.kernel,
            "symbol": self.symbol,
            "variant": self.variant,
            "device": self.device,
            "simulated": self.simulated,
            "timer": self.timer,
            "cache": self.cache,
            "iterations": t.n,
            "samples_ns": [float(v) for v in t.samples_ns],
            "median_ns": t.median_ns,
            "mean_ns": t.mean_ns,
            "min_ns": t.min_ns,
            "max_ns": t.max_ns,
            "stdev_ns": t.stdev_ns,
            "quartiles_ns": list(t.quartiles_ns),
            "ci95_ns": list(t.ci95_ns),
            "relative_error": t.relative_error,
            "outliers": list(t.outliers),
            "rejected": t.rejected,
            "batch": self.batch,
            "launch_ns": self.launch_ns,
            "output": self.output,
            "warnings": self.warnings,
        }


def timer_name(replayer: Replayer, clock: str = "dispatch") -> str:
    """What the times are, for every place that shows them."""
    if replayer.device.kind == "cuda" and replayer.greeting.values.get("timer") == "event":
        return "events around each launch, launching included (no CUPTI)"
    if clock == "system":
        where = "a simulated device" if replayer.simulated else "the device"
        return (
            f"event pairs (system clock around each dispatch, launching included; {where} gave no timestamps)"
        )
    if replayer.simulated:
        return "simulated cycles (dispatch timestamps of the simulated device)"
    return "dispatch timestamps"


def load(replayer: Replayer, hsaco: str | os.PathLike[str] | None = None) -> Variant:
    """The captured kernel, or the variant in `hsaco`, loaded. UsageError where the variant does not fit."""
    if hsaco is None:
        return replayer.captured()
    return replayer.load(variant_launch(replayer.capture, hsaco))


class Sampler:
    """Takes samples of one variant: by the dispatch's own timestamps, or, on a device that gives none, by the
    system clock around it.
    """

    def __init__(self, replayer: Replayer, variant: Variant, cache: str = "warm") -> None:
        if cache not in ("warm", "cold"):
            raise UsageError(f"cache {cache!r} is neither warm nor cold")
        self.replayer, self.variant, self.cache = replayer, variant, cache
        self.clock = "dispatch"
        self.batch = 1
        self.rejected = 0

    @property
    def timer(self) -> str:
        """What its times are."""
        return timer_name(self.replayer, self.clock)

    @property
    def exact(self) -> bool:
        """Whether equal runs take equal times: simulated cycles."""
        return self.replayer.simulated and self.clock == "dispatch"

    def prepare(self) -> None:
        """The first runs, which are no samples: they warm up, and say how short the kernel is."""
        first, _ = timing.durations(self.replayer.run(self.variant, 1 if self.replayer.simulated else 2))
        if len(first) == 0:
            first, _ = timing.durations(self.replayer.run(self.variant, _FIRST_RUNS))
        if len(first) == 0:
            self.clock = "system"
            first, _ = timing.durations(self.replayer.run(self.variant, _FIRST_RUNS, clock=self.clock))
        limit = _SHORT_ON_CUDA_NS if self.replayer.device.kind == "cuda" else _SHORT_NS
        short = len(first) > 0 and float(first.min()) < limit
        if not short or self.replayer.simulated or self.cache == "cold":
            return
        number = self.replayer._number(self.variant)
        reply = self.replayer.request("idempotent", number, self.replayer.limit_s)
        self.batch = _BATCH if reply.values["same"] == "1" else 1

    def sample(self) -> float | None:
        """One sample in ns; None where its timestamps had to be rejected."""
        times = self.replayer.run(self.variant, 1, cache=self.cache, batch=self.batch, clock=self.clock)
        values, rejected = timing.durations(times)
        self.rejected += rejected
        return None if rejected or len(values) == 0 else float(values.mean())


def measure(
    sampler: Sampler, iterations: int | None = None, time_limit_s: float | None = None
) -> timing.Timing:
    """Samples until `iterations` or the time that was given, or until they are steady (timing.py).

    Raises InconclusiveError where the device gives no usable timestamp.
    """
    sampler.prepare()
    samples: list[float] = []
    attempts = 0
    limited = time_limit_s is not None or iterations is None
    deadline = time.monotonic() + (time_limit_s if time_limit_s is not None else _SECONDS)
    while True:
        value = sampler.sample()
        attempts += 1
        if value is not None:
            samples.append(value)
        if limited and samples and time.monotonic() > deadline:
            break
        if not samples and attempts >= (iterations or _MOST_FAILURES):
            break
        if iterations is not None:
            if attempts >= iterations:
                break
            continue
        if sampler.exact and len(samples) >= _SIMULATED_SAMPLES and len(set(samples)) == 1:
            break
        if timing.steady(np.asarray(samples)) or len(samples) >= _MOST_SAMPLES:
            break
    if not samples:
        raise InconclusiveError(
            f"none of {attempts} dispatches had believable timestamps ({sampler.rejected} were rejected)"
        )
    return timing.summarise(np.asarray(samples), sampler.rejected)


def race(
    replayer: Replayer,
    baseline: Variant,
    variant: Variant,
    *,
    cache: str = "warm",
    time_limit_s: float = 30.0,
) -> timing.Comparison:
    """Times a variant against the captured kernel, interleaved; whether it is right is not looked at here."""
    a, b = Sampler(replayer, baseline, cache), Sampler(replayer, variant, cache)
    a.prepare()
    b.prepare()
    if "system" in (a.clock, b.clock):  # one clock for both
        a.clock = b.clock = "system"
    a.batch = b.batch = min(a.batch, b.batch)
    deadline = time.monotonic() + time_limit_s
    attempts = 0

    def enough(series: timing.Series) -> bool:
        nonlocal attempts
        attempts += 1
        have = bool(series.baseline) and bool(series.variant)
        if not have:
            if attempts > 50:
                raise InconclusiveError("the device gives no believable timestamps: nothing can be compared")
            return False
        if a.exact and len({*series.baseline}) == 1 and len({*series.variant}) == 1:
            return True
        if time.monotonic() > deadline:
            return True
        return timing.steady(np.asarray(series.baseline)) and timing.steady(np.asarray(series.variant))

    found = timing.compare(timing.interleave(a.sample, b.sample, enough))
    shortest = min(found.baseline.median_ns, found.variant.median_ns)
    launch_ns = _launch_overhead(replayer, a.clock) if shortest < _SHORT_NS else None
    return dataclasses.replace(found, timer=a.timer, batch=a.batch, launch_ns=launch_ns)


def replay(
    directory: str | os.PathLike[str],
    hsaco: str | os.PathLike[str] | None = None,
    iterations: int | None = None,
    cache: str = "warm",
    dump: str | os.PathLike[str] | None = None,
    *,
    device: str | Device | None = None,
    time_limit_s: float | None = None,
    limit_s: float = 60.0,
    replayer: Replayer | None = None,
) -> ReplayResult:
    """Puts the captured memory back and times the kernel (or the one in `hsaco`).

    `iterations` None: until the samples are steady, at most `time_limit_s` (60). `dump`: a directory for the
    written regions as they are after the last run. `limit_s` is the limit of one dispatch. `replayer`: one
    that holds this capture already.

    Raises UsageError (variant, options), DeviceError, DamagedCaptureError, KernelFault, KernelTimeout,
    InconclusiveError (the kernel needs its program while it runs; no usable timestamps).
    """
    if iterations is not None and iterations < 1:
        raise UsageError(f"iterations: {iterations} is not at least 1")
    if dump is not None and what_is(dump) not in ("", A_DIRECTORY):
        raise UsageError(
            f"{os.fspath(dump)} is {what_is(dump)}; the memory is written to a directory (--dump)"
        )
    if dump is not None and (has_traces(Path(dump)) or has_traces(Path(dump, "capture"))):
        raise UsageError(
            f"{os.fspath(dump)} holds a capture, and nothing is added to it; name another directory (--dump)"
        )
    own = None
    if replayer is None:
        replayer = own = Replayer(read_capture(os.fspath(directory)), device, limit_s=limit_s)
    try:
        variant = load(replayer, hsaco)
        warnings = list(variant.launch.warnings)
        if replayer.simulated and cache == "cold":
            warnings.append(
                "the simulated device has no caches that could be cold: warm and cold are the same"
            )
        displaced = int(replayer.greeting.values.get("displaced_bytes", "0"))
        if displaced:
            warnings.append(
                f"{displaced} bytes of device memory had to be placed in host memory (this runtime has no "
                "virtual memory API): times are not those of the application"
            )
        sampler = Sampler(replayer, variant, cache)
        result = measure(sampler, iterations, time_limit_s)
        if replayer.simulated:
            warnings.append(simulated_clock(result.samples_ns))
        output = _dump(replayer, Path(dump)) if dump is not None else None
        launch_ns = _launch_overhead(replayer, sampler.clock) if result.median_ns < _SHORT_NS else None
        return ReplayResult(
            kernel=replayer.capture.dispatch.demangled,
            symbol=replayer.capture.dispatch.symbol,
            device=replayer.device.name,
            simulated=replayer.simulated,
            timer=sampler.timer,
            cache=cache,
            variant=None if hsaco is None else str(variant.launch.path),
            timing=result,
            batch=sampler.batch,
            launch_ns=launch_ns,
            output=output,
            warnings=warnings,
        )
    finally:
        if own is not None:
            own.close()


def simulated_clock(samples_ns: timing.Samples) -> str:
    """What a simulated device's times are, and whether these runs took the same."""
    alike = len(samples_ns) > 0 and bool((samples_ns == samples_ns[0]).all())
    runs = "the same in all of these runs" if alike else "not the same in all of these runs"
    return f"simulated device: times are cycles of its cost table, {runs}; not GPU time"


def _launch_overhead(replayer: Replayer, clock: str) -> float | None:
    """What an emptied kernel of the same shape takes, by the same clock."""
    try:
        empty = replayer.emptied()
    except UsageError:
        return None
    values, _ = timing.durations(replayer.run(empty, _FIRST_RUNS, clock=clock))
    return timing.quantiles(values, 0.5)[0] if len(values) else None


def _dump(replayer: Replayer, directory: Path) -> str:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(directory, error) from None
    names = replayer.dump(directory.absolute())
    capture = replayer.capture
    regions = []
    for name in names:
        address = int(name.removesuffix(".bin"), 16)
        region = capture.region_at(address)
        regions.append({"file": name, "address": f"0x{address:x}", "bytes": region.bytes if region else None})
    write_json(directory / "regions.json", {"schema": "kerncap-dump/1", "regions": regions})
    return os.fspath(directory)
