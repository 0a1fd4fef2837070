"""All that is known of one kernel, as text beside the ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.geometry import Size

from kerncap.core.code.names import one_line
from kerncap.core.program.device_words import AMD, DeviceWords
from kerncap.tui.leaderboard.columns import bar, duration
from kerncap.tui.leaderboard.ranking import slowest_bins
from kerncap.tui.services.source_sites import Found, parameters_at
from kerncap.tui.workbench.lines import Line, LineView, wrap

if TYPE_CHECKING:
    from kerncap.core.program.live import KernelStats

_BAR_CELLS = 24
_MOST_BINS = 24
_LABEL = 9
_NOTHING = Found()
_HEIGHT_STEP = 8
_SCROLLS = "more below: tab to here, then ↑ ↓"


def arguments(kernel: KernelStats, source: Found) -> str:
    """What it takes: as written in its source, else by the types in its name, else nothing."""
    if source.parameters:
        return source.parameters
    depth = 0
    for index, char in enumerate(kernel.name.replace("(anonymous namespace)", "{anonymous_namespace}")):
        if char == "(" and depth == 0:  # the first bracket outside of template arguments
            return parameters_at(kernel.name[index:], "")
        depth += (char in "<[{") - (char in ">]}" and depth > 0)
    return ""


def _calls(kernel: KernelStats) -> str:
    if not kernel.estimated:
        return f"{kernel.calls}, {kernel.timed} of them timed"
    total = duration(kernel.total_ns)
    return f"{kernel.timed:,} of {kernel.calls:,} timed: total estimated from their mean, {total}"


def facts(
    kernel: KernelStats, source: Found, clock: str, words: DeviceWords, compiled: str = ""
) -> list[tuple[str, str]]:
    """Labels and values. `compiled`: what it was compiled with, where that is known."""
    lines = [
        ("name", one_line(kernel.name)),
        ("symbol", one_line(kernel.symbol)),
        ("id", f"{kernel.id}   {kernel.kind}   device {kernel.device_index}   code {kernel.code_hash}"),
        ("grid", words.launch(kernel.grid, kernel.block, " x ")),
        ("needs", words.needs(kernel)),
        (
            "time",
            f"mean {duration(kernel.mean_ns)}, min {duration(kernel.min_ns)}, max {duration(kernel.max_ns)}, "
            f"last {duration(kernel.last_ns)}{clock}",
        ),
        ("calls", _calls(kernel)),
    ]
    if compiled:
        lines.insert(3, ("compiled", one_line(compiled)))
    takes = arguments(kernel, source)
    if takes:
        lines.insert(lines.index(("needs", words.needs(kernel))), ("takes", one_line(takes)))
    if source.place:
        lines.append(("source", source.place))
    elif source.note:
        lines.append(("source", source.note))
    return lines


def histogram(kernel: KernelStats) -> list[tuple[str, int, float]]:
    """Bins of the durations: label, count, part of the largest bin."""
    bins = slowest_bins(kernel)
    most = max((n for _, n in bins), default=0)
    if len(bins) > _MOST_BINS:
        bins = bins[-_MOST_BINS:]
    return [(f"{duration(2**i)} to {duration(2 ** (i + 1))}", n, n / most) for i, n in bins]


def lines_of(
    kernel: KernelStats | None, source: Found, clock: str, words: DeviceWords, width: int, compiled: str = ""
) -> list[Line]:
    """The pane's lines, `width` cells wide. Names are text, never markup."""
    if kernel is None:
        return [[("No kernel is selected.", "dim")]]
    lines: list[Line] = []
    for label, value in facts(kernel, source, clock, words, compiled):
        for number, part in enumerate(wrap(value, max(20, width - _LABEL))):
            lines.append([(f"{'' if number else label:<{_LABEL}}", "accent"), (part, "")])
    bins = histogram(kernel)
    if bins:
        lines.append([("durations", "accent")])
    for label, count, share in bins:
        lines.append([(f"{label:>24}  ", ""), (bar(share, _BAR_CELLS), "bar"), (f" {count}", "")])
    return lines


class DetailPane(LineView):
    """The selected kernel in full. `tab` reaches it, and the cursor keys scroll it."""

    DEFAULT_CSS = """
    DetailPane { background: $surface; padding: 0 1; border-top: solid $primary 50%; }
    DetailPane:focus { border-top: solid $primary; }
    """

    def __init__(self) -> None:
        super().__init__(id="detail")
        self._shown = ""
        self._about: tuple[KernelStats | None, Found, str, DeviceWords, str] = (None, _NOTHING, "", AMD, "")

    def show_kernel(
        self,
        kernel: KernelStats | None,
        source: Found = _NOTHING,
        clock: str = "",
        words: DeviceWords = AMD,
        compiled: str = "",
    ) -> None:
        """Shows a kernel; the place on its page stays while it is the same one."""
        self._about = (kernel, source, clock, words, compiled)
        if not self.size.width:
            return  # not on the screen yet: `on_resize` comes
        # A scroll bar, when it comes, takes a column of it.
        lines = lines_of(kernel, source, clock, words, self.size.width - 1, compiled)
        if lines == self.lines:
            return
        ident = kernel.id if kernel else ""
        if ident != self._shown:
            self.scroll_to(0, 0, animate=False, force=True)
        self._shown = ident
        self.lines = lines
        self.tell_scrolling()
        # In steps, since another height means another layout, which costs more than all the rest.
        height = (
            -(-len(lines) // _HEIGHT_STEP) * _HEIGHT_STEP if len(lines) > self.size.height else len(lines)
        )
        self.virtual_size = Size(
            self.size.width, max(height, min(self.virtual_size.height, self.size.height))
        )
        self.refresh()

    def on_resize(self) -> None:
        """Another width, also by a scroll bar that comes: other lines."""
        self.show_kernel(*self._about)
        self.tell_scrolling()

    def tell_scrolling(self) -> None:
        """Where there is more than fits, how to see it."""
        title = _SCROLLS if self.lines and len(self.lines) > self.size.height > 0 else ""
        if title != (self.border_title or ""):
            self.border_title = title
