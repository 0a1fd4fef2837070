"""Where errors are, as a map of half blocks: pooled by max, so that one bad element is seen at any scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.style import Style

from kerncap.tui.workbench.lines import Line

# From hardly different to wholly wrong; black-body colours, which grow in lightness too.
_COLOURS = ("#3b0f70", "#641a80", "#8c2981", "#b73779", "#de4968", "#f7705c", "#fe9f6d", "#fecf92", "#fcfdbf")
_RIGHT = "#2a2a2a"
_SHADES = "░▒▓█"
_LEAST = -8.0  # errors below 1e-8 look like this one


@dataclass(frozen=True)
class Grid:
    """Errors by place: `rows` of `columns` squares of `square` bytes from byte `first` of the region on.

    The last square may reach beyond `end`, where the region, or what of it is compared, ends.
    """

    first: int
    end: int
    square: int
    columns: int
    rows: tuple[tuple[float, ...], ...]


def pool(error_map: dict[str, Any], extent: Sequence[int], size: int, width: int, height: int) -> Grid:
    """The map (core/judge/mismatches.py) in at most `width` x `height` squares over the bytes of `extent` and
    of errors outside of it, in a region of `size` bytes (0: not known).
    """
    cell = max(1, int(error_map.get("cell_bytes", 1)))
    cells = [(int(at), float(error)) for at, error in error_map.get("cells", [])]
    first, end = int(extent[0]), int(extent[1])
    if cells:
        first, end = min(first, cells[0][0]), max(end, cells[-1][0] + cell)
    if size:  # cells lie on whole multiples of their size in the address space: outer ones reach out
        first, end = max(first, 0), min(end, size)
    span = max(end - first, 1)
    columns = 1 << max(0, int(math.log2(max(1, width))))  # rows of matrices are mostly powers of two
    while columns > 1 and columns // 2 * cell >= span:
        columns //= 2
    square = max(cell, -(-span // (columns * max(1, height))))
    square = -(-square // cell) * cell
    count = -(-span // square)
    rows = max(1, -(-count // columns))
    grid = [[0.0] * columns for _ in range(rows)]
    for row in grid[-1:]:
        for i in range(count - (rows - 1) * columns, columns):
            row[i] = -1.0  # beyond the end
    for at, error in cells:
        for index in range((max(at, first) - first) // square, (at - first + cell - 1) // square + 1):
            y, x = divmod(index, columns)
            if y < rows:
                grid[y][x] = max(grid[y][x], error)
    return Grid(first, end, square, columns, tuple(tuple(row) for row in grid))


def level(error: float, steps: int) -> int:
    """0 .. steps-1 by the logarithm of an error over 0."""
    place = (math.log10(max(error, 1e-300)) - _LEAST) / -_LEAST
    return max(0, min(steps - 1, int(place * steps)))


def _colour(error: float) -> str | None:
    if error < 0:
        return None
    return _RIGHT if error == 0 else _COLOURS[level(error, len(_COLOURS))]


def draw(grid: Grid, *, plain: bool = False) -> list[Line]:
    """Lines of half blocks, two rows each; `plain`: one row a line in shades, where there is no colour."""
    if plain:
        return [
            [
                (
                    "".join(
                        " " if e < 0 else "·" if e == 0 else _SHADES[level(e, len(_SHADES))] for e in row
                    ),
                    "",
                )
            ]
            for row in grid.rows
        ]
    lines: list[Line] = []
    for y in range(0, len(grid.rows), 2):
        upper = grid.rows[y]
        lower = grid.rows[y + 1] if y + 1 < len(grid.rows) else (-1.0,) * grid.columns
        pieces: list[tuple[str, str | Style]] = []
        last: tuple[str | None, str | None] | None = None
        for above, below in zip(upper, lower, strict=True):
            pair = (_colour(above), _colour(below))
            if pair == last:
                pieces[-1] = (pieces[-1][0] + pieces[-1][0][-1], pieces[-1][1])
                continue
            last = pair
            if pair[0] is None and pair[1] is None:
                pieces.append((" ", ""))
            elif pair[1] is None:
                pieces.append(("▀", Style(color=pair[0])))
            else:
                pieces.append(("▀", Style(color=pair[0], bgcolor=pair[1])))
        lines.append(pieces)
    return lines


def legend(*, plain: bool = False) -> Line:
    """What the colours mean."""
    if plain:
        return [(f"· right   {_SHADES} rel 1e-8 to 1 and more", "dim")]
    pieces: list[tuple[str, str | Style]] = [("█", Style(color=_RIGHT)), (" right   rel 1e-8 ", "dim")]
    pieces += [("█", Style(color=colour)) for colour in _COLOURS]
    pieces.append((" 1 and more", "dim"))
    return pieces
