"""Comparing memory: what the replayer found different, element by element, by the types that are declared.

Integers, pointers and bytes must be equal. Floats must be equal in value (NaN and Inf at the same places, +0
and -0 alike) or, where the user asked for it, within a tolerance. Where the captured kernel does not repeat
itself, the elements that vary are masked, and floats among them held against the range in which they vary.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kerncap.core.judge import floats
from kerncap.core.judge.dtypes import FLOATS, SIZES, TypeMap
from kerncap.core.judge.elements import Elements, describe, elements
from kerncap.core.judge.mismatches import (
    Mismatches,
    absolute_error,
    all_finite,
    numbers,
    relative_error,
    relative_to,
)
from kerncap.core.judge.variation import Held, Variation, hold
from kerncap.core.replay.replayer import Differences

# Of distances in units in the last place: the largest one that each name stands for.
_HISTOGRAM = (
    ("1", 1), ("2", 2), ("3-4", 4), ("5-16", 16), ("17-256", 256), ("257-65536", 65536), ("more", 2**64 - 1),
)  # fmt: skip

_LARGEST = sys.float_info.max

Mask = npt.NDArray[np.bool_]
Values = floats.Values


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

    @property
    def text(self) -> str:
        """ "rtol 1e-06, ulp 2"; empty where nothing is given."""
        values = (("atol", self.atol), ("rtol", self.rtol), ("ulp", self.ulp))
        return ", ".join(f"{name} {value:g}" for name, value in values if value)


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
    unanalysed: int = 0  # bytes that differ beyond the bound to what is looked at
    detail: Mismatches = field(default_factory=Mismatches)
    _worst_error: float = -1.0


@dataclass
class Analysis:
    """A comparison, judged."""

    regions: dict[int, RegionStats] = field(default_factory=dict)
    compared: int = 0
    compared_in: dict[int, int] = field(default_factory=dict)  # of that, by region

    @property
    def unanalysed(self) -> int:
        """Bytes that differ, too many to be looked at one by one."""
        return sum(r.unanalysed for r in self.regions.values())

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


@dataclass(frozen=True)
class _Numbers:
    """Elements as numbers, and by how much they differ."""

    wanted: Values
    found: Values
    error: Values
    relative: Values

    @staticmethod
    def of(part: Elements) -> _Numbers | None:
        wanted, found = numbers(part.expected, part.dtype), numbers(part.actual, part.dtype)
        if wanted is None or found is None:
            return None
        error = absolute_error(part.expected, part.actual, part.dtype, wanted, found)
        return _Numbers(wanted, found, error, relative_to(wanted, found, error))


def _judge_floats(
    part: Elements,
    its: _Numbers,
    tolerance: Tolerance,
    stats: RegionStats,
    judged: Mask,
    errors: list[Values],
) -> Mask:
    """Which elements fail; `judged` are those that count (the others are masked). Their absolute errors are
    added to `errors`.
    """
    wanted, found, error = its.wanted, its.found, its.error
    distance = floats.ulp_distance(part.expected, part.actual)
    passes, counted, finite = np.zeros(len(wanted), bool), judged, None
    if not (all_finite(error) and float(error.min()) > 0):  # else all are finite, and none are two zeros
        nan_wanted, nan_found = np.isnan(wanted), np.isnan(found)
        zeros = (wanted == 0) & (found == 0)
        finite = np.isfinite(wanted) & np.isfinite(found)
        if not tolerance.bitwise:
            passes |= nan_wanted & nan_found | zeros
        stats.new_nans += int(np.count_nonzero(judged & nan_found & ~nan_wanted))
        stats.signed_zeros += int(np.count_nonzero(judged & zeros))
        counted = judged & finite & ~zeros
    if tolerance.given:
        close = np.zeros(len(wanted), bool)
        if tolerance.atol > 0 or tolerance.rtol > 0:
            with np.errstate(invalid="ignore", over="ignore"):
                bound = tolerance.atol + tolerance.rtol * np.abs(wanted)
                close |= error <= np.minimum(bound, _LARGEST)
        if tolerance.ulp > 0:
            close |= distance <= min(tolerance.ulp, int(np.iinfo(distance.dtype).max))
        passes |= close if finite is None else finite & close
    if bool(counted.any()):
        _measure(part, its, distance, stats, counted, errors)
    return ~passes


def _measure(
    part: Elements,
    its: _Numbers,
    distance: floats.Bits,
    stats: RegionStats,
    counted: Mask,
    errors: list[Values],
) -> None:
    """Adds finite floats that differ to a region's figures."""
    error, relative = its.error, its.relative
    if not bool(counted.all()):
        error, relative, distance = error[counted], relative[counted], distance[counted]
    errors.append(error)
    i = int(error.argmax())
    largest = min(float(error[i]), _LARGEST)  # beyond that no document has a number
    stats.max_abs = max(stats.max_abs or 0.0, largest)
    if largest > stats._worst_error:
        stats._worst_error = largest
        stats.worst = describe(part, int(np.flatnonzero(counted)[i]))
    if not all_finite(relative):
        relative = relative[np.isfinite(relative)]  # not where 0 was expected
    if len(relative):
        stats.max_rel = max(stats.max_rel or 0.0, float(relative.max()))
    farthest = int(distance.max())
    stats.max_ulp = max(stats.max_ulp or 0, farthest)
    below = 0
    for name, edge in _HISTOGRAM:
        up_to = len(distance) if farthest <= edge else int(np.count_nonzero(distance <= edge))
        if up_to > below:
            stats.ulp_histogram[name] = stats.ulp_histogram.get(name, 0) + up_to - below
        below = up_to


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
    for row in differences.lost:
        stats = result.regions.setdefault(int(row["region"]), RegionStats(int(row["region"])))
        stats.unanalysed += int(row["different"])
        stats.differing_bytes += int(row["different"])
    for part in elements(differences, types):
        stats = result.regions.setdefault(part.region, RegionStats(part.region))
        stats.dtype = part.layout.name if stats.dtype in ("", part.layout.name) else "mixed"
        errors: list[Values] = []
        for block in part.blocks():
            _judge(block, hold(block, variations, reference=reference), tolerance, stats, errors)
        if errors:
            squares = np.concatenate(errors)
            with np.errstate(over="ignore"):
                stats.squares += float(np.square(squares, out=squares).sum())
    for stats in result.regions.values():
        found = stats.ulp_histogram
        stats.ulp_histogram = {name: found[name] for name, _ in _HISTOGRAM if name in found}
    return result


