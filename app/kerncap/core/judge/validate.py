"""Whether a kernel writes what the application's own run wrote.

The captured kernel's own replay is checked first: where it does not give the application's result, nothing
can be said of a variant. A variant passes if every byte that the kernel writes is as it should be and nothing
else has changed. Bytes that had their right value already are a matter of their own (core/judge/silent.py).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from kerncap.core.capture.reading import read_capture
from kerncap.core.capture.records import Capture, Region
from kerncap.core.code.codeobject import is_declared
from kerncap.core.device.devices import Device
from kerncap.core.errors import UsageError
from kerncap.core.judge import compare
from kerncap.core.judge.altered import AlteredRuns
from kerncap.core.judge.baseline import BaselineRuns
from kerncap.core.judge.code_pointers import CodePointers, Outcome, same_outcome
from kerncap.core.judge.compare import Analysis, RegionStats, Tolerance
from kerncap.core.judge.dtypes import BYTES, NOT_KNOWN, TypeMap, type_map
from kerncap.core.judge.silent import SilentBytes
from kerncap.core.judge.tolerating import tell_declared, tell_tolerance
from kerncap.core.judge.variation import classify
from kerncap.core.judge.verdict import (
    FAIL,
    IDENTICAL,
    INCONCLUSIVE,
    MODES,
    NONDETERMINISTIC_OK,
    NOTHING,
    RAN,
    WITHIN_TOLERANCE,
    Baseline,
    ValidateResult,
    figures,
)
from kerncap.core.judge.wording import beyond, differing, first_mismatch, where
from kerncap.core.replay.replayer import Differences, KernelFault, KernelTimeout, Replayer, Variant
from kerncap.core.replay.variant_launch import variant_launch
from kerncap.core.units import many, were

__all__ = ["ValidateResult", "Validator", "validate"]

_MOST_REGIONS = 200


class Validator:
    """Validates variants of one capture; the memory and the captured kernel's own runs are kept."""

    def __init__(
        self,
        capture: Capture | str | os.PathLike[str],
        device: str | Device | None = None,
        *,
        dtypes: Mapping[int | str, str] | None = None,
        baseline_runs: int = 3,
        limit_s: float = 60.0,
        replayer: Replayer | None = None,
    ) -> None:
        if baseline_runs < 2:
            raise UsageError(f"baseline_runs: {baseline_runs} is not at least 2")
        if not isinstance(capture, Capture):
            capture = read_capture(os.fspath(capture))
        self.capture = capture
        self._own = replayer is None
        self.replayer = replayer or Replayer(capture, device, limit_s=limit_s)
        self.types: TypeMap = type_map(capture, dtypes)
        self._silent = SilentBytes(self.replayer, capture, self.types, baseline_runs)
        self._pointers = CodePointers(self.replayer)
        self._altered = AlteredRuns(self.replayer, self.types, baseline_runs)
        self._reference = BaselineRuns(self.replayer, capture, self.types, self._silent, baseline_runs)

    def close(self) -> None:
        if self._own:
            self.replayer.close()

    def __enter__(self) -> Validator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def memcmp_seconds(self) -> float:
        """How long one memcmp of all placed memory with the capture takes, on one thread."""
        return float(self.replayer.request("memcmp").values["seconds"])

    def baseline(self, mode: str = "default", tolerance: Tolerance = compare.EXACT) -> Baseline:
        """The captured kernel's own replays, compared with the application's result; made once a mode.

        Raises KernelFault and KernelTimeout of the captured kernel.
        """
        return self._reference.get(mode, tolerance)

    def _run(self, variant: Variant, mode: str) -> Differences:
        self.replayer.run(variant, track=True)
        return self.replayer.compare(variant, scope=self._reference.scope(mode))

    def _analyse(
        self, differences: Differences, base: Baseline, mode: str, tolerance: Tolerance
    ) -> tuple[Analysis, Baseline]:
        """A variant's run, judged. What lies just outside of the range of a kernel that varies is decided by
        more replays of that kernel.
        """
        analysis = compare.analyse(differences, self.types, tolerance, base.varying)
        while analysis.near and self._reference.extend(mode):
            base = self.baseline(mode, tolerance)
            analysis = compare.analyse(differences, self.types, tolerance, base.varying)
        return analysis, base

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
        result = ValidateResult(IDENTICAL, mode=mode, changed_bytes=self.replayer.changed_bytes)
        dispatch = self.capture.dispatch
        result.kernel, result.symbol = dispatch.demangled or dispatch.symbol, dispatch.symbol
        result.tolerance = tolerance
        self._warn(result)
        tell_declared(result, self.types, tolerance)
        launch = None if hsaco is None else variant_launch(self.capture, hsaco)
        if launch is not None:
            result.variant = str(launch.path)
            result.warnings += launch.warnings
        if mode == "smoke":
            result.against = NOTHING
            self._smoke(result, self.replayer.load(launch) if launch else self.replayer.captured())
        else:
            try:
                base = self.baseline(mode, tolerance)
            except (KernelFault, KernelTimeout) as error:
                result.verdict, result.reason = INCONCLUSIVE, f"the captured kernel's own replay: {error}"
                if hsaco is None:
                    result.verdict = FAIL
                if isinstance(error, KernelFault) and not self.capture.dispatch.memory_mode:
                    result.reason += (
                        "\nOnly memory that pointers reach was saved. If the kernel makes addresses of other "
                        "values, or counts back from an end, `extract --memory all` saves what it needs"
                    )
                result.baseline = FAIL
                result.seconds = time.monotonic() - start
                return result
            self._state(result, base)
            if launch is None:
                result.verdict, result.reason = base.verdict, base.reason
                result.compared_bytes = base.compared
                result.compare_s = base.compare_s
                self._show_regions(result, base.analysis, base)
            else:
                self._variant(result, base, self.replayer.load(launch), mode, tolerance)
            if result.passed and result.unchecked_bytes:
                result.warnings.append(
                    f"{result.unchecked_bytes} written bytes were not compared: the captured kernel does not "
                    "repeat them, and they are not known to be floats (--dtype REGION=TYPE declares them)"
                )
            if tolerance.given:
                tell_tolerance(result, self.capture, self.types)
        result.seconds = time.monotonic() - start
        return result

    def _state(self, result: ValidateResult, base: Baseline) -> None:
        result.baseline, result.baseline_runs = base.verdict, base.runs
        result.written_bytes = base.written.bytes
        result.masked_bytes, result.unchecked_bytes = base.masked_bytes, base.unchecked_bytes
        result.variation = classify(base.varying)

    def _warn(self, result: ValidateResult) -> None:
        self.replayer.start()
        greeting = self.replayer.greeting
        if not result.changed_bytes and result.mode != "smoke":
            result.warnings.append(
                "the captured dispatch left every byte with the value it had: another one "
                "(extract --dispatch N) tells right from wrong variants better"
            )
        unsaved = greeting.noted("unsaved")
        if unsaved:
            result.warnings.append(
                f"{many(len(unsaved), 'reachable region')} {were(len(unsaved))} not saved "
                "(a kernel that uses one faults): " + "; ".join(unsaved[:3])
            )

    def _smoke(self, result: ValidateResult, variant: Variant) -> None:
        try:
            self.replayer.run(variant)
        except KernelFault as error:
            self._fault(result, error)
        except KernelTimeout as error:
            result.verdict, result.reason = FAIL, f"timeout: {error}"
        else:
            result.verdict = RAN
            result.reason = "it ran to its end without a fault; nothing was compared"

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
        outcome: Outcome
        try:
            outcome = self._run(variant, mode)
        except (KernelFault, KernelTimeout) as error:
            outcome = error
        if isinstance(outcome, KernelFault):
            self._fault(result, outcome)
        elif isinstance(outcome, KernelTimeout):
            result.verdict, result.reason = FAIL, f"timeout: {outcome}"
        else:
            base = self._decide(result, base, variant, mode, tolerance, outcome)
        if result.verdict == INCONCLUSIVE:
            return
        failed = result.verdict == FAIL

        def unmoved(other: Outcome) -> bool:
            if same_outcome(outcome, other):
                return True
            if not isinstance(other, Differences) or (failed and base.deterministic):
                return False
            return failed == bool(self._analyse(other, base, mode, tolerance)[0].mismatches)

        if self._pointers.matter(variant, self._reference.scope(mode), base.run_s, unmoved):
            reason = self._pointers.reason("the variant", variant)
            result.reason = f"{reason}. With them, {result.reason}" if failed else reason
            result.verdict = INCONCLUSIVE

    def _decide(
        self,
        result: ValidateResult,
        base: Baseline,
        variant: Variant,
        mode: str,
        tolerance: Tolerance,
        differences: Differences,
    ) -> Baseline:
        """The verdict on a run that came to its end; the captured kernel's runs that it was judged by."""
        replayer = self.replayer
        analysis, base = self._analyse(differences, base, mode, tolerance)
        self._state(result, base)
        result.compared_bytes = analysis.compared
        if self._reference.scope(mode) == "all":
            # Of its own code object the captured kernel has whole segments compared; a variant's are its own.
            result.module_bytes = max(0, base.compared - analysis.compared)
        result.compare_s = differences.seconds
        self._show_regions(result, analysis, base)
        if replayer.tracks_writes:
            outside = replayer.ranges("outside", variant)
            if outside.bytes:
                result.verdict = FAIL
                result.reason = f"it stores to {outside.bytes} bytes that the captured kernel does not: "
                result.reason += where(self.capture, outside)
                return base
        if base.verdict in (FAIL, INCONCLUSIVE):
            result.verdict = INCONCLUSIVE
            result.reason = f"the reference does not hold: {base.reason}"
            return base
        if 0 < analysis.unanalysed == analysis.mismatches:
            result.verdict = INCONCLUSIVE
            result.reason = f"{beyond(analysis)}; of those none is wrong"
            return base
        if analysis.mismatches:
            self._differs(result, analysis, base.runs)
            return base
        if self._silent_fails(result, base, variant, tolerance):
            return base
        if self._silent.unknown:
            names = ", ".join(self._silent.unknown[:5]) + (
                " and more" if len(self._silent.unknown) > 5 else ""
            )
            result.warnings.append(
                f"the application's run left region {names} as it was, and this device does not tell stores: "
                "whether the kernel stores there, and the variant too, is not known"
            )
        if self._altered_fails(result, base, variant, tolerance):
            return base
        if self._varies(result, base, variant, mode, tolerance):
            return base
        if variant.unmatched_bytes:
            result.skipped_bytes += variant.unmatched_bytes
            names = ", ".join(filter(is_declared, variant.unmatched[:5])) or "variables without a symbol"
            result.verdict = INCONCLUSIVE
            result.reason = (
                f"{variant.unmatched_bytes} bytes of module variables that the application's run changed "
                f"have no place in the variant ({names})"
            )
        elif result.compared_bytes == 0:
            result.verdict, result.reason = INCONCLUSIVE, base.reason or "nothing was compared"
        elif base.varying:
            result.verdict, result.reason = NONDETERMINISTIC_OK, base.reason
        elif analysis.tolerated:
            result.verdict = WITHIN_TOLERANCE
            how = "only in the sign of zero or the bits of a NaN"
            if tolerance.given:
                how = f"within the tolerance ({tolerance.text})"
            result.reason = f"{differing(analysis.tolerated)} {how}"
        return base

    def _silent_fails(
        self, result: ValidateResult, base: Baseline, variant: Variant, tolerance: Tolerance
    ) -> bool:
        """Whether the bytes that had their value before settle the verdict; then it is in `result`."""
        outcome = self._silent.check(base, variant, tolerance)
        if outcome.stores_nothing:
            result.verdict = FAIL
            result.reason = f"it stores nothing; the captured kernel stores to {base.written.bytes} bytes"
        elif outcome.unstored:
            result.verdict = FAIL
            result.reason = (
                f"it does not store to 0x{outcome.unstored:x}, and the captured kernel always does"
            )
        elif outcome.analysis is not None and outcome.analysis.mismatches and not outcome.analysis.near:
            result.verdict = FAIL
            result.reason = (
                f"{outcome.analysis.mismatch_bytes} bytes that the captured kernel writes keep what was "
                "there before; they had the right value already. "
                f"{first_mismatch(self.capture, outcome.analysis)}"
            )
            self._show_regions(result, outcome.analysis, base)
        elif not outcome.proven:
            result.skipped_bytes += outcome.missing_bytes
            result.verdict = INCONCLUSIVE
            result.reason = (
                f"the variant does not store to {outcome.missing_bytes} bytes that the captured kernel "
                "writes. They had their value before, and the captured kernel does not run with other bytes "
                "there: nothing shows whether the variant would write them"
            )
        return result.verdict in (FAIL, INCONCLUSIVE)

    def _altered_fails(
        self, result: ValidateResult, base: Baseline, variant: Variant, tolerance: Tolerance
    ) -> bool:
        """Whether a run over altered memory settles the verdict; then it is in `result`."""
        outcome = self._altered.check(base, variant, tolerance)
        altered = "where the bytes that the kernel writes held other values before"
        if outcome.unproven:
            result.warnings.append(
                f"{altered}, the captured kernel {outcome.unproven}: that the variant does not depend on "
                "what was there in another way was not proven"
            )
        elif outcome.error is not None and outcome.reads:
            result.warnings.append(
                f"{altered}, the captured kernel runs and the variant does not ({outcome.error}): that it "
                "does not depend on what was there in another way was not proven"
            )
        elif outcome.error is not None:
            result.verdict = FAIL
            result.reason = f"{altered}, the captured kernel gives the same result, and the variant does not "
            result.reason += f"run: {outcome.error}"
        elif outcome.analysis is not None and outcome.analysis.mismatches and not outcome.analysis.near:
            result.verdict = FAIL
            gives = "another result than the captured kernel" if outcome.reads else "another result"
            result.reason = f"it depends on what was there before: {altered}, it gives {gives}. "
            result.reason += first_mismatch(self.capture, outcome.analysis)
            self._show_regions(result, outcome.analysis, base)
        return result.verdict == FAIL

    def _varies(
        self,
        result: ValidateResult,
        base: Baseline,
        variant: Variant,
        mode: str,
        tolerance: Tolerance,
    ) -> bool:
        """A second run, its workgroups in another order: a race that only the variant has is a FAIL."""
        self._reference.schedule(1)
        try:
            differences = self._run(variant, mode)
        except (KernelFault, KernelTimeout) as error:
            result.verdict, result.reason = FAIL, f"in a second run: {error}"
            return True
        self._reference.schedule(0)
        analysis, base = self._analyse(differences, base, mode, tolerance)
        if not analysis.mismatches:
            return False
        self._differs(result, analysis, base.runs)
        if result.verdict == FAIL:
            result.reason = f"it passed once and failed in a second run from the same state. {result.reason}"
        self._show_regions(result, analysis, base)
        return True

    def _differs(self, result: ValidateResult, analysis: Analysis, runs: int) -> None:
        """The verdict on a run in which elements differ. What lies that close to the range of a kernel which
        varies is neither shown to be wrong nor to be right.
        """
        result.verdict, result.reason = FAIL, first_mismatch(self.capture, analysis)
        if analysis.near:
            result.verdict = INCONCLUSIVE
            result.reason += (
                f", just outside of what {runs} replays of the captured kernel showed: it varies, and may "
                "come to that or not. If its sums may come out so, allow it with a tolerance (--ulp, --rtol)"
            )

    # ---- figures ----------------------------------------------------------------------------

    def _show_regions(self, result: ValidateResult, analysis: Analysis, base: Baseline) -> None:
        shown = []
        masked: dict[int, int] = {}
        for item in base.varying:
            masked[item.region] = masked.get(item.region, 0) + item.bytes
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
            place = self._first_written(region.id, region.address, base)
            layout, _ = self.types.at(place)
            shown.append(
                {
                    "id": region.id,
                    "address": f"0x{region.address:x}",
                    "bytes": region.bytes,
                    "dtype": stats.dtype or layout.name,
                    "dtype_source": self.types.source(place),
                    "tolerance_applied": None,
                    "masked_bytes": masked.get(region.id, 0),
                    "extent": self._extent(region, base),
                    **figures(stats, region.address, analysis.compared_in.get(region.id, 0), layout),
                }
            )
        outside = analysis.regions.get(0)
        if outside is not None:
            address = (outside.first or {"address": "0x0"})["address"]
            row = {
                "id": 0,
                "address": address,
                "bytes": 0,
                "dtype": "bytes",
                "dtype_source": NOT_KNOWN,
                "tolerance_applied": None,
                "masked_bytes": 0,
                "extent": [0, 0],
            }
            shown.append({**row, **figures(outside, int(address, 16), analysis.compared_in.get(0, 0), BYTES)})
        shown.sort(key=lambda r: -r["mismatches"])
        result.regions = shown[:_MOST_REGIONS]

    def _extent(self, region: Region, base: Baseline) -> list[int]:
        """[first, end) in the region of what the captured kernel writes there, as far as it is listed."""
        first, end = region.end, region.address
        for table in (self.capture.changes, base.written.ranges):
            mine = table[(table["address"] >= region.address) & (table["address"] < region.end)]
            if len(mine):
                first = min(first, int(mine["address"].min()))
                end = max(end, int((mine["address"] + mine["bytes"]).max()))
        if end <= first:
            return [0, region.bytes]
        return [first - region.address, min(end, region.end) - region.address]

    def _first_written(self, ident: int, fallback: int, base: Baseline) -> int:
        mine = self.capture.changes[self.capture.changes["region"] == ident]
        if len(mine):
            return int(mine["address"][0])
        for item in base.written.ranges:
            region = self.capture.region_at(int(item["address"]))
            if region is not None and region.id == ident:
                return int(item["address"])
        return fallback


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
    """Compares what the kernel of `hsaco` (default: the captured one) writes with the application's result.

    `mode`: "default" compares all that the kernel writes and finds stores elsewhere, "strict" every other
    captured byte too, "smoke" only runs it. Tolerances apply to memory that is known to hold floats:
    `dtypes` adds to what debug information and the kernel's signature say (region id or "0x..."
    address, to "f32", "bf16", ...).

    Raises UsageError (the variant does not fit), DeviceError, DamagedCaptureError, InconclusiveError (the
    kernel needs its program while it runs). A variant that faults or never ends is a FAIL, not an
    error.
    """
    if atol < 0 or rtol < 0 or ulp < 0:
        raise UsageError("tolerances are not negative")
    capture = read_capture(os.fspath(directory))
    tolerance = Tolerance(atol, rtol, ulp, bitwise)
    with Validator(capture, device, dtypes=dtypes, baseline_runs=baseline_runs, limit_s=limit_s) as validator:
        return validator.validate(hsaco, mode, tolerance)
