"""Unmodified HIP programs, made by Debian's hipcc, under Debian's libamdhip64 and the simulated runtime.

Where the packages cannot be had the whole group is skipped, and the summary says so in a line of its own.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kerncap.core.native import SIM_RUNTIME, native_path
from rocm.build import Builder, Built
from rocm.prefix import Prefix, Unavailable, find_prefix
from rocm.running import Run

_missing: list[str] = []


@pytest.fixture(scope="session")
def prefix() -> Prefix:
    """Debian's HIP; the test is skipped where it cannot be had."""
    if _missing:
        pytest.skip(_missing[0])
    try:
        return find_prefix()
    except Unavailable as error:
        _missing.append(f"Debian's HIP cannot be had: {error}")
        pytest.skip(_missing[0])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A skipped group must not look like a passed one."""
    for reason in _missing:
        terminalreporter.section("tests/rocm was NOT run", sep="!", red=True)
        terminalreporter.line(f"{reason.rstrip(chr(46))}. Nothing here was tried under an unmodified HIP.")


@pytest.fixture(scope="session")
def build(prefix: Prefix) -> Callable[..., Built]:
    """Builds programs/NAME.hip, once."""
    return Builder(prefix).build


@pytest.fixture
def run(prefix: Prefix) -> Callable[..., Run]:
    """Runs a program on the simulated GPU, without kerncap's interposer; `variables` come on top."""

    def start(program: Path, *arguments: str, device: str = "gfx942", **variables: str) -> Run:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KERNCAP_")}
        environment.pop("LD_PRELOAD", None)
        environment |= {
            **prefix.environment(),
            "KERNCAP_SIM": device,
            "LD_LIBRARY_PATH": str(native_path(SIM_RUNTIME).parent),
            **variables,
        }
        done = subprocess.run(
            [program, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=250,
            errors="replace",
        )
        return Run(done.returncode, done.stdout, done.stderr)

    return start
