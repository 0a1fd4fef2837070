"""What the workbench does with a Triton kernel's configurations. A part of the screen."""

from __future__ import annotations

from dataclasses import replace

from kerncap.core.build.triton_pinned import pinned_changes
from kerncap.core.errors import KerncapError
from kerncap.core.loop.candidates import Source
from kerncap.tui.workbench.configuration import CandidatesRun, Configuration, Ran, RanAll, Took
from kerncap.tui.workbench.configuration_text import CANDIDATES
from kerncap.tui.workbench.source_commands import SourceCommands


class ConfigurationCommands(SourceCommands):
    """`6` shows the configurations, `T` replays the capture under each of them, `esc` gives that up."""

    _run_of_candidates: CandidatesRun | None = None

    @property
    def configuration(self) -> Configuration | None:
        """What the pane shows; None where the kernel is none of Triton's, or nothing is known yet."""
        return self.views.configuration

    def show_configuration(self, found: Configuration | None) -> None:
        """Draws it."""
        if found != self.views.configuration:
            self.views.configuration = found
            self.views.draw()
            self.draw_state()

    def look_at_pinned(self) -> None:
        """`pinned()` may have been edited."""
        found = self.configuration
        if found is not None:
            changes, problem = pinned_changes(self.directory)
            pinned = replace(found.pinned, changes=changes, problem=problem)
            since = found.source is not None and found.source != self._source_now()
            self.show_configuration(replace(found, pinned=pinned, saved_since=since))

    def _source_now(self) -> Source | None:
        try:
            return Source.of(self.directory)
        except KerncapError:
            return None  # compile.json, which names the files, is gone or altered

    def no_configuration(self) -> bool:
        """Whether there is none to show; that is said then."""
        if self.configuration is None:
            self.tell("This kernel is none of Triton's: it has no configuration to pin.", "warning")
            return True
        self.look_at_pinned()
        return False

    def action_candidates(self) -> None:
        """Replays the capture under each configuration that the autotuner tried."""
        if self.no_configuration():
            return
        found = self.configuration
        assert found is not None
        self.choose_pane("config")
        self.call_after_refresh(self._to_candidates)
        if self._run_of_candidates is not None:
            self.tell(f"{found.now} is under way: esc gives up.".capitalize(), "warning")
        elif not found.tried:
            self.tell(found.none, "warning")
        elif not self.no_source() and self.engine is not None:
            self.candidate_began = self.kerncap.clock()
            self.show_configuration(replace(found, running=0, problem=""))
            self._run_of_candidates = CandidatesRun(
                self.directory, self.device, self.engine.turns, self.post_message
            )
            self._run_of_candidates.start()

    def _to_candidates(self) -> None:
        """The keys to the pane, and the table into view."""
        view = self.views.view("config")
        view.focus()
        lines = view.text.splitlines()
        top = next((i for i, line in enumerate(lines) if line.startswith(CANDIDATES)), 0)
        view.scroll_to(y=top, animate=False, force=True)

    def give_up_candidates(self) -> bool:
        """Whether a run was under way."""
        run = self._run_of_candidates
        if run is not None:
            run.cancel()
            self.tell("No more configurations are tried; the one under way comes to its end.")
        return run is not None

    def on_took(self, message: Took) -> None:
        """The run has taken its source: from now on the replays are of that."""
        if self.configuration is not None and self._run_of_candidates is not None:
            tried = tuple(replace(t, result=t.recorded) for t in self.configuration.tried)
            self.show_configuration(replace(self.configuration, source=message.source, tried=tried))
            self.look_at_pinned()

    def on_ran(self, message: Ran) -> None:
        """The candidate under way has been replayed, or could not be."""
        if self.configuration is not None and self._run_of_candidates is not None:
            self.candidate_began = self.kerncap.clock()
            self.show_configuration(self.configuration.with_result(message.row))

    def on_ran_all(self, message: RanAll) -> None:
        """No more follow."""
        self._run_of_candidates = None
        found = self.configuration
        if found is not None:
            self.show_configuration(replace(found, running=None, problem=message.problem))
        self.look_at_pinned()
        edited = found is not None and found.source is not None and found.source.edited
        what = "edited kernel" if edited else "capture"
        self.tell(message.problem or f"The {what} was replayed under each configuration.")
