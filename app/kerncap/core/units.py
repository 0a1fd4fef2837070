"""Bytes and times as a person reads them: decimal units, everywhere the same."""

from __future__ import annotations

from collections.abc import Iterable


def size(value: float) -> str:
    """Bytes: KB, MB and GB are 10^3, 10^6 and 10^9 of them."""
    for unit in ("B", "KB", "MB"):
        if abs(value) < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def duration(ns: float) -> str:
    """Nanoseconds."""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= scale:
            return f"{ns / scale:.3f} {unit}"
    return f"{ns:.0f} ns"


def by(dimensions: Iterable[int]) -> str:
    """A grid or a workgroup: "64x1x1"."""
    return "x".join(map(str, dimensions))


def times(count: int) -> str:
    """ "once", "3 times"."""
    return "once" if count == 1 else f"{count} times"


def were(count: int) -> str:
    """ "was" of one, "were" of several."""
    return "was" if count == 1 else "were"


def many(count: int, what: str) -> str:
    """ "1 dispatch", "2 dispatches"; `what` may have words before it: "2 more files"."""
    plural = "" if count == 1 else "es" if what.endswith(("ch", "sh", "s", "x")) else "s"
    return f"{count} {what}{plural}"
