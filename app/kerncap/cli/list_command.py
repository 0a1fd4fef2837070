"""`kerncap list`."""

from __future__ import annotations

from typing import Any

import click

from kerncap.cli.output import emit_json, json_option, note, plain_table, say
from kerncap.cli.parameters import PATH
from kerncap.core.code.names import one_line
from kerncap.core.loop.captures import list_captures
from kerncap.core.units import size

SCHEMA = "kerncap-list/1"


@click.command("list")
@click.argument("directory", type=PATH, metavar="[DIR]", default="isolated")
@json_option
def command(directory: str, as_json: bool) -> Any:
    """List the captures in DIR (default ./isolated)."""
    found = list_captures(directory)
    if as_json:
        emit_json({"schema": SCHEMA, "directory": directory, "captures": [one.to_json() for one in found]})
        return 0
    if not found:
        note(f"no capture in {directory}")
        return 0
    rows = [
        [
            one_line(one.told, 60) or "-",
            one.short_id or "-",
            one.arch + (" (simulated)" if one.simulated else ""),
            size(one.bytes_on_disk),
            one.verdict or "-",
            one.created,
            f"{one.directory}" + (f"  damaged: {one.problem}" if one.problem else ""),
        ]
        for one in found
    ]
    say(
        plain_table(
            ["kernel", "id", "device", "on disk", "baseline", "created", "directory"],
            rows,
            left=(0, 1, 2, 4, 5),
        )
    )
    return 0
