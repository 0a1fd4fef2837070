"""Fixtures of the replay tests: captures of small kernels, on the simulated device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from make_capture import Spec, write

from kerncap.core import records
from kerncap.core.records import Capture
from kerncap.core.replayer import Replayer
from kerncap.core.validate import Validator


@pytest.fixture(autouse=True)
def _no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNCAP_DEVICE", raising=False)


@pytest.fixture
def make(tmp_path: Path) -> Callable[[Spec], Capture]:
    """Writes a capture and reads it."""
    count = 0

    def run(spec: Spec) -> Capture:
        nonlocal count
        count += 1
        return records.read(write(tmp_path / f"capture{count}", spec))

    return run


@pytest.fixture(params=["tracking", "hardware"])
def validator(
    request: pytest.FixtureRequest, make: Callable[[Spec], Capture]
) -> Iterator[Callable[..., Validator]]:
    """Makes validators: on a device that tells what was stored to, and on one that does not, as hardware."""
    open_ones: list[Replayer] = []

    def run(spec: Spec, **options: object) -> Validator:
        capture = make(spec)
        limit = float(options.pop("limit_s", 30.0))  # type: ignore[arg-type]
        replayer = Replayer(capture, limit_s=limit, track_writes=request.param == "tracking")
        open_ones.append(replayer)
        return Validator(capture, replayer=replayer, **options)  # type: ignore[arg-type]

    yield run
    for replayer in open_ones:
        replayer.close()
