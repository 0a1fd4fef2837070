"""Verdicts, and the document that carries one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from kerncap.core.compare import Analysis, RegionStats, Variation
from kerncap.core.replayer import RangeList, Variant

SCHEMA = "kerncap-validate/1"
IDENTICAL = "IDENTICAL"
WITHIN_TOLERANCE = "WITHIN_TOLERANCE"
NONDETERMINISTIC_OK = "NONDETERMINISTIC_OK"
FAIL = "FAIL"
INCONCLUSIVE = "INCONCLUSIVE"
RAN = "RAN"  # smoke: it ran to its end, and nothing was compared
PASSED = frozenset({IDENTICAL, WITHIN_TOLERANCE, NONDETERMINISTIC_OK})
EXIT_CODES = {RAN: 0, FAIL: 1, INCONCLUSIVE: 3, **dict.fromkeys(PASSED, 0)}
MODES = ("default", "smoke", "strict")
APPLICATION = "the application's own run"


@dataclass
class ValidateResult:
    """A verdict, and what it rests on. Sizes are bytes."""

    verdict: str
    reason: str = ""
    mode: str = "default"
    against: str = APPLICATION
    variant: str | None = None
    compared_bytes: int = 0
    written_bytes: int = 0
    masked_bytes: int = 0
    skipped_bytes: int = 0
    changed_bytes: int = 0
    seconds: float = 0.0
    compare_s: float = 0.0  # of that: one comparison of memory, in the replayer
    baseline: str | None = None  # verdict of the captured kernel's own replay
    regions: list[dict[str, Any]] = field(default_factory=list)
    variation: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    fault_address: int | None = None

    @property
    def passed(self) -> bool:
        return self.verdict in PASSED

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]

    def to_json(self) -> dict[str, Any]:
        """The document of `kerncap validate --json`."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "reason": self.reason,
            "mode": self.mode,
            "against": self.against,
            "variant": self.variant,
            "baseline": self.baseline,
            "compared_bytes": self.compared_bytes,
            "written_bytes": self.written_bytes,
            "changed_bytes": self.changed_bytes,
            "masked_bytes": self.masked_bytes,
            "skipped_bytes": self.skipped_bytes,
            "seconds": self.seconds,
            "compare_s": self.compare_s,
            "regions": self.regions,
            "variation": self.variation,
            "fault_address": None if self.fault_address is None else f"0x{self.fault_address:x}",
            "warnings": self.warnings,
        }


@dataclass
class Baseline:
    """The captured kernel's own replays."""

    variant: Variant
    written: RangeList
    silent_bytes: int
    varying: list[Variation]
    analysis: Analysis  # of what is wrong in every replay
    verdict: str
    reason: str
    compared: int
    compare_s: float  # one comparison
    unplaced: bool  # words point into its code, and it is not where they point

    @property
    def deterministic(self) -> bool:
        return not self.varying


def figures(stats: RegionStats, address: int) -> dict[str, Any]:
    """The numbers of one region, which begins at `address`, as the document has them.

    `rms` is of the elements that differ; `elements` are the first mismatching ones; `error_histogram` is of
    |a-b|/max(|a|,|b|) by decade; `error_map` has the largest of these by place (core/mismatches.py).
    """
    finite = sum(stats.ulp_histogram.values())
    rms = math.sqrt(stats.squares / finite) if finite else None
    return {
        "mismatches": stats.mismatches,
        "mismatch_bytes": stats.mismatch_bytes,
        "tolerated": stats.tolerated,
        "masked_bytes": stats.masked_bytes,
        "max_abs": stats.max_abs,
        "max_rel": stats.max_rel,
        "max_ulp": stats.max_ulp,
        "ulp_histogram": stats.ulp_histogram,
        "new_nans": stats.new_nans,
        "signed_zeros": stats.signed_zeros,
        "first": stats.first,
        "worst": stats.worst,
        "rms": rms if rms is not None and math.isfinite(rms) else None,
        "differing": stats.detail.differing,
        "elements": stats.detail.elements,
        "error_histogram": stats.detail.ordered_histogram(),
        "error_map": stats.detail.map.to_json(address),
    }
