"""Comparing memory: what the replayer found different, element by element, by the types that are declared.

Integers, pointers and bytes must be equal. Floats must be equal in value (NaN and Inf at the same places, +0
and -0 alike) or, where the user asked for it, within a tolerance. Where the captured kernel does not repeat
itself, the elements that vary are masked, and floats among them held against the range in which they vary.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kerncap.core import floats
from kerncap.core.dtypes import BYTES, FLOATS, SIZES, Layout, TypeMap
from kerncap.core.mismatches import Mismatches, relative_error
from kerncap.core.replayer import NO_DATA, Differences

_CHUNK_BYTES = 1 << 23
_HISTOGRAM = ("1", "2", "3-4", "5-16", "17-256", "257-65536", "more")
_HISTOGRAM_EDGES = np.array([1, 2, 4, 16, 256, 65536], np.uint64)
_UNSIGNED = {1: np.dtype("u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4"), 8: np.dtype("<u8")}

Addresses = npt.NDArray[np.uint64]
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


@dataclass(frozen=True)
class Elements:
    """Elements of one type in one region whose bits differ. Arrays have one entry an element."""

    region: int
    layout: Layout
    dtype: str
    anchor: int  # address of element 0
    addresses: Addresses
    expected: npt.NDArray[Any]  # bits
    actual: npt.NDArray[Any]


@dataclass
class RegionStats:
    """What is known of the differences in one region."""

    region: int
    dtype: str = ""
    mismatches: int = 0  # elements
    mismatch_bytes: int = 0
    tolerated: int = 0  # elements that differ, and pass
    masked_bytes: int = 0  # of elements that vary in the captured kernel's own runs
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
class Variation:
    """Elements of one type that vary: sorted addresses, and for floats the range of values seen."""

    dtype: str
    addresses: Addresses
    low: floats.Values
    high: floats.Values
    anchor: int = 0


@dataclass
class Analysis:
    """A comparison, judged."""

    regions: dict[int, RegionStats] = field(default_factory=dict)
    compared: int = 0
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
    def masked_bytes(self) -> int:
        return sum(r.masked_bytes for r in self.regions.values())


def _chunks(differences: Differences) -> Iterator[npt.NDArray[np.void]]:
    """Runs that have data, of one region and of a bounded number of bytes at a time."""
    runs = differences.runs[differences.runs["data_offset"] != NO_DATA]
    if len(runs) == 0:
        return
    ends = np.cumsum(runs["bytes"])
    borders = np.flatnonzero(np.diff(runs["region"].astype(np.int64))) + 1
    for first, last in itertools.pairwise([0, *borders.tolist(), len(runs)]):
        start = first
        while start < last:
            done = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, done + _CHUNK_BYTES, side="right"))
            stop = min(max(stop, start + 1), last)
            yield runs[start:stop]
            start = stop


def _gather(
    runs: npt.NDArray[np.void], data: npt.NDArray[np.uint8]
) -> tuple[Addresses, npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """(address, expected, found) of every byte of the runs, each address once."""
    sizes = runs["bytes"].astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    within = np.arange(int(sizes.sum()), dtype=np.int64) - np.repeat(starts, sizes)
    addresses = (np.repeat(runs["address"].astype(np.int64), sizes) + within).astype(np.uint64)
    at = np.repeat(runs["data_offset"].astype(np.int64), sizes) + within
    expected, actual = data[at], data[at + np.repeat(sizes, sizes)]
    if len(addresses) > 1:  # neighbouring runs may share a block
        seen = np.maximum.accumulate(addresses)
        fresh = np.concatenate(([True], addresses[1:] > seen[:-1]))
        if not bool(fresh.all()):
            addresses, expected, actual = addresses[fresh], expected[fresh], actual[fresh]
    return addresses, expected, actual


def elements(differences: Differences, types: TypeMap) -> Iterator[Elements]:
    """Every element that differs, by region and type."""
    for runs in _chunks(differences):
        addresses, expected, actual = _gather(runs, differences.data)
        region = int(runs["region"][0])
        for begin, end, layout, anchor in types.split(int(addresses[0]), int(addresses[-1]) + 1):
            lo, hi = np.searchsorted(addresses, [begin, end])
            if lo < hi:
                part = (addresses[lo:hi], expected[lo:hi], actual[lo:hi])
                yield from _typed_elements(region, layout, anchor, *part)


def _typed_elements(
    region: int,
    layout: Layout,
    anchor: int,
    addresses: Addresses,
    expected: npt.NDArray[np.uint8],
    actual: npt.NDArray[np.uint8],
) -> Iterator[Elements]:
    offsets = (addresses - np.uint64(anchor)) % np.uint64(layout.stride)
    covered = np.zeros(len(addresses), bool)
    for part in layout.fields:
        size = part.size
        within = offsets.astype(np.int64) - part.offset
        first = np.flatnonzero((within >= 0) & (within < size * part.count) & (within % size == 0))
        first = first[first + size <= len(addresses)]
        first = first[addresses[first + size - 1] == addresses[first] + np.uint64(size - 1)]
        if len(first) == 0:
            continue
        index = first[:, None] + np.arange(size)
        covered[index] = True
        wanted = expected[index].reshape(-1).view(_UNSIGNED[size])
        found = actual[index].reshape(-1).view(_UNSIGNED[size])
        differ = wanted != found
        if bool(differ.any()):
            yield Elements(
                region, layout, part.dtype, anchor, addresses[first[differ]], wanted[differ], found[differ]
            )
    rest = ~covered & (expected != actual)
    if bool(rest.any()):
        yield Elements(region, BYTES, "bytes", anchor, addresses[rest], expected[rest], actual[rest])


def _describe(part: Elements, i: int) -> dict[str, Any]:
    address = int(part.addresses[i])
    size = SIZES[part.dtype]
    stride = part.layout.stride if part.layout is not BYTES else 1

    def show(bits: npt.NDArray[Any]) -> float | int | str:
        if part.dtype in FLOATS:
            value = float(floats.values(bits[i : i + 1].copy(), part.dtype)[0])
            return value if np.isfinite(value) else str(value)
        if part.dtype.startswith("i"):
            return int(bits[i].astype(f"<i{size}"))
        return f"0x{int(bits[i]):x}" if part.dtype == "pointer" else int(bits[i])

    return {
        "index": (address - part.anchor) // stride,
        "address": f"0x{address:x}",
        "expected": show(part.expected),
        "actual": show(part.actual),
    }


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
        errors, references = error[counted], np.abs(wanted[counted])
        stats.max_abs = max(stats.max_abs or 0.0, float(errors.max()))
        nonzero = references > 0
        if bool(nonzero.any()):
            relative = float((errors[nonzero] / references[nonzero]).max())
            stats.max_rel = max(stats.max_rel or 0.0, relative)
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
            stats.worst = _describe(part, worst)
    return ~passes


def _within_variation(
    part: Elements, variations: Sequence[Variation], margin: float = 1.0
) -> tuple[Mask, Mask]:
    """(varies, outside): elements that vary in the captured kernel's own runs, and floats beyond their range.

    A few runs do not see all of a range: it is widened by `margin` times its width on both sides.
    """
    varies, outside = np.zeros(len(part.addresses), bool), np.zeros(len(part.addresses), bool)
    for variation in variations:
        if variation.dtype != part.dtype or len(variation.addresses) == 0:
            continue
        at = np.searchsorted(variation.addresses, part.addresses)
        at = np.minimum(at, len(variation.addresses) - 1)
        hit = variation.addresses[at] == part.addresses
        varies |= hit
        if part.dtype in FLOATS:
            found = floats.values(part.actual, part.dtype)
            low, high = variation.low[at], variation.high[at]
            with np.errstate(invalid="ignore", over="ignore"):
                width = (high - low) * margin
                inside = (found >= low - width) & (found <= high + width)
            unknown = np.isnan(low) | np.isnan(high)  # NaN was among the values: any may come
            outside |= hit & ~inside & ~unknown
    return varies, outside


def analyse(
    differences: Differences,
    types: TypeMap,
    tolerance: Tolerance = EXACT,
    variations: Sequence[Variation] = (),
) -> Analysis:
    """Judges every element that differs."""
    result = Analysis(compared=differences.compared)
    lost = differences.runs[differences.runs["data_offset"] == NO_DATA]
    result.unanalysed = int(lost["different"].sum())
    for part in elements(differences, types):
        stats = result.regions.setdefault(part.region, RegionStats(part.region))
        stats.dtype = part.layout.name if stats.dtype in ("", part.layout.name) else "mixed"
        varies, outside = _within_variation(part, variations)
        if part.dtype in FLOATS:
            fails = _judge_floats(part, tolerance, stats, ~varies) & (~varies | outside)
        else:
            fails = ~varies
        size = SIZES[part.dtype]
        stats.masked_bytes += int(np.count_nonzero(varies)) * size
        count = int(np.count_nonzero(fails))
        stats.mismatches += count
        stats.mismatch_bytes += count * size
        stats.tolerated += int(np.count_nonzero(~fails & ~varies))
        if count:
            stats.merge_first(_describe(part, int(np.flatnonzero(fails)[0])))
        _detail(part, stats, ~varies | outside, fails)
    return result


def _detail(part: Elements, stats: RegionStats, counted: Mask, fails: Mask) -> None:
    """Adds the elements that count to the bounded record of where and by how much they differ."""
    chosen = np.flatnonzero(counted)
    if len(chosen) == 0:
        return
    errors = relative_error(part.expected[chosen], part.actual[chosen], part.dtype)
    stats.detail.add(part.addresses[chosen], errors, fails[chosen], lambda i: _describe(part, int(chosen[i])))


def variations(runs: Sequence[Differences], types: TypeMap) -> tuple[list[Variation], list[Variation]]:
    """What varies between runs from the same state, and what is alike in all of them but not as expected.

    `runs` are comparisons of repeated runs with the same expectation. An element that differs from it in
    every run, and by the same value, is in the second list: that is no variation.
    """
    groups: dict[tuple[int, str, int], list[dict[str, Any]]] = {}
    for index, differences in enumerate(runs):
        for part in elements(differences, types):
            key = (part.region, part.dtype, part.anchor)
            groups.setdefault(key, []).append({"run": index, "part": part})
    varying: list[Variation] = []
    constant: list[Variation] = []
    for (_, dtype, anchor), members in groups.items():
        addresses = np.unique(np.concatenate([m["part"].addresses for m in members]))
        expected = np.zeros(len(addresses), members[0]["part"].expected.dtype)
        for member in members:
            expected[np.searchsorted(addresses, member["part"].addresses)] = member["part"].expected
        table = np.repeat(expected[None, :], len(runs), axis=0)
        for member in members:
            table[member["run"], np.searchsorted(addresses, member["part"].addresses)] = member["part"].actual
        same = (table == table[0]).all(axis=0)
        full = np.concatenate([expected[None, :], table])
        if dtype in FLOATS:
            numbers = floats.values(np.ascontiguousarray(full).reshape(-1), dtype).reshape(full.shape)
            low, high = numbers.min(axis=0), numbers.max(axis=0)
        else:
            low = high = np.zeros(len(addresses))
        for chosen, out in ((~same, varying), (same, constant)):
            if bool(chosen.any()):
                out.append(Variation(dtype, addresses[chosen], low[chosen], high[chosen], anchor))
    return varying, constant


def variation_bytes(items: Sequence[Variation]) -> int:
    """How many bytes vary."""
    return sum(len(item.addresses) * SIZES[item.dtype] for item in items)


def classify(items: Sequence[Variation]) -> dict[str, int]:
    """Bytes that vary, by what probably makes them: a guess for the reader, never part of a verdict.

    Floats that vary by little are sums in another order; 64-bit integers that vary look like clocks or
    addresses; the rest is a race, or memory that was never written.
    """
    found: dict[str, int] = {}
    for item in items:
        size = SIZES[item.dtype]
        if item.dtype in FLOATS:
            with np.errstate(invalid="ignore", over="ignore"):
                near = (item.high - item.low) <= 1e-2 * np.maximum(np.abs(item.high), np.abs(item.low))
            ordered = int(np.count_nonzero(near))
            _count(found, "order of atomic or parallel sums", ordered * size)
            _count(found, "race or uninitialised read", (len(item.addresses) - ordered) * size)
        elif size == 8:
            _count(found, "clock, address or race", len(item.addresses) * size)
        else:
            _count(found, "race, order of atomics or uninitialised read", len(item.addresses) * size)
    return found


def _count(found: dict[str, int], name: str, count: int) -> None:
    if count:
        found[name] = found.get(name, 0) + count
