"""What the replayer reports of memory that differs: runs, and their bytes in a file of bounded size."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from make_capture import Memory, Spec

from kerncap.core.capture.records import Capture
from kerncap.core.replay.launch import captured_launch
from kerncap.core.replay.replayer import NO_DATA, Differences, Replayer
from kernels import arguments, compile_source, spec

A = 0x7E1000000000
N = 1 << 20  # 4 MiB: several windows, which threads compare
KERNEL = """extern "C" __global__ void k(int* c) {
  int i = blockIdx.x * 256 + threadIdx.x;
  c[i] = i; }"""


def wrong() -> np.ndarray:
    """Single numbers, and stretches of up to 80 KB, apart by at least 64 bytes."""
    rng = np.random.default_rng(21)
    chosen = np.zeros(N, bool)
    at = 5
    while at < N:
        length = 1 if rng.random() < 0.9 else int(rng.integers(2, 20_000))
        chosen[at : at + length] = True
        at += length + int(rng.integers(24, 2000))
    return chosen


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    return np.where(wrong(), -1, np.arange(N)).astype(np.int32)


@pytest.fixture
def replayer(make: Callable[[Spec], Capture], expected: np.ndarray) -> Iterator[Replayer]:
    before = np.full(N, -2, np.int32)
    made = spec(
        compile_source(KERNEL), "k", [Memory(A, before, expected)], arguments(A), items=N, workgroup=256
    )
    with Replayer(make(made), limit_s=60) as found:
        yield found


def compared(replayer: Replayer, **more: int) -> Differences:
    variant = replayer.load(captured_launch(replayer.capture))
    replayer.run(variant, track=True)
    replayer.allow(variant)
    return replayer.compare(variant, scope="all", **more)


def check(found: Differences, expected: np.ndarray) -> int:
    """The bytes of data, after each run was held against what it should be."""
    want, got = expected.view(np.uint8), np.arange(N, dtype=np.int32).view(np.uint8)
    kept, places = 0, set()
    assert int(found.runs["different"].sum()) == np.count_nonzero(want != got) == found.different
    for run in found.runs:
        at, size, offset = int(run["address"]) - A, int(run["bytes"]), int(run["data_offset"])
        # A run reaches into its neighbours, as far as an element may.
        inner = slice(at + 8 if at else 0, at + size - 8 if at + size < len(want) else None)
        least, most = (np.count_nonzero(want[s] != got[s]) for s in (inner, slice(at, at + size)))
        assert least <= run["different"] <= most
        if offset == NO_DATA:
            continue
        assert np.array_equal(found.data[offset : offset + size], want[at : at + size])
        assert np.array_equal(found.data[offset + size : offset + 2 * size], got[at : at + size])
        places.add((offset, offset + 2 * size))
        kept += 2 * size
    ordered = sorted(places)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(ordered))  # none shares bytes
    return kept


def test_every_run_has_its_bytes(replayer: Replayer, expected: np.ndarray) -> None:
    found = compared(replayer)
    assert check(found, expected) == len(found.data)
    assert not (found.runs["data_offset"] == NO_DATA).any()
    assert (np.diff(found.runs["address"].astype(np.int64)) > 0).all()
    differ = expected.view(np.uint8) != np.arange(N, dtype=np.int32).view(np.uint8)
    assert found.different == int(found.runs["different"].sum()) == np.count_nonzero(differ)


@pytest.mark.parametrize("limit", [0, 100, 50_000, 300_000])
def test_runs_that_no_longer_fit_have_no_data(replayer: Replayer, expected: np.ndarray, limit: int) -> None:
    """A long one that does not fit makes no short one after it lose its data."""
    found = compared(replayer, data_limit=limit)
    whole = compared(replayer)
    assert check(found, expected) == len(found.data) <= limit
    assert (found.different, found.runs["address"].tolist()) == (
        whole.different,
        whole.runs["address"].tolist(),
    )
    lost = found.runs[found.runs["data_offset"] == NO_DATA]
    assert len(lost)
    assert len(found.data) + 2 * int(lost["bytes"].min()) > limit
