"""The workbench's lines of state: kernel, result, panes and progress."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from kerncap.core.code.names import one_line
from kerncap.tui.workbench.figures import ratio, seconds, with_interval
from kerncap.tui.workbench.model import Model, Row
from kerncap.tui.workbench.validation_text import verdict_style

_STEPS = {"build": "compile", "replay": "replay", "validate": "compare", "done": "done"}
_COLOUR = {"good": "bold $text-success", "bad": "bold $text-error", "warn": "bold $text-warning"}
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def _fit(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)) + "…"


def kernel_line(kernel: str, arch: str, device: str | None, judging: str, how: str, width: int) -> Content:
    """Kernel, arch, device, the tolerance that is set, and how saves are noticed."""
    words = [word for word in (arch, device, judging) if word]
    right = "  ".join([*words, how])
    left = one_line(kernel, max(8, width - len(right) - 2))
    gap = max(2, width - cell_len(left) - cell_len(right))
    style = "$text-warning bold" if how == "watching off" else "$foreground 70%"
    return Content.assemble((left, "bold"), " " * gap, (right, style))


def result_line(model: Model, row: Row | None, trouble: str, width: int) -> Content:
    """The shown attempt in a line. A wrong result comes before any speedup, which then does not count."""
    if row is None:
        return Content.styled(_fit(trouble, width), "bold $text-error") if trouble else Content("")
    best = model.best
    mark = "★ " if best is not None and best.number == row.number else ""
    verdict = f"{row.verdict}{' ' + row.mode if row.mode != 'default' else ''}"
    verdict += f" ({row.judged})" if row.judged else ""
    head = f"{mark}attempt {row.number} "
    pieces: list[tuple[str, str]] = [(head, "bold"), (verdict, _COLOUR[verdict_style(row.verdict)])]
    rest = ""
    if row.passed and row.median_ns is not None:
        rest = f"  {ratio(row.speedup)} {row.speed}  {with_interval(row.median_ns, row.interval_ns)}"
        rest += "  simulated" if row.simulated else ""
    elif row.median_ns is not None:
        rest = "  its time does not count"
    used = cell_len(head) + cell_len(verdict)
    for name, value in (("compile", row.build_s), ("replay", row.replay_s), ("compare", row.validate_s)):
        part = f"  {name} {seconds(value)}"
        if value is not None and used + cell_len(rest) + cell_len(part) <= width:
            rest += part
    return Content.assemble(*pieces, _fit(rest, max(0, width - used)))


def progress(
    model: Model, trouble: str, now: float, since_start: float, trying: str = "", tried_s: float = 0.0
) -> str:
    """What is under way, with its elapsed time; empty where nothing is.

    `trying` is which of the autotuner's configurations, which attempts go before.
    """
    spin = _SPINNER[int(now * 5) % len(_SPINNER)]
    attempt = model.attempt
    if attempt is not None:
        done = "".join(f"{_STEPS[n]} {seconds(s)} · " for n, s in attempt.seconds.items())
        elapsed = max(0.0, now - attempt.began)
        return (
            f"{spin} {attempt.number}: {done}{_STEPS.get(attempt.step, attempt.step)} {elapsed:.1f} s · esc"
        )
    if trying:
        return f"{spin} {trying} {max(0.0, tried_s):.1f} s · esc"
    if not model.ready and not trouble:
        return f"{spin} starting the replayer {since_start:.1f} s"
    return ""


def tabs_line(
    pane: str, errors: int, warnings: int, row: Row | None, text: str, width: int, *, triton: bool = False
) -> Content:
    """The panes with their numbers, the one in view marked; at the right what is under way.

    The configuration's is there for Triton kernels.
    """
    names = ["source", "errors", "timing", "validation", "diff"]
    if triton or pane == "config":
        names.append("config")
    wrong = row is not None and row.verdict == "FAIL"
    pieces: list[tuple[str, str] | str] = []
    used = 0
    for number, name in enumerate(names, 1):
        label = f"{number} {name}"
        if name == "errors" and errors + warnings:
            label += f" {errors or ''}{'!' if errors else f'({warnings})'}"
        style = "$foreground 70%"
        if (name == "errors" and errors) or (name == "validation" and wrong):
            style = "$text-error"
        if name == pane:
            style = "bold reverse" if style.startswith("$foreground") else f"bold reverse {style}"
        pieces += [(f" {label} ", style)]
        used += cell_len(label) + 2
    room = width - used - 1
    shown = _fit(text, room) if room > 8 else ""
    return Content.assemble(*pieces, " " * max(1, width - used - cell_len(shown)), (shown, "$accent"))
