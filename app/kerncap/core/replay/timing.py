"""Statistics of samples, and what may be said about the speed of a variant.

Raw samples are kept, outliers are flagged and never dropped; times that are zero, negative or absurd are no
samples at all: they are counted. Intervals are bootstrapped with a fixed seed, so the same samples give the
same answer. Samples that are all equal (a simulated device counts cycles) give intervals of no width.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

MIN_SAMPLES = 10
TARGET_RELATIVE_ERROR = 0.005
RESAMPLES = 2000
ABSURD_NS = 3600 * 10**9
_SAME = 0.02  # an interval wider than this does not show that two kernels take the same time
_SEED = 20240229
_CHUNK = 1 << 22

Samples = npt.NDArray[np.float64]


class Speed(str, enum.Enum):
    """What the samples say of a variant against its baseline."""

    FASTER = "FASTER"
    SLOWER = "SLOWER"
    SAME = "SAME"
    UNCLEAR = "UNCLEAR"


@dataclass(frozen=True)
class Timing:
    """Samples of one kernel, in ns, and what follows from them."""

    samples_ns: Samples
    rejected: int  # timestamps that were zero, negative, absurd or overlapped
    median_ns: float
    mean_ns: float
    min_ns: float
    max_ns: float
    stdev_ns: float
    quartiles_ns: tuple[float, float]
    ci95_ns: tuple[float, float]  # of the median
    relative_error: float  # standard error of the mean, relative
    outliers: tuple[int, ...]  # indices outside of Tukey's fences

    @property
    def n(self) -> int:
        return len(self.samples_ns)


@dataclass(frozen=True)
class Comparison:
    """A variant against its baseline. `ratio` is variant/baseline of the medians: below 1 is faster."""

    baseline: Timing
    variant: Timing
    ratio: float
    ci95: tuple[float, float]
    noise: float  # how far two series of the baseline alone lie apart
    verdict: Speed
    timer: str = ""
    batch: int = 1  # dispatches a sample
    launch_ns: float | None = None  # of an emptied kernel, where the kernels are as short as that matters

    @property
    def speedup(self) -> float:
        return 1.0 / self.ratio

    def to_json(self) -> dict[str, Any]:
        return {
            "speedup": self.speedup,
            "ratio": self.ratio,
            "ratio_ci95": list(self.ci95),
            "noise": self.noise,
            "verdict": self.verdict.value,
            "baseline_median_ns": self.baseline.median_ns,
            "variant_median_ns": self.variant.median_ns,
            "baseline_ci95_ns": list(self.baseline.ci95_ns),
            "variant_ci95_ns": list(self.variant.ci95_ns),
            "samples": [self.baseline.n, self.variant.n],
            "rejected": [self.baseline.rejected, self.variant.rejected],
            "outliers": [list(self.baseline.outliers), list(self.variant.outliers)],
            "timer": self.timer,
            "batch": self.batch,
            "launch_ns": self.launch_ns,
        }


def durations(times: npt.NDArray[np.int64]) -> tuple[Samples, int]:
    """Durations of (start, end) pairs, in order, and how many pairs were rejected.

    Rejected are: no start, an end that is not after its start, more than an hour, and a start before the end
    of the dispatch before it (one queue runs one dispatch after the other: such times are wrong).
    """
    if len(times) == 0:
        return np.zeros(0), 0
    start, end = times[:, 0], times[:, 1]
    good = (start > 0) & (end > start) & (end - start < ABSURD_NS)
    last = np.int64(0)
    for i in np.flatnonzero(good):
        if start[i] < last:
            good[i] = False
        else:
            last = end[i]
    return (end - start)[good].astype(np.float64), int(np.count_nonzero(~good))


def quantiles(values: Samples, *shares: float) -> list[float]:
    """Quantiles by linear interpolation; numpy's own take longer to import than to compute."""
    places = np.asarray(shares) * (len(values) - 1)
    return [float(v) for v in np.interp(places, np.arange(len(values)), np.sort(values))]


def _constant(samples: Samples) -> bool:
    return bool((samples == samples[0]).all())


