"""One of several, on one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget


class Choice(Widget, can_focus=True):
    """Options side by side, the chosen one marked; ← and → choose. Those in `disabled` cannot be chosen."""

    DEFAULT_CSS = """
    Choice { height: 1; width: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "step(-1)", "Left", show=False),
        Binding("right,l,space", "step(1)", "Right", show=False),
    ]

    class Changed(Message):
        """Another option is chosen."""

        def __init__(self, choice: Choice, value: str) -> None:
            super().__init__()
            self.choice = choice
            self.value = value

        @property
        def control(self) -> Choice:
            """The line."""
            return self.choice

    def __init__(
        self, options: Sequence[tuple[str, str]], value: str, *, disabled_options: Sequence[str] = (), id: str
    ) -> None:
        super().__init__(id=id)
        self._options = list(options)
        self._off = set(disabled_options)
        self.value = value

    def render(self) -> Content:
        """`(•) one  ( ) two`."""
        parts: list[str | tuple[str, str]] = []
        for value, text in self._options:
            chosen = value == self.value
            style = "dim" if value in self._off else ("bold $accent" if chosen else "")
            if chosen and self.has_focus:
                style = "bold reverse"
            parts += [(f"{'(•)' if chosen else '( )'} {text}", style), "  "]
        return Content.assemble(*parts)

    def choose(self, value: str) -> None:
        """Chooses, where it can be."""
        if value != self.value and value not in self._off:
            self.value = value
            self.refresh()
            self.post_message(self.Changed(self, value))

    def disable(self, values: Sequence[str]) -> None:
        """These cannot be chosen from now on; the choice itself is the caller's to change."""
        self._off = set(values)
        self.refresh()

    def action_step(self, by: int) -> None:
        """The next option that can be chosen, round the end."""
        values = [value for value, _ in self._options if value not in self._off]
        if self.value in values:
            self.choose(values[(values.index(self.value) + by) % len(values)])

    def on_click(self, event: events.Click) -> None:
        """A click on an option."""
        x = 0
        for value, text in self._options:
            width = cell_len(text) + 4
            if x <= event.x < x + width:
                self.choose(value)
                return
            x += width + 2

    def on_focus(self) -> None:
        """The chosen one stands out."""
        self.refresh()

    def on_blur(self) -> None:
        """The chosen one stands back."""
        self.refresh()
