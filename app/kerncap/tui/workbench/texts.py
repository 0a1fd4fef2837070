"""Compiler messages, source diffs and comparisons as lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kerncap.core.build.diagnostics import Diagnostic, counts
from kerncap.core.loop.history import DiffLine
from kerncap.core.units import many
from kerncap.tui.workbench.figures import duration, lines_changed, ratio, seconds, with_interval
from kerncap.tui.workbench.lines import Line, clean, fold, wrap
from kerncap.tui.workbench.model import Row
from kerncap.tui.workbench.validation_text import verdict_style

_SEVERITY = {"error": "bad", "warning": "warn", "note": "dim"}
_CARET = re.compile(r"[\s|]*[~\s]*\^[~^\s]*")
_AFTER_CARET = 8  # cells that are to be seen to its right
_DIFF = {"file": "heading", "place": "accent", "added": "added", "removed": "removed", "same": ""}


@dataclass(frozen=True)
class Messages:
    """The errors pane: `starts` are the lines at which the diagnostics begin."""

    lines: list[Line]
    starts: list[int]


def messages(
    diagnostics: Sequence[Diagnostic], message: str, raw: str, *, show_raw: bool, current: int, width: int
) -> Messages:
    """What the compiler said: parsed, or `raw` as it came (also where nothing could be parsed)."""
    lines: list[Line] = [[(text, "strong")] for text in wrap(message, width - 1)] if message else []
    if show_raw or not diagnostics:
        lines += [[(clean(text), "")] for text in raw.splitlines()]
        if not lines:
            lines = [[("no messages", "dim")]]
        return Messages(lines, [])
    errors, warnings = counts(diagnostics)
    lines.append([(f"{many(errors, 'error')}, {many(warnings, 'warning')}", "dim")])
    starts = []
    for i, diagnostic in enumerate(diagnostics):
        lines.append([("", "")])
        starts.append(len(lines))
        style = _SEVERITY[diagnostic.severity]
        mark = "▶ " if i == current else "  "
        place = f" {clean(diagnostic.place)}" if diagnostic.place else ""
        lines.append([(mark, "accent"), (diagnostic.severity, style), (place, "accent")])
        lines += [[("    " + text, "strong")] for text in wrap(diagnostic.message, width - 5)]
        lines += [[("    " + text, "dim")] for text in _context(diagnostic.context, width - 4)]
    return Messages(lines, starts)


def _context(context: Sequence[str], width: int) -> list[str]:
    """The source line and the caret below it. Where the caret is beyond `width`, what stands before it is
    left out of both, and of a correction below.
    """
    lines = [clean(text) for text in context]
    at = next((i for i, text in enumerate(lines) if _CARET.fullmatch(text)), None)
    if at is None or not 0 < width < lines[at].rstrip().rindex("^") + _AFTER_CARET:
        return lines
    caret = lines[at].index("^")
    gutter = lines[at].rfind("|", 0, caret) + 1
    left_out = caret - gutter - (width - gutter) * 2 // 3
    if left_out <= 0:
        return lines
    for i in range(max(0, at - 1), min(len(lines), at + 2)):
        if lines[i][gutter - 1 : gutter] == lines[at][gutter - 1 : gutter]:
            rest = lines[i][gutter + left_out :]
            mark = "…" if lines[i][gutter : gutter + left_out].strip() else " "
            lines[i] = lines[i][:gutter] + mark + rest[1:]
    return lines


def diff(found: Sequence[DiffLine], title: str, width: int) -> list[Line]:
    """A source diff with the lines' numbers."""
    lines: list[Line] = fold([(title, "strong")], width)
    if not found:
        return [*lines, [("no difference", "dim")]]
    for line in found:
        if line.kind in ("file", "place"):
            lines.append([(clean(line.text), _DIFF[line.kind])])
            continue
        sign = {"added": "+", "removed": "-"}.get(line.kind, " ")
        numbers = f"{line.old or '':>5} {line.new or '':>5} "
        lines.append([(numbers, "number"), (f"{sign} {clean(line.text)}", _DIFF[line.kind])])
    return lines


@dataclass(frozen=True)
class Sides:
    """Two attempts against each other. `gain` is the first's time by the second's with its interval."""

    first: Row
    second: Row
    gain: float | None = None
    interval: tuple[float, float] | None = None


def compare(sides: Sides, found: Sequence[DiffLine], width: int) -> list[Line]:
    """Figures of two attempts beside each other, then what differs in the source."""
    a, b = sides.first, sides.second
    w = max(12, min(24, (width - 11) // 2))
    lines: list[Line] = [[(f"{'':>9} {f'attempt {a.number}':>{w}} {f'attempt {b.number}':>{w}}", "heading")]]
    lines.append(
        [
            (f"{'verdict':>9} ", "dim"),
            (f"{a.verdict:>{w}}", verdict_style(a.verdict)),
            (f" {b.verdict:>{w}}", verdict_style(b.verdict)),
        ]
    )
    table = (
        ("median", with_interval(a.median_ns, a.interval_ns), with_interval(b.median_ns, b.interval_ns)),
        ("captured", duration(a.baseline_ns), duration(b.baseline_ns)),
        ("speedup", ratio(a.speedup), ratio(b.speedup)),
        ("lines", lines_changed(a.changed), lines_changed(b.changed)),
        ("compile", seconds(a.build_s), seconds(b.build_s)),
        ("replay", seconds(a.replay_s), seconds(b.replay_s)),
        ("compare", seconds(a.validate_s), seconds(b.validate_s)),
    )
    lines += [[(f"{name:>9} ", "dim"), (f"{one:>{w}} {other:>{w}}", "")] for name, one, other in table]
    lines.append([("", "")])
    if not (a.passed and b.passed):
        wrong = " and ".join(f"attempt {row.number} is {row.verdict}" for row in (a, b) if not row.passed)
        lines += [[(part, "bad")] for part in wrap(f"{wrong}: only right results have a speedup.", width)]
    elif sides.gain is not None:
        text = f"attempt {b.number} takes {1 / sides.gain:.4g} of the time of attempt {a.number}"
        if sides.interval is not None:
            low, high = 1 / sides.interval[1], 1 / sides.interval[0]
            text += f" (95 %: {low:.4g} to {high:.4g})"
        style = "good" if sides.gain > 1 else "warn"
        lines += [[(part, style)] for part in wrap(text, width)]
    lines.append([("", "")])
    return [*lines, *diff(found, f"source: attempt {a.number} to attempt {b.number}", width)]
