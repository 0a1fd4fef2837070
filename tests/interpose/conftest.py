"""Fixtures of the interposer's tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kerncap.core.program.control import CaptureRequest


@pytest.fixture
def wish(tmp_path: Path) -> Callable[..., CaptureRequest]:
    """wish("kernel", nth=2, ...): a request whose output is tmp_path/"capture", in a program that runs on."""

    def make(pattern: str, **options: object) -> CaptureRequest:
        given = {"exit_after": False, "timeout_s": 60.0, **options}
        return CaptureRequest(pattern, tmp_path / "capture", **given)  # type: ignore[arg-type]

    return make
