"""A picture of a terminal as its cells, so that two ways to draw the same screen are the same picture."""

from __future__ import annotations

import html
import re

from rich.cells import cell_len

_STYLE = re.compile(r"\.terminal-\d+-(r\d+) \{([^}]*)\}")
_TEXT = re.compile(r'<text class="terminal-\d+-(r\d+)" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>')
_RECT = re.compile(r'<rect fill="([^"]+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"')
_WIDTH, _HEIGHT = 12.2, 24.4

Cells = dict[tuple[int, int], tuple[str, str, str]]


def cells(svg: str) -> Cells:
    """(line, column) to (character, its style, background). Blanks have no style."""
    styles = {name: " ".join(style.split()) for name, style in _STYLE.findall(svg)}
    grounds: dict[tuple[int, int], str] = {}
    for fill, x, y, width in _RECT.findall(svg):
        line, first = int(float(y) / _HEIGHT), round(float(x) / _WIDTH)
        for column in range(first, first + round(float(width) / _WIDTH)):
            grounds[line, column] = fill
    found: Cells = {place: (" ", "", ground) for place, ground in grounds.items()}
    for name, x, y, text in _TEXT.findall(svg):
        line, column = int(float(y) / _HEIGHT), round(float(x) / _WIDTH)
        for char in html.unescape(text).replace("\xa0", " "):
            if char not in " \n":
                found[line, column] = (char, styles.get(name, ""), grounds.get((line, column), ""))
            column += cell_len(char)
    return found


def differences(one: str, other: str, most: int = 8) -> list[str]:
    """The first cells that differ, in words."""
    a, b = cells(one), cells(other)
    assert len(a) > 500, "no picture of a terminal"
    blank = (" ", "", "")
    places = sorted(p for p in a.keys() | b.keys() if a.get(p, blank) != b.get(p, blank))
    return [f"line {y}, column {x}: {a.get((y, x))} was {b.get((y, x))}" for y, x in places[:most]]
