"""A dialog that asks for one line of text."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from kerncap.tui.screens.base import KerncapDialog

_KEYS = "enter takes it   esc goes back"


class AskText(KerncapDialog[str]):
    """Dismissed with the text, or None on escape. `check` returns a sentence where a text cannot be used."""

    DEFAULT_CSS = """
    AskText { align: center middle; }
    AskText > Vertical { width: 90; max-width: 96%; height: auto; padding: 1 2; border: round $primary;
                         background: $surface; }
    AskText Input { margin-top: 1; }
    AskText #ask-problem { color: $text-error; height: auto; }
    AskText #ask-hint { color: $foreground 60%; height: auto; }
    """

    def __init__(
        self,
        question: str,
        value: str = "",
        *,
        hint: str = "",
        check: Callable[[str], str | None] | None = None,
    ) -> None:
        super().__init__()
        self._question = question
        self._value = value
        self._hint = hint
        self._check = check

    def compose(self) -> ComposeResult:
        """Question, text, hint, and what is wrong."""
        with Vertical():
            yield Static(Content(self._question), markup=False)
            yield Input(self._value, id="ask-text", compact=True)
            yield Static("", markup=False, id="ask-problem")
            hint = f"{self._hint}\n{_KEYS}" if self._hint else _KEYS
            yield Static(Content(hint), markup=False, id="ask-hint")

    def on_mount(self) -> None:
        """The text is ready to be typed."""
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: checked, then handed back."""
        event.stop()
        problem = self._check(event.value) if self._check else None
        if problem:
            self.query_one("#ask-problem", Static).update(Content(problem))
        else:
            self.dismiss(event.value)
