"""What a capture holds, in the list of captures: as `kerncap inspect` has it."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from kerncap.cli import inspect_command
from kerncap.core.capture import manifest
from kerncap.core.loop.captures import list_captures
from kerncap.tui.captures_text import capture_text


def test_name_id_time_and_arguments_are_those_of_the_command_line(out: Path) -> None:
    document = json.loads((out / "capture" / manifest.NAME).read_text())
    document["dispatch"]["duration_ns"] = 7180
    manifest.write(out / "capture", document)
    shown = CliRunner().invoke(inspect_command.command, [str(out)]).output
    (one,) = list_captures(out)
    text = str(capture_text(one))
    assert f"{'kernel':<10}{shown.splitlines()[0]}\n" in text
    for label in ("symbol", "id", "time"):
        (value,) = (line.split(None, 1)[1] for line in shown.splitlines() if line.split()[0] == label)
        assert f"{label:<10}{value}\n" in text
    assert "7.180 us" in text
    table = shown[shown.index("offset") :].splitlines()
    assert len(table) > 2
    rows = [line.split() for line in text.splitlines()]
    for line in table:
        assert line.split() in rows
