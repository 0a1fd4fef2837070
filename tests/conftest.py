"""Found by every test: the folder `tests` is on the import path, so that `support` can be imported."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from support.build import Program, simulator_environment
from support.build import build_program as build

# nohup ignores SIGHUP, the background of a shell SIGINT, and children inherit that; tests send both.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def build_program() -> Callable[[str], Program]:
    """Builds a program of tests/programs by its name; each is built once."""
    return build


@pytest.fixture
def simulator() -> dict[str, str]:
    """The whole environment of a program on a simulated gfx942, without kerncap's interposer."""
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("KERNCAP_", "LD_PRELOAD"))
    }
    return {**clean, **simulator_environment()}
