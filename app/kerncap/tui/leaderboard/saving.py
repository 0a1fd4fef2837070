"""Saving what the leaderboard shows, and copying names."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from kerncap.core.files import json_text
from kerncap.core.program.profile import kernel_reports
from kerncap.core.units import many
from kerncap.tui.leaderboard.ranking import export_rows
from kerncap.tui.widgets.ask import AskText

if TYPE_CHECKING:
    from kerncap.tui.screens.leaderboard import LeaderboardScreen

SCHEMA = "kerncap-leaderboard/1"


def _problem(text: str) -> str | None:
    path = Path(text).expanduser()
    if path.suffix not in (".json", ".csv"):
        return "The name ends in .json or .csv."
    if path.exists():
        return f"{path} exists already; name another."
    if not path.absolute().parent.is_dir():
        return f"{path.absolute().parent} is no directory."
    return None


def document_of(screen: LeaderboardScreen) -> dict[str, object]:
    """The kernels shown, in the order shown; where some are marked, those. Shares are of all kernels."""
    table = screen.table
    wanted = [k.id for k in (table.shown if not table.marked else table.chosen())]
    reports = {report.id: report for report in kernel_reports(table.board.kernels, table.board.described)}
    board, heading = table.board, screen.heading
    return {
        "schema": SCHEMA,
        "device": heading.device,
        "clock": "simulated" if board.simulated else "gpu",
        "command": list(heading.command.arguments) if heading.command else [],
        "state": heading.state.value,
        "outcome": heading.outcome,
        "elapsed_s": round(board.elapsed_s, 3),
        "dispatches": board.dispatches,
        "timed": board.timed,
        "sampling": board.sampling,
        "interposer_s": round(board.own_ns / 1e9, 6),
        "sort": table.sort.key,
        "filter": table.filter.text,
        "kernels": [reports[ident].to_json() for ident in wanted],
    }


def ask_and_save(screen: LeaderboardScreen) -> None:
    """Asks for a file name, then writes it."""

    def answered(text: str | None) -> None:
        if text is None:
            return
        path = Path(text).expanduser()
        document = document_of(screen)
        kernels = document["kernels"]
        assert isinstance(kernels, list)
        try:
            with path.open("x") as file:
                file.write(export_rows(kernels) if path.suffix == ".csv" else json_text(document))
        except OSError as error:
            screen.tell(f"{path} cannot be written: {error.strerror}", "error")
            return
        screen.tell(f"{many(len(kernels), 'kernel')} saved: {path.absolute()}")

    name = str(screen.kerncap.place(Path(time.strftime("kernels-%Y%m%d-%H%M%S.json"))))
    screen.app.push_screen(
        AskText(
            "Save to:",
            name,
            hint="A name in .csv gives a table.",
            check=_problem,
        ),
        answered,
    )


def copy_names(screen: LeaderboardScreen) -> None:
    """To the terminal's clipboard (OSC 52), and to a file beside what kerncap remembers."""
    chosen = screen.table.chosen()
    if not chosen:
        screen.tell("There is nothing to copy.", "warning")
        return
    text = "\n".join(kernel.name for kernel in chosen)
    screen.app.copy_to_clipboard(text)
    path = screen.kerncap.remembered.path.with_name("copied.txt")
    what = "1 name" if len(chosen) == 1 else f"{len(chosen)} names"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
        screen.tell(f"Copied: {what}. Where the terminal does not take it (tmux: set-clipboard on): {path}")
    except OSError:
        screen.tell(f"Copied: {what}, if the terminal takes it (tmux: set-clipboard on).")
