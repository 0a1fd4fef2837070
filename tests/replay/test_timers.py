"""What samples are taken with: clocks, batches, limits, cold caches, and restoring from the device."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from make_capture import Memory, Spec

from kerncap.core.capture.records import Capture
from kerncap.core.replay.replay import Sampler, load, measure, race, replay
from kerncap.core.replay.replayer import Replayer
from kernels import arguments, compile_source, spec

A = 0x7E1000000000
B = A + 0x100000
Make = Callable[[Spec], Capture]
SCALE = """extern "C" __global__ void k(const float* a, float* c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; c[i] = a[i] * 2; }"""
IN_PLACE = """extern "C" __global__ void k(const float* a, float* c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; c[i] = c[i] * 2 + 1; }"""


def scale_spec(source: str = SCALE) -> Spec:
    a = np.arange(256, dtype=np.float32)
    c = np.full(256, 3, np.float32)
    memory = [Memory(A, a), Memory(B, c, a * 2 if source == SCALE else c * 2 + 1)]
    return spec(compile_source(source), "k", memory, arguments(A, B))


@pytest.fixture
def replayers(make: Make) -> Iterator[Callable[..., Replayer]]:
    opened: list[Replayer] = []

    def run(source: str = SCALE, **options: bool) -> Replayer:
        opened.append(Replayer(make(scale_spec(source)), **options))  # type: ignore[arg-type]
        return opened[-1]

    yield run
    for replayer in opened:
        replayer.close()


def test_a_device_without_timestamps_is_timed_by_event_pairs(replayers: Callable[..., Replayer]) -> None:
    replayer = replayers(timestamps=False)
    result = replay(".", iterations=12, replayer=replayer).to_json()
    assert result["timer"].startswith("event pairs")
    assert "gave no timestamps" in result["timer"]
    assert result["iterations"] == 12
    assert all(value > 0 for value in result["samples_ns"])
    assert result["median_ns"] > 1000  # the system's clock, not simulated cycles: a dispatch takes that long
    found = race(replayer, load(replayer), load(replayer), time_limit_s=1.0)
    assert found.timer == result["timer"]
    assert found.baseline.n >= 2


def test_a_device_with_timestamps_is_timed_by_them(replayers: Callable[..., Replayer]) -> None:
    replayer = replayers()
    result = replay(".", iterations=3, replayer=replayer)
    assert "dispatch timestamps" in result.timer
    found = race(replayer, load(replayer), load(replayer)).to_json()
    assert found["timer"] == result.timer
    assert found["launch_ns"] == result.launch_ns
    assert 0 < found["launch_ns"] < found["baseline_median_ns"]
    assert found["outliers"] == [[], []]
    assert found["rejected"] == [0, 0]


def test_a_few_bad_timestamps_do_not_change_the_clock(
    replayers: Callable[..., Replayer], monkeypatch: pytest.MonkeyPatch
) -> None:  # R8
    replayer = replayers()
    sampler = Sampler(replayer, load(replayer))
    times = iter([(0, 0), (100, 300), (0, 0), (400, 700), (700, 1000)])
    monkeypatch.setattr(replayer, "run", lambda *_, **__: np.array([next(times)], np.int64))
    timing = measure(sampler, iterations=3)
    assert sampler.clock == "dispatch"
    assert (timing.rejected, timing.samples_ns.tolist()) == (1, [300.0, 300.0])


@pytest.mark.parametrize("iterations", [None, 1_000_000])
def test_a_time_limit_ends_sampling(
    replayers: Callable[..., Replayer], monkeypatch: pytest.MonkeyPatch, iterations: int | None
) -> None:
    replayer = replayers()
    rng = np.random.default_rng(1)
    real = replayer.run

    def noisy(*args: object, **options: object) -> np.ndarray:
        return real(*args, **options) + np.array([0, rng.integers(0, 10**6)])  # type: ignore[arg-type]

    monkeypatch.setattr(replayer, "run", noisy)
    started = time.monotonic()
    timing = measure(Sampler(replayer, load(replayer)), iterations, time_limit_s=0.5)
    assert time.monotonic() - started < 10
    assert timing.n >= 1


def test_short_kernels_are_batched_where_restoring_is_not_needed(
    replayers: Callable[..., Replayer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On hardware only: a simulated device has no noise that a batch could average out."""
    for source, batch in ((SCALE, 16), (IN_PLACE, 1)):
        replayer = replayers(source, track_writes=False)
        variant = load(replayer)
        monkeypatch.setattr(Replayer, "simulated", False)
        sampler = Sampler(replayer, variant)
        sampler.prepare()
        assert sampler.batch == batch
        assert len(replayer.run(variant, 1, batch=sampler.batch)) == batch
        cold = Sampler(replayer, variant, "cold")
        cold.prepare()
        assert cold.batch == 1
        monkeypatch.undo()


def test_written_ranges_are_restored_from_the_device(replayers: Callable[..., Replayer]) -> None:
    """As on hardware: each sample finds what the first one found, from a copy on the device."""
    replayer = replayers(IN_PLACE, track_writes=False)
    variant = load(replayer)
    replayer.run(variant, 1)
    number = replayer._number(variant)
    before = replayer.request("run", number, 1, "warm", 1, "time", "restore", 30).integer("device_bytes")
    after = replayer.request("run", number, 5, "warm", 1, "time", "restore", 30).integer("device_bytes")
    assert after - before >= 5 * 1024
    assert replayer.compare(variant, scope="all").different == 0  # once, from the captured state


def test_cold_caches(replayers: Callable[..., Replayer]) -> None:
    """As on hardware: what displaces cached data touches nothing of the capture."""
    replayer = replayers(IN_PLACE, track_writes=False)
    sampler = Sampler(replayer, load(replayer), "cold")
    assert measure(sampler, iterations=2).n == 2
    assert replayer.compare(sampler.variant, scope="all").different == 0
    assert replay(".", iterations=1, cache="cold", replayer=replayer).to_json()["cache"] == "cold"
