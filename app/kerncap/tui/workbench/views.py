"""The panes, from source to configuration. Those in view draw what `Shown` says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from textual.app import ComposeResult
from textual.containers import Horizontal

from kerncap.core.build.diagnostics import Diagnostic
from kerncap.core.loop.history import DiffLine
from kerncap.tui.workbench import configuration_text, texts, timing_text, validation_text
from kerncap.tui.workbench.configuration import Configuration
from kerncap.tui.workbench.lines import LineView, wrap
from kerncap.tui.workbench.model import Model, Row
from kerncap.tui.workbench.source_pane import SourcePane

PANES = ("source", "errors", "timing", "validation", "diff", "config")


@dataclass
class Shown:
    """What the panes are about: one attempt, and what was chosen to see of it."""

    row: Row | None = None
    document: dict[str, Any] = field(default_factory=dict)
    diagnostics: Sequence[Diagnostic] = ()
    current: int = -1  # of the diagnostics
    raw: bool = False
    region: int = 0
    diff_title: str = "source"
    diff: Sequence[DiffLine] = ()
    sides: texts.Sides | None = None


class Views(Horizontal):
    """On a narrow screen one of the panes, on a wide one the source and one, on a rich one timing too."""

    DEFAULT_CSS = """
    Views { height: 1fr; }
    Views > * { width: 1fr; display: none; }
    Views > .-on { display: block; }
    Views > LineView { padding: 0 0 0 1; }
    Views.-wide > LineView { border-left: vkey $panel; }
    Views.-wide > SourcePane { display: block; width: 1.1fr; }
    Views.-rich > #timing { display: block; width: 0.8fr; }
    Views.-stale > LineView { text-opacity: 55%; }
    Views.-stale:ansi > LineView { text-opacity: 100%; text-style: dim; }
    """
    WIDE, RICH = 110, 180

    def __init__(self, model: Model, *, plain: bool, id: str | None = None) -> None:
        super().__init__(id=id)
        self.model = model
        self.plain = plain
        self.shown = Shown()
        self.pane = "source"
        self.configuration: Configuration | None = None  # of a Triton kernel
        self.stale = ""  # said over the validation, while another attempt is under way
        self._starts: list[int] = []

    def compose(self) -> ComposeResult:
        """All of them; which are seen is a matter of width."""
        yield SourcePane(id="source")
        yield LineView(id="errors", with_cursor=True)
        yield LineView(id="timing")
        yield LineView(id="validation")
        yield LineView(id="diff")
        yield LineView(id="config")

    @property
    def source(self) -> SourcePane:
        """The source pane."""
        return self.query_one("#source", SourcePane)

    def view(self, name: str) -> LineView:
        """One of the panes by name."""
        return self.query_one(f"#{name}", LineView)

    def on_mount(self) -> None:
        """The first pane."""
        self.choose(self.pane)

    def on_resize(self) -> None:
        """Another width may mean another layout."""
        self.set_class(self.size.width >= self.WIDE, "-wide")
        self.set_class(self.size.width >= self.RICH, "-rich")
        self._apply()

    @property
    def wide(self) -> bool:
        """Whether the source is always in view."""
        return self.size.width >= self.WIDE

    @property
    def editing_alone(self) -> bool:
        """Whether the editor has all the room: no other pane comes up."""
        return self.source.editing and not self.wide

    def choose(self, name: str) -> None:
        """Brings a pane into view."""
        self.pane = name
        self._apply()

    @property
    def beside(self) -> str:
        """The pane that is in view, beside the source on a wide screen."""
        if self.pane != "source" or not self.wide:
            return self.pane
        return "validation" if self.size.width >= self.RICH else "timing"

    def _apply(self) -> None:
        for name in PANES:
            self.query_one(f"#{name}").set_class(name == self.beside, "-on")
        self.call_after_refresh(self.draw)

    def draw(self) -> None:
        """Draws the panes in view anew."""
        for name in PANES[1:]:
            view = self.view(name)
            if view.display and view.size.width:
                self._draw(name, view)

    def _draw(self, name: str, view: LineView) -> None:
        shown, width, height = self.shown, view.size.width - 1, view.size.height
        if name == "errors":
            build = shown.document.get("build") or {}
            made = texts.messages(
                shown.diagnostics,
                str(build.get("message") or ""),
                str(build.get("output") or build.get("warnings") or ""),
                show_raw=shown.raw,
                current=shown.current,
                width=width,
            )
            self._starts = made.starts
            view.set_lines(made.lines)
            if 0 <= shown.current < len(made.starts):
                start = made.starts[shown.current]
                view.show(start)
                view.reveal(start, [*made.starts, len(made.lines) + 1][shown.current + 1] - 2)
        elif name == "timing":
            rows = [self.model.rows[n] for n in self.model.numbers]
            view.set_lines(
                timing_text.report(rows, shown.row, shown.document, self.model.best, width, height)
            )
        elif name == "validation":
            found = shown.document.get("validation") or {}
            lines = validation_text.report(
                found,
                selected=shown.region,
                width=width,
                map_height=max(3, min(12, height // 4)),
                plain=self.plain,
            )
            error = shown.document.get("error")
            if self.stale:
                lines.insert(0, [(self.stale, "dim")])
            # A fault is the variant's verdict: the report has it then.
            if error and error.get("message") != found.get("summary"):
                text = f"{error.get('step')}: {error.get('message')}"
                lines = [*[[(t, "bad")] for t in wrap(text, width)], *(lines if found else [])]
            view.set_lines(lines)
        elif name == "config":
            view.set_lines(configuration_text.report(self.configuration, width, height))
        elif shown.sides is not None:
            view.set_lines(texts.compare(shown.sides, shown.diff, width))
        else:
            view.set_lines(texts.diff(shown.diff, shown.diff_title, width))

    def diagnostic_at(self, line: int) -> int | None:
        """The diagnostic that a line of the errors pane belongs to."""
        before = [i for i, start in enumerate(self._starts) if start <= line]
        return before[-1] if before else None
