"""`kerncap watch`."""

from __future__ import annotations

from typing import Any

import click

from kerncap.cli.output import json_option


@click.command()
@click.argument("directory", metavar="DIR")
@json_option
def command(directory: str, as_json: bool) -> Any:
    """Rebuild, replay and validate the reproducer in DIR whenever its source is saved: a line a step."""
    raise NotImplementedError
