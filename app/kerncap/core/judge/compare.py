"""Comparing memory: what the replayer found different, element by element, by the types that are declared.

Integers, pointers and bytes must be equal. Floats must be equal in value (NaN and Inf at the same places, +0
and -0 alike) or, where the user asked for it, within a tolerance. Where the captured kernel does not repeat
itself, the elements that vary are masked, and floats among them held against the range in which they vary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kerncap.core.judge import floats
from kerncap.core.judge.dtypes import FLOATS, SIZES, TypeMap
from kerncap.core.judge.elements import Elements, describe, elements
from kerncap.core.judge.mismatches import Mismatches, relative_error
from kerncap.core.judge.variation import Variation, hold
from kerncap.core.replay.replayer import NO_DATA, Differences

_HISTOGRAM = ("1", "2", "3-4", "5-16", "17-256", "257-65536", "more")
_HISTOGRAM_EDGES = np.array([1, 2, 4, 16, 256, 65536], np.uint64)

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Tolerance:
    """A float passes if |a-b| <= atol + rtol*|b|, or if it is within `ulp` units in the last place."""

    atol: float = 0.0
    rtol: float = 0.0
    ulp: int = 0
    bitwise: bool = False  # +0 and -0 differ, and so do NaNs with other bits

    @property
    def given(self) -> bool:
        return self.atol > 0 or self.rtol > 0 or self.ulp > 0


EXACT = Tolerance()


@dataclass
class RegionStats:
    """What is known of the differences in one region."""

    region: int
    dtype: str = ""
    mismatches: int = 0  # elements
    mismatch_bytes: int = 0
    tolerated: int = 0  # elements that differ, and pass
    masked_bytes: int = 0  # of elements that differ, and vary in the captured kernel's own runs
    differing_bytes: int = 0  # of all elements that are not bit-equal
    near: int = 0  # of the mismatches: more runs of the captured kernel may show that value
    max_abs: float | None = None
    max_rel: float | None = None
    max_ulp: int | None = None
    new_nans: int = 0
    signed_zeros: int = 0
    squares: float = 0.0
    ulp_histogram: dict[str, int] = field(default_factory=dict)
    first: dict[str, Any] | None = None  # lowest address
    worst: dict[str, Any] | None = None  # largest |a-b|
    detail: Mismatches = field(default_factory=Mismatches)
    _worst_error: float = -1.0

    def merge_first(self, candidate: dict[str, Any]) -> None:
        if self.first is None or int(candidate["address"], 16) < int(self.first["address"], 16):
            self.first = candidate


@dataclass
class Analysis:
    """A comparison, judged."""

    regions: dict[int, RegionStats] = field(default_factory=dict)
    compared: int = 0
    compared_in: dict[int, int] = field(default_factory=dict)  # of that, by region
    unanalysed: int = 0  # bytes that differ, too many to be looked at one by one

    @property
    def mismatches(self) -> int:
        return sum(r.mismatches for r in self.regions.values()) + self.unanalysed

    @property
    def mismatch_bytes(self) -> int:
        return sum(r.mismatch_bytes for r in self.regions.values()) + self.unanalysed

    @property
    def tolerated(self) -> int:
        return sum(r.tolerated for r in self.regions.values())

    @property
    def near(self) -> bool:
        """Whether all that fails varies, or has neighbours that do, and lies close to what was seen."""
        return 0 < sum(r.near for r in self.regions.values()) == self.mismatches


def _judge_floats(part: Elements, tolerance: Tolerance, stats: RegionStats, judged: Mask) -> Mask:
    """Which elements fail; `judged` are those that count (the others are masked)."""
    wanted, found = floats.values(part.expected, part.dtype), floats.values(part.actual, part.dtype)
    nan_wanted, nan_found = np.isnan(wanted), np.isnan(found)
    both_nan = nan_wanted & nan_found
    zeros = (wanted == 0) & (found == 0)
    finite = np.isfinite(wanted) & np.isfinite(found)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(found - wanted)
    distance = floats.ulp_distance(part.expected, part.actual)
    passes = np.zeros(len(wanted), bool)
    if not tolerance.bitwise:
        passes |= both_nan | zeros
    if tolerance.given:
        close = np.zeros(len(wanted), bool)
        if tolerance.atol > 0 or tolerance.rtol > 0:
            with np.errstate(invalid="ignore", over="ignore"):
                close |= error <= tolerance.atol + tolerance.rtol * np.abs(wanted)
        if tolerance.ulp > 0:
            close |= distance <= np.uint64(tolerance.ulp)
        passes |= finite & close
    stats.new_nans += int(np.count_nonzero(judged & nan_found & ~nan_wanted))
    stats.signed_zeros += int(np.count_nonzero(judged & zeros))
    counted = judged & finite & ~zeros
    if bool(counted.any()):
        errors = error[counted]
        stats.max_abs = max(stats.max_abs or 0.0, float(errors.max()))
        relative = relative_error(part.expected[counted], part.actual[counted], part.dtype)
        relative = relative[np.isfinite(relative)]  # not where 0 was expected
        if len(relative):
            stats.max_rel = max(stats.max_rel or 0.0, float(relative.max()))
        distances = distance[counted]
        stats.max_ulp = max(stats.max_ulp or 0, int(distances.max()))
        with np.errstate(over="ignore"):
            stats.squares += float(np.square(errors).sum())
        for i, count in enumerate(np.bincount(np.searchsorted(_HISTOGRAM_EDGES, distances), minlength=7)):
            if count:
                stats.ulp_histogram[_HISTOGRAM[i]] = stats.ulp_histogram.get(_HISTOGRAM[i], 0) + int(count)
        worst = int(np.flatnonzero(counted)[int(errors.argmax())])
        if float(error[worst]) > stats._worst_error:
            stats._worst_error = float(error[worst])
            stats.worst = describe(part, worst)
    return ~passes


def analyse(
    differences: Differences,
    types: TypeMap,
    tolerance: Tolerance = EXACT,
    variations: Sequence[Variation] = (),
    *,
    reference: bool = False,
) -> Analysis:
    """Judges every element that differs. `reference`: where elements vary, what is expected is held against
    the range, not what was found.
    """
    result = Analysis(compared=differences.compared, compared_in=differences.compared_in)
    lost = differences.runs[differences.runs["data_offset"] == NO_DATA]
    result.unanalysed = int(lost["different"].sum())
    for part in elements(differences, types):
        stats = result.regions.setdefault(part.region, RegionStats(part.region))
        stats.dtype = part.layout.name if stats.dtype in ("", part.layout.name) else "mixed"
        held = hold(part, variations, reference=reference)
        counts = ~held.varies | held.outside
        fails = counts & _judge_floats(part, tolerance, stats, counts) if part.dtype in FLOATS else counts
        size = SIZES[part.dtype]
        stats.differing_bytes += len(part.addresses) * size
        stats.masked_bytes += int(np.count_nonzero(held.varies)) * size
        count = int(np.count_nonzero(fails))
        stats.mismatches += count
        stats.mismatch_bytes += count * size
        stats.near += int(np.count_nonzero(fails & held.near))
        stats.tolerated += int(np.count_nonzero(~fails & ~held.varies))
        if count:
            first = int(np.flatnonzero(fails)[0])
            candidate = describe(part, first)
            if held.outside[first] and held.low[first] <= held.high[first]:
                candidate["range"] = [float(held.low[first]), float(held.high[first])]
            stats.merge_first(candidate)
        _detail(part, stats, counts, fails)
    return result


def _detail(part: Elements, stats: RegionStats, counted: Mask, fails: Mask) -> None:
    """Adds the elements that count to the bounded record of where and by how much they differ."""
    chosen = np.flatnonzero(counted)
    if len(chosen) == 0:
        return
    errors = relative_error(part.expected[chosen], part.actual[chosen], part.dtype)
    stats.detail.add(part.addresses[chosen], errors, fails[chosen], lambda i: describe(part, int(chosen[i])))
