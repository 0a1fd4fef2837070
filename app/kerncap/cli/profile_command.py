"""`kerncap profile`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import click

from kerncap.cli.output import (
    device_option,
    emit_json,
    json_option,
    note,
    plain_table,
    printable,
    program_stdout,
    say,
)
from kerncap.cli.parameters import PATH, SECONDS
from kerncap.core.code.names import base_name, one_line
from kerncap.core.files import write_json
from kerncap.core.program.profile import KernelReport, ProfileReport, profile, profile_session
from kerncap.core.program.workload import parse_command
from kerncap.core.units import many

_DEFAULT_TOP = 20


def _headline(report: ProfileReport) -> str:
    text = (
        f"{report.device}: {many(report.dispatches, 'dispatch')} of {many(len(report.kernels), 'kernel')}, "
        f"{report.timed} timed"
    )
    if report.sampling:
        text += " (a sample)"
    if report.lost:
        text += f", {report.lost} lost"
    if len(report.processes) > 1:
        text += f", {len(report.processes)} processes"
    if report.wall_s:
        text += f"; the program ran {report.wall_s:.2f} s"
    if any(kernel.estimated for kernel in report.kernels):
        text += ". Totals with ~ are estimated: mean times calls"
    if report.kernels and report.percent_of == "calls":
        text += ". Nothing was timed: % is of calls"
    elif report.clock == "simulated" and report.dispatches:
        text += ". Kernel times are simulated: cycles counted from the cost table, not GPU time"
    return text + "."


def _cells(rank: int, kernel: KernelReport, name: str) -> list[str]:
    times = [
        f"{'~' * kernel.estimated}{kernel.total_ns / 1e6:.3f}",
        *(f"{ns / 1e3:.2f}" for ns in (kernel.mean_ns, kernel.min_ns, kernel.max_ns)),
    ]
    return [
        str(rank),
        kernel.short_id,
        f"{kernel.percent:.2f}" if kernel.timed or kernel.percent else "-",
        str(kernel.calls),
        *(times if kernel.timed else "----"),
        kernel.kind,
        name,
    ]


def _headings(clock: str) -> list[str]:
    unit = "sim " if clock == "simulated" else ""
    return [
        "#",
        "id",
        "%",
        "calls",
        f"total {unit}ms",
        f"mean {unit}us",
        f"min {unit}us",
        f"max {unit}us",
        "kind",
        "kernel",
    ]


def _table(report: ProfileReport, top: int) -> None:
    kernels = report.kernels[:top]
    if not kernels:
        return
    headings = _headings(report.clock)
    marks = {kernel.id: f"  ({one_line(kernel.mark)})" for kernel in report.kernels if kernel.mark}
    if not sys.stdout.isatty():
        rows = [
            _cells(i, k, printable(one_line(k.name)) + marks.get(k.id, "")) for i, k in enumerate(kernels, 1)
        ]
        say(plain_table(headings, rows, left=(1, 8)))
        return
    from rich.console import Console
    from rich.table import Table

    width = shutil.get_terminal_size().columns
    # A narrow terminal keeps the name readable: least and most go first, then the kind.
    hidden = {6, 7} if width < 110 else set()
    if width < 90:
        hidden.add(8)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, heading in enumerate(headings):
        if index not in hidden:
            last = index == len(headings) - 1
            left = last or heading in ("id", "kind")
            table.add_column(
                heading,
                justify="left" if left else "right",
                no_wrap=True,
                overflow="ellipsis",
                min_width=None if last else len(heading),
                ratio=1 if last else None,
            )
    for i, kernel in enumerate(kernels, 1):
        name = one_line(kernel.name if width >= 140 else base_name(kernel.name))
        cells = _cells(i, kernel, name + marks.get(kernel.id, ""))
        shown = [cell for index, cell in enumerate(cells) if index not in hidden]
        table.add_row(*shown, style="dim" if kernel.kind == "runtime" else None)
    Console(highlight=False, markup=False, width=width).print(table)


def show(report: ProfileReport, top: int) -> None:
    """The report for a person."""
    say(_headline(report))
    _table(report, top)
    if len(report.kernels) > top:
        say(f"and {len(report.kernels) - top} more (--top)")


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "-o", "--output", type=PATH, metavar="FILE", help="Also write the whole report to FILE, as JSON."
)
@click.option("--top", type=click.IntRange(1), metavar="N", help=f"Show N kernels (default {_DEFAULT_TOP}).")
@click.option("--timeout", type=SECONDS, metavar="S", help="End the program after S seconds.")
@click.option(
    "--cmd", metavar="COMMAND", help="The program as one string, split into words; no shell runs it."
)
@click.option("--no-timing", is_flag=True, help="Count dispatches and do not time them.")
@click.option(
    "--session",
    type=PATH,
    metavar="DIR",
    help="Report what a session of `kerncap env --session DIR` has recorded.",
)
@device_option
@json_option
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def command(
    output: str | None,
    top: int | None,
    timeout: float | None,
    cmd: str | None,
    no_timing: bool,
    session: str | None,
    device: str | None,
    as_json: bool,
    program: tuple[str, ...],
) -> Any:
    """Run PROGRAM and rank its kernels by the time they take on the device.

    Write `--` before the program: kerncap profile -- ./decode --tokens 16
    """
    if session is not None:
        if program or cmd:
            raise click.UsageError(
                "--session reports on programs that were started some other way: give no program"
            )
        report = profile_session(session)
        if output is not None:
            write_json(Path(output), report.to_json())
    else:
        report = profile(
            parse_command(program, cmd),
            device=device,
            timeout=timeout,
            output=output,
            timing=not no_timing,
            stdout=program_stdout(as_json),
        )
    if as_json:
        emit_json(report.to_json(top))
    else:
        show(report, top or _DEFAULT_TOP)
    for warning in report.warnings:
        note(warning)
    if report.exit_code or report.timed_out:
        if not report.timed_out:
            how = (
                f"was ended by {report.signal}"
                if report.signal
                else f"ended with exit status {report.exit_code}"
            )
            note(f"the program {how}")
        return 5
    return 0
