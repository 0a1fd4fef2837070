"""All that is known of one kernel, as text beside the ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from kerncap.core.names import one_line
from kerncap.tui.leaderboard.columns import bar, duration
from kerncap.tui.leaderboard.ranking import slowest_bins

if TYPE_CHECKING:
    from kerncap.core.live import KernelStats

_BAR_CELLS = 24
_MOST_BINS = 24


def _sizes(values: tuple[int, int, int]) -> str:
    return " x ".join(map(str, values))


def facts(kernel: KernelStats, source: str, clock: str) -> list[tuple[str, str]]:
    """Labels and values."""
    groups = 1
    for size, block in zip(kernel.grid, kernel.block, strict=True):
        groups *= -(-size // block) if block else 1
    lds = f"{kernel.lds_bytes} B"
    if kernel.dynamic_lds_bytes > kernel.lds_bytes:
        lds += f", {kernel.dynamic_lds_bytes} B as launched"
    lines = [
        ("name", one_line(kernel.name)),
        ("symbol", one_line(kernel.symbol)),
        ("id", f"{kernel.id}   {kernel.kind}   device {kernel.device_index}   code {kernel.code_hash}"),
        ("grid", f"{_sizes(kernel.grid)} work-items in {groups} workgroups of {_sizes(kernel.block)}"),
        ("needs", f"{kernel.vgprs} VGPRs, {kernel.sgprs} SGPRs, LDS {lds}, scratch {kernel.scratch_bytes} B"),
        (
            "time",
            f"mean {duration(kernel.mean_ns)}, min {duration(kernel.min_ns)}, max {duration(kernel.max_ns)}, "
            f"last {duration(kernel.last_ns)}{clock}",
        ),
        ("calls", f"{kernel.calls}, {kernel.timed} of them timed"),
    ]
    if source:
        lines.append(("source", source))
    return lines


def histogram(kernel: KernelStats) -> list[tuple[str, int, float]]:
    """Bins of the durations: label, count, part of the largest bin."""
    bins = slowest_bins(kernel)
    most = max((n for _, n in bins), default=0)
    if len(bins) > _MOST_BINS:
        bins = bins[-_MOST_BINS:]
    return [(f"{duration(2**i)} to {duration(2 ** (i + 1))}", n, n / most) for i, n in bins]


def text_of(kernel: KernelStats | None, source: str, clock: str) -> Content:
    """The pane's text. Names are text, never markup."""
    if kernel is None:
        return Content.styled("No kernel is selected.", "dim")
    parts: list[Content | str | tuple[str, str]] = []
    for label, value in facts(kernel, source, clock):
        parts += [(f"{label:<8}", "$accent"), value + "\n"]
    bins = histogram(kernel)
    if bins:
        parts.append(("durations\n", "$accent"))
    for label, number, part in bins:
        parts += [f"  {label:>24}  ", (bar(part, _BAR_CELLS), "$primary"), f" {number}\n"]
    return Content.assemble(*parts)


class DetailPane(VerticalScroll, can_focus=True):
    """The selected kernel in full. `tab` reaches it, and the cursor keys scroll it."""

    DEFAULT_CSS = """
    DetailPane { background: $surface; padding: 0 1; border-top: solid $primary 50%; }
    DetailPane:focus { border-top: solid $primary; }
    DetailPane Static { height: auto; }
    """

    def __init__(self) -> None:
        super().__init__(id="detail")
        self._shown: tuple[str, str] = ("", "")

    def compose(self) -> ComposeResult:
        """One text."""
        yield Static("", markup=False, id="detail-text")

    def show(self, kernel: KernelStats | None, source: str = "", clock: str = "") -> None:
        """Shows a kernel; the place on its page stays while it is the same one."""
        content = text_of(kernel, source, clock)
        ident = kernel.id if kernel else ""
        if (ident, content.plain) == self._shown:
            return
        other = ident != self._shown[0]
        self._shown = (ident, content.plain)
        self.query_one("#detail-text", Static).update(content)
        if other:
            self.scroll_home(animate=False)
