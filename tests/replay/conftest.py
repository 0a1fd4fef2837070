"""Fixtures of the replay tests: captures of small kernels, on the simulated device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from differences import A
from make_capture import Memory, Spec, write

from kerncap.core.capture.reading import read_capture
from kerncap.core.capture.records import Capture
from kerncap.core.judge.dtypes import BYTES, Layout, Typed, TypeMap
from kerncap.core.judge.validate import Validator
from kerncap.core.replay.replayer import Replayer


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
        return read_capture(write(tmp_path / f"capture{count}", spec))

    return run


@pytest.fixture
def types(make: Callable[[Spec], Capture]) -> Callable[..., TypeMap]:
    """A map in which memory from an address on is of one layout."""

    def run(layout: Layout = BYTES, address: int = A, size: int = 1 << 16) -> TypeMap:
        region = Memory(A, np.zeros(size, np.uint8))
        capture = make(Spec(b"\x7fELF", "k", (1, 1, 1), (1, 1, 1), b"", [region]))
        return TypeMap(capture, [Typed(address, layout, "user")])

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
