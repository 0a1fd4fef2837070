"""Two lines over the ranking: what runs, on what, how far, and what watching costs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content
from textual.geometry import Region
from textual.widget import Widget

from kerncap.core.units import many
from kerncap.tui.leaderboard.columns import count, duration
from kerncap.tui.messages import Board
from kerncap.tui.widgets.line_table import fitted

if TYPE_CHECKING:
    from kerncap.core.program.workload import Command


class State(Enum):
    """What the program does."""

    NONE = "no program"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    EXITED = "exited"
    FAILED = "failed"


NOT_STARTED = "not started"  # the outcome of a program that could not be
_NOTHING = Board()
_SHORT_S = 1.0  # what starting the interposer takes is no share of so short a run that would tell anything


@dataclass(frozen=True, slots=True)
class Heading:
    """What the header shows."""

    command: Command | None = None
    device: str = ""
    state: State = State.NONE
    outcome: str = ""  # "exit status 3", "ended by SIGSEGV"
    board: Board = _NOTHING
    frozen: bool = False
    paused: bool = False
    filter: str = ""
    shown: int = 0
    marked: int = 0


def clock_text(seconds: float) -> str:
    """Elapsed time: `12.3 s`, `4:05`, `1:02:03`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def cost_text(board: Board, *, brief: bool = False) -> str:
    """What the interposer took of the program's time; several threads may share it."""
    if board.elapsed_s <= 0 or not board.dispatches:
        return "cost -"
    if board.elapsed_s < _SHORT_S:
        return f"cost {duration(board.own_ns)}"
    part = f"cost {board.own_ns / 1e9 / board.elapsed_s:.2%}"
    return part if brief else f"{part} ({duration(board.own_ns)})"


def facts_text(heading: Heading, width: int) -> str:
    """What is known of the run, in whole words: where there is no room, the less important is left out."""
    board = heading.board
    timed = "" if board.timed == board.dispatches else f", {count(board.timed)} timed"
    if board.sampling:
        timed += ", sampled"
    dispatches = f"{count(board.dispatches)} {'dispatch' if board.dispatches == 1 else 'dispatches'}"
    kernels = many(len(board.kernels), "kernel")
    of = f"{heading.shown} of {kernels}" if heading.filter else kernels
    processes = f"{board.processes} processes" if board.processes > 1 else ""
    simulated = "simulated time" if board.simulated else ""
    first = [heading.device or "-", clock_text(board.elapsed_s)]
    brief = cost_text(board, brief=True)
    choices = [
        [*first, dispatches + timed, of, cost_text(board), processes, simulated],
        [*first, dispatches + timed, of, brief, processes, simulated],
        [*first, dispatches, of, brief, processes, simulated],
        [*first, dispatches, of, brief, simulated],
        [*first, dispatches, of, simulated],
        [*first, of, simulated],
        [*first, simulated],
        first,
    ]
    lines = ["  ".join(filter(None, words)) for words in choices]
    return next((line for line in lines if cell_len(line) <= width), lines[-1])


_STATE_STYLES = {
    State.RUNNING: "bold $text-success",
    State.STARTING: "bold",
    State.STOPPING: "bold $text-warning",
    State.EXITED: "bold",
    State.FAILED: "bold $text-error",
    State.NONE: "dim",
}


def lines_of(heading: Heading, width: int) -> Content:
    """Both lines, cut to the width."""
    state = heading.state.value
    if heading.outcome:
        state = f"{state}: {heading.outcome}" if heading.state is not State.EXITED else heading.outcome
    title = heading.command.text() if heading.command else "no program: r runs one"
    head = " kerncap "
    room = max(8, width - len(head) - len(state) - 3)
    name = "".join(char if char.isprintable() else "?" for char in title)
    first = Content.assemble(
        (head, "bold reverse"),
        (" " + fitted(name, room) + " ", ""),
        (state + " ", _STATE_STYLES[heading.state]),
    )
    flags = []
    if heading.paused:
        flags.append("PAUSED")
    if heading.frozen:
        flags.append("ORDER FROZEN")
    if heading.filter:
        flags.append(f"/{heading.filter}")
    if heading.marked:
        flags.append(f"{heading.marked} marked")
    tail = "  ".join(flags)
    room = width - 2 - (len(tail) + 2 if tail else 0)
    second = Content.assemble(
        (" " + fitted(facts_text(heading, max(0, room)), max(0, room)), "dim"),
        ("  " + tail if tail else "", "bold $warning"),
    )
    return Content("\n").join([first, second])


class BoardHeader(Widget):
    """The two lines."""

    DEFAULT_CSS = """
    BoardHeader { height: 2; background: $panel; }
    BoardHeader:ansi { background: ansi_default; }
    """

    def __init__(self) -> None:
        super().__init__(id="header")
        self.heading = Heading()

    def show(self, heading: Heading) -> None:
        """Shows other facts."""
        if heading == self.heading:
            return
        before, self.heading = self.heading, heading
        same = (before.command, before.state, before.outcome) == (
            heading.command,
            heading.state,
            heading.outcome,
        )
        # Mostly figures alone change, and they are on the second line.
        self.refresh(Region(0, 1, self.size.width, 1)) if same else self.refresh()

    def render(self) -> Content:
        """The lines for the width at hand."""
        return lines_of(self.heading, self.size.width)
