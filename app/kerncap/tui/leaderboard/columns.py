"""The leaderboard's columns: what each shows, how wide it is, and which ones a terminal has room for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. The lower its `rank`, the longer it stays when room gets scarce; `sort` is its sort key."""

    name: str
    title: str
    width: int  # 0: takes what is left
    rank: int
    align: str = "right"
    sort: str = ""


COLUMNS = (
    Column("mark", "", 1, 0, "left"),
    Column("rank", "#", 4, 0),
    Column("name", "kernel", 0, 0, "left", "name"),
    Column("kind", "kind", 8, 6, "left", "kind"),
    # What changes at every look stands together: it is drawn, and sent, as one piece.
    Column("bar", "share", 8, 5, "left"),
    Column("share", "%", 5, 1),
    Column("total", "total", 9, 0, sort="total"),
    Column("calls", "calls", 8, 2, sort="calls"),
    Column("mean", "mean", 9, 1, sort="mean"),
    Column("min", "min", 9, 4, sort="min"),
    Column("max", "max", 9, 4, sort="max"),
    Column("trend", "trend", 10, 3, "left"),
)
_LEAST_NAME = 22
_WIDE_SHARE = 0.6


def chosen(width: int, wide: bool) -> list[tuple[Column, int]]:
    """The columns that fit into `width` cells, with their widths; `wide` gives names most of it."""
    least = max(_LEAST_NAME, int(width * _WIDE_SHARE)) if wide else _LEAST_NAME
    columns = list(COLUMNS)

    def left_for_name() -> int:
        return width - sum(c.width for c in columns) - (len(columns) - 1)

    while left_for_name() < least and any(c.rank for c in columns):
        columns.remove(max(reversed(columns), key=lambda c: c.rank))
    name = max(4, left_for_name())
    return [(c, c.width or name) for c in columns]


def duration(ns: float) -> str:
    """Nanoseconds in four figures: `12.34 us`."""
    if ns <= 0:
        return "-"
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= scale * 0.9995:
            value = ns / scale
            digits = 3 if value < 9.9995 else 2 if value < 99.995 else 1 if value < 999.95 else 0
            return f"{value:.{digits}f} {unit}"
    return f"{ns:.0f} ns"


def count(value: int) -> str:
    """A whole number in at most seven cells: 1234567, then 12.3M."""
    if value < 10_000_000:
        return str(value)
    return f"{value / 1e6:.1f}M" if value < 10_000_000_000 else f"{value / 1e9:.1f}G"


def bar(part: float, width: int) -> str:
    """A bar of `part` (0 to 1) of `width` cells, in eighths of a cell."""
    eighths = round(min(max(part, 0.0), 1.0) * width * 8)
    if part > 0 and eighths == 0:
        eighths = 1
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def sparkline(values: Sequence[int], width: int) -> str:
    """The last `width` values as bars of their own largest, none of full height: rows stay apart."""
    shown = values[-width:]
    most = max(shown, default=0)
    if not most:
        return " " * width
    text = "".join(" " if not v else _LEVELS[min(6, int(v / most * 6.999))] for v in shown)
    return text.rjust(width)
