"""Bytes that had their right value before the kernel ran: does it write them?

To compare them proves nothing. They are altered, and the captured kernel and the variant run from that
state: where the captured kernel puts its value, the variant has to put it too. If the captured kernel
cannot run like that (the bytes are an address or a bound to it), or a kernel that does nothing would
not be found out, nothing is proven.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from kerncap.core.capture.records import Capture, RegionKind
from kerncap.core.errors import UsageError
from kerncap.core.judge import compare
from kerncap.core.judge.compare import Analysis, Tolerance
from kerncap.core.judge.dtypes import TypeMap
from kerncap.core.judge.elements import Addresses
from kerncap.core.judge.variation import EXTENSION_SECONDS, Spread
from kerncap.core.judge.verdict import Baseline
from kerncap.core.replay.replayer import KernelFault, KernelTimeout, RangeList, Replayer, Variant

_GRANULES = (4, 1)  # bytes altered together: whole numbers where that is possible


@dataclass(frozen=True)
class SilentOutcome:
    """What came out. `stores_nothing`: the variant does not store at all, on a device that tells."""

    proven: bool
    stores_nothing: bool = False
    missing_bytes: int = 0  # that the variant does not store to, and about which nothing is known
    unstored: int = 0  # an address of no float that the captured kernel always stores to; 0: there is none
    analysis: Analysis | None = None  # of the altered run, where there was one


class SilentBytes:
    """The question, for one capture."""

    def __init__(self, replayer: Replayer, capture: Capture, types: TypeMap, baseline_runs: int) -> None:
        self._replayer, self._capture, self._types = replayer, capture, types
        self._runs = baseline_runs

    def check(self, base: Baseline, variant: Variant, tolerance: Tolerance) -> SilentOutcome:
        """Whether the variant, whose last run was tracked, writes what the captured kernel writes."""
        if self._replayer.tracks_writes:
            if base.written.bytes and not self._replayer.ranges("written", variant).bytes:
                return SilentOutcome(False, stores_nothing=True)
            missing = self._replayer.ranges("missing", variant).bytes
            if not missing:
                return SilentOutcome(True)
            unstored = self._unstored(base, variant)
            if unstored:
                return SilentOutcome(False, unstored=unstored)
            places = ["written"]
        elif base.silent_bytes or not self._replayer.changed_bytes:
            missing = base.silent_bytes
            places = ["written"] if self._replayer.changed_bytes else self._candidates()
        else:
            return SilentOutcome(True)
        last = None
        for place in places:
            analysis = self._differential(place, base, variant, tolerance)
            if analysis is None:
                continue
            last = analysis
            if analysis.mismatches:
                return SilentOutcome(True, analysis=analysis)
        return SilentOutcome(last is not None, missing_bytes=0 if last else missing, analysis=last)

    def _unstored(self, base: Baseline, variant: Variant) -> int:
        """The first byte that varies and is not compared, that the variant does not store to, and that the
        captured kernel stores to in every one of some runs.
        """
        places = [item.addresses for item in base.varying if not item.is_float]
        if not places:
            return 0
        addresses = np.sort(np.concatenate(places))
        left = _within(addresses, self._replayer.ranges("missing", variant))
        for _ in range(self._runs if len(left) else 0):
            self._replayer.run(base.variant, track=True)
            left = np.setdiff1d(left, _within(left, self._replayer.ranges("missing", base.variant)))
        return int(left[0]) if len(left) else 0

    def rewritten(self, base: Baseline) -> int:
        """Bytes to which the captured kernel gives the value they had: found by altering them."""
        proven = 0
        for place in self._candidates():
            try:
                self._replayer.restore()
                altered = self._replayer.poison(place, 1)
                self._replayer.run(base.variant, restore=False)
                left = self._replayer.compare(base.variant, scope="all")
            except (KernelFault, KernelTimeout):
                continue
            if bool((left.runs["region"] == int(place)).all()):
                proven += altered - left.different
        self._replayer.restore()
        return proven

    def _candidates(self) -> list[str]:
        """Regions that an argument points to: what the kernel may write where nothing has changed."""
        found = []
        data = self._capture.kernarg.data
        for offset in range(0, len(data) - 7, 8):
            region = self._capture.region_at(int.from_bytes(data[offset : offset + 8], "little"))
            if region is not None and region.saved and region.kind != RegionKind.CODE_SEGMENT:
                found.append(str(region.id))
        return list(dict.fromkeys(found))

    @property
    def _scope(self) -> str:
        return "written" if self._replayer.tracks_writes else "all"

    def _alter(self, place: str, granule: int) -> int:
        self._replayer.restore()
        return self._replayer.poison(place, granule)

    def _differential(
        self, place: str, base: Baseline, variant: Variant, tolerance: Tolerance
    ) -> Analysis | None:
        """Both kernels from the altered state; None: that shows nothing."""
        replayer = self._replayer
        granule = next((g for g in _GRANULES if self._alter(place, g)), None)
        if granule is None:
            return None
        try:
            replayer.run(base.variant, track=True, restore=False)
            if (
                not self._replayer.changed_bytes
                and not replayer.tracks_writes
                and not self._only_in(place, base)
            ):
                return None  # an input: the captured kernel need not make sense of other values
            replayer.keep("written" if replayer.tracks_writes else "changed", base.variant)
            seen = Spread(self._types)
            self._gather(seen, 2 if base.deterministic else self._runs, place, granule, base)
            if not self._tells(place, granule):
                return None
        except (KernelFault, KernelTimeout):
            return None
        try:
            self._alter(place, granule)
            replayer.run(variant, track=True, restore=False)
        except (KernelFault, KernelTimeout):
            return None
        differences = replayer.compare(variant, against="reference", scope=self._scope)
        end = time.monotonic() + EXTENSION_SECONDS
        while True:
            varying, _ = seen.result()
            analysis = compare.analyse(differences, self._types, tolerance, [*varying, *base.varying])
            if not analysis.near or not seen.more or time.monotonic() > end:
                break
            try:
                self._gather(seen, seen.more, place, granule, base, end)
            except (KernelFault, KernelTimeout):
                break
        replayer.restore()
        return analysis

    def _gather(
        self, seen: Spread, runs: int, place: str, granule: int, base: Baseline, end: float = math.inf
    ) -> None:
        """So many runs of the captured kernel from the altered state, compared with the first one; no more
        after the time `end`.
        """
        for _ in range(runs):
            self._alter(place, granule)
            self._replayer.run(base.variant, track=True, restore=False)
            seen.add(self._replayer.compare(base.variant, against="reference", scope=self._scope))
            if time.monotonic() > end:
                break

    def _only_in(self, place: str, base: Baseline) -> bool:
        """Whether memory is as the application left it, but for bytes of one region."""
        differences = self._replayer.compare(base.variant, scope="all")
        return bool((differences.runs["region"] == int(place)).all())

    def _tells(self, place: str, granule: int) -> bool:
        """Whether a kernel that does nothing would be found out."""
        replayer = self._replayer
        try:
            empty = replayer.emptied()
        except UsageError:
            return False
        self._alter(place, granule)
        replayer.run(empty, track=True, restore=False)
        return replayer.compare(empty, against="reference", scope=self._scope).different > 0


def _within(addresses: Addresses, found: RangeList) -> Addresses:
    """Which of the addresses, in rising order, lie in the ranges that are listed."""
    inside = np.zeros(len(addresses), bool)
    for item in found.ranges:
        begin, end = np.searchsorted(addresses, [item["address"], item["address"] + item["bytes"]])
        inside[begin:end] = True
    return addresses[inside]
