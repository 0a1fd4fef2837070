"""The autotuner's candidates of a Triton kernel: the program's figures, and the same capture under each."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from kerncap.core.candidates import HEADINGS, LEFT, CandidateResult, as_recorded, candidates, cells
from kerncap.core.errors import KerncapError
from kerncap.tui.screens.base import KerncapDialog
from kerncap.tui.widgets.line_table import fitted

_KEYS = "r replays the capture under each   esc goes back"


class Ran(Message):
    """One candidate has been replayed, or could not be."""

    def __init__(self, row: CandidateResult) -> None:
        super().__init__()
        self.row = row


class RanAll(Message):
    """The last one has; `problem` says why there are no more."""

    def __init__(self, problem: str = "") -> None:
        super().__init__()
        self.problem = problem


def table(rows: list[CandidateResult]) -> str:
    """Headings and a line a candidate, in columns."""
    lines = [list(HEADINGS), *(cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    aligned = [
        [
            fitted(cell, width, "left" if i in LEFT else "right")
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in lines
    ]
    return "\n".join("  ".join(line).rstrip() for line in aligned)


class CandidatesDialog(KerncapDialog[None]):
    """Opened with what the capture has; `r` fills in times and verdicts as they come."""

    DEFAULT_CSS = """
    CandidatesDialog { align: center middle; }
    CandidatesDialog > VerticalScroll { width: auto; max-width: 98%; height: auto; max-height: 96%;
                                        padding: 0 1; border: round $primary; background: $surface;
                                        border-title-color: $accent; }
    CandidatesDialog Static { width: auto; height: auto; }
    CandidatesDialog #candidates-state { margin-top: 1; color: $foreground 60%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("r", "run", "Replay", show=False)]

    def __init__(self, directory: Path, device: str | None = None) -> None:
        """Raises UsageError where the capture has no candidates."""
        super().__init__()
        self._directory = directory
        self._device = device
        self._rows = as_recorded(directory)
        self._done = 0
        self._busy = False
        self._cancel = threading.Event()

    def compose(self) -> ComposeResult:
        """The table, and how far it is."""
        with VerticalScroll() as box:
            box.border_title = "the autotuner's candidates"
            yield Static(Content(table(self._rows)), markup=False, id="candidates-table")
            yield Static(_KEYS, markup=False, id="candidates-state")

    def on_mount(self) -> None:
        """The cursor keys scroll."""
        self.query_one(VerticalScroll).focus()

    def on_unmount(self) -> None:
        """No more are begun."""
        self._cancel.set()

    def _state(self, text: str) -> None:
        self.query_one("#candidates-state", Static).update(Content(text))

    def action_run(self) -> None:
        """Replays the capture under each candidate, once."""
        if self._busy:
            return
        self._busy, self._done = True, 0
        self._state(f"compiling and replaying 1 of {len(self._rows)} ...   esc gives up")
        self._replay_each()

    @work(thread=True, exclusive=True, group="candidates", exit_on_error=False)
    def _replay_each(self) -> None:
        try:
            candidates(
                self._directory,
                device=self._device,
                on_result=lambda row: void(self.post_message(Ran(row))),
                cancel=self._cancel,
            )
        except KerncapError as error:
            self.post_message(RanAll(error.message))
        else:
            self.post_message(RanAll())

    def on_ran(self, message: Ran) -> None:
        """Its line is filled in; they come in their order."""
        self._rows[self._done] = message.row
        self._done += 1
        self.query_one("#candidates-table", Static).update(Content(table(self._rows)))
        if self._done < len(self._rows):
            self._state(f"compiling and replaying {self._done + 1} of {len(self._rows)} ...   esc gives up")

    def on_ran_all(self, message: RanAll) -> None:
        """What became of it."""
        self._busy = False
        problems = [f"{row.configuration}: {row.problem}" for row in self._rows if row.problem]
        self._state("\n".join([*([message.problem] if message.problem else []), *problems, _KEYS]))


def void(_: object) -> None:
    """For callbacks that return nothing."""
