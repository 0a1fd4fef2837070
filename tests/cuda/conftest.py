"""Fixtures of the CUDA tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable

import pytest
from driving import INTERPOSER, REPLAYER, STANDIN
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


@pytest.fixture
def triton_standin(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs find the packages that stand for Triton and torch, and the fake GPU."""
    for name, value in gpu.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("KERNCAP_DEVICE", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(STANDIN))
    monkeypatch.setenv("TRITON_STANDIN_CODE", str(gpu.folder / "kernels{}.cubin"))
