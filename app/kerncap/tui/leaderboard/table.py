"""The ranked rows."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from kerncap.core.code.names import base_name, one_line
from kerncap.core.code.telling import code_marks, told_apart
from kerncap.tui.leaderboard import columns as c
from kerncap.tui.leaderboard.ranking import Filter, Sort, Trends, keep_order, name_order, ordered, share
from kerncap.tui.messages import Board
from kerncap.tui.widgets.line_table import LineTable, fitted

if TYPE_CHECKING:
    from kerncap.core.program.live import KernelStats


_LEAST_OF_A_NAME = 8


class BoardTable(LineTable):
    """Draws a `Board`: sorted, filtered, marked; the order can be frozen while figures go on."""

    def __init__(self) -> None:
        super().__init__(id="board")
        self.board = Board()
        self.sort = Sort()
        self.filter = Filter()
        self.idle_text = ""  # what is said while there is no kernel at all
        self.frozen = False
        self.wide = False
        self.marked: set[str] = set()
        self.trends = Trends()
        self.shown: list[KernelStats] = []
        self._total_ns = 0
        self._order: dict[str, None] = {}
        self._total_calls = 0
        self._fits: dict[str, bool] = {}
        self._names: dict[str, tuple[str, str]] = {}
        self._marks: dict[str, tuple[str, ...]] = {}  # of kernels that share their name, longest first
        self._columns: list[tuple[c.Column, int]] = []
        self._arranged_for = (0, False)

    # What is shown

    def take(self, board: Board) -> None:
        """New figures."""
        self.board = board
        self.trends.add(board.kernels, board.elapsed_s)
        self.rank()

    def rank(self) -> None:
        """Orders and filters the figures at hand, and draws what has changed."""
        kernels = self.board.kernels
        self._total_ns = sum(map(attrgetter("total_ns"), kernels))
        self._total_calls = sum(map(attrgetter("calls"), kernels))
        shown: Sequence[KernelStats] = kernels
        if self.filter.pattern is not None:
            fits = self._fits
            for kernel in kernels:
                if kernel.id not in fits:
                    fits[kernel.id] = self.filter.fits(kernel)
            shown = [k for k in kernels if fits[k.id]]
        if len(self._order) != len(kernels):  # within a run kernels are only added
            self._order = name_order(kernels)
            self._marks = marks_of(self.board)
        self.shown = ordered(shown, self.sort, self._order)
        if self.frozen:
            self.shown = keep_order(self.shown, self.keys)
        self.empty_text = f"No kernel fits /{self.filter.text}" if kernels else self.idle_text
        self.set_keys([k.id for k in self.shown])

    def set_filter(self, wanted: Filter) -> None:
        """Another filter."""
        self.filter = wanted
        self._fits.clear()
        self.rank()

    def clear(self) -> None:
        """Another run: figures and trends begin anew; sort, filter and marks stay."""
        self.board = Board()
        self.trends = Trends()
        self.rank()

    @property
    def selected(self) -> KernelStats | None:
        """The kernel under the cursor."""
        return self.shown[self.index] if self.shown and self.index < len(self.shown) else None

    def chosen(self) -> list[KernelStats]:
        """The marked kernels in the order shown; the selected one where none is marked."""
        marked = [k for k in self.shown if k.id in self.marked]
        return marked or ([self.selected] if self.selected else [])

    # Lines

    def _arranged(self) -> list[tuple[c.Column, int]]:
        """The columns for the width at hand."""
        shape = (self.size.width, self.wide)
        if shape != self._arranged_for:
            self._arranged_for = shape
            self._columns = c.chosen(*shape)
        return self._columns

    def heading(self) -> list[tuple[str, str]]:
        """Titles; the sorted one with its direction."""
        cells = []
        for index, (column, width) in enumerate(self._arranged()):
            title = column.title
            style = "heading"
            if column.sort and column.sort == self.sort.key:
                arrow = "▼" if self.sort.descending else "▲"
                title = title + arrow if column.align == "left" else arrow + title
                style = "heading-sorted"
            if index:
                cells.append((" ", "heading"))
            text = fitted(title, width, column.align)
            if style == "heading-sorted":
                lead = len(text) - len(text.lstrip())
                trail = len(text) - len(text.rstrip())
                cells += [
                    (" " * lead, "heading"),
                    (text.strip(), style),
                    (" " * trail, "heading"),
                ]
            else:
                cells.append((text, style))
        return cells

    def row(self, index: int) -> list[tuple[str, str]]:
        """One kernel."""
        kernel = self.shown[index]
        part = share(kernel, self._total_ns, self._total_calls)
        quiet = "dim" if kernel.kind == "runtime" else ""
        cells: list[tuple[str, str]] = []
        for place, (column, width) in enumerate(self._arranged()):
            if place:
                cells.append((" ", ""))
            match column.name:
                case "mark":
                    cells.append(("●" if kernel.id in self.marked else " ", "mark"))
                case "rank":
                    cells.append((fitted(str(index + 1), width, "right"), "dim"))
                case "name":
                    cells.append((fitted(self._label(kernel, width), width), quiet))
                case "kind":
                    cells.append((fitted(kernel.kind, width), "dim"))
                case "calls":
                    cells.append((fitted(c.count(kernel.calls), width, "right"), quiet))
                case "total":
                    total = c.duration(kernel.total_ns)
                    cells.append((fitted(f"~{total}" if kernel.estimated else total, width, "right"), quiet))
                case "share":
                    cells.append((fitted(f"{100 * part:.1f}", width, "right"), quiet))
                case "bar":
                    cells.append((c.bar(part, width), "bar"))
                case "mean":
                    cells.append((fitted(c.duration(kernel.mean_ns), width, "right"), quiet))
                case "min":
                    cells.append((fitted(c.duration(kernel.min_ns), width, "right"), quiet))
                case "max":
                    cells.append((fitted(c.duration(kernel.max_ns), width, "right"), quiet))
                case "trend":
                    cells.append((c.sparkline(self.trends.of(kernel.id), width), "accent"))
        return cells

    def _label(self, kernel: KernelStats, width: int) -> str:
        """The whole name where it fits or is asked for; else without return type, scopes and parameters."""
        names = self._names.get(kernel.id)
        if names is None:
            names = self._names[kernel.id] = (one_line(kernel.name), one_line(short_name(kernel.name)))
        whole, short = names
        marks = self._marks.get(kernel.id, ("",))
        # Cut, one would not tell rows apart: the first that leaves room for the name, else for some of it.
        least = [len(short), min(len(short), _LEAST_OF_A_NAME)]
        mark = next((m for name in least for m in marks if len(m) + 1 + name <= width), marks[-1])
        room = width - len(mark) - 1 if mark else width
        label = whole if self.wide or len(whole) <= room else short
        return f"{fitted(label, min(len(label), room))} {mark}" if mark and room > 0 else label


def marks_of(board: Board) -> dict[str, tuple[str, ...]]:
    """What stands beside the names of kernels that share them: how they were compiled, or their code."""
    kernels = board.kernels
    long, brief = (told_apart(kernels, board.described, brief) for brief in (False, True))
    return {
        ident: tuple(f"({one_line(mark)})" for mark in (long[ident], brief[ident], code))
        for ident, code in code_marks(kernels).items()
    }


def short_name(name: str) -> str:
    """The name without return type, scopes and parameters, with its template arguments: `mul<4, float>`."""
    base = base_name(name)
    if base == name:
        return name
    begin = name.find(base)
    rest = name[begin + len(base) :]
    if not rest.startswith(("<", "[")):
        return base
    depth = 0
    for index, char in enumerate(rest):
        if char in "<([{":
            depth += 1
        elif char in ">)]}" and not (char == ">" and rest[index - 1 : index] == "-"):
            depth -= 1
            if depth == 0 and rest[index + 1 : index + 2] != "[":
                return base + rest[: index + 1]
    return base
