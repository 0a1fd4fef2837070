"""README.md's transcripts of the loop are what the commands print; what is left out is marked by "…"."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
_FIGURE = re.compile(r"\b(?:[0-9a-f]*\d[0-9a-f.]*|[0-9a-f]{6})\b")  # an id may be of letters alone


def transcripts() -> list[tuple[str, list[str]]]:
    """Each command, and the lines that README.md shows of it."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", README.read_text("utf-8"), re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:].split("   ")[0], []))
            else:
                found[-1][1].append(line)
    return [(command, lines) for command, lines in found if not command.startswith(".")]


def plain(line: str) -> str:
    """A line without its figures, which differ from machine to machine, and with single blanks."""
    return " ".join(_FIGURE.sub("#", line).split())


def shown_by(lines: list[str]) -> re.Pattern[str]:
    return re.compile(
        "".join(r"(?:.*\n)*" if line == "…" else re.escape(plain(line)) + "\n" for line in lines)
    )


def test_every_line_is_shown_or_marked_as_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNCAP_DEVICE", "sim:gfx942")
    kerncap = [sys.executable, "-m", "kerncap"]
    commands = transcripts()
    assert [shlex.split(command)[1] for command, _ in commands] == [
        *("demo", "profile", "extract", "replay", "-C", "replay", "validate")
    ]
    for command, lines in commands:
        words = shlex.split(command)
        if words[0] == "kerncap":
            words = [*kerncap, *words[1:]]
        done = subprocess.run(
            words, cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=280
        )
        assert done.returncode == 0, done.stdout + done.stderr
        real = "".join(plain(line) + "\n" for line in done.stdout.splitlines())
        assert shown_by(lines).fullmatch(real), f"{command}\n{real}"
