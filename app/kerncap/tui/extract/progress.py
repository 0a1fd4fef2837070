"""How far an extraction is, in words and a bar."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widget import Widget

from kerncap.core.units import many
from kerncap.tui.leaderboard.columns import bar
from kerncap.tui.leaderboard.header import clock_text

if TYPE_CHECKING:
    from kerncap.core.extract.capture_run import Progress

STAGE_TEXTS = {
    "waiting": "waiting for the dispatch",
    "draining": "waiting for the kernels before it",
    "saving": "saving the memory it can reach",
    "running": "letting the dispatch run",
    "saving changes": "saving what it changed",
    "saved": "saved",
    "running again": "running the program again for this kernel",
    "checking": "checking what was written",
    "source": "looking for its source",
    "replaying": "replaying it against the program's own result",
    "writing": "writing the reproducer",
}


def size_text(value: float) -> str:
    """Bytes for a person."""
    for unit in ("B", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.2f} GB"


def bytes_text(progress: Progress) -> str:
    """`12.3 MB of 45.6 MB, 1.20 GB/s, 3 s left`; empty while nothing is being saved."""
    if not progress.bytes_total:
        return ""
    text = f"{size_text(progress.bytes_done)} of {size_text(progress.bytes_total)}"
    if progress.bytes_done and progress.seconds > 0.01:
        rate = progress.bytes_done / progress.seconds
        text += f", {rate / 1e9:.2f} GB/s"
        if progress.bytes_done < progress.bytes_total:
            text += f", {(progress.bytes_total - progress.bytes_done) / rate:.0f} s left"
    return text


@dataclass
class Steps:
    """The steps so far with how long each took."""

    done: list[tuple[str, float]] = field(default_factory=list)
    now: str = ""
    since: float = 0.0
    saved: str = ""  # the last line of bytes, which stays

    def take(self, progress: Progress, clock: float) -> None:
        """Another look at the extraction."""
        if progress.stage != self.now:
            if self.now:
                self.done.append((self.now, clock - self.since))
            self.now, self.since = progress.stage, clock
        self.saved = bytes_text(progress) or self.saved


class ProgressView(Widget):
    """The steps, the bytes as a bar, and the time."""

    DEFAULT_CSS = "ProgressView { height: auto; min-height: 8; }"

    def __init__(self) -> None:
        super().__init__(id="progress")
        self.steps = Steps()
        self.note = ""  # said while the dispatch does not come
        self._progress: Progress | None = None
        self._clock = 0.0

    def show(self, progress: Progress | None, clock: float) -> None:
        """Another look; None: only time has passed."""
        self._clock = clock
        if progress is not None:
            before = len(self.steps.done)
            self._progress = progress
            self.steps.take(progress, clock)
            if len(self.steps.done) != before:
                self.refresh(layout=True)
                return
        self.refresh()

    @property
    def waited(self) -> float:
        """Seconds that the dispatch has been waited for; 0 where it is not."""
        return max(0.0, self._clock - self.steps.since) if self.steps.now == "waiting" else 0.0

    def say(self, note: str) -> None:
        """A sentence below the step under way, while it is the wait for the dispatch."""
        if note != self.note:
            self.note = note
            self.refresh(layout=True)

    def render(self) -> Content:
        """One line a step."""
        parts: list[str | tuple[str, str]] = []
        for stage, seconds in self.steps.done[-9:]:
            parts += [
                ("✓ ", "$text-success"),
                f"{STAGE_TEXTS.get(stage, stage)}  ",
                (clock_text(seconds), "dim"),
                "\n",
            ]
        progress = self._progress
        if progress is not None:
            now = self.steps.now
            seconds = max(0.0, self._clock - self.steps.since)
            parts += [
                ("▸ ", "bold $accent"),
                (STAGE_TEXTS.get(now, now), "bold"),
                "  ",
                (clock_text(seconds), "dim"),
            ]
            if now == "waiting" and progress.dispatches:
                parts.append((f", {many(progress.dispatches, 'dispatch')} so far", "dim"))
            parts.append("\n")
            if now == "waiting" and self.note:
                parts.append(("  " + self.note + "\n", "$text-warning"))
            if progress.bytes_total:
                width = max(10, min(50, self.size.width - 2))
                parts += [("  " + bar(progress.bytes_done / progress.bytes_total, width) + "\n", "$primary")]
        if self.steps.saved:
            parts.append(f"  {self.steps.saved}\n")
        return Content.assemble(*parts)
