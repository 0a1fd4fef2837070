"""The configuration pane's lines: what is pinned, and the candidates in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from rich.cells import cell_len

from kerncap.core.build.compile_file import VARIANT_TRITON
from kerncap.core.build.triton_pinned import TUNED_OPTIONS, Pinned
from kerncap.core.loop.candidates import CandidateResult, cached_text, edited_text
from kerncap.tui.widgets.line_table import fitted
from kerncap.tui.workbench.configuration import Configuration
from kerncap.tui.workbench.figures import duration
from kerncap.tui.workbench.lines import Line, fold, wrap
from kerncap.tui.workbench.validation_text import verdict_style

CANDIDATES = "candidates"  # the heading of the table
_LABEL = 12
_FIGURES = ("replayed", "time", "verdict", "changed", "max abs")
_PROGRAM = ("in program", "programs")
_VERDICT = _FIGURES.index("verdict")
_ABOVE = 8  # lines over the rows of the table
# Shapes of the table: how many of the program's columns, cells between columns, what names lose in front.
_SHAPES = (*product((2, 1, 0), (2, 1), ("",)), (0, 1, "num_"))
_PINNED, _CHOSEN = "▸", "◆"


def report(found: Configuration | None, width: int, height: int) -> list[Line]:
    """All of the pane, and as much of it as can be within `height`."""
    if found is None:
        return [[("This kernel is none of Triton's: it has no pinned configuration.", "dim")]]
    # What nobody tunes comes last: it is long, and the table is to be in view on a low screen.
    return [
        *_pinned(found.pinned, width),
        [("", "")],
        *_candidates(found, width, height),
        *_others(found.pinned, width),
    ]


def _pinned(pinned: Pinned, width: int) -> list[Line]:
    lines = fold([("pinned", "heading"), (f"  what ran; pinned() in {VARIANT_TRITON} has it", "dim")], width)
    lines += _labelled("grid", [" x ".join(map(str, pinned.grid)) + " programs"], width)
    lines += _labelled("constexprs", _pairs(pinned.constexprs), width)
    tuned = {name: text for name, text in pinned.options.items() if name in TUNED_OPTIONS}
    lines += _labelled("options", _pairs(tuned), width)
    for change in pinned.changes:
        text = f"{change.before or 'absent'} → {change.after or 'absent'}"
        lines += _labelled("edited", [f"{change.name}: {text}"], width, "warn")
    if pinned.problem:
        lines += _labelled("edited", [pinned.problem], width, "bad")
    return lines


def _others(pinned: Pinned, width: int) -> list[Line]:
    """The options that only Triton sets."""
    others = {name: text for name, text in pinned.options.items() if name not in TUNED_OPTIONS}
    lines = _labelled("others", _pairs(others), width, "dim")
    return [[("", "")], *lines] if lines else []


def _pairs(values: Mapping[str, str]) -> list[str]:
    return [f"{name}={text}" for name, text in values.items()]


def _labelled(label: str, texts: list[str], width: int, style: str = "") -> list[Line]:
    parts = wrap("  ".join(texts), max(20, width - _LABEL)) if texts else []
    return [
        [(f"{'' if number else label:<{_LABEL}}", "accent"), (part, style)]
        for number, part in enumerate(parts)
    ]


def _candidates(found: Configuration, width: int, height: int) -> list[Line]:
    if found.none:
        return [[(CANDIDATES, "heading")], *_said(found.none, width, "dim")]
    names = dict.fromkeys(name for tried in found.tried for name in tried.values)
    varying = [n for n in names if len({t.values.get(n) for t in found.tried}) > 1] or list(names)[:1]
    same = [f"{n}={found.tried[0].values[n]}" for n in names if n not in varying]
    lines = fold([(CANDIDATES, "heading"), (f"  {_what(found)}", "dim")], width)
    if found.source is not None and found.source.edited:
        lines += _said(edited_text(found.source.edited), width, "warn")
    if found.saved_since:
        lines += _said("The source was saved since: these replays are of what it was before.", width, "warn")
    lines += _table(found, varying, width, height)
    legend = f"{_PINNED} pinned   {_CHOSEN} chosen by the autotuner   time: against the pinned one's"
    lines += _said(legend, width, "dim")
    if same:
        lines += _said(f"the same in all: {', '.join(same)}", width, "dim")
    if found.cached:
        timed = any(t.recorded.program_ms is not None for t in found.tried)
        lines += _said(cached_text(timed), width, "dim")
    if not found.tuned:
        lines += _said("The autotuner had not chosen yet when the capture was made.", width, "warn")
    for tried in found.tried:
        if tried.result.problem:
            lines += _said(f"{tried.result.configuration}: {tried.result.problem}", width, "bad")
    return [*lines, *(_said(found.problem, width, "bad") if found.problem else [])]


def _table(found: Configuration, varying: list[str], width: int, height: int) -> list[Line]:
    """A line a candidate; two where the figures have no room beside the values. On a low screen the program's
    columns are left out before that.
    """
    pinned_ns = next((t.result.median_ns for t in found.tried if t.result.captured), None)
    results = [t.result for t in found.tried]
    marks = ["", *map(_marks, results)]
    values = [varying, *([t.values.get(name, "-") for name in varying] for t in found.tried)]
    figures = [list(_FIGURES), *(_figures(result, pinned_ns) for result in results)]
    program = [list(_PROGRAM), *(_program(result) for result in results)]
    styles = ["accent", *("strong" if result.captured else "" for result in results)]
    verdicts = ["accent", *(verdict_style(r.verdict) if r.verdict else "dim" for r in results)]
    figure_widths = _widths(figures)
    lines: list[Line] = []
    at = len(varying) + 1
    low = 2 * len(found.tried) > height - _ABOVE
    for beside, gap, prefix in _SHAPES if low else _SHAPES[:2]:
        values[0] = [name.removeprefix(prefix) for name in varying]
        rows = [[m, *v, *f, *p[:beside]] for m, v, f, p in zip(marks, values, figures, program, strict=True)]
        widths = _widths(rows)
        if sum(widths) + gap * (len(widths) - 1) <= width:
            for row, style, verdict in zip(rows, styles, verdicts, strict=True):
                lines.append(_row(row, widths, style, {at + _VERDICT: verdict}, gap))
            return lines
    lines.append([("  ", ""), *_row(figures[0], figure_widths, "accent", {})])
    for index, tried in enumerate(found.tried, 1):
        text = ", ".join(_pairs({name: tried.values.get(name, "-") for name in varying}))
        ran = ", ".join(cell for cell in program[index] if cell != "-")
        said = f"   in the program {ran}" if ran else ""
        lines.append([(f"{marks[index]} {text}".strip(), styles[index] or "accent"), (said, "dim")])
        cells = _row(figures[index], figure_widths, styles[index], {_VERDICT: verdicts[index]})
        lines.append([("  ", ""), *cells])
    return lines


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]


def _row(
    cells: Sequence[str], widths: Sequence[int], style: str, others: Mapping[int, str], gap: int = 2
) -> Line:
    line: list[tuple[str, str]] = []
    for at, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        left = at in others or cell == _FIGURES[_VERDICT] or (at == 0 and cell[:1] in ("", _PINNED, _CHOSEN))
        text = fitted(cell, width, "left" if left else "right")
        line += [(" " * gap if at else "", ""), (text, others.get(at, style))]
    return line


def _what(found: Configuration) -> str:
    if found.now:
        return f"{found.now} is compiled, timed and compared"
    return "of the program's autotuner; T tries them"


def _marks(row: CandidateResult) -> str:
    return (_PINNED if row.captured else "") + (_CHOSEN if row.chosen else "")


def _figures(row: CandidateResult, pinned_ns: float | None) -> list[str]:
    ratio = row.median_ns / pinned_ns if row.median_ns is not None and pinned_ns else None
    return [
        duration(row.median_ns),
        f"{ratio:.3f}x" if ratio is not None else "-",
        row.verdict or "-",
        f"{row.changed_share:.2%}" if row.changed_share is not None else "-",
        f"{row.max_abs:.3g}" if row.max_abs is not None else "-",
    ]


def _program(row: CandidateResult) -> list[str]:
    return [
        f"{row.program_ms:.3f} ms" if row.program_ms is not None else "-",
        "x".join(map(str, row.grid)) if row.grid else "-",
    ]


def _said(text: str, width: int, style: str) -> list[Line]:
    return [[(part, style)] for part in wrap(text, max(20, width))]
