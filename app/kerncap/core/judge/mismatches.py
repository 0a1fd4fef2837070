"""The elements that differ, in a bounded form: the first of them, an error histogram, a map of where they
are.

The size of what is kept does not depend on how many differ: a list of at most `MOST_ELEMENTS`, decades, and
at most `MOST_CELLS` cells, each the largest error within it, so that one bad element stays visible at any
scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kerncap.core.judge import floats
from kerncap.core.judge.dtypes import FLOATS, SIZES

MOST_ELEMENTS = 256
MOST_CELLS = 4096
_LEAST_DECADE = -16

Addresses = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.float64]


def numbers(bits: npt.NDArray[Any], dtype: str) -> Numbers | None:
    """What the bits are as float64; None of what is no number (pointers, bytes, truth values)."""
    if dtype in FLOATS:
        return floats.values(bits, dtype)
    if dtype[0] in "iu":
        return bits.view(f"<{dtype[0]}{SIZES[dtype]}").astype(np.float64)
    return None


def absolute_error(
    expected: npt.NDArray[Any], actual: npt.NDArray[Any], dtype: str, a: Numbers, b: Numbers
) -> Numbers:
    """|b - a| of elements given by their bits and as numbers, with NaN and infinity where arithmetic has
    them.
    """
    if dtype in ("i64", "u64"):  # float64 has not all of them
        one, other = (bits.view(f"<{dtype[0]}8") for bits in (expected, actual))
        apart = np.where(one > other, expected - actual, actual - expected)
        found: Numbers = apart.view("<u8").astype(np.float64)
        return found
    with np.errstate(invalid="ignore", over="ignore"):
        error: Numbers = b - a
    return np.abs(error, out=error)


def relative_to(a: Numbers, b: Numbers, error: Numbers) -> Numbers:
    """`relative_error` of numbers, of which `error` is the absolute one."""
    with np.errstate(all="ignore"):
        relative: Numbers = np.abs(a)
        np.divide(error, relative, out=relative)
    if all_finite(relative):
        return relative
    finite = np.isfinite(a) & np.isfinite(b)
    # The difference of two large numbers may be beyond the range, though their ratio is not.
    large = finite & np.isinf(relative) & (a != 0)
    with np.errstate(all="ignore"):
        relative[large] = np.abs(b[large] / a[large] - 1.0)
    relative[(a == 0) & (b == 0)] = 0.0
    relative[~finite] = np.inf
    relative[(np.isnan(a) & np.isnan(b)) | (~finite & (a == b))] = 0.0
    return relative


def all_finite(errors: Numbers) -> bool:
    """Whether none of some absolute values is infinite or NaN."""
    return len(errors) == 0 or float(errors.max()) < np.inf


def relative_error(expected: npt.NDArray[Any], actual: npt.NDArray[Any], dtype: str) -> Numbers:
    """|actual - expected| / |expected| of elements given by their bits: the one definition of a relative
    error, here and in `max_rel`.

    Infinite where 0 was expected and something else is there, where one of them is NaN or infinite and the
    other is not the same, and for what is no number (pointers, bytes, truth values) and differs; 0 where both
    are zero or both NaN.
    """
    a, b = numbers(expected, dtype), numbers(actual, dtype)
    if a is None or b is None:
        return np.where(expected != actual, np.inf, 0.0)
    return relative_to(a, b, absolute_error(expected, actual, dtype, a, b))


def _least(exponent: int) -> float:
    """The smallest number of which log10, as it is rounded, is `exponent` or more."""
    bound = 10.0**exponent
    while math.log10(math.nextafter(bound, 0.0)) >= exponent:
        bound = math.nextafter(bound, 0.0)
    return bound


# The histogram's names, and the least error of each, from the largest on.
_DECADES = [("1", _least(0)), *((f"1e{i}", _least(i)) for i in range(-1, _LEAST_DECADE, -1))]
_REST = f"1e{_LEAST_DECADE}"


def decade(error: float) -> str:
    """The histogram's name of an error: "1e-7" for 1e-7 up to 1e-6; "1" for 1 and more."""
    return next((name for name, least in _DECADES if error >= least), _REST)


