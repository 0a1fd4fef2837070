"""Times as lines: the medians over the attempts, the samples of one, and the seconds of its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kerncap.core.units import many
from kerncap.tui.workbench.figures import duration, ratio, seconds, unit_of, with_interval
from kerncap.tui.workbench.lines import Line, fold
from kerncap.tui.workbench.model import Row

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_LABEL = 11


def over_attempts(rows: Sequence[Row], best: Row | None, shown: int, width: int, height: int) -> list[Line]:
    """Medians over the attempts, newest at the right: ● right, ✗ wrong, ★ best; ┄ is the captured kernel."""
    timed = [row for row in rows if row.median_ns is not None]
    if not timed:
        return [[("no attempt has been timed yet", "dim")]]
    slot = 4
    room = max(1, (width - _LABEL - 2) // slot)
    timed = timed[-room:]
    baseline = next((r.baseline_ns for r in reversed(timed) if r.baseline_ns is not None), None)
    values = [float(r.median_ns or 0) for r in timed]
    values += [edge for r in timed for edge in (r.interval_ns or ())]
    values += [baseline] if baseline is not None else []
    low, high = min(values), max(values)
    if high <= low:
        low, high = low * 0.95, high * 1.05 or 1.0
    height = max(3, height)

    def at(value: float) -> int:
        return round((high - value) / (high - low) * (height - 1))

    cells = [[(" ", "")] * (slot * len(timed)) for _ in range(height)]
    if baseline is not None:
        cells[at(baseline)] = [("┄", "dim")] * (slot * len(timed))
    for i, row in enumerate(timed):
        x = i * slot + 1
        if row.interval_ns is not None:
            for y in range(at(row.interval_ns[1]), at(row.interval_ns[0]) + 1):
                cells[y][x] = ("│", "dim")
        mark = ("●", "good") if row.passed else ("✗", "bad")
        if best is not None and row.number == best.number:
            mark = ("★", "good")
        cells[at(float(row.median_ns or 0))][x] = mark
    lines: list[Line] = []
    for y in range(height):
        label = ""
        if y == 0:
            label = duration(high)
        elif y == height - 1:
            label = duration(low)
        elif baseline is not None and y == at(baseline):
            label = "captured"
        lines.append([(f"{label:>{_LABEL}} ", "dim"), ("│", "dim"), *_joined(cells[y])])
    numbers: list[tuple[str, str]] = [(" " * (_LABEL + 2), "")]
    for row in timed:
        numbers.append((f"{row.number:^3} ", "accent strong" if row.number == shown else "dim"))
    return [*lines, numbers]


def _joined(cells: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    pieces: list[tuple[str, str]] = []
    for text, style in cells:
        if pieces and pieces[-1][1] == style:
            pieces[-1] = (pieces[-1][0] + text, style)
        else:
            pieces.append((text, style))
    return pieces


def distribution(timing: Mapping[str, Any], width: int, height: int = 3) -> list[Line]:
    """The samples of both kernels over one axis of time, as histograms of `height` lines each."""
    series = [
        ("captured", [float(v) for v in timing.get("baseline_ns") or []], "dim"),
        ("variant", [float(v) for v in timing.get("variant_ns") or []], "bar"),
    ]
    samples = [v for _, values, _ in series for v in values]
    if not samples:
        return []
    bins = max(10, width - _LABEL - 3)
    low, high = min(samples), max(samples)
    if high <= low:
        low, high = low * 0.99, high * 1.01 or 1.0
    name, scale = unit_of(high)
    lines: list[Line] = []
    for title, values, style in series:
        counts = [0] * bins
        for v in values:
            counts[min(bins - 1, int((v - low) / (high - low) * bins))] += 1
        most = max([*counts, 1])
        for y in range(height):
            text = ""
            for count in counts:
                full = count / most * height * 8 - (height - 1 - y) * 8
                text += _EIGHTHS[max(0, min(8, round(full)))] if count else " "
            label = title if y == height - 1 else (f"{len(values)}" if y == height - 2 else "")
            lines.append([(f"{label:>{_LABEL}} ", "dim"), ("│", "dim"), (text, style)])
    digits = 0 if scale == 1.0 else 3
    left, right = f"{low / scale:.{digits}f}", f"{high / scale:.{digits}f} {name}"
    lines.append([(" " * (_LABEL + 2) + f"{left:<{max(1, bins - len(right))}}{right}", "dim")])
    return lines


def report(
    rows: Sequence[Row],
    row: Row | None,
    document: Mapping[str, Any],
    best: Row | None,
    width: int,
    height: int,
) -> list[Line]:
    """The timing pane for attempt `row`, whose record is `document`."""
    shown = row.number if row else 0
    spare = height - 18
    lines = over_attempts(rows, best, shown, width, max(4, min(14, spare)))
    if row is None:
        return lines
    timing = document.get("timing") or {}
    lines.append([("", "")])
    if row.median_ns is not None:
        lines += [part for line in _figures(row, timing, best) for part in fold(line, width)]
        lines.append([("", "")])
        lines += distribution(timing, width)
        lines.append([("", "")])
    return [*lines, *(part for line in steps(document) for part in fold(line, width))]


def _figures(row: Row, timing: Mapping[str, Any], best: Row | None) -> list[Line]:
    counts = timing.get("samples") or [
        len(timing.get("baseline_ns") or []),
        len(timing.get("variant_ns") or []),
    ]
    simulated = "  simulated cycles" if row.simulated else ""
    lines: list[Line] = [
        [
            (f"attempt {row.number}: ", "strong"),
            (f"{with_interval(row.median_ns, row.interval_ns)}, captured {duration(row.baseline_ns)}", ""),
            (simulated, "dim"),
        ]
    ]
    style = {"FASTER": "good", "SLOWER": "bad"}.get(row.speed, "warn")
    noise = timing.get("noise")
    detail = f"  {counts[0]} and {many(counts[1], 'sample')}"
    detail += f", noise {noise * 100:.2g} %" if isinstance(noise, float) else ""
    if row.passed:
        lines.append([(f"{ratio(row.speedup)} {row.speed}", style), (detail, "dim")])
    else:
        lines.append([(f"its time does not count: {row.verdict}", "bad"), (detail, "dim")])
    if best is not None and best.number != row.number:
        lines.append([(f"best: attempt {best.number}, {ratio(best.speedup)}", "dim")])
    return lines


def steps(document: Mapping[str, Any]) -> list[Line]:
    """Seconds: compile, replay and compare apart."""
    found = document.get("seconds") or {}
    build = (document.get("build") or {}).get("steps") or {}
    parts = ", ".join(f"{name} {seconds(s)}" for name, s in build.items() if name != "total")
    one = (document.get("validation") or {}).get("compare_s")
    rows = (
        ("compile", found.get("build"), parts),
        ("replay", found.get("replay"), ""),
        ("compare", found.get("validate"), f"one comparison of memory {seconds(one)}" if one else ""),
        ("total", found.get("total"), "from the save to the verdict"),
    )
    lines: list[Line] = []
    for name, value, extra in rows:
        if value is not None:
            lines.append([(f"{name:>{_LABEL}} ", "dim"), (f"{seconds(value):>8}", ""), (f"  {extra}", "dim")])
    return lines
