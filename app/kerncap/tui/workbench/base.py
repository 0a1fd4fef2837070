"""The workbench screen's state and parts, for the classes that it is made of."""

from __future__ import annotations

from pathlib import Path

from kerncap.tui.screens.base import KerncapScreen
from kerncap.tui.workbench.attempts import AttemptsTable
from kerncap.tui.workbench.engine import Engine, MakeBench
from kerncap.tui.workbench.model import Model
from kerncap.tui.workbench.views import Shown, Views


class WorkbenchBase(KerncapScreen):
    """State, and what draws it. `make_bench` is for tests."""

    def __init__(self, directory: Path, device: str | None, make_bench: MakeBench) -> None:
        super().__init__()
        self.directory = Path(directory).absolute()
        self.device = device
        self.make_bench = make_bench
        self.engine: Engine | None = None
        self.model = Model()
        self.shown = Shown()
        self.kernel = ""
        self.arch = ""
        self.replay_only = ""  # why there is nothing to edit, where there is not
        self.trouble = ""  # why the loop does not run
        self.watching = True
        self.judging = ""  # the tolerance and the types that the next comparison goes by
        self.began = 0.0  # when the loop was started, by the app's clock
        self.against = "captured"  # what sources are compared with
        self.marked: int | None = None  # the first of two attempts to compare
        self.files: list[Path] = []
        self.definition: tuple[str, int] | None = None  # the kernel's file in the reproducer, and its line
        self.chosen_pane = "source"
        self.candidate_began = 0.0  # when the configuration under way was begun, by the app's clock
        self.auto_pane = ""  # the pane that an attempt's outcome brought up

    @property
    def views(self) -> Views:
        """The panes."""
        return self.query_one("#views", Views)

    @property
    def table(self) -> AttemptsTable:
        """The attempts."""
        return self.query_one("#attempts", AttemptsTable)

    @property
    def busy(self) -> bool:
        """Whether an attempt or a step is under way."""
        return self.model.attempt is not None

    def no_source(self) -> bool:
        """Whether there is nothing to edit; that is said then."""
        if self.replay_only:
            self.tell(self.replay_only, "warning")
        return bool(self.replay_only)

    def draw_state(self) -> None:
        """The lines of state, after anything happened."""

    def choose_pane(self, pane: str) -> None:
        """The user chose a pane: it stays until an outcome needs another."""
        self.chosen_pane, self.auto_pane = pane, ""
        self.kerncap.remembered.set("workbench.pane", pane)
        self.views.choose(pane)
        self.draw_state()
