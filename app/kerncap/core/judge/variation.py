"""What does not repeat: elements that vary between runs of the captured kernel from one state.

They cannot be compared with one value. Floats among them are held against the range that those runs show; a
few runs do not show all of it, so that it is widened on both sides by as much as the element itself varies,
or as its neighbours of the same region and type do. Anything else that varies (integers, bytes) is not
compared at all, and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kerncap.core.judge import floats
from kerncap.core.judge.dtypes import FLOATS, SIZES, TypeMap
from kerncap.core.judge.elements import Addresses, Elements, elements
from kerncap.core.replay.replayer import Differences

_NAN, _PLUS_INF, _MINUS_INF = 1, 2, 4
_EPSILON = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}
_MOST_SCATTER = 1e-3  # relative; more than this is no rounding, and an element answers for itself alone
_NEAR = 8.0  # so many times the widening beyond the range, more runs may settle it

Mask = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.uint8]
_Entry = TypeVar("_Entry", bound=np.generic)


@dataclass
class Variation:
    """Elements of one type in one region, by address, with the range of values seen in the runs.

    `low` and `high` are of the finite values (low > high: there was none), `kinds` has a bit for each of NaN,
    +Inf and -Inf that was seen. `scatter` is the relative width that elements of the region have.
    """

    region: int
    dtype: str
    addresses: Addresses
    reference: floats.Values  # what is expected of them: the application's values
    low: floats.Values
    high: floats.Values
    kinds: Kinds
    anchor: int = 0
    scatter: float = 0.0

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    @property
    def bytes(self) -> int:
        return len(self.addresses) * SIZES[self.dtype]

    def find(self, addresses: Addresses) -> tuple[npt.NDArray[np.int64], Mask]:
        """Where each address is in this variation, and whether it is."""
        at = np.searchsorted(self.addresses, addresses).astype(np.int64)
        at = np.minimum(at, len(self.addresses) - 1)
        return at, self.addresses[at] == addresses

    def slack(self, at: npt.NDArray[np.int64]) -> floats.Values:
        """By how much the range is widened on each side."""
        low, high = self.low[at], self.high[at]
        some = high >= low
        with np.errstate(invalid="ignore", over="ignore"):
            magnitude = np.maximum(np.abs(low), np.abs(high))
            wide: floats.Values = np.where(some, np.maximum(high - low, self.scatter * magnitude), 0.0)
        return wide

    def holds(
        self, at: npt.NDArray[np.int64], values: floats.Values, also: floats.Values | None, times: float = 1.0
    ) -> Mask:
        """Which values lie in the range, widened `times`. `also`: other values that are right."""
        low, high, kinds = self.low[at], self.high[at], self.kinds[at]
        slack = self.slack(at) * times
        if also is not None:
            finite = np.isfinite(also)
            low = np.where(finite, np.minimum(low, also), low)
            high = np.where(finite, np.maximum(high, also), high)
            kinds = kinds | _kinds(also)
        with np.errstate(invalid="ignore", over="ignore"):
            inside = (values >= low - slack) & (values <= high + slack)
        odd = ~np.isfinite(values)
        result: Mask = np.where(odd, (_kinds(values) & kinds) != 0, inside)
        return result


def _kinds(values: floats.Values) -> Kinds:
    out = np.zeros(len(values), np.uint8)
    out[np.isnan(values)] = _NAN
    out[values == np.inf] = _PLUS_INF
    out[values == -np.inf] = _MINUS_INF
    return out


@dataclass
class _Group:
    """Elements of one region, type and anchor that differed from what is expected in at least one run."""

    dtype: str
    addresses: Addresses
    expected: npt.NDArray[np.generic]  # bits
    first: npt.NDArray[np.generic]  # bits in the first run
    same: Mask  # in every run so far
    low: floats.Values
    high: floats.Values
    kinds: Kinds

    def add(
        self,
        addresses: Addresses,
        expected: npt.NDArray[np.generic],
        actual: npt.NDArray[np.generic],
        runs: int,
    ) -> None:
        """The elements that differed in one more run, after `runs` others."""
        if np.array_equal(self.addresses, addresses):  # as a rule: the same elements in every run
            now = actual
        else:
            self._insert(addresses, expected, runs)
            now = self.expected.copy()
            now[np.searchsorted(self.addresses, addresses)] = actual
        if runs == 0:
            self.first = now
        self.same &= now == self.first
        self._fold(slice(None), now)

    def _insert(self, addresses: Addresses, expected: npt.NDArray[np.generic], runs: int) -> None:
        at = np.searchsorted(self.addresses, addresses)
        if len(self.addresses):
            fresh = self.addresses[np.minimum(at, len(self.addresses) - 1)] != addresses
        else:
            fresh = np.ones(len(addresses), bool)
        if not bool(fresh.any()):
            return
        at, bits = at[fresh], expected[fresh]
        places = at + np.arange(len(at))
        others = np.ones(len(self.addresses) + len(at), bool)
        others[places] = False

        def merged(old: npt.NDArray[_Entry], new: npt.NDArray[_Entry] | float) -> npt.NDArray[_Entry]:
            found = np.empty(len(others), old.dtype)
            found[places], found[others] = new, old
            return found

        self.addresses = merged(self.addresses, addresses[fresh])
        self.expected = merged(self.expected, bits)
        self.first = merged(self.first, bits)
        self.same = merged(self.same, True)
        self.low = merged(self.low, np.inf)
        self.high = merged(self.high, -np.inf)
        self.kinds = merged(self.kinds, 0)
        if runs:  # the runs before had the expected value there
            self._fold(places, bits)

    def _fold(self, where: npt.NDArray[np.int64] | slice, bits: npt.NDArray[np.generic]) -> None:
        if self.dtype not in FLOATS:
            return
        values = floats.values(np.ascontiguousarray(bits), self.dtype)
        finite = np.isfinite(values)
        self.low[where] = np.minimum(self.low[where], np.where(finite, values, np.inf))
        self.high[where] = np.maximum(self.high[where], np.where(finite, values, -np.inf))
        self.kinds[where] |= _kinds(values)


# Where something lies just outside of the range: runs at a time, at least and as a share of those so far. Of
# thousands of sums, one may well come out in a way that hundreds of replays do not show.
_EXTENSION, _EXTENSION_SHARE = 16, 0.25
_MOST_EXTENDED = 3000  # runs in all
EXTENSION_SECONDS = 5.0  # in all


class Spread:
    """Gathers repeated runs from the same state, each compared with the same expectation."""

    def __init__(self, types: TypeMap) -> None:
        self._types = types
        self._groups: dict[tuple[int, str, int], _Group] = {}
        self.runs = 0
        self.lost = 0  # bytes that differed in a run and were too many to be looked at

    @property
    def more(self) -> int:
        """How many runs to make next where something lies just outside of the range; 0: there were enough."""
        if self.runs >= _MOST_EXTENDED:
            return 0
        return max(_EXTENSION, int(_EXTENSION_SHARE * self.runs))

    def add(self, differences: Differences) -> None:
        """One more run."""
        self.lost = max(self.lost, int(differences.lost["different"].sum()))
        parts: dict[tuple[int, str, int], list[Elements]] = {}
        for part in elements(differences, self._types):
            parts.setdefault((part.region, part.dtype, part.anchor), []).append(part)
        for key in dict.fromkeys([*self._groups, *parts]):
            group = self._groups.get(key)
            if group is None:
                bits = parts[key][0].expected.dtype
                none = np.zeros(0)
                group = _Group(
                    key[1], np.zeros(0, np.uint64), np.zeros(0, bits), np.zeros(0, bits), np.zeros(0, bool),
                    none, none, np.zeros(0, np.uint8),
                )  # fmt: skip
                self._groups[key] = group
            found = parts.get(key, [])
            addresses = np.concatenate([p.addresses for p in found] or [np.zeros(0, np.uint64)])
            expected = np.concatenate([p.expected for p in found] or [group.expected[:0]])
            actual = np.concatenate([p.actual for p in found] or [group.expected[:0]])
            if bool((addresses[1:] < addresses[:-1]).any()):  # of several numbers of one structure
                order = np.argsort(addresses, kind="stable")
                addresses, expected, actual = addresses[order], expected[order], actual[order]
            group.add(addresses, expected, actual, self.runs)
        self.runs += 1

    @property
    def varies(self) -> bool:
        """Whether anything has not been alike in all runs."""
        return any(not bool(group.same.all()) for group in self._groups.values())

    def result(self) -> tuple[list[Variation], list[Variation]]:
        """What varies, and what is alike in all runs but not as expected.

        Floats of the second sort whose distance from the expected value is no more than what the same region
        and type vary by are counted to the first: the application's run is one more run.
        """
        varying: list[Variation] = []
        constant: list[Variation] = []
        for (region, _, anchor), group in self._groups.items():
            moved = _pick(region, anchor, group, ~group.same)
            still = _pick(region, anchor, group, group.same & (group.first != group.expected))
            if moved is not None and moved.is_float:
                moved.scatter = _scatter(moved)
                if still is not None:
                    still.scatter = moved.scatter
                    close = still.holds(np.arange(len(still.addresses)), still.reference, None)
                    moved = _join(moved, _subset(still, close))
                    still = _subset(still, ~close)
            if moved is not None:
                varying.append(moved)
            if still is not None and len(still.addresses):
                constant.append(still)
        return varying, constant


def _pick(region: int, anchor: int, group: _Group, chosen: Mask) -> Variation | None:
    if not bool(chosen.any()):
        return None
    bits = np.ascontiguousarray(group.expected[chosen])
    reference = floats.values(bits, group.dtype) if group.dtype in FLOATS else np.zeros(len(bits))
    return Variation(
        region,
        group.dtype,
        group.addresses[chosen],
        reference,
        group.low[chosen],
        group.high[chosen],
        group.kinds[chosen],
        anchor,
    )


def _subset(item: Variation, chosen: Mask) -> Variation:
    return Variation(
        item.region,
        item.dtype,
        item.addresses[chosen],
        item.reference[chosen],
        item.low[chosen],
        item.high[chosen],
        item.kinds[chosen],
        item.anchor,
        item.scatter,
    )


def _join(a: Variation, b: Variation) -> Variation:
    order = np.argsort(np.concatenate([a.addresses, b.addresses]), kind="stable")
    return Variation(
        a.region,
        a.dtype,
        np.concatenate([a.addresses, b.addresses])[order],
        np.concatenate([a.reference, b.reference])[order],
        np.concatenate([a.low, b.low])[order],
        np.concatenate([a.high, b.high])[order],
        np.concatenate([a.kinds, b.kinds])[order],
        a.anchor,
        a.scatter,
    )


def _scatter(item: Variation) -> float:
    """By how much the elements vary, relative to their size: nine in ten by less. 0: that is no rounding."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        widths = (item.high - item.low) / np.maximum(np.abs(item.low), np.abs(item.high))
    widths = widths[np.isfinite(widths) & (widths > 0)]
    if len(widths) == 0:
        return 0.0
    width = float(np.sort(widths)[(len(widths) * 9 - 1) // 10])
    return width if width <= max(_MOST_SCATTER, 4 * _EPSILON[item.dtype]) else 0.0


def spread(runs: Sequence[Differences], types: TypeMap) -> Spread:
    """Several runs, gathered."""
    found = Spread(types)
    for differences in runs:
        found.add(differences)
    return found


def variations(runs: Sequence[Differences], types: TypeMap) -> tuple[list[Variation], list[Variation]]:
    """`Spread.result` of several runs."""
    return spread(runs, types).result()


@dataclass(frozen=True)
class Held:
    """Elements held against variations. `outside`: floats out of their range, so they count as differing."""

    varies: Mask
    outside: Mask
    near: Mask  # does not pass, but so close that more runs of the captured kernel may show the value
    low: floats.Values  # of the range, where `varies`
    high: floats.Values


def hold(part: Elements, items: Sequence[Variation], *, reference: bool = False) -> Held:
    """Holds what was found against the ranges of the runs and of what is expected; `reference`: holds what is
    expected against the runs alone.
    """
    count = len(part.addresses)
    varies, outside, near = np.zeros(count, bool), np.zeros(count, bool), np.zeros(count, bool)
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    alike = [*_alike(part, items)]
    if not alike:
        return Held(varies, outside, near, low, high)
    is_float = part.dtype in FLOATS
    wanted = floats.values(part.expected, part.dtype) if is_float else np.zeros(0)
    found = floats.values(part.actual, part.dtype) if is_float else np.zeros(0)
    for item in alike:
        at, hit = item.find(part.addresses)
        hit &= ~varies  # the first that has an element answers for it
        varies |= hit
        if not is_float:
            continue
        low[hit], high[hit] = item.low[at[hit]], item.high[at[hit]]
        judged, also = (wanted, None) if reference else (found, wanted)
        outside |= hit & ~item.holds(at, judged, also)
        near |= hit & item.holds(at, judged, also, _NEAR)
        with np.errstate(invalid="ignore", over="ignore"):
            close = np.abs(found - wanted) <= _NEAR * item.scatter * np.abs(wanted)
        near |= ~varies & close & (item.scatter > 0)
    return Held(varies, outside, near & (outside | ~varies), low, high)


def _alike(part: Elements, items: Sequence[Variation]) -> Iterator[Variation]:
    for item in items:
        if item.region == part.region and item.dtype == part.dtype and len(item.addresses):
            yield item


def variation_bytes(items: Sequence[Variation]) -> int:
    """How many bytes vary."""
    return sum(item.bytes for item in items)


def unchecked_bytes(items: Sequence[Variation]) -> int:
    """How many of them are of no float type: nothing is known of what they should be."""
    return sum(item.bytes for item in items if not item.is_float)


def classify(items: Sequence[Variation]) -> dict[str, int]:
    """Bytes that vary, by what probably makes them: a guess for the reader, never part of a verdict.

    Floats that vary by little are sums in another order; 64-bit integers that vary look like clocks or
    addresses; the rest is a race, or memory that was never written.
    """
    found: dict[str, int] = {}
    for item in items:
        size = SIZES[item.dtype]
        if item.is_float:
            with np.errstate(invalid="ignore", over="ignore"):
                near = (item.high - item.low) <= 1e-2 * np.maximum(np.abs(item.high), np.abs(item.low))
            near &= item.kinds == 0
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
