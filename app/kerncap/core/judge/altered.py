"""Does a kernel write its result, or does it leave or add to what was there?

Memory that held the right value before, or zeros, tells no difference. So the captured kernel and a variant
run once more, with every byte of the written set altered before. Where the captured kernel gives its result
all the same, the variant has to as well. Where it gives another one it reads those bytes, and the variant is
held against what the captured kernel makes of the same altered state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kerncap.core.judge import compare
from kerncap.core.judge.compare import Analysis, Tolerance
from kerncap.core.judge.dtypes import NOT_KNOWN, STORES, TypeMap
from kerncap.core.judge.variation import Variation, variations
from kerncap.core.judge.verdict import Baseline
from kerncap.core.replay.replayer import KernelFault, KernelTimeout, Replayer, Variant

# Altered numbers are no numbers of the application, so that sums of them round otherwise. Where the captured
# kernel reads them, only more than this counts: of the value, in units in the last place, and of what the
# alteration did to the region's elements on average.
_ROUNDING = Tolerance(rtol=1e-2, ulp=16)
_OF_THE_EFFECT = 1e-3


@dataclass
class AlteredOutcome:
    """What came out. `unproven`: why nothing did; `analysis`: of the variant's run; `reads`: the captured
    kernel's result depends on the bytes that were altered. `error`: the variant's own fault or time limit.
    """

    unproven: str = ""
    reads: bool = False
    analysis: Analysis | None = None
    error: KernelFault | KernelTimeout | None = None


@dataclass
class _Captured:
    """The captured kernel's run from the altered state."""

    reference: tuple[int, int]  # which one it is, in the replayer
    reads: bool = False
    varying: tuple[Variation, ...] = ()
    effect: float = 0.0  # of the alteration, root mean square over the floats that it changed
    unproven: str = ""


class AlteredRuns:
    """The question, for one capture. The captured kernel's run is kept for the replayer's life."""

    def __init__(self, replayer: Replayer, types: TypeMap, baseline_runs: int) -> None:
        self._replayer, self._types, self._runs = replayer, types, baseline_runs
        self._known: _Captured | None = None

    def check(self, base: Baseline, variant: Variant, tolerance: Tolerance) -> AlteredOutcome:
        """The variant from the altered state. Memory is put back."""
        replayer = self._replayer
        replayer.start()
        known, current = self._known, replayer.reference
        gone = current[0] != replayer.generation
        if known is None:
            known = self._known = self._captured(base, tolerance)
        elif known.reads and (gone or known.reference != current):
            self._keep_again(base, known)
        if known.unproven:
            return AlteredOutcome(known.unproven)
        try:
            self._alter()
            replayer.run(variant, track=True, restore=False)
        except (KernelFault, KernelTimeout) as error:
            return AlteredOutcome(reads=known.reads, error=error)
        against = "reference" if known.reads else "application"
        differences = replayer.compare(variant, against=against, scope=self._scope)
        # Asked only where it matters: whether the variant gives the application's result all the same.
        ignores = known.reads and (
            not differences.different or not replayer.compare(variant, scope=self._scope).different
        )
        replayer.restore()
        if known.reads:
            tolerance = replace(
                _ROUNDING,
                atol=max(tolerance.atol, _OF_THE_EFFECT * known.effect),
                rtol=max(tolerance.rtol, _ROUNDING.rtol),
                ulp=max(tolerance.ulp, _ROUNDING.ulp),
            )
        varying = [*known.varying, *base.varying]
        analysis = compare.analyse(differences, self._types, tolerance, varying)
        unsure = (
            known.reads
            and not ignores
            and any(
                self._types.source(int(stats.first["address"], 16)) in (STORES, NOT_KNOWN)
                for stats in analysis.regions.values()
                if stats.first is not None
            )
        )
        if unsure:  # floats that round otherwise look like any other difference
            return AlteredOutcome(
                "gives another result than the variant, in memory of which nothing declares the type "
                "(--dtype REGION=f32, if it holds floats, allows for their rounding)"
            )
        return AlteredOutcome(reads=known.reads, analysis=analysis)

    @property
    def _scope(self) -> str:
        return "written" if self._replayer.tracks_writes else "all"

    def _alter(self) -> int:
        self._replayer.restore()
        return self._replayer.poison("written", 1, everything=True)

    def _run_captured(self, base: Baseline) -> None:
        limit = self._replayer.patience(base.run_s)
        self._replayer.run(base.variant, track=True, restore=False, limit_s=limit)

    def _keep(self, base: Baseline) -> None:
        self._replayer.keep("written" if self._replayer.tracks_writes else "changed", base.variant)

    def _keep_again(self, base: Baseline, known: _Captured) -> None:
        """The captured kernel's result from the altered state, where another reference took its place."""
        try:
            self._alter()
            self._run_captured(base)
            self._keep(base)
            known.reference = self._replayer.reference
        except (KernelFault, KernelTimeout):
            known.unproven = "does not run every time"

    def _captured(self, base: Baseline, tolerance: Tolerance) -> _Captured:
        replayer = self._replayer
        runs = []
        try:
            if not self._alter():
                return _Captured(replayer.reference)
            self._run_captured(base)
            found = replayer.compare(base.variant, scope=self._scope)
            analysis = own = compare.analyse(found, self._types, compare.EXACT, base.varying)
            if base.analysis.tolerated:
                own = compare.analyse(found, self._types, tolerance, base.varying)
            if not own.mismatches:
                replayer.restore()
                return _Captured(replayer.reference)
            self._keep(base)
            for _ in range(0 if base.deterministic else self._runs):
                self._alter()
                self._run_captured(base)
                runs.append(replayer.compare(base.variant, against="reference", scope=self._scope))
        except KernelFault:
            return _Captured(replayer.reference, unproven="faults")
        except KernelTimeout:
            return _Captured(replayer.reference, unproven="does not end")
        varying, _ = variations(runs, self._types)
        squares = sum(stats.squares for stats in analysis.regions.values())
        floats = sum(sum(stats.ulp_histogram.values()) for stats in analysis.regions.values())
        effect = (squares / floats) ** 0.5 if floats else 0.0
        return _Captured(replayer.reference, True, tuple(varying), effect)
