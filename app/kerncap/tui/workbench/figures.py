"""Numbers as a person reads them."""

from __future__ import annotations

_UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))


def unit_of(ns: float) -> tuple[str, float]:
    """The unit that suits a time, and how many ns it has."""
    return next(((name, scale) for name, scale in _UNITS if abs(ns) >= scale), _UNITS[-1])


def duration(ns: float | None) -> str:
    """Nanoseconds with three decimals of a suitable unit; - where not known."""
    if ns is None:
        return "-"
    name, scale = unit_of(ns)
    return f"{ns / scale:.0f} {name}" if scale == 1.0 else f"{ns / scale:.3f} {name}"


def with_interval(median: float | None, interval: tuple[float, float] | None) -> str:
    """A median and half the width of its interval, in one unit."""
    if median is None:
        return "-"
    name, scale = unit_of(median)
    if interval is None:
        return duration(median)
    half = (interval[1] - interval[0]) / 2
    digits = 0 if scale == 1.0 else 3
    return f"{median / scale:.{digits}f} ±{half / scale:.{max(digits - 1, 0)}f} {name}"


def seconds(value: float | None) -> str:
    """Seconds of a step."""
    if value is None:
        return "-"
    if value < 0.001:
        return f"{value * 1e6:.0f} us"
    return f"{value * 1000:.0f} ms" if value < 0.1 else f"{value:.2f} s"


def ratio(value: float | None) -> str:
    """A speedup."""
    return "-" if value is None else f"{value:.3f}x"


def size(value: float) -> str:
    """Bytes."""
    for name, scale in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if value >= scale:
            return f"{value / scale:.1f} {name}"
    return f"{value:.0f} B"


def value(found: object) -> str:
    """An element of memory as the comparison gives it: a number, or a word such as nan."""
    if isinstance(found, float):
        return f"{found:.9g}"
    return str(found)


def lines_changed(changed: tuple[int, int] | None) -> str:
    """Added and removed lines; = where nothing differs from the captured source."""
    if changed is None:
        return ""
    return "=" if changed == (0, 0) else f"+{changed[0]} -{changed[1]}"
