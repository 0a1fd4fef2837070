"""The captures on disk: open one in the workbench, look into it, delete it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from kerncap.core.code.names import one_line
from kerncap.core.units import many
from kerncap.tui.actions import Action, bindings
from kerncap.tui.extract.progress import size_text
from kerncap.tui.messages import CapturesListed
from kerncap.tui.screens.base import KerncapDialog, KerncapScreen
from kerncap.tui.services.trouble import unexpected
from kerncap.tui.widgets.bars import StatusLine
from kerncap.tui.widgets.line_table import LineTable, fitted

if TYPE_CHECKING:
    from kerncap.core.loop.captures import Listed

GROUP = "captures"
ACTIONS = (
    Action("open", "e", "Open", "Open the workbench on the selected capture. Enter does the same.", "open"),
    Action("inspect", "i", "Inspect", "What the capture holds.", "inspect"),
    Action("delete", "x", "Delete", "Remove the capture from disk, after a question.", "delete"),
    Action("refresh", "r", "Look again", "List the captures on disk again.", "look again"),
    Action("folder", "o", "Another folder", "List the captures below another folder.", "folder"),
    Action("back", "escape", "Back", bar="back"),
)
_GOOD = ("IDENTICAL", "WITHIN_TOLERANCE", "NONDETERMINISTIC_OK")


class CaptureTable(LineTable):
    """One line a capture."""

    def __init__(self) -> None:
        super().__init__(id="captures")
        self.captures: list[Listed] = []
        self.root = Path()
        self.empty_text = "Looking for captures ..."

    def take(self, captures: list[Listed]) -> None:
        """Another list."""
        self.captures = captures
        self.set_keys([str(one.directory) for one in captures])

    @property
    def selected(self) -> Listed | None:
        """The capture under the cursor."""
        return self.captures[self.index] if self.captures else None

    def _place(self, one: Listed) -> str:
        """Where it is, from the folder that is listed."""
        try:
            return str(one.directory.relative_to(self.root))
        except ValueError:
            return str(one.directory)

    def _widths(self) -> list[tuple[str, int, str]]:
        left = self.size.width
        columns = [("device", 18 if left >= 110 else 10, "left"), ("on disk", 9, "right")]
        columns.append(("baseline", 18, "left"))
        if left >= 96:
            columns.insert(0, ("id", 6, "left"))
        if left >= 110:
            columns.append(("created", 20, "left"))
        rest = left - sum(width for _, width, _ in columns) - len(columns) - 2
        name = max(10, rest * 3 // 5)
        return [("kernel", name, "left"), *columns, ("directory", max(8, rest - name), "left")]

    def heading(self) -> list[tuple[str, str]]:
        """Titles."""
        titles = [(fitted(title, width, align) + " ", "heading") for title, width, align in self._widths()]
        return [(" ", "heading"), *titles]

    def row(self, index: int) -> list[tuple[str, str]]:
        """One capture; what is damaged says so."""
        one = self.captures[index]
        verdict = "damaged" if one.problem else one.verdict or "-"
        bad = one.problem or verdict == "FAIL"
        style = "bad" if bad else "good" if verdict in _GOOD else "warn"
        simulated = " (simulated)" if self.size.width >= 110 else " sim"
        values = {
            "kernel": (one_line(one.told) or "-", ""),
            "id": (one.short_id or "-", "dim"),
            "device": (one.arch + (simulated if one.simulated else ""), "dim"),
            "on disk": (size_text(one.bytes_on_disk), ""),
            "baseline": (verdict, style),
            "created": (one.created, "dim"),
            "directory": (one_line(self._place(one)), ""),
        }
        cells = [(" ", "")]
        for title, width, align in self._widths():
            text, name = values[title]
            if title == "kernel":  # instances differ at their end
                text = one_line(text, width)
            cells += [(fitted(text, width, align), name), (" ", "")]
        return cells


class CaptureText(KerncapDialog[None]):
    """What a capture holds, as text."""

    DEFAULT_CSS = """
    CaptureText { align: center middle; }
    CaptureText > VerticalScroll { width: 110; max-width: 98%; height: auto; max-height: 96%; padding: 0 1;
                                   border: round $primary; border-title-color: $accent; }
    CaptureText > VerticalScroll { background: $surface; }
    CaptureText Static { height: auto; }
    """

    def __init__(self, title: str, text: Content) -> None:
        super().__init__()
        self._title_text = title
        self._text = text

    def compose(self) -> ComposeResult:
        """One text that scrolls."""
        with VerticalScroll() as box:
            box.border_title = Content(self._title_text)
            yield Static(self._text, markup=False)

    def on_mount(self) -> None:
        """The cursor keys scroll."""
        self.query_one(VerticalScroll).focus()


class CapturesScreen(KerncapScreen):
    """Lists the captures at or below `root`."""

    GROUP = GROUP
    BINDINGS: ClassVar[list[BindingType]] = bindings(GROUP, "Captures", ACTIONS)
    DEFAULT_CSS = """
    CapturesScreen #where { height: 1; background: $panel; padding: 0 1; text-wrap: nowrap; }
    CapturesScreen #where { text-overflow: ellipsis; }
    """

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._root = root

    def compose_body(self) -> ComposeResult:
        """Where, and the list."""
        yield Static("", markup=False, id="where")
        yield CaptureTable()

    @property
    def table(self) -> CaptureTable:
        """The list."""
        return self.query_one(CaptureTable)

    def on_mount(self) -> None:
        """The list is made in a thread: a folder may be on a slow file system."""
        self.table.focus()
        self.action_refresh()

    def on_screen_resume(self) -> None:
        """Back from the workbench: verdicts may have changed."""
        if self.table.captures:
            self.action_refresh()

    def action_refresh(self) -> None:
        """Lists again."""
        self.table.root = self._root
        self.query_one("#where", Static).update(Content(f"captures in {self._root.absolute()}"))
        self.run_worker(self._list, thread=True, exclusive=True, group="list", exit_on_error=False)

    def _list(self) -> None:
        from kerncap.core.errors import KerncapError
        from kerncap.core.loop.captures import list_captures

        try:
            message = CapturesListed(tuple(list_captures(self._root)))
        except KerncapError as error:
            message = CapturesListed((), error.message)
        except Exception as error:
            message = CapturesListed((), unexpected(error))
        self.post_message(message)

    @on(CapturesListed)
    def _listed(self, message: CapturesListed) -> None:
        self.table.empty_text = "No capture here yet. Extract a kernel, or press o for another folder."
        self.table.take(list(message.captures))
        self.table.repaint()
        if message.sentence and self._root.exists():
            self.tell(message.sentence, "warning")
        damaged = sum(1 for one in message.captures if one.problem)
        if damaged:
            of = many(len(message.captures), "capture")
            self.tell(f"{damaged} of {of} cannot be used; i says why.", "warning")
        if self.kerncap.guided:
            self.query_one(StatusLine).hint("enter opens the workbench on a capture; esc goes back.")

    # Keys

    @on(LineTable.Chosen)
    def _chosen(self, message: LineTable.Chosen) -> None:
        message.stop()
        self.action_open()

    def _usable(self) -> Listed | None:
        one = self.table.selected
        if one is None:
            self.tell("There is no capture to open.", "warning")
        elif not one.directory.is_dir():
            self.tell(f"{one.directory} is gone.", "error")
            self.action_refresh()
        else:
            return one
        return None

    def action_open(self) -> None:
        """The workbench on the selected capture."""
        one = self._usable()
        if one is None:
            return
        if one.problem:
            self.tell(f"{one.problem}", "error")
            return
        self.kerncap.open_workbench(one.directory)

    def action_inspect(self) -> None:
        """What the capture holds."""
        one = self._usable()
        if one is None:
            return
        from kerncap.tui.captures_text import capture_text

        self.app.push_screen(CaptureText(str(one.directory), capture_text(one)))

    def action_delete(self) -> None:
        """Asks, then removes the directory."""
        one = self._usable()
        if one is None:
            return
        from kerncap.tui.widgets.confirm import Confirm

        directory = one.directory
        question = (
            f"Delete {directory}, {size_text(one.bytes_on_disk)}, with its source, iterations and patches? "
            "It cannot be brought back."
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self.run_worker(
                    lambda: self._delete(directory), thread=True, group="delete", exit_on_error=False
                )

        self.app.push_screen(Confirm(question, "Delete", "Keep"), answered)

    def _delete(self, directory: Path) -> None:
        try:
            # Renamed first: whatever happens next, half a capture is never taken for a whole one.
            aside = directory.with_name(f".deleted-{directory.name}-{os.getpid()}")
            directory.rename(aside)
            shutil.rmtree(aside)
            sentence, severity = f"{directory} is deleted.", "information"
        except OSError as error:
            sentence, severity = f"{directory} cannot be deleted: {error.strerror}: {error.filename}", "error"
        self.app.call_from_thread(self._deleted, sentence, severity)

    def _deleted(self, sentence: str, severity: str) -> None:
        self.kerncap.tell(sentence, severity)
        self.action_refresh()

    def action_folder(self) -> None:
        """Another folder to look in."""
        from kerncap.tui.widgets.ask import AskText

        def check(text: str) -> str | None:
            return None if Path(text).expanduser().is_dir() else f"{text} is no directory."

        def answered(text: str | None) -> None:
            if text is not None:
                self._root = Path(text).expanduser()
                self.action_refresh()

        self.app.push_screen(AskText("Captures below:", str(self._root), check=check), answered)

    def action_back(self) -> None:
        """To the screen below."""
        self.app.pop_screen()
