"""How the rows of a terminal are shared between the ranking and the panes below it."""

from __future__ import annotations

FLAT = 18  # rows; below, no pane is shown unasked
BROAD = 160  # columns from which the detail pane stands beside the ranking
ROOM_FOR_PANES = (100, 30)  # columns and rows from which detail and output are shown unasked
_LEAST, _LEAST_NARROW, _STEP = 13, 9, 4


def shown_unasked(width: int, height: int) -> dict[str, bool]:
    """Which panes there is room for."""
    roomy = height >= ROOM_FOR_PANES[1]
    return {"detail": width >= BROAD or (width >= ROOM_FOR_PANES[0] and roomy), "output": roomy}


def detail_rows(size: tuple[int, int], wanted: int, left: int) -> int | None:
    """The height of the detail pane, which wants `wanted` rows and of which the ranking leaves `left`; None
    where the style sheet says it.

    It grows in steps, since another height is another layout, which costs more than all the rest.
    """
    width, height = size
    if width >= BROAD or height < FLAT:
        return None
    least = _LEAST if width >= ROOM_FOR_PANES[0] else _LEAST_NARROW
    steps = -(-(wanted - least) // _STEP)
    return max(least, min(least + steps * _STEP, left))
