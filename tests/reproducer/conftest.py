from __future__ import annotations

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "source"), str(TESTS / "replay")]

from hip_tree import DEVICE_H, Tree  # noqa: E402


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """An empty program's tree with device.h in src/, and a cache of its own."""
    monkeypatch.setenv("KERNCAP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("KERNCAP_CLANG", raising=False)
    return Tree(tmp_path / "a program").write({"src/device.h": DEVICE_H})
