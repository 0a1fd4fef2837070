"""Fixtures of the simulator's tests. A machine that can build kerncap can run them: they need no GPU."""

from __future__ import annotations

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
def compiled(code_directory: Path) -> None:
    """Compiles every kernel, several at a time."""
    sources = device_code.corpus_sources()
    with ThreadPoolExecutor(device_code.jobs()) as pool:
        work = [pool.submit(device_code.compile_host, s, code_directory) for s in sources]
        for level in ("-O0", "-O3"):
            work += [pool.submit(device_code.compile_device, s, level, code_directory) for s in sources]
        for item in work:
            item.result()


@pytest.fixture
def lanes(simulator: Simulator, tmp_path: Path, request: pytest.FixtureRequest) -> Lanes:
    """Pieces of assembly to run together (see lanes.py)."""
    return Lanes(simulator, tmp_path, request.node.originalname)
