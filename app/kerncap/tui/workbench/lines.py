"""A view of prepared lines: source, messages, plots, diffs. It draws only what is in view."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kerncap.tui.widgets.line_table import component_style

# A piece is text, and the name of a style of the view (or a style); a line is its pieces.
Piece: TypeAlias = "tuple[str, str | Style]"
Line: TypeAlias = "Sequence[Piece]"

_UNSEEN_HEIGHT = 12  # of a view that is not on the screen: some lines above the shown one are in view later
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """A program's text as one line for the screen: tabs widened, no colours, control codes as �."""
    return _CONTROL.sub("�", _COLOUR.sub("", text.replace("\r", "")).expandtabs(8)).replace("\n", " ")


def wrap(text: str, width: int) -> list[str]:
    """Words in lines of at most `width` characters; a longer word is cut."""
    lines: list[str] = []
    for paragraph in text.splitlines() or [""]:
        line = ""
        for word in clean(paragraph).split(" "):
            while len(word) > width > 0:
                if line:
                    lines.append(line)
                    line = ""
                lines.append(word[:width])
                word = word[width:]
            if line and len(line) + 1 + len(word) > width:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        lines.append(line)
    return lines


def fold(line: Line, width: int) -> list[Line]:
    """A line in lines of at most `width` cells, broken between words; every piece keeps its style."""
    chars = [(char, style) for text, style in line for char in text]
    folded: list[Line] = []
    while sum(cell_len(char) for char, _ in chars) > width > 0:
        end, room = 0, width
        while (room := room - cell_len(chars[end][0])) >= 0:
            end += 1
        blanks = [i for i in range(1, end + 1) if chars[i][0] == " " and chars[i - 1][0] != " "]
        end = blanks[-1] if blanks else max(1, end)
        folded.append(_pieces(chars[:end]))
        chars = chars[end:]
        while chars and chars[0][0] == " ":
            chars = chars[1:]
    return [*folded, _pieces(chars)] if folded else [line]


def _pieces(chars: Sequence[Piece]) -> Line:
    pieces: list[Piece] = []
    for char, style in chars:
        if pieces and pieces[-1][1] == style:
            pieces[-1] = (pieces[-1][0] + char, style)
        else:
            pieces.append((char, style))
    return pieces


