"""The demonstration's edits, made for the user: a right one, then a wrong one, then the right one again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kerncap.demo.edits import HOIST, WRONG, Edit

NOT_HERE = "E makes the edits of `kerncap demo`, whose kernel this is not: e or i edits."


def next_edit(text: str) -> Edit | None:
    """What comes next in a source with that text; None where it is not the demonstration's kernel."""
    back = Edit("take the wrong edit back", WRONG.new, WRONG.old)
    return next((edit for edit in (HOIST, back, WRONG) if text.count(edit.old) == 1), None)


def make_edit(paths: Sequence[Path]) -> tuple[Path, Edit] | None:
    """Makes the next edit in the file that it is for. Raises KerncapError or OSError where it cannot be
    written.
    """
    for path in paths:
        edit = next_edit(path.read_bytes().decode("utf-8", "replace"))
        if edit is not None:
            edit.apply(path)
            return path, edit
    return None
