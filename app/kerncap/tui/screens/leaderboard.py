"""The first screen: a program's kernels, ranked live."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.timer import Timer

from kerncap.core.program.device_words import words_of_devices
from kerncap.core.units import many
from kerncap.tui.actions import bindings
from kerncap.tui.leaderboard.detail import DetailPane
from kerncap.tui.leaderboard.header import NOT_STARTED, BoardHeader, Heading, State
from kerncap.tui.leaderboard.hints import hint
from kerncap.tui.leaderboard.keys import ACTIONS, GROUP
from kerncap.tui.leaderboard.panes import FilterLine, OutputPane
from kerncap.tui.leaderboard.ranking import SORTS, Sort
from kerncap.tui.leaderboard.rows import BROAD, FLAT, detail_rows, shown_unasked
from kerncap.tui.leaderboard.table import BoardTable
from kerncap.tui.messages import (
    Board,
    Figures,
    Output,
    ProgramEnded,
    ProgramFailed,
    ProgramStarted,
)
from kerncap.tui.screens.base import KerncapScreen
from kerncap.tui.services.source_sites import Found, site_of
from kerncap.tui.services.trouble import sentences
from kerncap.tui.settings import HZ_RANGE
from kerncap.tui.widgets.bars import StatusLine
from kerncap.tui.widgets.line_table import LineTable

if TYPE_CHECKING:
    from kerncap.core.program.live import KernelStats
    from kerncap.core.program.workload import Command
    from kerncap.tui.services.program import Program

_LOOK_FOR_SOURCE_S = 1.0
_DETAIL_EVERY_S = 0.5  # a page of figures changes no faster than it can be read


class LeaderboardScreen(KerncapScreen):
    """`command` is run at once; without one the screen says how to run one."""

    GROUP = GROUP
    BINDINGS: ClassVar[list[BindingType]] = bindings(GROUP, "Leaderboard", ACTIONS)
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (FLAT, "-high")]  # noqa: RUF012
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (BROAD, "-broad")]  # noqa: RUF012
    DEFAULT_CSS = """
    LeaderboardScreen #main { height: 1fr; layout: vertical; }
    LeaderboardScreen #left { height: 1fr; width: 1fr; }
    LeaderboardScreen DetailPane { height: 13; width: 1fr; }
    LeaderboardScreen.-narrow DetailPane { height: 9; }
    LeaderboardScreen.-narrow OutputPane { max-height: 6; }
    LeaderboardScreen.-broad #main { layout: horizontal; }
    LeaderboardScreen.-broad DetailPane { width: 62; height: 1fr; border-top: none; }
    LeaderboardScreen.-broad DetailPane { border-left: solid $primary 50%; }
    LeaderboardScreen.-broad OutputPane { max-height: 12; }
    LeaderboardScreen.-flat DetailPane { height: 3; }
    LeaderboardScreen.-flat OutputPane { max-height: 3; }
    """

    def __init__(self, command: Command | None) -> None:
        super().__init__()
        self.command = command
        self.program: Program | None = None
        self._runs = 0
        self._heading = Heading()
        self._latest = Board()  # the newest figures, which a paused view does not show yet
        self._allocated = 0  # the most that the program has had from the runtime
        self._hertz = 5.0
        self._detailed = 0.0  # when the detail pane was last drawn, and for which kernel
        self._detailed_kernel: str | None = None
        self._detail_rows = 0  # that the detail pane has wanted so far: rows must not jump with the cursor
        self._sources: dict[str, Found] = {}
        self._source_timer: Timer | None = None
        self._looking = False
        self._extracted: Path | None = None

    def compose_body(self) -> ComposeResult:
        """Header, ranking, panes."""
        yield BoardHeader()
        with Container(id="main"):
            with Vertical(id="left"):
                yield BoardTable()
                yield FilterLine()
                yield OutputPane()
            yield DetailPane()

    @property
    def table(self) -> BoardTable:
        """The ranking."""
        return self.query_one(BoardTable)

    # Begin and end

    def on_mount(self) -> None:
        """What is remembered applies; the program starts."""
        app = self.kerncap
        self._hertz = app.settings.refresh_hz
        remembered = app.remembered
        table = self.table
        key = remembered.get("leaderboard.sort", "total")
        table.sort = Sort(key if key in SORTS else "total", remembered.get("leaderboard.reverse", False))
        table.wide = remembered.get("leaderboard.wide", False)
        table.idle_text = "No kernel has been dispatched yet."
        table.focus()
        self._arrange_panes()
        if self.command is not None:
            self.call_after_refresh(self.start)
        else:
            table.idle_text = "Press r to run a program, c for the captures on disk."
            table.rank()
            self._show_heading()
            from kerncap.tui.leaderboard.prompts import offer_resume

            self.call_after_refresh(offer_resume, self)

    def on_resize(self, event: events.Resize) -> None:
        """Panes follow the size of the terminal unless the user has decided."""
        self._arrange_panes()
        self.call_after_refresh(self._show_detail)  # of other rows

    def _arrange_panes(self) -> None:
        width, height = self.app.size
        room = shown_unasked(width, height)
        for name, kind in (("detail", DetailPane), ("output", OutputPane)):
            wish = self.kerncap.remembered.get(f"leaderboard.{name}", "auto")
            # A flat terminal has room for the ranking only, whatever was chosen on another one.
            shown = room[name] if wish == "auto" else wish == "on"
            self.query_one(kind).display = shown and height >= FLAT

    def seen(self) -> dict[str, Any]:
        """The program, unless it could not be started."""
        command = self.command
        if command is None or self._heading.outcome == NOT_STARTED:
            return {}
        variables = [list(pair) for pair in command.variables]
        return {"command": list(command.arguments), "variables": variables, "running": self.running}

    def close_down(self) -> None:
        """The program ends with us."""
        if self.program is not None:
            self.program.end_now()

    # The program

    @property
    def running(self) -> bool:
        """Whether the program runs, or is about to."""
        return self._heading.state in (State.STARTING, State.RUNNING, State.STOPPING)

    def start(self) -> None:
        """Runs the command."""
        assert self.command is not None
        app = self.kerncap
        self._runs += 1
        self._latest = Board()
        self.table.idle_text = "No kernel has been dispatched yet."
        self.table.clear()
        self.query_one(OutputPane).begin()
        self.program = app.make_program(self._runs, self.command, app.device, self.post_message, self._hertz)
        self._show_heading(
            state=State.STARTING, outcome="", paused=False, board=Board(), device=app.device or ""
        )
        self.program.start()

    @on(ProgramStarted)
    def _started(self, message: ProgramStarted) -> None:
        if message.run == self._runs:
            self._remember_command()
            self._show_heading(state=State.RUNNING, device=message.device)
            self._hint()

    def _remember_command(self) -> None:
        """To go on with, and to be offered the next time: only what could be started."""
        if self.command is not None:
            remembered = self.kerncap.remembered
            remembered.set("resume.command", list(self.command.arguments))
            remembered.set("resume.variables", [list(pair) for pair in self.command.variables] or None)

    @on(Figures)
    def _figures(self, message: Figures) -> None:
        if message.run != self._runs:
            return
        self._latest = message.board
        self._allocated = max(self._allocated, message.board.allocated)
        if self._heading.paused:
            return
        if self.kerncap.guided:
            self._lead(message.board)
        self.table.take(message.board)
        self._show_heading(board=message.board)
        now = self.kerncap.clock()
        if now - self._detailed >= _DETAIL_EVERY_S or self.table.cursor != self._detailed_kernel:
            self._detailed, self._detailed_kernel = now, self.table.cursor
            self._show_detail()
        self._hint()

    @on(Output)
    def _output(self, message: Output) -> None:
        if message.run == self._runs:
            self.query_one(OutputPane).add(message.lines, message.skipped, message.total_bytes)

    @on(ProgramEnded)
    def _ended(self, message: ProgramEnded) -> None:
        if message.run != self._runs:
            return
        ended = message.ended
        good = ended is not None and ended.ok
        stopped = self._heading.state is State.STOPPING
        outcome = ended.text() if ended else "ended"
        if stopped:
            outcome = f"stopped ({outcome})"
        self._show_heading(state=State.EXITED if good or stopped else State.FAILED, outcome=outcome)
        seen = self._latest.dispatches
        if not good and not stopped:
            more = "Its last words are in the output pane (o)." if self._has_output() else ""
            what = f"after {many(seen, 'dispatch')}" if seen else "before any dispatch was seen"
            told = sentences(f"The program failed ({outcome}) {what}", message.reason, more)
            self.tell(told, "error", lasting=True)
            if not self.query_one(OutputPane).display and self._has_output():
                self.query_one(OutputPane).display = True
        elif not seen:
            self.tell(sentences("No dispatch was seen", message.reason), "warning", lasting=True)
        elif message.left:
            still = "still runs" if message.left == 1 else "still run"
            self.tell(f"{many(message.left, 'process')} that the program started {still}.", "warning")
        elif self._latest.notes:
            self.tell(sentences(*self._latest.notes), "warning", lasting=True)
        self.table.idle_text = "No dispatch was seen."
        self.table.rank()
        self._show_detail()  # as the ranking is; the last figures may have come too soon
        self._hint()

    @on(ProgramFailed)
    def _failed(self, message: ProgramFailed) -> None:
        if message.run == self._runs:
            self._show_heading(state=State.FAILED, outcome=NOT_STARTED)
            self.tell(sentences(message.sentence, "R names another program"), "error", lasting=True)

    def _has_output(self) -> bool:
        return bool(self.query_one(OutputPane).count)

    # What is on screen

    def refresh_heading(self) -> None:
        """What the header shows may have changed."""
        self._show_heading()

    def _show_heading(self, **changes: Any) -> None:
        table = self.table
        self._heading = replace(
            self._heading,
            command=self.command,
            frozen=table.frozen,
            filter=table.filter.text,
            shown=len(table.shown),
            marked=len(table.marked),
            **changes,
        )
        self.query_one(BoardHeader).show(self._heading)

    def _show_detail(self) -> None:
        pane = self.query_one(DetailPane)
        if not pane.display:
            return
        kernel = self.table.selected
        source = self._sources.get(kernel.id, Found()) if kernel else Found()
        clock = " (simulated)" if self.table.board.simulated else ""
        board = self.table.board
        how = board.described.get(kernel.id) if kernel else None
        pane.show_kernel(kernel, source, clock, words_of_devices(board.devices), how.text if how else "")
        self._share_rows(pane)
        if kernel is not None and kernel.id not in self._sources and self._source_timer is None:
            ident = kernel.id
            self._source_timer = self.set_timer(_LOOK_FOR_SOURCE_S, lambda: self._look_for_source(ident))

    def _share_rows(self, pane: DetailPane) -> None:
        """The detail pane has the rows that the ranking does not need."""
        self._detail_rows = max(self._detail_rows, len(pane.lines) + 1)
        others = [
            w.outer_size.height for w in (self.query_one(OutputPane), self.query_one(FilterLine)) if w.display
        ]
        left = self.query_one("#main").size.height - sum(others) - len(self.table.keys) - 1
        pane.styles.height = detail_rows(self.app.size, self._detail_rows, left)

    def _look_for_source(self, ident: str) -> None:
        """Looks in a thread, once a kernel, one after the other, for one that stays selected."""
        self._source_timer = None
        kernel = self.table.selected
        if kernel is None or kernel.id != ident or ident in self._sources or self._looking:
            return
        self._sources[kernel.id] = Found()
        self._looking = True
        roots, program = self._source_roots(), self._program_file()

        def look(kernel: KernelStats = kernel) -> None:
            found = site_of(kernel.symbol, kernel.code_hash, program, roots)
            self.app.call_from_thread(self._source_found, kernel.id, found)

        self.run_worker(look, thread=True, group="source", exit_on_error=False)

    def _source_found(self, ident: str, found: Found) -> None:
        self._looking = False
        self._sources[ident] = found
        self._show_detail()

    def _program_file(self) -> Path | None:
        """The program as a file; what is found by PATH is hardly the user's own."""
        if self.command is None or "/" not in self.command.arguments[0]:
            return None
        return Path(self.command.arguments[0]).absolute()

    def _source_roots(self) -> list[Path]:
        if self.kerncap.source_dir is not None:
            return [self.kerncap.source_dir]
        if self.command is None or "/" not in self.command.arguments[0]:
            return []
        # A tree with its compile commands is the program's own; anything else may be half a disk.
        folders = list(Path(self.command.arguments[0]).absolute().parents)[:3]
        return [folder for folder in folders if (folder / "compile_commands.json").exists()][:1]

    @on(LineTable.Moved)
    def _moved(self, message: LineTable.Moved) -> None:
        message.stop()
        self._show_detail()
        self._hint()

    @on(LineTable.Chosen)
    def _chosen(self, message: LineTable.Chosen) -> None:
        message.stop()
        self.action_extract()

    def _lead(self, board: Board) -> None:
        """In the demonstration the cursor is on its kernel, wherever that ranks, until the user moves it."""
        from kerncap.demo.edits import KERNEL

        self.table.home = next((k.id for k in board.kernels if k.name == KERNEL), None)

    def _hint(self) -> None:
        if not self.kerncap.guided:
            return
        kernel = self.table.selected
        text = hint(
            kernel.name if kernel else None, extracted=self._extracted is not None, running=self.running
        )
        self.query_one(StatusLine).hint(text)

    # Keys

    def action_sort(self, key: str) -> None:
        """Sorts by a column; again: the other way round."""
        table = self.table
        table.sort = table.sort.clicked(key)
        table.frozen = False
        table.rank()
        self.kerncap.remembered.set("leaderboard.sort", table.sort.key)
        self.kerncap.remembered.set("leaderboard.reverse", table.sort.reverse)
        self._show_heading()

    def action_filter(self) -> None:
        """Opens the filter line; there, its key is a letter like any other."""
        line = self.query_one(FilterLine)
        if line.display:
            line.type("slash", "/")
        else:
            line.open(self.table)

    @on(FilterLine.Changed)
    def _filter_changed(self, message: FilterLine.Changed) -> None:
        self.table.set_filter(message.filter)
        self._show_heading()
        self._show_detail()

    def action_back(self) -> None:
        """Escape: to the table; then no filter."""
        if self.focused is not self.table:
            self.table.focus()
        elif self.table.filter.text:
            self.query_one(FilterLine).clear()

    def action_freeze(self) -> None:
        """Rows stay where they are, or are sorted again."""
        self.table.frozen = not self.table.frozen
        self.table.rank()
        self._show_heading()

    def action_pause(self) -> None:
        """The view stands still, or catches up."""
        paused = not self._heading.paused
        if not paused:
            self.table.take(self._latest)
        self._show_detail()
        self._show_heading(paused=paused, board=self.table.board)

    def action_wide(self) -> None:
        """Names in full."""
        self.table.wide = not self.table.wide
        self.table.repaint()
        self.kerncap.remembered.set("leaderboard.wide", self.table.wide)

    def _toggle(self, name: str, kind: type[DetailPane] | type[OutputPane]) -> None:
        pane = self.query_one(kind)
        pane.display = not pane.display
        if self.app.size.height >= FLAT:
            self.kerncap.remembered.set(f"leaderboard.{name}", "on" if pane.display else "off")
        elif pane.display:  # one of them
            self.query_one(OutputPane if kind is DetailPane else DetailPane).display = False

    def action_detail(self) -> None:
        """The detail pane comes or goes."""
        self._toggle("detail", DetailPane)
        self._show_detail()

    def action_output(self) -> None:
        """The output pane comes or goes."""
        self._toggle("output", OutputPane)
        self.call_after_refresh(self._show_detail)  # of other rows

    def action_mark(self) -> None:
        """Marks the selected kernel, and goes on to the next."""
        kernel = self.table.selected
        if kernel is not None:
            self.table.marked ^= {kernel.id}
            self.table.action_move(1)
            self.table.repaint()
            self._show_heading()

    def action_unmark(self) -> None:
        """Takes all marks away."""
        self.table.marked.clear()
        self.table.repaint()
        self._show_heading()

    def action_rate(self, factor: float) -> None:
        """Figures more or less often."""
        self._hertz = min(max(self._hertz * factor, HZ_RANGE[0]), HZ_RANGE[1])
        if self.program is not None:
            self.program.set_rate(self._hertz)
        self.tell(f"Figures are shown anew {self._hertz:g} times a second.")

    def action_stop(self) -> None:
        """Ends the program."""
        if self.program is None or not self.running:
            self.tell("No program runs.")
            return
        self._show_heading(state=State.STOPPING)
        self.program.stop()

    def action_rerun(self) -> None:
        """Runs the program again."""
        if self.command is None:
            self.action_run_other()
        elif self.running:
            self.tell("The program runs already: x ends it.", "warning")
        else:
            self.start()

    def action_run_other(self) -> None:
        """Asks for a program."""
        if self.running:
            self.tell("A program runs already: x ends it.", "warning")
            return
        from kerncap.tui.leaderboard.prompts import ask_for_program

        ask_for_program(self)

    def action_device(self) -> None:
        """Asks for the device of the next run."""
        from kerncap.tui.leaderboard.prompts import ask_for_device

        ask_for_device(self)

    def action_captures(self) -> None:
        """The captures on disk."""
        self.kerncap.open_captures()

    def action_extract(self) -> None:
        """Opens the dialog for the selected kernel."""
        if self.app.screen is not self:
            return  # a key that came while the dialog was being opened
        kernel = self.table.selected
        if kernel is None:
            self.tell("There is no kernel to extract.", "warning")
            return
        if self.command is None:
            self.tell("There is no program to extract from.", "warning")
            return
        from kerncap.tui.extract.dialog import ExtractDialog, Origin

        app = self.kerncap
        origin = Origin(
            self.command,
            app.device,
            app.source_dir,
            self.program,
            self.running,
            self._allocated,
            words_of_devices(self.table.board.devices),
            lambda: next((k.calls for k in self._latest.kernels if k.id == kernel.id), 0),
        )

        def done(directory: Path | None) -> None:
            if directory is not None:
                self._extracted = directory
                self._hint()
                self.kerncap.open_workbench(directory)

        self.app.push_screen(ExtractDialog(kernel, origin), done)

    def action_save(self) -> None:
        """Asks where to, and writes the kernels shown."""
        from kerncap.tui.leaderboard.saving import ask_and_save

        ask_and_save(self)

    def action_copy(self) -> None:
        """Names to the clipboard, and to a file, since many terminals refuse the former."""
        from kerncap.tui.leaderboard.saving import copy_names

        copy_names(self)

    @property
    def heading(self) -> Heading:
        """What the header shows."""
        return self._heading
