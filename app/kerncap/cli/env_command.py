"""`kerncap env`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import click

from kerncap.cli.output import device_option, emit_json, json_option, note, say
from kerncap.cli.parameters import PATH
from kerncap.core.device.devices import Device, child_environment, resolve_device
from kerncap.core.errors import UsageError
from kerncap.core.program.control import Session

SCHEMA = "kerncap-env/1"


@click.command()
@click.option(
    "--session",
    type=PATH,
    metavar="DIR",
    help=(
        "Also make DIR, a session that the program's figures go to and that stays (kerncap "
        "profile --session DIR). Of one that is there already, its variables are printed again."
    ),
)
@device_option
@json_option
def command(session: str | None, device: str | None, as_json: bool) -> Any:
    """Print the environment that profile and extract set, for programs that are started some other way.

    For a shell: eval "$(kerncap env --session DIR)"
    """
    directory = Path(session).absolute() if session else None
    there = directory is not None and os.path.lexists(directory / "control")
    used = _device_of(directory, device) if directory is not None and there else resolve_device(device)
    child_environment(used)  # what is not built is said before anything is made
    if directory is not None and not there:
        Session.create(directory=directory, device=used.name).close()
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


def _device_of(directory: Path, given: str | None) -> Device:
    """The device of a session that is there already. Raises UsageError where another one is asked for."""
    with Session.open(directory) as session:
        known = session.device
    used = resolve_device(given if given is not None else known or None)
    if known and used.name != known:
        raise UsageError(
            f"the session {directory} was made for {known}, not {used.name}: leave out --device, or name a "
            "directory that does not exist"
        )
    return used
