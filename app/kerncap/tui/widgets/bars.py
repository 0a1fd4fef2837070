"""The two lines at the bottom of every screen: a sentence, and the keys that matter here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from rich.cells import cell_len
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from kerncap.tui.actions import REGISTRY, fitting, keys_of, shown_key

if TYPE_CHECKING:
    from kerncap.tui.app import KerncapApp

Severity = Literal["information", "warning", "error"]
_MARKS = {"information": "", "warning": "! ", "error": "✗ "}
_STYLES = {"information": "", "warning": "bold $text-warning", "error": "bold $text-error"}
_STAYING = ("back", "help", "quit")  # in the key bar, whatever else there is room for
SHOWN_S = 8.0


class StatusLine(Static):
    """One sentence about what just happened, in place; empty while there is nothing to say.

    A long one wraps. `hint` stands below it, whatever is told, but not under a dialog (`quiet`): what it
    says is about the screen.
    """

    DEFAULT_CSS = """
    StatusLine { height: auto; max-height: 6; padding: 0 1; color: $text; display: none; }
    StatusLine.-told { display: block; }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.text = ""
        self._hint = ""
        self._severity: Severity = "information"
        self._quiet = False
        self._timer: Timer | None = None

    def tell(self, text: str, severity: Severity = "information", *, lasting: bool = False) -> None:
        """Shows a sentence: for eight seconds, or until the next one where `lasting`."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.text, self._severity = text, severity
        self._show()
        if text and not lasting:
            self._timer = self.set_timer(SHOWN_S, self.clear)

    def clear(self) -> None:
        """Takes the sentence away; the hint stays."""
        self._timer = None
        self.text, self._severity = "", "information"
        self._show()

    def hint(self, text: str) -> None:
        """What could be done next. Empty: nothing."""
        if text != self._hint:
            self._hint = text
            self._show()

    def quiet(self, on: bool) -> None:
        """Without its hint, or with it again."""
        if on != self._quiet:
            self._quiet = on
            self._show()

    def _show(self) -> None:
        hint = "" if self._quiet else self._hint
        told = _MARKS[self._severity] + self.text if self.text else ""
        lines = [Content.styled(told, _STYLES[self._severity])] if told else []
        lines += [Content.styled(hint, "$accent")] if hint else []
        self.update(Content("\n").join(lines))
        self.set_class(bool(lines), "-told")


class KeyBar(Widget):
    """The keys of this screen that its registry marks for the bar, as many as fit; `?` shows all."""

    DEFAULT_CSS = """
    KeyBar { height: 1; background: $panel; color: $text; }
    KeyBar:ansi { background: ansi_default; text-style: reverse; }
    """

    def render(self) -> Content:
        """One line."""
        keymap = cast("KerncapApp", self.app).keymap
        parts: list[tuple[str, str, bool]] = []
        for name in (getattr(self.screen, "GROUP", ""), "app"):
            group = REGISTRY.get(name)
            for action in fitting(self.screen, group) if group else ():
                keys = keys_of(group, action, keymap) if group else []
                if action.bar and keys:
                    parts.append((shown_key(keys[0]), action.bar, action.name in _STAYING))
        # What does not fit is left out, the less wanted first: those that come later.
        while (
            len(parts) > 1
            and sum(cell_len(k) + cell_len(w) + 3 for k, w, _ in parts) - 2 > self.size.width - 1
        ):
            leave = next((part for part in reversed(parts) if not part[2]), parts[-1])
            parts.remove(leave)
        pieces: list[tuple[str, str] | str] = [" "]
        for key, word, _ in parts:
            pieces += [(key, "bold $accent"), f" {word}  "]
        return Content.assemble(*pieces)
