"""Verdicts, and the document that carries one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from kerncap.core.judge.compare import EXACT, Analysis, RegionStats, Tolerance
from kerncap.core.judge.dtypes import FLOATS, Layout
from kerncap.core.judge.variation import Variation, unchecked_bytes, variation_bytes
from kerncap.core.replay.replayer import RangeList, Variant

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
NOTHING = "nothing"  # smoke


@dataclass
class ValidateResult:
    """A verdict, and what it rests on. Sizes are bytes."""

    verdict: str
    reason: str = ""
    mode: str = "default"
    against: str = APPLICATION
    kernel: str = ""
    symbol: str = ""
    variant: str | None = None  # the path of its code object
    compared_bytes: int = 0
    written_bytes: int = 0
    masked_bytes: int = 0  # vary in the captured kernel's own replays
    unchecked_bytes: int = 0  # of those: of no float type, so that nothing can be said of them
    skipped_bytes: int = 0
    module_bytes: int = 0  # of the captured code object's data that the variant has of its own: not compared
    changed_bytes: int = 0
    seconds: float = 0.0
    compare_s: float = 0.0  # of that: one comparison of memory, in the replayer
    baseline: str | None = None  # verdict of the captured kernel's own replay
    baseline_runs: int = 0
    regions: list[dict[str, Any]] = field(default_factory=list)
    variation: dict[str, int] = field(default_factory=dict)
    tolerance: Tolerance = EXACT
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
            "kernel": self.kernel,
            "symbol": self.symbol,
            "verdict": self.verdict,
            "reason": self.reason,
            "mode": self.mode,
            "tolerance": {
                "atol": self.tolerance.atol,
                "rtol": self.tolerance.rtol,
                "ulp": self.tolerance.ulp,
                "bitwise": self.tolerance.bitwise,
            },
            "against": self.against,
            "variant": self.variant,
            "baseline": self.baseline,
            "baseline_runs": self.baseline_runs,
            "compared_bytes": self.compared_bytes,
            "written_bytes": self.written_bytes,
            "changed_bytes": self.changed_bytes,
            "masked_bytes": self.masked_bytes,
            "masked_share": self.masked_bytes / self.written_bytes if self.written_bytes else 0.0,
            "unchecked_bytes": self.unchecked_bytes,
            "skipped_bytes": self.skipped_bytes,
            "module_bytes": self.module_bytes,
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
    runs: int
    run_s: float  # one run, put back and dispatched

    @property
    def masked_bytes(self) -> int:
        return variation_bytes(self.varying)

    @property
    def unchecked_bytes(self) -> int:
        return unchecked_bytes(self.varying)

    @property
    def deterministic(self) -> bool:
        return not self.varying


def figures(stats: RegionStats, address: int, compared: int, layout: Layout) -> dict[str, Any]:
    """The numbers of one region, which begins at `address`, as the document has them.

    `bit_equal_share` is of the `compared` bytes, by elements; `rmse` is over all floats compared, `rms` over
    those that differ; `elements` are the first mismatching ones. Relative errors are |actual - expected| /
    |expected|: `max_rel` where that is finite, `error_histogram` by decade, `error_map` the largest by place
    (core/judge/mismatches.py).
    """
    finite = sum(stats.ulp_histogram.values())
    floats = sum(field.count for field in layout.fields if field.dtype in FLOATS) / layout.stride * compared
    return {
        "compared_bytes": compared,
        "bit_equal_share": 1.0 - min(stats.differing_bytes / compared, 1.0) if compared else None,
        "mismatches": stats.mismatches,
        "mismatch_bytes": stats.mismatch_bytes,
        "unanalysed_bytes": stats.unanalysed,
        "tolerated": stats.tolerated,
        "max_abs": stats.max_abs,
        "max_rel": stats.max_rel,
        "max_ulp": stats.max_ulp,
        "rmse": _root_mean(stats.squares, floats),
        "ulp_histogram": stats.ulp_histogram,
        "new_nans": stats.new_nans,
        "signed_zeros": stats.signed_zeros,
        "first": stats.first,
        "worst": stats.worst,
        "rms": _root_mean(stats.squares, finite),
        "differing": stats.detail.differing,
        "elements": stats.detail.elements,
        "error_histogram": stats.detail.ordered_histogram(),
        "error_map": stats.detail.map.to_json(address),
    }


def _root_mean(squares: float, count: float) -> float | None:
    root = math.sqrt(squares / count) if count >= 1 else None
    return root if root is not None and math.isfinite(root) else None
