"""What the replayer found different, as elements: numbers of one type, each with its address.

A run of bytes that differ is cut into the numbers that the memory's type says; what is no whole number stays
bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kerncap.core.judge import floats
from kerncap.core.judge.dtypes import BYTES, FLOATS, SIZES, Field, Layout, TypeMap
from kerncap.core.replay.replayer import NO_DATA, Differences

_CHUNK_BYTES = 1 << 23
_LONG = 256  # bytes: runs of so many each are copied whole
_BLOCK = 1 << 15  # elements: each array of float64 that is made of them takes 256 KiB
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

    def blocks(self) -> Iterator[Elements]:
        """The same, so few at a time that what is made of them stays in a processor's cache."""
        for at in range(0, len(self.addresses), _BLOCK):
            part = slice(at, at + _BLOCK)
            yield replace(
                self,
                addresses=self.addresses[part],
                expected=self.expected[part],
                actual=self.actual[part],
            )


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


def _joined(
    runs: npt.NDArray[np.void], data: npt.NDArray[Any], width: int
) -> tuple[Addresses | int, npt.NDArray[Any], npt.NDArray[Any]]:
    """`_gather` for long runs; their first address in place of all, where they leave no gap."""
    begin = end = int(runs["address"][0])
    expected, actual = [], []
    places: list[tuple[int, int]] = []  # without gaps
    rows = zip(runs["address"].tolist(), runs["bytes"].tolist(), runs["data_offset"].tolist(), strict=True)
    for address, size, offset in rows:
        skipped = max(end - address, 0) // width  # neighbouring runs may share a block
        at, count = offset // width, size // width
        if skipped >= count:
            continue
        expected.append(data[at + skipped : at + count])
        actual.append(data[at + count + skipped : at + 2 * count])
        first, end = address + skipped * width, address + size
        if places and places[-1][1] == first:
            places[-1] = (places[-1][0], end)
        else:
            places.append((first, end))
    gaps = [np.arange(*place, width, dtype=np.uint64) for place in places] if len(places) > 1 else []
    return np.concatenate(gaps) if gaps else begin, np.concatenate(expected), np.concatenate(actual)


