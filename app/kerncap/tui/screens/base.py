"""What every screen and dialog of kerncap has: actions from the registry, a sentence line, a key bar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen

from kerncap.tui.services.trouble import sentences
from kerncap.tui.widgets.bars import KeyBar, Severity, StatusLine

if TYPE_CHECKING:
    from kerncap.tui.actions import Action
    from kerncap.tui.app import KerncapApp

T = TypeVar("T")


class KerncapScreen(Screen[None]):
    """A full screen. Subclasses set GROUP and BINDINGS (`actions.bindings`), and write `compose_body`."""

    GROUP: ClassVar[str] = ""
    ESCAPE_TO_MINIMIZE: ClassVar[bool] = False
    AUTO_FOCUS = None
    config_problems: tuple[str, ...] = ()  # of the configuration, said when the screen was opened

    def compose(self) -> ComposeResult:
        """The body, one line for a sentence, one line of keys."""
        with Vertical(id="body"):
            yield from self.compose_body()
        yield StatusLine()
        yield KeyBar()

    def compose_body(self) -> ComposeResult:
        """The screen's own widgets."""
        yield from ()

    def on_mount(self) -> None:
        """What the user's keymap says of this screen is checked when it is first opened."""
        problems = [*self.kerncap.unsaid_problems(), *self.kerncap.keymap_problems(self.GROUP)]
        self.config_problems = tuple(problems)
        if problems:
            self.call_after_refresh(self.tell, sentences(*problems), "warning", lasting=True)

    def on_screen_suspend(self) -> None:
        """Something is open over the screen."""
        self.query_one(StatusLine).quiet(True)

    def on_screen_resume(self) -> None:
        """The screen is the top one again."""
        if self.is_mounted:
            self.query_one(StatusLine).quiet(False)

    @property
    def kerncap(self) -> KerncapApp:
        """The application, typed."""
        return cast("KerncapApp", self.app)

    def tell(self, text: str, severity: Severity = "information", *, lasting: bool = False) -> None:
        """A sentence in the status line; it stays for some seconds, or until the next where `lasting`."""
        self.query_one(StatusLine).tell(text, severity, lasting=lasting)

    def fitting(self, actions: Sequence[Action]) -> Sequence[Action]:
        """Those of the screen's actions that are of use on what it shows, the most useful first: for the key
        bar, help and the palette. A key of another one still says why it does nothing.
        """
        return actions

    def seen(self) -> dict[str, Any]:
        """What of it the next session is to go on with, if this one is cut off now: JSON values.

        `workbench`: a reproducer's directory. `command`, `variables`, `running`: a program and its state.
        """
        return {}

    def close_down(self) -> None:
        """The application ends (quit, SIGHUP, SIGTERM): end child processes.

        Called in the event loop's thread, top screen first; it must take two seconds at most, and neither
        draw nor wait for a worker.
        """


class KerncapDialog(ModalScreen[T]):
    """A dialog over a screen: `escape` dismisses it with None."""

    GROUP: ClassVar[str] = ""
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Back", show=False)]

    @property
    def kerncap(self) -> KerncapApp:
        """The application, typed."""
        return cast("KerncapApp", self.app)

    def action_cancel(self) -> None:
        """Back to the screen below."""
        self.dismiss(None)

    def close_down(self) -> None:
        """As `KerncapScreen.close_down`."""