def _resampled_medians(samples: Samples, rng: np.random.Generator, resamples: int) -> Samples:
    n = len(samples)
    if _constant(samples):
        return np.full(resamples, samples[0])
    out = np.empty(resamples)
    step = max(1, _CHUNK // n)
    for i in range(0, resamples, step):
        count = min(step, resamples - i)
        out[i : i + count] = np.median(samples[rng.integers(0, n, (count, n))], axis=1)
    return out


def median_interval(samples: Samples, resamples: int = RESAMPLES) -> tuple[float, float]:
    """A bootstrapped 95 % interval of the median of at least one sample."""
    if _constant(samples):
        return float(samples[0]), float(samples[0])
    medians = _resampled_medians(samples, np.random.default_rng(_SEED), resamples)
    low, high = quantiles(medians, 0.025, 0.975)
    return low, high


def ratio_interval(variant: Samples, baseline: Samples, resamples: int = RESAMPLES) -> tuple[float, float]:
    """A bootstrapped 95 % interval of the ratio of the medians."""
    if _constant(variant) and _constant(baseline):
        ratio = float(variant[0] / baseline[0])
        return ratio, ratio
    rng = np.random.default_rng(_SEED)
    ratios = _resampled_medians(variant, rng, resamples) / _resampled_medians(baseline, rng, resamples)
    low, high = quantiles(ratios, 0.025, 0.975)
    return low, high


def summarise(samples: Samples, rejected: int = 0) -> Timing:
    """Statistics of at least one sample. Raises ValueError where there is none."""
    if len(samples) == 0:
        raise ValueError("no sample")
    q1, median, q3 = quantiles(samples, 0.25, 0.5, 0.75)
    fence = 1.5 * (q3 - q1)
    outside = (samples < q1 - fence) | (samples > q3 + fence)
    stdev = float(samples.std(ddof=1)) if len(samples) > 1 else 0.0
    mean = float(samples.mean())
    return Timing(
        samples,
        rejected,
        median,
        mean,
        float(samples.min()),
        float(samples.max()),
        stdev,
        (q1, q3),
        median_interval(samples),
        stdev / np.sqrt(len(samples)) / mean if mean else 0.0,
        tuple(int(i) for i in np.flatnonzero(outside)),
    )


def steady(samples: Samples) -> bool:
    """Whether there are enough samples: 10, and a relative standard error below 0.5 %."""
    if len(samples) < MIN_SAMPLES:
        return False
    error = float(samples.std(ddof=1)) / float(np.sqrt(len(samples))) / float(samples.mean())
    return error < TARGET_RELATIVE_ERROR


@dataclass
class Series:
    """Samples of the two sides of a comparison, as they come in."""

    baseline: list[float] = field(default_factory=list)
    variant: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)  # the baseline's samples that open a block
    second: list[float] = field(default_factory=list)  # those that close it
    rejected: list[int] = field(default_factory=lambda: [0, 0])


def interleave(
    sample_baseline: Callable[[], float | None],
    sample_variant: Callable[[], float | None],
    enough: Callable[[Series], bool],
) -> Series:
    """Takes samples in blocks of A B B A until `enough`, so that a drift of the clock hits both sides alike.

    A sampler returns None for a timestamp that had to be rejected.
    """
    series = Series()
    while not enough(series):
        for side, opening in ((0, True), (1, True), (1, False), (0, False)):
            value = (sample_variant if side else sample_baseline)()
            if value is None:
                series.rejected[side] += 1
                continue
            (series.variant if side else series.baseline).append(value)
            if side == 0:
                (series.first if opening else series.second).append(value)
    return series


def gain_between(
    one: Mapping[str, Any] | None, other: Mapping[str, Any] | None
) -> tuple[float, tuple[float, float]] | None:
    """How many times faster `other` is than `one`, with its interval; both are `timing` of an iteration.

    Each is taken relative to the captured kernel of its own attempt, so that a drift between the two attempts
    does not count. None where one of them has no samples.
    """
    series = []
    for timing in (one, other):
        samples = (timing or {}).get("variant_ns") or []
        baseline = (timing or {}).get("baseline_median_ns") or 0.0
        if not samples or baseline <= 0:
            return None
        series.append(np.asarray(samples, np.float64) / baseline)
    gain = float(np.median(series[0]) / np.median(series[1]))
    return gain, ratio_interval(series[0], series[1])


def noise_floor(first: Sequence[float], second: Sequence[float]) -> float:
    """How far apart the medians of two series of the same kernel may lie by chance (A/A), relative."""
    if not first or not second:
        return 0.0
    low, high = ratio_interval(np.asarray(first), np.asarray(second))
    return max(abs(1.0 - low), abs(high - 1.0))


def speed_of(low: float, high: float, noise: float) -> Speed:
    """What an interval of the ratio variant/baseline says, against the A/A noise."""
    same = min(max(noise, TARGET_RELATIVE_ERROR), _SAME)
    if high < 1.0 - noise:
        return Speed.FASTER
    if low > 1.0 + noise:
        return Speed.SLOWER
    if 1.0 - same <= low and high <= 1.0 + same:
        return Speed.SAME
    return Speed.UNCLEAR


def compare(series: Series) -> Comparison:
    """The verdict on speed. A gap counts only above the A/A noise."""
    baseline = summarise(np.asarray(series.baseline), series.rejected[0])
    variant = summarise(np.asarray(series.variant), series.rejected[1])
    ratio = variant.median_ns / baseline.median_ns
    low, high = ratio_interval(variant.samples_ns, baseline.samples_ns)
    noise = noise_floor(series.first, series.second)
    return Comparison(baseline, variant, ratio, (low, high), noise, speed_of(low, high, noise))
