"""A table that draws only the lines in view, and sends only those that changed.

Its cost does not grow with the number of rows. Rows are known by identity: the cursor stays on its row,
whatever moves around it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

ELLIPSIS = "…"


def fitted(text: str, width: int, align: str = "left") -> str:
    """`text` in exactly `width` cells: padded, or cut with an ellipsis."""
    length = cell_len(text)
    if length == width:
        return text
    if length > width:
        return set_cell_size(text, width - 1) + ELLIPSIS if width > 0 else ""
    padding = " " * (width - length)
    return padding + text if align == "right" else text + padding


def component_style(widget: Widget, name: str) -> Style:
    """A component class as a style of its own: colours with alpha are laid over the widget's background."""
    styles = widget.get_component_styles(name)
    _, background = widget.background_colors
    color = background + styles.color if styles.has_rule("color") else None
    under = background + styles.background if styles.has_rule("background") else None
    return Style(color=color.rich_color if color else None, bgcolor=under.rich_color if under else None) + (
        styles.text_style if styles.has_rule("text_style") else Style.null()
    )


def _drawn_blank(name: str) -> bool:
    """Whether a blank in this style can be seen: headings have a background of their own."""
    return name.startswith("heading")


def _difference(before: Strip, after: Strip) -> tuple[int, int] | None:
    """The columns from the first cell that differs to the last; None where all are the same."""
    one, other = list(before), list(after)
    if one == other:
        return None
    first = last = 0
    shorter = min(len(one), len(other))
    at = 0
    while at < shorter and one[at] == other[at]:
        first += one[at].cell_length
        at += 1
    if at < shorter and one[at].style == other[at].style:
        first += _same_cells(one[at].text, other[at].text)
    end = 1
    while end <= shorter - at and one[-end] == other[-end]:
        last += one[-end].cell_length
        end += 1
    width = max(before.cell_length, after.cell_length)
    return first, max(first + 1, width - last)


def _same_cells(one: str, other: str) -> int:
    """How many cells at the beginning are the same."""
    return cell_len(os.path.commonprefix([one, other]))  # noqa: RUF071 (characters are what is meant)


