"""The validation diff as lines: verdict, regions, errors, their histogram and map, elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kerncap.tui.workbench import heatmap
from kerncap.tui.workbench.figures import size, value
from kerncap.tui.workbench.lines import Line, fold, wrap
from kerncap.tui.workbench.model import PASSED, judged_with

_FIRST_ELEMENTS = 8
_RELATIVE = "rel is |actual - expected| / |expected|, inf where 0 was expected"
_FIXED_SPACE = "\N{NO-BREAK SPACE}"
_BAR = "█▏▎▍▌▋▊▉"


def verdict_style(verdict: str) -> str:
    """The style of a verdict's word."""
    if verdict in PASSED:
        return "good"
    return "warn" if verdict in ("INCONCLUSIVE", "RAN", "given up", "kept") else "bad"


def regions_of(validation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The regions that a validation is about, those with mismatches first."""
    found = validation.get("regions")
    return [r for r in found if isinstance(r, dict)] if isinstance(found, list) else []


def report(
    validation: Mapping[str, Any], *, selected: int, width: int, map_height: int = 8, plain: bool = False
) -> list[Line]:
    """The whole diff. `selected` is the index of the region whose elements are shown."""
    width = max(width, 30)
    verdict = str(validation.get("verdict") or "no verdict yet")
    lines: list[Line] = []
    reason = str(validation.get("reason") or validation.get("summary") or "")
    lines += [[(text, "")] for text in (wrap(reason, width - 1) if reason else [])]
    mode = str(validation.get("mode") or "")
    heading = [(verdict, verdict_style(verdict))]
    if mode and mode != "default":
        heading.append((f"  {mode}", "accent"))
    if judged := judged_with(validation):
        heading.append((f"  {judged}", "accent"))
    heading.append((f"  {_sizes(validation)}", "dim"))
    lines[:0] = fold(heading, width)
    for warning in validation.get("warnings") or []:
        lines += [[(text, "warn")] for text in wrap(f"! {warning}", width - 1)]
    regions = regions_of(validation)
    if not regions:
        return lines
    selected = max(0, min(selected, len(regions) - 1))
    lines.append([("", "")])
    lines += _region_table(regions, selected, width)
    region = regions[selected]
    lines.append([("", "")])
    lines += _errors(region, width)
    found = region.get("error_map") or {}
    if found.get("cells"):
        lines.append([("", "")])
        lines += _map(region, found, width, map_height, plain)
    elements = region.get("elements") or []
    if elements:
        lines.append([("", "")])
        lines += _elements(
            elements[:_FIRST_ELEMENTS], int(region.get("mismatches") or 0), width, heading=True
        )
    histograms = _histograms(region, width)
    if histograms:
        lines.append([("", "")])
        lines += histograms
    if len(elements) > _FIRST_ELEMENTS:
        lines.append([("", "")])
        lines += _elements(
            elements[_FIRST_ELEMENTS:], int(region.get("mismatches") or 0), width, heading=False
        )
    return lines


def _sizes(validation: Mapping[str, Any]) -> str:
    words = []
    for name, word in (
        ("compared_bytes", "compared"),
        ("masked_bytes", "vary"),
        ("skipped_bytes", "skipped"),
    ):
        number = validation.get(name)
        if isinstance(number, int) and (number or name == "compared_bytes"):
            words.append(f"{size(number)} {word}")
    return ", ".join(words)


def _region_table(regions: Sequence[Mapping[str, Any]], selected: int, width: int) -> list[Line]:
    narrow = width < 72
    heading = f"  {'region':>6} {'size':>9} {'type':<7} {'wrong':>9} {'max abs':>10}"
    lines: list[Line] = [[(heading if narrow else heading + f" {'max rel':>9} {'max ulp':>11}", "heading")]]
    for i, region in enumerate(regions):
        wrong = int(region.get("mismatches") or 0)
        text = (
            f"{region.get('id'):>6} {size(region.get('bytes') or 0):>9} {str(region.get('dtype'))[:7]:<7} "
            f"{wrong:>9} {_short(region.get('max_abs')):>10}"
        )
        if not narrow:
            text += f" {_short(region.get('max_rel')):>9} {_short(region.get('max_ulp')):>11}"
        lines.append([("▶ " if i == selected else "  ", "accent"), (text, "bad" if wrong else "")])
    return lines


def _short(number: Any) -> str:
    if number is None:
        return "-"
    return f"{number:.3g}" if isinstance(number, float) else str(number)


def _errors(region: Mapping[str, Any], width: int) -> list[Line]:
    words = [f"max abs {_short(region.get('max_abs'))}", f"max rel {_short(region.get('max_rel'))}"]
    words += [f"max ulp {_short(region.get('max_ulp'))}", f"rms {_short(region.get('rms'))}"]
    # A figure stays with its name where the line is wrapped.
    first = " · ".join(word.replace(" ", _FIXED_SPACE) for word in words)
    extra = []
    for name, word in (
        ("new_nans", "new NaNs"),
        ("tolerated", "tolerated"),
        ("signed_zeros", "signed zeros"),
    ):
        if region.get(name):
            extra.append(f"{region[name]} {word}")
    if region.get("masked_bytes"):
        extra.append(f"{size(region['masked_bytes'])} vary in the captured kernel")
    head = f"region {region.get('id')} at {region.get('address')}  "
    if len(head) + len(first) < width:
        lines: list[Line] = [[(head, "strong"), (first.replace(_FIXED_SPACE, " "), "")]]
    else:
        lines = [
            [(head, "strong")],
            *[[("  " + text.replace(_FIXED_SPACE, " "), "")] for text in wrap(first, width - 3)],
        ]
    if region.get("max_abs") is not None or region.get("error_histogram"):
        lines += [[(f"  {text}", "dim")] for text in wrap(_RELATIVE, width - 3)]
    if extra:
        lines += fold([("  " + " · ".join(extra), "warn")], width)
    return lines


def _elements(elements: Sequence[Mapping[str, Any]], total: int, width: int, *, heading: bool) -> list[Line]:
    lines: list[Line] = []
    room = max(10, min(16, (width - 20) // 2))  # for a value
    if heading:
        lines.append([(f"{'element':>9} {'expected':>{room}} {'actual':>{room}} {'rel':>8}", "heading")])
    for element in elements:
        lines.append(
            [
                (f"{element.get('index'):>9} {value(element.get('expected')):>{room}} ", ""),
                (f"{value(element.get('actual')):>{room}}", "bad"),
                (f" {_short(element.get('relative')):>8}", "dim"),
            ]
        )
    left = total - len(elements) - (0 if heading else _FIRST_ELEMENTS)
    if left > 0:
        where = "more below" if heading else "more, not listed"
        lines.append([(f"{'':>10} and {left} {where}", "dim")])
    return lines


def bar(share: float, width: int) -> str:
    """A bar of eighths."""
    eighths = max(1, round(share * width * 8)) if share > 0 else 0
    return "█" * (eighths // 8) + (_BAR[eighths % 8] if eighths % 8 else "")


def _histogram(title: str, counts: Mapping[str, int], width: int) -> list[tuple[str, str]]:
    most = max(counts.values())
    rows = [(f"{title:<{width}}", "heading")]
    for name, count in counts.items():
        head = f"{name:>10} {count:>8} "
        rows.append((f"{head}{bar(count / most, max(4, width - len(head) - 2)):<{width - len(head)}}", "bar"))
    return rows


def _histograms(region: Mapping[str, Any], width: int) -> list[Line]:
    blocks = []
    found = [
        ("rel, from", region.get("error_histogram")),
        ("units in the last place", region.get("ulp_histogram")),
    ]
    present = [(title, counts) for title, counts in found if counts]
    beside = width >= 80 and len(present) == 2
    each = (width - 2) // 2 if beside else width - 1
    for title, counts in present:
        blocks.append(_histogram(title, counts, min(each, 60)))
    if not beside:
        return [[row] for block in blocks for row in block]
    lines: list[Line] = []
    for i in range(max(len(b) for b in blocks)):
        left = blocks[0][i] if i < len(blocks[0]) else (" " * min(each, 60), "")
        right = blocks[1][i] if i < len(blocks[1]) else ("", "")
        lines.append([left, ("  ", ""), right])
    return lines


def _map(
    region: Mapping[str, Any], found: Mapping[str, Any], width: int, height: int, plain: bool
) -> list[Line]:
    whole = int(region.get("bytes") or 0)
    extent = region.get("extent") or [0, whole]
    grid = heatmap.pool(dict(found), extent, whole, width - 2, height if plain else height * 2)
    head = f"where, bytes {grid.first} to {grid.end}"
    tail = f", {grid.columns} squares of {grid.square} B a line"
    lines: list[Line] = [[(head + (tail if len(head + tail) < width else ""), "heading")]]
    lines += [[("  ", ""), *line] for line in heatmap.draw(grid, plain=plain)]
    lines.append([("  ", ""), *heatmap.legend(plain=plain)])
    return lines