def _gather(
    runs: npt.NDArray[np.void], data: npt.NDArray[Any], width: int = 1
) -> tuple[Addresses | int, npt.NDArray[Any], npt.NDArray[Any]]:
    """(address, expected, found) of every `width` bytes of the runs, each address once. The first address
    in place of all, where each of them follows the one before.
    """
    sizes = runs["bytes"].astype(np.int64) // width
    total = int(sizes.sum())
    if total * width >= _LONG * len(runs):
        return _joined(runs, data, width)
    starts = np.cumsum(sizes) - sizes
    within = np.arange(total, dtype=np.int64) - np.repeat(starts, sizes)
    addresses = (np.repeat(runs["address"].astype(np.int64), sizes) + within * width).astype(np.uint64)
    at = np.repeat(runs["data_offset"].astype(np.int64) // width, sizes) + within
    expected, actual = data[at], data[at + np.repeat(sizes, sizes)]
    if len(addresses) > 1:  # neighbouring runs may share a block
        seen = np.maximum.accumulate(addresses)
        fresh = np.concatenate(([True], addresses[1:] > seen[:-1]))
        if not bool(fresh.all()):
            addresses, expected, actual = addresses[fresh], expected[fresh], actual[fresh]
    return addresses, expected, actual


@dataclass(frozen=True)
class _Bytes:
    """Bytes of runs. `addresses`: of each; where that is a number, of the first, and they leave no gap."""

    addresses: Addresses | int
    expected: npt.NDArray[np.uint8]
    actual: npt.NDArray[np.uint8]

    @property
    def begin(self) -> int:
        return self.addresses if isinstance(self.addresses, int) else int(self.addresses[0])

    @property
    def end(self) -> int:
        if isinstance(self.addresses, int):
            return self.addresses + len(self.expected)
        return int(self.addresses[-1]) + 1

    def between(self, begin: int, end: int) -> _Bytes:
        if isinstance(self.addresses, int):
            lo, hi = begin - self.addresses, end - self.addresses
            return _Bytes(begin, self.expected[lo:hi], self.actual[lo:hi])
        lo, hi = np.searchsorted(self.addresses, [begin, end])
        return _Bytes(self.addresses[lo:hi], self.expected[lo:hi], self.actual[lo:hi])

    def places(self, index: npt.NDArray[np.int64]) -> Addresses:
        """The addresses of some of them."""
        if isinstance(self.addresses, int):
            from_first: Addresses = index.astype(np.uint64) + np.uint64(self.addresses)
            return from_first
        listed: Addresses = self.addresses[index]
        return listed

    def starts(self, part: Field, layout: Layout, anchor: int) -> npt.NDArray[np.int64]:
        """Where numbers of a field begin of which every byte is there."""
        size, count = part.size, len(self.expected)
        if isinstance(self.addresses, int):
            offset = self.addresses - anchor
            rows = np.arange(offset // layout.stride, (offset + count - 1) // layout.stride + 1)
            within = part.offset + size * np.arange(part.count)
            first: npt.NDArray[np.int64] = (rows[:, None] * layout.stride + within).reshape(-1) - offset
            first = first[(first >= 0) & (first + size <= count)]
            return first
        offsets = (self.addresses - np.uint64(anchor)) % np.uint64(layout.stride)
        at = offsets.astype(np.int64) - part.offset
        first = np.flatnonzero((at >= 0) & (at < size * part.count) & (at % size == 0))
        first = first[first + size <= count]
        first = first[self.addresses[first + size - 1] == self.addresses[first] + np.uint64(size - 1)]
        return first


def elements(differences: Differences, types: TypeMap) -> Iterator[Elements]:
    """Every element that differs, by region and type; in each of them, addresses rise."""
    for runs in _chunks(differences):
        region = int(runs["region"][0])
        whole = _of_one_type(runs, differences.data, types)
        if whole is not None:
            if len(whole.addresses):
                yield whole
            continue
        found = _Bytes(*_gather(runs, differences.data))
        for begin, end, layout, anchor in types.split(found.begin, found.end):
            part = found.between(begin, end)
            if len(part.expected):
                yield from _typed_elements(region, layout, anchor, types.arguments.get(anchor, ""), part)


def _of_one_type(runs: npt.NDArray[np.void], data: npt.NDArray[np.uint8], types: TypeMap) -> Elements | None:
    """The same, several times as fast, where runs are whole numbers of one type; else None."""
    begin, end = int(runs["address"].min()), int((runs["address"] + runs["bytes"]).max())
    (_, stop, layout, anchor), *more = types.split(begin, end)
    field, size = layout.fields[0], layout.stride
    if more or stop < end or field.size != size or field.count != 1:
        return None
    offsets = runs["address"] - np.uint64(anchor)
    if int(np.bitwise_or.reduce(offsets | runs["bytes"] | runs["data_offset"])) % size:
        return None
    words: Any = data[: len(data) // size * size]
    addresses, expected, actual = _gather(runs, words.view(_UNSIGNED[size]), size)
    if isinstance(addresses, int):
        addresses = np.arange(addresses, addresses + len(expected) * size, size, dtype=np.uint64)
    differ = expected != actual
    if not bool(differ.all()):
        addresses, expected, actual = addresses[differ], expected[differ], actual[differ]
    name = types.arguments.get(anchor, "")
    return Elements(int(runs["region"][0]), layout, field.dtype, anchor, addresses, expected, actual, name)


def _at_every_byte(data: npt.NDArray[np.uint8], size: int) -> npt.NDArray[Any]:
    """The number of `size` bytes that begins at each byte where one can: a view, no copy."""
    found: npt.NDArray[Any] = np.ndarray(len(data) - size + 1, np.dtype(f"<u{size}"), data, 0, (1,))
    return found


def _typed_elements(
    region: int, layout: Layout, anchor: int, argument: str, found: _Bytes
) -> Iterator[Elements]:
    rest = found.expected != found.actual
    for part in layout.fields:
        first = found.starts(part, layout, anchor)
        if len(first) == 0:
            continue
        for i in range(part.size):
            rest[first + i] = False
        wanted = _at_every_byte(found.expected, part.size)[first]
        actual = _at_every_byte(found.actual, part.size)[first]
        differ = wanted != actual
        if bool(differ.any()):
            chosen = (found.places(first[differ]), wanted[differ], actual[differ])
            yield Elements(region, layout, part.dtype, anchor, *chosen, argument)
    if bool(rest.any()):
        left = np.flatnonzero(rest)
        bits = (found.expected[left], found.actual[left])
        yield Elements(region, BYTES, "bytes", anchor, found.places(left), *bits, argument)


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
