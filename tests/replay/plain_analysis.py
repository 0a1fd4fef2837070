"""What a comparison should find, in the plainest form: each figure in one expression over all elements at
once, from the two arrays as they are. No runs, no blocks.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from kerncap.core.judge import floats
from kerncap.core.judge.compare import EXACT, Tolerance
from kerncap.core.judge.dtypes import FLOATS, SIZES
from kerncap.core.judge.mismatches import MOST_CELLS, MOST_ELEMENTS

_EDGES = np.array([1, 2, 4, 16, 256, 65536], np.uint64)
_NAMES = ("1", "2", "3-4", "5-16", "17-256", "257-65536", "more")


def _values(bits: np.ndarray, dtype: str) -> np.ndarray | None:
    if dtype in FLOATS:
        return floats.values(bits, dtype)
    if dtype[0] in "iu":
        return bits.view(f"<{dtype[0]}{SIZES[dtype]}").astype(np.float64)
    return None


def _ordered(bits: np.ndarray) -> list[int]:
    """The number's place among all of its format, as an integer without bounds."""
    width = bits.dtype.itemsize * 8
    magnitude = [int(b) & ((1 << (width - 1)) - 1) for b in bits]
    return [-m if int(b) >> (width - 1) else m for m, b in zip(magnitude, bits, strict=True)]


def _distance(expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
    pairs = zip(_ordered(expected), _ordered(actual), strict=True)
    return np.array([abs(a - b) for a, b in pairs], np.uint64)


def _relative(a: np.ndarray | None, b: np.ndarray | None, count: int) -> np.ndarray:
    if a is None or b is None:
        return np.full(count, np.inf)
    finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(all="ignore"):
        error = np.abs(b - a) / np.abs(a)
        error = np.where(finite & np.isinf(error) & (a != 0), np.abs(b / a - 1.0), error)
    error[(a == 0) & (b == 0)] = 0.0
    error[~finite] = np.inf
    error[(np.isnan(a) & np.isnan(b)) | (~finite & (a == b))] = 0.0
    return error


def _histogram(errors: np.ndarray) -> dict[str, int]:
    found: dict[str, int] = {}
    for exponent in np.clip(np.floor(np.log10(errors[errors > 0])), -16, 0).astype(int):
        name = "1" if exponent == 0 else f"1e{exponent}"
        found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items(), key=lambda item: float(item[0])))


def _map(addresses: np.ndarray, errors: np.ndarray) -> tuple[int, dict[int, float]]:
    """(bytes of a cell, largest error by the first address of its cell)."""
    shift = 2
    while (int(addresses[-1]) >> shift) - (int(addresses[0]) >> shift) >= MOST_CELLS:
        shift += 1
    cells: dict[int, float] = {}
    for address, error in zip(addresses.tolist(), np.minimum(errors, 1.0).tolist(), strict=True):
        at = address >> shift << shift
        cells[at] = max(cells.get(at, 0.0), error)
    return 1 << shift, {at: float(f"{error:.3g}") for at, error in cells.items() if error}


def plain(
    expected: np.ndarray, actual: np.ndarray, dtype: str, address: int, tolerance: Tolerance = EXACT
) -> dict[str, Any]:
    """The figures of elements given by their bits, of which the first is at `address`."""
    at = np.flatnonzero(expected != actual)
    expected, actual = expected[at], actual[at]
    addresses = address + at * expected.itemsize
    a, b = _values(expected, dtype), _values(actual, dtype)
    relative = _relative(a, b, len(at))
    if dtype in ("i64", "u64"):  # float64 has not all of them
        signed = f"<{dtype[0]}8"
        pairs = zip(expected.view(signed).tolist(), actual.view(signed).tolist(), strict=True)
        relative = np.array([abs(y - x) / abs(x) if x else np.inf for x, y in pairs])
    fails = np.ones(len(at), bool)
    found: dict[str, Any] = dict.fromkeys(("max_abs", "max_rel", "max_ulp"))
    found |= {"squares": 0.0, "new_nans": 0, "signed_zeros": 0, "ulp_histogram": {}}
    if dtype in FLOATS:
        assert a is not None
        assert b is not None
        zeros, finite = (a == 0) & (b == 0), np.isfinite(a) & np.isfinite(b)
        with np.errstate(all="ignore"):
            error, distance = np.abs(b - a), _distance(expected, actual)
            close = (
                (error <= tolerance.atol + tolerance.rtol * np.abs(a)) if tolerance.atol else zeros & False
            )
        close |= distance <= np.uint64(tolerance.ulp) if tolerance.ulp else False
        fails = ~(finite & close)
        if not tolerance.bitwise:
            fails &= ~((np.isnan(a) & np.isnan(b)) | zeros)
        found["new_nans"] = int(np.count_nonzero(np.isnan(b) & ~np.isnan(a)))
        found["signed_zeros"] = int(np.count_nonzero(zeros))
        counted = finite & ~zeros
        if counted.any():
            worst = np.flatnonzero(counted)[int(error[counted].argmax())]
            found["max_abs"] = min(float(error[worst]), sys.float_info.max)
            found["worst"] = hex(addresses[worst])
            ratios = relative[counted & np.isfinite(relative)]
            found["max_rel"] = float(ratios.max()) if len(ratios) else None
            found["max_ulp"] = int(distance[counted].max())
            with np.errstate(over="ignore"):
                found["squares"] = float(np.square(error[counted]).sum())
            bins = np.bincount(np.searchsorted(_EDGES, distance[counted]), minlength=7).tolist()
            found["ulp_histogram"] = {name: n for name, n in zip(_NAMES, bins, strict=True) if n}
    listed = np.flatnonzero(fails)[:MOST_ELEMENTS]
    cell, cells = _map(addresses, relative)
    return found | {
        "mismatches": int(np.count_nonzero(fails)),
        "mismatch_bytes": int(np.count_nonzero(fails)) * expected.itemsize,
        "tolerated": int(np.count_nonzero(~fails)),
        "differing_bytes": len(at) * expected.itemsize,
        "differing": len(at),
        "first": hex(addresses[listed[0]]) if len(listed) else None,
        "elements": [
            (hex(addresses[i]), float(f"{relative[i]:.6g}") if np.isfinite(relative[i]) else "inf")
            for i in listed
        ],
        "error_histogram": _histogram(relative),
        "cell_bytes": cell,
        "cells": cells,
    }
