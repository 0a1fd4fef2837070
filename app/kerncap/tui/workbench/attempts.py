"""The table of attempts: what changed, how long each step took, the kernel's time, the verdict."""

from __future__ import annotations

from dataclasses import dataclass

from kerncap.tui.widgets.line_table import LineTable, fitted
from kerncap.tui.workbench.figures import lines_changed, ratio, seconds, with_interval
from kerncap.tui.workbench.model import Model, Row
from kerncap.tui.workbench.validation_text import verdict_style

_TABLE = {"good": "good", "bad": "bad", "warn": "warn"}


@dataclass(frozen=True)
class Column:
    """One column. `least` is the width of the table from which on it is shown: the verdict, which comes after
    all of them, is never cut for it.
    """

    title: str
    width: int
    least: int = 0


COLUMNS = (
    Column("#", 4),
    Column("lines", 9, 72),
    Column("compile", 9, 86),
    Column("replay", 8, 102),
    Column("compare", 8, 102),
    Column("median", 18),
    Column("vs captured", 12, 56),
    Column("vs best", 9, 72),
)


class AttemptsTable(LineTable):
    """Rows are keyed by the attempt's number; `set_model` says where they come from."""

    def __init__(self, model: Model, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.model = model
        self.marked: int | None = None  # the first of two to compare
        self.empty_text = "no attempt yet: save the source, or press b"

    def _columns(self) -> list[Column]:
        return [c for c in COLUMNS if self.size.width >= c.least]

    def heading(self) -> list[tuple[str, str]]:
        """The columns' titles."""
        pieces = [(" " + "".join(fitted(c.title, c.width, "right") for c in self._columns()), "heading")]
        return [*pieces, ("  verdict", "heading")]

    def row(self, index: int) -> list[tuple[str, str]]:
        """One attempt. A wrong result has no speedup: `-` in its place. Its median and the rest are dim."""
        row = self.model.rows[int(self.keys[index])]
        best = self.model.best
        is_best = best is not None and best.number == row.number
        mark = "★" if is_best else ("c" if self.marked == row.number else " ")
        pieces = [(mark, "good" if is_best else "mark")]
        plain = "" if row.passed else "dim"
        for column in self._columns():
            text, style = self._cell(column.title, row)
            pieces.append((fitted(text, column.width, "right"), style if row.passed else plain))
        verdict = row.verdict + (f" {row.mode}" if row.mode != "default" else "")
        pieces.append((f"  {verdict}", _TABLE.get(verdict_style(row.verdict), "")))
        return pieces

    def _cell(self, title: str, row: Row) -> tuple[str, str]:
        if title == "#":
            return str(row.number), ""
        if title == "lines":
            return lines_changed(row.changed), ""
        if title == "compile":
            return seconds(row.build_s), ""
        if title == "replay":
            return seconds(row.replay_s), ""
        if title == "compare":
            return seconds(row.validate_s), ""
        if title == "median":
            return with_interval(row.median_ns, row.interval_ns), ""
        if title == "vs captured":
            return ratio(row.speedup), {"FASTER": "good", "SLOWER": "bad"}.get(row.speed, "")
        return ratio(self.model.against_best(row)), ""

    @property
    def number(self) -> int | None:
        """The attempt under the cursor."""
        return int(self.cursor) if self.cursor is not None else None

    def renew(self, *, to_newest: bool = False) -> None:
        """Draws the model as it is now."""
        keys = [str(n) for n in self.model.numbers]
        self.set_keys(keys)
        if to_newest and keys:
            self.select(keys[-1])
