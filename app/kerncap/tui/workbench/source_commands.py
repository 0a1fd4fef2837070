"""The workbench's source: which file and line is shown, and editing it. A part of the screen."""

from __future__ import annotations

import os
from pathlib import Path

from textual import work
from textual.message import Message

from kerncap.core.build.compile_file import NAME, PRISTINE
from kerncap.core.build.diagnostics import Diagnostic
from kerncap.core.errors import KerncapError
from kerncap.core.loop.history import first_change
from kerncap.core.loop.iterations import SOURCE
from kerncap.core.replay.faults import place_of
from kerncap.tui.workbench import editor
from kerncap.tui.workbench.base import WorkbenchBase
from kerncap.tui.workbench.source_pane import SourceEditor, SourcePane

_LINES_ABOVE = 2  # of the kernel's definition: what stands before its name


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


class Told(Message):
    """A worker's sentence for the status line."""

    def __init__(self, text: str, severity: str = "information") -> None:
        super().__init__()
        self.text = text
        self.severity = severity


class SourceCommands(WorkbenchBase):
    """What is done with the source."""

    def go_to_diagnostic(self, *, switch: bool = False) -> None:
        """Puts the source line of the current message into view; on a narrow screen only where `switch`."""
        if not 0 <= self.shown.current < len(self.shown.diagnostics):
            return
        self._go_to(self.shown.diagnostics[self.shown.current], switch=switch)

    def go_to_fault(self) -> None:
        """Puts the line that the shown attempt faults at into view, as far as it is known."""
        fault = self._fault()
        if fault is not None:
            self._go_to(fault)

    def _fault(self) -> Diagnostic | None:
        """The fault of the shown attempt, as a message about its line."""
        error = self.shown.document.get("error") or self.shown.document.get("validation") or {}
        text = str(error.get("message") or error.get("summary") or "")
        place = place_of(text)
        return Diagnostic("error", text.partition(" in kernel ")[0], *place) if place is not None else None

    def _go_to(self, found: Diagnostic, *, switch: bool = False) -> None:
        path = self._file_of(found)
        if path is None or not found.line:
            return
        pane = self.views.source
        if path != pane.path and not pane.editing:
            pane.load(path, str(path.relative_to(self.directory)))
            self.mark_source()
        if path == pane.path:
            if switch and not self.views.wide:
                self.choose_pane("source")
            self.call_after_refresh(pane.go_to, found.line)

    def _file_of(self, found: Diagnostic) -> Path | None:
        """The file in the reproducer that a message names, if it is one."""
        path = Path(found.path) if found.path else None
        if path is None:
            return None
        path = Path(os.path.normpath(self.directory / path))
        return path if path.is_relative_to(self.directory) and path.is_file() else None

    # Sources

    def source_files(self) -> list[Path]:
        """The reproducer's source files, the unit first."""
        if self.files:
            return self.files
        from kerncap.core.loop.watching import Sources

        try:
            self.files = Sources(self.directory).paths
        except (KerncapError, OSError):
            self.files = []
        return self.files

    def load_sources(self) -> None:
        """The file that defines the kernel, at its line, where no file is shown yet; else the unit."""
        files = self.source_files()
        pane = self.views.source
        if not files or pane.path is not None:
            return
        name, line = self.definition or ("", 0)
        known = self.directory / name in files
        self._load(self.directory / name if known else files[0])
        if known and line:
            self.call_after_refresh(pane.go_to, line, above=_LINES_ABOVE)

    def follow(self, saved: tuple[str, ...]) -> None:
        """Shows what was saved (names of files), at the first line that is not as in the attempt before.

        While something is edited here, nothing moves.
        """
        pane = self.views.source
        if pane.path is None or pane.editing:
            return
        paths = [self.directory / name for name in saved if name != NAME]
        paths.sort(key=lambda path: path != pane.path)  # what is shown comes first
        for path in [*(path for path in paths if path in self.source_files()), pane.path]:
            line = first_change(self._before(path), _content(path))
            if line:
                self._load(path)
                self.call_after_refresh(pane.go_to, line)
                return
        self._load(pane.path)

    def _before(self, path: Path) -> bytes:
        """A file as the attempt before had it; before the first one, as it was captured."""
        name = path.relative_to(self.directory)
        kept = [self.model.iterations[number].directory / SOURCE for number in self.model.numbers[-1:]]
        return next((text for folder in kept if (text := _content(folder / name))), None) or _content(
            self.directory / PRISTINE / name
        )

    def _load(self, path: Path) -> None:
        trouble = self.views.source.load(path, str(path.relative_to(self.directory)))
        if trouble:
            self.tell(trouble, "error")
        self.mark_source()

    def reload_source(self) -> None:
        """The file as it is on disk now; while it is edited here, not."""
        pane = self.views.source
        if pane.path is not None and not pane.editing:
            self._load(pane.path)

    def mark_source(self) -> None:
        """The messages at their lines, and the fault at its."""
        fault = self._fault()
        found = [*self.shown.diagnostics, *([fault] if fault is not None else [])]
        places = {d.path: self._file_of(d) for d in found}
        self.views.source.mark(found, {p: f for p, f in places.items() if f is not None})

    def action_next_file(self) -> None:
        """The next of the source files."""
        if self.no_source():
            return
        files, pane = self.source_files(), self.views.source
        if pane.editing or not files:
            return
        at = files.index(pane.path) if pane.path in files else -1
        self._load(files[(at + 1) % len(files)])

    # Editing

    def action_edit_here(self) -> None:
        """The editor in the source pane."""
        if self.no_source():
            return
        if self.views.source.path is None:
            self.tell("There is no source to edit.", "warning")
            return
        self.choose_pane("source")
        self.views.source.edit()

    def on_source_editor_save(self, message: SourceEditor.Save) -> None:
        """^s in the editor."""
        message.stop()
        text, written = self.views.source.save()
        self.tell(text, "information" if written else "warning")
        if written and not self.watching:
            self.tell(f"{text} Watching is off: b builds.")

    def on_source_editor_leave(self, message: SourceEditor.Leave) -> None:
        """esc in the editor."""
        message.stop()
        self.leave_editor()

    def leave_editor(self) -> None:
        """Back to the view. What is not saved is asked about once."""
        pane: SourcePane = self.views.source
        if pane.modified and not pane.asked:
            pane.asked = True
            self.tell("Not saved: ^s saves, esc again leaves without.", "warning", lasting=True)
            return
        pane.leave()
        self.tell("")
        self.mark_source()

    def action_example(self) -> None:
        """The demonstration's next edit."""
        if self.no_source():
            return
        if self.source_files() and not self.views.source.editing:
            self._example(self.source_files())

    @work(thread=True, exclusive=True, group="example", exit_on_error=False)
    def _example(self, paths: list[Path]) -> None:
        from kerncap.tui.workbench.example import NOT_HERE, make_edit

        try:
            made = make_edit(paths)
        except (KerncapError, OSError) as error:
            self.post_message(Told(str(error), "error"))
            return
        if made is None:
            self.post_message(Told(NOT_HERE, "warning"))
        else:
            self.post_message(Told(f"Edited {made[0].name}: {made[1].what}."))

    async def action_edit(self) -> None:
        """The user's editor: inside tmux in a split, else in this terminal until it ends."""
        if self.no_source():
            return
        pane = self.views.source
        if pane.path is None:
            self.tell("There is no source to edit.", "warning")
            return
        if pane.editing:
            return
        settings = self.kerncap.settings
        words = editor.command(editor.editor_words(settings.editor), pane.path, pane.line)
        if os.environ.get("TMUX") and settings.editor_split:
            outcome = await editor.in_split(words, self.directory, aside=self.size.width >= 140)
        elif self.app.is_headless:
            outcome = await editor.in_place(words, self.directory)
        else:
            with self.app.suspend():
                outcome = await editor.in_place(words, self.directory)
            self.refresh()
        self._tell_outcome(outcome)
        self.reload_source()
        if outcome.status is not None:
            self._watch_split(outcome.status, words[0])

    def _tell_outcome(self, outcome: editor.Outcome) -> None:
        if outcome.sentence:
            self.tell(outcome.sentence, "error" if outcome.failed else "information")

    @work(group="editor", exit_on_error=False)
    async def _watch_split(self, status: Path, name: str) -> None:
        """Says where an editor in a split has ended at once."""
        self._tell_outcome(await editor.ended_at_once(status, name))
