"""Fixtures of the simulator's tests. A machine that can build kerncap can run them: they need no GPU."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import device_code
import pytest
from lanes import Lanes
from simulator import DRIVER, Simulator, find_driver


@pytest.fixture(scope="session")
def code_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where compiled code of this session goes."""
    return tmp_path_factory.mktemp("code")


@pytest.fixture
def simulator(tmp_path: Path) -> Simulator:
    driver = find_driver()
    assert driver is not None, f"{DRIVER} is not built: `pip install .`, or set KERNCAP_SIM_RUN"
    return Simulator(driver, tmp_path)


@pytest.fixture(scope="session")
def compiled(code_directory: Path) -> Callable[[str, str], None]:
    """Compiles every kernel for a target at a level, several at a time."""

    @functools.cache
    def compile_all(arch: str, level: str) -> None:
        sources = device_code.corpus_sources()
        with ThreadPoolExecutor(device_code.jobs()) as pool:
            work = [pool.submit(device_code.compile_host, s, code_directory) for s in sources]
            work += [pool.submit(device_code.compile_device, s, level, code_directory, arch) for s in sources]
            for item in work:
                item.result()

    return compile_all


@pytest.fixture
def lanes(simulator: Simulator, tmp_path: Path, request: pytest.FixtureRequest) -> Lanes:
    """Pieces of assembly to run together, on every simulated GPU that has them (see lanes.py)."""
    return Lanes(simulator, tmp_path, request.node.originalname)


@pytest.fixture
def lanes_gfx90a(simulator: Simulator, tmp_path: Path, request: pytest.FixtureRequest) -> Lanes:
    """Pieces of assembly that only gfx90a has, or that differ there."""
    return Lanes(simulator, tmp_path, request.node.originalname, ("gfx90a",))