class LineView(ScrollView, can_focus=True):
    """Shows lines. `cursor` is the index of a marked line, or None; enter on it sends `Chosen`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "Up", show=False),
        Binding("down,j", "step(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown,space", "page(1)", "Page down", show=False),
        Binding("home,g", "jump(0)", "First", show=False),
        Binding("end,G", "jump(-1)", "Last", show=False),
        Binding("left", "aside(-8)", "Left", show=False),
        Binding("right", "aside(8)", "Right", show=False),
        Binding("enter", "choose", "Choose", show=False),
    ]
    STYLES: ClassVar[tuple[str, ...]] = (
        "dim",
        "good",
        "bad",
        "warn",
        "accent",
        "strong",
        "heading",
        "number",
        "cursor",
        "added",
        "removed",
        "bar",
    )
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"line-view--{name}" for name in STYLES}
    DEFAULT_CSS = """
    LineView { height: 1fr; background: $background; overflow-x: hidden; }
    LineView > .line-view--dim { color: $foreground 60%; }
    LineView > .line-view--good { color: $text-success; text-style: bold; }
    LineView > .line-view--bad { color: $text-error; text-style: bold; }
    LineView > .line-view--warn { color: $text-warning; }
    LineView > .line-view--accent { color: $accent; }
    LineView > .line-view--strong { text-style: bold; }
    LineView > .line-view--heading { color: $primary; text-style: bold; }
    LineView > .line-view--number { color: $foreground 40%; }
    LineView > .line-view--cursor { background: $primary 25%; }
    LineView > .line-view--added { color: $text-success; }
    LineView > .line-view--removed { color: $text-error; }
    LineView > .line-view--bar { color: $primary; }
    LineView:ansi {
        & > .line-view--dim { color: ansi_default; text-style: dim; }
        & > .line-view--number { color: ansi_default; text-style: dim; }
        & > .line-view--cursor { background: ansi_default; text-style: reverse; }
        & > .line-view--removed { text-style: bold; }
    }
    """

    class Chosen(Message):
        """Enter on a line."""

        def __init__(self, view: LineView, index: int) -> None:
            super().__init__()
            self.view = view
            self.index = index

        @property
        def control(self) -> LineView:
            """The view."""
            return self.view

    def __init__(self, *, id: str | None = None, with_cursor: bool = False) -> None:
        super().__init__(id=id)
        self.lines: list[Line] = []
        self.with_cursor = with_cursor
        self.cursor = 0
        self._styles_of: dict[str, Style] = {}

    def set_lines(self, lines: Sequence[Line], *, top: bool = False) -> None:
        """Other lines; the place stays where it was, or goes to the `top`."""
        self.lines = list(lines)
        width = max((sum(cell_len(p[0]) for p in line) for line in self.lines), default=0)
        self.virtual_size = Size(width, len(self.lines))
        self.cursor = 0 if top else max(0, min(self.cursor, len(self.lines) - 1))
        if top:
            self.scroll_to(0, 0, animate=False, force=True)
        self.refresh()

    @property
    def text(self) -> str:
        """What it shows, as plain text."""
        return "\n".join("".join(piece[0] for piece in line) for line in self.lines)

    def show(self, index: int, *, center: bool = True) -> None:
        """Brings a line into view and puts the cursor on it."""
        if not self.lines:
            return
        self.cursor = max(0, min(index, len(self.lines) - 1))
        height = self.size.height or _UNSEEN_HEIGHT
        top = self.scroll_offset.y
        if not top <= self.cursor < top + height:
            y = self.cursor - height // 2 if center else self.cursor - (height - 1) * (self.cursor > top)
            self.scroll_to(y=max(0, y), animate=False, force=True)
        self.refresh()

    def reveal(self, first: int, last: int) -> None:
        """Scrolls down until the lines up to `last` are in view too, as far as `first` stays there."""
        height = self.size.height or _UNSEEN_HEIGHT
        if last >= self.scroll_offset.y + height:
            self.scroll_to(y=min(first, last - height + 1), animate=False, force=True)

    def action_step(self, by: int) -> None:
        """One line."""
        if self.with_cursor:
            self.show(self.cursor + by, center=False)
        else:
            self.scroll_to(y=self.scroll_offset.y + by, animate=False)

    def action_page(self, by: int) -> None:
        """One page."""
        step = by * max(1, self.size.height - 1)
        if self.with_cursor:
            self.show(self.cursor + step, center=False)
        else:
            self.scroll_to(y=self.scroll_offset.y + step, animate=False)

    def action_jump(self, to: int) -> None:
        """The first line (0) or the last (-1)."""
        index = to if to >= 0 else len(self.lines) - 1
        if self.with_cursor:
            self.show(index, center=False)
        else:
            self.scroll_to(y=index, animate=False)

    def action_aside(self, by: int) -> None:
        """To the side, where lines are longer than the view is wide."""
        most = max(0, self.virtual_size.width - self.size.width)
        self.scroll_to(x=max(0, min(most, self.scroll_offset.x + by)), animate=False, force=True)

    def action_choose(self) -> None:
        """The line under the cursor."""
        if self.with_cursor and self.lines:
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: object) -> None:
        """A click puts the cursor there."""
        y = getattr(event, "y", 0) + self.scroll_offset.y
        if self.with_cursor and 0 <= y < len(self.lines):
            self.show(y)

    def on_focus(self) -> None:
        """The cursor is seen with the focus only."""
        self.refresh()

    def on_blur(self) -> None:
        """The cursor is seen with the focus only."""
        self.refresh()

    def notify_style_update(self) -> None:
        """Another theme."""
        super().notify_style_update()
        self._styles_of.clear()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Every line moves."""
        super().watch_scroll_y(old_value, new_value)
        self.refresh(Region(0, 0, self.size.width, self.size.height))

    def _named(self, style: str | Style) -> Style:
        if isinstance(style, Style):
            return style
        if not style:
            return Style.null()
        known = self._styles_of.get(style)
        if known is None:
            known = Style.null()
            for part in style.split():
                known += component_style(self, f"line-view--{part}")
            self._styles_of[style] = known
        return known

    def render_line(self, y: int) -> Strip:
        """One line on the screen."""
        width, base = self.size.width, self.rich_style
        index = y + self.scroll_offset.y
        if index >= len(self.lines):
            return Strip([Segment(" " * width, base)], width)
        if self.with_cursor and self.has_focus and index == self.cursor:
            over = self._named("cursor")
        else:
            over = Style.null()
        segments = [Segment(text, base + self._named(style) + over) for text, style in self.lines[index]]
        left = self.scroll_offset.x
        return Strip(segments).crop(left, left + width).adjust_cell_length(width, base + over)
