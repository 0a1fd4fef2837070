from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kerncap.core.capture import manifest

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "source"), str(TESTS / "replay"), str(TESTS / "reproducer")]

from hip_tree import DEVICE_H, Tree  # noqa: E402
from project import program, reproducer  # noqa: E402


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """An empty program's tree with device.h in src/, and a cache of its own."""
    monkeypatch.setenv("KERNCAP_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("KERNCAP_CLANG", "TMUX", "VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    return Tree(tmp_path / "a program").write({"src/device.h": DEVICE_H})


@pytest.fixture
def out(tree: Tree, tmp_path: Path) -> Path:
    """A reproducer of the scale kernel."""
    where = tmp_path / "isolated"
    reproducer(where, program(tree), tree.root, demangled="void ns::f[abi:cxx11](int)[with T = float]")
    document = json.loads((where / "capture" / manifest.NAME).read_text())
    manifest.write(where / "capture", {**document, "state": manifest.COMPLETE})
    return where
