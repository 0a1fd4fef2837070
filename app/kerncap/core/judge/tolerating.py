"""Where a tolerance that was asked for applies, and where it does not, in words."""

from __future__ import annotations

from kerncap.core.capture.records import Capture
from kerncap.core.errors import UsageError
from kerncap.core.judge.compare import Tolerance
from kerncap.core.judge.dtypes import NOT_KNOWN, STORES, TypeMap
from kerncap.core.judge.verdict import FAIL, ValidateResult

_MOST_NAMED = 5


def tell_declared(result: ValidateResult, types: TypeMap, tolerance: Tolerance) -> None:
    """Warns where a type that the caller says is not the one that something else says. Raises UsageError
    where both are floats of other sizes and there is a tolerance: whole elements would pass for rounding.
    """
    for said, known in types.overruled:
        text = (
            f"the memory at 0x{said.address:x} is declared {said.layout.name}, and is {known.layout.name} by "
            f"the {known.source}"
        )
        other = said.layout.is_float and known.layout.is_float and said.layout.stride != known.layout.stride
        if tolerance.given and other:
            raise UsageError(
                f"{text}: with a tolerance, whole elements would pass for the rounding of wider ones. Leave "
                f"--dtype away, or say {known.layout.name}"
            )
        result.warnings.append(f"{text}: figures and tolerances are of {said.layout.name}")


def tell_tolerance(result: ValidateResult, capture: Capture, types: TypeMap) -> None:
    """Says for each region of a verdict whether the tolerance applied to it (`tolerance_applied`), and warns
    of those that it did not apply to because nothing declares what they hold.
    """
    sizes = {region.id: region.end - region.address for region in capture.regions}
    undeclared = []
    for row in result.regions:
        base = int(row["address"], 16)
        begin, end = row["extent"]
        parts = types.split(base + begin, base + end) if row["id"] in sizes and begin < end else []
        row["tolerance_applied"] = any(layout.is_float for _, _, layout, _ in parts)
        unsaid = [start for start, _, layout, _ in parts if not layout.is_float]
        if any(types.source(start) in (STORES, NOT_KNOWN) for start in unsaid):
            undeclared.append(row)
    if not undeclared:
        return
    named = ", ".join(
        f"region {row['id']} ({row['address']}, {row['bytes']} bytes, compared as {row['dtype']})"
        for row in undeclared[:_MOST_NAMED]
    )
    if len(undeclared) > _MOST_NAMED:
        named += f" and {len(undeclared) - _MOST_NAMED} more"
    example = f"--dtype {undeclared[0]['id']}=f32"
    result.warnings.append(
        f"the tolerance was not applied to {named}: nothing declares what is there. If it holds floats, "
        f"say so: {example}"
    )
    wrong = [str(row["id"]) for row in undeclared if row["mismatches"]]
    if result.verdict == FAIL and wrong:
        plural = "regions" if len(wrong) > 1 else "region"
        result.reason += (
            f". No tolerance was applied to {plural} {', '.join(wrong[:_MOST_NAMED])}, whose type nothing "
            f"declares (--dtype {wrong[0]}=f32, if it holds floats)"
        )
