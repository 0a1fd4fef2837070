"""What the workbench's keys do. A part of the screen; what takes time runs in a thread."""

from __future__ import annotations

import shlex
from typing import cast

from textual import work
from textual.message import Message

from kerncap.core.errors import KerncapError
from kerncap.core.loop.history import (
    DiffLine,
    captured_sources,
    diff,
    go_back,
    iteration_sources,
    present_sources,
)
from kerncap.core.loop.iterations import Iteration, find_iteration
from kerncap.core.units import many
from kerncap.tui.widgets.bars import Severity
from kerncap.tui.workbench.configuration_commands import ConfigurationCommands
from kerncap.tui.workbench.source_commands import Told
from kerncap.tui.workbench.texts import Sides

_AGAINST = ("captured", "previous", "best")


class Diffed(Message):
    """A source diff is ready."""

    def __init__(self, number: int, title: str, lines: list[DiffLine], sides: Sides | None = None) -> None:
        super().__init__()
        self.number = number
        self.title = title
        self.lines = lines
        self.sides = sides


class WentBack(Message):
    """The source of an attempt is in place; `aside` is the attempt that keeps what was there before."""

    def __init__(self, number: int, changed: list[str], aside: Iteration | None) -> None:
        super().__init__()
        self.number = number
        self.changed = changed
        self.aside = aside


