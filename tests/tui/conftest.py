"""Home directories of their own, so that nothing of the user's is read or written."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """XDG directories and the working directory below the test's own."""
    for name in ("CONFIG", "STATE", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / "home" / name.lower()))
    for name in ("NO_COLOR", "SSH_CONNECTION", "KERNCAP_DEVICE", "KERNCAP_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    where = tmp_path / "work"
    where.mkdir()
    monkeypatch.chdir(where)
    return where
