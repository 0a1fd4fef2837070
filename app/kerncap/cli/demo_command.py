"""`kerncap demo`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from kerncap.cli.output import device_option, emit_json, json_option, say

SCHEMA = "kerncap-demo/1"


@click.command()
@click.option("--headless", is_flag=True, help="Go through the loop and print it (the default).")
@click.option(
    "--build",
    "build_dir",
    metavar="DIR",
    help="Only put the program into DIR, build it, and say how to run it.",
)
@device_option
@json_option
def command(headless: bool, build_dir: str | None, device: str | None, as_json: bool) -> Any:
    """Profile, extract, replay, edit and validate the hottest kernel of a demonstration program."""
    from kerncap import demo

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
    return demo.run_headless(device=device, json=as_json)