class Commands(ConfigurationCommands):
    """The actions of `WorkbenchScreen`."""

    # The loop

    def action_build(self) -> None:
        """An attempt with the source as it stands."""
        if not self.no_source():
            self._start()

    def _start(self) -> None:
        self.trouble = ""
        self.began = self.kerncap.clock()
        if self.engine is not None:
            self.engine.build()
        self.draw_state()

    def action_replay(self) -> None:
        """Times the selected attempt again."""
        self._again("replay", "default")

    def action_validate(self, mode: str) -> None:
        """Compares the selected attempt's result again."""
        self._again("validate", mode)

    def action_tolerance(self) -> None:
        """Asks how results are compared; the selected attempt is compared again."""
        from kerncap.core.loop.judging import parse_judging, remember
        from kerncap.tui.widgets.ask import AskText

        def check(text: str) -> str | None:
            try:
                remember(self.directory, parse_judging(text))
            except (KerncapError, OSError) as error:
                return str(error)
            return None

        def answered(text: str | None) -> None:
            if text is None:
                return
            self.judging = parse_judging(text).text
            self.tell(f"Results are compared {f'with {self.judging}' if self.judging else 'exactly'}.")
            self.draw_state()
            if self.table.number is not None and self.engine is not None and self.engine.alive:
                self._again("validate", "default")

        hint = (
            "rtol 1e-6, atol 1e-8: within atol + rtol * |expected|. ulp 2: within 2 units in the last place. "
            "3=f32: region 3 holds floats. Nothing: exactly."
        )
        self.app.push_screen(AskText("Tolerance:", self.judging, hint=hint, check=check), answered)

    def _again(self, step: str, mode: str) -> None:
        number = self.table.number
        stands = self.engine is None or not self.engine.alive
        if self.replay_only and (number is None or stands):  # there is nothing to build: a run of all steps
            self._start()
        elif number is None:
            self.tell("There is no attempt yet: b builds.", "warning")
        elif self.engine is None or not self.engine.alive:
            self.tell("The loop does not run: b starts it.", "warning")
        else:
            self.engine.ask(step, mode, number)

    def action_watching(self) -> None:
        """Saves start attempts, or do not."""
        if self.no_source():
            return
        self.watching = not self.watching
        if self.engine is not None:
            self.engine.watch(self.watching)
        self.tell("A save starts an attempt." if self.watching else "Saves start nothing; b builds.")
        self.draw_state()

    def action_back(self) -> None:
        """Gives up what is under way; else one step back. Never quits."""
        if self.views.source.editing:
            self.leave_editor()
        elif self.busy and self.engine is not None:
            self.engine.cancel()
        elif self.give_up_candidates():
            pass
        elif self.marked is not None or self.shown.sides is not None:
            self._unmark()
        elif len(self.app.screen_stack) > 1:
            self.dismiss()

    # Panes

    def action_pane(self, name: str) -> None:
        """Brings a pane into view, and the keys to it."""
        if name == "config" and self.no_configuration():
            return
        self.choose_pane(name)
        target = self.views.source.view if name == "source" else self.views.view(name)
        if not (name == "source" and self.views.source.editing):
            self.call_after_refresh(target.focus)

    def _see(self, name: str) -> None:
        """A pane into view, where it is not: one that an outcome brought up stays the outcome's."""
        if not self.views.view(name).display:
            self.action_pane(name)

    def action_raw(self) -> None:
        """The compiler's output as it came, or parsed."""
        self.shown.raw = not self.shown.raw
        self._see("errors")
        self.views.draw()

    def action_region(self, by: int) -> None:
        """Another region in the validation pane."""
        regions = (self.shown.document.get("validation") or {}).get("regions") or []
        if regions:
            self.shown.region = (self.shown.region + by) % len(regions)
            self._see("validation")
            self.views.draw()

    def action_error(self, by: int) -> None:
        """The next message, or the one before."""
        found = self.shown.diagnostics
        if not found:
            self.tell("There are no compiler messages.")
            return
        self.shown.current = (self.shown.current + by) % len(found)
        self.views.draw()
        self.go_to_diagnostic()

    # Attempts

    def action_go_back(self) -> None:
        """The selected attempt's source is put back."""
        if self.no_source():
            return
        number = self.table.number
        if self.views.source.editing:
            return
        if number is None:
            self.tell("There is no attempt to go back to.", "warning")
            return
        self._go_back(self.model.iterations[number], list(self.model.iterations.values()))

    @work(thread=True, exclusive=True, group="go-back", exit_on_error=False)
    def _go_back(self, iteration: Iteration, known: list[Iteration]) -> None:
        try:
            changed, kept = go_back(self.directory, iteration, known)
            aside = find_iteration(self.directory, kept) if kept is not None else None
        except (KerncapError, OSError) as error:
            self.post_message(Told(str(error), "error"))
            return
        self.post_message(WentBack(iteration.number, changed, aside))

    def on_went_back(self, message: WentBack) -> None:
        """The source was put back."""
        if message.aside is not None:
            self.model.put(message.aside, None)
            self.table.renew()
        if not message.changed:
            self.tell(f"The source is already that of attempt {message.number}.")
        else:
            kept = f" What was there is kept as {message.aside.number}." if message.aside else ""
            self.tell(f"The source is that of attempt {message.number} again.{kept}")
        self.reload_source()
        self.look_at_pinned()

    def on_told(self, message: Told) -> None:
        """A worker has something to say."""
        self.tell(message.text, cast(Severity, message.severity), lasting=message.severity == "error")

    def action_compare(self) -> None:
        """The first of two attempts, or the second: then both are compared."""
        if self.no_source():
            return
        number = self.table.number
        if number is None:
            self.tell("There is no attempt to compare.", "warning")
        elif self.marked is None:
            self.marked = number
            self.table.focus()  # ↑ ↓ go to the other one, whichever pane had them
            self.tell(f"Attempt {number} is one of two: ↑ ↓ to the other, then c again.", lasting=True)
        elif self.marked == number:
            self._unmark()
            self.table.focus()
            self.tell(f"Attempt {number} is not marked any more: c on one attempt, then on another.")
        else:
            first, self.marked = self.marked, None
            self.tell("")
            self.choose_pane("diff")
            self._compare(self.model.iterations[first], self.model.iterations[number])
        self.table.marked = self.marked
        self.table.repaint()

    def _unmark(self) -> None:
        self.marked = self.table.marked = None
        self.shown.sides = None
        self.tell("")
        self.table.repaint()
        self.compute_diff()

    @work(thread=True, exclusive=True, group="diff", exit_on_error=False)
    def _compare(self, one: Iteration, other: Iteration) -> None:
        from kerncap.core.replay.timing import gain_between

        try:
            lines = diff(iteration_sources(one), iteration_sources(other))
        except (KerncapError, OSError) as error:
            self.post_message(Told(str(error), "error"))
            return
        gain = gain_between(one.document.get("timing"), other.document.get("timing"))
        rows = self.model.rows
        sides = Sides(
            rows[one.number],
            rows[other.number],
            gain[0] if gain else None,
            gain[1] if gain else None,
        )
        self.post_message(Diffed(other.number, "", lines, sides))

    def action_against(self) -> None:
        """Another source to compare with."""
        if self.no_source():
            return
        self.against = _AGAINST[(_AGAINST.index(self.against) + 1) % len(_AGAINST)]
        self.shown.sides = None
        self.action_pane("diff")
        self.compute_diff()

    def compute_diff(self) -> None:
        """The source diff of the shown attempt, in a thread."""
        if self.replay_only:
            return
        row = self.shown.row
        number = row.number if row is not None else 0
        other: Iteration | None = None
        word = "the captured source"
        if self.against == "previous":
            before = [n for n in self.model.numbers if n < number]
            other = self.model.iterations[before[-1]] if before else None
        elif self.against == "best":
            best = self.model.best
            other = self.model.iterations[best.number] if best is not None else None
        if other is not None:
            word = f"attempt {other.number}"
        title = f"{word} to attempt {number}" if number else f"{word} to the source as it stands"
        self._diff(number, f"{title}   (d: against another)", self.model.iterations.get(number), other)

    @work(thread=True, exclusive=True, group="diff", exit_on_error=False)
    def _diff(self, number: int, title: str, shown: Iteration | None, other: Iteration | None) -> None:
        try:
            before = iteration_sources(other) if other is not None else captured_sources(self.directory)
            after = iteration_sources(shown) if shown is not None else present_sources(self.directory)
            lines = diff(before, after)
        except (KerncapError, OSError) as error:
            title, lines = str(error), []
        self.post_message(Diffed(number, title, lines))

    def on_diffed(self, message: Diffed) -> None:
        """A diff came; one that is about another attempt by now is of no use."""
        row = self.shown.row
        if message.sides is None and message.number != (row.number if row is not None else 0):
            return
        self.shown.diff, self.shown.diff_title = message.lines, message.title
        self.shown.sides = message.sides
        if message.sides is not None:
            self.views.view("diff").scroll_to(0, 0, animate=False)
        self.views.draw()

    def action_patch(self) -> None:
        """Writes the change as a patch."""
        if not self.no_source():
            self._patch()

    @work(thread=True, exclusive=True, group="patch", exit_on_error=False)
    def _patch(self) -> None:
        from kerncap.core.build.patch import NAME, write_patch

        try:
            made = write_patch(self.directory)
        except (KerncapError, OSError) as error:
            self.post_message(Told(str(error), "warning"))
            return
        path = self.directory / NAME
        text = f"Wrote {NAME} ({many(len(made.files), 'file')}); this applies it: "
        text += shlex.join(["git", "-C", str(made.root), "apply", str(path)])
        if made.applies is False:
            text += " -- the program's source has changed since the extraction, so it may not apply"
        if made.outside:
            text += f" -- not in it: {', '.join(str(p) for p in made.outside)}"
        self.post_message(Told(text, "warning" if made.applies is False or made.outside else "information"))
