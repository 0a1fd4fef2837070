"""All keys of a screen, generated from the registry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from kerncap.tui.actions import REGISTRY, Action, Group, fitting, keys_of, shown_key
from kerncap.tui.screens.base import KerncapDialog
from kerncap.tui.settings import config_path

_TABLES = (
    ("↑ ↓ k j", "one row up, down"),
    ("pgup pgdn", "one page up, down"),
    ("home end G", "the first row, the last"),
    ("tab", "the next pane"),
    ("⏎", "choose the row"),
    ("esc", "back; it never quits"),
)


def section(group: Group, actions: Sequence[Action], keymap: dict[str, str]) -> Content:
    """Actions of one screen as a table of keys, titles and explanations."""
    parts: list[str | tuple[str, str]] = [(f"{group.title}\n", "bold $accent")]
    for action in actions:
        keys = " ".join(map(shown_key, keys_of(group, action, keymap))) or "palette"
        parts += [("  " + keys.ljust(10), "bold"), f" {action.title}"]
        if action.help:
            parts.append((f"  {action.help}", "dim"))
        parts.append("\n")
    return Content.assemble(*parts[:-1])


class HelpScreen(KerncapDialog[None]):
    """`?`: the keys of the screen below, and those that apply everywhere."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll { width: 100; max-width: 98%; height: auto; max-height: 96%; padding: 0 1;
                                  border: round $primary; background: $surface; border-title-color: $accent; }
    HelpScreen Static { height: auto; margin-bottom: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,question_mark,f1,enter", "cancel", "Close", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
        Binding("G", "bottom", show=False),
    ]

    def __init__(self, below: Screen[Any]) -> None:
        super().__init__()
        self._below = below
        self._group = str(getattr(below, "GROUP", ""))

    def compose(self) -> ComposeResult:
        """Sections."""
        keymap = self.kerncap.keymap
        with VerticalScroll() as box:
            box.border_title = "keys (esc closes)"
            for name in (self._group, "app"):
                if name in REGISTRY:
                    group = REGISTRY[name]
                    yield Static(section(group, fitting(self._below, group), keymap), markup=False)
            parts: list[str | tuple[str, str]] = [("In tables\n", "bold $accent")]
            for keys, what in _TABLES:
                parts += [("  " + keys.ljust(10), "bold"), f" {what}\n"]
            yield Static(Content.assemble(*parts), markup=False)
            where = f'Keys and theme can be changed in {config_path()}:  [keys]  "{self._group}.NAME" = "KEY"'
            names = (
                ", ".join(a.name for a in REGISTRY[self._group].actions) if self._group in REGISTRY else ""
            )
            yield Static(Content.assemble(where, ("\n  NAME: " + names, "dim")), markup=False)

    def on_mount(self) -> None:
        """The cursor keys scroll."""
        self.query_one(VerticalScroll).focus()

    def action_scroll(self, by: int) -> None:
        """One line."""
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)

    def action_bottom(self) -> None:
        """The last line, as in tables."""
        self.query_one(VerticalScroll).scroll_end(animate=False)
