"""The filter line and the program's own output."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Log, Static

from kerncap.core.units import many
from kerncap.tui.leaderboard.ranking import Filter

_KEPT_LINES = 5000
_LEAST_ROWS, _MOST_ROWS = 3, 12


class _Field(Input):
    """The text. What is hidden gives the focus away, when Textual tells it, some time afterwards."""

    def on_hide(self, event: events.Hide) -> None:
        """Opened again meanwhile, it keeps the focus that it was given."""
        if self.parent is not None and self.parent.display:
            event.prevent_default()


class FilterLine(Horizontal):
    """`/`: a regular expression, applied while it is typed. Enter keeps it, escape takes it away.

    `problem` is why the text is no expression yet; empty where it is one.
    """

    DEFAULT_CSS = """
    FilterLine { height: 1; display: none; background: $surface; }
    FilterLine Static { width: auto; }
    FilterLine Input { width: 1fr; height: 1; border: none; padding: 0; background: $surface; }
    """
    # Before the text field sees them: whatever is typed next is for the ranking again.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "keep", "Keep the filter", show=False, priority=True),
        Binding("escape", "drop", "Clear the filter", show=False, priority=True),
    ]

    class Changed(Message):
        """Another filter is to be used."""

        def __init__(self, filter: Filter) -> None:
            super().__init__()
            self.filter = filter

    def __init__(self) -> None:
        super().__init__()
        self.problem = ""
        self._back: Widget | None = None

    def compose(self) -> ComposeResult:
        """A prompt and the text."""
        yield Static(Content(" /"), markup=False)
        yield _Field(
            id="filter-text",
            compact=True,
            select_on_focus=False,  # opened again, it is gone on with
            placeholder="regular expression; ! before it: what does not match",
        )

    def open(self, back: Widget) -> None:
        """Shows the line with the filter in use to change; `back` gets the focus when it is done with."""
        self._back = back
        self.display = True
        field = self.query_one(Input)
        # At once, not by `focus()`, which is a message: the next key may have been typed already.
        self.screen.set_focus(field)
        field.action_end()

    def type(self, key: str, character: str) -> None:
        """As if it had been typed, after what is under way to the field already."""
        self.query_one(Input).post_message(events.Key(key, character))

    def close(self) -> None:
        """Hides it."""
        if self._back is not None:
            self.screen.set_focus(self._back)
        self.display = False

    def on_input_changed(self, event: Input.Changed) -> None:
        """Applied at every key; what is no expression yet changes nothing."""
        event.stop()
        try:
            self.post_message(self.Changed(Filter.parse(event.value)))
            problem = ""
        except ValueError as error:
            problem = f"{error}."
        if problem != self.problem:
            self.problem = problem
            tell = getattr(self.screen, "tell", None)  # it may be longer than the rest of this line
            if tell is not None:
                tell(problem, "warning", lasting=True)

    def action_keep(self) -> None:
        """Enter keeps what is there."""
        self.close()

    def action_drop(self) -> None:
        """Escape: no filter."""
        self.clear()
        self.close()

    def clear(self) -> None:
        """No filter; said as any other change of the text."""
        self.query_one(Input).value = ""


class OutputPane(Vertical):
    """What the program printed, its last 5000 lines, following the end unless scrolled up."""

    DEFAULT_CSS = """
    OutputPane { height: 3; max-height: 8; background: $surface; }
    OutputPane > #output-title { height: 1; color: $accent; padding: 0 1; border: none; background: $panel; }
    OutputPane > Log { height: 1fr; background: $surface; padding: 0 1; scrollbar-size-horizontal: 0; }
    """

    def __init__(self) -> None:
        super().__init__(id="output")
        self._lines = 0
        self._skipped = 0
        self._rows = 0
        self._title = ""

    def compose(self) -> ComposeResult:
        """A title and the lines."""
        yield Static(Content("output of the program"), markup=False, id="output-title")
        yield Log(highlight=False, max_lines=_KEPT_LINES, auto_scroll=True, id="output-log")

    def add(self, lines: tuple[str, ...], skipped: int, total_bytes: int) -> None:
        """More lines."""
        log = self.query_one(Log)
        if skipped:
            log.write_lines([f"... {lines_text(skipped)} came too fast to be shown ..."])
        log.write_lines(lines)
        self._lines += len(lines) + skipped
        # As high as its lines until it is at its highest; another height is another layout, which costs.
        rows = min(max(_LEAST_ROWS, self._lines + 2), _MOST_ROWS)
        if rows != self._rows:
            self._rows = self.styles.height = rows
        self._skipped += skipped
        self._retitle(f"output of the program: {lines_text(self._lines)}, {_bytes(total_bytes)}")

    @property
    def count(self) -> int:
        """How many lines the program has printed."""
        return self._lines

    def begin(self) -> None:
        """Another run: empty."""
        self.query_one(Log).clear()
        self._lines = self._skipped = 0
        self._rows = self.styles.height = _LEAST_ROWS
        self._retitle("output of the program")

    def _retitle(self, text: str) -> None:
        if text != self._title:
            self._title = text
            self.query_one("#output-title", Static).update(Content(text))


def lines_text(count: int) -> str:
    """`1 line`, `2 lines`."""
    return many(count, "line")


def _bytes(value: float) -> str:
    for unit in ("B", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"
