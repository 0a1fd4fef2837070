"""Whether a kernel writes what the application's own run wrote.

The captured kernel's own replay is checked first: where it does not give the application's result, nothing can be
said of a variant. A variant passes if every byte that the kernel writes is as it should be and nothing else has
changed. Bytes that had their right value already prove nothing by having it: those that a variant does not store to
are altered beforehand and run again, with the captured kernel under the same alteration as the reference.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kerncap.core import compare, records
from kerncap.core.compare import Analysis, RegionStats, Tolerance, Variation
from kerncap.core.devices import Device
from kerncap.core.dtypes import TypeMap, type_map
from kerncap.core.errors import UsageError
from kerncap.core.launch import captured_launch, emptied_launch, variant_launch
from kerncap.core.records import Capture, RegionKind
from kerncap.core.replayer import (
    Differences,
    KernelFault,
    KernelTimeout,
    RangeList,
    Replayer,
    Variant,
)

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
_MOST_REGIONS = 200
_APPLICATION = "the application's own run"


@dataclass
class ValidateResult:
    """A verdict, and what it rests on. Sizes are bytes."""

    verdict: str
    reason: str = ""
    mode: str = "default"
    against: str = _APPLICATION
    variant: str | None = None
    compared_bytes: int = 0
    written_bytes: int = 0
    masked_bytes: int = 0
    skipped_bytes: int = 0
    changed_bytes: int = 0
    seconds: float = 0.0
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
    unplaced: bool  # words point into its code, and it is not where they point

    @property
    def deterministic(self) -> bool:
        return not self.varying


class Validator:
    """Validates variants of one capture; the memory and the captured kernel's own runs are kept."""

    def __init__(
        self,
        capture: Capture,
        device: str | Device | None = None,
        *,
        dtypes: Mapping[int | str, str] | None = None,
        baseline_runs: int = 3,
        limit_s: float = 60.0,
        replayer: Replayer | None = None,
    ) -> None:
        if baseline_runs < 2:
            raise UsageError(f"baseline_runs: {baseline_runs} is not at least 2")
        self.capture = capture
        self._own = replayer is None
        self.replayer = replayer or Replayer(capture, device, limit_s=limit_s)
        self.types: TypeMap = type_map(capture, dtypes)
        self.baseline_runs = baseline_runs
        self._baseline: dict[str, Baseline] = {}
        self._changed = capture.changed_bytes()

    def close(self) -> None:
        if self._own:
            self.replayer.close()

    def __enter__(self) -> Validator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- the captured kernel ----------------------------------------------------------------

    def _scope(self, mode: str) -> str:
        # Where the device does not tell what was stored to, only comparing everything finds a stray store.
        return "written" if mode == "default" and self.replayer.tracks_writes else "all"

    def _run(self, variant: Variant, mode: str) -> Differences:
        self.replayer.run(variant, track=True)
        return self.replayer.compare(variant, scope=self._scope(mode))

    def baseline(self, mode: str = "default") -> Baseline:
        """Replays the captured kernel several times and compares each with the application's result."""
        known = self._baseline.get(mode)
        if known is not None:
            return known
        replayer = self.replayer
        variant = replayer.load(captured_launch(self.capture))
        if replayer.tracks_writes:  # the written set first: it is the scope of the comparisons
            for seed in range(self.baseline_runs):
                self._schedule(seed)
                replayer.run(variant, track=True)
                replayer.allow(variant)
        runs = []
        for seed in range(self.baseline_runs):
            self._schedule(seed)
            runs.append(self._run(variant, mode))
        if any(run.different for run in runs):  # a few more, for the range in which it varies
            for seed in range(self.baseline_runs, self.baseline_runs + 3):
                self._schedule(seed)
                runs.append(self._run(variant, mode))
        self._schedule(0)
        varying, constant = compare.variations(runs, self.types)
        analysis = compare.analyse(runs[0], self.types, compare.EXACT, varying)
        written, silent = replayer.written_set(variant)
        pointers = replayer.greeting.integer("code_pointers")
        unplaced = pointers > 0 and variant.base != self.capture.code_object.load_base
        verdict, reason = self._judge_baseline(runs, constant, varying, analysis, unplaced)
        found = Baseline(
            variant, written, silent, varying, analysis, verdict, reason, runs[0].compared, unplaced
        )
        if found.verdict == IDENTICAL and not replayer.tracks_writes and not self._changed:
            proven = self._rewritten(found)
            if not proven:
                found.verdict = INCONCLUSIVE
                found.reason = "the kernel changed nothing, and nothing shows that it wrote anything"
            found.written = RangeList(proven, 0, written.ranges)
        self._baseline[mode] = found
        return found

    def _schedule(self, seed: int) -> None:
        self.replayer.request("schedule", seed)

    def _judge_baseline(
        self,
        runs: list[Differences],
        constant: list[Variation],
        varying: list[Variation],
        analysis: Analysis,
        unplaced: bool,
    ) -> tuple[str, str]:
        same_but_wrong = compare.variation_bytes(constant)
        if analysis.mismatches:
            # Signs of zeros and bits of NaNs are in `constant` too; the analysis knows what counts.
            return FAIL, (
                f"the captured kernel's own replay differs from {_APPLICATION} in {analysis.mismatch_bytes} bytes, "
                "the same in every replay: it reads something that is not in the capture, or was never written"
            )
        if runs[0].compared == 0:
            return INCONCLUSIVE, "the kernel changed nothing: there is nothing to compare"
        if unplaced:
            return INCONCLUSIVE, self._pointers_reason("the captured kernel")
        if varying:
            masked = compare.variation_bytes(varying)
            if masked >= runs[0].compared:
                return INCONCLUSIVE, "every byte that the kernel writes varies from run to run"
            return NONDETERMINISTIC_OK, (
                f"{masked} of {runs[0].compared} bytes vary between replays of the captured kernel from the same state"
            )
        if same_but_wrong:
            return WITHIN_TOLERANCE, "only signs of zeros or bits of NaNs differ"
        return IDENTICAL, ""

    def _pointers_reason(self, what: str) -> str:
        count = self.replayer.greeting.integer("code_pointers")
        places = [text.replace(" ", " -> ") for text in self.replayer.greeting.noted("code_pointer")[:3]]
        return (
            f"{count} words of the captured memory point into the captured code object ({', '.join(places)}): "
            f"addresses of functions or module variables, and {what} lies elsewhere"
        )

    # ---- verdicts ---------------------------------------------------------------------------

    def validate(
        self,
        hsaco: str | os.PathLike[str] | None = None,
        mode: str = "default",
        tolerance: Tolerance = compare.EXACT,
    ) -> ValidateResult:
        """The verdict on the kernel of `hsaco`, or on the captured kernel's own replay."""
        if mode not in MODES:
            raise UsageError(f"mode {mode!r} is none of {', '.join(MODES)}")
        start = time.monotonic()
        result = ValidateResult(IDENTICAL, mode=mode, changed_bytes=self._changed)
        result.variant = None if hsaco is None else os.fspath(hsaco)
        self._warn(result)
        launch = None if hsaco is None else variant_launch(self.capture, hsaco)
        if mode == "smoke":
            self._smoke(result, self.replayer.load(launch or captured_launch(self.capture)))
        else:
            try:
                base = self.baseline(mode)
            except (KernelFault, KernelTimeout) as error:
                result.verdict, result.reason = INCONCLUSIVE, f"the captured kernel's own replay: {error}"
                if hsaco is None:
                    result.verdict = FAIL
                result.baseline = FAIL
                result.seconds = time.monotonic() - start
                return result
            result.baseline = base.verdict
            result.written_bytes = base.written.bytes
            result.masked_bytes = compare.variation_bytes(base.varying)
            result.variation = compare.classify(base.varying)
            if launch is None:
                result.verdict, result.reason = base.verdict, base.reason
                result.compared_bytes = base.compared
                self._show_regions(result, base.analysis, base)
            else:
                self._variant(result, base, self.replayer.load(launch), mode, tolerance)
        result.seconds = time.monotonic() - start
        return result

    def _warn(self, result: ValidateResult) -> None:
        self.replayer.start()
        greeting = self.replayer.greeting
        unsaved = greeting.noted("unsaved")
        if unsaved:
            result.warnings.append(
                f"{len(unsaved)} reachable regions are not in the capture (a kernel that touches them faults): "
                + "; ".join(unsaved[:3])
            )

    def _smoke(self, result: ValidateResult, variant: Variant) -> None:
        try:
            self.replayer.run(variant)
        except KernelFault as error:
            self._fault(result, error)
        except KernelTimeout as error:
            result.verdict, result.reason = FAIL, f"timeout: {error}"
        else:
            result.verdict, result.reason = RAN, "it ran to its end; smoke compares nothing"

    def _fault(self, result: ValidateResult, error: KernelFault) -> None:
        result.verdict, result.reason = FAIL, f"fault: {error}"
        result.fault_address = error.address or None

    def _variant(
        self,
        result: ValidateResult,
        base: Baseline,
        variant: Variant,
        mode: str,
        tolerance: Tolerance,
    ) -> None:
        replayer = self.replayer
        try:
            differences = self._run(variant, mode)
        except KernelFault as error:
            return self._fault(result, error)
        except KernelTimeout as error:
            result.verdict, result.reason = FAIL, f"timeout: {error}"
            return None
        analysis = compare.analyse(differences, self.types, tolerance, base.varying)
        result.compared_bytes = analysis.compared
        self._show_regions(result, analysis, base)
        if replayer.tracks_writes:
            outside = replayer.ranges("outside", variant)
            if outside.bytes:
                result.verdict = FAIL
                result.reason = f"it stores to {outside.bytes} bytes that the captured kernel does not: {self._where(outside)}"
                return None
        if base.verdict in (FAIL, INCONCLUSIVE):
            result.verdict = INCONCLUSIVE
            result.reason = f"the reference does not hold: {base.reason}"
            return None
        if analysis.mismatches:
            result.verdict, result.reason = FAIL, self._mismatch_reason(analysis)
            return None
        self._silent(result, base, variant, tolerance)
        if result.verdict in (FAIL, INCONCLUSIVE):
            return None
        if variant.unmatched_bytes:
            result.skipped_bytes += variant.unmatched_bytes
            result.verdict = INCONCLUSIVE
            names = ", ".join(variant.unmatched[:5])
            result.reason = (
                f"{variant.unmatched_bytes} bytes of module variables that the application's run changed have no place "
                f"in the variant ({names or 'variables without a symbol'})"
            )
        elif replayer.greeting.integer("code_pointers"):
            result.verdict, result.reason = INCONCLUSIVE, self._pointers_reason("the variant")
        elif result.compared_bytes == 0:
            result.verdict, result.reason = INCONCLUSIVE, base.reason or "nothing was compared"
        elif base.varying:
            if result.masked_bytes >= result.compared_bytes:
                result.verdict, result.reason = INCONCLUSIVE, base.reason
            else:
                result.verdict, result.reason = NONDETERMINISTIC_OK, base.reason
        elif analysis.tolerated:
            result.verdict = WITHIN_TOLERANCE
            result.reason = f"{analysis.tolerated} elements differ within the tolerance"
            if not tolerance.given:
                result.reason = (
                    f"{analysis.tolerated} elements differ only in the sign of zero or the bits of a NaN"
                )
        return None

    # ---- bytes that were right before -------------------------------------------------------

    def _silent(self, result: ValidateResult, base: Baseline, variant: Variant, tolerance: Tolerance) -> None:
        """Bytes of the written set that already had their value: does the variant produce them?"""
        replayer = self.replayer
        if replayer.tracks_writes:
            stored = replayer.ranges("written", variant)
            missing = replayer.ranges("missing", variant)
            if base.written.bytes and not stored.bytes:
                result.verdict, result.reason = (
                    FAIL,
                    (f"it stores nothing; the captured kernel stores to {base.written.bytes} bytes"),
                )
                return
            if not missing.bytes:
                return
            places = ["written"]
        elif base.silent_bytes or not self._changed:
            missing = RangeList(base.silent_bytes, 0, base.written.ranges)
            places = ["written"] if self._changed else self._candidates()
        else:
            return
        proven = 0
        for place in places:
            outcome = self._differential(place, base, variant, tolerance)
            if outcome is None:
                continue
            proven += 1
            analysis, altered = outcome
            if analysis.mismatches:
                result.verdict = FAIL
                result.reason = (
                    f"{analysis.mismatch_bytes} bytes that the captured kernel writes keep what was there before; they "
                    f"had the right value already. {self._mismatch_reason(analysis)}"
                )
                self._show_regions(result, analysis, base)
                return
            if not self._changed and altered:
                result.compared_bytes = max(result.compared_bytes, analysis.compared)
        if not proven:
            result.skipped_bytes += missing.bytes
            result.verdict, result.reason = (
                INCONCLUSIVE,
                (
                    f"the variant does not store to {missing.bytes} bytes that the captured kernel writes; they had their "
                    "value before, and the captured kernel does not run with another value there, so nothing shows "
                    "whether the variant would write them"
                ),
            )

    def _rewritten(self, base: Baseline) -> int:
        """Bytes that the captured kernel gives their value, though they had it: found by altering them."""
        proven = 0
        for place in self._candidates():
            try:
                self.replayer.restore()
                altered = self.replayer.poison(place, 1)
                self.replayer.run(base.variant, restore=False)
                left = self.replayer.compare(base.variant, scope="all")
            except (KernelFault, KernelTimeout):
                continue
            if bool((left.runs["region"] == int(place)).all()):
                proven += altered - left.different
        self.replayer.restore()
        return proven

    def _candidates(self) -> list[str]:
        """Regions that an argument points to: what the kernel may write where nothing has changed."""
        found = []
        data = self.capture.kernarg.data
        for offset in range(0, len(data) - 7, 8):
            region = self.capture.region_at(int.from_bytes(data[offset : offset + 8], "little"))
            if region is not None and region.saved and region.kind != RegionKind.CODE_SEGMENT:
                found.append(str(region.id))
        return list(dict.fromkeys(found))

    def _differential(
        self, place: str, base: Baseline, variant: Variant, tolerance: Tolerance
    ) -> tuple[Analysis, int] | None:
        """Both kernels from a state in which the silent bytes are altered; None: that shows nothing."""
        replayer = self.replayer
        granule = 4
        try:
            replayer.restore()
            altered = replayer.poison(place, granule)
            if altered == 0:
                replayer.restore()
                altered = replayer.poison(place, 1)
                granule = 1
            if altered == 0:
                return None
            replayer.run(base.variant, track=True, restore=False)
            if not self._changed and not replayer.tracks_writes and not self._only_in(place, base):
                return None  # an input: the captured kernel need not make sense of other values
            replayer.keep("written" if replayer.tracks_writes else "changed", base.variant)
            runs = []
            for _ in range(2 if base.deterministic else self.baseline_runs):
                replayer.restore()
                replayer.poison(place, granule)
                replayer.run(base.variant, track=True, restore=False)
                runs.append(
                    replayer.compare(base.variant, against="reference", scope=self._reference_scope())
                )
            varying, _ = compare.variations(runs, self.types)
            if not self._tells(place, granule, base):
                return None
        except (KernelFault, KernelTimeout):
            return None  # the altered bytes are an address or a bound to it
        replayer.restore()
        replayer.poison(place, granule)
        try:
            replayer.run(variant, track=True, restore=False)
        except (KernelFault, KernelTimeout):
            return None
        differences = replayer.compare(variant, against="reference", scope=self._reference_scope())
        analysis = compare.analyse(differences, self.types, tolerance, [*varying, *base.varying])
        replayer.restore()
        return analysis, altered

    def _reference_scope(self) -> str:
        return "written" if self.replayer.tracks_writes else "all"

    def _only_in(self, place: str, base: Baseline) -> bool:
        """Whether memory is as the application left it, but for bytes of one region."""
        differences = self.replayer.compare(base.variant, scope="all")
        return bool((differences.runs["region"] == int(place)).all())

    def _tells(self, place: str, granule: int, base: Baseline) -> bool:
        """Whether a kernel that does nothing would be found out: else the altered run proves nothing."""
        replayer = self.replayer
        try:
            empty = replayer.load(emptied_launch(self.capture))
        except UsageError:
            return False
        replayer.restore()
        replayer.poison(place, granule)
        replayer.run(empty, track=True, restore=False)
        differences = replayer.compare(empty, against="reference", scope=self._reference_scope())
        return differences.different > 0

    # ---- words ------------------------------------------------------------------------------

    def _where(self, ranges: RangeList) -> str:
        """The first range of a set, and the region it is in or near."""
        if len(ranges.ranges) == 0:
            return "nowhere"
        address, size = int(ranges.ranges["address"][0]), int(ranges.ranges["bytes"][0])
        text = f"0x{address:x} ({size} bytes)"
        near = self.capture.nearest_region(address)
        if near is not None:
            region, distance = near
            name = f"region {region.id} ({region.kind.name.lower()}, {region.bytes} bytes at 0x{region.address:x})"
            if distance == 0:
                text += f", byte {address - region.address} of {name}"
            elif address < region.address:
                text += f", {distance} bytes before {name}"
            else:
                text += f", {address - region.end} bytes past the end of {name}"
        return text if ranges.count == 1 else f"{text}, and {ranges.count - 1} more places"

    def _mismatch_reason(self, analysis: Analysis) -> str:
        firsts = [s for s in analysis.regions.values() if s.first is not None]
        if not firsts:
            return f"{analysis.mismatches} bytes differ"
        stats = min(firsts, key=lambda s: int((s.first or {"address": "0x0"})["address"], 16))
        first = stats.first or {}
        extra = ", among them NaNs that the reference does not have" if stats.new_nans else ""
        where = self._region_name(stats.region, int(first["address"], 16))
        return (
            f"{analysis.mismatches} elements differ{extra}; the first: element {first['index']} of {where} is "
            f"{first['actual']}, should be {first['expected']}"
        )

    def _region_name(self, ident: int, address: int) -> str:
        region = next((r for r in self.capture.regions if r.id == ident), None)
        if region is None:
            near = self.capture.nearest_region(address)
            where = f", nearest: region {near[0].id}" if near else ""
            return f"memory outside of every captured region (0x{address:x}{where})"
        return f"region {region.id} (0x{region.address:x}, {region.bytes} bytes)"

    def _show_regions(self, result: ValidateResult, analysis: Analysis, base: Baseline) -> None:
        shown = []
        written = {int(i) for i in self.capture.changes["region"]}
        for item in base.written.ranges[:_MOST_REGIONS]:
            region = self.capture.region_at(int(item["address"]))
            if region is not None:
                written.add(region.id)
        for region in self.capture.regions:
            stats = analysis.regions.get(region.id)
            if stats is None and region.id not in written:
                continue
            stats = stats or RegionStats(region.id)
            layout, _ = self.types.at(self._first_written(region.id, region.address, base))
            shown.append(
                {
                    "id": region.id,
                    "address": f"0x{region.address:x}",
                    "bytes": region.bytes,
                    "dtype": stats.dtype or layout.name,
                    **_figures(stats),
                }
            )
        outside = analysis.regions.get(0)
        if outside is not None:
            address = (outside.first or {"address": "0x0"})["address"]
            shown.append({"id": 0, "address": address, "bytes": 0, "dtype": "bytes", **_figures(outside)})
        shown.sort(key=lambda r: -r["mismatches"])
        result.regions = shown[:_MOST_REGIONS]

    def _first_written(self, ident: int, fallback: int, base: Baseline) -> int:
        mine = self.capture.changes[self.capture.changes["region"] == ident]
        if len(mine):
            return int(mine["address"][0])
        for item in base.written.ranges:
            region = self.capture.region_at(int(item["address"]))
            if region is not None and region.id == ident:
                return int(item["address"])
        return fallback