@dataclass
class ErrorMap:
    """Cells of 2**shift bytes from `start` on, each with the largest error in it, 1 for more than 1; at most
    MOST_CELLS.
    """

    start: int = 0  # a multiple of the cell's size
    shift: int = 2
    cells: Numbers = field(default_factory=lambda: np.zeros(0))

    def add(self, addresses: Addresses, errors: Numbers) -> None:
        """Takes in elements in any order; in rising order it takes least time."""
        if len(addresses) == 0:
            return
        if not bool((addresses[1:] >= addresses[:-1]).all()):
            order = np.argsort(addresses, kind="stable")
            addresses, errors = addresses[order], errors[order]
        low, high = int(addresses[0]), int(addresses[-1])
        self._cover(low, high)
        first, last = (low - self.start) >> self.shift, (high - self.start) >> self.shift
        borders = self.start + (np.arange(first + 1, last + 1, dtype=np.uint64) << np.uint64(self.shift))
        starts = np.concatenate(([0], np.searchsorted(addresses, borders), [len(addresses)]))
        some = np.flatnonzero(starts[1:] > starts[:-1])
        found = np.minimum(np.maximum.reduceat(errors, starts[some]), 1.0)
        self.cells[first + some] = np.maximum(self.cells[first + some], found)

    def _cover(self, low: int, high: int) -> None:
        """Has the map reach from `low` to `high` at least, with larger cells where it takes them."""
        if len(self.cells):
            low = min(low, self.start)
            high = max(high, self.start + (len(self.cells) << self.shift) - 1)
        shift = self.shift
        while (high >> shift) - (low >> shift) >= MOST_CELLS:
            shift += 1
        first = low >> shift
        count = (high >> shift) - first + 1
        if (shift, count) == (self.shift, len(self.cells)):
            return
        fresh = np.zeros(count)
        if len(self.cells):
            old = (np.arange(len(self.cells)) + (self.start >> self.shift)) >> (shift - self.shift)
            np.maximum.at(fresh, old - first, self.cells)
        self.start, self.shift, self.cells = first << shift, shift, fresh

    def to_json(self, region_address: int) -> dict[str, Any]:
        """Cells that are not 0 as [first byte in the region, error]; cells of `cell_bytes`."""
        hit = np.flatnonzero(self.cells)
        return {
            "cell_bytes": 1 << self.shift,
            "cells": [
                [self.start + (int(i) << self.shift) - region_address, float(f"{self.cells[i]:.3g}")]
                for i in hit
            ],
        }


@dataclass
class Mismatches:
    """Of one region. `elements` are by address; map and histogram are of all that differ and count."""

    elements: list[dict[str, Any]] = field(default_factory=list)
    histogram: dict[str, int] = field(default_factory=dict)
    map: ErrorMap = field(default_factory=ErrorMap)
    differing: int = 0

    def add(
        self,
        addresses: Addresses,
        errors: Numbers,
        fails: npt.NDArray[np.bool_],
        describe: Callable[[int], dict[str, Any]],
    ) -> None:
        """Elements that differ. `fails` are those listed one by one, `describe` gives the i-th of them."""
        self.differing += len(addresses)
        self.map.add(addresses, errors)
        self._count(errors)
        if len(self.elements) >= MOST_ELEMENTS:
            fails = fails & (addresses < np.uint64(int(self.elements[-1]["address"], 16)))
        chosen = np.flatnonzero(fails)
        if len(chosen) == 0:
            return
        for i in chosen[:MOST_ELEMENTS]:
            relative = float(f"{errors[i]:.6g}") if np.isfinite(errors[i]) else "inf"
            self.elements.append(describe(int(i)) | {"relative": relative})
        self.elements.sort(key=lambda e: int(e["address"], 16))
        del self.elements[MOST_ELEMENTS:]

    def _count(self, errors: Numbers) -> None:
        left = int(np.count_nonzero(errors > 0))
        largest = float(errors.max()) if left else 0.0
        counted = 0
        for name, least in _DECADES:
            if counted == left:
                return
            if largest >= least:
                so_far = int(np.count_nonzero(errors >= least))
                self._add(name, so_far - counted)
                counted = so_far
        self._add(_REST, left - counted)

    def _add(self, name: str, count: int) -> None:
        if count:
            self.histogram[name] = self.histogram.get(name, 0) + count

    def ordered_histogram(self) -> dict[str, int]:
        """Smallest errors first."""
        return dict(sorted(self.histogram.items(), key=lambda item: float(item[0])))
