"""The extract dialog: a form, then progress, then what came of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import ContentSwitcher, Input, Static

from kerncap.core.code.names import base_name, one_line
from kerncap.core.errors import KerncapError
from kerncap.core.program.device_words import words_of
from kerncap.core.units import many
from kerncap.tui.extract.form import (
    NEXT,
    NUMBER,
    RERUN,
    RUNNING,
    SLOWEST,
    Fields,
    Origin,
    free_output,
    room_text,
    slowest_number,
    waiting_text,
    wanted_of,
)
from kerncap.tui.extract.progress import ProgressView, Steps, size_text
from kerncap.tui.leaderboard.columns import duration
from kerncap.tui.messages import ExtractionEnded, ExtractionProgress
from kerncap.tui.screens.base import KerncapDialog
from kerncap.tui.widgets.choice import Choice

if TYPE_CHECKING:
    from kerncap.core.extract.extract import ExtractResult
    from kerncap.core.program.live import KernelStats
    from kerncap.tui.services.extraction import Extraction

__all__ = ["ExtractDialog", "Origin"]

_GOOD = ("IDENTICAL", "WITHIN_TOLERANCE", "NONDETERMINISTIC_OK")
_LONG_WAIT_S = 3.0  # for a dispatch of the program that runs
_HINTS = {
    "form": "enter extracts   tab next field   ← → choose   esc back",
    "progress": "esc cancels, and leaves nothing",
    "in running": "r by a rerun instead   esc cancels, and leaves nothing",
    "cancelling": "cancelling: the step under way comes to its end, and what was written is removed",
    "result": "enter opens the workbench   esc back",
    "captured": "enter replays it: there is no source to edit   esc back",
    "failed": "enter back to the form   esc leaves",
    "failed in running": "r captures one by a rerun   enter back to the form   esc leaves",
}


class ExtractDialog(KerncapDialog[Path]):
    """Dismissed with the reproducer's directory to open, or None."""

    DEFAULT_CSS = """
    ExtractDialog { align: center middle; }
    ExtractDialog > Vertical { width: 92; max-width: 98%; height: auto; max-height: 98%; padding: 0 1;
                               border: round $primary; border-title-color: $accent; background: $surface; }
    ExtractDialog ContentSwitcher { height: auto; }
    ExtractDialog VerticalScroll { height: auto; max-height: 18; }
    ExtractDialog .field { height: 1; }
    ExtractDialog .field > Static { width: 10; color: $accent; }
    ExtractDialog Input { width: 1fr; }
    ExtractDialog #number { width: 12; }
    ExtractDialog #room { height: auto; color: $foreground 60%; margin-left: 10; }
    ExtractDialog #room.-tight { color: $text-error; text-style: bold; }
    ExtractDialog #which { width: auto; }
    ExtractDialog #name { height: auto; max-height: 3; margin-bottom: 1; }
    ExtractDialog #problem { height: auto; color: $text-error; text-style: bold; margin-top: 1; }
    ExtractDialog #problem { display: none; }
    ExtractDialog #problem.-told { display: block; }
    ExtractDialog #hints { height: 1; margin-top: 1; color: $foreground 60%; }
    ExtractDialog #result { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go", "Extract", show=False, priority=True),
        Binding("r", "rerun", "By a rerun", show=False),
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]

    def __init__(self, kernel: KernelStats, origin: Origin) -> None:
        super().__init__()
        self._kernel = kernel
        self._origin = origin
        self._extraction: Extraction | None = None
        self._result: ExtractResult | None = None
        self._phase = "form"
        self._before = 0  # launches of the kernel when its dispatch was asked for
        self._then_rerun = False  # once what is under way has been given up

    def compose(self) -> ComposeResult:
        """Three pages in one frame."""
        from kerncap.core.extract.placing import default_output

        output = free_output(self.kerncap.place(default_output(base_name(self._kernel.name))))
        kernel, origin = self._kernel, self._origin
        slowest = slowest_number(kernel)
        which = NEXT if origin.running else NUMBER
        off = [] if slowest else [SLOWEST]
        of = "slowest timed" if kernel.estimated else "slowest"
        label = f"{of} ({f'#{slowest}, ' if slowest else ''}{duration(kernel.max_ns)})"
        with Vertical() as frame:
            frame.border_title = Content("extract")
            with ContentSwitcher(initial="form"):
                with VerticalScroll(id="form", can_focus=False):
                    yield Static(Content(one_line(kernel.name, 400)), markup=False, id="name")
                    options = [(NEXT, "the next"), (NUMBER, "number"), (SLOWEST, label)]
                    with self._field("dispatch"):
                        yield Choice(options, which, disabled_options=off, id="which")
                    with self._field("number"):
                        yield Input("1", id="number", compact=True, disabled=which != NUMBER)
                    with self._field("grid"):
                        last = ",".join(map(str, kernel.grid))
                        yield Input(
                            "",
                            placeholder=f"any; the last was {last} {origin.words.items}",
                            id="grid",
                            compact=True,
                        )
                    ways = [(RUNNING, "the program that runs"), (RERUN, "a rerun of it")]
                    with self._field("from"):
                        yield Choice(
                            ways,
                            RUNNING if origin.running else RERUN,
                            disabled_options=[] if origin.running else [RUNNING],
                            id="origin",
                        )
                    with self._field("source"):
                        source = str(origin.source_dir) if origin.source_dir else ""
                        yield Input(
                            source, placeholder="found by debug information", id="source", compact=True
                        )
                    with self._field("output"):
                        yield Input(str(output), id="output", compact=True)
                    yield Static("", markup=False, id="room")
                    with self._field("existing"):
                        yield Choice(
                            [("keep", "refuse"), ("replace", "replace a capture")], "keep", id="replace"
                        )
                    with self._field("memory"):
                        memories = [("reachable", "what it can reach"), ("all", "all of the device's")]
                        yield Choice(memories, "reachable", id="memory")
                yield ProgressView()
                yield Static("", markup=False, id="result")
            yield Static("", markup=False, id="problem")
            yield Static(Content(_HINTS["form"]), markup=False, id="hints")

    @staticmethod
    def _field(label: str) -> Horizontal:
        return Horizontal(Static(Content(label), markup=False), classes="field")

    def on_mount(self) -> None:
        """The first choice has the focus, at once: `focus()` is a message, and the next key may have come."""
        self.set_focus(self.query_one("#which"))
        self._show_room()
        self.set_interval(0.25, self._tick)

    def _tick(self) -> None:
        if self._phase in ("progress", "cancelling"):
            view = self.query_one(ProgressView)
            view.show(None, self.kerncap.clock())
            extraction = self._extraction
            if extraction is not None and self._in_running and view.waited >= _LONG_WAIT_S:
                view.say(waiting_text(extraction.wanted, self._launches(), self._before))

    @property
    def _in_running(self) -> bool:
        """Whether it is the program that runs from which the dispatch is, or was, to come."""
        return self._extraction is not None and self._extraction.wanted.session is not None

    def _launches(self) -> int:
        now = self._origin.launches
        return max(self._kernel.calls, now() if now is not None else 0)

    # The form

    def _look_at_program(self) -> None:
        """A program that has ended meanwhile can only be run again."""
        program = self._origin.program
        if self._origin.running and (program is None or program.session is None):
            self._origin = replace(self._origin, running=False)
            origin = self.query_one("#origin", Choice)
            origin.disable([RUNNING])
            origin.choose(RERUN)
            self.query_one("#which", Choice).disable(
                [NEXT] if slowest_number(self._kernel) else [NEXT, SLOWEST]
            )

    @on(Choice.Changed, "#which")
    def _which_changed(self, message: Choice.Changed) -> None:
        self.query_one("#number", Input).disabled = message.value != NUMBER
        if message.value == SLOWEST:
            self.query_one("#origin", Choice).choose(RERUN)
        if message.value == NEXT and not self._origin.running:
            self.query_one("#which", Choice).choose(NUMBER)

    @on(Choice.Changed, "#origin")
    def _origin_changed(self, message: Choice.Changed) -> None:
        which = self.query_one("#which", Choice)
        if message.value == RERUN and which.value == NEXT:
            which.choose(NUMBER)

    @on(Input.Changed, "#output")
    def _output_changed(self) -> None:
        self._show_room()

    def _show_room(self) -> None:
        from kerncap.core.loop.captures import free_bytes

        output = self.query_one("#output", Input).value
        text, tight = room_text(output, self._origin.allocated, free_bytes)
        room = self.query_one("#room", Static)
        room.update(Content(text))
        room.set_class(tight, "-tight")

    def _fields(self) -> Fields:
        def text(name: str) -> str:
            return self.query_one(f"#{name}", Input).value

        def choice(name: str) -> str:
            return self.query_one(f"#{name}", Choice).value

        return Fields(
            which=choice("which"),
            number=text("number"),
            grid=text("grid"),
            origin=choice("origin"),
            source=text("source"),
            output=text("output"),
            memory=choice("memory"),
            replace=choice("replace") == "replace",
        )

    # Keys

    def action_go(self) -> None:
        """Enter: begins, opens the workbench, or goes back to the form."""
        if self._phase == "form":
            self._begin()
        elif self._phase in ("result", "captured") and self._result is not None:
            self.dismiss(Path(self._result.output))
        elif self._phase == "failed":
            self._page("form")
            self._look_at_program()
            self.query_one("#which").focus()

    def action_cancel(self) -> None:
        """Escape: cancels what runs, else leaves."""
        if self._phase == "progress" and self._extraction is not None:
            self._phase = "cancelling"
            self._hint()
            self._extraction.cancel()
        elif self._phase != "cancelling":
            self.dismiss(None)

    def action_rerun(self) -> None:
        """The dispatch that the running program did not launch, or the first, of another run of it."""
        if not self._in_running:
            return
        if self._phase == "progress":
            self._then_rerun = True
            self.action_cancel()
        elif self._phase == "failed":
            self._rerun()

    def _rerun(self) -> None:
        self._then_rerun = False
        self._page("form")
        self.query_one("#origin", Choice).choose(RERUN)
        which = self.query_one("#which", Choice)
        if which.value == NEXT:
            which.choose(NUMBER)
        self.set_focus(which)
        self._begin()

    def close_down(self) -> None:
        """Nothing is left of an extraction that was not complete."""
        if self._extraction is not None and self._phase in ("progress", "cancelling"):
            self._extraction.end_now()

    def _begin(self) -> None:
        try:
            wanted = wanted_of(self._fields(), self._kernel, self._origin)
        except KerncapError as error:
            self._problem(error.message)
            return
        self._problem("")
        self._extraction = self.kerncap.make_extraction(wanted, self.post_message)
        self._before = self._launches()
        self._page("progress")
        view = self.query_one(ProgressView)
        view.steps, view.note = Steps(), ""
        self.set_focus(None)  # letters are keys now
        self._extraction.start()

    # Progress and end

    @on(ExtractionProgress)
    def _progressed(self, message: ExtractionProgress) -> None:
        self.query_one(ProgressView).show(message.progress, self.kerncap.clock())

    @on(ExtractionEnded)
    def _ended(self, message: ExtractionEnded) -> None:
        if message.cancelled and self._then_rerun:
            self._rerun()
        elif message.cancelled:
            self.kerncap.tell("The extraction was cancelled; nothing was left.")
            self.dismiss(None)
        elif message.result is None:
            self._page("failed")
            self.query_one(ProgressView).say("")
            name = one_line(base_name(self._kernel.name), 80)
            self._problem(message.sentence.replace(self._kernel.id, name))
        else:
            self._result = message.result
            self.query_one("#result", Static).update(result_text(message.result))
            self._page("result" if message.result.source.variant else "captured")

    def _page(self, phase: str) -> None:
        self._phase = phase
        pages = {
            "form": "form",
            "progress": "progress",
            "result": "result",
            "captured": "result",
            "failed": "progress",
        }
        self.query_one(ContentSwitcher).current = pages[phase]
        if phase != "failed":
            self._problem("")
        self._hint()

    def _hint(self) -> None:
        more = {"progress": "in running", "failed": "failed in running"} if self._in_running else {}
        self.query_one("#hints", Static).update(Content(_HINTS[more.get(self._phase, self._phase)]))

    def _problem(self, text: str) -> None:
        label = self.query_one("#problem", Static)
        label.update(Content(text))
        label.set_class(bool(text), "-told")


def result_text(result: ExtractResult) -> Content:
    """What came of it."""
    source = result.source
    if source.variant:
        more = len(source.files) - 1
        written = f"{source.language}: {source.variant}"
        written += f" and {many(more, 'more file')}" if more > 0 else ""
    else:
        written = f"none: {source.reason}"
    verdict = str(result.baseline.get("verdict", "none"))
    reason = result.baseline.get("reason")
    lines = [
        (
            "kernel",
            f"{one_line(result.kernel, 200)}, dispatch {result.dispatch}, on {result.device}",
        ),
        ("grid", words_of(result.arch).launch(result.grid, result.block, " x ")),
        ("memory", f"{many(result.regions, 'region')}, {size_text(result.bytes)}"),
        (
            "changed",
            f"{size_text(result.changed_bytes)} by the dispatch; saved in {result.snapshot_s:.3f} s",
        ),
        ("source", written),
        ("output", f"{result.output} ({size_text(result.bytes_on_disk)} on disk)"),
    ]
    parts: list[str | tuple[str, str]] = []
    for label, text in lines:
        parts += [(f"{label:<10}", "$accent"), text + "\n"]
    style = "bold $text-success" if verdict in _GOOD else "bold $text-error"
    parts += [("baseline  ", "$accent"), (verdict, style), f": {reason}\n" if reason else "\n"]
    for warning in result.warnings:
        parts += [("warning   ", "bold $text-warning"), one_line(warning, 400) + "\n"]
    return Content.assemble(*parts)
