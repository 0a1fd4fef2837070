"""The source: to look at, with the compiler's messages at their lines, and to edit in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from rich.style import Style
from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.style import Style as VisualStyle
from textual.widgets import Static, TextArea
from textual.worker import get_current_worker

from kerncap.core.build.diagnostics import Diagnostic
from kerncap.core.files import write_atomically
from kerncap.tui.workbench.lines import Line, LineView, Piece, clean, wrap

_HIGHLIGHTED = {
    ".cpp": "cuda",
    ".cc": "cuda",
    ".cxx": "cuda",
    ".c": "cuda",
    ".h": "cuda",
    ".hpp": "cuda",
    ".hip": "cuda",
    ".cu": "cuda",
    ".cuh": "cuda",
    ".py": "python",
    ".json": "json",
}
_MOST_HIGHLIGHTED = 1 << 20  # characters; longer files are shown plain


class SourceEditor(TextArea):
    """The editor in place. ^s and esc are the pane's, not the widget's own."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "save", "Save", show=False)]

    class Save(Message):
        """The text is to be written."""

    class Leave(Message):
        """Back to the view."""

    def action_save(self) -> None:
        """Asks the screen to save."""
        self.post_message(self.Save())

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "escape":  # TextArea would move the focus
            event.stop()
            event.prevent_default()
            self.post_message(self.Leave())
            return
        await super()._on_key(event)


