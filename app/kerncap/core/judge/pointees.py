"""What pointers in memory lead to: from a kernel's arguments through tables, structs and lists of pointers.

A table of pointers has no length that anybody wrote down: it is taken to end at the first word that is
neither null nor an address of captured memory. The memory is the one from before the dispatch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from kerncap.core.capture.records import Capture

T = TypeVar("T")
_MOST_PLACES = 20_000  # places that are followed
_MOST_ELEMENTS = 65_536  # of one table


@dataclass(frozen=True)
class Pointed(Generic[T]):
    """What an address holds: elements of `stride` bytes, of the type `what` (None: not known).

    `pointers` are (offset in the element, what it points to) of the pointers in it, asked for when they are
    followed: types may contain themselves.
    """

    what: T | None
    stride: int
    pointers: Callable[[], Sequence[tuple[int, Pointed[T]]]] = tuple


def follow(capture: Capture, roots: Iterable[tuple[int, Pointed[T]]]) -> Iterator[tuple[int, T]]:
    """(address, type) of all that can be reached from `roots`, nearest first, each address once."""
    waiting = list(roots)
    seen: set[int] = set()
    for address, pointed in waiting:  # grows while it is gone through
        if address in seen or len(seen) >= _MOST_PLACES or capture.region_at(address) is None:
            continue
        seen.add(address)
        if pointed.what is not None:
            yield address, pointed.what
        pointers = pointed.pointers() if pointed.stride > 0 else ()
        if pointers:
            waiting += _targets(capture, address, pointed.stride, pointers, seen)


def _targets(
    capture: Capture, address: int, stride: int, pointers: Sequence[tuple[int, Pointed[T]]], seen: set[int]
) -> Iterator[tuple[int, Pointed[T]]]:
    region = capture.region_at(address)
    if region is None or not region.saved:
        return
    count = min((region.end - address) // stride, _MOST_ELEMENTS)
    table = capture.before(address, count * stride).reshape(count, stride)
    pointers = [(offset, target) for offset, target in pointers if offset + 8 <= stride]
    if not count or not pointers:
        return
    words = np.stack([table[:, at : at + 8].copy().view("<u8")[:, 0] for at, _ in pointers], axis=1)
    valid = _valid(capture, words)
    ends = np.flatnonzero(~valid.all(axis=1))
    rows = words[: int(ends[0]) if len(ends) else count]
    for column, (_, target) in enumerate(pointers):
        for value in np.unique(rows[:, column]):
            if value and int(value) not in seen:
                yield int(value), target


def _valid(capture: Capture, words: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Which words are null or addresses of captured memory."""
    starts = np.array([region.address for region in capture.regions], np.uint64)
    ends = np.array([region.end for region in capture.regions], np.uint64)
    at = np.searchsorted(starts, words, side="right")
    inside = (at > 0) & (words < ends[np.maximum(at, 1) - 1])
    return np.asarray(inside | (words == 0))
