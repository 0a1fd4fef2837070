"""The terminal UI's application: screens, keys, settings, and how it ends.

How the parts fit (read this before you add a screen):

- **Screens** derive from `kerncap.tui.screens.base.KerncapScreen` and set `GROUP`; dialogs from
  `KerncapDialog[T]`. The leaderboard is the first; others are pushed over it and popped by `escape`:
  `app.open_workbench(directory)`, `app.open_captures()`. Screens are imported when they are opened, so that
  the first paint does not pay for them.
- **Actions** are declared once::

      ACTIONS = (
          Action("build", "b", "Build", "Compile the source as it stands.", bar="build"),
          Action("sort_total", "t", "Sort by total time", call="sort('total')"),
      )

      class WorkbenchScreen(KerncapScreen):
          GROUP = "workbench"
          BINDINGS = bindings(GROUP, "Workbench", ACTIONS)

          def action_build(self) -> None: ...

  Key bar, `?`, the command palette and `[keys]` of the configuration (`"workbench.build" = "ctrl+b"`) come
  from that table. Keys are plain letters where possible: ctrl+a and ctrl+b belong to screen and tmux, and
  shift+enter or ctrl+enter do not reach us.
- **Nothing blocks the event loop.** Long work runs in a thread (`self.run_worker(..., thread=True)`) and only
  posts messages that carry frozen snapshots (`kerncap.tui.messages`); pure functions make rows of them.
- **Keys typed at once** are acted on one after the other (`kerncap.tui.key_order`): what a key opens or gives
  the focus to gets the next one.
- **Sentences**: `screen.tell("...", "error")` shows one in the status line. Names from programs never pass
  through markup: use `Content(text)` or `Text(text)`, never a bare `str` in a widget that parses markup.
- **The end**: `q`, SIGHUP, SIGTERM and SIGINT all call `close_down()` of every screen from the top; a screen
  ends its child processes there. What its `seen()` says is what the next session goes on with after a signal.
- `app.device` is the device's name or None; `app.settings` and `app.remembered` are `kerncap.tui.settings`;
  `app.clock()` is monotonic seconds that a test may control; `app.keymap` the user's keys.
- Common widgets: `widgets.bars` (status line, key bar), `widgets.confirm.Confirm`, `widgets.ask.AskText`,
  `widgets.choice.Choice`, and `widgets.line_table.LineTable`, a table whose cost does not grow with its rows
  (never DataTable for what changes often).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import BindingType
from textual.message import Message
from textual.screen import Screen

from kerncap.tui import cut_off
from kerncap.tui.actions import REGISTRY, Action, bindings, keymap_problems
from kerncap.tui.key_order import KeysInOrder
from kerncap.tui.services.trouble import sentences, unexpected
from kerncap.tui.settings import DEFAULT_THEME, Remembered, Settings, over_ssh
from kerncap.tui.theme import ANSI_THEME, THEMES

if TYPE_CHECKING:
    from textual.command import Provider
    from textual.driver import Driver

    from kerncap.core.program.workload import Command
    from kerncap.tui.services.extraction import Extraction, Wanted
    from kerncap.tui.services.program import Program

_FORCED_END_S = 6.0
_YOUNG_OBJECTS = 100_000  # between two collections

ACTIONS = (
    Action("help", "question_mark,f1", "Help", "All keys of this screen.", bar="help", call="keys_help"),
    Action("palette", "colon,ctrl+p", "Command palette", "Every action by name.", bar="palette"),
    Action("quit", "q,ctrl+q", "Quit", "End the program that runs, and leave.", bar="quit", call="leave"),
    Action("reload", "", "Reload the configuration", "Read tui.toml again: keys, theme and refresh."),
    Action("write_config", "", "Write a configuration", "Put a commented tui.toml where there is none."),
    Action(
        "theme", "", "Change the theme", "Look through the themes; tui.toml keeps one.", call="change_theme"
    ),
    Action("screenshot", "", "Screenshot", "Save this screen as an SVG picture.", call="save_screenshot"),
)


def _palette_provider() -> type[Provider]:
    from kerncap.tui.palette import ActionProvider

    return ActionProvider


class KerncapApp(KeysInOrder):
    """`kerncap tui`: `command` is the program to run at once, `None` to start with an empty leaderboard.

    `device` names the device for all that is run. `guided` shows a line of hints that leads through the loop.
    """

    TITLE = "kerncap"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_palette_provider}
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("app", "Everywhere", ACTIONS)]

    def __init__(
        self,
        command: Command | None = None,
        *,
        device: str | None = None,
        source_dir: Path | None = None,
        guided: bool = False,
        workbench: Path | None = None,
        settings: Settings | None = None,
        remembered: Remembered | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings or Settings.load()
        self.remembered = remembered or Remembered()
        self.clock = clock
        self.command = command
        self.device = device
        self.source_dir = source_dir
        self.guided = guided
        self.elsewhere = guided  # the working directory is not that in which kerncap was called
        self.workbench = workbench
        self.keymap: dict[str, str] = dict(self.settings.keymap)
        self._problems = list(self.settings.problems)
        self._checked: set[str] = set()  # screens whose keymap was checked
        if not os.environ.get("NO_COLOR"):
            os.environ.pop("NO_COLOR", None)  # empty means unset (no-color.org)
        plain = "NO_COLOR" in os.environ or self.settings.theme.startswith("ansi-")
        # Textual chooses its colour filters in __init__: colours become the terminal's own here or never.
        super().__init__(ansi_color=True if plain else None)
        for theme in THEMES:
            self.register_theme(theme)
        self._apply_theme(plain)
        self.set_keymap(self.keymap)
        if over_ssh():
            self.animation_level = "none"

    def _apply_theme(self, plain: bool) -> None:
        wanted = self.settings.theme
        if wanted not in self.available_themes:
            self._problems.append(
                f"theme {wanted!r} is not known; there are {', '.join(sorted(self.available_themes))}"
            )
            wanted = DEFAULT_THEME
        self.theme = wanted if not plain or wanted.startswith("ansi-") else ANSI_THEME

    def get_driver_class(self) -> type[Driver]:
        """Textual's, which on a terminal keeps an escape and the next key apart."""
        found = super().get_driver_class()
        from textual.drivers.linux_driver import LinuxDriver

        if found is not LinuxDriver:
            return found
        from kerncap.tui.terminal_input import TerminalDriver

        return TerminalDriver

    def get_default_screen(self) -> Screen[None]:
        """The leaderboard."""
        from kerncap.tui.screens.leaderboard import LeaderboardScreen

        return LeaderboardScreen(self.command)

    def on_mount(self) -> None:
        """Signals that end a terminal session end us in order."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            if threading.current_thread() is threading.main_thread() and (
                signal.getsignal(number) is not signal.SIG_IGN
            ):
                with contextlib.suppress(NotImplementedError, RuntimeError):
                    loop.add_signal_handler(number, self._on_signal, number)
        if self.command is not None or self.workbench is not None:
            # The user has said where to go on. What was cut off before is no longer the last session.
            self.remembered.set(cut_off.NAME, None)
        if self.workbench is not None:
            self.call_after_refresh(self.open_workbench, self.workbench)

    def unsaid_problems(self) -> list[str]:
        """What is wrong with the configuration, for the first screen that the user sees to say, once."""
        if self.workbench is not None and len(self.screen_stack) <= 1:
            return []  # the workbench is about to be opened over it
        problems, self._problems = self._problems, []
        return problems

    def keymap_problems(self, name: str) -> list[str]:
        """What is wrong with the user's keymap for a screen, once."""
        group = REGISTRY.get(name)
        if group is None or name in self._checked:
            return []
        self._checked.add(name)
        return keymap_problems(self.keymap, group)

    def _say_problems(self) -> None:
        self.tell(sentences(*self._problems), "warning", lasting=True)
        self._problems = []

    def tell(self, text: str, severity: str = "information", *, lasting: bool = False) -> None:
        """A sentence in the status line of the topmost full screen."""
        for screen in reversed(self.screen_stack):
            teller = getattr(screen, "tell", None)
            if teller is not None:
                teller(text, severity, lasting=lasting)
                return

    def make_program(
        self, run: int, command: Command, device: str | None, post: Callable[[Message], object], hertz: float
    ) -> Program:
        """A run of the program; tests put their own in place of it."""
        from kerncap.tui.services.program import LiveProgram

        return LiveProgram(run, command, device, post, hertz)

    def make_extraction(self, wanted: Wanted, post: Callable[[Message], object]) -> Extraction:
        """An extraction; tests put their own in place of it."""
        from kerncap.tui.services.extraction import Extraction

        return Extraction(wanted, post)

    def place(self, path: Path) -> Path:
        """A path as a person is shown it: in full where the working directory is not theirs."""
        return path.absolute() if self.elsewhere else path

    # Screens

    def open_workbench(self, directory: Path | str) -> None:
        """Opens the workbench on the reproducer in `directory`."""
        from kerncap.tui.workbench.screen import WorkbenchScreen

        self.push_screen(WorkbenchScreen(Path(directory), self.device))

    def open_captures(self, root: Path | None = None) -> None:
        """Opens the list of captures below `root` (default: where extractions go)."""
        from kerncap.tui.screens.captures import CapturesScreen

        self.push_screen(CapturesScreen(root or self.place(Path("isolated"))))

    # Actions

    def action_keys_help(self) -> None:
        """All keys of this screen."""
        from kerncap.tui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen))

    def action_palette(self) -> None:
        """Every action by name."""
        self.action_command_palette()

    def action_command_palette(self) -> None:
        """Textual's action of that name, with a palette of our own."""
        from kerncap.tui.palette import ActionPalette

        if not isinstance(self.screen, ActionPalette):
            self.push_screen(ActionPalette(id="--command-palette"))

    def action_reload(self) -> None:
        """Reads the configuration again."""
        self.settings = Settings.load()
        self._problems = list(self.settings.problems)
        self.keymap = dict(self.settings.keymap)
        self._checked.clear()
        for screen in self.screen_stack:
            self._problems += self.keymap_problems(getattr(screen, "GROUP", ""))
        self.set_keymap(self.keymap)
        self._apply_theme(bool(self.native_ansi_color))
        for screen in self.screen_stack:
            screen.refresh(recompose=False)
            for widget in screen.query("KeyBar"):
                widget.refresh()
        if self._problems:
            self._say_problems()
        else:
            self.tell("The configuration is read again.")

    def action_write_config(self) -> None:
        """Puts a commented configuration where there is none."""
        from kerncap.tui.settings import TEMPLATE, config_path

        path = config_path()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x") as file:
                file.write(TEMPLATE)
            self.tell(f"Written: {path}")
        except FileExistsError:
            self.tell(f"{path} is there already; nothing was changed.", "warning")
        except OSError as error:
            self.tell(f"{path} cannot be written: {error.strerror}", "error")

    def action_save_screenshot(self) -> None:
        """Saves this screen as SVG in the working directory."""
        name = time.strftime("kerncap-%Y%m%d-%H%M%S.svg")
        try:
            Path(name).write_text(self.export_screenshot())
            self.tell(f"Saved: {Path(name).absolute()}")
        except OSError as error:
            self.tell(f"{name} cannot be written: {error.strerror}", "error")

    def action_leave(self) -> None:
        """Ends what runs, and leaves."""
        self.close_down()
        self.exit(0)

    async def action_quit(self) -> None:
        """Textual's own name for leaving."""
        self.action_leave()

    # The end

    def _fatal_error(self) -> None:
        """A fault of our own: a sentence on the terminal that comes back, the traceback in a file."""
        error = sys.exc_info()[1]
        self.close_down()
        if error is None or os.environ.get("KERNCAP_DEBUG", "0") not in ("", "0"):
            super()._fatal_error()
            return
        self._exit_renderables.append(Text(f"kerncap: {unexpected(error)}"))
        self._close_messages_no_wait()

    def close_down(self) -> None:
        """Every screen ends what it started."""
        for screen in reversed(self.screen_stack):
            closer = getattr(screen, "close_down", None)
            if closer is not None:
                # One screen's trouble must not keep the others' processes alive.
                with contextlib.suppress(Exception):
                    closer()

    def _on_signal(self, number: int) -> None:
        code = 128 + number

        def force() -> None:
            time.sleep(_FORCED_END_S)
            os._exit(code)

        # The terminal may be gone, and whatever writes to it stuck: this ends us in any case.
        threading.Thread(target=force, daemon=True).start()
        seen = cut_off.record(self.screen_stack, self.device, self.source_dir)
        if seen is not None:  # else the offer to resume may still be open: it stands
            self.remembered.set(cut_off.NAME, seen)
        self.close_down()
        self.exit(return_code=code)


def run(
    command: Command | None = None,
    *,
    device: str | None = None,
    source_dir: Path | None = None,
    workbench: Path | None = None,
    mouse: bool = True,
    guided: bool = False,
) -> int:
    """Runs the terminal UI until the user leaves it; returns the exit code.

    `workbench` is a reproducer to open at once.
    """
    # A look at a thousand kernels makes thousands of objects, all of them in use: by default the collector
    # would go through them, and through the whole interface, several times a look.
    gc.set_threshold(_YOUNG_OBJECTS)
    app = KerncapApp(command, device=device, source_dir=source_dir, guided=guided, workbench=workbench)
    app.run(mouse=mouse and app.settings.mouse)
    sys.stdout.flush()
    return int(app.return_code or 0)
