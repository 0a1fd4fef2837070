"""`kerncap env`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from kerncap.cli.output import device_option, emit_json, json_option, note, say
from kerncap.cli.parameters import PATH
from kerncap.core.device.devices import child_environment, resolve_device
from kerncap.core.program.control import Session

SCHEMA = "kerncap-env/1"


@click.command()
@click.option(
    "--session",
    type=PATH,
    metavar="DIR",
    help=(
        "Also make DIR, a session that the program's figures go to and that stays (kerncap "
        "profile --session DIR)."
    ),
)
@device_option
@json_option
def command(session: str | None, device: str | None, as_json: bool) -> Any:
    """Print the environment that profile and extract set, for programs that are started some other way.

    For a shell: eval "$(kerncap env --session DIR)"
    """
    used = resolve_device(device)
    directory = Path(session).absolute() if session else None
    child_environment(used)  # what is not built is said before anything is made
    if directory is not None:
        Session.create(directory=directory).close()
    changes = child_environment(used, directory)
    if as_json:
        emit_json(
            {
                "schema": SCHEMA,
                "device": used.name,
                "session": str(directory) if directory else None,
                "variables": changes,
            }
        )
        return 0
    for name, value in changes.items():
        say(f"export {name}={shlex.quote(value)}")
    if directory is None:
        note("without KERNCAP_SESSION nothing is recorded; --session DIR makes one")
    return 0