def _figures(stats: RegionStats) -> dict[str, Any]:
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
    }


def validate(
    directory: str | os.PathLike[str],
    hsaco: str | os.PathLike[str] | None = None,
    mode: str = "default",
    atol: float = 0.0,
    rtol: float = 0.0,
    ulp: int = 0,
    *,
    bitwise: bool = False,
    device: str | Device | None = None,
    dtypes: Mapping[int | str, str] | None = None,
    baseline_runs: int = 3,
    limit_s: float = 60.0,
) -> ValidateResult:
    """Compares what the kernel of `hsaco` (or, without, the captured one) writes with the application's result.

    `mode`: "default" compares all that the kernel writes and finds stores elsewhere, "strict" every other captured
    byte too, "smoke" only runs it. Tolerances apply to memory that is known to hold floats: `dtypes` adds to what
    debug information and the kernel's signature say (region id or "0x..." address, to "f32", "bf16", ...).

    Raises UsageError (the variant does not fit), DeviceError, DamagedCaptureError, InconclusiveError (the kernel
    needs its program while it runs). A variant that faults or never ends is a FAIL, not an error.
    """
    if atol < 0 or rtol < 0 or ulp < 0:
        raise UsageError("tolerances are not negative")
    capture = records.read(os.fspath(directory))
    tolerance = Tolerance(atol, rtol, ulp, bitwise)
    with Validator(capture, device, dtypes=dtypes, baseline_runs=baseline_runs, limit_s=limit_s) as validator:
        return validator.validate(hsaco, mode, tolerance)
