"""The Makefile of the source tree, without running what it would run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def recipe(target: str, where: Path) -> list[str]:
    """The commands of a target in a fresh copy of the Makefile, as `make -n` prints them."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copyfile(ROOT / name, where / name)
    for name in ("app", "native", "reproducer_templates"):
        (where / name).mkdir()
    command = ["make", "-n", target]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_takes_minutes_is_announced_before_it_begins(tmp_path: Path) -> None:
    for target in ("demo", "test"):
        folder = tmp_path / target
        folder.mkdir()
        lines = recipe(target, folder)
        long = [
            number
            for number, line in enumerate(lines)
            if "pip install" in line and "--upgrade pip" not in line
        ]
        told = [number for number, line in enumerate(lines) if "echo" in line]
        assert long
        for number in long:
            assert any(number - 3 <= other < number for other in told), lines[number]
        assert any("2 to 5 minutes" in line and "600 MB" in line for line in lines)
