"""A question with two answers."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Static

from kerncap.tui.screens.base import KerncapDialog


class Confirm(KerncapDialog[bool]):
    """Asks; dismissed with True for yes (`y`), False or None for no (`n`, escape).

    Enter is the answer that has the focus and stands out: no, or yes where that takes nothing away (`first`).
    """

    DEFAULT_CSS = """
    Confirm { align: center middle; }
    Confirm > Vertical { width: 64; max-width: 95%; height: auto; padding: 1 2; border: round $warning;
                         background: $surface; }
    Confirm Horizontal { height: auto; margin-top: 1; align: right middle; }
    Confirm Button { margin-left: 2; }
    Confirm #yes, Confirm #no { background: $surface; color: $foreground; text-style: none; }
    Confirm #yes:focus, Confirm #no:focus { background: $primary; color: $text; text-style: bold; }
    Confirm #yes:focus:ansi, Confirm #no:focus:ansi { background: ansi_default; text-style: bold reverse; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n", "answer(False)", "No"),
        Binding("left,h", "app.focus_previous", show=False),
        Binding("right,l", "app.focus_next", show=False),
    ]

    def __init__(self, question: str, yes: str = "Yes", no: str = "No", *, first: bool = False) -> None:
        super().__init__()
        self._question = question
        self._yes = yes
        self._no = no
        self._first = first

    def compose(self) -> ComposeResult:
        """The question and two buttons."""
        with Vertical():
            yield Static(Content(self._question), markup=False)
            with Horizontal():
                yield Button(Content(f"{self._yes} (y)"), id="yes", compact=True)
                yield Button(Content(f"{self._no} (n)"), id="no", compact=True)

    def on_mount(self) -> None:
        """The answer that enter gives."""
        self.query_one("#yes" if self._first else "#no", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """A button was chosen."""
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        """A letter was pressed."""
        self.dismiss(yes)
