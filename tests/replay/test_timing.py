"""Statistics of samples and verdicts on speed, from made-up samples (R8)."""

from __future__ import annotations

import numpy as np
import pytest

from kerncap.core.replay import timing
from kerncap.core.replay.timing import Series, Speed


def test_impossible_times_are_rejected_and_counted() -> None:
    times = np.array(
        [
            (100, 300),
            (0, 50),  # no start
            (400, 400),  # no time
            (500, 450),  # negative
            (250, 600),  # starts before the one before it has ended
            (700, 700 + 2 * 3600 * 10**9),  # two hours
            (800, 900),
        ],
        np.int64,
    )
    samples, rejected = timing.durations(times)
    assert samples.tolist() == [200, 100]
    assert rejected == 5


def test_summary() -> None:
    samples = np.array([10.0, 11, 12, 13, 14, 15, 16, 17, 18, 100])
    found = timing.summarise(samples, rejected=2)
    assert (found.n, found.rejected, found.min_ns, found.max_ns) == (10, 2, 10, 100)
    assert found.median_ns == 14.5
    assert found.quartiles_ns == (12.25, 16.75)
    assert found.outliers == (9,)  # flagged, and kept:
    assert found.mean_ns == pytest.approx(22.6)
    low, high = found.ci95_ns
    assert 10 <= low < 14.5 < high < 100
    assert timing.summarise(samples).ci95_ns == found.ci95_ns  # the same samples, the same interval


def test_the_interval_covers_the_median_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        low, high = timing.median_interval(rng.normal(1000, 20, 40), resamples=400)
        hits += low <= 1000 <= high
    assert 178 <= hits <= 200


def test_equal_samples_have_intervals_of_no_width() -> None:
    found = timing.summarise(np.full(5, 1430.0))
    assert found.ci95_ns == (1430.0, 1430.0)
    assert (found.stdev_ns, found.relative_error, found.outliers) == (0, 0, ())


def test_steady() -> None:
    rng = np.random.default_rng(1)
    assert not timing.steady(np.full(9, 5.0))
    assert timing.steady(np.full(10, 5.0))
    assert not timing.steady(rng.normal(100, 20, 20))
    assert timing.steady(rng.normal(100, 1, 20))


def series(ratio: float, noise: float, n: int = 40, drift: float = 0.0, seed: int = 2) -> Series:
    """Blocks of A B B A from a clock that drifts by `drift` over the whole run."""
    rng = np.random.default_rng(seed)
    step = 0

    def sample(factor: float) -> float:
        nonlocal step
        step += 1
        return float(1000 * factor * (1 + drift * step / (4 * n)) * (1 + rng.normal(0, noise)))

    return timing.interleave(lambda: sample(1.0), lambda: sample(ratio), lambda s: len(s.first) >= n)


@pytest.mark.parametrize(
    ("ratio", "noise", "verdict"),
    [
        (0.8, 0.01, Speed.FASTER),
        (1.2, 0.01, Speed.SLOWER),
        (1.0, 0.001, Speed.SAME),
        (0.8, 0.0, Speed.FASTER),
        (1.0, 0.0, Speed.SAME),
        (1.0001, 0.0, Speed.SLOWER),
        (0.97, 0.3, Speed.UNCLEAR),
    ],
)
def test_verdicts_on_speed(ratio: float, noise: float, verdict: Speed) -> None:
    found = timing.compare(series(ratio, noise))
    assert found.verdict == verdict, found
    if noise == 0:
        assert found.ci95 == (found.ratio, found.ratio)
        assert found.noise == 0


def test_a_drifting_clock_does_not_make_a_winner() -> None:
    found = timing.compare(series(1.0, 0.001, drift=0.5))
    assert found.verdict in (Speed.SAME, Speed.UNCLEAR)
    assert found.ratio == pytest.approx(1.0, abs=0.01)
    assert timing.compare(series(0.7, 0.001, drift=0.5)).verdict == Speed.FASTER


def test_noise_alone_seldom_wins() -> None:
    verdicts = [timing.compare(series(1.0, 0.02, n=20, seed=s)).verdict for s in range(40)]
    assert sum(v in (Speed.FASTER, Speed.SLOWER) for v in verdicts) <= 2


def test_rejected_samples_are_counted_by_side() -> None:
    values = iter([1.0, None, 2.0, 1.0])
    found = timing.interleave(lambda: next(values), lambda: next(values), lambda s: bool(s.baseline))
    assert (found.baseline, found.variant, found.rejected) == ([1.0, 1.0], [2.0], [0, 1])


def test_no_sample_is_an_error() -> None:
    with pytest.raises(ValueError, match="no sample"):
        timing.summarise(np.zeros(0))
