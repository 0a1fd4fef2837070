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
    """Asks; dismissed with True for yes (`y`, enter on the button), False or None for no (`n`, escape)."""

    DEFAULT_CSS = """
    Confirm { align: center middle; }
    Confirm > Vertical { width: 64; max-width: 95%; height: auto; padding: 1 2; border: round $warning;
                         background: $surface; }
    Confirm Horizontal { height: auto; margin-top: 1; align: right middle; }
    Confirm Button { margin-left: 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n", "answer(False)", "No"),
        Binding("left,h", "app.focus_previous", show=False),
        Binding("right,l", "app.focus_next", show=False),
    ]

    def __init__(self, question: str, yes: str = "Yes", no: str = "No") -> None:
        super().__init__()
        self._question = question
        self._yes = yes
        self._no = no

    def compose(self) -> ComposeResult:
        """The question and two buttons; the harmless one has the focus."""
        with Vertical():
            yield Static(Content(self._question), markup=False)
            with Horizontal():
                yield Button(Content(f"{self._yes} (y)"), id="yes", variant="warning", compact=True)
                yield Button(Content(f"{self._no} (n)"), id="no", compact=True)

    def on_mount(self) -> None:
        """The harmless answer first."""
        self.query_one("#no", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """A button was chosen."""
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        """A letter was pressed."""
        self.dismiss(yes)
