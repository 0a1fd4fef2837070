"""Bytes that had their right value before the kernel ran: does it write them?

To compare them proves nothing. They are altered, and the captured kernel and the variant run from that
state: where the captured kernel puts its value, the variant has to put it too. If the captured kernel
cannot run like that (the bytes are an address or a bound to it), or a kernel that does nothing would
not be found out, nothing is proven.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from kerncap.core.capture.records import Capture, RegionKind
from kerncap.core.errors import UsageError
from kerncap.core.judge import compare
from kerncap.core.judge.compare import Analysis, Tolerance
from kerncap.core.judge.dtypes import TypeMap
from kerncap.core.judge.elements import Addresses
from kerncap.core.judge.read_only import declared_read_only
from kerncap.core.judge.variation import EXTENSION_SECONDS, Spread
from kerncap.core.judge.verdict import Baseline
from kerncap.core.replay.replayer import (
    Differences,
    KernelFault,
    KernelTimeout,
    RangeList,
    Replayer,
    Variant,
)

_GRANULES = (4, 1)  # bytes altered together: whole numbers where that is possible
# Of regions that the application's run left as they were, on a device that does not tell stores: so many are
# asked about, none larger (a copy of what is altered stays on the device).
_MOST_ASKED, _LARGEST_ASKED = 16, 1 << 30
_MOST_FAULTS = 3  # each costs a new process, with all of the memory
_MOST_RUNS = 48  # of a kernel that varies, from altered memory, before it is seen that more are needed


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
        self._unchanged: list[str] | None = None
        self.unknown: list[str] = []  # regions of which it cannot be told whether the kernel stores to them

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
        else:
            missing = base.silent_bytes
            if self._replayer.changed_bytes:
                places = [*(["written"] if missing else []), *self._unchanged_outputs(base)]
            else:
                places = self._candidates()
        if not places:
            return SilentOutcome(True)
        last = None
        unproven = False
        for place in places:
            analysis = self._differential(place, base, variant, tolerance)
            if analysis is None:
                unproven = unproven or place == "written"
                continue
            last = analysis
            # What was not stored is far from what should be there: sums that come out otherwise are not.
            if analysis.mismatches and not analysis.near:
                return SilentOutcome(True, analysis=analysis)
        unproven = unproven or last is None
        return SilentOutcome(not unproven, missing_bytes=missing if unproven else 0, analysis=last)

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
                altered, left = self._from_altered(place, base)
            except (KernelFault, KernelTimeout):
                continue
            if bool((left.runs["region"] == int(place)).all()):
                proven += altered - left.different
        self._replayer.restore()
        return proven

    def _from_altered(
        self, place: str, base: Baseline, limit_s: float | None = None
    ) -> tuple[int, Differences]:
        """How many bytes of a region were altered, and what is then otherwise than the application left it
        after a run of the captured kernel. Raises KernelFault, KernelTimeout.
        """
        altered = self._alter(place, 1)
        self._replayer.run(base.variant, restore=False, limit_s=limit_s)
        return altered, self._replayer.compare(base.variant, scope="all")

    def _unchanged_outputs(self, base: Baseline) -> list[str]:
        """Regions that an argument points to (none to const), that the application's run left as they were,
        and that the captured kernel stores to all the same: where they are altered, it puts its values there.
        """
        if self._unchanged is not None:
            return self._unchanged
        self._unchanged = []
        known = {*self._capture.changes["region"].tolist(), *declared_read_only(self._capture)}
        asked = [place for place in self._candidates() if int(place) not in known]
        sizes = {str(region.id): region.bytes for region in self._capture.regions}
        replayer = self._replayer
        faults = 0
        for number, place in enumerate(asked):
            if sizes[place] > _LARGEST_ASKED or number >= _MOST_ASKED or faults >= _MOST_FAULTS:
                self.unknown.append(place)
                continue
            try:
                altered, left = self._from_altered(place, base, replayer.patience(base.run_s))
            except (KernelFault, KernelTimeout):  # an address, an index or a bound, most likely
                self.unknown.append(place)
                faults += 1
                continue
            if int(left.runs["different"][left.runs["region"] == int(place)].sum()) < altered:
                self._unchanged.append(place)
        replayer.restore()
        return self._unchanged

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
            runs = 2 if base.deterministic else max(self._runs, min(base.runs, _MOST_RUNS))
            self._gather(seen, runs, place, granule, base, time.monotonic() + EXTENSION_SECONDS)
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

    def _gather(self, seen: Spread, runs: int, place: str, granule: int, base: Baseline, end: float) -> None:
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
