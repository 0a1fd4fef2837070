"""The elements that differ, in a bounded form: the first of them, an error histogram, a map of where they
are.

The size of what is kept does not depend on how many differ: a list of at most `MOST_ELEMENTS`, decades, and
at most `MOST_CELLS` cells, each the largest error within it, so that one bad element stays visible at any
scale.
"""

from __future__ import annotations

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


def relative_error(expected: npt.NDArray[Any], actual: npt.NDArray[Any], dtype: str) -> Numbers:
    """|actual - expected| / |expected| of elements given by their bits: the one definition of a relative
    error, here and in `max_rel`.

    Infinite where 0 was expected and something else is there, where one of them is NaN or infinite and the
    other is not the same, and for what is no number (pointers, bytes, truth values) and differs; 0 where both
    are zero or both NaN.
    """
    if dtype in FLOATS:
        a, b = floats.values(expected, dtype), floats.values(actual, dtype)
    elif dtype[0] in "iu":
        kind = np.dtype(f"<{dtype[0]}{SIZES[dtype]}")
        a, b = expected.view(kind).astype(np.float64), actual.view(kind).astype(np.float64)
    else:
        return np.where(expected != actual, np.inf, 0.0)
    finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(all="ignore"):
        error: Numbers = np.abs(b - a) / np.abs(a)
        # The difference of two large numbers may be beyond the range, though their ratio is not.
        large = finite & np.isinf(error) & (a != 0)
        error[large] = np.abs(b[large] / a[large] - 1.0)
    error[(a == 0) & (b == 0)] = 0.0
    error[~finite] = np.inf
    error[(np.isnan(a) & np.isnan(b)) | (~finite & (a == b))] = 0.0
    return error


def decade(error: float) -> str:
    """The histogram's name of an error: "1e-7" for 1e-7 up to 1e-6; "1" for 1 and more."""
    if error >= 1.0:
        return "1"
    return f"1e{int(np.clip(np.floor(np.log10(error)), _LEAST_DECADE, -1))}"


@dataclass
class ErrorMap:
    """Cells of 2**shift bytes from `start` on, each with the largest error in it, 1 for more than 1; at most
    MOST_CELLS.
    """

    start: int = 0  # a multiple of the cell's size
    shift: int = 2
    cells: Numbers = field(default_factory=lambda: np.zeros(0))

    def add(self, addresses: Addresses, errors: Numbers) -> None:
        """Takes in elements in any order."""
        if len(addresses) == 0:
            return
        low, high = int(addresses.min()), int(addresses.max())
        if len(self.cells):
            low = min(low, self.start)
            high = max(high, self.start + (len(self.cells) << self.shift) - 1)
        shift = self.shift
        while (high >> shift) - (low >> shift) >= MOST_CELLS:
            shift += 1
        first = low >> shift
        fresh = np.zeros((high >> shift) - first + 1)
        if len(self.cells):
            old = (np.arange(len(self.cells)) + (self.start >> self.shift)) >> (shift - self.shift)
            np.maximum.at(fresh, old - first, self.cells)
        at = (addresses >> np.uint64(shift)).astype(np.int64) - first
        np.maximum.at(fresh, at, errors)
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
        self.map.add(addresses, np.minimum(errors, 1.0))
        counted = errors[errors > 0]
        if len(counted):
            exponents = np.clip(np.floor(np.log10(counted)), _LEAST_DECADE, 0).astype(int)
            for exponent, count in zip(*np.unique(exponents, return_counts=True), strict=True):
                name = "1" if exponent >= 0 else f"1e{exponent}"
                self.histogram[name] = self.histogram.get(name, 0) + int(count)
        chosen = np.flatnonzero(fails)
        if len(self.elements) >= MOST_ELEMENTS:
            last = int(self.elements[-1]["address"], 16)
            chosen = chosen[addresses[chosen] < np.uint64(last)]
        for i in chosen[:MOST_ELEMENTS]:
            relative = float(f"{errors[i]:.6g}") if np.isfinite(errors[i]) else "inf"
            self.elements.append(describe(int(i)) | {"relative": relative})
        self.elements.sort(key=lambda e: int(e["address"], 16))
        del self.elements[MOST_ELEMENTS:]

    def ordered_histogram(self) -> dict[str, int]:
        """Smallest errors first."""
        return dict(sorted(self.histogram.items(), key=lambda item: float(item[0])))
