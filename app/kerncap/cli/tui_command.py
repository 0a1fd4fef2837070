"""`kerncap tui`, which is also `kerncap` alone on a terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kerncap.cli.output import device_option
from kerncap.core.errors import UsageError
from kerncap.core.files import check_directory
from kerncap.core.program.workload import parse_command


def on_terminal() -> bool:
    """Whether there is a terminal to draw on and to read keys from."""
    return sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()


@click.command("tui", context_settings={"allow_interspersed_args": False})
@click.option(
    "--cmd", metavar="COMMAND", help="The program as one string, split into words; no shell runs it."
)
@click.option("--source-dir", metavar="DIR", help="Where the program's source is.")
@click.option("--open", "directory", metavar="DIR", help="Open the workbench on this reproducer.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
@device_option
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def command(
    cmd: str | None,
    source_dir: str | None,
    directory: str | None,
    no_mouse: bool,
    device: str | None,
    program: tuple[str, ...],
) -> Any:
    """The terminal UI: PROGRAM's kernels live; pick one, take it out, and work on it.

    Write `--` before the program: kerncap tui -- ./decode --tokens 16
    """
    if not on_terminal():
        raise UsageError(
            "the terminal UI needs a terminal on stdin, stdout and stderr; without one there are "
            "`kerncap profile`, `extract` and `watch`"
        )
    parsed = parse_command(program, cmd) if program or cmd else None
    if source_dir is not None:
        check_directory(source_dir, "source directory")
    if directory is not None:
        from kerncap.core.loop.captures import open_capture

        open_capture(directory)
    from kerncap.tui.app import run

    return run(
        parsed,
        device=device,
        source_dir=Path(source_dir) if source_dir else None,
        workbench=Path(directory) if directory else None,
        mouse=not no_mouse,
    )
