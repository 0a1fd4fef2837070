"""kerncap's commands on programs of this group."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from kerncap.core.code.names import base_name
from rocm.prefix import Prefix


class Kerncap:
    """Runs kerncap in `directory` with the prefix' compiler at hand."""

    def __init__(self, prefix: Prefix, directory: Path, device: str = "sim:gfx942") -> None:
        self.directory = directory
        clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        self.environment = {
            **clean,
            **prefix.environment(),
            "KERNCAP_DEVICE": device,
            "KERNCAP_CACHE_DIR": str(directory / "cache"),
        }

    def run(self, *words: str, code: int | None = 0, **variables: str) -> subprocess.CompletedProcess[str]:
        """One command; asserts its exit code unless `code` is None."""
        done = subprocess.run(
            [sys.executable, "-m", "kerncap", *words],
            cwd=self.directory,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=280,
            errors="replace",
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done

    def document_and_stderr(
        self, command: str, *words: str, code: int | None = 0, **variables: str
    ) -> tuple[dict[str, Any], str]:
        """The JSON document of one command, and what it and the program wrote to stderr."""
        done = self.run(command, "--json", *words, code=code, **variables)
        try:
            found = json.loads(done.stdout)
        except ValueError:
            raise AssertionError(
                f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
            ) from None
        assert isinstance(found, dict)
        return found, done.stderr

    def document(self, command: str, *words: str, code: int | None = 0, **variables: str) -> dict[str, Any]:
        """The JSON document of one command."""
        return self.document_and_stderr(command, *words, code=code, **variables)[0]

    def rebuild(self, directory: str) -> None:
        """`make recompile` in a reproducer."""
        done = subprocess.run(
            ["make", "-C", directory, "recompile"],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=280,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def counts(profile: dict[str, Any], kind: str | None = None) -> dict[str, int]:
    """Calls by the bare names of kernels (instances of a template together), of one kind or all."""
    found: dict[str, int] = {}
    for kernel in profile["kernels"]:
        if kind is None or kernel["kind"] == kind:
            name = base_name(kernel["name"]).split("::")[-1]
            found[name] = found.get(name, 0) + kernel["calls"]
    return found
