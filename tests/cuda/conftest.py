"""Fixtures of the CUDA tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable

import pytest
from driving import INTERPOSER, REPLAYER
from fake_machine import FakeGpu, build

from kerncap.core.native import find_native


@pytest.fixture(scope="session")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> FakeGpu:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    for name in (INTERPOSER, REPLAYER):
        assert find_native(name) is not None, f"{name} is not built"
    return build(tmp_path_factory.mktemp("fake-gpu"), compiler)


@pytest.fixture
def plain(gpu: FakeGpu) -> Callable[..., str]:
    """What the program prints on its own."""

    def run(*arguments: object) -> str:
        command = [str(word) for word in gpu.command(*arguments)]  # type: ignore[arg-type]
        return subprocess.run(
            command,
            env={**os.environ, **gpu.environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout

    return run
