"""The workbench's screen: the loop runs in `engine`, the state is in `model`; this draws it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from kerncap.core.build.diagnostics import counts, first_error, parse
from kerncap.core.loop import events as loop
from kerncap.core.loop.iterations import Iteration
from kerncap.core.units import many
from kerncap.tui.actions import Action, bindings
from kerncap.tui.services.trouble import sentences
from kerncap.tui.widgets.bars import KeyBar, StatusLine
from kerncap.tui.widgets.line_table import LineTable
from kerncap.tui.workbench.actions import ACTIONS, fitting
from kerncap.tui.workbench.attempts import AttemptsTable
from kerncap.tui.workbench.commands import Commands
from kerncap.tui.workbench.engine import Engine, Happened, MakeBench, Opened, Stopped, replay_bench
from kerncap.tui.workbench.hints import hint
from kerncap.tui.workbench.lines import LineView
from kerncap.tui.workbench.status import kernel_line, progress, result_line, tabs_line
from kerncap.tui.workbench.views import PANES, Shown, Views


class WorkbenchScreen(Commands):
    """The edit loop of the reproducer in `directory` on `device`. `make_bench` is for tests."""

    GROUP = "workbench"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(GROUP, "Workbench", ACTIONS)]
    DEFAULT_CSS = """
    WorkbenchScreen #kernel-line { height: 1; padding: 0 1; background: $panel; }
    WorkbenchScreen #result { height: 1; padding: 0 1; }
    WorkbenchScreen #result.-stale { text-opacity: 55%; }
    WorkbenchScreen #result.-stale:ansi { text-opacity: 100%; text-style: dim; }
    WorkbenchScreen #attempts { height: 6; }
    WorkbenchScreen #tabs { height: 1; padding: 0 1; background: $panel; }
    WorkbenchScreen.-low.-configuration #attempts { height: 3; }
    WorkbenchScreen.-high #attempts { height: 9; }
    WorkbenchScreen.-higher #attempts { height: 12; }
    """
    VERTICAL_BREAKPOINTS = [(0, "-low"), (34, "-high"), (46, "-higher")]  # noqa: RUF012

    def __init__(
        self, directory: Path, device: str | None = None, *, make_bench: MakeBench = replay_bench
    ) -> None:
        super().__init__(directory, device, make_bench)

    # The parts

    def compose_body(self) -> ComposeResult:
        """Two lines of state, the attempts, the panes."""
        yield Static("", id="kernel-line", markup=False)
        yield Static("", id="result", markup=False)
        yield AttemptsTable(self.model, id="attempts")
        yield Static("", id="tabs", markup=False)
        plain = bool(self.app.no_color or self.app.native_ansi_color)
        yield Views(self.model, plain=plain, id="views")

    def on_mount(self) -> None:
        """The loop starts; drawing elapsed times costs a line a tick."""
        self.began = self.kerncap.clock()
        pane = str(self.kerncap.remembered.get("workbench.pane", "source"))
        self.chosen_pane = pane if pane in PANES else "source"
        self.views.choose(self.chosen_pane)
        self.table.focus()
        self.engine = Engine(
            self.directory,
            self.device,
            self.post_message,
            make_bench=self.make_bench,
            poll_ms=self.kerncap.settings.poll_ms,
        )
        self.engine.start()
        self.set_interval(1 / min(5.0, self.kerncap.settings.refresh_hz), self._tick)
        self.draw_state()

    def on_unmount(self) -> None:
        """Gone: the loop and the replayer end, without holding up the screen below."""
        if self._run_of_candidates is not None:
            self._run_of_candidates.cancel()
        if self.engine is not None:
            threading.Thread(target=self.engine.close, daemon=True).start()

    def fitting(self, actions: Sequence[Action]) -> Sequence[Action]:
        """What can be done with this reproducer."""
        return fitting(actions, replay_only=bool(self.replay_only), triton=self.configuration is not None)

    def seen(self) -> dict[str, Any]:
        """The reproducer: its attempts are on disk."""
        return {"workbench": str(self.directory)}

    def close_down(self) -> None:
        """The application ends; attempts are kept, so that the session can be resumed."""
        if self._run_of_candidates is not None:
            self._run_of_candidates.cancel()
        if self.engine is not None:
            self.engine.close()

    # What the loop says

    def on_opened(self, message: Opened) -> None:
        """The reproducer was read."""
        facts = message.facts
        self.kernel, self.arch, self.trouble = facts.kernel, facts.arch, ""
        self.model.load(list(facts.iterations), facts.changed)
        self.table.renew(to_newest=True)
        self.definition, self.judging = facts.definition, facts.judging
        self.replay_only = facts.replay_only
        self.query_one(KeyBar).refresh()  # keys that fit it
        if self._run_of_candidates is None:
            self.show_configuration(facts.configuration)
        if self.configuration is None and self.chosen_pane == "config":  # of another kernel
            self.chosen_pane = "source"
            self.views.choose(self.chosen_pane)
        if self.replay_only:
            self.views.source.say(self.replay_only)
            self.table.empty_text = "p times the captured kernel"
        self.load_sources()
        problems = [*self.config_problems, *facts.problems]
        self.config_problems = ()  # said when the screen was opened, and must not be covered at once
        if problems or self.replay_only:
            self.tell(sentences(*(problems or [self.replay_only])), "warning", lasting=True)
        elif facts.iterations:
            resumed = "; the source is as in the last one" if facts.resumed else ""
            count = len(facts.iterations)
            here = "is here" if count == 1 else "are here"
            self.tell(f"{many(count, 'attempt')} of earlier sessions {here}{resumed}.")
        self._show(self.table.number)

    def on_happened(self, message: Happened) -> None:
        """An event of the loop."""
        event, now = message.event, self.kerncap.clock()
        self.model.apply(event, now)
        match event:
            case loop.Saved(files=files):
                self._begun()
                self.follow(files)
                self.look_at_pinned()
            case loop.Superseded(number=number, iteration=iteration):
                self.tell(f"Attempt {number} was given up.")
                if iteration is not None:
                    self.model.put(iteration, message.changed)
                    self.table.renew()
            case loop.Failed(step=step, message=text) if not self.busy:
                self.tell(f"{step}: {text}", "error", lasting=True)
            case loop.Finished(iteration=iteration) if iteration is not None:
                self._finished(iteration, message.changed)
        self.draw_state()

    def _finished(self, iteration: Iteration, changed: tuple[int, int] | None) -> None:
        self.model.put(iteration, changed)
        newest = iteration.number == self.model.numbers[-1]
        self.table.renew(to_newest=newest)
        self._show(iteration.number)
        if "judging" in (iteration.document.get("validation") or {}):
            self.judging = self.model.rows[iteration.number].judged
        self._bring_up(iteration)
        error = iteration.document.get("error")
        if error and self.views.editing_alone:  # the pane that has it is not in view
            self.tell(f"{error.get('step')}: {error.get('message')}", "error", lasting=True)
        else:
            self._forget_trouble()

    def _forget_trouble(self) -> None:
        """What was said of a step that failed is over."""
        if self.query_one(StatusLine).text.startswith(("replay:", "validate:", "keep:")):
            self.query_one(StatusLine).clear()

    def _begun(self) -> None:
        """Another attempt begins: the fault of the one before must not stand there as its own."""
        self._forget_trouble()
        if self.auto_pane == "validation" and self.shown.document.get("error"):
            self.auto_pane = ""
            self.views.choose(self.chosen_pane)

    def _bring_up(self, iteration: Iteration) -> None:
        """Errors first: what an attempt's outcome is about comes into view, and goes when it is over."""
        wanted = {"build-failed": "errors", "failed": "validation", "error": "validation"}.get(
            iteration.outcome
        )
        if self.views.editing_alone:
            return
        if wanted:
            self.auto_pane = wanted
            self.views.choose(wanted)
        elif self.auto_pane:
            self.auto_pane = ""
            self.views.choose(self.chosen_pane)
        if iteration.outcome == "build-failed":
            self.go_to_diagnostic()
        elif wanted:
            self.go_to_fault()

    def on_stopped(self, message: Stopped) -> None:
        """The loop ended."""
        self.trouble = message.sentence
        self.model.attempt, self.model.ready = None, False
        if message.sentence:
            key = "p" if self.replay_only else "b"
            self.tell(sentences(message.sentence, f"{key} starts again"), "error", lasting=True)
        if not self.model.iterations:
            self.load_sources()
        self.draw_state()

    # What is shown

    def on_line_table_moved(self, message: LineTable.Moved) -> None:
        """Another attempt under the cursor."""
        message.stop()
        self._show(self.table.number)
        self.draw_state()

    def on_line_table_chosen(self, message: LineTable.Chosen) -> None:
        """Enter on an attempt: what its outcome is about."""
        message.stop()
        number = self.table.number
        if number is not None and number in self.model.iterations:
            outcome = self.model.iterations[number].outcome
            self.action_pane({"build-failed": "errors", "failed": "validation"}.get(outcome, "timing"))

    def on_line_view_chosen(self, message: LineView.Chosen) -> None:
        """Enter on a compiler message: to its line."""
        message.stop()
        if message.view.id == "errors":
            at = self.views.diagnostic_at(message.index)
            if at is not None:
                self.shown.current = at
                self.go_to_diagnostic(switch=True)

    def _show(self, number: int | None) -> None:
        iteration = self.model.iterations.get(number) if number is not None else None
        before, self.shown = self.shown, Shown(raw=self.shown.raw)
        if number is not None and iteration is not None:
            self.shown.row, self.shown.document = self.model.rows[number], iteration.document
            build = iteration.document.get("build") or {}
            self.shown.diagnostics = parse(str(build.get("output") or build.get("warnings") or ""))
            first = first_error(self.shown.diagnostics)
            self.shown.current = first if first is not None else (0 if self.shown.diagnostics else -1)
            if before.row is not None and before.row.number == number:
                self.shown.region = before.region
        self.shown.diff, self.shown.diff_title = before.diff, before.diff_title
        self.views.shown = self.shown
        self.mark_source()
        self.compute_diff()
        self.views.draw()

    def _tick(self) -> None:
        trying = self.configuration is not None and self.configuration.count
        if self.busy or trying or (not self.model.ready and not self.trouble):
            self._tabs()

    def draw_state(self) -> None:
        """The lines of state, after anything happened."""
        busy = self.busy
        self.set_class(self.views.beside == "config", "-configuration")
        result = self.query_one("#result", Static)
        result.update(result_line(self.model, self.shown.row, self.trouble, self.size.width - 2))
        result.set_class(busy, "-stale")
        self.views.set_class(busy, "-stale")
        shown, attempt = self.shown.row, self.model.attempt
        stale = ""
        if shown is not None and attempt is not None and attempt.number != shown.number:
            stale = f"of attempt {shown.number}; attempt {attempt.number} is under way"
        if stale != self.views.stale:
            self.views.stale = stale
            self.views.draw()
        poll = self.kerncap.settings.poll_ms
        how = f"watching {'off' if not self.watching else (f'every {poll} ms' if poll else 'on')}"
        if self.replay_only:
            how = "replay only"
        self.query_one("#kernel-line", Static).update(
            kernel_line(
                self.kernel or self.directory.name,
                self.arch,
                self.device,
                self.judging,
                how,
                self.size.width - 2,
            )
        )
        self._tabs()
        if self.kerncap.guided:
            self.query_one(StatusLine).hint(
                "" if self.replay_only else hint(self.model, self.shown.row, self.trouble)
            )

    def _tabs(self) -> None:
        now = self.kerncap.clock()
        found = self.configuration
        trying = (found.count, now - self.candidate_began) if found is not None else ("", 0.0)
        text = progress(self.model, self.trouble, now, now - self.began, *trying)
        errors, warnings = counts(self.shown.diagnostics)
        pane = self.views.pane if not self.views.wide else self.views.beside
        self.query_one("#tabs", Static).update(
            tabs_line(
                pane, errors, warnings, self.shown.row, text, self.size.width - 2, triton=found is not None
            )
        )

    def on_resize(self) -> None:
        """Another width: the lines of state are made for it."""
        if self.is_mounted:
            self.call_after_refresh(self.draw_state)
