"""What the replayer found different, as elements: numbers of one type, each with its address.

A run of bytes that differ is cut into the numbers that the memory's type says; what is no whole number stays
bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kerncap.core.judge import floats
from kerncap.core.judge.dtypes import BYTES, FLOATS, SIZES, Layout, TypeMap
from kerncap.core.replay.replayer import NO_DATA, Differences

_CHUNK_BYTES = 1 << 23
_UNSIGNED = {1: np.dtype("u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4"), 8: np.dtype("<u8")}

Addresses = npt.NDArray[np.uint64]


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
    argument: str = ""  # the kernel's, where that points to element 0


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
    runs: npt.NDArray[np.void], data: npt.NDArray[Any], width: int = 1
) -> tuple[Addresses, npt.NDArray[Any], npt.NDArray[Any]]:
    """(address, expected, found) of every `width` bytes of the runs, each address once."""
    sizes = runs["bytes"].astype(np.int64) // width
    starts = np.cumsum(sizes) - sizes
    within = np.arange(int(sizes.sum()), dtype=np.int64) - np.repeat(starts, sizes)
    addresses = (np.repeat(runs["address"].astype(np.int64), sizes) + within * width).astype(np.uint64)
    at = np.repeat(runs["data_offset"].astype(np.int64) // width, sizes) + within
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
        region = int(runs["region"][0])
        whole = _of_one_type(runs, differences.data, types)
        if whole is not None:
            if len(whole.addresses):
                yield whole
            continue
        addresses, expected, actual = _gather(runs, differences.data)
        for begin, end, layout, anchor in types.split(int(addresses[0]), int(addresses[-1]) + 1):
            lo, hi = np.searchsorted(addresses, [begin, end])
            if lo < hi:
                part = (addresses[lo:hi], expected[lo:hi], actual[lo:hi])
                name = types.arguments.get(anchor, "")
                yield from _typed_elements(region, layout, anchor, name, *part)


def _of_one_type(runs: npt.NDArray[np.void], data: npt.NDArray[np.uint8], types: TypeMap) -> Elements | None:
    """The same, several times as fast, where runs are whole numbers of one type; else None."""
    begin, end = int(runs["address"].min()), int((runs["address"] + runs["bytes"]).max())
    (_, stop, layout, anchor), *more = types.split(begin, end)
    field, size = layout.fields[0], layout.stride
    if more or stop < end or field.size != size or field.count != 1 or size == 1:
        return None
    offsets = runs["address"] - np.uint64(anchor)
    if int(np.bitwise_or.reduce(offsets | runs["bytes"] | runs["data_offset"])) % size:
        return None
    words: Any = data[: len(data) // size * size]
    addresses, expected, actual = _gather(runs, words.view(_UNSIGNED[size]), size)
    differ = expected != actual
    chosen = (addresses[differ], expected[differ], actual[differ])
    return Elements(
        int(runs["region"][0]), layout, field.dtype, anchor, *chosen, types.arguments.get(anchor, "")
    )


def _typed_elements(
    region: int,
    layout: Layout,
    anchor: int,
    argument: str,
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
            chosen = (addresses[first[differ]], wanted[differ], found[differ])
            yield Elements(region, layout, part.dtype, anchor, *chosen, argument)
    rest = ~covered & (expected != actual)
    if bool(rest.any()):
        left = (addresses[rest], expected[rest], actual[rest])
        yield Elements(region, BYTES, "bytes", anchor, *left, argument)


def describe(part: Elements, i: int) -> dict[str, Any]:
    """One element: its index counts from `base`, where `argument` points to (null: no argument does)."""
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
        "base": f"0x{part.anchor:x}",
        "argument": part.argument or None,
        "expected": show(part.expected),
        "actual": show(part.actual),
    }
