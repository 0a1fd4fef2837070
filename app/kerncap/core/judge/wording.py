"""Sentences about places in captured memory: what differs first, and where a range lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kerncap.core.capture.records import Capture
from kerncap.core.judge.compare import Analysis
from kerncap.core.replay.replayer import DATA_LIMIT, RangeList
from kerncap.core.units import size


def where(capture: Capture, ranges: RangeList) -> str:
    """The first range of a set, and the region it is in or near."""
    if len(ranges.ranges) == 0:
        return "nowhere"
    address, count = int(ranges.ranges["address"][0]), int(ranges.ranges["bytes"][0])
    text = f"0x{address:x} ({count} bytes)"
    near = capture.nearest_region(address)
    if near is not None:
        region, distance = near
        kind = region.kind.name.lower()
        name = f"region {region.id} ({kind}, {region.bytes} bytes at 0x{region.address:x})"
        if distance == 0:
            text += f", byte {address - region.address} of {name}"
        elif address < region.address:
            text += f", {distance} bytes before {name}"
        else:
            text += f", {address - region.end} bytes past the end of {name}"
    return text if ranges.count == 1 else f"{text}, and {ranges.count - 1} more places"


def differing(count: int, what: str = "element") -> str:
    """ "1 element differs", "2 elements differ"."""
    return f"1 {what} differs" if count == 1 else f"{count} {what}s differ"


def beyond(analysis: Analysis) -> str:
    """What differs and was not looked at."""
    looked_at = size(DATA_LIMIT // 2)
    return f"{size(analysis.unanalysed)} more differ, beyond the {looked_at} that are looked at one by one"


def first_mismatch(capture: Capture, analysis: Analysis) -> str:
    """How many elements differ, and the first of them."""
    firsts = [s for s in analysis.regions.values() if s.first is not None]
    if not firsts:
        return differing(analysis.mismatches, "byte")
    stats = min(firsts, key=lambda s: int((s.first or {"address": "0x0"})["address"], 16))
    first = stats.first or {}
    extra = ", among them NaNs that the reference does not have" if stats.new_nans else ""
    element = _element(capture, stats.region, first)
    text = (
        f"{differing(analysis.mismatches)}{extra}; the first: {element} is {first['actual']}, should be "
        f"{first['expected']}"
    )
    if analysis.unanalysed:
        text += f"; {beyond(analysis)}"
    if "range" in first:
        low, high = first["range"]
        text += f" (the captured kernel's own replays vary from {low:.9g} to {high:.9g})"
    return text


def _element(capture: Capture, ident: int, first: Mapping[str, Any]) -> str:
    """An element by where its index counts from: an argument, the region, or a place in that."""
    address, base = int(first["address"], 16), int(first["base"], 16)
    region = next((r for r in capture.regions if r.id == ident), None)
    if region is not None and first["argument"]:
        place = f"0x{address:x}, byte {address - region.address} of region {ident}, {region.bytes} bytes"
        return f"element {first['index']} of {first['argument']} ({place})"
    whole = region_name(capture, ident, address)
    if region is not None and base > region.address:
        whole = f"what begins at byte {base - region.address} of {whole}"
    return f"element {first['index']} of {whole}"


def element_text(first: Mapping[str, Any]) -> str:
    """The first element that differs, as a verdict's `first` has it."""
    name = f"{first.get('argument') or ''}[{first['index']}]"
    return f"{name} at {first['address']}: {first['actual']}, should be {first['expected']}"


def region_name(capture: Capture, ident: int, address: int) -> str:
    """A region by number and address; memory outside of every region by what is near."""
    region = next((r for r in capture.regions if r.id == ident), None)
    if region is None:
        near = capture.nearest_region(address)
        nearest = f", nearest: region {near[0].id}" if near else ""
        return f"memory outside of every captured region (0x{address:x}{nearest})"
    return f"region {region.id} (0x{region.address:x}, {region.bytes} bytes)"