class SourcePane(Vertical):
    """Shows one file of the reproducer. `edit` puts an editor in its place, `leave` takes it away."""

    DEFAULT_CSS = """
    SourcePane { height: 1fr; }
    SourcePane > #source-title { height: 1; background: $panel; color: $foreground; padding: 0 1; }
    SourcePane TextArea { height: 1fr; border: none; padding: 0; display: none; }
    SourcePane TextArea:focus { border: none; }
    SourcePane.-editing TextArea { display: block; }
    SourcePane.-editing LineView { display: none; }
    SourcePane.-editing > #source-title { background: $accent 40%; }
    """

    class Coloured(Message):
        """The lines of a file with their colours are ready."""

        def __init__(self, text: str, lines: list[list[Piece]]) -> None:
            super().__init__()
            self.text = text
            self.lines = lines

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.path: Path | None = None
        self.name_shown = ""
        self._text = ""
        self._stamp: tuple[int, int] | None = None
        self._coloured: list[list[Piece]] | None = None
        self._diagnostics: dict[int, Diagnostic] = {}
        self._warned = False
        self.asked = False  # whether it was said that something is not saved

    def compose(self) -> ComposeResult:
        """Title, view, editor."""
        yield Static("", id="source-title", markup=False)
        yield LineView(id="source-lines", with_cursor=True)
        yield SourceEditor(
            "", id="source-editor", show_line_numbers=True, soft_wrap=False, tab_behavior="indent"
        )

    @property
    def view(self) -> LineView:
        """The lines."""
        return self.query_one("#source-lines", LineView)

    @property
    def area(self) -> SourceEditor:
        """The editor."""
        return self.query_one("#source-editor", SourceEditor)

    @property
    def editing(self) -> bool:
        """Whether the editor is there."""
        return self.has_class("-editing")

    @property
    def line(self) -> int:
        """The line under the cursor, from 1."""
        return self.area.cursor_location[0] + 1 if self.editing else self.view.cursor + 1

    def load(self, path: Path, name: str) -> str:
        """Shows a file as it is on disk; returns a sentence where it cannot be read, else an empty string."""
        other = path != self.path
        try:
            text = path.read_bytes().decode("utf-8", "replace")
            stat = path.stat()
        except OSError as error:
            self.path, self.name_shown = path, name
            self._title(f"{name}  {error.strerror}")
            return f"{path} cannot be read: {error.strerror}."
        self.path, self.name_shown = path, name
        self._stamp = (stat.st_mtime_ns, stat.st_size)
        if other or text != self._text:
            self._text, self._coloured = text, None
            self._show(top=other)
            if len(text) <= _MOST_HIGHLIGHTED:
                language = _HIGHLIGHTED.get(path.suffix.lower(), "text")
                self._colour(text, language, self.app.theme_variables)
        self._title(name)
        return ""

    def say(self, text: str) -> None:
        """A sentence in place of a file."""
        self._title("no source")
        self.view.set_lines(
            [[(line, "")] for line in wrap(text, max(20, self.size.width - 1) if self.size.width else 76)]
        )

    def _title(self, text: str) -> None:
        self.query_one("#source-title", Static).update(Content(text))

    @work(thread=True, exclusive=True, group="colour")
    def _colour(self, text: str, language: str, variables: dict[str, str]) -> None:
        from textual.highlight import highlight

        content = highlight(text.expandtabs(8), language=language)
        known: dict[str, VisualStyle] = {}

        def parse_style(style: str | VisualStyle) -> VisualStyle:
            # Not the app's own parser: that is for the event loop's thread.
            if isinstance(style, VisualStyle):
                return style
            if style not in known:
                known[style] = VisualStyle.parse(style, variables)
            return known[style]

        lines = [_pieces(line, parse_style) for line in content.split("\n", allow_blank=True)]
        if not get_current_worker().is_cancelled:
            self.post_message(self.Coloured(text, lines))

    def on_source_pane_coloured(self, message: Coloured) -> None:
        """The colours came; unless the file changed since."""
        message.stop()
        if message.text == self._text:
            self._coloured = message.lines
            self._show()

    def mark(self, diagnostics: Sequence[Diagnostic], names: Mapping[str, Path]) -> None:
        """Marks the lines that messages are about. `names`: a message's path to the file it means."""
        found: dict[int, Diagnostic] = {}
        for diagnostic in diagnostics:
            if diagnostic.line and names.get(diagnostic.path) == self.path and diagnostic.severity != "note":
                known = found.get(diagnostic.line)
                if known is None or (known.severity != "error" and diagnostic.severity == "error"):
                    found[diagnostic.line] = diagnostic
        if found != self._diagnostics:
            self._diagnostics = found
            self._show()

    def go_to(self, line: int, *, above: int | None = None) -> None:
        """Puts a line, from 1, into view; with `above`, as the first but for so many lines."""
        if self.editing:
            self.area.move_cursor((max(0, line - 1), 0), center=True)
            return
        self.view.show(line - 1)
        if above is not None:
            self.view.scroll_to(y=max(0, line - 1 - above), animate=False, force=True)

    def _show(self, *, top: bool = False) -> None:
        plain = self._text.split("\n")
        digits = max(3, len(str(len(plain))))
        lines: list[Line] = []
        body: list[Piece]
        for number, text in enumerate(plain, 1):
            diagnostic = self._diagnostics.get(number)
            style = "" if diagnostic is None else ("bad" if diagnostic.severity == "error" else "warn")
            gutter: Piece = (f"{'▶' if diagnostic else ' '}{number:>{digits}} ", style or "number")
            if self._coloured is not None and number <= len(self._coloured):
                body = [(clean(piece), look) for piece, look in self._coloured[number - 1]]
            else:
                body = [(clean(text), "")]
            tail: list[Piece] = [(f"  ◀ {clean(diagnostic.message)}", style)] if diagnostic else []
            lines.append([gutter, *body, *tail])
        self.view.set_lines(lines, top=top)

    # Editing in place

    def edit(self) -> None:
        """Puts the editor in the view's place, at the same line."""
        if self.path is None or self.editing:
            return
        line = self.view.cursor
        area = self.area
        area.language = (
            "python" if self.path.suffix == ".py" and "python" in area.available_languages else None
        )
        area.load_text(self._text)
        self.add_class("-editing")
        area.move_cursor((line, 0), center=True)
        area.focus()
        self._warned = self.asked = False
        self._title(f"{self.name_shown}  editing: ^s saves, esc leaves")

    @property
    def modified(self) -> bool:
        """Whether the editor holds what is not on disk."""
        return self.editing and self.area.text != self._text

    def save(self) -> tuple[str, bool]:
        """Writes the file: (a sentence, whether it was written). Refused once where it changed on disk."""
        assert self.path is not None
        try:
            stat = self.path.stat()
            if (
                self._stamp is not None
                and (stat.st_mtime_ns, stat.st_size) != self._stamp
                and not self._warned
            ):
                self._warned = True
                return f"{self.name_shown} has changed on disk meanwhile: ^s again writes over that.", False
            write_atomically(self.path, self.area.text.encode("utf-8"), stat.st_mode & 0o777)
            stat = self.path.stat()
        except OSError as error:
            return f"{self.path} cannot be written: {error.strerror or error}. Nothing is lost here.", False
        self._stamp, self._warned, self.asked = (stat.st_mtime_ns, stat.st_size), False, False
        self._text, self._coloured = self.area.text, None
        return f"{self.name_shown} saved.", True

    def leave(self) -> None:
        """Back to the view; what was not saved is gone."""
        if not self.editing:
            return
        line = self.area.cursor_location[0]
        self.remove_class("-editing")
        path, name = self.path, self.name_shown
        if path is not None:
            self._text = ""
            self.load(path, name)
        self.view.focus()
        self.view.show(line)


def _pieces(line: Content, parse_style: Callable[[str | VisualStyle], VisualStyle]) -> list[Piece]:
    """A highlighted line as pieces in the theme's colours, without backgrounds."""
    found: list[Piece] = []
    for text, style in line.render(end="", parse_style=parse_style):
        rich = style.rich_style
        # "auto" colours contrast with a background that is only known when drawn: the default does that too.
        color = rich.color if style.foreground is not None and style.foreground.auto is False else None
        found.append((text, Style(color=color, bold=rich.bold, italic=rich.italic)))
    return found
