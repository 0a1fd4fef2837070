"""Which speeds count: only those of right results."""

from __future__ import annotations

import pytest

from kerncap.core.judge.counting import counted

TIMING = {
    "speedup": 2.0,
    "ratio": 0.5,
    "ratio_ci95": [0.49, 0.51],
    "verdict": "FASTER",
    "speed": "FASTER",
    "noise": 0.001,
    "baseline_ns": [1000.0] * 10,
    "variant_ns": [500.0] * 10,
    "baseline_median_ns": 1000.0,
    "variant_median_ns": 500.0,
}


def test_a_wrong_result_has_no_speed_but_its_samples_stay() -> None:
    found = counted(TIMING, False)
    assert found["counts"] is False
    for name in ("speedup", "ratio", "ratio_ci95", "verdict", "speed"):
        assert found[name] is None
    assert found["variant_ns"] == TIMING["variant_ns"]
    assert found["variant_median_ns"] == 500.0


def test_one_that_passes_later_has_its_speed_again() -> None:
    found = counted(counted(TIMING, False), True)
    assert found.pop("counts") is True
    assert found.pop("ratio_ci95") == [0.5, 0.5]
    assert found == {name: value for name, value in TIMING.items() if name != "ratio_ci95"}


def test_a_right_one_keeps_what_was_measured() -> None:
    assert counted(TIMING, True) == {**TIMING, "counts": True}


def test_without_samples_there_is_nothing_to_make_it_from() -> None:
    found = counted({"baseline_ns": [], "variant_ns": [], "speedup": None}, True)
    assert found.get("speedup") is None


@pytest.mark.parametrize(("variant", "speed"), [(1000.0, "SAME"), (2000.0, "SLOWER"), (500.0, "FASTER")])
def test_the_word_follows_the_samples(variant: float, speed: str) -> None:
    timing = {**TIMING, "variant_ns": [variant] * 10, "speedup": None}
    assert counted(timing, True)["speed"] == speed
