"""The captured kernel's own replays: what it stores to, what of it repeats, and whether it is what the
application got. A variant is judged by them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from kerncap.core.capture.records import Capture
from kerncap.core.judge import compare
from kerncap.core.judge.code_pointers import CodePointers, Outcome, same_outcome
from kerncap.core.judge.compare import EXACT, Analysis, Tolerance
from kerncap.core.judge.dtypes import TypeMap
from kerncap.core.judge.silent import SilentBytes
from kerncap.core.judge.variation import EXTENSION_SECONDS, Spread
from kerncap.core.judge.verdict import (
    APPLICATION,
    FAIL,
    IDENTICAL,
    INCONCLUSIVE,
    NONDETERMINISTIC_OK,
    WITHIN_TOLERANCE,
    Baseline,
)
from kerncap.core.judge.wording import first_mismatch
from kerncap.core.replay.replayer import (
    DATA_LIMIT,
    Differences,
    KernelFault,
    KernelTimeout,
    RangeList,
    Replayer,
    Variant,
)
from kerncap.core.units import many, size

_MORE_RUNS = 3  # as soon as one run differs
_MOST_RUNS = 12
_RUNS_SECONDS = 3.0  # beyond the first ones and _MORE_RUNS of them
_SEARCH = 32  # runs more, before a difference is said to be the same in every replay
_SEARCH_SECONDS = 3.0


@dataclass
class _Replays:
    """Of one mode."""

    variant: Variant
    spread: Spread
    first: Differences
    last: Differences
    seconds: list[float]  # of each comparison
    run_s: float  # the first run
    extended_s: float = 0.0
    searched: bool = False  # whether what differs from the application was looked for in other orders


class BaselineRuns:
    """Replays the captured kernel, as often as it takes, and judges what comes out."""

    def __init__(
        self, replayer: Replayer, capture: Capture, types: TypeMap, silent: SilentBytes, runs: int
    ) -> None:
        self._replayer, self._capture, self._types, self._silent = replayer, capture, types, silent
        self._pointers = CodePointers(replayer)
        self._wanted = runs
        self._replays: dict[str, _Replays] = {}
        self._judged: dict[tuple[str, Tolerance], Baseline] = {}

    def scope(self, mode: str) -> str:
        """What is compared: the written set, or everything."""
        # Where the device does not tell what was stored to, only comparing everything finds a stray store.
        return "written" if mode == "default" and self._replayer.tracks_writes else "all"

    def schedule(self, seed: int) -> None:
        """Another order of workgroups, where the device offers that."""
        self._replayer.request("schedule", seed)

    def get(self, mode: str, tolerance: Tolerance = EXACT) -> Baseline:
        """The replays of a mode, judged. Raises KernelFault and KernelTimeout of the captured kernel."""
        known = self._judged.get((mode, tolerance))
        if known is not None:
            return known
        replays = self._replays.get(mode)
        if replays is None:
            replays = self._replays[mode] = self._run(mode)
        found = self._judge(replays, mode, tolerance)
        if found.verdict == FAIL and not replays.searched and not replays.spread.varies:
            # Of a race, the few replays so far may have come out alike by luck.
            replays.searched = True
            self._more(replays, mode, _SEARCH, _SEARCH_SECONDS)
            found = self._judge(replays, mode, tolerance)
        while found.analysis.near and self.extend(mode):
            found = self._judge(replays, mode, tolerance)
        self._judged[mode, tolerance] = found
        return found

    def extend(self, mode: str) -> bool:
        """A few more replays: they show more of how the kernel varies. False: there were enough of them."""
        replays = self._replays[mode]
        runs = replays.spread.more
        if replays.extended_s > EXTENSION_SECONDS or not runs:
            return False
        began = time.monotonic()
        complete = self._more(replays, mode, runs, EXTENSION_SECONDS - replays.extended_s)
        replays.extended_s += time.monotonic() - began
        return complete

    def _more(self, replays: _Replays, mode: str, runs: int, seconds: float) -> bool:
        """So many more replays, or what fits into `seconds`. False: one of them did not come to its end."""
        end = time.monotonic() + seconds
        try:
            for _ in range(runs):
                self._once(replays, mode)
                if time.monotonic() > end:
                    break
        except (KernelFault, KernelTimeout):
            return False
        finally:
            self.schedule(0)
        for key in [key for key in self._judged if key[0] == mode]:
            del self._judged[key]
        return True

    def _run(self, mode: str) -> _Replays:
        variant = self._replayer.captured()
        began = time.monotonic()
        none = self._take(variant, mode, 0)
        run_s = time.monotonic() - began - none.seconds
        replays = _Replays(variant, Spread(self._types), none, none, [none.seconds], run_s)
        replays.spread.add(none)
        started = time.monotonic()
        while True:
            done = replays.spread.runs
            if done >= self._wanted:
                varies = replays.spread.varies
                differs = varies or replays.last.different > 0
                slow = time.monotonic() - started > _RUNS_SECONDS
                least = self._wanted + (_MORE_RUNS if differs else 0)
                if done >= (least if slow or not varies else max(least, _MOST_RUNS)):
                    break
            self._once(replays, mode)
        self.schedule(0)
        return replays

    def _once(self, replays: _Replays, mode: str) -> None:
        replays.last = self._take(replays.variant, mode, replays.spread.runs)
        replays.spread.add(replays.last)
        replays.seconds.append(replays.last.seconds)

    def _take(self, variant: Variant, mode: str, seed: int) -> Differences:
        self.schedule(seed)
        self._replayer.run(variant, track=True)
        if self._replayer.tracks_writes:  # what it stores to is what the comparison is over
            self._replayer.allow(variant)
        return self._replayer.compare(variant, scope=self.scope(mode))

    def _judge(self, replays: _Replays, mode: str, tolerance: Tolerance) -> Baseline:
        replayer = self._replayer
        varying, _ = replays.spread.result()
        analysis = compare.analyse(replays.first, self._types, tolerance, varying, reference=True)
        written, silent = replayer.written_set(replays.variant)
        found = Baseline(
            variant=replays.variant,
            written=written,
            silent_bytes=silent,
            varying=varying,
            analysis=analysis,
            verdict=IDENTICAL,
            reason="",
            compared=replays.last.compared,
            compare_s=sorted(replays.seconds)[len(replays.seconds) // 2],
            runs=replays.spread.runs,
            run_s=replays.run_s,
        )
        found.verdict, found.reason = self._verdict(found, mode, replays, tolerance)
        nothing_told = not replayer.tracks_writes and not replayer.changed_bytes
        if found.verdict == IDENTICAL and nothing_told:
            proven = self._silent.rewritten(found)
            if not proven:
                found.verdict = INCONCLUSIVE
                found.reason = "the kernel changed nothing, and nothing shows that it wrote anything"
            found.written = RangeList(proven, 0, written.ranges)
        return found

    def _misled(self, found: Baseline, mode: str, unmoved: Callable[[Outcome], bool]) -> bool:
        """Whether the captured kernel lies elsewhere here, and uses addresses of where it was."""
        if found.variant.base == self._capture.code_object.load_base:
            return False
        return self._pointers.matter(found.variant, self.scope(mode), found.run_s, unmoved)

    def _right(self, outcome: Outcome, found: Baseline, tolerance: Tolerance) -> bool:
        if not isinstance(outcome, Differences):
            return False
        return not compare.analyse(outcome, self._types, tolerance, found.varying).mismatches

    def _verdict(
        self, found: Baseline, mode: str, replays: _Replays, tolerance: Tolerance
    ) -> tuple[str, str]:
        analysis, first = found.analysis, replays.first
        if replays.spread.lost and analysis.mismatches == analysis.unanalysed:
            return INCONCLUSIVE, (
                f"{size(replays.spread.lost)} differ in one of the captured kernel's replays beyond the "
                f"{size(DATA_LIMIT // 2)} that are looked at one by one"
            )
        if analysis.mismatches and not self._misled(found, mode, lambda other: same_outcome(first, other)):
            return FAIL, self._failure(analysis)
        if analysis.mismatches:
            reason = self._pointers.reason("the captured kernel", found.variant)
            return INCONCLUSIVE, f"{reason}. With them, {self._failure(analysis)}"
        if found.compared == 0:
            return INCONCLUSIVE, "the kernel changed nothing: there is nothing to compare"
        if self._misled(found, mode, lambda other: self._right(other, found, tolerance)):
            return INCONCLUSIVE, self._pointers.reason("the captured kernel", found.variant)
        if found.varying:
            return self._varies(found)
        if analysis.tolerated:
            how = (
                f"are within the tolerance ({tolerance.text})"
                if tolerance.given
                else "differ only in signs of zeros or bits of NaNs"
            )
            return WITHIN_TOLERANCE, f"{many(analysis.tolerated, 'element')} {how}"
        return IDENTICAL, ""

    def _failure(self, analysis: Analysis) -> str:
        count = analysis.mismatch_bytes
        if _outside(analysis):
            text = (
                f"the captured kernel's replays vary, and {APPLICATION} lies outside of their range in "
                f"{count} bytes (a race, or a read of what is not in the capture or was never written)"
            )
        else:
            text = (
                f"the captured kernel's own replay differs from {APPLICATION} in {count} bytes, the same in "
                "every replay: it reads what is not in the capture, or was never written, or its result "
                "hangs on which part of its grid runs first (a race)"
            )
        return f"{text}. {first_mismatch(self._capture, analysis)}"

    def _varies(self, found: Baseline) -> tuple[str, str]:
        written = min(found.written.bytes or found.compared, found.compared)
        masked, unchecked = found.masked_bytes, found.unchecked_bytes
        share = f"{100 * masked / written:.3g} %"
        text = (
            f"{masked} of {written} written bytes ({share}) vary between {found.runs} replays of the "
            "captured kernel from the same state"
        )
        if unchecked >= written:
            return INCONCLUSIVE, (
                f"{text}, and they are not known to be floats: there is nothing to hold a variant against"
            )
        held = masked - unchecked
        parts = []
        if held:
            parts.append(f"{held} are floats, held against the range of those replays")
        if unchecked:
            parts.append(f"{unchecked} are not compared")
        return NONDETERMINISTIC_OK, f"{text}; {', '.join(parts)}"


def _outside(analysis: Analysis) -> bool:
    """Whether what differs varies between the replays, and the application's value is none of theirs."""
    return any(s.first is not None and "range" in s.first for s in analysis.regions.values())