def _judge(
    part: Elements, held: Held, tolerance: Tolerance, stats: RegionStats, errors: list[Values]
) -> None:
    """Adds elements to what is known of their region."""
    counts = ~held.varies | held.outside
    fails, its = counts, _Numbers.of(part)
    if its is not None and part.dtype in FLOATS:
        fails = counts & _judge_floats(part, its, tolerance, stats, counts, errors)
    size = SIZES[part.dtype]
    stats.differing_bytes += len(part.addresses) * size
    stats.masked_bytes += int(np.count_nonzero(held.varies)) * size
    count = int(np.count_nonzero(fails))
    stats.mismatches += count
    stats.mismatch_bytes += count * size
    stats.near += int(np.count_nonzero(fails & held.near))
    stats.tolerated += int(np.count_nonzero(~fails & ~held.varies))
    first = int(fails.argmax())
    if count and (stats.first is None or int(part.addresses[first]) < int(stats.first["address"], 16)):
        stats.first = describe(part, first)
        if held.outside[first] and held.low[first] <= held.high[first]:
            stats.first["range"] = [float(held.low[first]), float(held.high[first])]
    relative = relative_error(part.expected, part.actual, part.dtype) if its is None else its.relative
    if bool(counts.all()):
        stats.detail.add(part.addresses, relative, fails, lambda i: describe(part, i))
    elif bool(counts.any()):
        chosen = np.flatnonzero(counts)
        stats.detail.add(
            part.addresses[chosen], relative[chosen], fails[chosen], lambda i: describe(part, int(chosen[i]))
        )
