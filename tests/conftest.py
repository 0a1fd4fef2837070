"""Found by every test: the folder `tests` is on the import path, so that `support` can be imported."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from support.build import Program, simulator_environment
from support.build import build_program as build

# Under nohup SIGHUP is ignored, and what is started inherits that; tests send it.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


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
