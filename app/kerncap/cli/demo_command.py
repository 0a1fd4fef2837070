"""`kerncap demo`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from kerncap.cli.output import device_option, emit_json, json_option, say
from kerncap.cli.tui_command import on_terminal

SCHEMA = "kerncap-demo/1"
_GUIDED_TOKENS = 400  # long enough to choose a kernel while it runs


@click.command()
@click.option("--headless", is_flag=True, help="Go through the loop and print it, also on a terminal.")
@click.option(
    "--build",
    "build_dir",
    metavar="DIR",
    help="Only put the program into DIR, build it, and say how to run it.",
)
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
@device_option
@json_option
def command(headless: bool, build_dir: str | None, no_mouse: bool, device: str | None, as_json: bool) -> Any:
    """Profile, extract, replay, edit and validate the hottest kernel of a demonstration program.

    On a terminal the terminal UI opens on it, with a line that leads through the loop; elsewhere, with
    --headless or --json, the loop is gone through and printed.
    """
    from kerncap import demo
    from kerncap.demo.building import hip_device

    device = hip_device(device)
    if build_dir is not None:
        if headless:
            raise click.UsageError("--headless and --build exclude each other")
        built = demo.build(Path(build_dir), device=device)
        if as_json:
            emit_json(
                {
                    "schema": SCHEMA,
                    "directory": build_dir,
                    "command": built.command,
                    "source_dir": str(built.source_dir),
                    "environment": built.env,
                }
            )
        else:
            say(shlex.join(built.command))
            say(f"source: {built.source_dir}")
        return 0
    if headless or as_json or not on_terminal():
        return demo.run_headless(device=device, json=as_json)
    return _guided(device, no_mouse)


def _guided(device: str | None, no_mouse: bool) -> int:
    """The terminal UI on the demonstration program; its directory is kept where something was made in it."""
    from kerncap import demo
    from kerncap.core.program.workload import Command
    from kerncap.tui.app import run

    where = Path(tempfile.mkdtemp(prefix="kerncap-demo-"))
    say(f"Building the demonstration program in {where} ...")
    sys.stdout.flush()
    built = demo.build(where / "decode", device=device, tokens=_GUIDED_TOKENS)
    back = os.getcwd()
    os.chdir(where)  # captures go to ./isolated
    try:
        code = run(
            Command((*built.command, "--no-check")),
            device=device,
            source_dir=built.source_dir,
            guided=True,
            mouse=not no_mouse,
        )
    finally:
        os.chdir(back)
    if (where / "isolated").is_dir():
        say(_where_captures_are(where / "isolated"))
    elif any(path.name != built.source_dir.name for path in where.iterdir()):
        say(f"What was saved is in {where}.")
    else:
        shutil.rmtree(where, ignore_errors=True)
    return code


def _where_captures_are(folder: Path) -> str:
    """And how to go on with one, also where kerncap is not in PATH."""
    from kerncap.demo.calling import first_activate

    found = sorted(path for path in folder.iterdir() if (path / "capture").is_dir())
    one = shlex.quote(str(found[0])) if len(found) == 1 else "DIR"
    return f"The captures are in {folder}: `kerncap tui --open {one}` goes on with one{first_activate()}."