class LineTable(ScrollView, can_focus=True):
    """Subclasses say what a line is: `heading()` and `row(index, selected)`, lists of (text, style name).

    `set_keys` gives the rows' identities in their order; `repaint` draws what has changed since. Style names
    are component classes of the widget (without its prefix `line-table--`), or empty.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "to(0)", "First", show=False),
        Binding("end,G", "to(-1)", "Last", show=False),
        Binding("enter", "choose", "Choose", show=False),
    ]
    STYLES: ClassVar[tuple[str, ...]] = (
        "heading",
        "heading-sorted",
        "cursor",
        "cursor-blurred",
        "dim",
        "mark",
        "good",
        "bad",
        "warn",
        "accent",
        "bar",
    )
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"line-table--{name}" for name in STYLES}
    DEFAULT_CSS = """
    LineTable { height: 1fr; overflow-x: hidden; overflow-y: auto; background: $background; }
    LineTable > .line-table--heading { text-style: bold; color: $foreground; background: $panel; }
    LineTable > .line-table--heading-sorted { text-style: bold underline; color: $accent; }
    LineTable > .line-table--heading-sorted { background: $panel; }
    LineTable > .line-table--cursor { background: $primary 40%; text-style: bold; }
    LineTable > .line-table--cursor-blurred { background: $primary 20%; }
    LineTable > .line-table--dim { color: $foreground 60%; }
    LineTable > .line-table--mark { color: $accent; text-style: bold; }
    LineTable > .line-table--good { color: $text-success; }
    LineTable > .line-table--bad { color: $text-error; text-style: bold; }
    LineTable > .line-table--warn { color: $text-warning; }
    LineTable > .line-table--accent { color: $accent; }
    LineTable > .line-table--bar { color: $primary; }
    LineTable:ansi {
        & > .line-table--heading { background: ansi_default; text-style: bold underline; }
        & > .line-table--heading-sorted { background: ansi_default; text-style: bold reverse; }
        & > .line-table--cursor { background: ansi_default; text-style: reverse; }
        & > .line-table--cursor-blurred { background: ansi_default; text-style: underline; }
        & > .line-table--dim { text-style: dim; }
    }
    """

    class Moved(Message):
        """The cursor is on another row."""

        def __init__(self, table: LineTable, key: str | None) -> None:
            super().__init__()
            self.table = table
            self.key = key

        @property
        def control(self) -> LineTable:
            """The table."""
            return self.table

    class Chosen(Message):
        """Enter, or a second click, on a row."""

        def __init__(self, table: LineTable, key: str) -> None:
            super().__init__()
            self.table = table
            self.key = key

        @property
        def control(self) -> LineTable:
            """The table."""
            return self.table

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.keys: list[str] = []
        self.cursor: str | None = None
        self.pinned = False  # until the user has moved it, the cursor is on the row `home`,
        self.home: str | None = None  # or where there is none, on the first one, whichever that is
        self._index = 0
        self._drawn: dict[int, Strip] = {}
        self._drawn_shape = (0, 0, 0, False)
        self._style_cache: dict[str, Style] = {}
        self.empty_text = ""

    # What subclasses say

    def heading(self) -> list[tuple[str, str]]:
        """The first line, which does not scroll."""
        return []

    def row(self, index: int) -> list[tuple[str, str]]:
        """The line of row `index`."""
        return [(self.keys[index], "")]

    # Rows and cursor

    def set_keys(self, keys: Sequence[str]) -> None:
        """The rows, in order. The cursor stays on its row; where that is gone, at its place."""
        grown = len(keys) != len(self.keys)
        self.keys = list(keys)
        before = self.cursor
        if not self.pinned and self.keys:
            self._index = self.keys.index(self.home) if self.home in self.keys else 0
            self.cursor = self.keys[self._index]
        elif self.cursor in self.keys:
            self._index = self.keys.index(self.cursor)
        elif self.keys:
            self._index = min(self._index, len(self.keys) - 1)
            self.cursor = self.keys[self._index]
        else:
            self._index, self.cursor = 0, None
        if grown:
            self.virtual_size = Size(0, len(self.keys) + 1)
        if self.cursor != before:
            self.post_message(self.Moved(self, self.cursor))
        self.repaint()

    @property
    def index(self) -> int:
        """Where the cursor is."""
        return self._index

    def select(self, key: str) -> None:
        """Puts the cursor on a row, and the row into view."""
        if key in self.keys:
            self._go(self.keys.index(key))

    def _go(self, index: int) -> None:
        if not self.keys:
            return
        index = max(0, min(index, len(self.keys) - 1))
        moved = self.keys[index] != self.cursor
        self.pinned = True
        self._index, self.cursor = index, self.keys[index]
        self._show_cursor()
        self.repaint()
        if moved:
            self.post_message(self.Moved(self, self.cursor))

    def _show_cursor(self) -> None:
        height = self.size.height - 1
        top = self.scroll_offset.y
        if height < 1:
            return  # not on the screen yet: `on_resize` comes
        # By force: a table that has just grown past its height does not know yet that it scrolls.
        if self._index < top:
            self.scroll_to(y=self._index, animate=False, force=True)
        elif self._index >= top + height:
            self.scroll_to(y=self._index - height + 1, animate=False, force=True)

    def action_move(self, by: int) -> None:
        """One row up or down."""
        self._go(self._index + by)

    def action_page(self, by: int) -> None:
        """One page up or down."""
        self._go(self._index + by * max(1, self.size.height - 2))

    def action_to(self, index: int) -> None:
        """The first row (0) or the last (-1)."""
        self._go(index if index >= 0 else len(self.keys) - 1)

    def action_choose(self) -> None:
        """Chooses the row under the cursor."""
        if self.cursor is not None:
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        """A click selects, the second one chooses."""
        index = event.y - 1 + self.scroll_offset.y
        if event.y < 1 or not 0 <= index < len(self.keys):
            return
        again = index == self._index and event.chain > 1
        self._go(index)
        if again:
            self.action_choose()

    # Drawing

    def repaint(self) -> None:
        """Draws the lines in view anew where they changed, and sends those alone."""
        if not self.is_mounted or not self.size.height:
            return
        shape = self._shape()
        _, width, height, _ = shape
        changed = []
        for y in range(height):
            strip = self._line(y, width)
            before = self._drawn.get(y)
            if before is None or shape != self._drawn_shape:
                changed.append(Region(0, y, width, 1))
            elif (part := _difference(before, strip)) is not None:
                changed.append(Region(part[0], y, part[1] - part[0], 1))
            self._drawn[y] = strip
        self._drawn_shape = shape
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        """One line on the screen: as `repaint` made it, unless it was scrolled or resized since."""
        shape = self._shape()
        if shape != self._drawn_shape:
            self._drawn.clear()
            self._drawn_shape = shape
        strip = self._drawn.get(y)
        if strip is None:
            strip = self._drawn[y] = self._line(y, shape[1])
        return strip

    def _shape(self) -> tuple[int, int, int, bool]:
        width, height = self.size
        return self.scroll_offset.y, width, height, self.has_focus

    def notify_style_update(self) -> None:
        """Another theme: styles are looked up again."""
        super().notify_style_update()
        self._style_cache.clear()
        self._drawn.clear()

    def on_resize(self) -> None:
        """Another size: everything is drawn anew, the cursor stays in view."""
        self._drawn.clear()
        self._show_cursor()
        self.refresh()

    def on_focus(self) -> None:
        """The cursor looks different without the focus."""
        self.repaint()

    def on_blur(self) -> None:
        """The cursor looks different without the focus."""
        self.repaint()

    def _base(self) -> Style:
        style = self._style_cache.get("")
        if style is None:
            style = self._style_cache[""] = self.rich_style
        return style

    def _style(self, name: str) -> Style:
        style = self._style_cache.get(name)
        if style is None:
            if name:
                style = Style()
                for part in name.split():
                    style += component_style(self, f"line-table--{part}")
            else:
                style = Style()
            self._style_cache[name] = style
        return style

    def _line(self, y: int, width: int) -> Strip:
        base = self._base()
        if y == 0:
            return self._strip(self.heading(), width, base + self._style("heading"))
        index = y - 1 + self.scroll_offset.y
        if index >= len(self.keys):
            if not self.keys and y == 2 and self.empty_text:
                return self._strip([("  " + self.empty_text, "dim")], width, base)
            return Strip([Segment(" " * width, base)], width)
        if index == self._index:
            name = "cursor" if self.has_focus else "cursor-blurred"
            return self._strip(self.row(index), width, base, self._style(name))
        return self._strip(self.row(index), width, base)

    def _strip(
        self, cells: list[tuple[str, str]], width: int, base: Style, over: Style | None = None
    ) -> Strip:
        # Neighbours of one style are one segment, and a blank takes its neighbour's: each change of style
        # costs some 40 bytes on the wire.
        runs: list[tuple[str, str]] = []
        for text, name in cells:
            if runs and (runs[-1][1] == name or (text.isspace() and not _drawn_blank(name))):
                runs[-1] = (runs[-1][0] + text, runs[-1][1])
            else:
                runs.append((text, name))
        segments = []
        for text, name in runs:
            style = base + self._style(name) if name else base
            segments.append(Segment(text, style + over if over else style))
        return Strip(segments).adjust_cell_length(width, base + over if over else base)
