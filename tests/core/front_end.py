"""Fixtures for the front end alone: native files that exist and do nothing, and a program that plays the
interposer.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.package import APP

PROGRAM = Path(__file__).with_name("fake_program.py")


@pytest.fixture(scope="session")
def built_natives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = next((path for name in ("g++", "clang++", "cc") if (path := shutil.which(name))), None)
    if compiler is None:
        pytest.skip("no C++ compiler")
    where = tmp_path_factory.mktemp("natives")
    (where / "sim").mkdir()
    source = where / "empty.c"
    source.write_text("int kerncap_nothing;\n")
    for name in ("libkerncap_hsa.so", "kerncap-replay", "sim/libhsa-runtime64.so.1"):
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-o", str(where / name), str(source)], check=True, timeout=60
        )
    return where


@pytest.fixture
def fake_natives(built_natives: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Native files that do nothing, and private places for sessions and output."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("KERNCAP_NATIVE_DIR", str(built_natives))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("PYTHONPATH", str(APP))
    monkeypatch.setenv("KERNCAP_DEVICE", "sim:gfx942")
    monkeypatch.chdir(tmp_path)
    return built_natives


@pytest.fixture
def fake(fake_natives: Path) -> Callable[..., list[str]]:
    """The command line of a fake program that does what the keywords say (see fake_program.py)."""

    def command(**spec: object) -> list[str]:
        return [sys.executable, str(PROGRAM), json.dumps(spec)]

    return command
